"""PROMOTE of a query into a table of a real database: the table then has the rows of the changed query."""

# ruff: noqa: F811  fixtures are arguments of the tests
from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from scripts import command
from test_change import IDLE, refusal, said
from test_jdbc import PASSWORD, Database, database, mariadb, postgresql  # noqa: F401  fixtures
from test_reopened import Open, opened  # noqa: F401  the fixture

from streamsql.connectors.packages import PACKAGES
from streamsql.runtime.engine.java_classes import java_class
from streamsql.runtime.engine.package_loader import use_added_jars

ROOMS = ("streamsql/features/change/", "streamsql/runtime/", "streamsql/connectors/")

TYPED = (
    "CREATE STREAM s (k STRING, g INT, d DECIMAL(20, 5), at TIMESTAMP, day DATE, yes BOOLEAN, txt STRING,"
    " bytes BINARY, x DOUBLE, n BIGINT) USING values;"
)
VALUES = ("d", "at", "day", "yes", "txt", "bytes", "x")
COLUMNS = "k, g, {} AS d, {} AS at, {} AS day, {} AS yes, {} AS txt, {} AS bytes, {} AS x, sum(n) AS total"
OLD = f"SELECT {COLUMNS.format(*(f'max({c})' for c in VALUES))} FROM s GROUP BY k, g"
NEW = (
    f"SELECT {COLUMNS.format(*(f'min({c})' for c in VALUES))} FROM s WHERE n > 2 AND coalesce(k, '') <> 'b'"
    " GROUP BY k, g"
)


