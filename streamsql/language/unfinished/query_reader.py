"""A tolerant reader of queries: their blocks, their relations, and the cursor's position.

A query at the prompt is usually unfinished, so a parser would reject it. This reader raises no errors: it
skips text that it does not understand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsql.language.terminals import ENDS_EXPRESSION
from streamsql.language.tokens import Token, tokenize, unquote
from streamsql.language.unfinished.blocks import Block, Place, Relation

_QUERY_HEADS = frozenset(("SELECT", "WITH", "FROM"))
_CLAUSES = frozenset(
    """SELECT FROM WHERE GROUP HAVING QUALIFY ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW ON USING
    JOIN UNION EXCEPT INTERSECT MINUS""".split()
)
_NO_ALIAS = ENDS_EXPRESSION | {"WATERMARK", "WHEN", "SET", "VALUES", "SELECT", "STREAM"}
_UNITS = frozenset(
    unit + plural
    for unit in "MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH YEAR".split()
    for plural in ("", "S")
)


def read_query(tokens: list[Token], cursor: int = -1) -> tuple[Block, Place]:
    """A query's first block, and the place of the cursor, which is before tokens[cursor]."""
    reader = _Reader(tokens, cursor)
    first = reader.query(None)
    while reader.at < len(tokens):  # one parenthesis too many
        reader.at += 1
        reader.query(None)
    return first.block, reader.place or first.place("")


def read_unfinished(text: str) -> Block:
    """The first block of a query."""
    return read_query(tokenize(text, strict=False))[0]


@dataclass
class _OpenBlock:
    """A block while it is read. items: the tokens of each item of its select list; clause: the last clause;
    parentheses: the number of open parentheses around relations.
    """

    block: Block
    items: list[list[Token]] = field(default_factory=list)
    clause: str = ""
    expects_relation: bool = False
    parentheses: int = 0

    def place(self, call: str) -> Place:
        return Place(self.block, self.clause, self.expects_relation, call, len(self.block.relations))

    def finish(self) -> None:
        """Set the block's select list."""
        self.block.items = [" ".join(t.text for t in tokens) for tokens in self.items if tokens]
        self.block.selects = bool(self.items)
        self.block.names_window = any(t.upper == "WINDOW" for tokens in self.items for t in tokens)


