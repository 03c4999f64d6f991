"""Text to statements: the one entry is `parse_script`."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial

from streamsql.config.preferences import Preferences
from streamsql.errors import InputFault, Source, Span, StreamsqlError, SyntaxFault, nearest
from streamsql.guard import informing
from streamsql.language.dialects.hint_comments import check_comment, check_comment_behind
from streamsql.language.dialects.proposals_after_failure import offered, own_statement
from streamsql.language.dialects.translation import Translation
from streamsql.language.edits import OwnText, edited
from streamsql.language.grammar import Node, State, load, syntax_fault, wants_name
from streamsql.language.origin import Origin, located
from streamsql.language.parameters import Values, replaced_parameters
from streamsql.language.psql_variables import check_parameters, defined_parameters, own_edits
from streamsql.language.reference import keywords
from streamsql.language.script import Written, split_script
from streamsql.language.short_forms import SIGNS, expand
from streamsql.language.statements.base import (
    Name,
    Statement,
    StatementWithBlock,
    StatementWithBody,
)
from streamsql.language.statements.binder import bind
from streamsql.language.statements.registry import STATEMENTS, first_words
from streamsql.language.statements.spark import Spark
from streamsql.language.terminals import QUERY_HEADS
from streamsql.language.tokens import Token, split, substitute, tokenize, unquote, value_of
from streamsql.language.topics import topics
from streamsql.language.unfinished.spark_words import SECOND_WORDS
from streamsql.language.wrong_characters import wrong_character


def parse(
    written: Written,
    variables: dict[str, str] | None = None,
    *,
    literal: bool = False,
    in_test: bool = False,
    translation: Translation | None = None,
    parameters: Values = (),
) -> Statement:
    """Parse one statement. Spans, also those of errors, refer to the script.

    variables: the values of ${name}; literal: variables are not replaced; in_test: it stands inside a TEST;
    translation: into Spark's words, from the dialect of SET streamsql.dialect. parameters: the values of ? in
    their order, or of :name.
    """
    if written.fault:
        raise written.fault.at(written.source, written.span)
    start = written.span.start
    text, origin = written.text, Origin(((0, start),))
    tokens = [t.behind(start) for t in written.tokens] or None
    try:
        wrong = wrong_character(written.tokens) if not literal else None
        if wrong:
            raise wrong
        if tokens:
            check_comment_behind(written.source.text, written.span.end, tokens[-1].text)
        values = {} if variables is None else variables
        psqls = defined_parameters(tokens or (), values) if values and not literal else []
        with origin.errors():
            given = replaced_parameters(tokens or (), parameters) if parameters else []
        if ("${" in text and not literal) or psqls or given:
            with origin.errors():
                named = [
                    (p.start, p.end, p.with_value(value_of(p.name, Span(p.start, p.end), values)))
                    for p in psqls
                    if p.start not in (start for start, *_ in given)
                ]
                text, points = substitute(Source("", text), values, [*named, *given])
            origin, tokens = Origin(tuple(points)).within(start), None
        source = Source(written.source.name, text)
        statement = parse_text(source, origin, tokens, in_test=in_test, translation=translation)
        if psqls and not statement.read_as:
            own = edited(written.text, own_edits(psqls, values)).text
            return replace(statement, read_as=own)
        return statement
    except StreamsqlError as error:
        fault = informing(partial(offered, error, written.text), error)
        raise fault.at(written.source, written.span) from None


def name_of_test(written: Written) -> Name | None:
    """The name of a TEST, read without its body; None for another statement."""
    first, *rest = written.tokens
    if first.upper != "TEST" or not rest or rest[0].kind != "string":
        return None
    return Name(unquote(rest[0]), rest[0].span)


def parse_text(
    source: Source,
    origin: Origin | None = None,
    tokens: list[Token] | None = None,
    *,
    in_test: bool = False,
    translation: Translation | None = None,
) -> Statement:
    """Parse the text of one statement, without `;`. Raises SyntaxFault.

    origin: maps the spans of the statement and of errors to the source. tokens: the tokens of the text, if
    they are known. in_test, translation: as in `parse`.
    """
    origin = origin or Origin()
    whole = Span(0, len(source.text))
    with origin.errors():
        read_tokens = tokens if tokens is not None else tokenize(source.text)
        own = translation(source.text) if translation else None
        statement = own or _read(source, read_tokens, in_test, chosen=translation is not None)
    if isinstance(statement, OwnText):  # the console's own statement in place of one of another console
        inner = origin.behind(statement.points) if statement.points else Origin.of(origin.span(whole))
        read = parse_text(Source(source.name, statement.text), inner)
        return replace(read, read_as=read.read_as or statement.text)
    placed: Statement = located(statement, origin, text=source.text, span=origin.span(whole))
    for doubt in _doubts(placed):
        if doubt.span:
            doubt.span = origin.span(doubt.span)
    return placed


def _doubts(statement: object) -> Iterator[SyntaxFault]:
    """The doubts of a statement and of those inside it."""
    if isinstance(statement, Spark) and statement.doubt:
        yield statement.doubt
    body = getattr(statement, "body", None)
    for inside in body if isinstance(body, tuple) else (body,) if body else ():
        yield from _doubts(inside)


def _read(source: Source, tokens: list[Token], in_test: bool, *, chosen: bool) -> Statement | OwnText:
    """The statement, or the text of the console's own statement for one of another console."""
    if not tokens:
        raise SyntaxFault("the statement is empty", span=Span(0, 1), code="UNKNOWN_STATEMENT")
    check_comment(source.text, tokens)
    check_parameters(source.text, tokens)
    # In a test KILL is a crash; elsewhere it is the word of other consoles for STOP QUERY.
    if not (in_test and tokens[0].upper == "KILL"):
        own = own_statement(source.text, tokens, chosen=chosen)
        if isinstance(own, SyntaxFault):
            return Spark(doubt=own, is_refused=True)
        if own is not None:
            return own
    grammar = load()
    furthest: State | None = None
    example = ""
    for rule in _candidates(*tokens[0][:2]):
        node, state = grammar.match(rule, tokens)
        if node is not None:
            if rule == "Spark":
                return Spark(doubt=_doubt(tokens, furthest))
            statement = bind(STATEMENTS[rule], node, source)
            rest = node.get("Rest")
            if isinstance(statement, StatementWithBody) and rest:
                return replace(statement, body=_explained(source, rest.span, tokens))
            if isinstance(statement, StatementWithBlock) and rest:
                return replace(statement, body=_block(source, tokens[1].span, rest.span, tokens))
            return statement
        if state.committed:
            fault = syntax_fault(state, tokens, grammar.first_example(rule))
            if tokens[0].upper in _SHARED_WITH_SPARK:
                return Spark(doubt=fault)
            raise fault
        if furthest is None or state.furthest > furthest.furthest:
            furthest, example = state, grammar.first_example(rule)
        elif state.furthest == furthest.furthest:
            furthest.expected.update(state.expected)
    if tokens[0].text in SIGNS:
        raise _short_form(source.text[tokens[0].start :].partition("\n")[0].strip(), tokens[0])
    if tokens[0].upper in QUERY_HEADS:  # such as WITH … DELETE FROM
        return Spark()
    doubt = _ends_early(tokens) or _no_statement(tokens, furthest, example)
    if set(first_words().get(tokens[0].upper, ())) - {"Spark"}:  # a word that only the console has
        raise doubt
    return Spark(doubt=doubt)


