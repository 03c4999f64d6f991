"""The jdbc sink against a real SQLite and a real PostgreSQL: added, replaced by KEY, exactly once."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from test_explain import program

from streamsql.calls import render_node
from streamsql.connectors.jdbc import Jdbc
from streamsql.connectors.packages import PACKAGES
from streamsql.definitions import Sink
from streamsql.errors import InputFault, QueryFault, StreamsqlError
from streamsql.output.error_text import format_error
from streamsql.results import Text
from streamsql.runtime.embedded.jdbc_writer import JdbcTable
from streamsql.runtime.engine.java_classes import java_class
from streamsql.runtime.engine.package_loader import use_added_jars

ROOMS = ("streamsql/connectors/", "streamsql/runtime/embedded/")

STREAM = "CREATE STREAM s (word STRING, n INT) USING values;\n"
PASSWORD = "hush-hush"


class Database:
    """A database that sinks write into. options: of a jdbc sink, without the table."""

    def __init__(self, options: str, query: Any) -> None:
        self.options = options
        self.query = query
        self.name = options.split(":")[1]
        self.is_mysql = self.name in ("mysql", "mariadb")

    def sink(self, name: str, table: str, key: str = "") -> str:
        keys = f"KEY ({key})" if key else ""
        return f"CREATE SINK {name} USING jdbc {keys} OPTIONS ({self.options}, table '{table}');\n"


def _programs() -> Path | None:
    """The folder of PostgreSQL's server programs, if it is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    path = shutil.which("initdb") or (found[-1] if found else None)
    return Path(path).parent if path else None


@pytest.fixture(scope="session")
def postgresql(packages: Callable[[str], None]) -> Iterator[str]:
    """The URL of a PostgreSQL of this run's own, on loopback, with its own data folder."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not on this machine")
    packages("postgresql")
    folder = Path(tempfile.mkdtemp(prefix="streamsql-pg-", dir="/tmp"))
    as_user: dict[str, Any] = {}
    if os.getuid() == 0:  # the server refuses to run as root
        as_user = {"user": "nobody"}
        shutil.chown(folder, "nobody")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    password = folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    data = folder / "data"

    def call(*command: str) -> None:
        subprocess.run(
            command,
            check=True,
            cwd=folder,
            timeout=60,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_user,
        )

    control = (str(programs / "pg_ctl"), "-D", str(data))
    try:
        call(str(programs / "initdb"), "-D", str(data), "-U", "me", "-A", "md5", f"--pwfile={password}", "-N")
        options = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
        call(*control, "-w", "-l", str(folder / "log"), "-o", options, "start")
        yield f"jdbc:postgresql://127.0.0.1:{port}/postgres"
    finally:
        subprocess.run(
            [*control, "-m", "immediate", "stop"], cwd=folder, timeout=60, capture_output=True, **as_user
        )
        shutil.rmtree(folder, ignore_errors=True)


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """The URL of a MariaDB of this run's own, on loopback, with its own data folder."""
    if not shutil.which("mariadbd") or not shutil.which("mariadb-install-db"):
        pytest.skip("MariaDB's server is not on this machine")
    folder = Path(tempfile.mkdtemp(prefix="streamsql-my-", dir="/tmp"))
    shutil.chown(folder, user := "nobody" if os.getuid() == 0 else os.getuid())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, at = f"--datadir={folder}/data", ["--no-defaults", f"--socket={folder}/s"]
    whose = [f"--user={user}"] if user == "nobody" else []
    how = ["--auth-root-authentication-method=normal", "--skip-test-db"]
    quiet: dict[str, Any] = {"check": True, "timeout": 60, "capture_output": True, "cwd": folder}
    subprocess.run(["mariadb-install-db", "--no-defaults", data, *whose, *how], **quiet)
    (folder / "init.sql").write_text(
        f"CREATE DATABASE shop;\nCREATE USER me@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL ON shop.* TO me@'127.0.0.1';\n"
    )
    (folder / "init.sql").chmod(0o644)
    listen = [f"--port={port}", "--bind-address=127.0.0.1", f"--init-file={folder}/init.sql"]
    server = subprocess.Popen(
        ["mariadbd", *at, data, *whose, *listen], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not _listens(port):  # it does so after its init file
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)  # how often one looks
        yield f"jdbc:mariadb://127.0.0.1:{port}/shop"
    finally:
        server.kill()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _by_driver(spark: Any, name: str, url: str, **login: str) -> Callable[[str], list[tuple[Any, ...]]]:
    """A function that runs a statement with the driver in Spark's JVM, and gives its rows."""

    def query(text: str) -> list[tuple[Any, ...]]:
        use_added_jars(spark)
        given = spark._jvm.java.util.Properties()
        for key, value in login.items():
            given.setProperty(key, value)
        connection = java_class(spark, PACKAGES[name].probe)().connect(url, given)
        try:
            statement = connection.createStatement()
            if not statement.execute(text):
                return []
            result, rows = statement.getResultSet(), []
            columns = range(1, result.getMetaData().getColumnCount() + 1)
            while result.next():
                values = [result.getString(n) for n in columns]
                rows.append(tuple(int(v) if v and v.isdigit() else v for v in values))
            return rows
        finally:
            connection.close()

    return query


