"""Formats a script: see `format_script`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from streamsql.errors import Source, Span, StreamsqlError
from streamsql.features.fmt.atoms import Atom, Comment, atoms_of, comments_of, with_unary
from streamsql.features.fmt.compound_places import begins_compound, read_compound
from streamsql.features.fmt.documents import SPACE, Doc, Line, printed
from streamsql.features.fmt.keyword_places import PlaceReader, Places
from streamsql.features.fmt.statement_layout import statement_doc
from streamsql.language.grammar import Node
from streamsql.language.origin import Origin
from streamsql.language.parser import matched, parse_text
from streamsql.language.query import read_query
from streamsql.language.tokens import Token, scan, split, tokenize

_COMMAND = re.compile(r"^[ \t]*\\.*$", re.MULTILINE)
_OPTIONS = ("OPTIONS", "TBLPROPERTIES")
_VARIABLE = re.compile(r"\$\{[^{}'\"`\n]*\}")


def format_script(source: Source) -> str:
    """The text of a script with its clauses on lines and its keywords in upper case; all tokens, comments,
    variables and backslash commands are those of the source. Raises StreamsqlError, placed in the source, for
    a statement that cannot be parsed.
    """
    if not source.text.strip():
        return ""
    parts: list[str] = []
    for start, end, is_command in _pieces(source.text):
        text = source.text[start:end]
        parts.append(text.strip() if is_command else _formatted(source, text, start))
        blank = bool(re.search(r"\n[ \t]*\n[ \t]*$", text))
        parts.append("\n\n" if blank else "\n")
    out = re.sub(r"^\n+", "", "".join(p for p in _without_empty(parts)))
    out = out.rstrip("\n") + "\n" if out.strip() else ""
    _check_unchanged(source, out)
    return out


def _without_empty(parts: list[str]) -> Iterator[str]:
    for text, end in zip(parts[::2], parts[1::2], strict=True):
        if text:
            yield from (text, end)


def _pieces(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether it is a backslash command) of the parts of a script, in order."""
    start = 0
    for line in _COMMAND.finditer(text):
        if line.start() < start:
            continue
        tokens, opened, _ = scan(text[start : line.start()])
        if opened not in ("", "--") or (tokens and tokens[-1].text != ";"):
            continue
        if line.start() > start:
            yield start, line.start(), False
        yield line.start(), min(line.end() + 1, len(text)), True
        start = min(line.end() + 1, len(text))
    if start < len(text):
        yield start, len(text), False


def _formatted(source: Source, text: str, shift: int) -> str:
    """The statements of a text that begins at an offset of the source."""
    part = _Part(source, text, _masked(text), shift)
    try:
        with Origin(((0, shift),)).errors():
            tokens = tokenize(part.masked)
    except StreamsqlError as error:
        raise error.at(source) from None
    docs: list[Doc] = []
    behind = 0
    pending: tuple[Comment, ...] = ()
    for piece, end in _statements(tokens):
        first, last = next(t for t in (*piece[:1], end) if t), end or piece[-1]
        after, before, lines = comments_of(part.masked[behind : first.start])
        docs += _between(pending + after, before, lines, first=behind == 0)
        behind = last.end
        doc, pending = part.statement(piece, end)
        docs.append(doc)
    after, before, _ = comments_of(part.masked[behind:])
    docs += _between(pending + after, before, 1, first=behind == 0)
    return printed(docs).rstrip("\n")


def _masked(text: str) -> str:
    """The text with a name in place of each ${name} outside quotes, so that it can be parsed."""
    parts, behind = [], 0
    for token in scan(text)[0]:
        named = _VARIABLE.match(text, token.start) if token.text == "$" else None
        if named and token.start >= behind:
            parts += [text[behind : token.start], "v" * (named.end() - token.start)]
            behind = named.end()
    return "".join([*parts, text[behind:]])


def _statements(tokens: Sequence[Token]) -> Iterator[tuple[list[Token], Token | None]]:
    """The tokens of each statement, and the `;` that ends it; a `;` without a statement, too."""
    pieces = list(split(list(tokens)))
    inside = {(t.start, t.end) for piece in pieces for t in piece.tokens}
    ends = [t for t in tokens if (t.start, t.end) not in inside]
    for piece in pieces:
        while ends and ends[0].start < piece.tokens[0].start:
            yield [], ends.pop(0)
        yield piece.tokens, ends.pop(0) if piece.closed else None
    for end in ends:
        yield [], end


def _between(
    after: Sequence[Comment], before: Sequence[Comment], lines: int, *, first: bool
) -> Iterator[Doc]:
    """The comments and line breaks between two statements."""
    if first:
        before, after = (*(c._replace(own_line=True) for c in after), *before), ()
    for comment in after:
        yield [SPACE, comment.text]
    for number, comment in enumerate(before):
        yield Line(hard=True, blank=comment.blank and not (first and number == 0))
        yield comment.text
    yield Line(hard=True, blank=lines > 1)


