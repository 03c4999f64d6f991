"""A console on a Spark Connect server: one server, of the pyspark package, for all tests."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from broker import certificate
from conftest import notes_of
from data_files import put_whole
from scripts import run_process
from spark_cluster import java_command

from streamsql.catalog import Catalog
from streamsql.errors import Source, StartFault, StreamsqlError, UsageFault
from streamsql.features.connect.connect_engine import ConnectEngine, SessionRemark
from streamsql.features.connect.connect_probe import obstacle
from streamsql.features.connect.connect_session import ConnectSession
from streamsql.features.connect.lacks import LACKS, READS, WRITES, ConnectServer
from streamsql.features.connect.server_address import read_address
from streamsql.features.connect.session_record import SessionRecord
from streamsql.language.parser import parse, split_script
from streamsql.language.topics import topics
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.results import Live, Result, Rows
from streamsql.runtime.engine.events import Event
from streamsql.runtime.engine.java import spark_home
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.store import Store

ROOMS = ("streamsql/features/connect/", "streamsql/cli/", "streamsql/plan/")


class Server:
    """A Connect server in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        conf = {"spark.connect.grpc.binding.port": str(self.port), "spark.ui.enabled": "false",
                "spark.sql.shuffle.partitions": "1", "spark.sql.warehouse.dir": str(folder / "warehouse"),
                "spark.default.parallelism": "1",
                "spark.connect.session.manager.defaultSessionTimeout": "30m"}  # fmt: skip
        self.log = folder / "server.log"
        flags = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        env = os.environ | {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
        name = "org.apache.spark.sql.connect.service.SparkConnectServer"
        self.process = subprocess.Popen(
            java_command(
                "768m", "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *flags,
                "--class", name, "spark-internal",
            ),
            cwd=folder, env=env, stdout=self.log.open("w"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not self.answers():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)  # how often one looks

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def end(self) -> None:
        self.process.kill()
        self.process.wait(20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("grpc")
    there = Server(tmp_path_factory.mktemp("connect"))
    yield there
    there.end()


class Remote:
    """A console on the server, in a workspace."""

    def __init__(self, server: Server, folder: Path) -> None:
        (folder / "ws" / "run").mkdir(parents=True, exist_ok=True)
        address = read_address(server.url)
        settings = Settings.of_server(address.shown, {}, {})
        store = Store(folder / "ws")
        config = Config(settings, folder / "ws" / "run", folder / "log", folder, store=store)
        self.session = ConnectSession(config, address)
        self.said = self.session.open()

    def run(self, script: str) -> list[Result]:
        return [self.session.execute(parse(s)) for s in split_script(Source("", script))]

    def rows(self, text: str) -> list[tuple[object, ...]]:
        (result,) = self.run(text)
        return list(result.whole().rows)  # type: ignore[attr-defined]

    def query(self, name: str) -> dict[str, object]:
        """The line of SHOW QUERIES about a query."""
        (shown,) = self.run("SHOW QUERIES;")
        assert isinstance(shown, Rows)
        return next(dict(zip(shown.columns, row, strict=True)) for row in shown.rows if row[0] == name)

    def refused(self, text: str) -> StreamsqlError:
        with pytest.raises(StreamsqlError) as caught:
            self.run(text)
        return caught.value


DEFINITIONS = """
CREATE STREAM words (word STRING, at TIMESTAMP) USING csv OPTIONS (path '{0}/in', header true)
  WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
CREATE SINK copies USING parquet OPTIONS (path '{0}/out');
INSERT INTO copies CHECKPOINT '{0}/checkpoint' SELECT word, at FROM words;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
AWAIT QUERY ALL IDLE;
"""


@pytest.mark.usefixtures("processes")
def test_queries_go_on_after_leaving(server: Server, tmp_path: Path, eventually: Callable[..., None]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("word,at\ncat,2024-05-01 12:02:00\ndog,2024-05-01 12:07:00\n")
    first = Remote(server, tmp_path)
    started = first.run(DEFINITIONS.format(tmp_path))
    assert notes_of(started[2])[0].startswith(
        "without a console, the server ends the session and its queries after 30m,"
    )
    assert "output mode complete: the whole result is emitted each time" in notes_of(started[3])
    assert not any("without a console" in note for note in notes_of(started[3]))  # once is enough
    assert first.rows("SELECT word, n FROM counts ORDER BY word;") == [("cat", 1), ("dog", 1)]
    assert first.rows("SHOW LIVE TABLES;") == [("counts", 2, "running")]
    assert first.rows("SELECT word FROM words WHERE word > 'd';") == [("dog",)]
    assert first.rows(f"SELECT count(*) FROM parquet.`{tmp_path}/out`;") == [(2,)]
    assert first.session.summary().running == 2
    assert first.session.left_running() == (
        f"2 queries go on at {server.url}: copies, counts; the server ends them 30m after the last console has "
        "left, unless it was started with --conf spark.connect.session.manager.defaultSessionTimeout=-1"
    )
    first.session.close()

    second = Remote(server, tmp_path)
    assert not any("stopped" in line for line in second.said)
    (watched,) = second.run("WATCH counts;")
    assert isinstance(watched, Live)
    assert watched.take(9, 0, ("word", False)).rows == [("cat", 1), ("dog", 1)]
    assert watched.changes(9, 0, None).total == 2
    put_whole(tmp_path / "in" / "b.csv", "word,at\ncat,2024-05-01 12:09:00\n")
    eventually(lambda: watched.take(9, 0, ("word", False)).rows == [("cat", 2), ("dog", 1)])
    eventually(lambda: watched.changes(9, 2, None).rows == [("-D", "cat", 1), ("+I", "cat", 2)])
    assert watched.status().status == "running"
    watched.close()
    second.session.parts.config.interactive = True
    (shown,) = second.run("SELECT word FROM words;")
    assert isinstance(shown, Live)
    eventually(lambda: sorted(shown.take(9, 0, None).rows) == [("cat",), ("cat",), ("dog",)])
    shown.close()
    assert shown.said().startswith("its query was stopped")
    second.session.parts.config.interactive = False
    assert (second.query("copies")["status"], second.query("copies")["mode"]) == ("running", "append")
    second.run("AWAIT QUERY ALL IDLE;")
    assert second.rows("SELECT word, n FROM counts ORDER BY word;") == [("cat", 2), ("dog", 1)]
    assert second.query("copies")["rows in"] == 3
    # A query that another program has started in this session, and one that has failed while nobody saw.
    spark = second.session.spark
    spark.readStream.format("rate").load().writeStream.format("noop").queryName("foreign").start()
    refused = second.refused(
        "CREATE STREAM k (a INT) USING kafka FORMAT json OPTIONS (servers 'h:1', topic 't'); SELECT a FROM k;"
    )
    assert (refused.message, refused.hint.partition(":")[0]) == (
        "the Connect server was started without the package of kafka",
        "start it with --packages org.apache.spark",
    )
    second.run("CREATE SINK bad USING noop; INSERT INTO bad SELECT raise_error('boom') AS x FROM words;")
    assert second.query("foreign")["trigger"] == "of another program"
    assert second.run("STOP QUERY foreign;")[0].message == "stopped: foreign"  # type: ignore[attr-defined]
    second.session.close()

    third = Remote(server, tmp_path)
    eventually(lambda: third.query("bad")["status"] == "FAILED")
    assert "boom" in str(third.query("bad")["last error"])
    third.run("STOP QUERY ALL;")
    assert third.query("copies")["status"] == "stopped"
    third.session.spark.client.release_session()  # as a server that is started again
    third.session.close()

    fourth = Remote(server, tmp_path)
    (said,) = notes_of(fourth.run("SHOW QUERIES;")[0])
    assert said.startswith(f"the session at {server.url} has ended") and "it ran bad, copies, counts;" in said
    fourth.run("START QUERY copies; AWAIT QUERY copies IDLE; DROP QUERY ALL;")
    assert fourth.rows(f"SELECT count(*) FROM parquet.`{tmp_path}/out`;") == [(3,)]
    assert fourth.rows("SHOW QUERIES;") == []
    fourth.session.close()


MIXED = """
CREATE STREAM orders (dim STRING) USING csv OPTIONS (path '{0}/orders');
CREATE STREAM customers (customer STRING, label STRING) USING csv OPTIONS (path '{0}/customers');
CREATE LIVE TABLE agg AS SELECT dim, count(*) AS c FROM orders GROUP BY dim;
"""
JOIN = "SELECT label, c FROM agg JOIN {0} ON dim = customer"


@pytest.mark.usefixtures("processes")
def test_a_live_table_over_live_tables_and_streams_is_refused_with_what_does_the_same(
    server: Server, tmp_path: Path
) -> None:
    """It would not follow the live table; what the hint says is tried."""
    for name in ("orders", "customers"):
        (tmp_path / name).mkdir()
    put_whole(tmp_path / "customers" / "1.csv", "x,Xaver\n")
    console = Remote(server, tmp_path)
    console.run(MIXED.format(tmp_path))
    for text in (JOIN.format("customers"), "SELECT dim FROM agg UNION ALL SELECT customer FROM customers"):
        refused = console.refused(f"CREATE LIVE TABLE m AS {text};")
        assert refused.code == "NOT_ON_CONNECT"
        assert refused.message == "a live table over live tables and streams: not on a Spark Connect server"
        assert "CREATE TEMPORARY VIEW … AS SELECT … over live tables only" in refused.hint
    console.run(
        f"CREATE LIVE TABLE c AS SELECT * FROM customers; CREATE TEMPORARY VIEW m AS {JOIN.format('c')};"
        "AWAIT QUERY ALL IDLE;"
    )
    (started,) = console.run(f"CREATE LIVE TABLE once OUTPUT MODE APPEND AS {JOIN.format('customers')};")
    assert "JOINED_ONCE" in {note.code for note in started.notes}
    console.run("AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM m;") == []
    put_whole(tmp_path / "orders" / "1.csv", "x\nx\n")
    console.run("AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM m;") == [("Xaver", 2)]
    assert console.rows("SELECT * FROM once;") == []
    # A SELECT is asked once: each row is used with the live table as it is.
    assert console.rows(f"{JOIN.format('customers')};") == [("Xaver", 2)]
    console.run("DROP QUERY ALL;")
    console.session.close()


@pytest.mark.usefixtures("processes")
def test_watched_selects_charts_and_pivots(server: Server, tmp_path: Path) -> None:
    """They work, or are refused with a clear word."""
    (tmp_path / "in").mkdir()
    put_whole(tmp_path / "in" / "1.csv", "1,x,2\n1,x,3\n2,y,4\n1,y,7\n")
    console = Remote(server, tmp_path)
    console.run(
        f"""CREATE STREAM sales (hour INT, class STRING, n INT) USING csv OPTIONS (path '{tmp_path}/in');
        CREATE LIVE TABLE per AS SELECT hour, class, sum(n) AS n FROM sales GROUP BY hour, class;
        AWAIT QUERY ALL IDLE;"""
    )
    (drawn,) = console.run("WATCH per AS CHART (hour, sum(n), class);")
    assert isinstance(drawn, Live) and drawn.chart == ("hour", "n", "class")
    drawn.close()
    (pivot,) = console.run("SELECT * FROM per PIVOT (sum(n) FOR class) ORDER BY hour;")
    assert isinstance(pivot, Rows) and pivot.columns == ("hour", "x", "y")
    assert [tuple(row) for row in pivot.rows] == [(1, 5, 7), (2, None, 4)]
    for text, code, message in (
        (
            "WATCH SELECT n FROM per WHERE n > 1;",
            "NOT_ON_CONNECT",
            "a live table, or a query, over live tables: not",
        ),
        (
            "WATCH (SELECT n FROM per) AS CHART;",
            "NOT_ON_CONNECT",
            "a live table, or a query, over live tables: not",
        ),
        (
            "SELECT * FROM sales PIVOT (sum(n) FOR class);",
            "CLAUSE_NOT_SUPPORTED",
            "PIVOT without IN over a stream",
        ),
        (
            "WATCH per AS CHART (hour, class);",
            "WRONG_TYPE",
            "the y of a chart is a number, and class is string",
        ),
    ):
        refused = console.refused(text)
        assert (refused.code, bool(refused.hint), bool(refused.span)) == (code, True, True)
        assert refused.message.startswith(message)
    console.run("DROP QUERY ALL;")
    console.session.close()


def test_what_a_remote_console_refuses(tmp_path: Path) -> None:
    context = Context(Catalog(), server=ConnectServer("sc://h:1"))
    for text, word in (
        ("WHY;", "WHY"),
        ("CREATE STREAM v (a INT) USING values;", "a stream USING values"),
        ("CREATE SINK j USING console;", "a sink USING console"),
        ("CREATE LIVE TABLE t RESTART 3 TIMES EVERY INTERVAL 1 SECOND AS SELECT 1;", "RESTART"),
        ("START QUERY q RETAIN 2 ROWS;", "KEY of a live table, and RETAIN"),
        ("CREATE SINK m USING memory RETAIN 2 ROWS;", "KEY of a live table, and RETAIN"),
    ):
        (written,) = split_script(Source("", text))
        with pytest.raises(StreamsqlError) as caught:
            plan(parse(written), context)
        assert (caught.value.code, bool(caught.value.hint), bool(caught.value.span)) == (
            "NOT_ON_CONNECT",
            True,
            True,
        )
        assert caught.value.message.startswith(word)


def test_a_join_by_ends_of_windows_is_unbounded_on_a_server(tmp_path: Path) -> None:
    """It has the console's rules over plans only where the console starts Spark."""
    side = "(SELECT {0}, count(*) AS n FROM s GROUP BY window(timestamp, '1 minute'))"
    context = Context(Catalog(), server=ConnectServer("sc://h:1"))
    for column, unbounded in (("window.end AS e", True), ("window AS e", False)):
        joined = f"{side.format(column)} x JOIN {side.format(column)} y ON x.e = y.e"
        text = f"""CREATE STREAM s USING rate WITH WATERMARK timestamp DELAY OF 1 MINUTE;
            CREATE LIVE TABLE t AS SELECT x.n FROM {joined};"""
        first, second = (parse(written) for written in split_script(Source("", text)))
        made = plan(second, replace(context, catalog=plan(first, context).applied(context.catalog)))
        assert any(n.code == "UNBOUNDED_STATE" for n in made.notes) is unbounded


def test_help_shows_what_planning_checks() -> None:
    page = topics()["connect"].text
    for lack in LACKS.values():
        assert f"| {lack.what} | no | {lack.why} |" in page.splitlines()
    assert f"CREATE STREAM USING {', '.join(READS)};" in page
    assert f"a sink USING {', '.join(WRITES[:-1])}, or into a table" in page


@pytest.mark.usefixtures("processes")
def test_flags_and_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ("--no-config", "--remote", "sc://h:1", "--jars", "a.jar")
    refused = run_process(*flags, "-e", "SELECT 1;", cwd=tmp_path)
    assert (refused.code, "--remote and --jars exclude each other" in refused.err) == (2, True)
    for wrong in ("http://u:secret@h", "sc://h:1/;tokn=secret", "sc://h:99999/;token=secret"):
        with pytest.raises(UsageFault) as caught:
            read_address(wrong)
        assert "secret" not in f"{caught.value.message}{caught.value.hint}"
    monkeypatch.setenv("OWN_TOKEN", "abc")
    assert read_address("sc://h/;token=${env:OWN_TOKEN}").parameters == {"token": "abc"}
    with pytest.raises(UsageFault, match="the environment has no variable NO_TOKEN"):
        read_address("sc://h/;token=${env:NO_TOKEN}")
    began = time.monotonic()
    nobody = run_process(
        "--no-config", "--remote", "sc://127.0.0.1:1/;token=abc", "-e", "SELECT 1;", cwd=tmp_path
    )
    assert (nobody.code, time.monotonic() - began < 20) == (3, True)
    assert "no Spark Connect server answers at sc://127.0.0.1:1\n" in nobody.err
    assert "start-connect-server.sh" in nobody.err and "abc" not in nobody.err


SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The first frame of a server that speaks HTTP/2."""


@pytest.fixture(scope="module")
def own_certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("certificate"))


@pytest.mark.parametrize(
    ("answer", "tls", "parameters", "detail"),
    [
        (SETTINGS, False, "", ""),
        (SETTINGS, True, "use_ssl=true", "its certificate is not trusted: self-signed certificate"),
        (SETTINGS, True, "trusted", ""),
        (SETTINGS, True, "", "it speaks TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n", False, "", "it is the server of a web page"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", False, "token=abc", "it does not speak TLS"),
        (b"", False, "", "it closes the connection"),
    ],
)
def test_a_server_that_is_not_one_of_connect_is_told_from_one(
    answer: bytes,
    tls: bool,
    parameters: str,
    detail: str,
    own_certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client of PySpark would tell it in words of C++."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(*own_certificate)
    if parameters == "trusted":
        monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(own_certificate[0]))
        parameters = "use_ssl=true"

    def answers(client: socket.socket) -> None:
        with client, suppress(OSError):
            if tls:
                client = trust.wrap_socket(client, server_side=True)
            client.recv(64)
            client.sendall(answer)

    def accept() -> None:
        with suppress(OSError):
            while True:
                answers(listening.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        found = obstacle(read_address(f"sc://127.0.0.1:{listening.getsockname()[1]}/;{parameters}"))
        listening.shutdown(socket.SHUT_RDWR)
    assert (found.detail if found else "") == detail


def test_a_server_of_another_version_is_told(tmp_path: Path) -> None:
    told: list[Event] = []
    address = read_address("sc://h:1")
    config = Config(Settings.of_server(address.shown, {}, {}), tmp_path, tmp_path / "log", tmp_path)
    engine = ConnectEngine(config, address, SessionRecord.read(address.shown, None), keeps=False)
    engine.events.subscribe(SessionRemark, told.append)
    engine._check_version("4.0.2")
    (remark,) = told
    assert isinstance(remark, SessionRemark)
    assert remark.note.text.startswith("sc://h:1 runs Spark 4.0.2, this console 4.3")
    with pytest.raises(StartFault, match=r"runs Spark 3\.5\.1, and this console needs Spark 4"):
        engine._check_version("3.5.1")


@pytest.mark.usefixtures("processes")
def test_a_server_that_ends(server: Server, tmp_path: Path, eventually: Callable[..., None]) -> None:
    """The last test: it kills the server."""
    console = Remote(server, tmp_path)
    console.run("CREATE STREAM r USING rate; CREATE SINK o USING noop; INSERT INTO o SELECT * FROM r;")
    news: list[str] = []
    console.session.on_news(news.append)
    server.end()
    eventually(lambda: any("does not answer" in line for line in news))
    assert isinstance(console.refused("SELECT 1;"), StartFault)
    assert console.rows("SHOW STREAMS;")[0][0] == "r"
    console.session.close()