_SHARED_WITH_SPARK = frozenset(("INSERT", "WITH", "FROM", "DESCRIBE", "DESC"))
"""The first words of statements of the console that may be statements of Spark from their second word on."""


def _doubt(tokens: list[Token], furthest: State | None) -> SyntaxFault | None:
    """Why a statement that begins as one of Spark may be a misspelt one of the console; None if nothing is
    wrong with it. furthest: how far it matches a rule of the console.
    """
    fault = _misspelt_second_word(tokens) or _ends_early(tokens)
    if fault is None and furthest is not None and wants_name(furthest, tokens):
        return syntax_fault(furthest, tokens)
    return fault


def _explained(source: Source, place: Span, tokens: list[Token]) -> Statement:
    """The statement behind EXPLAIN, or EXPECT ERROR … FROM."""
    behind = [t for t in tokens if t.start >= place.start]
    if behind[0].upper in ("EXPLAIN", "EXPECT", "TEST") and tokens[0].upper in ("EXPLAIN", behind[0].upper):
        raise SyntaxFault(
            f"{tokens[0].upper} takes no {behind[0].upper}", hint="leave one of them out", span=place
        )
    return _inner(source, behind)


def _inner(source: Source, tokens: list[Token], *, in_test: bool = False) -> Statement:
    """A statement inside another one, of which these are the tokens."""
    start, end = tokens[0].start, tokens[-1].end
    own = [t.behind(start) for t in tokens]
    text = Source(source.name, source.text[start:end])
    return parse_text(text, Origin(((0, start),)), own, in_test=in_test)


