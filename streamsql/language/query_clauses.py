"""The clauses of a query, each by its parts, to be compared with those of another text and shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from streamsql.errors import Source, Span, StreamsqlError
from streamsql.language.expression import Expression
from streamsql.language.parser import parse, split_script
from streamsql.language.query import Block, Body, Clause, Distinct, Join, Query, Relation, read_query
from streamsql.language.statements.base import Name
from streamsql.language.statements.insert import Insert
from streamsql.language.statements.select import Select
from streamsql.language.tokens import Token, on_one_line, tokenize, unquote
from streamsql.language.unread_query import words_of

WHOLE = "query"
"""The clause that a query is of which the tree does not tell the clauses."""


@dataclass(frozen=True)
class Part:
    """One column, condition, group or join. text: as written, in one line; form: equal for parts that differ
    in case, spaces and comments only.
    """

    text: str = field(compare=False)
    form: str


Clauses = dict[str, list[Part]]


def clauses_of(text: str) -> Clauses:
    """The clauses of a query, or of all INSERTs of a statement set."""
    clauses: Clauses = {}
    try:
        statements = [parse(written, literal=True) for written in split_script(Source("", text))]
        for statement in statements:
            if isinstance(statement, Insert):
                clauses.setdefault("INSERT INTO", []).append(_names(statement.targets))
            if isinstance(statement, (Insert, Select)):
                _ClauseReader(read_query(statement.query.text), clauses).whole()
            else:
                clauses.setdefault(WHOLE, []).append(_plain(statement.text))
    except StreamsqlError:
        return {WHOLE: [_plain(text)]}  # written by another version
    return clauses


def words_in(text: str) -> frozenset[str]:
    """The words and quoted names of a text, folded."""
    return words_of(tokenize(text, strict=False))


def declared(column: str) -> tuple[str, str]:
    """(name, what follows it) of a column as it is declared."""
    name = tokenize(column)[0]
    return unquote(name), column[name.end :].strip()


def _plain(text: str) -> Part:
    flat = " ".join(text.split())
    return Part(flat, flat)


def _names(names: Iterable[Name]) -> Part:
    text = ", ".join(map(str, names))
    return Part(text, text.casefold())


class _ClauseReader:
    """Adds the clauses of a query to those that are there."""

    def __init__(self, query: Query, clauses: Clauses) -> None:
        self.query = query
        self.clauses = clauses

    def whole(self) -> None:
        if self.query.body is None:
            self.add(WHOLE, self.words(Span(0, len(self.query.text))))
        else:
            self.body(self.query.body)

    def add(self, clause: str, *parts: Part) -> None:
        self.clauses.setdefault(clause, []).extend(parts)

    # ---- the parts of a query

    def body(self, body: Body) -> None:
        for cte in body.ctes:
            names = " ".join((cte.name, *cte.columns)).casefold()
            self.add("WITH", self.nested(cte.span, cte.query, names))
        self.term(body.term)
        for tail in body.tails:
            self.add(tail.kind.upper() + (" ALL" if tail.every else ""), self.nested(tail.span, tail.term))
        if body.order_by:
            for key in body.order_by.keys:
                form = self.form(key.expression)
                self.add("ORDER BY", Part(f"{key.expression.text} {key.method}", f"{form} {key.method}"))
        if body.sort_by:
            self.add("SORT BY", self.words(body.sort_by))
        self.condition("LIMIT", body.limit)
        self.condition("OFFSET", body.offset)

    def term(self, term: Block | Body) -> None:
        if isinstance(term, Body):
            self.body(term)
        elif term.other:  # it has clauses that the tree does not tell
            self.add(WHOLE, self.words(term.span))
        else:
            self.block(term)

    def block(self, block: Block) -> None:
        if block.distinct:
            self.add("SELECT", self.distinct(block.distinct))
        for item in block.items:
            names = ", ".join(item.aliases).casefold()
            self.add("SELECT", Part(self.text(item.span), f"{self.form(item.expression)} AS {names}"))
        if block.relation:
            self.add("FROM", self.relation(block.relation))
        self.add("FROM", *map(self.join, block.joins))
        self.add("FROM", *(self.words(view.span) for view in block.views))
        self.condition("WHERE", block.where)
        if block.group_by and block.group_by.other:
            self.add("GROUP BY", self.words(block.group_by.span))
        elif block.group_by:
            for key in block.group_by.keys:
                self.add("GROUP BY", self.listed(key.several, key.expressions))
        self.condition("HAVING", block.having)
        self.condition("QUALIFY", block.qualify)

    def condition(self, name: str, clause: Clause | None) -> None:
        if clause:
            self.add(name, Part(self.text(clause.expression.span), self.form(clause.expression)))

    def distinct(self, distinct: Distinct) -> Part:
        part = self.listed("DISTINCT ON", distinct.on) if distinct.on else Part("DISTINCT", "DISTINCT")
        end = " WITHIN WATERMARK" if distinct.within else ""
        return Part(part.text + end, part.form + end)

    def listed(self, word: str, expressions: Iterable[Expression]) -> Part:
        """Expressions in the parentheses of a word; without both where there is none."""
        texts = ", ".join(self.text(e.span) for e in expressions)
        forms = ", ".join(map(self.form, expressions))
        return Part(f"{word} ({texts})", f"{word} ({forms})") if word else Part(texts, forms)

    def join(self, join: Join) -> Part:
        condition = self.form(join.condition) if join.condition else ", ".join(join.using).casefold()
        kind = f"natural {join.kind}" if join.natural else join.kind
        form = f"{kind} {self.relation(join.relation).form} ON {condition}"
        return Part(self.text(join.span), form)

    def relation(self, relation: Relation) -> Part:
        if relation.query is None:
            written = self.words(relation.span)
            return Part(f"STREAM {written.text}", f"STREAM {written.form}") if relation.stream else written
        # What stands around the sub-query: its alias, a sample, a pivot.
        around = self.words(Span(relation.query.span.end, relation.span.end)).form
        return self.nested(relation.span, relation.query, around)

    # ---- forms and texts

    def nested(self, span: Span, query: Block | Body, around: str = "") -> Part:
        """A query inside of the query, as one part."""
        inner = _ClauseReader(self.query, {})
        inner.term(query)
        form = {clause: [part.form for part in parts] for clause, parts in inner.clauses.items()}
        return Part(self.text(span), f"{form} {around}")

    def form(self, expression: Expression) -> str:
        # The console's own clauses in a sub-query are not in sqlglot's tree.
        return self.words(expression.span).form if expression.has_subquery else expression.normal

    def text(self, span: Span) -> str:
        """What stands there, in one line and without comments."""
        return on_one_line(self.inside(span))

    def words(self, span: Span) -> Part:
        """A part of which the tree tells no more than its place."""
        tokens = self.inside(span)
        form = " ".join(t.text if t.kind == "string" else unquote(t).casefold() for t in tokens)
        return Part(self.text(span), form)

    def inside(self, span: Span) -> list[Token]:
        return [t for t in self.query.tokens if span.start <= t.start and t.end <= span.end]
