"""Cuts the console's own clauses out of the tokens of a query, so that sqlglot can read the rest.

These clauses are STREAM before a relation, WATERMARK … DELAY OF after a relation, and WITHIN WATERMARK after
DISTINCT. A console relation (a window table, the state of a query, a call of a stateful processor, a PIVOT
without IN) is replaced by a name. Each clause is matched by its rule in the grammar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from streamsql.errors import Span, SyntaxFault
from streamsql.language.dialect import name_token
from streamsql.language.grammar import Node, State, load, syntax_fault
from streamsql.language.query_tree import ConsoleRelation
from streamsql.language.token_groups import closing
from streamsql.language.tokens import Token
from streamsql.language.tree_nodes import Call

PLACEHOLDER = "__console_relation_"
WINDOW_TABLES = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
# Words that end a list of relations separated by commas.
_ENDS_FROM = frozenset(
    """SELECT WHERE GROUP HAVING QUALIFY ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET UNION EXCEPT
    INTERSECT MINUS""".split()
)
_STATE_PARTS = ("OPERATOR", "STORE", "SIDE", "VARIABLE", "AT", "CHANGES")


@dataclass
class Cut:
    """The result of cutting out the console's clauses.

    remaining: the tokens without these clauses; own: console relations by the name that replaces them;
    streams: starts of the relations after STREAM; watermarks: end offset of the token before the clause →
    node; within: starts of the DISTINCTs before WITHIN WATERMARK.
    """

    remaining: list[Token] = field(default_factory=list)
    own: dict[str, ConsoleRelation] = field(default_factory=dict)
    streams: dict[int, Span] = field(default_factory=dict)
    watermarks: dict[int, Node] = field(default_factory=dict)
    within: dict[int, Span] = field(default_factory=dict)
    distinct_on: list[Span] = field(default_factory=list)

    @property
    def clauses(self) -> Iterator[tuple[str, Span]]:
        """The console's clauses in the query that Spark does not have."""
        yield from (("DISTINCT ON", span) for span in [*self.distinct_on, *self.within.values()])
        yield from (("a window table", own.span) for own in self.own.values() if own.kind == "WindowTable")


def cut(tokens: list[Token]) -> Cut:
    """Cut out the console's clauses. Raises SyntaxFault for one that is not complete or not valid."""
    return _Cutter(tokens).run()


class _Cutter:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.out = Cut()
        self.at = 0
        # For each open parenthesis: whether it lists relations, and whether the next token starts one.
        self.listing = [False]
        self.due = False
        # The end of each DISTINCT or DISTINCT ON (…), and its start.
        self.distincts: dict[int, int] = {}
        self.pivots = any(token.upper == "PIVOT" for token in tokens)

    def run(self) -> Cut:
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if self.due and self.pivots and self.replace("PivotTable"):
                continue
            if token.kind == "word" and (self.relation() if self.due else self.clause()):
                continue
            self.keep(token)
        return self.out

    def word(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].upper if 0 <= at < len(self.tokens) else ""

    def keep(self, token: Token) -> None:
        word = token.upper
        before = self.word(-1)
        if word == "(":
            self.listing.append(self.due)
        elif word == ")":
            if len(self.listing) > 1:
                self.listing.pop()
            self.due = False
        elif before == ".":
            self.due = False
        elif (word == "FROM" and before != "DISTINCT") or word == "JOIN":
            self.listing[-1] = self.due = True
        elif word == "," and self.listing[-1]:
            self.due = True
        else:
            if word in _ENDS_FROM:
                self.listing[-1] = False
            self.due = False
        if word == "DISTINCT":
            end = self.at + 1
            if self.word(1) == "ON" and self.word(2) == "(":
                self.out.distinct_on.append(Span(token.start, self.tokens[end].end))
                end = closing(self.tokens, self.at + 2) + 1
            self.distincts[end] = token.start
        self.out.remaining.append(token)
        self.at += 1

    def relation(self) -> bool:
        """Cut out a console relation; False if there is none here."""
        word, after = self.word(), self.word(1)
        if word == "STATE" and (after == "OF" or (after == "METADATA" and self.word(2) == "OF")):
            return self.of_query("StateTable", _STATE_PARTS)
        if word == "LATE" and after == "ROWS" and self.word(2) == "OF":
            return self.of_query("LateTable", ("AT",))
        window = word in WINDOW_TABLES and after == "("
        table = word == "TABLE" and after == "(" and self.word(2) in WINDOW_TABLES and self.word(3) == "("
        if window or table:
            return self.replace("WindowTable")
        if after == "(" and self.word(2) == "TABLE" and self.word(3) == "(":
            return self.replace("StatefulCall")
        if word == "STREAM":
            return self.stream()
        return False

    def clause(self) -> bool:
        word = self.word()
        if word == "WATERMARK" and self.out.remaining:
            node, end, _ = self.match("InWatermark")
            if node is not None:
                self.out.watermarks[self.out.remaining[-1].end] = node
                self.at = end
                return True
        start = self.distincts.get(self.at)
        if word == "WITHIN" and self.word(1) == "WATERMARK" and start is not None:
            self.out.within[start] = Span(start, self.tokens[self.at + 1].end)
            self.at += 2
            return True
        return False

    def match(self, rule: str) -> tuple[Node | None, int, State]:
        state, parts = State(self.tokens, len(self.tokens)), list[Node]()
        end = load().rule(rule)(state, self.at, parts)
        return parts[0] if end >= 0 else None, end, state

    def replace(self, rule: str) -> bool:
        node, end, _ = self.match(rule)
        if node is None:
            return False
        self.put(rule, node, end)
        return True

    def put(self, kind: str, node: Node, end: int) -> None:
        name = f"{PLACEHOLDER}{len(self.out.own) + 1}"
        self.out.own[name] = ConsoleRelation(kind, node, node.span, name)
        raw = name_token(name, node.span.start, node.span.end)
        self.out.remaining.append(Token("word", name, node.span.start, node.span.end, name.upper(), (raw,)))
        self.at, self.due = end, False

    def of_query(self, rule: str, words: tuple[str, ...]) -> bool:
        """STATE OF QUERY q … and LATE ROWS OF QUERY q …: these first words have no other meaning, so errors
        after them are final. words: those that can follow.
        """
        node, end, state = self.match(rule)
        if node is None or (state.furthest > end and self.tokens[end].upper in words):
            raise syntax_fault(state, self.tokens)
        self.put(rule, node, end)
        return True

    def stream(self) -> bool:
        node, end, _ = self.match("StreamTable")
        if node is None:
            return False
        name = node.get("RelationName")
        assert name
        self.out.streams[name.span.start] = node.span
        self.out.remaining += [
            t for t in self.tokens[self.at : end] if name.span.start <= t.start and t.end <= name.span.end
        ]
        self.at, self.due = end, False
        return True


def fault_of_call(tokens: Sequence[Token], call: Call) -> SyntaxFault:
    """The error for a call that is not a valid call of a stateful processor."""
    first = next(i for i, t in enumerate(tokens) if t.start == call.span.start)
    piece = list(tokens[first : closing(tokens, first + 1) + 1])
    _, state = load().match("StatefulCall", piece)
    return syntax_fault(state, piece)
