"""What streaming makes of a query: the operations on a stream, in the order they happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from streamsql.errors import Span


@dataclass(frozen=True)
class Op:
    """One operation on streaming rows.

    kind: filter (of groups), aggregate, distinct, distinct_on, join, order, limit, offset, over,
    union, key, stateful.
    watermarked: its keys hold event time of a watermark (aggregate), or the rows have one.
    window: "", "window" or "session_window". keys: the names under which the group's keys come
    out, None when one of them does not. how: the kind of a join, or the output mode that a stateful
    processor is called with; other: what stands on each side. clock: whether a processor's timers
    or times to live go by processing time.
    """

    kind: str
    span: Span = field(default=Span(0, 0), compare=False)
    watermarked: bool = False
    window: str = ""
    only_window: bool = False
    distinct: bool = False
    keys: tuple[str, ...] | None = None
    how: str = ""
    sides: tuple[bool, bool] = (True, True)
    equi: bool = True
    clock: bool = False

    @property
    def is_replacing_processor(self) -> bool:
        """Whether it is a stateful processor in output mode update: its rows replace those before."""
        return self.kind == "stateful" and self.how == "update"


@dataclass(frozen=True)
class Shape:
    """streaming: whether it reads a stream. columns: names that come out, None when not known.
    event_time: those that hold event time of a watermark. known: False when only Spark can tell;
    then groups says whether there seem to be groups.
    """

    streaming: bool = False
    columns: tuple[str, ...] | None = None
    event_time: frozenset[str] = frozenset()
    ops: tuple[Op, ...] = ()
    known: bool = True
    groups: bool = False

    def then(self, op: Op) -> Shape:
        """This shape with one more operation, if the rows are a stream's."""
        return replace(self, ops=(*self.ops, op)) if self.streaming else self

    def beside(self, other: Shape) -> Shape:
        """Two inputs read together."""
        columns = None if self.columns is None or other.columns is None else self.columns + other.columns
        return Shape(
            self.streaming or other.streaming,
            columns,
            self.event_time | other.event_time,
            self.ops + other.ops,
            self.known and other.known,
        )

    def with_keys(self, rename: Callable[[str], str | None]) -> Shape:
        """This shape after a projection: each key of the groups under its new name, if it has one."""
        ops = []
        for op in self.ops:
            names = [rename(k) for k in op.keys or ()]
            kept = op.keys is not None and all(names)
            ops.append(replace(op, keys=tuple(n for n in names if n) if kept else None))
        return replace(self, ops=tuple(ops))

    @property
    def loses_groups(self) -> bool:
        """Whether a group that was in the result can leave it again: a filter stands behind it."""
        kinds = [op.kind for op in self.ops]
        return "filter" in kinds

    @property
    def aggregates(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.kind in ("aggregate", "distinct"))

    @property
    def watches_the_clock(self) -> bool:
        """Whether the query has something to do without any rows coming: time passes."""
        return any(op.clock for op in self.ops)

    @property
    def replacing(self) -> tuple[Op, ...]:
        """The operations of which a newer row takes the place of an older one with the same keys."""
        return tuple(op for op in self.ops if op in self.aggregates or op.is_replacing_processor)
