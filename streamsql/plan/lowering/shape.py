"""What streaming makes of a query: the operations on a stream, in the order they happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from streamsql.errors import Span


@dataclass(frozen=True)
class Op:
    """One operation on streaming rows.

    kind: filter (of groups), watermark, generate, now, aggregate, distinct, distinct_on, join, order,
    limit, offset, over, union, intersect, except, sample, key, stateful. Of these, union to sample and
    order take part in rules only.
    under: how many of the operations right before it in Shape.ops work on its input.
    watermarked: its keys hold event time of a watermark (aggregate, distinct), or its rows have one.
    window: "", "window", "session_window", or "within". how: the kind of a join, or the output mode
    that a stateful processor is called with; sides: which of both sides are streams; equi: whether an
    equality joins them; timed: whether the condition and the watermarks tell when a row's last match
    has come, None when only Spark can tell; of a distinct_on: whether event time is among its keys.
    clock: whether a processor's timers or times to live go by processing time.
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

    @property
    def replaces(self) -> bool:
        """Whether a newer row of it takes the place of an older one with the same keys."""
        return self.kind in ("aggregate", "distinct") or self.is_replacing_processor

    @property
    def is_replacing_processor(self) -> bool:
        """Whether it is a stateful processor in output mode update: its rows replace those before."""
        return self.kind == "stateful" and self.how == "update"


@dataclass(frozen=True)
class Shape:
    """streaming: whether it reads a stream. columns: names that come out, None when not known.
    event_time: those that hold event time of a watermark; unmarked: qualified names of a join that do
    not, though another side's column of that name does. keys: the columns that tell its groups
    apart, None when there are no groups or a key does not come out. known: False when only Spark
    can tell; then groups says whether there seem to be groups. fields: those of messages, there to
    be named, as a SELECT would name them; `*` leaves them out.
    """

    streaming: bool = False
    columns: tuple[str, ...] | None = None
    event_time: frozenset[str] = frozenset()
    ops: tuple[Op, ...] = ()
    known: bool = True
    groups: bool = False
    keys: tuple[str, ...] | None = None
    unmarked: frozenset[str] = frozenset()
    fields: tuple[str, ...] = ()

    def then(self, op: Op) -> Shape:
        """This shape with one more operation, if the rows are a stream's."""
        if not self.streaming:
            return self
        shape = replace(self, ops=(*self.ops, replace(op, under=len(self.ops))))
        # Known already: a chain of a thousand joins would search all its operations at each of them.
        shape.__dict__["replacing"] = (*self.replacing, *((shape.ops[-1],) if op.replaces else ()))
        return shape

    def beside(self, other: Shape) -> Shape:
        """Two inputs read together; the groups of both cannot be told apart by the keys of one."""
        columns = None if self.columns is None or other.columns is None else self.columns + other.columns
        grouped = [side for side in (self, other) if side.replacing]
        both = Shape(
            self.streaming or other.streaming,
            columns,
            self.event_time | other.event_time,
            self.ops + other.ops,
            self.known and other.known,
            keys=grouped[0].keys if len(grouped) == 1 else None,
            fields=self.fields + other.fields,
        )
        both.__dict__["replacing"] = self.replacing + other.replacing
        return both

    def under(self, name: str) -> Shape:
        """This shape as that of a relation of that name."""
        return replace(self, fields=tuple(f"{name}.{f}" for f in self.fields)) if self.fields else self

    def with_keys(self, rename: Callable[[str], str | None]) -> Shape:
        """This shape after a projection: each key of the groups under its new name, if it has one."""
        if self.keys is None:
            return self
        names = [rename(k) for k in self.keys]
        return replace(self, keys=tuple(n for n in names if n) if all(names) else None)

    def at(self, span: Span) -> Shape:
        """This shape as that of a relation whose own text is elsewhere: all of it happens at its name."""
        return replace(self, ops=tuple(replace(op, span=span) for op in self.ops)) if self.ops else self

    def inputs(self, number: int) -> tuple[Op, ...]:
        """The operations whose rows reach the one of that number."""
        return self.ops[number - self.ops[number].under : number]

    @property
    def loses_groups(self) -> bool:
        """Whether a group that was in the result can leave it again: a filter stands behind it."""
        return any(op.kind == "filter" for op in self.ops)

    @property
    def aggregates(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.kind in ("aggregate", "distinct"))

    @property
    def watches_the_clock(self) -> bool:
        """Whether the query has something to do without any rows coming: time passes."""
        return any(op.clock for op in self.ops)

    @cached_property
    def replacing(self) -> tuple[Op, ...]:
        """The operations of which a newer row takes the place of an older one with the same keys."""
        return tuple(op for op in self.ops if op.replaces)
