"""Text to tokens, by sqlglot's tokenizer for Spark (dialect.py), and a script to statements.

A Token is one word, name, literal or sign of the text. sqlglot joins some words (GROUP BY) and splits others
(10L is a number, `::` and a type); `parts` of a Token are sqlglot's own tokens, for the parser of queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from streamsql.errors import NameFault, Source, Span, SyntaxFault, did_you_mean
from streamsql.language.compound import Blocks
from streamsql.language.dialect import raw_tokens
from streamsql.language.edits import with_points
from streamsql.language.wrong_characters import closing_quote, wrong_character


class Token(NamedTuple):
    """kind: word, quoted, string, number, sign or hint; text as written, upper: in upper case; [start, end)
    offsets.

    parts: sqlglot's tokens that start here; empty for the later words of a joined keyword.
    """

    kind: str
    text: str
    start: int
    end: int
    upper: str
    parts: tuple[Any, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and self[:4] == other[:4]

    def __hash__(self) -> int:
        return hash(self[:4])

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    def behind(self, start: int) -> Token:
        """The same token in the text from an offset on, to be matched by the grammar."""
        return _new(Token, (self.kind, self.text, self.start - start, self.end - start, self.upper, ()))

    def saying(self, text: str, kind: str = "") -> Token:
        """The same token with another text, and maybe of another kind."""
        return self._replace(kind=kind or self.kind, text=text, upper=text.upper())


_new = tuple.__new__
"""Makes a Token; the class's own way takes twice the time, which is much of a script's reading."""


def tokenize(text: str, *, strict: bool = True) -> list[Token]:
    """All tokens of a text, without comments.

    strict: raise SyntaxFault for an unclosed quote or comment; otherwise the tokens end there.
    """
    tokens, opened, at = scan(text)
    if strict and opened == "/*":
        raise SyntaxFault("the comment is not closed", hint="end it with */", span=Span(at, at + 2))
    if strict and opened and (opened in "'\"`" or opened[0] == "$"):
        place = Span(at, at + len(opened))
        ended = next((n for n in range(len(tokens), 0, -1) if tokens[n - 1].text == ";"), 0)
        typed = wrong_character(tokens[ended:]) or closing_quote(text, at, opened)
        if typed:
            raise typed
        raise SyntaxFault("the quote is not closed", hint=f"end it with {opened}", span=place)
    if strict and opened and opened != "--":
        raise SyntaxFault("this literal cannot be read", span=Span(at, at + len(opened)))
    return tokens


def scan(text: str) -> tuple[list[Token], str, int]:
    """The tokens of a text, the item that is open at its end, and the start of that item.

    The open item is a quote, also `$$` or `$tag$`, `/*`, the `--` of a comment at the end, or an invalid
    literal such as X'zz'; "" for none.
    """
    raw, stopped = raw_tokens(text)
    tokens: list[Token] = []
    index, count = 0, len(raw)
    while index < count:
        first = raw[index]
        start, end = first.start, first.end + 1
        written = text[start:end]
        kind = _KINDS.get(first.token_type._name_)  # the property `name` is slow
        if kind is None:
            kind = "word" if written[0].isalnum() or written[0] == "_" else "sign"
        after = index + 1
        if kind == "number":
            # `10L` is three tokens with the same position.
            while after < count and raw[after].start == start:
                after += 1
        if kind == "word" and not written.isalnum() and len(written.split()) > 1:
            tokens += _words_of(text, start, end, first)
        else:
            parts = tuple(raw[index:after])
            tokens.append(_new(Token, (kind, written, start, end, written.upper(), parts)))
        index = after
    if stopped is not None:
        return tokens, *_opened(text, stopped)
    last = tokens[-1].end if tokens else 0
    comment = _LAST_COMMENT.search(text, last)
    return (tokens, "--", comment.start()) if comment else (tokens, "", len(text))


_KINDS = {
    "STRING": "string", "RAW_STRING": "string", "HEX_STRING": "string", "NATIONAL_STRING": "string",
    "BIT_STRING": "string", "BYTE_STRING": "string", "UNICODE_STRING": "string", "HEREDOC_STRING": "string",
    "IDENTIFIER": "quoted", "NUMBER": "number", "HINT": "hint",
}  # fmt: skip
# A text that ends within a comment of one line.
_LAST_COMMENT = re.compile(r"--[^\r\n]*\Z")
_WORD = re.compile(r"\S+")


def _words_of(text: str, start: int, end: int, raw: Any) -> Iterator[Token]:
    """The words of a keyword that sqlglot reads as one token, such as GROUP BY."""
    for number, word in enumerate(_WORD.finditer(text, start, end)):
        written = word.group()
        yield Token("word", written, word.start(), word.end(), written.upper(), () if number else (raw,))


def _opened(text: str, at: int) -> tuple[str, int]:
    """The item that sqlglot could not read from that position on, and the position of its quote."""
    if text.startswith("/*", at):
        return "/*", at
    if text.startswith("$", at):
        return text[at : text.index("$", at + 1) + 1], at
    quote_at = next((at + n for n in (0, 1, 2) if text[at + n : at + n + 1] in ("'", '"', "`")), at)
    sign = text[quote_at : quote_at + 1]
    closed = text.find(sign, quote_at + 1) if quote_at > at else -1
    return (text[at : closed + 1], at) if closed > 0 else (sign, quote_at)


class Piece(NamedTuple):
    """One statement of a script: its tokens (offsets in the whole text) and whether `;` ended it."""

    tokens: list[Token]
    closed: bool


_BEFORE_HEAD = {"EXPLAIN", "PYSPARK", "LOGICAL", "EXTENDED", "FORMATTED", "CODEGEN", "COST"}
_TRANSACTIONS = {";", "TRANSACTION", "WORK", "CHANGE"}
"""What follows a BEGIN of other consoles that has no END."""


def split(tokens: list[Token]) -> Iterator[Piece]:
    """Statements of a token list, without their `;`. Empty statements are skipped.

    A compound statement (BEGIN … END, EXECUTE STATEMENT SET BEGIN … END, BEGIN STATEMENT SET; … END of Flink,
    TEST 'name' BEGIN … END TEST) is one piece. A TEST that is not closed ends before the next one.
    """
    at, lenient = 0, False
    while at < len(tokens):
        if tokens[at].text == ";":
            at += 1
            continue
        if _begins_test(tokens, at):
            end = _end_of_test(tokens, at)
        elif _is_compound(tokens, at):
            closed = None if lenient else _end_of_compound(tokens, at)
            lenient = closed is None  # one pass over the rest of the script tells it of all
            end = closed or _end_of_compound(tokens, at, lenient=True) or len(tokens)
        else:
            end = next((n for n in range(at, len(tokens)) if tokens[n].text == ";"), len(tokens))
        yield Piece(tokens[at:end], end < len(tokens))
        at = end + 1


def _is_compound(tokens: list[Token], at: int) -> bool:
    """Whether a compound statement begins there, maybe behind EXPLAIN."""
    while at < len(tokens) and tokens[at].upper in _BEFORE_HEAD:
        at += 1
    words = [t.upper for t in tokens[at : at + 2]]
    compound = words[:1] == ["BEGIN"] and not set(words[1:]) & _TRANSACTIONS
    return compound or words == ["EXECUTE", "STATEMENT"]


def _end_of_compound(tokens: list[Token], at: int, *, lenient: bool = False) -> int | None:
    """The position of the `;` that ends a compound statement, or the end of the text behind its END; None
    where no END closes it.
    """
    blocks, opened = Blocks(tokens, lenient=lenient), False
    while at < len(tokens) and tokens[at].upper in _BEFORE_HEAD:
        at += 1
    for number in range(at, len(tokens)):
        if tokens[number].text == ";" and not blocks.open:
            return number
        blocks.take(number)
        opened = opened or bool(blocks.open)
    return len(tokens) if opened and not blocks.open else None


def _end_of_test(tokens: list[Token], at: int) -> int:
    """The position of the `;` that ends a TEST: behind END TEST, or before the next TEST."""
    begun = False
    for number in range(at, len(tokens)):
        word = tokens[number].upper if tokens[number].kind == "word" else tokens[number].text
        if word == "END" and [t.upper for t in tokens[number + 1 : number + 2]] == ["TEST"]:
            begun = False
        begun = begun or word == "BEGIN"
        if word == ";" and (not begun or _begins_test(tokens, number + 1)):
            return number
    return len(tokens)


def _begins_test(tokens: list[Token], at: int) -> bool:
    """Whether TEST 'name' stands there."""
    pair = tokens[at : at + 2]
    return len(pair) == 2 and pair[0].upper == "TEST" and pair[1].kind == "string"


def on_one_line(tokens: Iterable[Token]) -> str:
    """The text of these tokens without comments, with a blank where blanks or a line break are."""
    text, end = "", 0
    for token in tokens:
        text += (" " if text and end < token.start else "") + token.text
        end = token.end
    return text


def unquote(token: Token) -> str:
    """The value of a string literal, or the name inside backticks (Spark's escapes resolved)."""
    text = token.text
    if token.kind == "quoted":
        return text[1:-1].replace("``", "`")
    if token.kind != "string":
        return text
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        quote = text[: text.index("$", 1) + 1]
        return text[len(quote) : -len(quote)]
    return re.sub(r"\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|.)", _unescape, text[1:-1], flags=re.DOTALL)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


def _unescape(escape: re.Match[str]) -> str:
    code = escape.group(1)
    if len(code) == 5:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    # Spark keeps the backslash before % and _ for LIKE patterns.
    return "\\" + code if code in "%_" else _ESCAPES.get(code, code)


_WRITTEN = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\0": r"\u0000"}
_SPECIAL = re.compile(r"[\\'\n\r\t\0\ud800-\udfff]|\$(?=\{)")
_SPECIAL_BUT_REFERENCES = re.compile(r"[\\'\n\r\t\0\ud800-\udfff]|\$(?=\{(?!env:|file:))")


def quote(value: str) -> str:
    """A string literal with that value for Spark and the console; ${ in it does not start a variable."""
    return _quoted(value, _SPECIAL)


def quote_option(value: str) -> str:
    """A string literal for an option: ${env:NAME} and ${file:PATH} are not escaped."""
    return _quoted(value, _SPECIAL_BUT_REFERENCES)


def _quoted(value: str, special: re.Pattern[str]) -> str:
    escaped = special.sub(lambda match: _WRITTEN.get(match[0]) or f"\\u{ord(match[0]):04x}", value)
    return f"'{escaped}'"


# Words that start a clause. As names they need backticks, so that the error for a missing name is at the
# right position.
NOT_A_NAME = frozenset("""SELECT FROM WHERE USING WITH AS ON JOIN GROUP HAVING UNION VALUES""".split())
_READ_OTHERWISE = NOT_A_NAME | frozenset(
    """ALL ANTI CROSS CURRENT_PATH DISTINCT EXCEPT FALSE FULL INNER INTERSECT LATERAL LEFT MINUS NATURAL NOT
    NULL RIGHT SEMI TRUE""".split()
)
"""Words that Spark's parser reads otherwise, or refuses, where the name of a column or a table may stand."""
# Spark accepts only these characters in a name without backticks.
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quote_name(name: str) -> str:
    """A name as SQL, in backticks if it needs them."""
    plain = PLAIN_NAME.match(name) and name.upper() not in _READ_OTHERWISE
    return name if plain else "`" + name.replace("`", "``") + "`"


# Possessive quantifiers: blanks without a following } are read only once.
_VARIABLE = re.compile(r"\$\{\s*+([\w.:-]*+(?=\s*+\})|file:[^}']*+)\s*+\}")
# Their values are resolved when a query starts, and are never shown or stored.
_ELSEWHERE = ("env:", "file:")
_TAKES_ELSEWHERE = re.compile(
    r"\s*(CREATE\s+(OR\s+REPLACE\s+)?(STREAM|SINK)|PREVIEW|SHOW\s+TOPICS)\b", re.IGNORECASE
)


def refers(text: str) -> bool:
    """Whether a text contains ${env:NAME} or ${file:PATH}."""
    return any(f"${{{start}" in text for start in _ELSEWHERE)


def _variables(text: str) -> Iterator[re.Match[str]]:
    """Each ${name} of a text, also in strings and names, but not in comments."""
    behind = 0
    for token in scan(text)[0]:
        if token.kind in ("string", "quoted", "hint"):
            yield from _VARIABLE.finditer(text, token.start, token.end)
        elif token.text == "$" and token.start >= behind and (named := _VARIABLE.match(text, token.start)):
            yield named
            behind = named.end()


def substitute(
    source: Source, values: dict[str, str], further: Sequence[tuple[int, int, str]] = ()
) -> tuple[str, list[tuple[int, int]]]:
    """Replace each ${name} and ${hivevar:name} by its DEFINEd value, except in comments; Spark replaces
    ${spark.…}. further: other places (start, end) with the value for each.

    Returns the new text and pairs (offset in the new text, offset in the old text) where the two begin to
    differ. Raises NameFault for a variable that is not defined, that another variable's value refers to, or
    whose value would be shown.
    """
    places = list(further)
    for reference in _variables(source.text):
        name, span = reference.group(1).removeprefix("hivevar:"), Span(*reference.span())
        if name.startswith(_ELSEWHERE):
            _check_hidden(name, span, source.text)
        elif name.startswith("spark.") and name not in values:
            _check_setting(name, span)  # Spark replaces it by the value of its setting
        else:
            places.append((span.start, span.end, value_of(name, span, values)))
    return with_points(source.text, sorted(places))


def _check_hidden(name: str, span: Span, text: str) -> None:
    """Raise NameFault for ${env:NAME} or ${file:PATH} in a statement that would show the value."""
    if not _TAKES_ELSEWHERE.match(text):
        raise NameFault(
            f"${{{name}}} is not allowed here, because its value would be shown",
            hint="use it in the options of CREATE STREAM, CREATE SINK, PREVIEW and SHOW TOPICS",
            span=span,
            code="SECRET_SHOWN",
        )


def _check_setting(name: str, span: Span) -> None:
    """Raise NameFault for ${spark.…} of a setting that is a secret."""
    from streamsql.secrets import redact_option

    if redact_option(name, "value") != "value":
        raise NameFault(
            f"${{{name}}} is not allowed here, because its value would be shown",
            span=span,
            code="SECRET_SHOWN",
        )


def value_of(name: str, span: Span, values: dict[str, str]) -> str:
    """The value of a variable. Raises NameFault when it is not defined, or refers to another variable."""
    if name not in values:
        raise NameFault(
            f"variable {name} is not defined",
            hint=did_you_mean(name, values) or f"DEFINE {name} = '…';  or  -D {name}=…",
            span=span,
            code="UNKNOWN_VARIABLE",
        )
    if "${" in values[name]:
        raise NameFault(
            f"the value of variable {name} contains ${{…}}, and values are not substituted again",
            hint=f"DEFINE {name} with a value that contains no ${{…}}",
            span=span,
            code="BAD_VARIABLE",
        )
    return values[name]
