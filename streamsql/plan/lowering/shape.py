"""The streaming shape of a query: its operations on a stream, in the order of their evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from streamsql.calls import Node
from streamsql.errors import Span
from streamsql.language.origin import Origin

CHANGES = "changes"
"""The kind of the operation that gives the rows before and after each change of a stream of changes."""
STATEFUL = frozenset(("aggregate", "distinct", "distinct_on", "join", "stateful"))
"""The kinds of operations that keep state."""
IN_RESULT = "__kept"
"""The hidden column that says whether a row of a group is in the result."""


@dataclass(frozen=True)
class StateInput:
    """The DataFrame that an operation with state reads; keys: those of its groups, None where it has none."""

    node: Node
    keys: tuple[Node, ...] | None = None


@dataclass(frozen=True)
class Op:
    """One operation on streaming rows.

    kind: filter (of groups), watermark, generate, now, aggregate, distinct, distinct_on, join, order,
    limit, offset, over, union, intersect, except, sample, key, stateful, changes. Of these, union to sample
    and order are used only by the rules.
    under: the number of operations directly before it in Shape.ops that belong to its input.
    watermarked: its keys include event time of a watermark (aggregate, distinct), or its rows have one.
    window: "", "window", "session_window", or "within". how: the kind of a join, or the output mode
    of the call of a stateful processor; sides: whether each side is a stream; equi: whether the join has
    an equality; timed: whether the condition and the watermarks bound the time of a row's last match, None
    if only Spark can decide; for distinct_on: whether event time is among its keys.
    clock: whether a processor's timers or times to live use processing time. half: of a union, whether one
    side is of groups, and the other is not. several: of an aggregate, whether it groups several times
    (ROLLUP, CUBE, GROUPING SETS); grouping_columns: the columns that then say by which keys a row is grouped;
    one_group: of an aggregate, whether it has no keys.
    reads: its inputs, where no operation before them keeps state and the query is one of DataFrame calls.
    """

    kind: str
    span: Span = field(default=Span(0, 0), compare=False)
    under: int = 0
    watermarked: bool = False
    window: str = ""
    only_window: bool = False
    distinct: bool = False
    how: str = ""
    sides: tuple[bool, bool] = (True, True)
    equi: bool = True
    timed: bool | None = None
    clock: bool = False
    half: bool = False
    several: bool = False
    one_group: bool = False
    grouping_columns: tuple[str, ...] = ()
    reads: tuple[StateInput, ...] = field(default=(), compare=False)

    @property
    def keeps_state(self) -> bool:
        return self.kind in STATEFUL and (self.kind != "join" or all(self.sides))

    @property
    def replaces(self) -> bool:
        """Whether a newer row replaces an older one with the same keys."""
        return self.kind in ("aggregate", "distinct", CHANGES) or self.is_replacing_processor

    @property
    def is_replacing_processor(self) -> bool:
        """Whether it is a stateful processor in output mode update, whose rows replace older ones."""
        return self.kind == "stateful" and self.how == "update"


@dataclass(frozen=True)
class Shape:
    """streaming: whether it reads a stream. columns: the names of the output columns, None if not known;
    items: the same of a SELECT list, "" where only Spark knows the name, () with a `*` of unknown columns.
    event_time: the columns with event time of a watermark; unmarked: qualified names in a join that are
    not event time, although another side's column with that name is. keys: the columns that identify its
    groups, None if there are no groups or a key is not selected. complete: False if only Spark knows the
    operations; then groups says whether the query seems to group. fields: message fields, which a SELECT
    can name but `*` does not include. hidden: keys of its groups that are not selected, before its columns;
    has_flag: whether the column IN_RESULT stands behind them (hidden_keys.py).
    """

    streaming: bool = False
    columns: tuple[str, ...] | None = None
    event_time: frozenset[str] = frozenset()
    ops: tuple[Op, ...] = ()
    complete: bool = True
    groups: bool = False
    keys: tuple[str, ...] | None = None
    unmarked: frozenset[str] = frozenset()
    fields: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    has_flag: bool = False
    items: tuple[str, ...] = ()

    def then(self, op: Op) -> Shape:
        """This shape with one more operation, if it is streaming."""
        if not self.streaming:
            return self
        if self.ops:
            op = replace(op, under=len(self.ops))
        shape = replace(self, ops=(*self.ops, op))
        # Kept, because a chain of a thousand joins would search all operations for each join.
        shape.__dict__["replacing"] = (*self.replacing, *((shape.ops[-1],) if op.replaces else ()))
        return shape

    def first_input(self, node: Node, keys: tuple[Node, ...] | None = None) -> tuple[StateInput, ...]:
        """The input of an operation with state that follows, if none comes before it. node: a DataFrame of
        this shape; keys: as in StateInput.
        """
        has_state = not self.streaming or any(op.keeps_state for op in self.ops)
        return () if has_state else (StateInput(node, keys),)

    def beside(self, other: Shape) -> Shape:
        """The shape of two inputs together. The keys of one do not identify the groups of both."""
        columns = None if self.columns is None or other.columns is None else self.columns + other.columns
        grouped = [side for side in (self, other) if side.replacing]
        both = Shape(
            self.streaming or other.streaming,
            columns,
            self.event_time | other.event_time,
            self.ops + other.ops,
            self.complete and other.complete,
            keys=grouped[0].keys if len(grouped) == 1 else None,
            fields=self.fields + other.fields,
            hidden=self.hidden + other.hidden,
            has_flag=self.has_flag or other.has_flag,
        )
        both.__dict__["replacing"] = self.replacing + other.replacing
        return both

    def changed(self, **fields: Any) -> Shape:
        """This shape with other values of fields that are no operations."""
        shape = replace(self, **fields)
        shape.__dict__["replacing"] = self.replacing
        return shape

    def under(self, name: str) -> Shape:
        """This shape for a relation with that name."""
        return self.changed(fields=tuple(f"{name}.{f}" for f in self.fields)) if self.fields else self

    def with_keys(self, rename: Callable[[str], str | None]) -> Shape:
        """This shape after a projection: each group key with its new name, if it is selected."""
        if self.keys is None:
            return self
        names = [rename(k) for k in self.keys]
        return replace(self, keys=tuple(n for n in names if n) if all(names) else None)

    def renamed(self, names: tuple[str, ...]) -> Shape | None:
        """This shape with those names of its columns; None where its columns are not known, or others."""
        if self.columns is None or len(self.columns) != len(names):
            return None
        new = dict(zip((c.casefold() for c in self.columns), names, strict=True))
        shape = self.with_keys(lambda key: key if key in self.hidden else new.get(key.casefold()))
        return shape.changed(
            columns=names,
            event_time=frozenset(new[c].casefold() for c in self.event_time if c in new),
            unmarked=frozenset(),
            fields=(),
            items=(),
        )

    def at(self, span: Span) -> Shape:
        """This shape for a relation defined elsewhere: all operations have the span of its name."""
        return replace(self, ops=tuple(replace(op, span=span) for op in self.ops)) if self.ops else self

    def placed(self, origin: Origin) -> Shape:
        """This shape with the spans of its operations in the source of its text."""
        ops = tuple(replace(op, span=origin.span(op.span)) for op in self.ops)
        return replace(self, ops=ops) if ops else self

    def inputs(self, number: int) -> tuple[Op, ...]:
        """The operations in the input of the operation with that number."""
        return self.ops[number - self.ops[number].under : number]

    @property
    def loses_groups(self) -> bool:
        """Whether a group can leave the result again, because it is filtered."""
        return any(op.kind == "filter" for op in self.ops)

    @property
    def brings_changes(self) -> bool:
        """Whether its rows are those before and after changes of a stream."""
        return any(op.kind == CHANGES for op in self.ops)

    @cached_property
    def aggregates(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.kind in ("aggregate", "distinct"))

    @property
    def watches_the_clock(self) -> bool:
        """Whether the query has work without new input, because it depends on processing time."""
        return any(op.clock for op in self.ops)

    @cached_property
    def replacing(self) -> tuple[Op, ...]:
        """The operations whose newer rows replace older ones with the same keys."""
        return tuple(op for op in self.ops if op.replaces)