@dataclass(frozen=True)
class _Part:
    """A text that begins at an offset of the source. masked: see _masked; all places refer to the text."""

    source: Source
    text: str
    masked: str
    shift: int

    def statement(self, tokens: list[Token], end: Token | None) -> tuple[Doc, tuple[Comment, ...]]:
        """The document of a statement with its `;`, and the comments that were before the `;`."""
        if not tokens:
            return ";", ()
        stop = tokens[-1].end
        after, before, _ = comments_of(self.masked[stop : end.start] if end else "")
        places, closing = Places(), ";" if end else ""
        if not self.read(tokens, places):
            return [self.text[tokens[0].start : stop], closing], (*after, *before)
        atoms = _marked(atoms_of(self.masked, tokens, self.text), places, self.text)
        return [statement_doc(atoms, places), closing], (*after, *before)

    def read(self, tokens: Sequence[Token], places: Places, *, in_test: bool = False) -> bool:
        """Add the places of a statement; False for one that is kept as written. Raises StreamsqlError."""
        start, end = tokens[0].start, tokens[-1].end
        origin = Origin(((0, self.shift + start),))
        try:
            parse_text(Source(self.source.name, self.masked[start:end]), origin, in_test=in_test)
            match = matched(list(tokens))
            if match and match[0] != "Spark":
                self._check_queries(match[1])
        except StreamsqlError as error:
            if "${" not in self.text[start:end]:
                raise error.at(self.source, origin.span(Span(0, end - start))) from None
            match = matched(list(tokens))
        if match is None:
            return False
        rule, node = match
        reader, outer = PlaceReader(self.masked, tokens, places), len(places.nested)
        if begins_compound(tokens):
            rule = "Compound"
            if not read_compound(reader):
                return False
        elif rule != "Spark":
            reader.read(node)
        elif (tokens[0].upper != "CREATE" and "\n" in self.text[start:end]) or not reader.query(tokens):
            return False
        else:
            _add_heads(places, tokens)
        for place in places.nested[outer:]:
            self._nested(tokens, place, places, rule)
        return True

    def _check_queries(self, node: Node) -> None:
        """Raise StreamsqlError for a parenthesis of a query that is not closed."""
        for part in node.walk():
            if part.name == "Query":
                with Origin(((0, self.shift + part.span.start),)).errors():
                    read_query(self.masked[part.span.start : part.span.end])

    def _nested(self, tokens: Sequence[Token], place: tuple[int, int], places: Places, rule: str) -> None:
        """Add the places of the statement after EXPLAIN, or of one of a TEST, or of a compound statement,
        where those that cannot be parsed are kept as written.
        """
        start, end = place
        of_spark = rule == "Compound"
        if not of_spark and any(start < query < end for query, _ in places.queries):
            return  # an INSERT of a statement set
        inside = [t for t in tokens if start <= t.start < end]
        try:
            is_read = self.read(inside, places, in_test=rule == "Test")
        except StreamsqlError:
            if not of_spark:
                raise
            is_read = False
        if not is_read:
            places.pieces.append(place)


def _add_heads(places: Places, tokens: Sequence[Token]) -> None:
    """The clauses and the query of a CREATE statement of Spark; values of its options stay as written."""
    depth, in_options = 0, False
    for at, token in enumerate(tokens):
        before = tokens[at - 1].upper if at else ""
        depth += (token.text == "(") - (token.text == ")")
        in_options = depth > 0 and (in_options or (token.text == "(" and before in _OPTIONS))
        if in_options:
            places.keywords.discard(token.start)
        if depth == 1 and token.text == "(" and tokens[at - 1].start not in places.keywords:
            places.calls.discard(tokens[at - 1].start)
            places.spaced.add(token.start)
        if depth or token.start not in places.keywords:
            continue
        if token.upper in ("SELECT", "WITH", "FROM", "VALUES") and before == "AS":
            places.queries.append((token.start, tokens[-1].end))
            return
        if token.upper in ("USING", "OPTIONS", "COMMENT", "PARTITIONED"):
            places.heads[token.start] = token.upper


def _marked(atoms: list[Atom], places: Places, text: str) -> list[Atom]:
    """The atoms with their keywords, and with pieces that are kept as written."""
    merged: list[Atom] = []
    pieces = {s: e for s, e in places.pieces if e > s}
    until = -1
    for atom in atoms:
        if atom.start < until:
            merged[-1] = replace(merged[-1], after=atom.after)
            continue
        end = pieces.get(atom.start, atom.end)
        if end > atom.end:
            until = end
            atom = replace(atom, kind="raw", text=text[atom.start : end], end=end)
        elif atom.kind == "word" and atom.start in places.keywords:
            atom = replace(atom, text=atom.text.upper(), keyword=True, call=atom.start in places.calls)
        elif atom.start in places.calls:
            atom = replace(atom, call=True)
        if atom.start in places.spaced:
            atom = replace(atom, marks=frozenset(["spaced"]))
        merged.append(atom)
    return list(with_unary(merged))


def _check_unchanged(source: Source, out: str) -> None:
    """Raise StreamsqlError if a token or comment has changed: the script is then left as it is."""
    for (start, end, command), (first, last, other) in zip(_pieces(source.text), _pieces(out), strict=True):
        old, new = source.text[start:end], out[first:last]
        same = old.strip() == new.strip() if command else _content(old) == _content(new)
        if not same or command != other:
            raise StreamsqlError(
                "the script cannot be formatted without a change of its tokens",
                hint="it is left as it is; please report it",
                span=Span(start, max(start + 1, end)),
                code="INTERNAL",
            ).at(source)


def _content(text: str) -> tuple[list[str], list[str]]:
    """The tokens of a text, words in one case, and its comments."""
    tokens = tokenize(text)
    ends = [0, *(t.end for t in tokens)]
    starts = [*(t.start for t in tokens), len(text)]
    comments: list[str] = []
    for end, start in zip(ends, starts, strict=True):
        after, before, _ = comments_of(text[end:start])
        comments += [c.text for c in (*after, *before)]
    return [t.upper if t.kind == "word" else t.text for t in tokens], comments
