"""The MySQL door, as real clients see it: PyMySQL, mysql-connector, SQLAlchemy, pandas, the mariadb client."""

from __future__ import annotations

import datetime as dt
import math
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mysql.connector
import pandas as pd
import pymysql
import pytest
import sqlalchemy as sa
from conftest import Console
from pymysql.cursors import SSCursor

from streamsql.cli.addresses import tls_of
from streamsql.errors import InputFault, UsageFault
from streamsql.features.mysql.mysql_door import Door, open_doors, password_of
from streamsql.output.printer import Printer

ROOMS = ("streamsql/features/mysql/", "streamsql/server/client_session.py")
LONG = "SELECT count(*) FROM range(100000000) a CROSS JOIN range(100000) b WHERE a.id + b.id = 7"
ORDERS = """
CREATE STREAM orders (id INT, price DECIMAL(10, 2)) USING values;
CREATE LIVE TABLE totals AS SELECT id, sum(price) AS total, count(*) AS n FROM orders GROUP BY id;
INSERT INTO orders VALUES (1, 1.50), (1, 2.25), (2, 3);
AWAIT QUERY totals IDLE;
CREATE TEMPORARY VIEW things AS SELECT 7 AS id, 'seven' AS name;
"""


@pytest.fixture
def door(console: Console) -> Iterator[Door]:
    door = Door(console.session.parts, "127.0.0.1", 0, "open it")
    yield door
    door.close()


def connect(door: Door, **more: Any) -> Any:
    return pymysql.connect(
        host="127.0.0.1", port=door.address[1], user="me", **{"password": "open it"} | more
    )


