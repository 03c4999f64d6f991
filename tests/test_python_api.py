"""streamsql.connect: in this process on the Spark of the tests, and attached to a server."""

from __future__ import annotations

import asyncio
import datetime as dt
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import drop_tables

import streamsql
from streamsql.config.preferences import Preferences
from streamsql.results import Live, Snapshot
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.folder import Workspace
from streamsql.runtime.workspace.store import Store
from streamsql.server.listener import Server

ROOMS = ("streamsql/api/", "streamsql/server/", "examples/", "README.md")

COUNTS = """
CREATE STREAM words (word STRING, n INT) USING values;
CREATE LIVE TABLE counts AS SELECT word, sum(n) AS n FROM words GROUP BY word;
INSERT INTO words VALUES ('cat', 1), ('dog', 2);
AWAIT QUERY counts IDLE;
"""


@pytest.fixture(scope="module")
def served(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The workspace of a server in this process."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        workspace = Workspace(folder)
        config = Config(
            Settings.make("local[2]", {}), workspace.run, folder / "log", folder, store=Store(folder)
        )
        session = Session(config, spark.newSession())
        server = Server(session, folder, lambda line: None)
        with streamsql.connect(folder, config=False) as connection:
            connection.sql(COUNTS)
        yield folder
        session.close(0)
        server.close()
        workspace.close()


@pytest.fixture(scope="module")
def here(spark: Any) -> Iterator[streamsql.Connection]:
    with streamsql.connect(spark=spark.newSession(), config=False) as connection:
        connection.sql(COUNTS)
        yield connection
    drop_tables(spark)


@pytest.fixture(params=["here", "attached"])
def connection(
    request: pytest.FixtureRequest, served: Path, here: streamsql.Connection
) -> Iterator[streamsql.Connection]:
    """The same in this process and attached."""
    if request.param == "here":
        yield here
        return
    with streamsql.connect(served, config=False) as attached:
        yield attached


TYPES = """
SELECT TIMESTAMP '2024-10-27 00:30:00Z' AS t, TIMESTAMP_NTZ '2024-10-27 02:30:00' AS l, 1.5BD AS d,
  parse_json('{"a": [1]}') AS v, INTERVAL '1-3' YEAR TO MONTH AS m, map('k', DATE '2024-01-01') AS p,
  named_struct('x', 1, 'y', array(CAST(0.1 AS FLOAT), NULL)) AS s, CAST(NULL AS STRING) AS n
"""


def test_a_result_as_arrow_pandas_and_tuples(connection: streamsql.Connection) -> None:
    result = connection.sql(TYPES)
    assert result.columns == list("tldvmpsn")
    assert result.types[:4] == ["TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL(2, 1)", "VARIANT"]
    table = result.arrow()
    assert table.schema.field("t").type == pa.timestamp("us", "UTC")
    assert table.schema.field("v").type == pa.string()
    assert result.df()["l"][0] == dt.datetime(2024, 10, 27, 2, 30)
    assert pa.table(result) == table  # as other libraries take it
    (row,) = result.fetchall()
    moments = (dt.datetime(2024, 10, 27, 0, 30), dt.datetime(2024, 10, 27, 2, 30))
    assert row[:2] == moments
    assert row[3:] == (
        '{"a":[1]}',
        "INTERVAL '1-3' YEAR TO MONTH",
        {"k": dt.date(2024, 1, 1)},
        {"x": 1, "y": [0.1, None]},
        None,
    )
    assert (result.fetchone(), result.fetchall()) == (None, [])


def test_a_moment_that_the_clock_shows_twice_stays_the_same(connection: streamsql.Connection) -> None:
    script = "SET spark.sql.session.timeZone = Europe/Berlin; SELECT TIMESTAMP '2024-10-27 00:30:00Z' AS t"
    try:
        again = connection.sql(script.replace("00:30", "01:30")).arrow()
        first = connection.sql(script).arrow()
    finally:
        connection.sql("SET spark.sql.session.timeZone = UTC")
    assert first.schema.field("t").type == pa.timestamp("us", "Europe/Berlin")
    assert (again["t"][0].as_py() - first["t"][0].as_py()) == dt.timedelta(
        0
    )  # in one zone Python ignores the fold
    assert again["t"].cast(pa.int64())[0].as_py() - first["t"].cast(pa.int64())[0].as_py() == 3_600_000_000


def test_without_pandas_df_says_so(here: streamsql.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamsql.api.query_result.find_spec", lambda name: None)
    with pytest.raises(streamsql.Error, match="pandas is not installed"):
        here.sql("SELECT 1").df()


def test_many_rows_come_in_batches(connection: streamsql.Connection) -> None:
    result = connection.sql("SELECT id, CAST(id AS STRING) AS s FROM range(100000)")
    assert result.fetchmany(2) == [(0, "0"), (1, "1")]
    sizes, total = [], 0
    with connection.sql("SELECT id, CAST(id AS STRING) AS s FROM range(100000)") as result:
        for batch in result:
            sizes.append(batch.num_rows)
            total += sum(batch["id"].to_pylist())
    assert max(sizes) <= 10_000
    assert (sum(sizes), total) == (100_000, 99_999 * 50_000)


def test_results_that_are_left_hold_up_no_call(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server answers so many calls of a client at a time; an open result is one."""
    monkeypatch.setattr("streamsql.server.connection.MOST_CALLS", 4)
    with streamsql.connect(served, config=False) as connection:
        for _ in range(3):
            connection.sql("SELECT id FROM range(30000)").fetchone()
            connection.sql("SELECT id FROM range(30000)").close()
            assert len(connection.sql("SELECT id FROM range(30000)").fetchall()) == 30000
        assert connection.sql("SELECT 1 AS one").fetchall() == [(1,)]


def test_no_rows_have_columns(connection: streamsql.Connection) -> None:
    result = connection.sql("SELECT id FROM range(3) WHERE id > 5")
    assert (result.columns, result.types, result.fetchall()) == (["id"], ["BIGINT"], [])
    assert result.arrow().num_rows == 0
    assert list(connection.sql("SELECT * FROM range(20000) WHERE id < 0")) == []


def test_a_live_table_at_one_version(connection: streamsql.Connection) -> None:
    now = connection.table("counts")
    assert sorted(now.fetchall())[0][0] == "cat"
    assert (now.types, now.batch >= 0, now.version > 0) == (["STRING", "BIGINT"], True, True)
    connection.sql("INSERT INTO words VALUES ('fox', 1); AWAIT QUERY counts IDLE")
    later = connection.table("counts")
    assert (later.batch - now.batch, later.version - now.version) == (1, 1)


def test_watch_gives_each_change_with_its_version(connection: streamsql.Connection) -> None:
    before = dict(connection.table("counts").fetchall())
    with connection.watch("counts") as changes:
        first = next(changes)
        assert {change.op for change in first.changes} == {"+I"}
        assert dict(change.row for change in first.changes) == before
        connection.sql("INSERT INTO words VALUES ('cat', 5), ('owl', 1)")
        then = next(changes)
        ops = {(change.op, *change.row) for change in then.changes}
        old = {("-U", "owl", before["owl"])} if "owl" in before else set()
        new = ("+U" if old else "+I", "owl", before.get("owl", 0) + 1)
        assert ops == {("-U", "cat", before["cat"]), ("+U", "cat", before["cat"] + 5), *old, new}
        assert (then.columns, then.lost) == (("word", "n"), 0)
        now = connection.table("counts")
        assert (then.batch, then.version) == (now.batch, now.version)
        threading.Timer(0.2, changes.close).start()
        assert list(changes) == []  # ended by the other thread
    assert connection.queries()[0].status == "running"


def test_watch_without_blocking(connection: streamsql.Connection) -> None:
    async def first(watch: streamsql.Watch) -> streamsql.Changes:
        async for changes in watch:
            return changes
        raise AssertionError("it has ended")

    query = "SELECT word FROM counts WHERE word = 'cat'"
    seen = asyncio.run(first(connection.watch(query=query)))
    assert [change.row for change in seen.changes] == [("cat",)]


def test_changes_that_came_too_fast_are_counted() -> None:
    """A live result that keeps three changes of seven."""
    kept = [("+I", n) for n in range(4, 7)]

    def changes(count: int, first: int | None, order: object) -> Snapshot:
        rows = kept[first or 0 :]
        return Snapshot(("op", "n"), (), rows, 3, first or 0, 4, 7, 7, True, [7] * len(rows), [7] * len(rows))

    watch = streamsql.Watch(Live(changes=changes))
    assert next(watch) == streamsql.Changes(
        7, 7, ("n",), tuple(streamsql.Change("+I", (n,)) for n in range(4, 7)), lost=4
    )


def test_queries_and_why(connection: streamsql.Connection) -> None:
    (facts,) = connection.queries()
    assert isinstance(facts, streamsql.QueryFacts)
    assert (facts.query, facts.status) == ("counts", "running")
    assert facts.account.read.number >= 2
    why = connection.why("counts")
    assert str(why).startswith("nothing is wrong")
    assert (why.code, why.proposal) == ("NOTHING_WRONG", "")
    assert all(len(fact) == 2 for fact in why.facts)


def test_a_select_over_a_stream_reads_what_is_there(connection: streamsql.Connection) -> None:
    assert ("dog", 2) in connection.sql("SELECT * FROM words").fetchall()


def test_statements_of_the_console_have_rows_too(connection: streamsql.Connection) -> None:
    assert connection.sql("SHOW LIVE TABLES").fetchall()[0][0] == "counts"
    assert connection.sql("HELP doors").columns == ["text"]
    assert dict(connection.sql("WHY counts").fetchall())["verdict"]


def test_what_is_shown(connection: streamsql.Connection, capsys: pytest.CaptureFixture[str]) -> None:
    result = connection.sql("SELECT id FROM range(50)")
    result.show(2)
    assert capsys.readouterr().out == "|   id |\n".join(
        ["+------+\n", "|------|\n|    0 |\n|    1 |\n+------+\n(the first 2 rows)\n"]
    )
    assert len(result.fetchall()) == 50  # none is lost
    done = connection.sql("CREATE STREAM IF NOT EXISTS words (word STRING, n INT) USING values")
    done.show()
    assert capsys.readouterr().out == "stream words already exists\n"
    noted = connection.sql(
        "CREATE STREAM other (a INT) USING values; INSERT INTO other VALUES (1); SELECT 1 AS a; DROP STREAM other"
    )
    assert noted.message == "stream other dropped"


@pytest.mark.parametrize(
    ("text", "code", "place", "hint"),
    [
        ("SELECT *\nFROM cuonts", "TABLE_OR_VIEW_NOT_FOUND", (2, 6), "did you mean counts?"),
        ("SELECT 1;\nSELEC 2", "UNKNOWN_STATEMENT", (2, 1), "did you mean SELECT?"),
        ("SELECT 1;\n SELECT 1/0", "DIVIDE_BY_ZERO", (2, 9), ""),
        ("WATCH counts", "CLAUSE_NOT_SUPPORTED", (1, 1), "watch('name')"),
        ("SELECT 'x", "SYNTAX_ERROR", (1, 8), "end it with '"),
    ],
)
def test_errors(
    connection: streamsql.Connection, text: str, code: str, place: tuple[int, int], hint: str
) -> None:
    with pytest.raises(streamsql.Error) as raised:
        connection.sql(text)
    error = raised.value
    assert (error.code, error.place) == (code, place)
    assert hint in error.hint
    assert "^" in error.__notes__[0]  # as a traceback shows it


@pytest.mark.parametrize(
    ("call", "hint"), [("table", "counts"), ("watch", "counts"), ("why", "streams: words")]
)
def test_a_misspelt_name(connection: streamsql.Connection, call: str, hint: str) -> None:
    with pytest.raises(streamsql.Error, match="cuonts") as raised:
        getattr(connection, call)("cuonts")
    assert hint in raised.value.hint


def test_after_close(spark: Any) -> None:
    connection = streamsql.connect(spark=spark.newSession(), config=False)
    connection.close()
    connection.close()
    acts: list[Callable[[], object]] = [
        lambda: connection.sql("SELECT 1"),
        lambda: connection.table("t"),
        lambda: connection.watch("t"),
        lambda: connection.why(),
        connection.queries,
    ]
    for act in acts:
        with pytest.raises(streamsql.Error) as raised:
            act()
        assert raised.value.code == "CONNECTION_CLOSED"


def test_a_client_that_only_reads(served: Path) -> None:
    with streamsql.connect(served, read_only=True, config=False) as connection:
        assert ("dog", 2) in connection.table("counts").fetchall()
        with pytest.raises(streamsql.Error) as raised:
            connection.sql("DROP LIVE TABLE counts")
    assert raised.value.code == "READ_ONLY"


def test_a_client_that_leaves_in_the_middle_of_a_result_ends_nothing(served: Path) -> None:
    leaving = streamsql.connect(served, config=False)
    rows = leaving.sql("SELECT id FROM range(1000000)")
    assert rows.fetchone() == (0,)
    watch = leaving.watch("counts")
    next(watch)
    leaving.close()
    with streamsql.connect(served, config=False) as staying:
        assert staying.queries()[0].status == "running"
        staying.sql("INSERT INTO words VALUES ('end', 1); AWAIT QUERY counts IDLE")
        assert ("end", 1) in staying.table("counts").fetchall()


def test_a_workspace_that_another_process_holds(spark: Any, tmp_path: Path) -> None:
    with streamsql.connect(tmp_path, spark=spark.newSession(), config=False) as holding:
        holding.sql("CREATE STREAM s (a INT) USING values")
        with pytest.raises(streamsql.Error) as raised:
            streamsql.connect(tmp_path, spark=spark.newSession(), config=False)
        assert raised.value.code == "WORKSPACE_IN_USE"
        assert "read_only=True" in raised.value.hint
        with streamsql.connect(tmp_path, read_only=True, spark=spark.newSession(), config=False) as reading:
            assert reading.sql("SHOW STREAMS").fetchall()[0][0] == "s"
    with streamsql.connect(tmp_path, spark=spark.newSession(), config=False) as again:
        assert again.sql("SHOW STREAMS").fetchall()[0][0] == "s"


def test_arguments_that_are_wrong(tmp_path: Path) -> None:
    for arguments in (
        {"read_only": True},
        {"master": "spark:7077"},
        {"workspace": tmp_path / "none", "read_only": True},
    ):
        with pytest.raises(streamsql.Error):
            streamsql.connect(**arguments, config=False)  # type: ignore[arg-type]


def test_one_process_has_one_spark(spark: Any) -> None:
    with pytest.raises(streamsql.Error) as raised:
        streamsql.connect(config=False)
    assert "spark=spark" in raised.value.hint


def test_the_names_of_the_package_are_typed() -> None:
    """Each is in the stub, which type checkers read in place of the module."""
    stub = (ROOT / "streamsql" / "__init__.pyi").read_text()
    names = {*streamsql._MODULES, "Error"}  # type: ignore[attr-defined]
    assert names <= set(dir(streamsql))
    assert all(getattr(streamsql, name) and f" {name}\n" in stub or f"{name} = " in stub for name in names)


@pytest.mark.usefixtures("processes")
def test_the_package_is_light() -> None:
    """The console and its first prompt import nothing of the API."""
    code = "import sys, streamsql; print([m for m in sys.modules if m.startswith('streamsql.')], streamsql.Error.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[] StreamsqlError\n", done.stderr


LEAVES = """
import streamsql

con = streamsql.connect(config=False)
con.sql("CREATE STREAM s (a INT) USING values; CREATE LIVE TABLE t AS SELECT a FROM s;"
        "INSERT INTO s VALUES (1); AWAIT QUERY t IDLE")
print(con.sql("SELECT a FROM t").fetchone())
"""


@pytest.mark.usefixtures("processes")
def test_a_program_that_ends_without_close_ends_quietly(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVES], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "(1,)\n"), done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_preferences_of_a_connection_are_its_own(here: streamsql.Connection) -> None:
    here.sql("SET streamsql.format = csv")
    assert Preferences()["format"] == "table"
    here.sql("RESET streamsql.format")


ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text().split("<!-- python -->\n```python\n")[1].split("```")[0]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (README, "0 (Change(op='+I', row=('cat', 2)), Change(op='+I', row=('dog', 1)))\n"),
        pytest.param(
            (ROOT / "examples" / "python_api.py").read_text(),
            "TABLE_OR_VIEW_NOT_FOUND (1, 15) did you mean by_event?\n",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["readme", "example"],
)
def test_what_is_written_runs(
    code: str, says: str, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text of the README and the example, on the Spark of the tests."""
    from streamsql.api import connection

    connect = connection.connect
    monkeypatch.setattr(connection, "connect", lambda: connect(spark=spark.newSession(), config=False))
    names = {"__name__": "__main__", "__file__": str(ROOT / "examples" / "python_api.py")}
    exec(compile(code, "python_api.py", "exec"), names)
    assert says in capsys.readouterr().out
    if "frame" in names:
        assert names["frame"].to_dict("records") == [{"word": "cat", "n": 2}]
