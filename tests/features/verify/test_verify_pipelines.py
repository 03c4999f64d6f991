"""VERIFY over pipelines of many kinds: equal after they were killed and resumed, and not after a row of a sink
was taken out, put in or changed by hand.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Console

from streamsql.errors import InputFault

ROOMS = ("streamsql/features/verify/", "streamsql/runtime/", "streamsql/plan/", "streamsql/connectors/")

HOUR = "WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES"
# The names of sinks, and the queries that write into them; a live table where there is no sink of the name.
PIPELINES = {
    "copies": "SELECT * FROM s",
    "projected": "SELECT upper(word) AS w, n * 2 AS m FROM s WHERE n <> 2",
    "split": "SELECT word, letter FROM s LATERAL VIEW explode(split(word, '')) AS letter",
    "both": "SELECT word, n FROM s UNION ALL SELECT word, n FROM r",
    "named": "SELECT s.word, name FROM s JOIN names ON s.n = names.id",
    "counted": "SELECT word, count(*) AS c, avg(n * 0.1D) AS mean FROM s GROUP BY word",
    "total": "OUTPUT MODE COMPLETE SELECT count(*) AS c, sum(n) AS total FROM s",
    "often": "SELECT word, count(*) AS c FROM s GROUP BY word HAVING count(*) > 1",
    "windows": "OUTPUT MODE UPDATE SELECT window.start AS since, sum(n) AS n FROM s "
    "GROUP BY window(at, '5 minutes')",
    "final": "OUTPUT MODE APPEND SELECT window.start AS since, word, sum(n) AS n FROM s "
    "GROUP BY window(at, '5 minutes'), word",
    "sliding": "OUTPUT MODE APPEND SELECT window.end AS until, count(*) AS c FROM s "
    "GROUP BY window(at, '10 minutes', '5 minutes')",
    "visits": "OUTPUT MODE APPEND SELECT word, session_window.start AS since, count(*) AS c FROM s "
    "GROUP BY session_window(at, '5 minutes'), word",
    "pairs": "SELECT s.word, s.n AS one, r.n AS other FROM s JOIN r ON s.word = r.word",
    "perhaps": "SELECT s.word, r.n FROM s LEFT JOIN r ON s.word = r.word "
    "AND r.at BETWEEN s.at AND s.at + INTERVAL 5 MINUTES",
    "distinct_words": "SELECT DISTINCT ON (word, at) word, at FROM s",
    "read_files": "SELECT word, max(n) AS most FROM files GROUP BY word",
    "numbered": "SELECT value % 3 AS third, timestamp FROM numbers",
    "ticking": "OUTPUT MODE COMPLETE SELECT count(*) AS c, max(timestamp) AS last FROM ticks",
    "written": "SELECT word, n FROM s",
    "by_word": "SELECT word, n FROM s",
    "database": "OUTPUT MODE UPDATE SELECT word, sum(n) AS total FROM s GROUP BY word",
    "added": "SELECT word, n FROM s",
}


@pytest.mark.slow
def test_pipelines_are_equal_after_a_kill_and_a_resume(
    console: Console, tmp_path: Path, packages: Callable[[str], None]
) -> None:
    packages("sqlite")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("cat,1\ndog,2\ncat,5\n")
    # Each of the many plans would be compiled for a few rows.
    database = f"url 'jdbc:sqlite:{tmp_path}/db'"
    console.run(
        f"""SET spark.sql.codegen.wholeStage = false;
        CREATE STREAM s (word STRING, n INT, at TIMESTAMP) USING values {HOUR};
        CREATE STREAM r (word STRING, n INT, at TIMESTAMP) USING values {HOUR};
        CREATE STREAM files (word STRING, n INT) USING csv OPTIONS (path '{tmp_path}/in');
        CREATE STREAM numbers USING `rate-micro-batch` OPTIONS (rowsPerBatch 5);
        CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond 3);
        CREATE TEMPORARY VIEW names AS SELECT 1 AS id, 'one' AS name;
        CREATE SINK written USING json OPTIONS (path '{tmp_path}/written');
        CREATE SINK by_word USING parquet PARTITIONED BY (word) OPTIONS (path '{tmp_path}/by_word');
        CREATE SINK database USING jdbc KEY (word) OPTIONS ({database}, table 'totals');
        CREATE SINK added USING jdbc OPTIONS ({database}, table 'added');
        INSERT INTO s VALUES ('cat', 1, '2024-05-01 12:01:00'), ('dog', 2, '2024-05-01 12:03:00');
        INSERT INTO r VALUES ('cat', 7, '2024-05-01 12:04:00');"""
    )
    for name, query in PIPELINES.items():
        known = name in console.session.catalog.sinks
        mode, _, select = query.partition("SELECT")
        head = f"INSERT INTO {name} {mode}" if known else f"CREATE LIVE TABLE {name} {mode}"
        console.run(f"{head} TRIGGER AVAILABLE NOW {'' if known else 'AS'} SELECT{select};")
    console.run("AWAIT QUERY ALL;")
    for commits in console.session.parts.config.folder.rglob("checkpoint/commits"):
        last = max((f for f in commits.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))
        last.unlink()  # as if the console was killed before it was written
    console.run(
        """INSERT INTO s VALUES ('cat', 3, '2024-05-01 12:02:00');
        ADVANCE STREAM s TO TIMESTAMP '2024-05-02 12:00:00'; ADVANCE STREAM r TO TIMESTAMP '2024-05-02 12:00:00';
        START QUERY ALL; AWAIT QUERY ALL;"""
    )
    wrong = {}
    for name in PIPELINES:
        try:
            console.run(f"VERIFY QUERY {name};")
        except InputFault as fault:
            wrong[name] = f"{fault.message}\n{fault.detail}"
    assert wrong == {}
    _change_by_hand(console, tmp_path)


def _change_by_hand(console: Console, folder: Path) -> None:
    def differs(query: str, text: str) -> None:
        with pytest.raises(InputFault, match=text):
            console.run(f"VERIFY QUERY {query};")

    database = sqlite3.connect(folder / "db", isolation_level=None)
    database.execute("UPDATE totals SET total = 5 WHERE word = 'cat'")
    loaded: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        load = lambda spark, package, cancel: loaded.append(package.name)  # noqa: E731
        patch.setattr(console.session.parts.packages, "load", load)
        differs("database", "database has 2 rows, 1 missing and 1 too many")
    assert loaded == ["sqlite"]  # as a console needs it that has not started the query
    database.execute("DELETE FROM totals WHERE word = 'cat'")
    differs("database", "database has 1 row, 1 missing and 0 too many")
    database.execute("INSERT INTO added VALUES ('cow', 9)")
    differs("added", "added has 4 rows, 0 missing and 1 too many")
    file = next(f for f in (folder / "written").glob("part-*.json") if f.stat().st_size)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    changed = "".join(json.dumps({**line, "n": 8}) + "\n" for line in lines)
    file.write_text(changed)
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    differs("written", rf"written has 3 rows, {len(lines)} missing and {len(lines)} too many")
