"""Text to tokens by Spark's lexical rules, and a script to statements.

The rules are those of Spark's SqlBaseLexer: backslash escapes in strings, r'raw' strings,
adjacent strings, nested bracketed comments, `quoted` names. sqlglot's tokenizer drops hints,
gives no place for an unclosed quote and needs seconds for a 10 MB script; this is one regular
expression. `>>` is left as two signs, so that `ARRAY<ARRAY<INT>>` reads as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from streamsql.errors import Source, Span, SyntaxFault


class Token(NamedTuple):
    """kind: word, quoted, string, number, sign or hint; text as written; [start, end) offsets."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def upper(self) -> str:
        return self.text.upper()


_LEXER = re.compile(
    r"""
    (?P<space>\s+|--(?:\\\n|[^\n])*)
  | (?P<comment>/\*)
  | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|[xX]'[^']*'|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?[A-Za-z]*|\.\d+(?:[eE][+-]?\d+)?[A-Za-z]*
              |\d+(?:[eE][+-]?\d+)?[A-Za-z]{0,2}(?!\w))
  | (?P<word>\w+)
  | (?P<sign>\|>|->|=>|::|<=>|<=|>=|<>|!=|==|\|\||\$\{|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_PART = re.compile(r"/\*|\*/")


def _comment_end(text: str, start: int) -> int:
    """Offset behind a bracketed comment, nested ones counted; -1 when it is not closed."""
    depth, at = 1, start + 2
    while depth:
        part = _COMMENT_PART.search(text, at)
        if not part:
            return -1
        depth += 1 if part.group() == "/*" else -1
        at = part.end()
    return at


def tokenize(text: str, *, strict: bool = True) -> list[Token]:
    """All tokens of a text, comments left out, hints (/*+ … */) kept as one token.

    strict: an unclosed quote or comment raises SyntaxFault; otherwise the text ends there.
    """
    tokens, opened, at = scan(text)
    if strict and opened == "/*":
        raise SyntaxFault("comment is not closed", hint="end it with */", span=Span(at, at + 2))
    if strict and opened and opened != "--":
        raise SyntaxFault("quote is not closed", hint=f"end it with {opened}", span=Span(at, at + 1))
    return tokens


def scan(text: str) -> tuple[list[Token], str, int]:
    """The tokens of a text, what is open at its end, and where that begins.

    Open is a quote, `/*`, or the `--` of a comment that the text ends in; "" when nothing is.
    """
    tokens: list[Token] = []
    at, length = 0, len(text)
    match = _LEXER.match
    while at < length:
        found = match(text, at)
        assert found is not None  # `.` takes any character
        kind, end = found.lastgroup or "", found.end()
        if kind == "comment":
            end = _comment_end(text, at)
            if end < 0:
                return tokens, "/*", at
            if text.startswith("/*+", at):
                tokens.append(Token("hint", text[at:end], at, end))
        elif kind == "sign" and found.group() in "'\"`":
            return tokens, found.group(), at
        elif kind != "space":
            tokens.append(Token(kind, found.group(), at, end))
        elif end == length and text.startswith("--", at):
            return tokens, "--", at
        at = end
    return tokens, "", length


class Piece(NamedTuple):
    """One statement of a script: its tokens (offsets in the whole text) and whether `;` ended it."""

    tokens: list[Token]
    closed: bool


_BEFORE_HEAD = {"EXPLAIN", "PYSPARK", "LOGICAL", "EXTENDED", "FORMATTED", "CODEGEN", "COST"}
_BLOCK_ENDS = {"IF", "WHILE", "FOR", "LOOP", "REPEAT"}


def split(tokens: list[Token]) -> Iterator[Piece]:
    """Statements of a token list, without their `;`. Empty ones are left out.

    A compound statement (BEGIN … END, EXECUTE STATEMENT SET BEGIN … END) is one piece.
    """
    piece: list[Token] = []
    depth, compound, head = 0, False, True
    for index, token in enumerate(tokens):
        if token.text == ";" and depth == 0:
            if piece:
                yield Piece(piece, True)
            piece, compound, head = [], False, True
            continue
        if token.kind == "word":
            word = token.upper
            if head:
                compound = word in ("BEGIN", "EXECUTE")
            if compound and word in ("BEGIN", "CASE"):
                depth += 1
            elif compound and word == "END" and depth:
                after = tokens[index + 1].upper if index + 1 < len(tokens) else ""
                depth -= after not in _BLOCK_ENDS
        head = head and token.upper in _BEFORE_HEAD
        piece.append(token)
    if piece:
        yield Piece(piece, False)


def unquote(token: Token) -> str:
    """The value of a string literal, or the name inside backticks (Spark's escapes resolved)."""
    text = token.text
    if token.kind == "quoted":
        return text[1:-1].replace("``", "`")
    if token.kind != "string":
        return text
    if text[0] in "rR":
        return text[2:-1]
    return re.sub(r"\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|.)", _unescape, text[1:-1], flags=re.DOTALL)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


def _unescape(found: re.Match[str]) -> str:
    code = found.group(1)
    if len(code) == 5:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    # Spark keeps the backslash before % and _ for LIKE patterns.
    return "\\" + code if code in "%_" else _ESCAPES.get(code, code)


def quote(value: str) -> str:
    """A string literal that Spark reads back as value."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'".replace("\t", "\\t")


# Words that open a clause of ours or of a query: as a name they want backticks, so that a
# forgotten name is noticed where it is missing.
NOT_A_NAME = frozenset("""SELECT FROM WHERE USING WITH AS ON JOIN GROUP HAVING UNION VALUES""".split())
# Spark takes a bare name of these letters only.
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quote_name(name: str) -> str:
    """A name as it must be written: bare when it is a plain word, else in backticks."""
    plain = PLAIN_NAME.match(name) and name.upper() not in NOT_A_NAME
    return name if plain else "`" + name.replace("`", "``") + "`"


_VARIABLE = re.compile(r"\$\{\s*([\w.:-]*|file:[^}']*)\s*\}")
# Their values are looked up when a query is started, and shown and kept nowhere.
_ELSEWHERE = ("env:", "file:")
_TAKES_ELSEWHERE = re.compile(
    r"\s*(CREATE\s+(OR\s+REPLACE\s+)?(STREAM|SINK)|PREVIEW|SHOW\s+TOPICS)\b", re.IGNORECASE
)


def refers(text: str) -> bool:
    """Whether a text holds ${env:NAME} or ${file:PATH}."""
    return any(f"${{{start}" in text for start in _ELSEWHERE)


def _variables(text: str) -> Iterator[re.Match[str]]:
    """Each ${name} of a text, those in strings and hints too; comments are passed over."""
    at = 0
    while at < len(text):
        found = _LEXER.match(text, at)
        assert found is not None
        kind, end = found.lastgroup, found.end()
        if kind == "comment":
            end = _comment_end(text, at)
            end = end if end > 0 else len(text)
        if kind in ("string", "quoted") or text.startswith("/*+", at):
            yield from _VARIABLE.finditer(text, at, end)
        elif kind == "sign" and (named := _VARIABLE.match(text, at)):
            yield named
            end = named.end()
        at = end


def substitute(source: Source, values: dict[str, str]) -> tuple[str, list[tuple[int, int]]]:
    """Put the DEFINEd values in place of each ${name}; comments are left alone.

    Returns the new text and, for the way back, pairs (offset in new, offset in old) where the
    two begin to differ. Raises SyntaxFault for a name that is not defined.
    """
    from streamsql.errors import NameFault, did_you_mean

    parts: list[str] = []
    back: list[tuple[int, int]] = [(0, 0)]
    old = new = 0
    for found in _variables(source.text):
        name = found.group(1)
        if name.startswith(_ELSEWHERE):
            if _TAKES_ELSEWHERE.match(source.text):
                continue
            raise NameFault(
                f"${{{name}}} stands where it would be shown",
                hint="it is for the options of CREATE STREAM, CREATE SINK, PREVIEW and SHOW TOPICS",
                span=Span(*found.span()),
            )
        if name not in values:
            raise NameFault(
                f"variable {name} is not defined",
                hint=did_you_mean(name, values) or f"DEFINE {name} = '…';  or  -D {name}=…",
                span=Span(*found.span()),
            )
        parts += [source.text[old : found.start()], values[name]]
        new += found.start() - old
        back.append((new, found.start()))
        new += len(values[name])
        old = found.end()
        back.append((new, old))
    parts.append(source.text[old:])
    return "".join(parts), back


def back_to_source(span: Span, back: list[tuple[int, int]]) -> Span:
    """Where a span of a substituted text lies in the text as written: a part of a value lies on the
    whole ${name}.
    """

    def piece(offset: int) -> int:
        return max(i for i, (new, _) in enumerate(back) if new <= offset)

    first, last = piece(span.start), piece(max(span.start, span.end - 1))
    inside = [i % 2 == 1 for i in (first, last)]
    start = back[first][1] if inside[0] else back[first][1] + span.start - back[first][0]
    end = back[last + 1][1] if inside[1] else back[last][1] + span.end - back[last][0]
    return Span(start, max(start + 1, end))
