"""Every value of every type gets to the screen, a file and another console. Spark's CAST to STRING is the measure."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, fresh_console

from streamsql.errors import RuleFault
from streamsql.language.python_values import Pairs
from streamsql.output.cells import text
from streamsql.output.row_formats import FORMATS
from streamsql.results import Copied, Rows
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.moments import shown
from streamsql.runtime.engine.row_fetch import _blocks as blocks_of
from streamsql.runtime.engine.row_fetch import fetch_rows, live_table_rows
from streamsql.runtime.live.result_views import ChangesView, TableView
from streamsql.server.encoding import Message, decode

ROOMS = ("streamsql/runtime/", "streamsql/output/")

ZONE = "America/New_York"

VALUES = {
    "TIMESTAMP": (
        "TIMESTAMP '9999-12-31 23:59:59'",
        "timestamp_seconds(1715000000000)",
        "timestamp_seconds(-1715000000000)",
        "timestamp_micros(9223372036854775807)",
        "timestamp_micros(-9223372036854775808)",
        "TIMESTAMP '0001-01-01 00:00:00'",
        "TIMESTAMP '1883-11-18 12:03:57.5'",
        "TIMESTAMP '2024-07-01 12:00:00.123456'",
    ),
    "TIMESTAMP_NTZ": (
        "TIMESTAMP_NTZ '+10000-01-01 00:00:00.5'",
        "TIMESTAMP_NTZ '-0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ '2024-03-10 02:30:00'",
    ),
    "DATE": (
        "DATE '0001-01-01' - 1",
        "DATE '-0100-02-28'",
        "DATE '+56302-07-01'",
        "DATE '9999-12-31'",
        "DATE '1582-10-10'",
    ),
    "TIME": ("TIME '12:34:56.789'", "TIME '00:00:00'", "TIME '23:59:59.999999'"),
    "DOUBLE": (
        "double('NaN')",
        "double('Infinity')",
        "double('-Infinity')",
        "-0.0D",
        "0.1D",
        "4.9E-324D",
        "1E308D",
    ),
    "FLOAT": ("float('NaN')", "float('0.1')", "float('-Infinity')", "float('3.4E38')"),
    "DECIMAL(38,18)": ("12345678901234567890.123456789012345678BD", "-0.000000000000000001BD"),
    "DECIMAL(38,0)": ("99999999999999999999999999999999999999BD",),
    "BIGINT": ("9223372036854775807", "-9223372036854775807L - 1"),
    "BOOLEAN": ("true", "false"),
    "STRING": ("''", "'a \"b\", c'", "'Zürich 東京 \\u0001'", "CAST(X'61FF62' AS STRING)"),
}
"""SQL of values of each type."""
OWN_TEXT = {
    "BINARY": {"X'00FF61'": "0x00ff61", "X''": "0x"},
    "INTERVAL YEAR TO MONTH": {"INTERVAL '-1-3' YEAR TO MONTH": "-1 year -3 months"},
    "INTERVAL DAY TO SECOND": {"INTERVAL '106751991 04:00:00.5' DAY TO SECOND": "106751991 days 04:00:00.5"},
    "VARIANT": {
        """parse_json('{"a":[1,null,"ü"]}')""": '{"a":[1,null,"ü"]}',
        "parse_json('null')": "null",
        "CAST(TIMESTAMP '9999-12-31 23:59:59' AS VARIANT)": '"9999-12-31 23:59:59-05:00"',
        "CAST(DATE '+56302-07-01' AS VARIANT)": '"+56302-07-01"',
    },
}
"""SQL of values whose text is the console's own: hex digits, intervals as in DuckDB, JSON."""


@dataclass(frozen=True)
class Case:
    """sql: of the value; text: what a reader sees; number: whether that is a number of another spelling."""

    sql: str
    text: str
    number: bool = False


@dataclass(frozen=True)
class Column:
    """The values of one type, as column and inside others: get(value) is the value inside."""

    name: str
    cases: tuple[Case, ...]
    wrap: str = "{}"
    get: Callable[[Any], Any] = lambda value: value

    @property
    def sql(self) -> str:
        """An expression that gives the value of the number n, and NULL for other numbers."""
        whens = " ".join(f"WHEN {n} THEN {self.wrap.format(case.sql)}" for n, case in enumerate(self.cases))
        return f"CASE n {whens} END AS `{self.name}`"


def _key(value: Any) -> Any:
    ((key, _),) = value.items()
    return key


