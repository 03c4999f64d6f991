"""Consistent snapshots of live tables, and live tables that are computed from them. EXPLAIN PYSPARK prints
these classes into its programs, so they stand alone.
"""

import threading

from streamsql.runtime.embedded.carried_values import to_arrow


class Snapshots:
    """The newest rows of live tables, in groups: the tables of a group are fed by one query, and their
    rows are always those after the same micro-batch.

    changed: called with the key of a group that has new rows, on the thread that feeds it.
    """

    def __init__(self, changed):
        self._changed = changed
        self._lock = threading.Lock()
        self._groups = {}
        self._cuts = {}
        self._tellers = {}

    def follow(self, key, tables):
        """Follow a group of live tables: {name: LiveRows}, in place of those followed under that key."""
        with self._lock:
            before = list(self._groups.get(key, {}).values())
            self._groups[key] = dict(tables)
            tell = self._tellers.setdefault(key, self._teller(key))
        for rows in tables.values():
            if not any(rows is old for old in before):
                rows.watch(tell)
        for old in before:
            if not any(rows is old for rows in tables.values()):
                old.unwatch(tell)
        self.take(key)

    def leave(self, key):
        """Follow a group no longer."""
        with self._lock:
            before = self._groups.pop(key, {})
            self._cuts.pop(key, None)
        for rows in before.values():
            rows.unwatch(self._tellers[key])

    def newest(self, key):
        """{name: RowsAt} of a group; empty before all its tables have been seen after one micro-batch."""
        with self._lock:
            return self._cuts.get(key, {})

    def take(self, key):
        """Look whether all tables of a group are at the same micro-batch, and have new rows."""
        with self._lock:
            tables = self._groups.get(key, {})
            cut = {name: rows.now() for name, rows in tables.items()}
            if not cut or len({at.batch for at in cut.values()}) > 1:
                return
            before = self._cuts.get(key, {})
            same = {
                name: before[name]
                for name, at in cut.items()
                if name in before and before[name].table is at.table and before[name].schema == at.schema
            }
            news = same.keys() != cut.keys()
            if news:
                self._cuts[key] = cut | same
        if news:
            self._changed(key)

    def _teller(self, key):
        return lambda before, after, new: self.take(key)


class Refreshing:
    """Live tables over live tables: each is computed again when the rows of its inputs have changed, all
    from one snapshot of the live tables that queries feed.
    """

    def __init__(self):
        self._wake = threading.Event()
        self._snapshots = Snapshots(lambda key: self._wake.set())
        self._queries = []
        self._steps = []

    def follow(self, query, *tables):
        """Follow the live tables that a query feeds."""
        key = len(self._queries)
        self._queries.append(query)
        self._snapshots.follow(key, {id(rows): rows for rows in tables})

    def add(self, rows, compute, *inputs):
        """Keep rows, a LiveRows: compute gives their DataFrame from the RowsAt of each input."""
        self._steps.append((rows, compute, inputs))

    def run(self):
        """Refresh until the queries have ended and their last rows are taken. Raises what a query raised."""
        used: dict = {}
        while True:
            over = not any(query.isActive for query in self._queries)
            self._wake.clear()
            if not self._refresh(used, over):
                if over:
                    break
                self._wake.wait(1)
        for query in self._queries:
            query.awaitTermination()

    def _refresh(self, used, over):
        at = {}
        for key in range(len(self._queries)):
            at.update(self._snapshots.newest(key))
        begun, done = over or all(rows.batch >= 0 for rows in at.values()), 0
        for number, (rows, compute, inputs) in enumerate(self._steps):
            values = [at.get(id(source)) for source in inputs]
            if None not in values and used.get(number) != values:
                try:
                    result = to_arrow(compute(*values))
                except Exception:
                    if begun:
                        raise
                    continue  # such as a division by count(*), which is 0 before the first rows
                rows.take(result, rows.last_batch + 1)
                used[number] = values
                done += 1
            if number in used:
                at[id(rows)] = rows.now()
        return done
