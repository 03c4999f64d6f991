"""The values of options are checked at CREATE, by the kind of the option: what Spark takes is taken, too."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Console
from pyspark.errors import PySparkException

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.option_kinds import CHARSET, KINDS, SPARK_CHARSET
from streamsql.connectors.registry import connectors
from streamsql.errors import StreamsqlError
from streamsql.output.error_text import format_error

ROOMS = ("streamsql/connectors/", "streamsql/runtime/preflight/charsets.py")

UNCHECKED = {"text", "path", CHARSET, SPARK_CHARSET}
TIMES = (
    "10",
    "10s",
    "10 s",
    "5 min",
    "5min",
    "5m",
    "1h",
    "2d",
    "3us",
    "10S",
    " 5s ",
    "",
    "abc",
    "1.5s",
    "7 days",
    "s",
)
NUMBERS = (
    "0",
    "1",
    "+5",
    "-1",
    "2147483647",
    "2147483648",
    "9223372036854775808",
    "1k",
    "1.0",
    " 1",
    "x",
    "",
)


OF_FORMAT = {"csv": {}, "json": {"multiLine": "true"}, "xml": {"rowTag": "r"}}


def specs() -> list[OptionSpec]:
    both = [spec for c in connectors().values() for spec in (*(c.reads or ()), *(c.writes or ()))]
    return list(dict.fromkeys(both))


def test_each_kind_is_in_the_table_and_takes_its_defaults() -> None:
    kinds = {spec.kind for spec in specs()}
    assert kinds - UNCHECKED <= set(KINDS)
    assert set(KINDS) <= kinds  # none is unused
    for spec in specs():
        if spec.default and spec.kind not in UNCHECKED:
            assert spec.takes(spec.default), spec


def test_options_that_name_a_number_have_a_kind() -> None:
    """An option whose description speaks of numbers, times or sizes is checked as one."""
    words = ("number of", "maximum", "minimum", "seconds", "in bytes", "port")
    unchecked = [s.name for s in specs() if s.kind == "text" and any(word in s.help for word in words)]
    assert unchecked == []


@pytest.mark.parametrize("value", TIMES)
def test_a_duration_is_what_spark_reads(spark: Any, value: str) -> None:
    try:
        spark._jvm.org.apache.spark.network.util.JavaUtils.timeStringAsMs(value)
        taken = True
    except PySparkException:
        taken = False
    assert KINDS["duration"].takes(value) == taken


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize(
    ("kind", "option"), [("positive number", "rowsPerSecond"), ("positive integer", "numPartitions")]
)
def test_a_number_is_what_spark_reads(spark: Any, kind: str, option: str, value: str) -> None:
    try:
        spark.readStream.format("rate").option(option, value).load()
        taken = True
    except Exception as refused:
        assert value == " 1" or "positive" in str(refused) or "For input string" in str(refused)
        taken = False
    assert KINDS[kind].takes(value) == taken


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("form", ["csv", "json", "xml"])
@pytest.mark.parametrize("name", ["windows-1252", "utf-16be", "KOI8-R", "nope", "UTF 8"])
def test_a_character_set_is_what_spark_reads(console: Console, tmp_path: Any, form: str, name: str) -> None:
    options = {"path": tmp_path, "encoding": name} | OF_FORMAT[form]
    written = ", ".join(f"{key} '{value}'" for key, value in options.items())
    reader = console.session.spark.read.format(form).schema("a STRING").option("encoding", name)
    (tmp_path / "a").write_text("<r><a>1</a></r>")
    try:
        reader.options(**OF_FORMAT[form]).load(str(tmp_path)).collect()
        taken = True
    except Exception:
        taken = False
    try:
        console.run(f"CREATE STREAM s (a STRING) USING {form} OPTIONS ({written});")
        created = True
    except StreamsqlError as fault:
        assert fault.message == f"option encoding takes a character set, not '{name}'"
        created = False
    assert created == taken


def test_the_setting_of_spark_lets_others_be_read(console: Console, tmp_path: Any) -> None:
    create = f"CREATE SINK s USING csv OPTIONS (path '{tmp_path}', encoding 'windows-1252');"
    with pytest.raises(StreamsqlError) as caught:
        console.run(create)
    shown = format_error(caught.value)
    assert "hint: SET spark.sql.legacy.javaCharsets = true; lets Spark take others of Java's" in shown
    assert create[caught.value.span.start : caught.value.span.end] == "'windows-1252'"
    console.run(f"SET spark.sql.legacy.javaCharsets = true; {create}")


@pytest.mark.parametrize(
    ("kind", "value", "hint"),
    [
        ("duration", "7 days", "'7d'"),
        ("duration", "INTERVAL 90 SECONDS", "'90s'"),
        ("duration", "soon", "'30s', '5m', '2h', '7d'"),
        ("number of milliseconds", "5 seconds", "'5000'"),
        ("number of milliseconds", "2m", "'120000'"),
        ("number of seconds", "2 minutes", "'120'"),
        ("number of bytes", "10mb", "'10485760'"),
        ("positive number of bytes", "1 GiB", "'1073741824'"),
        ("number of bytes", "much", ""),
        ("list of host:port", "kafka", "'host:9092'"),
    ],
)
def test_a_hint_is_the_value_in_the_form_of_the_option(kind: str, value: str, hint: str) -> None:
    assert not KINDS[kind].takes(value)
    assert KINDS[kind].hint(value) == hint


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("number from 1 to 65535", ("1", "9999", "65535"), ("0", "65536", "-1", "x", "", "٣")),
        ("fraction", ("0.1", "1", "1e-3"), ("0", "-1", "x", "nan", "")),
        ("single character", ("", "a", "é", "\t"), ("ab", "😀")),
        ("list of host:port", ("h:1", "a:1, b:2", "PLAIN://h:9", "[::1]:9", "${env:K}"), ("h", "h:0", "h:65536", "a:1,")),
        ("JSON object", ('{"t":{"0":1}}',), ("[1]", "latest", "{", "")),
        ("list of http://host:port", ("http://h:8081", "https://h"), ("h:8081", "http://", "http://h:0", "http://h:x")),
    ],
)  # fmt: skip
def test_what_a_kind_takes(kind: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    assert [value for value in right if not KINDS[kind].takes(value)] == []
    assert [value for value in wrong if KINDS[kind].takes(value)] == []
