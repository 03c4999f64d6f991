"""A console with live tables over live tables, one in stages, and INSERTs of their changes is killed: the next one
goes on, and no row or change is lost or there twice. A long run (STREAMSQL_KILLS=10) has three kills.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from pathlib import Path

from pipeline import LONG, Console, wait_for_end

ROOMS = ("streamsql/runtime/", "streamsql/plan/")

DEFINITIONS = """
CREATE STREAM clicks (id INT, user STRING) USING json OPTIONS (path 'clicks', maxFilesPerTrigger '1');
CREATE LIVE TABLE counts AS SELECT user, count(*) AS n, sum(id) AS total FROM clicks GROUP BY user;
CREATE LIVE TABLE sizes AS SELECT n % 3 AS size, count(*) AS users FROM counts GROUP BY n % 3;
CREATE LIVE TABLE newest AS SELECT user, id FROM
  (SELECT *, row_number() OVER (PARTITION BY user ORDER BY id DESC) AS rn FROM clicks) WHERE rn <= 2;
CREATE SINK best USING jdbc KEY (user) OPTIONS (url 'jdbc:sqlite:best.db', table 'best');
CREATE SINK history USING json OPTIONS (path 'history');
CREATE SINK lowest USING jdbc KEY (user) OPTIONS (url 'jdbc:sqlite:best.db', table 'lowest');
INSERT INTO best SELECT user, n, total FROM counts ORDER BY total DESC, user LIMIT 3;
INSERT INTO history SELECT size, users FROM sizes;
INSERT INTO lowest SELECT user, n, total FROM
  (SELECT *, rank() OVER (ORDER BY total) AS place
   FROM (SELECT user, count(*) AS n, sum(id) AS total FROM clicks GROUP BY user)) WHERE place <= 2;
"""
RESULT = """AWAIT QUERY ALL IDLE;
SELECT size, users FROM sizes;
SELECT user, id AS newest FROM newest;"""
USERS = ("ann", "bob", "cid", "dan", "eve")


class Clicks:
    """The input, and what is to be computed from it: in Python."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.rows: list[tuple[int, str]] = []
        folder.mkdir()

    def feed(self, files: int = 3) -> None:
        for _ in range(files):
            new = [(len(self.rows) + n, self.random.choice(USERS)) for n in range(7)]
            self.rows += new
            part = self.folder.parent / "clicks.part"
            part.write_text("".join(json.dumps({"id": i, "user": u}) + "\n" for i, u in new))
            part.rename(self.folder / f"{len(self.rows):06}.json")

    def counts(self) -> Counter[str]:
        return Counter(user for _, user in self.rows)

    def sizes(self) -> Counter[tuple[object, ...]]:
        return Counter(Counter(n % 3 for n in self.counts().values()).items())

    def newest(self) -> Counter[tuple[object, ...]]:
        ids = {user: sorted(i for i, u in self.rows if u == user)[-2:] for user in self.counts()}
        return Counter((user, i) for user in ids for i in ids[user])

    def totals(self) -> list[tuple[str, int, int]]:
        return [(u, n, sum(i for i, v in self.rows if v == u)) for u, n in self.counts().items()]

    def best(self) -> list[tuple[object, ...]]:
        return sorted(sorted(self.totals(), key=lambda row: (-row[2], row[0]))[:3])

    def lowest(self) -> list[tuple[object, ...]]:
        second = sorted(row[2] for row in self.totals())[1]
        return sorted(row for row in self.totals() if row[2] <= second)


def stored(folder: Path, table: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(folder / "best.db", timeout=30) as connection:
        return sorted(connection.execute(f"SELECT user, n, total FROM {table}"))


def history(folder: Path) -> Counter[tuple[object, ...]]:
    """The rows that all changes together give; each version has one folder."""
    rows = Counter[tuple[object, ...]]()
    versions = sorted((folder / "history").glob("batch=*"), key=lambda p: int(p.name.rpartition("-")[2]))
    for version in versions:
        for file in version.glob("*.json"):
            for change in map(json.loads, file.read_text().splitlines()):
                rows[change["size"], change["users"]] += 1 if change["_op"] in ("+I", "+U") else -1
                assert min(rows.values()) >= 0, f"{change} in {version}: that row was not there"
    return +rows


def test_refreshes_and_changes_go_on_after_a_kill(tmp_path: Path) -> None:
    clicks = Clicks(tmp_path / "clicks", 7)
    clicks.feed()
    console = Console(tmp_path, DEFINITIONS)
    console.until(lambda: console.said("query lowest started"))
    moments = ("best", "lowest", "history") if LONG else ("history",)
    for number, moment in enumerate(moments):
        if number:
            console = Console(tmp_path, "SHOW QUERIES; START QUERY ALL;")
            console.until(lambda console=console: console.said("started: counts"))
        clicks.feed()
        # A difference is being written: its rows are noted, and not yet known to be in the sink.
        written = tmp_path / "w" / "run" / "queries" / moment / "current" / "written"
        console.until(lambda written=written: any(written.glob("*.next")), 0.002)
        jvm = console.jvm()
        console.kill("both", jvm)
        wait_for_end(jvm)
    console = Console(tmp_path, RESULT, "--resume")
    console.until(lambda: len(console.rows("newest")) == sum(clicks.newest().values()))
    assert "warning" not in console.words
    assert Counter((r["size"], r["users"]) for r in console.rows("size")) == clicks.sizes()
    assert Counter((r["user"], r["newest"]) for r in console.rows("newest")) == clicks.newest()
    assert stored(tmp_path, "best") == clicks.best()
    assert stored(tmp_path, "lowest") == clicks.lowest()
    assert history(tmp_path) == clicks.sizes()
    console.kill("both", console.jvm())