@pytest.fixture(
    params=[
        "sqlite",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("postgresql", "mariadb", "mysql", "duckdb")),
    ]
)
def database(
    request: pytest.FixtureRequest, packages: Callable[[str], None], tmp_path: Path, spark: Any
) -> Database:
    packages(request.param)
    if request.param == "sqlite":
        file = tmp_path / "base.db"

        def query(text: str) -> list[tuple[Any, ...]]:
            with sqlite3.connect(file) as connection:
                return connection.execute(text).fetchall()

        return Database(f"url 'jdbc:sqlite:{file}'", query)
    if request.param == "duckdb":
        url = f"jdbc:duckdb:{tmp_path}/base.duckdb"
        return Database(f"url '{url}'", _by_driver(spark, "duckdb", url))
    if request.param in ("mariadb", "mysql"):  # the driver of MySQL, with MariaDB's server
        url = request.getfixturevalue("mariadb").replace("mariadb", request.param)
        asked = _by_driver(spark, request.param, url, user="me", password=PASSWORD)
        for (table,) in asked("SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'"):
            asked(f"DROP TABLE `{table}`")
        return Database(f"url '{url}', user 'me', password '{PASSWORD}'", asked)
    url = request.getfixturevalue("postgresql")
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    address = url.removeprefix("jdbc:")

    def ask(text: str) -> list[tuple[Any, ...]]:
        command = ["psql", "-U", "me", "-At", "-F", "\t", "-c", text, address.replace("//", "//me@")]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=30
        )
        return [
            tuple(int(v) if v.isdigit() else v for v in line.split("\t")) for line in done.stdout.splitlines()
        ]

    for table in ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        ask(f'DROP TABLE "{table[0]}"')
    return Database(f"url '{url}', user 'me', password '{PASSWORD}'", ask)


@pytest.mark.usefixtures("processes")
def test_rows_are_added_once_over_a_failure_and_a_restart(
    console: Console, database: Database, tmp_path: Path
) -> None:
    """The database has written when another sink fails: after the restart the batch comes again."""
    (tmp_path / "failing.py").write_text(
        f"import pathlib\ndef f(batch, batch_id):\n"
        f"    if pathlib.Path('{tmp_path}/fail').exists():\n        raise OSError('no network')\n"
    )
    console.session.variables["here"] = str(tmp_path)
    console.run(
        STREAM
        + database.sink("t", "added")
        + "CREATE SINK f USING foreach_batch OPTIONS (function 'failing.f');"
        "INSERT INTO t, f AS QUERY q SELECT word, n FROM s;"
        "INSERT INTO s VALUES ('a', 1), ('b', 2); AWAIT QUERY q IDLE;"
    )
    assert sorted(database.query("SELECT word, n FROM added")) == [("a", 1), ("b", 2)]
    (tmp_path / "fail").touch()
    console.run("INSERT INTO s VALUES ('c', 3);")
    with pytest.raises(QueryFault, match="no network"):
        console.run("AWAIT QUERY q;")
    everything = [("a", 1), ("b", 2), ("c", 3)]
    assert sorted(database.query("SELECT word, n FROM added")) == everything
    (tmp_path / "fail").unlink()
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    assert sorted(database.query("SELECT word, n FROM added")) == everything