def rows(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def error(connection: Any, statement: str) -> tuple[int, str]:
    with pytest.raises(pymysql.MySQLError) as raised:
        rows(connection, statement)
    return raised.value.args


VALUES = {
    "true": 1, "CAST(-5 AS TINYINT)": -5, "CAST(-300 AS SMALLINT)": -300, "-70000": -70000, "5000000000": 5000000000,
    "CAST(0.5 AS FLOAT)": 0.5, "1e300D": 1e300, "CAST('123456789012345678.123456789' AS DECIMAL(38, 9))": Decimal("123456789012345678.123456789"),
    "'it\\'s ü 😀'": "it's ü 😀", "X'00ff'": b"\x00\xff", "DATE '2024-02-29'": dt.date(2024, 2, 29),
    "TIMESTAMP '2024-05-01 12:00:00.000001'": dt.datetime(2024, 5, 1, 12, 0, 0, 1),
    "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    "TIME '12:30:00.5'": dt.timedelta(hours=12, minutes=30, milliseconds=500),
    "array(1, NULL)": "[1, null]", "map('a', DATE '2024-01-01')": '{"a": "2024-01-01"}', "named_struct('x', 1.5)": '{"x": 1.5}',
    "INTERVAL '1 02:03:04' DAY TO SECOND": "1 day 02:03:04", "NULL": None, "double('Infinity')": math.inf,
}  # fmt: skip


@pytest.mark.usefixtures("processes")  # mysql-connector asks lsb_release for the system
def test_every_type_in_both_protocols(door: Door) -> None:
    client, selected = connect(door), f"SELECT {', '.join(VALUES)}"
    assert rows(client, selected) == [tuple(VALUES.values())]
    assert math.isnan(rows(client, "SELECT double('NaN')")[0][0])
    assert rows(client, "SELECT CAST(0.1 AS FLOAT), DATE '-0044-03-15'") == [(0.1, "-0044-03-15")]
    connector = mysql.connector.connect(
        host="127.0.0.1", port=door.address[1], user="me", password="open it", use_pure=True
    )
    prepared = connector.cursor(prepared=True)
    prepared.execute(selected)
    assert prepared.fetchall() == [tuple(VALUES.values())]
    # parameters keep their types, and a text is no SQL
    moment, day = dt.datetime(2024, 1, 1, 12, 0, 0, 5), dt.date(2024, 2, 29)
    given = ("it's ? \\ x ${env:HOME}", -5, Decimal("1.25"), moment, day, 2.5, None, b"\xff")
    prepared.execute("SELECT ?, ?, ?, ?, ?, ?, ?, ?, '?' /* ? */", given)
    assert prepared.fetchall() == [(*given, "?")]
    prepared.execute("SELECT id FROM range(3) WHERE id > ?", (1,))
    assert prepared.fetchall() == [(2,)]
    with pytest.raises(mysql.connector.Error, match="has no form in a result of a prepared statement"):
        prepared.execute("SELECT DATE '-0044-03-15'")
        prepared.fetchall()


CHANGING = """
INSERT INTO things VALUES (9, 9)
INSERT INTO csv.`/tmp/nowhere` SELECT 1
DROP LIVE TABLE totals
STOP QUERY totals
CREATE TABLE t (a INT)
/* SELECT */ DROP VIEW things
FROM things INSERT INTO t SELECT *
WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x
CACHE TABLE things
STOP SERVER
"""


def test_mistakes_settings_and_what_is_refused(door: Door, console: Console) -> None:
    console.run("CREATE TEMPORARY VIEW things AS SELECT 7 AS id, 'seven' AS name;")
    client, other = connect(door), connect(door)
    assert error(client, "SELECT * FROM thingz")[0] == 1146
    code, text = error(client, "SELECT nam FROM things")
    assert code == 1054 and "did you mean name?" in text
    assert error(client, "SELEC 1")[0] == 1064
    assert error(client, "DESCRIBE nothing")[0] == 1146
    for refused in (
        "SELECT 1; SELECT 2",
        "USE SCHEMA default",
        "COPY (SELECT 1) TO 'file.csv'",
        "SOURCE 'a.sql'",
    ):
        assert error(client, refused)[0] == 1235, refused
    for changing in CHANGING.strip().splitlines():
        code, text = error(client, changing)
        assert (code, "the MySQL door only reads" in text) == (1290, True), changing
    assert "its value would be shown" in error(client, "SELECT '${env:HOME}'")[1]
    rows(client, "SET time_zone = '+02:00'")
    rows(client, "SET spark.sql.ansi.enabled = false")
    assert "nowhere" in error(client, "SET time_zone = 'nowhere'")[1]
    moment = "SELECT TIMESTAMP '2024-01-01 12:00:00+00:00', current_timezone()"
    assert rows(client, moment) == [(dt.datetime(2024, 1, 1, 14), "+02:00")]
    assert rows(other, moment) == [(dt.datetime(2024, 1, 1, 12), "UTC")]
    assert rows(client, "SELECT 1 / 0") == [(None,)]
    assert "DIVIDE_BY_ZERO" in error(other, "SELECT 1 / 0")[1]


@pytest.mark.slow
def test_live_tables_and_what_dashboards_ask(door: Door, console: Console) -> None:
    console.run(ORDERS)
    client = connect(door)
    assert rows(client, "SELECT * FROM totals ORDER BY id") == [
        (1, Decimal("3.75"), 2),
        (2, Decimal("3.00"), 1),
    ]
    # as Grafana and Superset write it: with the schema of information_schema
    console.run("CREATE TABLE plain USING parquet AS SELECT 5 AS id;")
    of_schema = "SELECT totals.id, name FROM `default`.totals JOIN default.things ON n < 2 JOIN default.plain ON plain.id = 5"
    assert rows(client, of_schema) == [(2, "seven")]
    assert "default.nothing" in error(client, "SELECT * FROM default.nothing")[1]
    console.run("DROP TABLE plain;")
    console.run("INSERT INTO orders VALUES (2, 1); AWAIT QUERY totals IDLE;")
    assert rows(client, "SELECT total FROM totals WHERE id = 2") == [(Decimal("4.00"),)]
    assert error(client, "WATCH totals")[0] == 1235
    # as mysql and mariadb ask when they connect, and Grafana and Metabase
    assert rows(client, "SELECT @@version_comment LIMIT 1") == [("streamsql: HELP mysql",)]
    assert rows(client, "SELECT DATABASE(), USER()") == [("default", "me")]
    assert rows(client, "SHOW TABLES") == [("things",), ("totals",)]
    assert ("default",) in rows(client, "SHOW DATABASES")
    assert [row[:3] for row in rows(client, "DESCRIBE totals")] == [
        ("id", "int", "YES"), ("total", "decimal(20,2)", "YES"), ("n", "bigint", "YES"),
    ]  # fmt: skip
    assert rows(client, "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = database()"
                        " AND table_name = 'TOTALS' AND data_type IN ('bigint', 'decimal') ORDER BY column_name") == [
        ("n", "bigint"), ("total", "decimal"),
    ]  # fmt: skip
    first = "(SELECT column_name FROM information_schema.columns c WHERE c.table_name = t.table_name ORDER BY 1 LIMIT 1)"
    assert rows(client, f"SELECT table_name, {first} FROM information_schema.tables t WHERE table_schema = 'default'") == [
        ("things", "id"), ("totals", "id"),
    ]  # fmt: skip
    zone = "SELECT @@system_time_zone, time_format(timediff(now(), convert_tz(now(), '+02:00', '+00:00')), '%H:%i') AS off"
    assert rows(client, zone) == [("UTC", "02:00")]


@pytest.mark.slow
def test_sqlalchemy_and_pandas(door: Door, console: Console) -> None:
    console.run(ORDERS)
    engine = sa.create_engine(f"mysql+pymysql://me:open%20it@127.0.0.1:{door.address[1]}/default")
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["totals"] and inspector.get_view_names() == ["things"]
    assert [(c["name"], str(c["type"])) for c in inspector.get_columns("totals")] == [
        ("id", "INTEGER"), ("total", "DECIMAL(20, 2)"), ("n", "BIGINT"),
    ]  # fmt: skip
    assert (
        inspector.get_indexes("totals") == []
        and inspector.has_table("totals")
        and not inspector.has_table("nothing")
    )
    table = sa.Table("totals", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert connection.execute(sa.select(table.c.total).where(table.c.id == 1).limit(5)).all() == [
            (Decimal("3.75"),)
        ]
    read = pd.read_sql("SELECT id, n FROM totals ORDER BY id", engine)
    assert read.to_dict("list") == {"id": [1, 2], "n": [2, 1]}


@pytest.mark.slow
def test_each_connection_has_a_schema_of_its_own(door: Door, console: Console) -> None:
    console.run("CREATE SCHEMA sales; CREATE TABLE sales.orders AS SELECT 7 AS id;")
    try:
        one, other = connect(door, database="sales"), connect(door)
        assert rows(one, "SELECT * FROM orders") == [(7,)]
        assert error(other, "SELECT * FROM orders")[0] == 1146
        other.select_db("SALES")
        assert rows(other, "SELECT id FROM orders") == [(7,)]
        assert rows(other, "SELECT DATABASE()") == [("sales",)]
        assert console.rows("SELECT current_schema();") == [("default",)]
        wrong = connect(door, database="nowhere")
        assert error(wrong, "SELECT 1")[0] == 1049
    finally:
        console.run("DROP SCHEMA sales CASCADE;")


def test_a_wrong_password_lets_nobody_in(door: Door) -> None:
    for password in ("wrong", ""):
        with pytest.raises(pymysql.OperationalError, match="Access denied") as raised:
            connect(door, password=password)
        assert raised.value.args[0] == 1045
    # a client that asks all the same gets no answer
    with socket.create_connection(door.address) as client:
        client.settimeout(20)
        client.recv(1000)
        login = (
            b"\x05\xa2\x0a\x00\x00\x00\x00\x01\x21"
            + bytes(23)
            + b"me\x00\x14"
            + b"x" * 20
            + b"mysql_native_password\x00"
        )
        query = b"\x03SELECT 1"
        packets = b"".join(
            len(p).to_bytes(3, "little") + bytes((n,)) + p for p, n in ((login, 1), (query, 0))
        )
        client.sendall(packets)
        answer = b"".join(iter(lambda: client.recv(1000), b""))
    assert b"Access denied" in answer and answer.count(b"\xff") == 1


def test_malformed_packets_harm_nobody(door: Door) -> None:
    client = connect(door)
    for sent in (
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x00" * 3,
        b"\xff\xff\xff\x01" + b"x" * 100,
        b"\x05\x00\x00\x01abcde",
        bytes(range(250)),
    ):
        with socket.create_connection(door.address) as stranger:
            stranger.settimeout(20)
            assert b"mysql_native_password" in stranger.recv(1000)
            stranger.sendall(sent)
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(1000):  # it is closed in the end
                pass
    for command in (b"", b"\x99", b"\x17\x01\x00\x00\x00", b"\x03\xff\xfe", b"\x11\x00", b"\x1c\x01"):
        broken = connect(door)
        broken._sock.settimeout(20)
        broken._sock.sendall(len(command).to_bytes(3, "little") + b"\x00" + command)
        assert broken._sock.recv(1000)[4:5] in (b"", b"\xff")
    assert rows(client, "SELECT 1") == [(1,)]


@pytest.mark.slow
def test_what_a_client_does_ends_no_query(
    door: Door, console: Console, eventually: Callable[..., None]
) -> None:
    console.run(ORDERS)
    one, other, failures = connect(door), connect(door), list[Any]()

    def ask(connection: Any) -> threading.Thread:
        def run() -> None:
            try:
                rows(connection, LONG)
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        eventually(lambda: bool(jobs()))
        return thread

    def jobs() -> Any:
        return console.session.spark.sparkContext.statusTracker().getActiveJobsIds()

    asked = ask(one)
    rows(other, f"KILL QUERY {one.thread_id()}")
    asked.join(20)
    assert failures[0].args[0] == 1317 and rows(one, "SELECT 2") == [(2,)]
    eventually(lambda: not jobs())
    asked = ask(one)
    one._sock.shutdown(socket.SHUT_RDWR)  # it goes away while it waits
    asked.join(20)
    eventually(lambda: not jobs())
    dying = connect(door, cursorclass=SSCursor)
    cursor = dying.cursor()
    cursor.execute("SELECT id, repeat('x', 1000) FROM range(0, 10000000, 1, 500)")
    assert cursor.fetchone()[0] == 0
    dying._force_close()  # in the middle of a result
    cursor._result.unbuffered_active = False  # else PyMySQL complains when the cursor is collected
    eventually(lambda: not jobs())
    assert console.rows("SHOW QUERIES;")[0][:2] == ("totals", "running")
    results, clients = list[Any](), [connect(door) for _ in range(50)]

    def read(connection: Any) -> None:
        results.append(rows(connection, "SELECT sum(n) FROM totals"))

    threads = [threading.Thread(target=read, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [[(Decimal(3),)]] * 50


@pytest.mark.slow
def test_a_million_rows_in_flat_memory(door: Door) -> None:
    def memory() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1_000_000

    with connect(door, cursorclass=SSCursor).cursor() as cursor:
        cursor.execute("SELECT id, repeat('x', 300) AS text FROM range(1000000)")
        before, most, number = memory(), 0, 0
        for row in cursor:
            assert row[0] == number
            number += 1
            if number % 50_000 == 0:
                most = max(most, memory())
    assert len(rows(connect(door), "SELECT repeat('x', 17000000)")[0][0]) == 17_000_000  # in two frames
    assert number == 1_000_000 and most - before < 150, (before, most)


@pytest.mark.slow
def test_a_door_that_writes(console: Console) -> None:
    door = Door(console.session.parts, "127.0.0.1", 0, "", writes=True)
    try:
        client = connect(door, password="")
        rows(client, "CREATE STREAM orders (id INT, price DECIMAL(10, 2)) USING values")
        rows(client, "CREATE LIVE TABLE totals AS SELECT count(*) AS n FROM orders")
        rows(client, "INSERT INTO orders VALUES (1, 1.50)")
        rows(client, "AWAIT QUERY totals IDLE")
        assert console.rows("SELECT * FROM totals;") == [(1,)] == rows(client, "SELECT * FROM totals")[:1]
    finally:
        door.close()


def shake_hands(address: tuple[str, int], trusted: ssl.SSLContext) -> None:
    """Begin TLS in the packet that asks for it, as the system may send it."""
    arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusted.wrap_bio(arrived, leaving)
    asked = (0x8AA05).to_bytes(4, "little") + bytes(3) + b"\x01\x21" + bytes(23)
    with socket.create_connection(address) as client:
        client.settimeout(20)
        client.recv(1000)
        request = len(asked).to_bytes(3, "little") + b"\x01" + asked
        while True:
            try:
                return tls.do_handshake()
            except ssl.SSLWantReadError:
                client.sendall(request + leaving.read())
                request = b""
                arrived.write(client.recv(65536) or pytest.fail("the door has closed the connection"))


@pytest.mark.slow
def test_tls(console: Console, tmp_path: Path) -> None:
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    tls = tls_of(f"{tmp_path}/cert.pem", f"{tmp_path}/key.pem", "--mysql-tls")
    door = Door(console.session.parts, "127.0.0.1", 0, "open it", tls)
    try:
        trusted = ssl.create_default_context(cafile=f"{tmp_path}/cert.pem")
        trusted.check_hostname = False
        assert rows(connect(door, ssl=trusted), "SELECT 1") == [(1,)]
        for _ in range(10):
            shake_hands(door.address, trusted)
        with pytest.raises(pymysql.OperationalError, match="TLS connections only"):
            connect(door, ssl_disabled=True)
    finally:
        door.close()
    with pytest.raises(InputFault, match="no such file"):
        tls_of("nothing.pem", "nothing.pem", "--mysql-tls")


def test_flags(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("DOOR_PASSWORD", "from the environment")
    assert password_of("env:DOOR_PASSWORD", "0.0.0.0") == "from the environment"
    assert password_of(f"file:{tmp_path}/secret", "127.0.0.1") == "from a file"
    assert password_of("none", "127.0.0.1") == "" == password_of("none", "::1")
    wrong = {
        ("none", "0.0.0.0"): "a door that is open beyond this machine",
        ("none", "db.example"): "a door that is open beyond this machine",
        ("", "127.0.0.1"): "--mysql-password is missing",
        ("hunter2", "127.0.0.1"): "takes a reference, never the password itself",
        ("env:NOT_THERE", "127.0.0.1"): "no variable NOT_THERE",
    }
    for (reference, host), said in wrong.items():
        with pytest.raises(UsageFault, match=said) as raised:
            password_of(reference, host)
        assert "hunter2" not in str(raised.value)
    with pytest.raises(UsageFault, match="--mysql cannot listen on .*: address already in use"):
        Door(door.parts, *door.address, "open it")
    flags = dict.fromkeys(("mysql", "mysql_password", "mysql_tls", "mysql_write"))
    for given, said in (
        ({"mysql": "3306"}, "is for a server"),
        ({"mysql_write": True}, "--mysql-write needs --mysql"),
    ):
        line: Any = SimpleNamespace(flags=flags | given, serving=False, server=None)
        with pytest.raises(UsageFault, match=said):
            open_doors(line, door.parts, Printer.__new__(Printer))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("mariadb"), reason="the client of MariaDB is not installed")
def test_the_client_of_mariadb(door: Door, console: Console) -> None:
    console.run(ORDERS)

    def asked(statement: str) -> tuple[str, str]:
        command = [
            "mariadb",
            "--no-defaults",
            "-h127.0.0.1",
            f"-P{door.address[1]}",
            "-ume",
            "-popen it",
            "-e",
            statement,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.stdout, done.stderr

    assert asked(
        "SHOW TABLES; SELECT * FROM totals ORDER BY id; USE information_schema; SELECT count(*) FROM schemata"
    )[0] == ("Table_name\nthings\ntotals\nid\ttotal\tn\n1\t3.75\t2\n2\t3.00\t1\nCOUNT(*)\n3\n")
    assert "ERROR 1290 (HY000)" in asked("DROP LIVE TABLE totals")[1]
    assert "ERROR 1064 (42000)" in asked("SELEC 1")[1]