def _block(source: Source, name: Span, place: Span, tokens: list[Token]) -> tuple[Statement, ...]:
    """The statements between BEGIN and END TEST. Raises SyntaxFault."""
    inside = [t for t in tokens if t.start >= place.start]
    if len(inside) < 2 or [t.upper for t in inside[-2:]] != ["END", "TEST"]:
        raise SyntaxFault(
            "the TEST is not closed", hint="end it with END TEST;", span=name, code="UNCLOSED_TEST"
        )
    pieces = list(split(inside[:-2]))
    if not pieces:
        raise SyntaxFault(
            "the TEST has no statements", hint="GIVEN stream VALUES (…); EXPECT table VALUES (…);", span=name
        )
    for piece in pieces:
        if piece.tokens[0].upper == "TEST":
            raise SyntaxFault(
                "a TEST cannot contain another one",
                hint="END TEST; closes the first",
                span=piece.tokens[0].span,
            )
    return tuple(_inner(source, piece.tokens, in_test=True) for piece in pieces)


def matched(tokens: list[Token]) -> tuple[str, Node] | None:
    """The rule that the tokens of a statement match, and its node; None if they match none."""
    for rule in _candidates(*tokens[0][:2]):
        node, _ = load().match(rule, tokens)
        if node is not None:
            return rule, node
    return None


@lru_cache(maxsize=256)
def _candidates(kind: str, text: str) -> list[str]:
    """The rules that a statement with such a first token may match."""
    firsts = first_words()
    rules = list(firsts.get(text.upper(), []))
    if text == "(" or kind == "word":
        queries = (*firsts.get("QueryStart", ()), *firsts.get("Query", ()))
        rules += [r for r in queries if r not in rules]
    # The console's own statements come before those of Spark.
    return sorted(rules, key=lambda rule: rule == "Spark")


def _no_statement(tokens: list[Token], furthest: State | None, example: str) -> SyntaxFault:
    """The error for a text that matches no rule, and that Spark does not take either. example: a statement of
    the rule that matched furthest.
    """
    first = tokens[0]
    heads = [w for w in first_words() if w.isalpha() and w.isupper()] + ["SELECT", "WITH", "FROM", "VALUES"]
    if first.upper in heads and furthest is not None:
        return syntax_fault(furthest, tokens, example)
    like = nearest(first.text, heads, 0.75) if first.kind == "word" else None
    words = " ".join(token.text.casefold() for token in tokens)
    of_word = [name for name in topics() if name.split()[0] == first.text.casefold()]
    names = [name for name in of_word if name == words] or of_word
    hint = f"did you mean {like}?" if like else "HELP; lists the statements"
    if names:
        listed = " ".join(f"HELP {name};" for name in names)
        hint = f"{listed} {'is a topic' if len(names) == 1 else 'are topics'}"
    return SyntaxFault(
        f"there is no statement {first.text}",
        hint=hint,
        proposal=f"HELP {names[0]};" if len(names) == 1 else "",
        span=first.span,
        code="UNKNOWN_STATEMENT",
    )


def _short_form(line: str, first: Token) -> SyntaxFault:
    """The error for a command of the prompt in a script. hint: the statement that it stands for."""
    try:
        statement = expand(line, Preferences())
    except InputFault as error:
        return SyntaxFault(error.message, hint=error.hint, span=first.span, code=error.code)
    is_statement = statement is not None and not statement.startswith(SIGNS)
    return SyntaxFault(
        f"{line.split()[0].rstrip(';')} is a command of the prompt, not a statement of a script",
        hint=statement or "" if is_statement else "leave it out",
        span=first.span,
        code="UNKNOWN_STATEMENT",
    )


