"""TUMBLE, HOP and SESSION in FROM, as in other streaming consoles, as Spark's windows.

Spark's forms are window() and session_window() (Spark guide, "Window Operations on Event Time" and "Types of
time windows"). Spark has no CUMULATE.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Note, RuleFault, Span
from streamsql.language.durations import duration_of, seconds
from streamsql.language.expression import Expression
from streamsql.language.grammar import Node
from streamsql.language.origin import edited
from streamsql.language.query import Block, read_expression
from streamsql.language.tokens import quote
from streamsql.plan.lowering.window_lengths import slide_above_size

START, END, TIME = "window_start", "window_end", "window_time"
COLUMNS = (START, END, TIME)
SESSION_ONLY = "Spark builds session windows only in GROUP BY"
# The lengths of each window table, in the order of its arguments and in Spark's order.
_LENGTHS = {"TUMBLE": ("SIZE", "OFFSET"), "HOP": ("SLIDE", "SIZE", "OFFSET"), "SESSION": ("GAP",)}


@dataclass(frozen=True)
class WindowTable:
    """A window table. call: Spark's function for it; keys: the columns of PARTITION BY, case-folded; source:
    what it reads, the name of a relation or a query.
    """

    kind: str
    call: str
    keys: frozenset[str]
    span: Span
    source: Node

    @property
    def source_name(self) -> str:
        """The name of the relation that it reads; "" for a query."""
        return self.source.value if self.source.name == "RelationName" else ""

    @property
    def window(self) -> Expression:
        return read_expression(self.call)

    @property
    def session(self) -> bool:
        return self.kind == "SESSION"

    @property
    def form(self) -> str:
        """The equivalent in Spark's own syntax."""
        keys = "".join(f", {k}" for k in sorted(self.keys))
        return f"FROM … GROUP BY {self.call}{keys}"

    @property
    def note(self) -> Note:
        name = "session_window" if self.session else "window"
        time = "a microsecond before that" if self.session else "window_time(window)"
        return Note(
            "WINDOW_TABLE",
            f"{self.kind} is read as {self.call}: window_start is {name}.start, window_end {name}.end, "
            f"window_time {time}",
        )

    def over(self, source: str) -> str:
        """The SELECT of TUMBLE or HOP over a relation, as Spark runs it over tables."""
        parts = f"__window.start AS {START}, __window.end AS {END}, window_time(__window) AS {TIME}"
        return f"SELECT * EXCEPT (__window), {parts} FROM (SELECT *, {self.call} AS __window FROM {source})"

    def refuse(self, fact: str, detail: str = "", span: Span | None = None) -> RuleFault:
        """The error for a use that Spark does not support."""
        return RuleFault(
            fact, detail=detail, hint=self.form, span=span or self.span, code="CLAUSE_NOT_SUPPORTED"
        )


def window_table(text: str, node: Node) -> WindowTable:
    """A WindowTable node. Raises RuleFault, with its span, for CUMULATE and for invalid lengths."""
    call = node.get("WindowCall")
    time, data = (call.get("TimeColumn"), call.get("Data")) if call else (None, None)
    assert call and time and data
    kind = call.parts[0].name
    column = time.get("ColumnName")
    assert column
    stamp = text[column.span.start : column.span.end]
    lengths = [_length(part, stamp) for part in call.all("WindowLength")]
    if kind == "CUMULATE":
        source, descriptor = (text[n.span.start : n.span.end] for n in (data, time))
        tumble = f"TUMBLE({source}, {descriptor}, INTERVAL {quote(lengths[-1][1])})"
        raise RuleFault(
            "Spark does not support CUMULATE",
            detail="it emits a growing window at each step; Spark's windows have a fixed size",
            hint=f"{tumble} in OUTPUT MODE UPDATE emits the current result of the open window after each "
            "micro-batch",
            instead=tumble,
            span=node.span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    named = _by_name(kind, lengths, node)
    partition = data.get("PartitionBy")
    keys = frozenset(c.value.casefold() for c in partition.all("ColumnName")) if partition else frozenset()
    if kind == "SESSION":
        window = f"session_window({stamp}, {quote(named['GAP'])})"
    else:
        places = [named["SIZE"], named.get("SLIDE") or named["SIZE"], named.get("OFFSET", "")]
        shown = places[:1] if kind == "TUMBLE" and not places[2] else [p for p in places if p]
        window = f"window({', '.join([stamp, *map(quote, shown)])})"
    source_node = data.get("RelationName") or data.get("Query")
    assert source_node
    return WindowTable(kind, window, keys, node.span, source_node)


def _length(node: Node, time: str) -> tuple[str, str]:
    """(the name of `NAME => …` or "", Spark's interval text). time: the event time of the window."""
    argument, duration = node.get("Argument"), node.get("Duration")
    assert duration
    return (argument.text("Word").upper() if argument else ""), duration_of(duration, time=time)


def _by_name(kind: str, lengths: list[tuple[str, str]], node: Node) -> dict[str, str]:
    places = _LENGTHS[kind]
    named = {
        (name or (places[at] if at < len(places) else "")).replace("STEP", "SLIDE"): length
        for at, (name, length) in enumerate(lengths)
    }
    needed = [p for p in places if p != "OFFSET"]
    if set(named) - set(places) or not set(needed) <= set(named) or len(named) != len(lengths):
        raise RuleFault(
            f"{kind} takes {', '.join(p.lower() for p in needed)}"
            + (" and optionally an offset" if "OFFSET" in places else ""),
            hint=f"{kind}(TABLE t, DESCRIPTOR(ts), {', '.join('INTERVAL 10 MINUTES' for _ in needed)})",
            span=node.span,
            code="BAD_ARGUMENT",
        )
    if kind == "HOP" and seconds(named["SLIDE"]) > seconds(named["SIZE"]):
        raise slide_above_size(
            named["SIZE"],
            named["SLIDE"],
            first="slide",
            hint=f"HOP(TABLE t, DESCRIPTOR(ts), INTERVAL {named['SIZE']}, INTERVAL {named['SLIDE']})",
            span=node.span,
        )
    return named


def groups_by_window(select: Block) -> bool:
    """Whether a block groups by the start or end of a window."""
    keys = [e for key in select.group_by.keys for e in key.expressions] if select.group_by else []
    if any(key.ordinal is not None for key in keys):
        keys += [i.expression for i in select.items]
    return any(key.column_name in (START, END) for key in keys)


def column_in(expression: Expression, names: frozenset[str]) -> tuple[str, str]:
    """(qualifier with its dot as written, case-folded column) of an expression that is a plain column of one
    of the relations with these case-folded names; otherwise two empty strings.
    """
    column = expression.column
    if column is None or (column[0] and column[0].casefold() not in names):
        return "", ""
    return (f"{column[0]}." if column[0] else ""), column[1].casefold()


def with_session_columns(expression: Expression, names: frozenset[str]) -> Expression:
    """An expression over a SESSION table, with its window columns replaced by Spark's in a grouping."""
    edits = {
        span: SESSION_FIELDS[name]
        for qualifier, name, span in expression.columns()
        if name in SESSION_FIELDS and (not qualifier or qualifier in names)
    }
    text = edited(expression.text, edits, expression.span.start)
    return read_expression(text) if edits else expression


SESSION_FIELDS = {
    START: "session_window.start",
    END: "session_window.end",
    # window_time() is not allowed in the grouping that builds the session.
    TIME: "(session_window.end - INTERVAL '0.000001' SECOND)",
}
"""The window columns of a SESSION table, and what they are in grouping keys (see with_session_columns)."""
