"""Live tables over live tables: each is computed again after micro-batches of its inputs.

One scheduler for a session. Tables that read each other are refreshed together, in a round: all from one
snapshot of the live tables that queries feed, the readers after what they read. So two ways to one table
always show it after the same micro-batch. A round begins when there are new rows and the round before is
over; the snapshots in between are skipped. Nothing here knows Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from graphlib import TopologicalSorter
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.guard import internal
from streamsql.runtime.embedded.snapshots import Snapshots
from streamsql.runtime.live.journal import LiveTables
from streamsql.runtime.live.refresher import Refresher

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import RowsAt

WORKERS = 3
"""Rounds that are computed side by side."""


class Refreshes:
    """The live tables over live tables that are kept up to date now. Safe on any thread."""

    def __init__(self, live: LiveTables, current: CurrentCatalog) -> None:
        self._live = live
        self._current = current
        self._changed = threading.Condition()
        self._members: dict[str, Refresher] = {}
        self._busy: set[str] = set()
        self._snapshots = Snapshots(self._arrived)
        self._last_rows: dict[str, Any] = {}
        self._followed: dict[str, dict[str, Any]] = {}
        self._tasks: SimpleQueue[Any] = SimpleQueue()
        self._threads = 0
        self._closed = False
        live.on_begin = self.notify

    @property
    def catalog(self) -> Catalog:
        return self._current.snapshot

    # ---- asked from outside ---------------------------------------------------------------

    def start(self, refresher: Refresher) -> None:
        """Keep a live table up to date from now on."""
        with self._changed:
            self._members[refresher.key] = refresher
            refresher.leave = lambda: self.stop(refresher)
            if not self._threads:
                self._threads = 1
                threading.Thread(target=self._run, daemon=True, name="refresh-scheduler").start()
            self._changed.notify_all()

    def stop(self, refresher: Refresher) -> None:
        """Refresh a table no longer; what is being computed is cancelled. Returns once that has ended."""
        with self._changed:
            refresher.end()
            self._leave(refresher)
            self._changed.wait_for(lambda: refresher.key not in self._busy, timeout=60)

    def refresh_again(self, refresher: Refresher) -> None:
        """Compute a table again, although its inputs are the same."""
        with self._changed:
            refresher.ask_again()
            self._changed.notify_all()

    def fail(self, refresher: Refresher, error: Exception) -> None:
        """End a table whose stage has failed."""
        with self._changed:
            refresher.fail(error)
            self._leave(refresher)

    def _leave(self, refresher: Refresher) -> None:
        """Follow a table no longer, which has ended."""
        if self._members.get(refresher.key) is refresher:
            del self._members[refresher.key]
        self._changed.notify_all()

    def settled(self, refresher: Refresher) -> bool:
        """Whether a table shows its inputs as they are, or waits for something that is not under way."""
        with self._changed:
            if not refresher.isActive:
                return True
            self._follow()
            members = self._component(refresher)
            if self._busy & {m.key for m in members}:
                return False
            return not self._due(members, self._roots(members))

    def empty_fault(self, refresher: Refresher) -> Any:
        """The error over no rows for which a table has no result yet: its own, or that of one below it that
        it waits for. None where it has a result, or waits for something else.
        """
        below, rows = self._members.get(refresher.waits_for), self._live.loaded(refresher.waits_for)
        of_input = self.empty_fault(below) if below else rows and rows.empty_fault
        return refresher.rows.empty_fault or of_input

    def wait(self, refresher: Refresher, seconds: float) -> None:
        """Wait that long, or until something has changed."""
        with self._changed:
            if refresher.isActive:
                self._changed.wait(seconds)

    def feeding(self, *names: str) -> frozenset[str]:
        """The streaming queries whose rows reach live tables, directly or through others."""
        return frozenset(q.name.casefold() for q in self.catalog.upstream(*names) if not q.inputs)

    def notify(self) -> None:
        """Check the live tables again: one was created again, or a definition may have changed."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Refresh nothing any more."""
        with self._changed:
            self._closed = True
            for member in list(self._members.values()):
                member.end()
            for _ in range(self._threads):
                self._tasks.put(None)
            self._changed.notify_all()

    # ---- the scheduler --------------------------------------------------------------------

    def _arrived(self, key: str) -> None:
        """New rows of a streaming query's live tables, on the thread that brings them."""
        with self._changed:
            for member in self._members.values():
                if key in member.roots:
                    member.rows_arrived()
            self._changed.notify_all()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                try:
                    self._follow()
                    for members in self._components():
                        if not self._busy & {m.key for m in members}:
                            self._dispatch(members)
                except Exception as error:  # it concerns all tables: none would be refreshed any more
                    self._fail(list(self._members.values()), error)
                self._changed.wait()

    def _dispatch(self, members: list[Refresher]) -> None:
        """Begin a round of tables that read each other, if it would compute something."""
        try:
            at = self._roots(members)
            if not self._due(members, dict(at)):
                return
            for member in members:
                member.dispatched()
        except Exception as error:
            return self._fail(members, error)
        self._busy |= {m.key for m in members}
        self._give_work(members, at)

    def _fail(self, members: list[Refresher], error: Exception) -> None:
        """End tables with an unexpected exception: the thread that met it goes on with the others."""
        fault = internal(error)
        for member in members:
            self.fail(member, fault)

    def _give_work(self, members: list[Refresher], at: dict[str, RowsAt]) -> None:
        self._tasks.put((members, at))
        if self._threads <= WORKERS:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True, name="refresh").start()

    def _work(self) -> None:
        while task := self._tasks.get():  # None once closed
            members, at = task
            try:
                self._round(members, at)
            except Exception as error:
                self._fail(members, error)
            finally:
                with self._changed:
                    self._busy -= {m.key for m in members}
                    self._changed.notify_all()

    def _round(self, members: list[Refresher], at: dict[str, RowsAt]) -> None:
        late = set[str]()
        for member in members:
            with self._changed:
                values = self._inputs(member, at, late) if member.isActive else None
            if values is None:
                late.add(member.key)
            elif not member.refresh(values, begun=partial(self._begun, member, at)):
                late.add(member.key)
                with self._changed:
                    self._leave(member)
            at[member.key] = member.rows.now()

    # ---- what is there, and what is to be done ---------------------------------------------

    def _follow(self) -> None:
        """Follow the live tables that the members read and streaming queries feed."""
        groups = dict[str, dict[str, Any]]()
        for member in self._members.values():
            member.roots = frozenset(
                key for name in self._roots_below(member.inputs) if (key := self._key(name, groups))
            )
        for key, tables in groups.items():
            self._note_renewed(key, tables)
            self._snapshots.follow(key, tables)
        for key in self._followed.keys() - groups.keys():
            self._snapshots.leave(key)
        self._followed = groups

    def _note_renewed(self, key: str, tables: Mapping[str, Any]) -> None:
        """Remember which live tables began anew since they were followed."""
        for name, rows in tables.items():
            before, self._last_rows[name] = self._last_rows.get(name, rows), rows
            if before is not rows and before.query != rows.query:  # else they were loaded again
                for member in self._members.values():
                    if key in member.roots:
                        member.renewed[name] = datetime.now()

    def _begun(self, member: Refresher, at: Mapping[str, RowsAt]) -> bool:
        """Whether all that streaming queries feed below a member has had a micro-batch."""
        return all(at[name].batch >= 0 for name in self._roots_below(member.inputs) if name in at)

    def begun(self, *names: str) -> bool:
        """Whether all that streaming queries feed below live tables, or is one, has had a micro-batch."""
        rows = map(self._live.loaded, self._roots_below(names))
        return all(live.last_batch >= 0 for live in rows if live is not None)

    def _roots_below(self, names: Iterable[str]) -> Iterable[str]:
        ahead, seen = list(names), set[str]()
        while ahead:
            name = ahead.pop().casefold()
            if name in seen:
                continue
            seen.add(name)
            inputs = self._inputs_of(name)
            if inputs:
                ahead += inputs
            else:
                yield name

    def _inputs_of(self, table: str) -> tuple[str, ...]:
        """What a live table is computed from; empty for one that a query feeds with single rows."""
        feeding = self._current.snapshot.queries_into(table)
        return next((q.inputs for q in feeding if q.live_table and q.inputs), ())

    def _key(self, table: str, groups: dict[str, dict[str, Any]]) -> str:
        """The group of a live table: all that its query feeds. Puts it there."""
        rows = self._live.loaded(table)
        if rows is None:
            return ""
        queries = self._current.snapshot.queries_into(table)
        key = queries[0].name.casefold() if len(queries) == 1 else f"table {table}"
        groups.setdefault(key, {})[table] = rows
        return key

    def _components(self) -> list[list[Refresher]]:
        """The members in groups that read each other, each after what it reads."""
        left, groups = dict(self._members), list[list[Refresher]]()
        while left:
            group = self._component(next(iter(left.values())))
            groups.append(group)
            for member in group:
                left.pop(member.key, None)
        return groups

    def _component(self, member: Refresher) -> list[Refresher]:
        group, ahead = dict[str, Refresher](), [member]
        while ahead:
            reader = ahead.pop()
            if reader.key not in group:
                group[reader.key] = reader
                near = [m for m in self._members.values() if reader.key in m.input_keys]
                ahead += near + [self._members[k] for k in reader.input_keys if k in self._members]
        return _in_order(group)

    def _roots(self, members: list[Refresher]) -> dict[str, RowsAt]:
        """The newest snapshot of what streaming queries feed."""
        at: dict[str, RowsAt] = {}
        for key in frozenset[str]().union(*(m.roots for m in members)):
            at.update(self._snapshots.newest(key))
        return at

    def _due(self, members: list[Refresher], at: dict[str, RowsAt]) -> bool:
        """Whether a round would compute something. at: the snapshot; changed. Members that have taken it are
        told: a round may have taken it before its arrival was counted.
        """
        late, due = set[str](), set[str]()
        for member in members:
            values = self._inputs(member, at, late)
            if values is None:
                late.add(member.key)
            elif not member.is_at(values) or due & member.input_keys:
                due.add(member.key)
            elif member.input_keys <= at.keys() - late:
                member.up_to_date()
            at[member.key] = member.rows.now()
        return bool(due)

    def _inputs(self, member: Refresher, at: Mapping[str, RowsAt], late: set[str]) -> Any:
        """The rows of a member's inputs, all after the same micro-batches; None when it has to wait, as for
        one that has no result yet, and for which in its waits_for. late: those whose rows are not of
        this snapshot; those that nobody refreshes are added.
        """
        values: dict[str, RowsAt] = {}
        for key in member.input_keys:
            if key not in at and self._inputs_of(key):
                late.add(key)
            rows = self._live.loaded(key)
            if rows is not None and (rows.empty_fault or (rows.last_batch < 0 and self._inputs_of(key))):
                member.waits_for = key
                return None
            if key in at:
                values[key] = at[key]
            elif rows is not None and self._inputs_of(key):
                values[key] = rows.now()
            else:
                member.waits_for = key
                return None
        for key in member.input_keys & late:
            others = (self.feeding(k) for k in member.input_keys if k != key)
            if any(self.feeding(key) & other for other in others):
                member.waits_for = key
                return None
        member.waits_for = ""
        return values


def _in_order(group: dict[str, Refresher]) -> list[Refresher]:
    """Each after those that it reads."""
    reads = {key: member.input_keys & group.keys() for key, member in group.items()}
    return [group[key] for key in TopologicalSorter(reads).static_order()]
