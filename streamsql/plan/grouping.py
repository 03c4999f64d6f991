"""GROUP BY and HAVING to DataFrame calls."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from streamsql.calls import expr
from streamsql.language import functions
from streamsql.language.grammar import Node as Parsed
from streamsql.language.grammar import text_of
from streamsql.language.tokens import tokenize
from streamsql.plan import ranges, windows
from streamsql.plan.frames import Clauses, Frame, Item, Unknown
from streamsql.plan.shape import Op, Shape
from streamsql.plan.texts import (
    call_name,
    carries,
    column,
    is_event_time,
    names_in,
    ordinal,
)


class Grouping(Clauses):
    """The clauses of an aggregation."""

    def aggregate(
        self, frame: Frame, items: list[Item], groups: Parsed | None, having: Parsed | None, block: Parsed
    ) -> Frame:
        if any(functions.has_generator(i.text) for i in items):
            raise Unknown("a generator beside an aggregation")
        keys = self.window_keys(frame, self.group_keys(frame, items, groups))
        leading = len(keys) <= len(items) and all(
            functions.same(key, item.text) for key, item in zip(keys, items, strict=False)
        )
        rest = items[len(keys) :] if leading else items
        if leading and rest:
            shown = [expr(i.sql) for i in items[: len(keys)]]
            hidden: tuple[str, ...] = ()
        else:
            rest = items
            hidden = tuple(f"__key{n}" for n in range(1, len(keys) + 1))
            shown = [expr(k).call("alias", h) for k, h in zip(keys, hidden, strict=True)]
        node = frame.node.call("groupBy", *shown).call("agg", *(expr(i.sql) for i in rest))
        having_text = self.text(having, "Expression") if having else ""
        renamed = {i.alias.casefold() for i in items if i.alias and not functions.same(i.text, i.alias)}
        if functions.has_aggregate(having_text) and names_in(having_text) & renamed:
            raise Unknown("HAVING aggregates a column whose name is given to another")
        if having and any(functions.has_window_function(i.text) for i in items):
            raise Unknown("HAVING comes before a window function")
        if having:
            node = node.call("where", expr(having_text))
        shape = self.grouped_shape(frame.shape, items, keys, groups or block)
        if having:
            shape = shape.then(Op("filter", having.span))
        return Frame(node, shape, hidden, True, functions.has_aggregate(having_text), names=frame.names)

    def group_keys(self, frame: Frame, items: list[Item], groups: Parsed | None) -> list[str]:
        texts = [self.checked(text_of(self.source, e)) for e in groups.all("Expression")] if groups else []
        for text in texts:
            tokens = tokenize(text)
            sets = any(a.upper == "GROUPING" and b.upper == "SETS" for a, b in pairwise(tokens))
            if (
                sets
                or text.upper() == "ALL"
                or [t.upper for t in tokens[-2:]] in (["WITH", "CUBE"], ["WITH", "ROLLUP"])
            ):
                raise Unknown(f"GROUP BY {'GROUPING SETS' if sets else tokens[-1].upper}")
        texts = [inner for text in texts for inner in self.several(text)]
        keys = [self.group_key(t, frame.shape, items) for t in texts]
        if frame.window and frame.window.session:
            keys = self.session_keys(frame, frame.window, keys, groups)
        if any(functions.has_aggregate(k) for k in keys):
            raise Unknown("an aggregation as grouping key")
        return keys

    def several(self, text: str) -> list[str]:
        """The keys in ROLLUP (a, b) or CUBE (a, b), which is left to Spark; another key as it is."""
        tokens = tokenize(text)
        if tokens[0].upper not in ("ROLLUP", "CUBE") or len(tokens) < 3 or tokens[1].text != "(":
            return [text]
        self.leave(f"GROUP BY {tokens[0].upper}")
        if any(a.text == b.text == "(" for a, b in pairwise(tokens)):
            raise Unknown(f"GROUP BY {tokens[0].upper} of several columns at once")
        return [text[p[0].start : p[-1].end] for p in ranges.split(tokens[2:-1], (",",)) if p]

    def window_keys(self, frame: Frame, keys: list[str]) -> list[str]:
        """The keys, with the window's time where its start or end is one: only that carries the watermark
        (it stands for the same window, so the groups are the same).
        """
        if not frame.window or frame.window.session:
            return keys
        found = [windows.column_in(k, frame.names) for k in keys]
        times = [q + windows.TIME for q, name in found if name in (windows.START, windows.END)]
        there = {name for _, name in found}
        return keys + times[:1] if times and windows.TIME not in there else keys

    def check_session(self, table: windows.WindowTable, select: Parsed) -> None:
        """A SESSION table is grouped by its window, at once."""
        if not select.has("GroupBy"):
            raise table.refuse(
                "a SESSION table wants GROUP BY window_start, window_end", windows.SESSION_ONLY
            )
        where = select.get("Where")
        if where:
            raise table.refuse(
                "WHERE beside a SESSION table would filter behind the sessions",
                "Spark filters rows before it makes sessions: SESSION(TABLE (SELECT … WHERE …), …) does that",
                where.span,
            )

    def session_keys(
        self, frame: Frame, table: windows.WindowTable, keys: list[str], groups: Parsed | None
    ) -> list[str]:
        """The grouping keys of Spark for those of a SESSION table: the session, and its partition."""
        assert groups
        mine = set(windows.session_fields())
        rest = [k for k in keys if k not in mine]
        if len(rest) == len(keys):
            raise table.refuse(
                "a SESSION table wants GROUP BY window_start, window_end", windows.SESSION_ONLY, groups.span
            )
        if {windows.column_in(k, frame.names)[1] for k in rest} != table.keys:
            raise table.refuse(
                "GROUP BY and PARTITION BY of a SESSION table name different columns",
                "Spark makes the sessions of each group, so both have to be the same",
                groups.span,
            )
        return [table.call, *rest]

    def group_key(self, text: str, shape: Shape, items: list[Item]) -> str:
        """A grouping key with ordinals and aliases put in, as Spark's analyzer does it."""
        place = ordinal(text)
        if place is not None:
            if not 1 <= place <= len(items):
                raise Unknown("GROUP BY names an item that is not there")
            return items[place - 1].text
        tokens = tokenize(text)
        if len(tokens) == 1 and tokens[0].kind in ("word", "quoted"):
            name = tokens[0].text.strip("`").casefold()
            aliased = [i for i in items if i.alias.casefold() == name and not functions.same(i.text, text)]
            if aliased:
                if shape.columns is None:
                    raise Unknown("a grouping key may be an alias or a column")
                if name not in (c.casefold() for c in shape.columns):
                    return aliased[0].text
        return text

    def grouped_shape(self, shape: Shape, items: list[Item], keys: list[str], place: Parsed) -> Shape:
        names = tuple(i.alias or i.name or call_name(i.text) for i in items)
        # A window of event time is event time, under its own name too.
        marked = [k for k in keys if is_event_time(k, shape.event_time, shape.unmarked)]
        marks = shape.event_time | {call_name(k) for k in marked} - {""}
        event_time = {
            n.casefold()
            for n, i in zip(names, items, strict=True)
            if is_event_time(i.text, marks, shape.unmarked)
        }
        # One of a window's columns tells it from others.
        told = [k for k in keys if column(k) not in windows.COLUMNS]
        out = [
            next((n for n, i in zip(names, items, strict=True) if n and carries(i.text, key)), None)
            for key in told
        ]
        if len(told) < len(keys):
            shown = (n for n, i in zip(names, items, strict=True) if column(i.text) in windows.COLUMNS)
            out.append(next(shown, None))
        window = next((w for k in keys for w in functions.WINDOWS if call_name(k) == w), "")
        op = Op(
            "aggregate",
            place.span,
            watermarked=bool(marked),
            window=window,
            only_window=len(keys) == 1,
            distinct=any(functions.has_distinct(i.text) for i in items),
        )
        found = [o for o in out if o]
        return replace(
            shape.then(op),
            fields=(),
            columns=names if all(names) else None,
            event_time=frozenset(event_time),
            keys=tuple(found) if len(found) == len(out) and not self.left else None,
            unmarked=frozenset(),
        )