@pytest.mark.usefixtures("processes")
def test_groups_replace_the_rows_of_their_key(console: Console, database: Database) -> None:
    started = console.run(
        STREAM
        + database.sink("t", "counts", "word")
        + "INSERT INTO t SELECT word, count(*) AS c, sum(n) AS total FROM s GROUP BY word;"
    )[-1]
    assert notes_of(started) == ("output mode update: updated groups are emitted",)
    console.run("INSERT INTO s VALUES ('a', 1), ('b', 2); AWAIT QUERY t IDLE; STOP QUERY t;")
    console.run("START QUERY t; INSERT INTO s VALUES ('a', 5), ('c', 7); AWAIT QUERY t IDLE;")
    assert sorted(database.query("SELECT word, c, total FROM counts")) == [
        ("a", 2, 6),
        ("b", 1, 2),
        ("c", 1, 7),
    ]
    console.run("VERIFY QUERY t;")
    database.query("DELETE FROM counts WHERE word = 'b'")
    with pytest.raises(InputFault, match="t has 2 rows, 1 missing and 0 too many") as raised:
        console.run("VERIFY QUERY t;")
    assert (raised.value.detail.splitlines()[0], raised.value.exit_code) == ("missing: b, 1, 2", 1)


@pytest.mark.usefixtures("processes")
def test_rows_of_one_batch_with_equal_keys(console: Console, database: Database) -> None:
    console.run(
        STREAM + database.sink("t", "latest", "word") + "INSERT INTO t SELECT word, n FROM s;"
        "INSERT INTO s VALUES ('a', 1), ('a', 2), ('b', 1); AWAIT QUERY t IDLE;"
    )
    assert sorted(database.query("SELECT word, n FROM latest")) == [("a", 2), ("b", 1)]


@pytest.mark.usefixtures("processes")
def test_a_static_select_is_written_once(console: Console, database: Database) -> None:
    console.run(
        database.sink("t", "fixed", "id")
        + "INSERT INTO t SELECT 1 AS id, 'x' AS v; INSERT INTO t SELECT 1 AS id, 'y' AS v;"
    )
    assert database.query("SELECT id, v FROM fixed") == [(1, "y")]


@pytest.mark.usefixtures("processes")
def test_what_the_database_refuses_is_said(console: Console, database: Database) -> None:
    database.query("CREATE TABLE strict (word VARCHAR(10) NOT NULL)")
    console.run(
        STREAM + database.sink("t", "strict") + "INSERT INTO t SELECT word FROM s;"
        "INSERT INTO s VALUES (NULL, 1);"
    )
    with pytest.raises(QueryFault, match="query t failed: the table strict: .*(?i:not.null|cannot be null)"):
        console.run("AWAIT QUERY t;")


def test_secrets_are_shown_nowhere(console: Console, tmp_path: Path) -> None:
    console.run(
        STREAM + "CREATE SINK t USING jdbc OPTIONS (url 'jdbc:postgresql://nowhere/x', table 't',"
        f" user 'me', password '{PASSWORD}');"
    )
    for statement in ("SHOW CREATE SINK t;", "DESCRIBE SINK t;", "SHOW SINKS;"):
        shown = console.run(statement)[0]
        assert PASSWORD not in (shown.text if isinstance(shown, Text) else str(shown))
    text = program(console, "INSERT INTO t SELECT * FROM s")
    assert PASSWORD not in text
    assert 'JdbcTable("t").option("url", "jdbc:postgresql://nowhere/x")' in text
    compile(text, "program.py", "exec")


