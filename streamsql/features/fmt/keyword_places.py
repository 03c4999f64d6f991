"""Which words of a statement are keywords: by the grammar's match, and by sqlglot's tree of a query.

A name can be spelled like a keyword (`date`, `window`, `end`), so that the place of a word decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streamsql.errors import StreamsqlError
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.console_clauses import cut
from streamsql.language.dialect import parse_tokens
from streamsql.language.grammar import Node
from streamsql.language.statements.base import SIMPLE_TYPES
from streamsql.language.tokens import NOT_A_NAME, Token, split, tokenize

# Words of queries and of Spark's statements that are keywords where they are not names.
_KEYWORDS = frozenset(
    """ADD ALL ALTER AND ANTI ANY AS ASC BETWEEN BY CASE CASCADE CLUSTER COLUMN COMMENT CREATE CROSS CUBE
    CURRENT DATABASE DEFAULT DELAY DELETE DESC DESCRIBE DISTINCT DISTRIBUTE DIV DROP ELSE END ESCAPE
    EXCEPT EXISTS EXPLAIN FALSE FILTER FIRST FOLLOWING FOR FROM FULL FUNCTION GLOBAL GROUP GROUPING
    HAVING IF ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAST LATERAL LEFT LIKE LIMIT
    MATCHED MERGE MINUS NATURAL NOT NULL NULLS OF OFFSET ON OPTIONS OR ORDER OUTER OVER OVERWRITE
    PARTITION PARTITIONED PIVOT PRECEDING QUALIFY RANGE RECURSIVE REPLACE RETURN RETURNS RIGHT RLIKE ROLLUP
    ROW ROWS SELECT SEMI SET SETS SHOW SORT STREAM TABLE TABLESAMPLE TEMPORARY THEN TO TRUE TRUNCATE
    UNBOUNDED UNION UNPIVOT UPDATE USE USING VALUES VIEW WATERMARK WHEN WHERE WINDOW WITH WITHIN""".split()
)
# Those that a parenthesis may follow; other words before one are functions.
_BEFORE_PAREN = frozenset(
    """ALL AND ANY AS BETWEEN BY CASE CUBE DISTINCT ELSE EXCEPT EXISTS FILTER FROM GROUP HAVING IN
    INTERSECT JOIN LATERAL LIKE MINUS NOT ON OPTIONS OR OVER PIVOT ROLLUP SELECT SET SETS
    TABLESAMPLE THEN UNION UNPIVOT USING VALUES WHEN WHERE WITH""".split()
)
# Keywords in a query that sqlglot cannot read: those that are hardly ever names, at most places.
_SURE = NOT_A_NAME | frozenset("BY AND OR NOT NULL CASE WHEN THEN ELSE IN LIKE BETWEEN DISTINCT".split())
_UNITS = frozenset(
    word + plural
    for word in "MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH YEAR".split()
    for plural in ("", "S")
)


@dataclass
class Places:
    """Starts of words in a statement. keywords: of keywords; calls: of functions that are called; pieces:
    (start, end) of what is kept as written; queries: (start, end) of queries.

    spaced: starts of parentheses with a blank before them; heads: starts of the clauses of a statement, with
    the name of the clause; nested: (start, end) of statements in a statement.

    compounds: starts of compound statements; lines: of the lines in these, with their depth.
    """

    keywords: set[int] = field(default_factory=set)
    calls: set[int] = field(default_factory=set)
    pieces: list[tuple[int, int]] = field(default_factory=list)
    queries: list[tuple[int, int]] = field(default_factory=list)
    spaced: set[int] = field(default_factory=set)
    heads: dict[int, str] = field(default_factory=dict)
    nested: list[tuple[int, int]] = field(default_factory=list)
    compounds: set[int] = field(default_factory=set)
    lines: dict[int, int] = field(default_factory=dict)


_SPACED = frozenset(["ColumnDefs", "Options", "Key", "PartitionedBy", "ColumnNames", "Chart"])
_TREES = frozenset(["Query", "QueryStart", "Expression", "Condition", "LoopQuery"])
CLAUSES = frozenset(
    """Options OnMalformed Watermark Comment OutputMode Trigger Checkpoint Restart Begins Retain PartitionedBy
    AsQuery Format Key""".split()
)


class PlaceReader:
    """Adds the places of a statement, with these tokens of a text, from the grammar's match of it."""

    def __init__(self, text: str, tokens: Sequence[Token], places: Places) -> None:
        self.text = text
        self.tokens = tokens
        self.places = places

    def read(self, node: Node, parent: str = "") -> None:
        """Take over the places of a node and its parts."""
        places, start = self.places, node.span.start
        if not node.parts and node.name.isupper():
            if node.name.isalpha():
                places.keywords.add(start)
            if node.name in ("USING", "RETURNS"):
                places.heads[start] = node.name
        elif node.name in _TREES:
            self._tree(node)
        elif node.name == "TypeName":
            if node.value.upper() in SIMPLE_TYPES:
                places.keywords.add(start)
            places.calls.add(start)
        elif node.name == "Rest":
            if parent in ("Explain", "ExpectError"):
                places.nested.append((start, node.span.end))
            elif parent == "Test":
                self._body(self._inside(start, node.span.end))
            else:
                places.pieces.append((start, node.span.end))
        elif node.name == "Inner":
            places.nested.append((start, node.span.end))
        elif node.name == "Declared":
            pass  # see compound_places.py
        elif not node.parts and node.span.start < node.span.end:
            places.pieces.append((start, node.span.end))
        self._clause(node)
        for part in node.parts:
            self.read(part, node.name)

    def _clause(self, node: Node) -> None:
        if node.name in CLAUSES:
            self.places.heads[node.span.start] = node.name
        if node.name == "SetInsert":
            self.places.nested.append((node.span.start, node.span.end))
        if node.name in _SPACED:
            inside = self._inside(node.span.start, node.span.end)
            self.places.spaced.update(t.start for t in inside[:3] if t.text == "(")

    def _body(self, tokens: list[Token]) -> None:
        """The statements of a TEST, and the words that close it."""
        self.places.keywords.update(t.start for t in tokens[-2:])
        for piece in split(tokens[:-2]):
            self.places.nested.append((piece.tokens[0].start, piece.tokens[-1].end))

    def _inside(self, start: int, end: int) -> list[Token]:
        return [t for t in self.tokens if start <= t.start and t.end <= end]

    def _tree(self, node: Node) -> None:
        tokens = self._inside(node.span.start, node.span.end)
        if node.name in ("Query", "LoopQuery"):
            self.places.queries.append((node.span.start, node.span.end))
            self.query(tokens)
        elif node.name == "QueryStart":
            self.query(tokens)
        else:
            self.expression(node.span.start, node.span.end)

    def expression(self, start: int, end: int) -> None:
        """Take over the places of an expression."""
        text = "SELECT ".rjust(start) + self.text[start:end]
        reader = PlaceReader(text, tokenize(text), Places())
        reader.query(reader.tokens)
        self.places.keywords |= {place for place in reader.places.keywords if place >= start}
        self.places.calls |= reader.places.calls

    def query(self, tokens: Sequence[Token]) -> bool:
        """Take over the places of a query, or of a statement of Spark; False if sqlglot cannot read it."""
        try:
            out = cut(list(tokens))
            tree, _ = parse_tokens([part for token in out.remaining for part in token.parts], self.text)
        except (StreamsqlError, RecursionError):
            self._unread(tokens)
            return False
        for node in out.watermarks.values():
            self.read(node)
        for own in out.own.values():
            self.read(own.node)
        self.places.keywords.update(span.start for span in out.streams.values())
        within = {span.end for span in out.within.values()}
        if tree is None or type(tree).__name__ == "Command":
            self._unread(out.remaining)
            return False
        owned = [own.span for own in out.own.values()]
        starts = {t.start for t in out.remaining}
        for at, token in enumerate(tokens):
            if token.end in within:
                self.places.keywords |= {token.start, tokens[at - 1].start}
        outside = [
            t for t in tokens if t.start in starts or not any(s.start <= t.start < s.end for s in owned)
        ]
        self._words(outside, starts, names_of(tree))
        return True

    def _words(self, tokens: Sequence[Token], starts: set[int], names: set[int]) -> None:
        for at, token in enumerate(tokens):
            if token.kind != "word" or token.start not in starts:
                continue
            before = tokens[at - 1] if at else None
            after = tokens[at + 1] if at + 1 < len(tokens) else None
            called = after is not None and after.text == "("
            if before is not None and before.text == ".":
                is_keyword = False
            elif called and (token.upper not in _BEFORE_PAREN or token.start in names):
                self.places.calls.add(token.start)
                is_keyword = False
            else:
                is_keyword = token.start not in names and _is_keyword(tokens, at)
            if is_keyword:
                self.places.keywords.add(token.start)

    def _unread(self, tokens: Sequence[Token]) -> None:
        for before, token in zip([None, *tokens], tokens, strict=False):
            named = before is not None and (before.text == "." or before.upper == "AS")
            sure = token.upper in _SURE and (not named or token.upper == "SELECT")
            if token.kind == "word" and (sure or before is not None and _follows(before, token)):
                self.places.keywords.add(token.start)