class _Reader:
    """One pass over the tokens. cursor: the index of the token after the cursor, -1 for none."""

    def __init__(self, tokens: list[Token], cursor: int) -> None:
        self.tokens = tokens
        self.cursor = cursor
        self.at = 0
        self.calls: list[str] = []
        # `SELECT count(| FROM t`: the closing parenthesis is not typed yet.
        self.unclosed = sum((t.text == "(") - (t.text == ")") for t in tokens) if cursor >= 0 else 0
        self.place: Place | None = None

    # ---- tokens ---------------------------------------------------------------------------

    def ended(self) -> bool:
        return self.at >= len(self.tokens)

    def word(self, ahead: int = 0) -> str:
        """The token that many positions ahead, in upper case; "" at the end."""
        at = self.at + ahead
        return self.tokens[at].upper if at < len(self.tokens) else ""

    def is_name(self, excluded: frozenset[str] = frozenset()) -> bool:
        if self.ended():
            return False
        token = self.tokens[self.at]
        return token.kind == "quoted" or (token.kind == "word" and token.upper not in excluded)

    def mark(self, open_block: _OpenBlock) -> None:
        """Store the place if the cursor is here."""
        if self.at == self.cursor and self.place is None:
            self.place = open_block.place(self.calls[-1] if self.calls else "")

    def take(self, open_block: _OpenBlock) -> Token:
        self.mark(open_block)
        token = self.tokens[self.at]
        self.at += 1
        return token

    def take_words(self, open_block: _OpenBlock, *words: str) -> None:
        """Take each of these words if it is the next token, in this order."""
        for word in words:
            if self.word() == word:
                self.take(open_block)

    # ---- queries --------------------------------------------------------------------------

    def query(self, parent: Block | None) -> _OpenBlock:
        """Read up to the closing parenthesis of the query, or the end. Returns its first SELECT."""
        first = current = _OpenBlock(Block(parent))
        if self.word() == "WITH":
            self.with_clause(current)
        while not self.ended() and (self.word() != ")" or current.parentheses):
            word = self.word()
            if word == "SELECT" and current.items:
                current.finish()
                current = _OpenBlock(Block(parent, current.block.ctes))
            self.step(current, word)
        self.mark(current)
        current.finish()
        return first

    def with_clause(self, current: _OpenBlock) -> None:
        self.take(current)
        while self.is_name():
            name = unquote(self.take(current)).casefold()
            if self.word() == "(":
                self.group(current)
            self.take_words(current, "AS")
            if self.word() == "(":
                # Only later queries can use a name, so it is added after its own query.
                current.block.ctes[name] = self.nested(current)
            if self.word() != ",":
                return
            self.take(current)

    def nested(self, current: _OpenBlock) -> Block:
        """A query in parentheses."""
        self.take(current)
        self.calls.append("")
        inner = self.query(current.block)
        self.calls.pop()
        if not self.ended():
            self.take(current)
        return inner.block

    def parenthesis(self, current: _OpenBlock) -> None:
        if self.word(1) in _QUERY_HEADS:
            self.nested(current)
        else:
            self.group(current)

    def group(self, current: _OpenBlock) -> list[Token]:
        """The tokens in parentheses; queries among them are read as queries."""
        start = self.at
        self.calls.append(self.tokens[start - 1].upper if start else "")
        self.take(current)
        left_open = False
        while not self.ended() and self.word() != ")":
            behind_cursor = start < self.cursor <= self.at
            left_open = self.unclosed > 0 and behind_cursor and self.opens_clause(self.word())
            if left_open:
                self.unclosed -= 1
                break
            if self.word() == "(":
                self.parenthesis(current)
            else:
                self.take(current)
        self.mark(current)
        self.calls.pop()
        if not self.ended() and not left_open:
            self.take(current)
        return self.tokens[start : self.at]

    def opens_clause(self, word: str) -> bool:
        """Whether the next word starts a clause, and is not a name or part of an expression."""
        before = self.tokens[self.at - 1].upper if self.at and self.at != self.cursor else ""
        if word not in _CLAUSES or before in (".", "AS") or self.tokens[self.at].kind != "word":
            return False
        if word in ("FROM", "ON") and before == "DISTINCT":
            return False
        if word == "WINDOW":
            return self.word(2) == "AS"
        return not (word == "EXCEPT" and before == "*") and not (word == "GROUP" and before == "WITHIN")

    def step(self, current: _OpenBlock, word: str) -> None:
        """Read one token, one relation or one parenthesis of a block."""
        start = self.at
        if self.opens_clause(word):
            self.take(current)
            current.clause = "FROM" if word == "JOIN" else word
            current.expects_relation = word in ("FROM", "JOIN")
            if word == "SELECT":
                current.items.append([])
            return
        if word == "LATERAL" and self.word(1) == "VIEW":
            self.lateral_view(current)
        elif word == ")":
            self.take(current)
            current.parentheses -= 1
        elif current.expects_relation:
            self.relation(current)
        elif word == "(":
            self.parenthesis(current)
        else:
            self.take(current)
            current.expects_relation = word == "," and current.clause == "FROM"
        if current.clause == "SELECT" and current.items:
            if word == ",":
                current.items.append([])
            else:
                current.items[-1] += self.tokens[start : self.at]

    # ---- relations ------------------------------------------------------------------------

    def relation(self, current: _OpenBlock) -> None:
        """Read one relation of a FROM clause, as far as it is written."""
        if self.word() == "STREAM" and self.at + 1 == self.cursor:
            self.take(current)  # its name is the unfinished word
            return
        wrapped = self.word() in ("STREAM", "TABLE") and self.word(1) == "("
        if self.word() in ("STREAM", "LATERAL", "TABLE") and self.word(1):
            self.take(current)
        if wrapped:
            self.take(current)
        relation = self.relation_body(current)
        if relation is None:
            return
        current.expects_relation = False
        current.block.relations.append(relation)
        if wrapped:
            self.take_words(current, ")")
        if self.word() == "WATERMARK":
            self.watermark(current)
        self.alias(current, relation)

    def relation_body(self, current: _OpenBlock) -> Relation | None:
        """Read a relation without its alias; None if there is none, then one token is skipped."""
        relation = Relation()
        if self.word() == "(" and self.word(1) in _QUERY_HEADS:
            relation.block = self.nested(current)
        elif self.word() == "(":
            self.take(current)  # (a JOIN b) is read like a JOIN b
            current.parentheses += 1
            return None
        elif self.word() == "VALUES":
            self.take(current)
            while self.word() == "(" or (self.word() == "," and self.word(1) == "("):
                self.group(current) if self.word() == "(" else self.take(current)
        elif self.is_name():
            relation.name = self.dotted_name(current)
            if self.word() == "(":
                self.group(current)
                relation.name = ""
        else:
            if not self.ended():
                self.take(current)
            return None
        return relation

    def dotted_name(self, current: _OpenBlock) -> str:
        name = unquote(self.take(current))
        while self.word() == "." and self.at + 1 < len(self.tokens):
            self.take(current)
            name += "." + unquote(self.take(current))
        return name

    def watermark(self, current: _OpenBlock) -> None:
        outside, current.clause = current.clause, "WATERMARK"
        self.take(current)
        while not self.ended() and self.word() not in ("DELAY", ")", ",", "WHERE", "JOIN"):
            self.parenthesis(current) if self.word() == "(" else self.take(current)
        while self.word() in ("DELAY", "OF", "INTERVAL"):
            self.take(current)
        while not self.ended() and self.tokens[self.at].kind in ("number", "string"):
            self.take(current)
            if self.word() in _UNITS:
                self.take(current)
        self.mark(current)
        current.clause = outside

    def alias(self, current: _OpenBlock, relation: Relation) -> None:
        self.take_words(current, "AS")
        if self.is_name(_NO_ALIAS):
            relation.alias = unquote(self.take(current))
            if self.word() == "(":
                names = (t for t in self.group(current) if t.kind in ("word", "quoted"))
                relation.column_names = tuple(unquote(t) for t in names)

    def lateral_view(self, current: _OpenBlock) -> None:
        self.take_words(current, "LATERAL", "VIEW", "OUTER")
        if self.is_name():
            self.take(current)
        if self.word() == "(":
            self.group(current)
        relation = Relation()
        if self.is_name(_NO_ALIAS):
            relation.alias = unquote(self.take(current))
        if self.word() == "AS":
            self.take(current)
            names: list[str] = []
            while self.is_name(_NO_ALIAS):
                names.append(unquote(self.take(current)))
                self.take_words(current, ",")
            relation.column_names = tuple(names)
        current.block.relations.append(relation)