@pytest.mark.parametrize(
    ("sink", "says"),
    [
        ("OPTIONS (table 't')", "jdbc needs the option url"),
        ("OPTIONS (url 'jdbc:sqlite:x')", "jdbc needs the option table"),
        ("OPTIONS (url 'sqlite:x', table 't')", "option url takes a JDBC address, not 'sqlite:x'"),
        (
            "OPTIONS (url 'jdbc:postgresql://h/d?password=x', table 't')",
            "a password in the url would be shown",
        ),
        (
            "KEY (id) OPTIONS (url 'jdbc:oracle:h/d', table 't')",
            "KEY is supported for postgresql",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_place(console: Console, sink: str, says: str) -> None:
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"CREATE SINK t USING jdbc {sink};")
    assert says in format_error(caught.value)
    assert "^" in format_error(caught.value)


def test_a_missing_driver_is_said_with_its_package(console: Console) -> None:
    console.run(
        STREAM
        + "CREATE SINK t USING jdbc OPTIONS (url 'jdbc:mysql://h/d', table 't', driver 'com.mysql.Nope');"
    )
    with pytest.raises(StreamsqlError, match="the sink t needs the driver com.mysql.Nope") as caught:
        console.run("INSERT INTO t SELECT * FROM s;")
    assert "--packages" in caught.value.hint
    with pytest.raises(StreamsqlError, match="the sink t does not support output mode update"):
        console.run("INSERT INTO t OUTPUT MODE UPDATE SELECT word, count(*) AS c FROM s GROUP BY word;")


def test_the_program_runs_by_itself(
    console: Console, packages: Callable[[str], None], tmp_path: Path
) -> None:
    from test_explain import run_program

    packages("sqlite")
    console.run(
        STREAM
        + f"CREATE SINK t USING jdbc KEY (word) OPTIONS (url 'jdbc:sqlite:{tmp_path}/b.db', table 't');"
        "INSERT INTO s VALUES ('a', 1);"
    )
    text = program(console, "INSERT INTO t TRIGGER AVAILABLE NOW SELECT word, n FROM s")
    run_program(text)
    with sqlite3.connect(tmp_path / "b.db") as connection:
        assert connection.execute("SELECT word, n FROM t").fetchall() == [("a", 1)]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("url '{url}', user 'me', password 'wrong'", "the table t: FATAL: password authentication failed"),
        ("url '{url}_not', user 'me', password 'wrong'", "the table t: FATAL: "),
        ("url 'jdbc:postgresql://127.0.0.1:1/x', user 'me'", "the table t: Connection refused"),
        ("url 'jdbc:sqlite:/no/such/folder/x.db'", "the table t: path to '/no/such/folder/x.db'"),
    ],
)
@pytest.mark.usefixtures("processes")
def test_a_database_that_cannot_be_had_is_said(
    console: Console, postgresql: str, options: str, says: str
) -> None:
    console.run(
        STREAM + f"CREATE SINK t USING jdbc OPTIONS ({options.format(url=postgresql)}, table 't');"
        "INSERT INTO t SELECT * FROM s; INSERT INTO s VALUES ('a', 1);"
    )
    with pytest.raises(QueryFault) as caught:
        console.run("AWAIT QUERY t;")
    assert caught.value.message.startswith(f"query t failed: {says}")
    assert "streamsql" not in caught.value.detail


