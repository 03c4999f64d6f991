"""GROUP BY and HAVING to DataFrame calls."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Node, expr
from streamsql.errors import Span
from streamsql.language.expression import TIME_WINDOWS, Expression
from streamsql.language.origin import edited
from streamsql.language.query import Block, Clause, GroupBy, read_expression
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering import window_tables
from streamsql.plan.lowering.event_time import carries, is_event_time
from streamsql.plan.lowering.frames import Frame, Item, Unknown
from streamsql.plan.lowering.hidden_keys import HiddenKeys, hidden_names
from streamsql.plan.lowering.shape import IN_RESULT, Op, Shape


class Grouping(HiddenKeys):
    """The clauses of an aggregation."""

    def aggregate(self, frame: Frame, items: list[Item], block: Block) -> Frame:
        if any(i.expression.generates for i in items):
            raise Unknown("a generator next to an aggregation")
        groups = block.group_by
        keys = self.window_keys(frame, self.group_keys(frame, items, groups))
        times, unmarked = frame.shape.event_time, frame.shape.unmarked
        if frame.shape.streaming and any(is_event_time(k, times, unmarked) for k in keys):
            # A watermark ends the groups.
            self.exact_distinct = True
            items = [self.with_exact_count(i) for i in items]
        try:
            if self.carries_time and any(k.column_name == window_tables.TIME for k in keys):
                return self.with_window_time(frame, items, keys, block)
            return self.grouped(frame, items, keys, block)
        finally:
            self.exact_distinct = False

    def with_window_time(
        self, frame: Frame, items: list[Item], keys: list[Expression], block: Block
    ) -> Frame:
        """Groups by a window with the window's time beside them: by it the aggregation around this one, which
        groups by the window again, knows when its groups end.
        """
        key = next(k for k in keys if k.column_name == window_tables.TIME)
        if any(i.name.casefold() == window_tables.TIME for i in items):
            return self.grouped(frame, items, keys, block)
        frame = self.grouped(frame, [*items, Item(key, "", items[-1].span)], keys, block)
        columns = frame.shape.columns[:-1] if frame.shape.columns else None
        return replace(frame, shape=replace(frame.shape, columns=columns, fields=(window_tables.TIME,)))

    def with_exact_count(self, item: Item) -> Item:
        """An item in which count(DISTINCT x) is the size of a set, which a stream can have."""
        if not item.expression.aggregates_distinct:
            return item
        expression = self.in_spark_words(item.expression)
        return replace(item, expression=expression, alias=item.alias or item.text)

    def grouped(self, frame: Frame, items: list[Item], keys: list[Expression], block: Block) -> Frame:
        groups = block.group_by
        leading = len(keys) <= len(items) and all(
            key.same(item.expression) for key, item in zip(keys, items, strict=False)
        )
        several = groups is not None and any(key.several for key in groups.keys)
        place = groups.span if groups else block.span
        shape = self.grouped_shape(frame.shape, items, keys, place, several=several)
        distinct = block.having is not None and block.having.expression.aggregates_distinct
        if shape.streaming and distinct and not self.exact_distinct:
            shape = replace(shape, ops=(*shape.ops[:-1], replace(shape.ops[-1], distinct=True)))
        hides = self.keeps_keys and shape.streaming and (shape.keys is None or self.sources.hides_all)
        rest = items[len(keys) :] if leading else items
        hidden: tuple[str, ...] = ()
        if leading and rest and not hides:
            shown = [expr(i.sql) for i in items[: len(keys)]]
        else:
            rest = items
            hidden = hidden_names(len(keys))
            shown = [expr(k.text).call("alias", h) for k, h in zip(keys, hidden, strict=True)]
        if hides:
            self.sources.keeps_hidden = True
            shape, hidden = replace(shape, keys=hidden, hidden=hidden), ()
        if shape.streaming:
            op = replace(shape.ops[-1], reads=frame.shape.first_input(frame.node, tuple(shown)))
            shape = replace(shape, ops=(*shape.ops[:-1], op))
        grouped = Frame(frame.node.call("groupBy", *shown), shape, hidden, True, names=frame.names)
        columns = [expr(i.sql) for i in rest]
        if block.having:
            return self.having(grouped, columns, items, block.having)
        node = grouped.node.call("agg", *columns)
        if self.sources.of_changes and not keys and not shape.streaming:
            node = node.call("where", expr("count(*) > 0"))
        return replace(grouped, node=node)

    def having(self, grouped: Frame, columns: list[Node], items: list[Item], clause: Clause) -> Frame:
        """The groups, before their aggregation to these columns, with HAVING: a filter, or (hidden_keys.py)
        a column that says whether a group is kept.
        """
        if clause.expression.aggregates_outside:
            raise Unknown("a query in HAVING aggregates columns of the query around it")
        having = _by_aliases(self.checked(clause.expression), items)
        if not having.is_predicate:  # Spark's parser casts it
            having = read_expression(f"CAST({having.text} AS BOOLEAN)")
        if any(i.expression.has_window_function for i in items):
            raise Unknown("HAVING comes before a window function")
        shape, flag = grouped.shape, None
        constant = self.keeps_groups(grouped) and self.is_over_keys(shape, having)
        if self.keeps_groups(grouped) and not constant:
            flag = self.having_flag(having, items)
        if flag:
            node = grouped.node.call("agg", *columns, expr(flag).call("alias", IN_RESULT))
            return replace(grouped, node=node, shape=replace(shape, has_flag=True))
        node = grouped.node.call("agg", *columns).call("where", expr(having.text))
        if not constant:
            shape = shape.then(Op("filter", clause.span))
        return replace(grouped, node=node, shape=shape, filtered_groups=having.aggregates)

    def group_keys(self, frame: Frame, items: list[Item], groups: GroupBy | None) -> list[Expression]:
        if groups and groups.other:
            raise Unknown(f"GROUP BY {groups.other}")
        written: list[Expression] = []
        for group_key in groups.keys if groups else ():
            if group_key.several:
                self.leave(f"GROUP BY {group_key.several}")
            written += [self.checked(e) for e in group_key.expressions]
        aliases: dict[str, list[Item]] = {}
        for item in items:
            if item.alias:
                aliases.setdefault(item.alias.casefold(), []).append(item)
        columns = None if frame.shape.columns is None else {c.casefold() for c in frame.shape.columns}
        keys = [self.group_key(key, columns, items, aliases) for key in written]
        if frame.window and frame.window.session:
            keys = self.session_keys(frame, frame.window, keys, groups)
        if any(k.aggregates for k in keys):
            raise Unknown("an aggregation as grouping key")
        return keys

    def window_keys(self, frame: Frame, keys: list[Expression]) -> list[Expression]:
        """The keys, plus window_time if window_start or window_end is a key: only window_time carries the
        watermark. It belongs to the same window, so the groups do not change.
        """
        carried = any(f.rpartition(".")[2] == window_tables.TIME for f in frame.shape.fields)
        if frame.window.session if frame.window else not carried:
            return keys
        columns = [window_tables.column_in(k, frame.names) for k in keys]
        edges = (window_tables.START, window_tables.END)
        times = [q + window_tables.TIME for q, name in columns if name in edges]
        column_names = {name for _, name in columns}
        return (
            [*keys, read_expression(times[0])] if times and window_tables.TIME not in column_names else keys
        )

    def check_session(self, table: window_tables.WindowTable, select: Block) -> None:
        """Raise RuleFault if a SESSION table is not directly grouped by its window."""
        if not select.group_by:
            raise table.refuse(
                "a SESSION table needs GROUP BY window_start, window_end", window_tables.SESSION_ONLY
            )
        if select.where:
            raise table.refuse(
                "WHERE next to a SESSION table would filter after the sessions are built",
                "Spark filters rows before it builds sessions: write SESSION(TABLE (SELECT … WHERE …), …)",
                select.where.span,
            )

    def session_keys(
        self,
        frame: Frame,
        table: window_tables.WindowTable,
        keys: list[Expression],
        groups: GroupBy | None,
    ) -> list[Expression]:
        """Spark's grouping keys for a SESSION table: the session window and the partition keys."""
        assert groups
        rest = [k for k in keys if k.text not in window_tables.SESSION_FIELDS.values()]
        if len(rest) == len(keys):
            raise table.refuse(
                "a SESSION table needs GROUP BY window_start, window_end",
                window_tables.SESSION_ONLY,
                groups.span,
            )
        if {window_tables.column_in(k, frame.names)[1] for k in rest} != table.keys:
            raise table.refuse(
                "GROUP BY and PARTITION BY of a SESSION table name different columns",
                "Spark builds the sessions of each group, so both must be the same",
                groups.span,
            )
        return [read_expression(table.call), *rest]

    def group_key(
        self, key: Expression, columns: set[str] | None, items: list[Item], aliases: dict[str, list[Item]]
    ) -> Expression:
        """A grouping key with ordinals and aliases resolved, as in Spark's analyzer."""
        place = key.ordinal
        if place is not None:
            if not 1 <= place <= len(items):
                raise Unknown("GROUP BY has an ordinal that is out of range")
            return items[place - 1].expression
        column = key.column
        if column and not column[0]:
            name = key.column_name
            aliased = [i for i in aliases.get(name, ()) if not i.expression.same(key)]
            if aliased:
                if columns is None:
                    raise Unknown("a grouping key may be an alias or a column")
                if name not in columns:
                    return aliased[0].expression
            elif not name.isidentifier() and columns is not None and name not in columns:
                raise Unknown("a grouping key may be Spark's name of a column without one")
        return key

    def grouped_shape(
        self, shape: Shape, items: list[Item], keys: list[Expression], place: Span, *, several: bool = False
    ) -> Shape:
        """The shape of groups. several: whether it groups several times: ROLLUP, CUBE, GROUPING SETS."""
        # Spark names a window after its function, and other calls after their text.
        names = tuple(i.name or (c if (c := i.expression.call) in TIME_WINDOWS else "") for i in items)
        # A window of event time is event time, also under its own name.
        marked = [k for k in keys if is_event_time(k, shape.event_time, shape.unmarked)]
        marks = shape.event_time | {k.call for k in marked} - {""}
        event_time = {
            n.casefold()
            for n, i in zip(names, items, strict=True)
            if is_event_time(i.expression, marks, shape.unmarked)
        }
        out = _names_of_keys(names, items, keys)
        window = next((w for k in keys for w in TIME_WINDOWS if k.call == w), "")
        op = Op(
            "aggregate",
            place,
            watermarked=bool(marked),
            window=window,
            only_window=len(keys) == 1,
            distinct=any(i.expression.aggregates_distinct for i in items),
            several=several,
            one_group=not keys,
            grouping_columns=tuple(i.name for i in items if several and i.expression.call in _TELLING),
        )
        named_keys = [name for name in out if name]
        return replace(
            shape.then(op),
            fields=(),
            columns=names if all(names) else None,
            items=names,
            event_time=frozenset(event_time),
            keys=tuple(named_keys) if len(named_keys) == len(out) and not several else None,
            unmarked=frozenset(),
        )


