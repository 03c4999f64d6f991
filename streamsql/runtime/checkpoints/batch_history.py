"""Saves the number of rows and the duration of completed micro-batches, which Spark's log does not have, and
the account of their query.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamsql.connectors.base import Places
from streamsql.definitions import is_staged
from streamsql.errors import EngineFault
from streamsql.query_facts import Account, Amount
from streamsql.runtime.workspace.owned_folders import claim, private
from streamsql.runtime.workspace.workspace_files import BATCHES

RETAINED_BATCHES = 1000
"""The number of micro-batches kept of each query; Spark's own log keeps 100 by default."""
FILE = "batches.jsonl"

Key = tuple[str, int]
Numbers = tuple[int, int | None]


class BatchHistory:
    """The rows and milliseconds of micro-batches, by (id of the query's checkpoint, number). accounts: by the
    id of the checkpoint, the newest last, the account of its query up to a micro-batch. file: where they are
    saved; None: only in memory.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.done: dict[Key, Numbers] = {}
        self.accounts: dict[str, tuple[int, Account]] = {}
        self._lines = 0
        self._lock = threading.Lock()  # for the data in memory: held only for a moment
        self._load()

    def _load(self) -> None:
        try:
            lines = self.file.read_text("utf-8").splitlines() if self.file else []
        except (OSError, ValueError):
            return
        self._lines = len(lines)
        for line in lines:
            try:
                entry = json.loads(line)
                if entry.get("version", 0) > BATCHES:
                    self.file = None  # of a later version: nothing is added to it
                    continue
                self._take((entry["id"], entry["batch"]), (entry["rows"], entry["ms"]))
                if "account" in entry:
                    self._close(entry["id"], entry["upto"], Account.load(entry["account"]))
            except (ValueError, KeyError, TypeError, AttributeError):
                pass  # an incomplete line, written when the console was killed

    def _take(self, key: Key, numbers: Numbers) -> None:
        self.done.pop(key, None)  # a retried micro-batch becomes the newest again
        self.done[key] = numbers
        if len(self.done) > RETAINED_BATCHES:
            del self.done[next(iter(self.done))]

    def _close(self, checkpoint: str, upto: int, account: Account) -> None:
        self.accounts.pop(checkpoint, None)  # the newest is the last
        self.accounts[checkpoint] = (upto, account)

    def account(self, checkpoint: str = "", committed: int = -1) -> Account:
        """The account of the query since a checkpoint began. checkpoint: its id; "" for the newest.
        committed: the newest micro-batch that has completed: where its report is missing, the account is
        uncertain.
        """
        with self._lock:
            accounts, done = dict(self.accounts), dict(self.done)
        ids = [*(id for id, _ in done), *accounts]
        checkpoint = checkpoint or (ids[-1] if ids else "")
        if checkpoint in accounts:
            upto, account = accounts[checkpoint]
            return account.uncertain() if committed > upto else account
        rows = [n for (id, _), (n, _) in done.items() if id == checkpoint]  # of a version without accounts
        account = Account(read=Amount(sum(rows)))
        return account.uncertain() if rows or committed >= 0 else account

    def add(self, report: dict[str, Any], account: Account) -> Key:
        """Add a progress report, and the account with it. Writes nothing, so that it is quick. Returns the
        key for `write`.
        """
        key = (str(report.get("id", "")), int(report.get("batchId", -1)))
        numbers = (report.get("numInputRows", 0), report.get("durationMs", {}).get("triggerExecution"))
        with self._lock:
            self._take(key, numbers)
            upto = self.accounts.get(key[0], (-1, account))[0]
            ran = "addBatch" in report.get("durationMs", {})  # else there was nothing to read
            self._close(key[0], max(upto, key[1]) if ran else upto, account)
        return key

    def write(self, key: Key) -> None:
        """Append an added micro-batch to the file. Not for several threads."""
        if self.file is not None:
            with suppress(OSError):  # the folder does not exist, or is full: the numbers are kept in memory
                self._append(self.file, key)

    def _append(self, file: Path, newest: Key) -> None:
        with self._lock:
            done, accounts = dict(self.done), dict(self.accounts)
        if self._lines < 2 * RETAINED_BATCHES:
            if newest in done:
                with open(file, "a", encoding="utf-8", opener=private) as out:
                    out.write(_line(newest, done[newest], accounts.get(newest[0])))
                self._lines += 1
            return
        part = file.with_name(FILE + ".part")
        with open(part, "w", encoding="utf-8", opener=private) as out:
            newest_of = {id: (id, batch) for id, batch in done}
            for key, numbers in done.items():
                last = accounts.get(key[0]) if newest_of[key[0]] == key else None
                out.write(_line(key, numbers, last))
        part.replace(file)
        self._lines = len(done)


def _line(key: Key, numbers: Numbers, account: tuple[int, Account] | None) -> str:
    rows, milliseconds = numbers
    entry = {"version": BATCHES, "id": key[0], "batch": key[1], "rows": rows, "ms": milliseconds}
    closed = {"upto": account[0], "account": account[1].saved()} if account else {}
    return json.dumps(entry | closed) + "\n"


def history_file(places: Places, query: str) -> Path:
    """The file with the micro-batches of a query; a staged change has one of its own."""
    return Path(places.query(query), f"staged-{FILE}" if is_staged(query) else FILE)


class BatchHistories:
    """The micro-batches of all queries. places: the console's folders; lasting: whether they outlive it.

    Reports arrive on Spark's callback thread, which must not wait for a disk: a thread of its own writes them
    in the order of arrival.
    """

    def __init__(self, places: Places, *, lasting: bool) -> None:
        self.places = places
        self.lasting = lasting
        self._all: dict[str, BatchHistory] = {}
        self._writer = ThreadPoolExecutor(1, "batch-history")

    def of(self, query: str) -> BatchHistory:
        """The micro-batches of a query; of one that another console runs, their current state."""
        file = history_file(self.places, query) if self.lasting else None
        return self._all.get(query.casefold()) or BatchHistory(file)

    def follow(
        self, query: str, checkpoint: str = "", committed: int = -1
    ) -> tuple[Account, Callable[[dict[str, Any], Account], object]]:
        """Save the later reports of a query. checkpoint: its id; committed: its newest micro-batch when the
        run began, -1 for none. Returns the account of the runs before, and the function to call with each
        report and the account after it.
        """
        history = self._all.setdefault(query.casefold(), self.of(query))
        try:
            if history.file is not None:
                claim(history.file.parent)
        except (OSError, EngineFault):
            history.file = None

        def add(report: dict[str, Any], account: Account) -> None:
            key = history.add(report, account)
            if history.file is not None:
                self._writer.submit(history.write, key)

        return history.account(checkpoint, committed), add

    def forget(self, query: str) -> None:
        """Remove a dropped query; its file is removed with its folder."""
        history = self._all.pop(query.casefold(), None)
        if history is not None:
            history.file = None
            self.flush()

    def flush(self) -> None:
        """Wait until all reports are written."""
        self._writer.submit(lambda: None).result()