def test_a_key_that_the_query_does_not_give_out_is_refused(console: Console) -> None:
    console.run(
        STREAM + "CREATE SINK t USING jdbc KEY (word) OPTIONS (url 'jdbc:postgresql://h/d', table 't');"
    )
    with pytest.raises(StreamsqlError, match="the KEY of t, word, is not a column of this query") as caught:
        console.run("INSERT INTO t SELECT n, upper(word) AS words FROM s;")
    assert caught.value.hint == "did you mean words?"


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_password_may_lie_elsewhere(
    console: Console, postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console.run(
        STREAM + f"CREATE SINK t USING jdbc OPTIONS (url '{postgresql}', table 'elsewhere', user 'me', "
        "password '${env:SHOP_PASSWORD}');"
        "INSERT INTO s VALUES ('a', 1);"
    )
    with pytest.raises(StreamsqlError, match="the environment has no variable SHOP_PASSWORD"):
        console.run("INSERT INTO t TRIGGER AVAILABLE NOW SELECT word, n FROM s;")
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    console.run("INSERT INTO t TRIGGER AVAILABLE NOW SELECT word, n FROM s; AWAIT QUERY t;")
    shown = console.run("SHOW CREATE SINK t;")[0]
    assert isinstance(shown, Text)
    assert "password '${env:SHOP_PASSWORD}'" in shown.text
    text = program(console, "INSERT INTO t AS QUERY u TRIGGER AVAILABLE NOW SELECT word, n FROM s")
    assert '.option("password", filled("${env:SHOP_PASSWORD}"))' in text
    assert PASSWORD not in text
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    console.run(
        f"CREATE SINK f USING jdbc OPTIONS (url '{postgresql}', table 'elsewhere', user 'me', "
        f"password '${{file:{file}}}');"
        "INSERT INTO f TRIGGER AVAILABLE NOW SELECT word, n FROM s; AWAIT QUERY f;"
        f"CREATE TEMPORARY VIEW there USING jdbc OPTIONS (url '{postgresql}', dbtable 'elsewhere', user 'me', driver 'org.postgresql.Driver', "
        f"password '{PASSWORD}');"
    )
    assert console.rows("SELECT * FROM there;") == [("a", 1), ("a", 1)]


def test_a_secret_stands_in_options_only(console: Console) -> None:
    with pytest.raises(StreamsqlError) as caught:
        console.run("SELECT '${env:HOME}' AS home;")
    said = format_error(caught.value)
    assert "${env:HOME} is not allowed here, because its value would be shown" in said
    assert "use it in the options of CREATE STREAM, CREATE SINK, PREVIEW and SHOW TOPICS" in said


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_key_with_null_is_a_key(console: Console, database: Database) -> None:
    console.run(
        STREAM
        + database.sink("totals", "totals", "word")
        + "INSERT INTO totals OUTPUT MODE UPDATE SELECT word, sum(n) AS total FROM s GROUP BY word;"
        "INSERT INTO s VALUES (NULL, 10), ('a', 1); AWAIT QUERY totals IDLE;"
        "INSERT INTO s VALUES (NULL, 5); AWAIT QUERY totals IDLE;"
    )
    assert sorted(database.query("SELECT coalesce(word, '-'), total FROM totals")) == [("-", 15), ("a", 1)]
    console.run("VERIFY QUERY totals;")


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_key_of_several_columns_with_null(console: Console, database: Database) -> None:
    """Rows of one micro-batch and of several, with NULL in one column, the other, or both."""
    console.run(
        "CREATE STREAM pairs (a STRING, b INT, n INT) USING values;"
        + database.sink("newest", "newest", "b, a")
        + "INSERT INTO newest SELECT a, b, n FROM pairs;"
        "INSERT INTO pairs VALUES ('x', NULL, 1), ('x', NULL, 2), (NULL, 1, 3), (NULL, NULL, 4), ('x', 1, 5);"
        "AWAIT QUERY newest IDLE;"
        "INSERT INTO pairs VALUES ('x', NULL, 6), (NULL, NULL, 7), (NULL, 2, 8); AWAIT QUERY newest IDLE;"
    )
    rows = database.query("SELECT coalesce(a, '-'), coalesce(b, 0), n FROM newest")
    assert sorted(rows) == [("-", 0, 7), ("-", 1, 3), ("-", 2, 8), ("x", 0, 6), ("x", 1, 5)]


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_different_texts_are_different_keys(console: Console, database: Database) -> None:
    console.run(
        STREAM + database.sink("t", "exact", "word") + "INSERT INTO t SELECT word, n FROM s;"
        "INSERT INTO s VALUES ('a', 1), ('A', 2), ('a ', 3), ('', 4), ('é', 5); AWAIT QUERY t IDLE;"
        "INSERT INTO s VALUES ('A', 7); AWAIT QUERY t IDLE;"
    )
    shown = "concat('<', word, '>')" if database.is_mysql else "'<' || word || '>'"
    rows = database.query(f"SELECT {shown}, n FROM exact")
    assert sorted(rows) == sorted([("<a>", 1), ("<A>", 7), ("<a >", 3), ("<>", 4), ("<é>", 5)])


@pytest.mark.slow
@pytest.mark.parametrize("value", ["text", "number"])
@pytest.mark.usefixtures("processes")
def test_a_key_that_the_database_cannot_tell_apart_fails(
    console: Console, database: Database, value: str
) -> None:
    key = "CAST(unhex(word) AS STRING)" if value == "text" else "double(word)"
    console.run(
        STREAM + database.sink("t", "t", "k") + f"INSERT INTO t SELECT {key} AS k, n FROM s;"
        f"INSERT INTO s VALUES ('{'61' if value == 'text' else '0.0'}', 1); AWAIT QUERY t IDLE;"
        f"INSERT INTO s VALUES ('{'FF' if value == 'text' else 'NaN'}', 2);"
    )
    if value == "number" and database.name in ("postgresql", "duckdb"):
        console.run("INSERT INTO s VALUES ('NaN', 3), ('-0.0', 4); AWAIT QUERY t IDLE;")
        rows = database.query("SELECT CASE WHEN k = 0 THEN 'zero' ELSE CAST(k AS VARCHAR(9)) END, n FROM t")
        assert sorted((name.lower(), n) for name, n in rows) == [("nan", 3), ("zero", 4)]
        return
    says = (
        "the KEY column k has text that is no UTF-8" if value == "text" else "the KEY column k has NaN, which"
    )
    with pytest.raises(QueryFault, match=f"query t failed: .*{says}") as raised:
        console.run("AWAIT QUERY t;")
    assert "SQLSTATE" not in raised.value.message
    assert len(database.query("SELECT n FROM t")) == 1


@pytest.mark.usefixtures("processes")
def test_a_table_that_takes_different_texts_for_one_key_is_refused(
    console: Console, database: Database
) -> None:
    kinds = {"postgresql": "CHAR(4)", "mariadb": "VARCHAR(9)", "mysql": "VARCHAR(9)"}
    kind = kinds.get(database.name, "TEXT COLLATE NOCASE")
    database.query(f"CREATE TABLE loose (word {kind} UNIQUE, n INTEGER)")
    console.run(
        STREAM + database.sink("t", "loose", "word") + "INSERT INTO t SELECT word, n FROM s;"
        "INSERT INTO s VALUES ('a', 1);"
    )
    with pytest.raises(QueryFault, match="takes different texts in its KEY column word for the same"):
        console.run("AWAIT QUERY t;")
    assert database.query("SELECT n FROM loose") == []


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_long_or_quoted_name_of_a_table(console: Console, database: Database) -> None:
    """PostgreSQL cuts names at 63 characters: the staging table must not be the table itself."""
    for name in ("t" * 63, "`My table`" if database.is_mysql else '"My table"'):
        console.run(
            STREAM + database.sink("t", name, "word") + "INSERT INTO t SELECT word, n FROM s;"
            "INSERT INTO s VALUES ('a', 1); AWAIT QUERY t IDLE;"
            "INSERT INTO s VALUES ('a', 2), ('b', 3); AWAIT QUERY t IDLE;"
        )
        assert sorted(database.query(f"SELECT word, n FROM {name}")) == [("a", 2), ("b", 3)]
        console.reset()
    tables = {"postgresql": "pg_tables WHERE tablename", "sqlite": "sqlite_master WHERE name"}
    where = tables.get(database.name, "information_schema.tables WHERE table_name")
    left = f"SELECT count(*) FROM {where} LIKE '%staging%'"
    assert database.query(left) == [(0,)]


def test_rows_are_read_back_with_the_driver_that_the_sink_names() -> None:
    options = (("url", "jdbc:sqlite:x.db"), ("table", "t"), ("driver", "com.example.Driver"))
    program = render_node(Jdbc().read_back(Sink("s", "jdbc", options=options)))
    assert program.count('.option("driver", ') == 1
    assert '.option("driver", "com.example.Driver")' in program


def test_inserts_of_the_same_moment_have_staging_tables_of_their_own() -> None:
    """Two INSERTs without a query write into one table."""
    table = JdbcTable("shop.totals")
    names = {table._staging("") for _ in range(50)}
    assert len(names) == 50
    assert all(name.startswith("shop.streamsql_staging_") and len(name) < 63 for name in names)
    assert JdbcTable('"a.b"')._staging("q").startswith("streamsql_")
    assert JdbcTable("shop.`a.b`")._staging("q").startswith("shop.streamsql_")
    assert JdbcTable('shop."a.b"')._staging("q").startswith("shop.streamsql_")
    assert table._staging("q") == table._staging("q") != JdbcTable("shop.others")._staging("q")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "value, kind, hint",
    [
        ("named_struct('a', n)", "STRUCT<a: INT>", "to_json(v) AS v"),
        ("map(word, n)", "MAP<STRING, INT>", "to_json(v) AS v"),
        ("parse_json(word)", "VARIANT", "to_json(v) AS v"),
        ("make_ym_interval(n)", "INTERVAL YEAR TO MONTH", "string(v) AS v"),
    ],
)
@pytest.mark.usefixtures("processes")
def test_a_type_that_no_database_has_is_refused_before_the_start(
    console: Console, database: Database, value: str, kind: str, hint: str
) -> None:
    console.run(STREAM + database.sink("t", "typed"))
    for stop in ("", " TRIGGER AVAILABLE NOW"):
        with pytest.raises(StreamsqlError) as raised:
            console.run(f"INSERT INTO t{stop} SELECT {value} AS v FROM s;")
        assert raised.value.message == f"the column v is {kind}, which this database has no type for"
        assert raised.value.hint == hint
    console.run(
        f"INSERT INTO t SELECT {hint.replace('(v)', f'({value})')} FROM s;"
        "INSERT INTO s VALUES ('1', 1); AWAIT QUERY t IDLE;"
    )
    assert len(database.query("SELECT v FROM typed")) == 1