_TELLING = frozenset(("grouping", "grouping_id"))
"""The functions that tell the groups of ROLLUP, CUBE and GROUPING SETS apart."""


def _names_of_keys(names: tuple[str, ...], items: list[Item], keys: list[Expression]) -> list[str | None]:
    """The output column that identifies the groups of each key; None for a key that is not selected."""
    by_form: dict[str, str] = {}
    for name, item in zip(names, items, strict=True):
        if name:
            by_form.setdefault(item.expression.normal, name)
    # One column of a window identifies it.
    plain = [k for k in keys if k.column_name not in window_tables.COLUMNS]
    out: list[str | None] = []
    for key in plain:
        out.append(
            by_form.get(key.normal)
            or next((n for n, i in zip(names, items, strict=True) if n and carries(i.expression, key)), None)
        )
    if len(plain) < len(keys):
        shown = (
            n for n, i in zip(names, items, strict=True) if i.expression.column_name in window_tables.COLUMNS
        )
        out.append(next(shown, None))
    return out


def _renamed(items: list[Item]) -> set[str]:
    """The names, folded, that items give to something else than the column of that name."""
    return {i.alias.casefold() for i in items if i.alias and i.text.casefold() != i.alias.casefold()}


def _by_aliases(having: Expression, items: list[Item]) -> Expression:
    """HAVING with the aliases of aggregations in place of these, where it needs them: `min(v) AS v … HAVING
    min(v) > 1`. Raises Unknown where that is not enough.
    """
    if not (having.aggregates and having.column_names() & _renamed(items)):
        return having
    named = [i for i in items if i.alias and i.expression.aggregates]
    places = {p.span: i.alias for i in named for p in having.parts_like(i.expression)}
    outer = [s for s in places if not any(o.start <= s.start < s.end <= o.end for o in places if o != s)]
    text = edited(having.text, {s: quote_name(places[s]) for s in outer}, having.span.start)
    rest = edited(having.text, dict.fromkeys(outer, "1"), having.span.start)
    if having.has_subquery or read_expression(rest).column_names() & _renamed(items):
        raise Unknown("HAVING aggregates a column whose name is given to another")
    return read_expression(text)