def _is_keyword(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word that is no name is a keyword, a unit of an interval, or the type of a literal."""
    token = tokens[at]
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    before = tokens[at - 1] if at else None
    if token.upper in _KEYWORDS or before is not None and _follows(before, token):
        return True
    if token.upper in _UNITS and before is not None:
        unit = before.kind in ("number", "string") and at > 1
        return unit and any(t.upper == "INTERVAL" for t in tokens[max(0, at - 9) : at])
    if token.upper not in SIMPLE_TYPES:
        return False
    if before is not None and before.kind in ("word", "quoted") and at > 1 and tokens[at - 2].text in "(,":
        return True  # the type of a column or parameter
    literal = after is not None and after.kind == "string" and token.upper.startswith(("DATE", "TIMESTAMP"))
    return literal or (before is not None and before.upper in ("AS", "RETURNS"))


def _follows(before: Token, token: Token) -> bool:
    """Whether a word is a keyword because of the token before it: the operator of a SQL pipe, or ALL."""
    return before.text == "|>" or (token.upper == "ALL" and before.upper in ("UNION", "EXCEPT", "INTERSECT"))


def names_of(tree: Any) -> set[int]:
    """The starts of the names in a tree of sqlglot, without those that it gives to the steps of a pipe."""
    return {
        node.meta["start"]
        for node in tree.find_all(exp.Identifier)
        if node._meta and "start" in node.meta and not node.name.startswith("__tmp")
    }