def test_the_table_that_is_made_has_the_types_and_options_that_are_given(
    console: Console, packages: Callable[[str], None], tmp_path: Path
) -> None:
    packages("sqlite")
    given = "createTableColumnTypes 'N VARCHAR(9)', createTableOptions 'WITHOUT ROWID'"
    options = f"url 'jdbc:sqlite:{tmp_path}/b.db', table 't', {given}"
    console.run(f"CREATE SINK t USING jdbc OPTIONS ({options});")
    with pytest.raises(StreamsqlError, match="PRIMARY KEY missing on table t"):
        console.run("INSERT INTO t SELECT 'a' AS word, '1' AS n;")
    options = options.replace("WITHOUT ROWID", "")
    console.run(
        f"CREATE OR REPLACE SINK t USING jdbc OPTIONS ({options}); INSERT INTO t SELECT 'a' AS word, '1' AS n;"
    )
    with sqlite3.connect(tmp_path / "b.db") as connection:
        ((made,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 't'").fetchall()
        assert connection.execute("SELECT * FROM t").fetchall() == [("a", "1")]
    assert '"n" VARCHAR(9)' in made and '"word" TEXT' in made


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_changes_of_a_live_table_are_applied_to_binary_keys(console: Console, database: Database) -> None:
    """A group that no longer qualifies is deleted, and comes back."""
    console.run(
        STREAM
        + "CREATE LIVE TABLE c AS SELECT word, sum(n) AS n FROM s GROUP BY word;"
        + database.sink("t", "small", "k")
        + "INSERT INTO t SELECT CAST(word AS BINARY) AS k, n FROM c WHERE n < 10;"
        "INSERT INTO s VALUES ('a', 1), ('A', 2), (NULL, 3); AWAIT QUERY c IDLE; AWAIT QUERY t IDLE;"
        "INSERT INTO s VALUES ('a', 9), (NULL, 9), ('b', 4); AWAIT QUERY c IDLE; AWAIT QUERY t IDLE;"
    )
    assert sorted(database.query("SELECT n FROM small")) == [(2,), (4,)]
    console.run("INSERT INTO s VALUES ('a', -5), (NULL, -5); AWAIT QUERY c IDLE; AWAIT QUERY t IDLE;")
    assert sorted(database.query("SELECT n FROM small")) == [(2,), (4,), (5,), (7,)]


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_only_the_row_of_the_key_is_replaced(console: Console, database: Database) -> None:
    """A row that is equal in another unique column is not: the database refuses it."""
    database.query(
        "CREATE TABLE users (word VARCHAR(9) UNIQUE, n INTEGER UNIQUE, more VARCHAR(9) DEFAULT 'x')"
    )
    if database.is_mysql:
        version = str(database.query("SELECT version()"))
        exact = "utf8mb4_nopad_bin" if "MariaDB" in version else "utf8mb4_0900_bin"
        database.query(f"ALTER TABLE users MODIFY word VARCHAR(9) CHARACTER SET utf8mb4 COLLATE {exact}")
    console.run(
        STREAM + database.sink("t", "users", "word") + "INSERT INTO t SELECT word, n FROM s;"
        "INSERT INTO s VALUES ('a', 1), ('b', 2); AWAIT QUERY t IDLE;"
    )
    database.query("UPDATE users SET more = 'kept'")
    console.run("INSERT INTO s VALUES ('a', 3); AWAIT QUERY t IDLE;")
    assert sorted(database.query("SELECT word, n, more FROM users")) == [("a", 3, "kept"), ("b", 2, "kept")]
    console.run("INSERT INTO s VALUES ('c', 2);")
    with pytest.raises(QueryFault, match="query t failed: the table users: "):
        console.run("AWAIT QUERY t;")
    assert sorted(database.query("SELECT word, n FROM users")) == [("a", 3), ("b", 2)]


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_table_of_mysql_without_transactions_is_refused(
    console: Console, mariadb: str, packages: Callable[[str], None], spark: Any
) -> None:
    packages("mariadb")
    query = _by_driver(spark, "mariadb", mariadb, user="me", password=PASSWORD)
    query("CREATE OR REPLACE TABLE old (word VARCHAR(9), n INTEGER) ENGINE = MyISAM")
    console.run(
        STREAM
        + f"CREATE SINK t USING jdbc OPTIONS (url '{mariadb}', user 'me', password '{PASSWORD}', table 'old');"
        "INSERT INTO t SELECT word, n FROM s; INSERT INTO s VALUES ('a', 1);"
    )
    with pytest.raises(QueryFault, match="the table old has no transactions: ALTER TABLE … ENGINE = InnoDB"):
        console.run("AWAIT QUERY t;")
    assert query("SELECT * FROM old") == []


VALUES = {
    "TIMESTAMP '9999-12-31 23:59:59'": "9999-12-31 23:59:59",
    "TIMESTAMP '2024-02-29 10:11:12.123456'": "2024-02-29 10:11:12.123456",
    "DATE '2024-02-29'": "2024-02-29",
    "true": "true",
    "12345678901234567890.123456789012345678BD": "12345678901234567890.123456789012345678",
    "CAST(NULL AS STRING)": None,
    "'Zürich 東京'": "Zürich 東京",
    "9223372036854775807L": "9223372036854775807",
}


@pytest.mark.usefixtures("processes")
def test_values_of_many_types_are_written(console: Console, database: Database) -> None:
    """What the sink reads back is what Spark casts to a text."""
    columns = ", ".join(f"{value} AS c{n}" for n, value in enumerate(VALUES))
    texts = ", ".join(f"CAST(c{n} AS STRING)" for n in range(len(VALUES)))
    console.run(
        STREAM + database.sink("t", "many") + f"INSERT INTO t SELECT {columns} FROM s;"
        "INSERT INTO s VALUES ('1', 1);"
    )
    if database.name == "mysql":  # its driver, and the server is MariaDB
        with pytest.raises(
            QueryFault, match="the driver of MySQL would cut the fractions of seconds of c0, c1:"
        ):
            console.run("AWAIT QUERY t;")
        return
    console.run("AWAIT QUERY t IDLE;")
    if database.name != "sqlite":  # it keeps a DECIMAL as a number of 64 bits
        console.run("VERIFY QUERY t;")
    assert console.rows(f"SELECT {texts} FROM (SELECT {columns});") == [tuple(VALUES.values())]
