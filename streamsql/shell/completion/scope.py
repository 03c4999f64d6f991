"""What a query reads, by its tokens alone: its blocks, their relations, and where the cursor stands.

A query at the prompt is mostly unfinished, so nothing here fails: what is not understood is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamsql.language.terminals import ENDS_EXPRESSION
from streamsql.language.tokens import Token, unquote

QUERY_WORDS = frozenset(("SELECT", "WITH", "FROM"))
_CLAUSES = frozenset(
    """SELECT FROM WHERE GROUP HAVING QUALIFY ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW ON USING
    JOIN UNION EXCEPT INTERSECT MINUS""".split()
)
_SET_OPERATIONS = frozenset(("UNION", "EXCEPT", "INTERSECT", "MINUS"))
_NO_ALIAS = ENDS_EXPRESSION | {"WATERMARK", "WHEN", "SET", "VALUES", "SELECT", "STREAM"}


@dataclass
class Relation:
    """What stands behind FROM or JOIN: a name or a sub-query, its alias, and columns named with it."""

    name: str = ""
    alias: str = ""
    block: Block | None = None
    given: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """What its columns are qualified with."""
        return self.alias or self.name.rpartition(".")[2]


@dataclass
class Block:
    """One SELECT. items: its select list, each item's tokens; clause: the one that was read last."""

    parent: Block | None = None
    ctes: dict[str, Block] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    items: list[list[Token]] = field(default_factory=list)
    clause: str = ""
    expecting: bool = False
    parentheses: int = 0

    def outward(self) -> Iterator[Block]:
        """This block and those around it."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent


@dataclass
class Place:
    """Where the cursor stands: block; clause; whether a relation is due; call: the word before the
    innermost open parenthesis; joined: how many relations were read before the cursor.
    """

    block: Block
    clause: str
    expecting: bool
    call: str
    joined: int


class _Reader:
    def __init__(self, tokens: list[Token], cursor: int) -> None:
        self.tokens = tokens
        self.cursor = cursor
        self.at = 0
        self.calls: list[str] = []
        # `SELECT count(| FROM t`: what is typed now lacks its parenthesis still.
        self.unclosed = sum((t.text == "(") - (t.text == ")") for t in tokens) if cursor >= 0 else 0
        self.place: Place | None = None

    def word(self, ahead: int = 0) -> str:
        """The token so many places ahead in upper case, "" at the end."""
        at = self.at + ahead
        return self.tokens[at].upper if at < len(self.tokens) else ""

    def mark(self, block: Block) -> None:
        if self.at == self.cursor and self.place is None:
            call = self.calls[-1] if self.calls else ""
            self.place = Place(block, block.clause, block.expecting, call, len(block.relations))

    def take(self, block: Block) -> Token:
        self.mark(block)
        token = self.tokens[self.at]
        self.at += 1
        return token

    def query(self, parent: Block | None) -> Block:
        """Read up to the parenthesis that closes the query, or the end. Gives its first SELECT."""
        first = block = Block(parent)
        if self.word() == "WITH":
            self.with_clause(block)
        while self.at < len(self.tokens) and (self.word() != ")" or block.parentheses):
            word = self.word()
            if word == "SELECT" and block.items:
                block = Block(parent, block.ctes)
            self.step(block, word)
        self.mark(block)
        return first

    def with_clause(self, block: Block) -> None:
        self.take(block)
        while self.is_name():
            name = unquote(self.take(block)).casefold()
            if self.word() == "(":
                self.group(block)
            if self.word() == "AS":
                self.take(block)
            if self.word() == "(":
                # A name may be used in the queries behind it only, so it is entered after its own.
                block.ctes[name] = self.nested(block)
            if self.word() != ",":
                return
            self.take(block)

    def nested(self, block: Block) -> Block:
        """A query in parentheses."""
        self.take(block)
        self.calls.append("")
        inner = self.query(block)
        self.calls.pop()
        if self.at < len(self.tokens):
            self.take(block)
        return inner

    def group(self, block: Block) -> list[Token]:
        """Tokens in parentheses, with queries inside them read as such."""
        start = self.at
        self.calls.append(self.tokens[start - 1].upper if start else "")
        self.take(block)
        left_open = False
        while self.at < len(self.tokens) and self.word() != ")":
            left_open = (
                self.unclosed > 0 and start < self.cursor <= self.at and self.opens_clause(self.word())
            )
            if left_open:
                self.unclosed -= 1
                break
            if self.word() == "(":
                self.parenthesis(block)
            else:
                self.take(block)
        self.mark(block)
        self.calls.pop()
        if self.at < len(self.tokens) and not left_open:
            self.take(block)
        return self.tokens[start : self.at]

    def parenthesis(self, block: Block) -> None:
        if self.word(1) in QUERY_WORDS:
            self.nested(block)
        else:
            self.group(block)

    def opens_clause(self, word: str) -> bool:
        """Whether the word at hand begins a clause, and is no name or part of an expression."""
        before = self.tokens[self.at - 1].upper if self.at and self.at != self.cursor else ""
        if word not in _CLAUSES or before in (".", "AS") or self.tokens[self.at].kind != "word":
            return False
        if word in ("FROM", "ON") and before == "DISTINCT":
            return False
        if word == "WINDOW":
            return self.word(2) == "AS"
        return not (word == "EXCEPT" and before == "*") and not (word == "GROUP" and before == "WITHIN")

    def step(self, block: Block, word: str) -> None:
        start = self.at
        if self.opens_clause(word):
            self.take(block)
            block.clause = "FROM" if word == "JOIN" else word
            block.expecting = word in ("FROM", "JOIN")
            if word == "SELECT":
                block.items.append([])
            return
        if word == "LATERAL" and self.word(1) == "VIEW":
            self.lateral_view(block)
        elif word == ")":
            self.take(block)
            block.parentheses -= 1
        elif block.expecting:
            self.relation(block)
        elif word == "(":
            self.parenthesis(block)
        else:
            self.take(block)
            block.expecting = word == "," and block.clause == "FROM"
        if block.clause == "SELECT" and block.items:
            if word == ",":
                block.items.append([])
            else:
                block.items[-1] += self.tokens[start : self.at]

    def is_name(self, excluded: frozenset[str] = frozenset()) -> bool:
        if self.at >= len(self.tokens):
            return False
        token = self.tokens[self.at]
        return token.kind == "quoted" or (token.kind == "word" and token.upper not in excluded)

    def relation(self, block: Block) -> None:
        """One relation of a FROM clause, as far as it is written."""
        made = Relation()
        if self.word() == "STREAM" and self.at + 1 == self.cursor:
            self.take(block)  # its name is what is being typed
            return
        wrapped = self.word() in ("STREAM", "TABLE") and self.word(1) == "("
        if self.word() in ("STREAM", "LATERAL", "TABLE") and self.word(1):
            self.take(block)
        if wrapped:
            self.take(block)
        if self.word() == "(" and self.word(1) in QUERY_WORDS:
            made.block = self.nested(block)
        elif self.word() == "(":
            self.take(block)  # (a JOIN b) is read as if it were bare
            block.parentheses += 1
            return
        elif self.word() == "VALUES":
            self.take(block)
            while self.word() == "(" or (self.word() == "," and self.word(1) == "("):
                self.group(block) if self.word() == "(" else self.take(block)
        elif self.is_name():
            made.name = unquote(self.take(block))
            while self.word() == "." and self.at + 1 < len(self.tokens):
                self.take(block)
                made.name += "." + unquote(self.take(block))
            if self.word() == "(":
                self.group(block)
                made.name = ""
        else:
            if self.at < len(self.tokens):
                self.take(block)
            return
        block.expecting = False
        block.relations.append(made)
        if wrapped and self.word() == ")":
            self.take(block)
        if self.word() == "WATERMARK":
            self.watermark(block)
        self.alias(block, made)

    def watermark(self, block: Block) -> None:
        outside, block.clause = block.clause, "WATERMARK"
        self.take(block)
        while self.at < len(self.tokens) and self.word() not in ("DELAY", ")", ",", "WHERE", "JOIN"):
            self.parenthesis(block) if self.word() == "(" else self.take(block)
        while self.word() in ("DELAY", "OF", "INTERVAL"):
            self.take(block)
        while self.at < len(self.tokens) and self.tokens[self.at].kind in ("number", "string"):
            self.take(block)
            if self.word() in _UNITS:
                self.take(block)
        self.mark(block)
        block.clause = outside

    def alias(self, block: Block, made: Relation) -> None:
        if self.word() == "AS":
            self.take(block)
        if self.is_name(_NO_ALIAS):
            made.alias = unquote(self.take(block))
            if self.word() == "(":
                made.given = _names(self.group(block))

    def lateral_view(self, block: Block) -> None:
        for word in ("LATERAL", "VIEW", "OUTER"):
            if self.word() == word:
                self.take(block)
        if self.is_name():
            self.take(block)
        if self.word() == "(":
            self.group(block)
        made = Relation()
        if self.is_name(_NO_ALIAS):
            made.alias = unquote(self.take(block))
        if self.word() == "AS":
            self.take(block)
            names: list[str] = []
            while self.is_name(_NO_ALIAS):
                names.append(unquote(self.take(block)))
                if self.word() == ",":
                    self.take(block)
            made.given = tuple(names)
        block.relations.append(made)


_UNITS = frozenset(
    unit + plural
    for unit in "MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH YEAR".split()
    for plural in ("", "S")
)


def _names(group: list[Token]) -> tuple[str, ...]:
    return tuple(unquote(t) for t in group if t.kind in ("word", "quoted"))


def read_query(tokens: list[Token], cursor: int) -> tuple[Block, Place]:
    """A query's first block, and the place of the cursor that stands before tokens[cursor]."""
    reader = _Reader(tokens, cursor)
    first = reader.query(None)
    while reader.at < len(tokens):  # one parenthesis too many
        reader.at += 1
        reader.query(None)
    return first, reader.place or Place(first, first.clause, first.expecting, "", len(first.relations))