def typed_rows(rng: random.Random, count: int) -> str:
    """INSERT of random rows, with NULL among keys and values."""

    def one_of(*values: str) -> str:
        return rng.choice((*values, "NULL"))

    rows = []
    for _ in range(count):
        number = rng.randint(-99999, 99999)
        values = (
            one_of("'a'", "'b'", "'A'", "'Zürich 東京'", "'it\\'s'"), one_of("1", "2"),
            one_of(f"{number / 1000}"), one_of(f"TIMESTAMP '2024-03-{rng.randint(1, 31)} 02:30:00.{rng.randint(0, 999999):06}'"),
            one_of(f"DATE '19{rng.randint(10, 99)}-02-{rng.randint(1, 28)}'"), one_of("true", "false"),
            one_of("''", "'x  '", "'\\\\'", f"'{number}'"), one_of(f"X'{rng.randint(0, 255):02X}00'"),
            one_of("0.1", "-2.5E300", f"{number}.25"), str(rng.randint(0, 9)),
        )  # fmt: skip
        rows.append(f"({', '.join(values)})")
    return f"INSERT INTO s VALUES {', '.join(rows)};"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace keeps no password."""
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)


LOSSY = {
    "mysql": "its driver cuts the times of the server here, which is MariaDB, and the sink says so",
    "sqlite": "it keeps a DECIMAL as a number of 64 bits",
}


class Table:
    """The table that the sink `out` writes into, as Spark reads it."""

    def __init__(self, base: Database, key: str, name: str = "t") -> None:
        self.base, self.name = base, name
        self.sink = base.sink("out", name, key).replace(PASSWORD, "${env:SHOP_PASSWORD}")

    def differing(self, console: Any, query: str) -> list[tuple[Any, ...]]:
        """The rows that only the table or only the batch of a query has."""
        reader = self.base.options + f", dbtable '{self.name}', driver '{PACKAGES[self.base.name].probe}'"
        if self.base.name == "mariadb":  # Spark knows the dialect by the URL of MySQL
            reader = reader.replace("jdbc:mariadb:", "jdbc:mysql:").replace(
                "/shop'", "/shop?permitMysqlScheme'"
            )
        console.run(f"DROP VIEW IF EXISTS there; CREATE TEMPORARY VIEW there USING jdbc OPTIONS ({reader});")
        batch = f"SELECT * FROM ({query})"
        columns = [row[:2] for row in console.rows(f"DESCRIBE {query};")]
        listed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns)
        table = f"SELECT {listed} FROM there"
        text = f"SELECT 'too many', * FROM ({table} EXCEPT ALL {batch}) UNION ALL SELECT 'missing', * FROM ({batch} EXCEPT ALL {table});"
        return console.rows(text)


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("seed", [1, 2])
def test_the_table_has_the_rows_of_the_change(opened: Open, database: Database, seed: int) -> None:
    if database.name in LOSSY:
        pytest.skip(LOSSY[database.name])
    console, rng, table = opened(), random.Random(seed), Table(database, "k, g")
    console.run(TYPED + table.sink + typed_rows(rng, 30) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    assert table.differing(console, OLD) == []
    assert table.differing(console, NEW) != []
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW};" + typed_rows(rng, 5) + IDLE)
    assert table.differing(console, OLD) == []
    promoted = said(console, "PROMOTE q;")
    assert promoted == "q is promoted: generation 2 is in use; ROLLBACK q; brings generation 1 back"
    assert table.differing(console, NEW) == []
    console.run(typed_rows(rng, 20) + IDLE)
    assert table.differing(console, NEW) == []
    again = opened()
    again.run("START QUERY ALL;" + typed_rows(rng, 5) + IDLE)
    assert table.differing(again, NEW) == []
    assert "out gets the difference by key" in said(again, "ROLLBACK q;")
    assert table.differing(again, OLD) == []
    again.run(typed_rows(rng, 5) + IDLE)
    assert table.differing(again, OLD) == []


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_table_that_lacks_a_column_is_altered_before(opened: Open, database: Database) -> None:
    """PROMOTE says what to type in the database, and does nothing; after that it goes through."""
    console, table = opened(), Table(database, "k")
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
        + table.sink
        + "INSERT INTO out AS QUERY q SELECT k, max(n) AS most FROM s GROUP BY k;"
        + IDLE
    )
    change = (
        "SELECT k, avg(n) AS most, sum(n) AS total, max(TIMESTAMP '2024-01-01 10:00:00.25') AS at, max(k) AS txt"
        " FROM s WHERE n < 3 GROUP BY k"
    )
    if database.name == "mysql":
        change = change.replace("max(TIMESTAMP '2024-01-01 10:00:00.25')", "max(DATE '2024-01-01')")
    of_type = "; most is DOUBLE, and INT in the table"
    if database.name == "duckdb":  # it alters no type of a table with an index
        change, of_type = change.replace("avg(n)", "min(n)"), ""
    console.run(f"INSERT INTO out STAGED AS QUERY q {change};" + IDLE)
    fault = refusal(console, "PROMOTE q;")
    assert (fault.code, fault.message) == (
        "WRONG_COLUMNS",
        "the table t does not take the rows of the change of q",
    )
    assert fault.detail == "it has no column total, at, txt" + of_type
    assert [row[:2] for row in console.rows("SHOW STAGED;")] == [("q", "query")]
    console.run("INSERT INTO s VALUES ('c', 7);" + IDLE)
    assert sorted(database.query("SELECT k, most FROM t")) == [("a", 3), ("b", 2), ("c", 7)]
    first, *statements = fault.hint.splitlines()
    assert first == "in the database:"
    for statement in statements:
        database.query(statement)
    console.run("INSERT INTO s VALUES ('a', 1);" + IDLE)
    assert said(console, "PROMOTE q;").startswith("q is promoted")
    assert table.differing(console, change) == []


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_key_keeps_its_type(opened: Open, database: Database) -> None:
    console, table = opened(), Table(database, "k")
    console.run(
        "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('1', 1), ('x', 2);"
        + table.sink
        + "INSERT INTO out AS QUERY q SELECT k, max(n) AS most FROM s GROUP BY k;"
        + IDLE
        + "INSERT INTO out STAGED AS QUERY q SELECT n AS k, max(n) AS most FROM s GROUP BY n;"
        + IDLE
    )
    fault = refusal(console, "PROMOTE q;")
    assert fault.code == "WRONG_TYPE"
    assert fault.hint == "k keeps its type: CAST(k AS STRING) AS k in the change"


REFUSES = {
    "postgresql": (
        "CREATE OR REPLACE FUNCTION no() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$ LANGUAGE plpgsql;"
        "CREATE TRIGGER guard BEFORE INSERT ON t FOR EACH ROW WHEN (new.k = 'c') EXECUTE FUNCTION no()",
        "DROP TRIGGER guard ON t",
    ),
    "mariadb": (
        "CREATE TRIGGER guard BEFORE INSERT ON t FOR EACH ROW IF new.k = 'c' THEN SIGNAL SQLSTATE '45000'"
        " SET MESSAGE_TEXT = 'not now'; END IF",
        "DROP TRIGGER guard",
    ),
    "sqlite": (
        "CREATE TRIGGER guard BEFORE INSERT ON t WHEN new.k = 'c' BEGIN SELECT RAISE(ABORT, 'not now'); END",
        "DROP TRIGGER guard",
    ),
}
"""By the database, what lets it refuse a row, and what ends that."""
SIMPLE = "CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"
SUMS = "SELECT k, sum(n) AS total FROM s GROUP BY k"
RENAMED = (
    "SELECT if(k = 'a', 'c', k) AS k, sum(n) AS total FROM s WHERE k <> 'b' GROUP BY if(k = 'a', 'c', k)"
)


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("way", ["", "FROM BEGINNING", "FROM NOW", "ACCEPT CHANGES", "another change"])
def test_a_difference_that_the_database_refuses_is_written_by_the_next_start(
    opened: Open, database: Database, way: str
) -> None:
    """The deletes are not lost, however the query starts, or is changed once more."""
    if database.name not in REFUSES or (way and database.name == "mariadb"):
        pytest.skip("the others are enough")
    refuse, allow = REFUSES[database.name]
    console, table = opened(), Table(database, "k")
    console.run(SIMPLE + table.sink + f"INSERT INTO out AS QUERY q {SUMS};" + IDLE)
    console.run(f"INSERT INTO out STAGED AS QUERY q {RENAMED};" + IDLE)
    database.query(refuse)
    fault = refusal(console, "PROMOTE q;")
    assert "not now" in fault.message
    assert "q is in use as it was to be, and does not run" in fault.detail
    assert table.differing(console, SUMS) == [], "one transaction: the deletes are taken back, too"
    console = opened()
    assert console.warnings == []
    assert "not now" in refusal(console, f"START QUERY q {way if way != 'another change' else ''};").message
    if way == "another change":
        console.run(
            f"INSERT INTO out STAGED AS QUERY q {RENAMED.replace('sum(n)', 'max(n)')};"
            + "AWAIT QUERY q$staged IDLE;"
        )
        database.query(allow)
        console.run("PROMOTE q; START QUERY q;" + IDLE)
        assert table.differing(console, RENAMED.replace("sum(n)", "max(n)")) == []
        return
    database.query(allow)
    console.run(f"START QUERY q {way};" + IDLE)
    assert table.differing(console, RENAMED) == []
    console.run("INSERT INTO s VALUES ('d', 1);" + IDLE)
    assert table.differing(console, RENAMED) == []


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_change_without_rows_empties_the_table(opened: Open, database: Database) -> None:
    console, table = opened(), Table(database, "k")
    console.run(SIMPLE + table.sink + f"INSERT INTO out AS QUERY q {SUMS};" + IDLE)
    console.run(
        "INSERT INTO out STAGED AS QUERY q SELECT k, sum(n) AS total FROM s WHERE n > 9 GROUP BY k;" + IDLE
    )
    console.run("PROMOTE q;")
    assert database.query("SELECT k FROM t") == []


WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%streamsql_staging%'",
    "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%streamsql_staging%'"
    " AND state LIKE 'Waiting for%lock'",
}
LOCKS = {"postgresql": "LOCK TABLE t IN SHARE MODE", "mariadb": "LOCK TABLES t READ"}


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_console_is_killed_while_it_writes_the_difference(
    database: Database, tmp_path: Path, spark: Any
) -> None:
    """Its transaction waits for a lock of the table then. The next console writes the difference, once."""
    if database.name not in WAITING:
        pytest.skip("its locks are not waited for")
    table = Table(database, "k")
    line = [*command("-w", "w", cold=True), "-e"]

    def run(script: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*line, script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip

    made = run(SIMPLE + table.sink + f"INSERT INTO out AS QUERY q {SUMS}; {IDLE}"
               f"INSERT INTO out STAGED AS QUERY q {RENAMED}; {IDLE} STOP QUERY ALL;")  # fmt: skip
    assert made.wait(180) == 0, made.communicate()[0]
    use_added_jars(spark)
    login = spark._jvm.java.util.Properties()
    login.setProperty("user", "me")
    login.setProperty("password", PASSWORD)
    locker = java_class(spark, PACKAGES[database.name].probe)().connect(database.options.split("'")[1], login)
    locker.setAutoCommit(False)
    locker.createStatement().execute(LOCKS[database.name])
    killed = run("START QUERY ALL; AWAIT QUERY ALL IDLE; PROMOTE q; STOP QUERY ALL;")
    try:
        deadline = time.monotonic() + 180
        while database.query(WAITING[database.name]) == [(0,)]:
            assert killed.poll() is None, killed.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.1)  # how often one looks
    finally:
        killed.kill()
        killed.wait(30)
        locker.close()
    assert sorted(database.query("SELECT k, total FROM t")) == [("a", 4), ("b", 2)]
    again = run(
        "INSERT INTO s VALUES ('a', 10); START QUERY ALL; AWAIT QUERY ALL IDLE; SHOW STAGED; STOP QUERY ALL;"
    )
    assert again.wait(180) == 0, again.communicate()[0]
    assert sorted(database.query("SELECT k, total FROM t")) == [("c", 14)]


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_over_live_tables_the_table_has_the_rows_of_the_change_and_of_the_one_before(
    opened: Open, database: Database
) -> None:
    if database.name in LOSSY:
        pytest.skip(LOSSY[database.name])
    console, rng, table = opened(), random.Random(3), Table(database, "k, g")
    old = "SELECT * FROM groups WHERE total > 3"
    new = (
        "SELECT k, g, d, at, day, NOT yes AS yes, upper(txt) AS txt, bytes, x, total FROM groups WHERE g = 1"
    )
    console.run(TYPED + table.sink + f"CREATE LIVE TABLE groups AS {OLD};" + typed_rows(rng, 30))
    console.run(f"INSERT INTO out AS QUERY q {old};" + IDLE)
    assert table.differing(console, old) == []
    console.run(f"INSERT INTO out STAGED AS QUERY q {new};" + typed_rows(rng, 5) + IDLE)
    assert table.differing(console, old) == []
    for statement, query in (("PROMOTE q;", new), ("ROLLBACK q;", old), ("ROLLBACK q;", new)):
        console.run(statement + IDLE)
        assert table.differing(console, query) == []
        console.run(typed_rows(rng, 5) + IDLE)
        assert table.differing(console, query) == []
    again = opened()
    again.run("START QUERY ALL;" + typed_rows(rng, 5) + IDLE)
    assert table.differing(again, new) == []