@cache
def _second_words(first: str) -> frozenset[str]:
    """The words after a first word in the console's own statements, except those of Spark's statements."""
    head = tokenize(first)
    words = {w.strip("'") for rule in STATEMENTS if rule != "Spark" for w in load().expected(rule, head)}
    return frozenset(w for w in words if w.isalpha() and w.isupper())


_SHOWN_BY_SPARK = frozenset((
    "ALL", "CATALOGS", "COLLATIONS", "COLUMNS", "CREATE", "CURRENT", "DATABASES", "FUNCTIONS", "NAMESPACES",
    "PARTITIONS", "PROCEDURES", "SCHEMAS", "SYSTEM", "TABLE", "TABLES", "TBLPROPERTIES", "USER", "VIEWS",
))  # fmt: skip
"""The second words of SHOW in Spark's grammar."""


def _misspelt_second_word(tokens: list[Token]) -> SyntaxFault | None:
    """The error for CREATE STRAEM and similar statements: a second word so close to a word of the console is
    a misspelling, and Spark's error for it, as for SHOW of what nobody shows, would be confusing.
    """
    if len(tokens) < 2 or tokens[0].upper not in ("CREATE", "DROP", "SHOW", "DESCRIBE", "DESC"):
        return None
    own = _second_words(tokens[0].upper)
    at = 3 if tokens[1].upper == "OR" and len(tokens) > 3 else 1
    word = tokens[at]
    lists = tokens[0].upper == "SHOW" and len(tokens) == 2
    if word.kind != "word":
        return None
    sparks = word.upper in keywords() and not (lists and f"{word.upper}S" in own)
    like = None if sparks else nearest(word.text, sorted(own | keywords() - {word.upper}))
    if like and like not in own and tokens[0].upper == "SHOW":
        like = _plural(like, own)
    if like and like in own and like != word.upper:
        fact, hint = f"expected {like}, found {word.text}", f"did you mean {like}?"
        return SyntaxFault(fact, hint=hint, span=word.span, code="UNKNOWN_STATEMENT")
    shown = own | _SHOWN_BY_SPARK
    named = len(tokens) == 2 and word.upper not in keywords()
    if tokens[0].upper != "SHOW" or word.upper in shown or named:
        return None
    several = _plural(word.upper, shown)
    otherwise = "HELP SHOW; lists what it shows, SET; shows the settings"
    return SyntaxFault(
        f"there is no statement SHOW {word.text}",
        hint=f"did you mean {several}?" if several else otherwise,
        span=word.span,
        code="UNKNOWN_STATEMENT",
    )


def _plural(word: str, words: Container[str]) -> str:
    """The plural of a word, if it is one of these; else ""."""
    return next((several for several in (f"{word}S", f"{word[:-1]}IES") if several in words), "")


_BEFORE_NAME = frozenset(("FROM", "FUNCTION", "INTO", "SINK", "SOURCE", "STREAM", "TABLE", "UPDATE", "VIEW"))


def _ends_early(tokens: list[Token]) -> SyntaxFault | None:
    """The error for a statement of Spark that ends where its second word or a name must follow."""
    first, last = tokens[0].upper, tokens[-1].upper
    if first in ("DESC", "DESCRIBE", "SHOW") or len(tokens) > 2:
        return None
    expected = ""
    if len(tokens) == 1 and first in SECOND_WORDS:
        listed = sorted({*SECOND_WORDS[first], *_second_words(first)})
        expected = " or ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
    elif last in _BEFORE_NAME and first in (*SECOND_WORDS, "UPDATE"):
        kind = {"FROM": "table", "INTO": "table", "UPDATE": "table"}.get(last, last.casefold())
        expected = f"the name of a {kind}"
    end = tokens[-1].end
    early = f"the statement ends too early: expected {expected}"
    return SyntaxFault(early, span=Span(end - 1, end)) if expected else None


def parse_script(source: Source, variables: dict[str, str] | None = None) -> Iterator[Statement]:
    """The statements of a script, parsed one after the other."""
    for written in split_script(source):
        yield parse(written, variables)


__all__ = ["STATEMENTS", "Written", "parse", "parse_script", "parse_text", "split_script", "name_of_test"]