INSIDE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "in a struct": ("named_struct('f', {}, 'g', NULL)", lambda v: v["f"]),
    "in an array": ("array({}, NULL)", lambda v: v[0]),
    "as a map's value": ("map('k', {}, 'none', NULL)", lambda v: v["k"]),
    "as a map's key": ("map({}, 1)", _key),
    "in a struct as a map's key": ("map(named_struct('f', {}), 1)", lambda v: _key(v)["f"]),
    "deep": ("array(named_struct('m', map('k', array({}))))", lambda v: v[0]["m"]["k"][0]),
}


@pytest.fixture(scope="module")
def zoned(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    settings = {"spark.sql.session.timeZone": ZONE, "spark.sql.timeType.enabled": "true"}
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    with fresh_console(spark, tmp_path_factory.mktemp("values")) as console:
        yield console
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.fixture(scope="module")
def columns(zoned: Console) -> list[Column]:
    """All columns; Spark is asked once for its texts."""
    spark = zoned.session.spark
    asked = [(kind, sql) for kind, values in VALUES.items() for sql in values]
    casts = ", ".join(f"CAST({sql} AS STRING) AS c{n}" for n, (_, sql) in enumerate(asked))
    texts = dict(zip(asked, spark.sql(f"SELECT {casts}").first(), strict=True))
    kinds = {
        kind: tuple(Case(sql, texts[kind, sql], kind in ("DOUBLE", "FLOAT")) for sql in values)
        for kind, values in VALUES.items()
    } | {kind: tuple(Case(sql, own) for sql, own in values.items()) for kind, values in OWN_TEXT.items()}
    made = [Column(kind, cases) for kind, cases in kinds.items()]
    for inside, (wrap, get) in INSIDE.items():
        for kind, cases in kinds.items():
            if kind == "VARIANT" and "key" in inside:
                continue  # which Spark refuses
            made.append(Column(f"{kind} {inside}", cases, wrap, get))
    return made


@pytest.fixture(scope="module")
def most(columns: list[Column]) -> int:
    """The number of rows: one more than any type has values, so that each column has a NULL."""
    return 1 + max(len(column.cases) for column in columns)


@pytest.fixture(scope="module")
def select(columns: list[Column], most: int) -> str:
    return f"SELECT n, {', '.join(column.sql for column in columns)} FROM"


@pytest.fixture(scope="module")
def live(zoned: Console, select: str, most: int) -> Any:
    """The rows of a live table with all columns."""
    numbers = ", ".join(f"({n})" for n in range(most))
    zoned.run(
        f"CREATE STREAM numbers (n INT) USING values; CREATE LIVE TABLE kept AS {select} numbers;"
        f"INSERT INTO numbers VALUES {numbers}; AWAIT QUERY kept IDLE;"
    )
    return zoned.session.parts.live["kept"]


def same_number(one: float, other: float, key: bool) -> bool:
    """Whether numbers are the same. key: whether of a map, whose keys Spark makes 0.0 of -0.0."""
    return str(one) == str(other) or (key and one == other == 0)


def check(columns: list[Column], rows: Any, shown: Callable[[Any], str] = text) -> None:
    """Compare rows, whose first column is the number, with the texts."""
    wrong = []
    for row in rows:
        number = int(row[0])
        for column, value in zip(columns, row[1:], strict=True):
            if number >= len(column.cases):
                if value is not None:
                    wrong.append((column.name, "NULL", value))
                continue
            case, inner = column.cases[number], column.get(value)
            if case.number and inner is not None:
                if not same_number(float(inner), float(case.text), "key" in column.name):
                    wrong.append((column.name, case.text, inner))
            elif isinstance(inner, float):  # of JSON
                if Decimal(repr(inner)) != Decimal(case.text):
                    wrong.append((column.name, case.text, inner))
            elif shown(inner) != case.text:
                wrong.append((column.name, case.text, shown(inner)))
    assert wrong == []
    assert len(rows) > 1


@pytest.mark.slow
def test_a_small_select(zoned: Console, columns: list[Column], select: str, most: int) -> None:
    check(columns, zoned.rows(f"{select} (SELECT explode(sequence(0, {most - 1})) AS n);"))


@pytest.mark.slow
def test_a_large_select(zoned: Console, columns: list[Column], select: str, most: int) -> None:
    """The rows of a SELECT of many rows come in Arrow where that has all types of it."""
    frame = zoned.session.spark.sql(f"{select} (SELECT explode(sequence(0, {most - 1})) AS n)")
    in_arrow = [
        n
        for n, c in enumerate(columns)
        if c.name.split(" ")[0] not in ("TIME", "VARIANT") and "YEAR" not in c.name
    ]
    for chosen in (in_arrow, range(len(columns))):
        apart = frame.select("n", *(f"`{columns[n].name}`" for n in chosen))
        rows = [row for block in blocks_of(apart, CancelToken()) for row in block]
        check([columns[n] for n in chosen], rows)


@pytest.mark.slow
def test_rows_without_a_call_of_the_jvm(
    zoned: Console, columns: list[Column], select: str, most: int
) -> None:
    frame = zoned.session.spark.sql(f"{select} (SELECT explode(sequence(0, {most - 1})) AS n)")
    check(columns, fetch_rows(frame, CancelToken(), lambda error: error).whole().rows)


def test_a_select_of_a_live_table(zoned: Console, columns: list[Column], live: Any) -> None:
    check(columns, zoned.rows("SELECT * FROM kept;"))


def test_the_rows_of_a_select_over_a_stream(zoned: Console, columns: list[Column], live: Any) -> None:
    check(columns, live_table_rows(live, zoned.session.spark, CancelToken()).rows)


def test_watch(columns: list[Column], live: Any) -> None:
    check(columns, TableView(live, ZONE).take(100, 0, None).rows)
    check(columns, [row[1:] for row in ChangesView(live, ZONE).take(100, 0, None).rows])


@pytest.mark.slow
def test_a_live_table_of_groups(zoned: Console, columns: list[Column], live: Any, most: int) -> None:
    """The newest value of each group, of a type that aggregations take, over a live table."""
    plain = [
        n for n, column in enumerate(columns) if column.wrap == "{}" or column.name[-11:] == "in a struct"
    ]
    newest = ", ".join(f"max_by(`{columns[n].name}`, n) AS c{n}" for n in plain)
    zoned.run(
        f"CREATE LIVE TABLE newest AS SELECT n, {newest} FROM kept GROUP BY n; AWAIT QUERY newest IDLE;"
    )
    check([columns[n] for n in plain], zoned.rows("SELECT * FROM newest;"))


@pytest.mark.slow
def test_the_one_row_of_an_aggregation(zoned: Console, columns: list[Column], select: str) -> None:
    """Without GROUP BY there is a row of NULLs before the first rows, which has the same types as the later."""
    newest = ", ".join(f"max_by(`{column.name}`, n) AS c{n}" for n, column in enumerate(columns))
    zoned.run(
        "CREATE STREAM later (n INT) USING values;"
        f"CREATE LIVE TABLE last AS SELECT max(n) AS n, {newest} FROM ({select} later);"
    )
    assert zoned.rows("SELECT * FROM last;") == [(None,) * (1 + len(columns))]
    rows = []
    for number in range(2):
        zoned.run(f"INSERT INTO later VALUES ({number}); AWAIT QUERY last IDLE;")
        rows += zoned.rows("SELECT * FROM last;")
    check(columns, rows)


@pytest.mark.slow
def test_the_rows_after_a_restart(zoned: Console, columns: list[Column], live: Any) -> None:
    zoned.run("STOP QUERY kept; START QUERY kept; AWAIT QUERY kept IDLE;")
    check(columns, zoned.rows("SELECT * FROM kept;"))


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_another_console(columns: list[Column], live: Any, many: bool) -> None:
    """The rows in a message of the server."""
    rows = TableView(live, ZONE).take(100, 0, None).rows
    result = Rows((), ("n", *(c.name for c in columns)), list(rows) * (5 if many else 1))
    if not many:
        result = replace(result, columns=result.columns[:9], rows=[row[:9] for row in rows])
    message = Message(result)
    assert bool(message.body) == many
    received = decode(json.loads(json.dumps(message.value)), message.body)
    assert repr(received.rows) == repr(result.rows)


def test_files(columns: list[Column], live: Any) -> None:
    """Lines of CSV have the texts, those of JSON the values or their texts."""
    plain = [n for n, column in enumerate(columns) if column.wrap == "{}"]
    rows = [(row[0], *(row[n + 1] for n in plain)) for row in TableView(live, ZONE).take(100, 0, None).rows]
    result = Rows((), ("n", *(columns[n].name for n in plain)), rows)
    chosen = [columns[n] for n in plain]
    read = list(csv.reader(io.StringIO("\n".join(FORMATS["csv"](result)))))[1:]
    empty = next(n for n, column in enumerate(chosen) if column.name == "STRING")
    lines = [
        [row[0], *(v if v or n == empty and row[0] == "0" else None for n, v in enumerate(row[1:]))]
        for row in read
    ]
    check(chosen, lines)
    objects = [json.loads(line) for line in FORMATS["jsonl"](result)]
    check(chosen, [list(line.values()) for line in objects])


def test_every_format_shows_every_value(columns: list[Column], live: Any) -> None:
    rows = TableView(live, ZONE).take(100, 0, None).rows
    result = Rows((), ("n", *(c.name for c in columns)), rows)
    for name, lines in FORMATS.items():
        written = "\n".join(lines(result))
        assert "+56302-07-01" in written, name
        assert "12:34:56.789" in written, name


def test_a_map_has_all_its_keys() -> None:
    """Keys that are equal as shown are two keys, in JSON, too."""
    pairs = Pairs((("01:30", 1), ("01:30", 2)))
    assert text(pairs) == "{01:30: 1, 01:30: 2}"
    assert list(FORMATS["jsonl"](Rows((), ("m",), [(pairs,)]))) == ['{"m": {"01:30": 1, "01:30_2": 2}}']


def test_copy(zoned: Console, columns: list[Column], live: Any, tmp_path: Path) -> None:
    (copied,) = zoned.run(f"COPY (SELECT * FROM kept) TO '{tmp_path}/all.csv';")
    assert isinstance(copied, Copied)
    check(columns, copied.rows.whole().rows)


@pytest.mark.slow
def test_late_rows(zoned: Console) -> None:
    """Rows of a year that Python does not have, and that come after the watermark."""
    zoned.run(
        "CREATE STREAM events (n INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;"
        "CREATE LIVE TABLE counts OUTPUT MODE APPEND AS"
        " SELECT window.start AS start, count(*) AS c FROM events GROUP BY window(at, '1 minute');"
        "INSERT INTO events VALUES (1, TIMESTAMP '+10001-01-01 00:00:00'); AWAIT QUERY counts IDLE;"
        "INSERT INTO events VALUES (2, TIMESTAMP '-0010-01-01 00:00:00'), (3, TIMESTAMP '2024-01-01 00:00:00');"
        "AWAIT QUERY counts IDLE;"
    )
    rows = zoned.rows("SELECT n, at, _watermark FROM LATE ROWS OF QUERY counts ORDER BY n;")
    assert [(n, text(at), text(mark)) for n, at, mark in rows] == [
        (2, "-0010-01-01 00:00:00", "+10000-12-31 23:59:00"),
        (3, "2024-01-01 00:00:00", "+10000-12-31 23:59:00"),
    ]
    assert "+10000-12-31 23:59:00" in str(zoned.rows("SHOW QUERIES;"))


@pytest.mark.parametrize(
    "moment, shown_as",
    [
        (253402318799000, "9999-12-31 23:59:59"),
        (253402318800000, "+10000-01-01 00:00:00"),
        (1715000000000123, "+56316-03-09 19:53:20.123"),
        (-1715000000000000, "-52377-10-24 18:10:38"),
        (1714564800000, "2024-05-01 08:00:00"),
    ],
)
def test_moments_in_verdicts(moment: int, shown_as: str) -> None:
    assert shown(moment, ZONE) == shown_as


def test_a_type_that_is_switched_off_is_said(console: Console) -> None:
    console.run("SET spark.sql.timeType.enabled = false;")
    with pytest.raises(RuleFault, match="column t is a TIME, and that type is switched off") as raised:
        console.run("CREATE STREAM s (time STRING, x STRUCT<time: INT>, t TIME(6)) USING values;")
    assert raised.value.hint == "SET spark.sql.timeType.enabled = true; switches it on"
    assert raised.value.span is not None
    console.run("SET spark.sql.timeType.enabled = true; CREATE STREAM s (t TIME(6)) USING values;")
    assert console.rows("INSERT INTO s VALUES (TIME '12:34:56.7'); SELECT t FROM s;") == [
        (dt.time(12, 34, 56, 700_000),)
    ]


def test_many_rows_with_a_time_beside_an_interval(console: Console) -> None:
    select = "SELECT id, TIME '12:34:56' AS t, INTERVAL '1-2' YEAR TO MONTH AS i, named_struct('a', 1, 'a', 2) AS s"
    rows = console.rows(f"{select} FROM range(0, 3000, 1, 1);")
    assert len(rows) == 3000
    assert rows[:2] == console.rows(f"{select} FROM range(2);")


def test_keys_of_a_live_table(console: Console) -> None:
    """Values that Spark's GROUP BY takes for one are one key, others are different ones."""
    console.run(
        "CREATE STREAM s (k STRING, d DOUBLE, n INT) USING values;"
        "CREATE LIVE TABLE texts OUTPUT MODE UPDATE KEY (k) AS SELECT CAST(unhex(k) AS STRING) AS k, n FROM s;"
        "CREATE LIVE TABLE numbers OUTPUT MODE UPDATE KEY (d) AS SELECT d, n FROM s;"
        "CREATE LIVE TABLE both OUTPUT MODE UPDATE KEY (k, d) AS SELECT k, d, n FROM s;"
        "INSERT INTO s VALUES ('FF', 0.0, 1), ('FE', double('NaN'), 2), (NULL, NULL, 3), ('61', 1, 4);"
        "AWAIT QUERY texts IDLE; AWAIT QUERY numbers IDLE; AWAIT QUERY both IDLE;"
        "INSERT INTO s VALUES ('FF', -0.0, 11), ('6120', double('NaN'), 12), (NULL, NULL, 13), ('41', 2, 14);"
        "AWAIT QUERY texts IDLE; AWAIT QUERY numbers IDLE; AWAIT QUERY both IDLE;"
    )
    assert console.rows("SELECT hex(k), n FROM texts ORDER BY n;") == [
        ("FE", 2), ("61", 4), ("FF", 11), ("6120", 12), (None, 13), ("41", 14),
    ]  # fmt: skip
    assert console.rows("SELECT CAST(abs(d) AS STRING), n FROM numbers ORDER BY n;") == [
        ("1.0", 4), ("0.0", 11), ("NaN", 12), (None, 13), ("2.0", 14),
    ]  # fmt: skip
    assert console.rows("SELECT count(*) FROM both;") == [(6,)]


def test_null_of_a_variant(console: Console) -> None:
    """A missing path and a NULL text, also newest of a group, in a live table that is read again."""
    console.run(
        """CREATE STREAM s (id INT, body STRING) USING values;
        CREATE LIVE TABLE v AS SELECT id, parse_json(body) AS v, variant_get(parse_json(body), '$.b') AS b,
            named_struct('v', parse_json(body)) AS s FROM s;
        CREATE LIVE TABLE newest AS SELECT 1 AS one, max_by(v, id) AS v FROM v GROUP BY 1;
        INSERT INTO s VALUES (1, '{"a": 1}'), (2, '{"b": null}'), (3, NULL); AWAIT QUERY newest IDLE;"""
    )
    assert console.rows("SELECT * FROM v;") == [
        (1, '{"a":1}', None, {"v": '{"a":1}'}),
        (2, '{"b":null}', "null", {"v": '{"b":null}'}),
        (3, None, None, {"v": None}),
    ]
    assert console.rows("SELECT id, v:a::INT, schema_of_variant(v) FROM v ORDER BY id;") == [
        (1, 1, "OBJECT<a: BIGINT>"),
        (2, None, "OBJECT<b: VOID>"),
        (3, None, None),
    ]
    assert console.rows("SELECT * FROM newest;") == [(1, None)]
    console.run("STOP QUERY v; START QUERY v;")
    assert console.rows("SELECT id FROM v WHERE v IS NULL;") == [(3,)]


@pytest.mark.parametrize(
    "option, count", [("", 20), ("OPTIONS (numRows '3')", 3), ("OPTIONS (numRows '25')", 25)]
)
def test_the_console_sink_shows_so_many_rows(console: Console, option: str, count: int) -> None:
    shown_rows: list[Any] = []
    config = replace(
        console.session.parts.config, show_batch=lambda rows, batch: shown_rows.extend(rows.rows)
    )
    console.session.close()
    console.session = type(console.session)(config, console.session.spark)
    values = ", ".join(f"({n})" for n in range(30))
    console.run(
        f"CREATE STREAM s (n INT) USING values; CREATE SINK c USING console {option};"
        f"INSERT INTO c SELECT n FROM s; INSERT INTO s VALUES {values}; AWAIT QUERY c IDLE;"
    )
    assert len(shown_rows) == count
