"""What the console accepts, written into the catalog of a workspace and read back, is the same."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from generated import examples
from hypothesis import example, given
from hypothesis import strategies as st

from streamsql.catalog import Catalog
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.base import Statement
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.reopen import reopen, take_up
from streamsql.runtime.workspace.store import Store
from streamsql.secrets import is_secret_key

BASE = "CREATE STREAM s (n INT, word STRING, at TIMESTAMP) USING values; CREATE SINK k USING noop;"
# What has a meaning to the reader of scripts, among any characters at all.
PIECES = st.sampled_from(
    ["'", '"', "`", "``", ";", "--", "--1", "/*", "*/", "/*+", "\\", "\\'", "\\u0041", "\\101", "\\%", "%", "\n",
     "\r\n", "\r", "\t", "\0", "\u2028", "\x85", "${", "${x}", "${env:HOME}", "$", "{", "}", "END", "BEGIN", "r'", "=",
     " AS ", ", ", "SET", "é", "ß", "İ", "𝄞", "***", "$malformed"]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=6).map("".join)
NAMES = st.one_of(
    st.sampled_from(["a", "B", "select", "from", "live", "end", "a.b", "ä", "1x", " ", "..", "x y"]),
    TEXTS.filter(lambda t: bool(t) and "${" not in t),
)


def in_backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@st.composite
def literals(draw: Any, texts: st.SearchStrategy[str] = TEXTS) -> str:
    """A text as an analyst may write it: either quote, raw, or each character by its number."""
    text = draw(texts)
    way = draw(st.integers(0, 3))
    if way == 0 and "'" not in text and "${" not in text:
        return f"r'{text}'"
    if way == 1 and all(ord(c) < 0x10000 for c in text):
        return "'" + "".join(f"\\u{ord(c):04x}" for c in text) + "'"
    sign = '"' if way == 2 else "'"
    escaped = text.replace("\\", "\\\\").replace(sign, "\\" + sign).replace("${", "\\u0024{")
    return sign + escaped + sign


@st.composite
def queries(draw: Any) -> str:
    column = in_backticks(draw(NAMES))
    text, comment = draw(literals()), draw(st.sampled_from(["", "-- it's; ${\n", "/* ; ' */"]))
    return f"SELECT n, {text} AS {column} {comment} FROM s WHERE word = {draw(literals())}"


@st.composite
def clauses(draw: Any, *, insert: bool = False) -> str:
    written = [
        draw(
            st.sampled_from(
                ["", "TRIGGER AVAILABLE NOW", "TRIGGER EVERY INTERVAL '1' MINUTE", "TRIGGER ONCE"]
            )
        ),
        draw(st.sampled_from(["", "OUTPUT MODE append", "OUTPUT MODE UPDATE"])),
        draw(st.sampled_from(["", "RESTART 3 TIMES EVERY '10 s'"])),
    ]
    if insert and draw(st.booleans()):
        written.append(f"CHECKPOINT {draw(literals())}")
    if not insert:
        written.append(draw(st.sampled_from(["", "RETAIN 5 ROWS"])))
        written.append(draw(st.just("") | literals().map(lambda text: f"COMMENT {text}")))
    return " ".join(draw(st.permutations(written)))


@st.composite
def statements(draw: Any) -> str:
    name = in_backticks(draw(NAMES))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        key = draw(
            st.sampled_from(["spark.a", "spark.a-b", "spark.1"]) | literals(TEXTS.map("spark.".__add__))
        )
        return f"SET {key} = {draw(literals())}"
    if kind == 1:
        return f"CREATE STREAM {name} AS {draw(queries())}"
    if kind == 2:
        columns = ", ".join(
            f"{in_backticks(c)} STRUCT<a: INT, b: ARRAY<STRING>> COMMENT {draw(literals())}"
            for c in draw(st.lists(NAMES, min_size=1, max_size=2, unique_by=str.casefold))
        )
        path = draw(literals())
        options = f"path {path}, dateFormat {draw(literals())}"
        return f"CREATE STREAM {name} ({columns}) USING csv OPTIONS ({options}) COMMENT {draw(literals())}"
    if kind == 3:
        key, text = draw(literals(TEXTS.map("kafka.".__add__))), draw(literals())
        return (
            f"CREATE SINK {name} USING kafka OPTIONS (servers 'h:1', topic {draw(literals())}, {key} {text})"
        )
    if kind == 4:
        return f"CREATE SINK {name} (n INT) USING memory KEY ({in_backticks(draw(NAMES))}) COMMENT {draw(literals())}"
    if kind == 5:
        return f"CREATE LIVE TABLE {name} {draw(clauses())} AS {draw(queries())}"
    if kind == 6:
        return f"INSERT INTO k AS QUERY {name} {draw(clauses(insert=True))} {draw(queries())}"
    if kind == 7:
        table = f"TABLE ({in_backticks(draw(NAMES))} INT COMMENT {draw(literals())})"
        returns = draw(st.sampled_from(["STRING", "MAP<STRING, ARRAY<INT>>", table]))
        return f"CREATE FUNCTION {name} AS 'module.f' LANGUAGE PYTHON RETURNS {returns}"
    if kind == 8:
        return f"CREATE OR REPLACE TEMPORARY VIEW v AS {draw(queries())}"
    body = "INSERT INTO k " + draw(queries()) + ";"
    return f"EXECUTE STATEMENT SET AS QUERY {name} BEGIN {body} END"


def opened(folder: Path) -> Session:
    """A console on a workspace, which has not started Spark."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    config = Config(Settings.make("local[2]", {}), run, folder / "log", folder, store=Store(folder))
    return Session(config)


def defined(session: Session, text: str) -> Statement:
    """A statement that was taken up as if it had been carried out. Raises what speaks against it."""
    written = split_script(Source("test.sql", text))
    assert len(written) == 1
    statement = parse(written[0], {})
    assert session.parts.store is not None
    take_up(statement, session.parts, session.parts.store)
    return statement


def views_of(session: Session) -> list[tuple[str, str]]:
    """(name, text) of the temporary views."""
    return [(name, view.text) for name, view in session.parts.temporary.statements()]


def has_secrets(catalog: Catalog) -> bool:
    entries = (*catalog.streams.values(), *catalog.sinks.values())
    return any(is_secret_key(key) for entry in entries for key, _ in entry.options)


def check(texts: list[str]) -> int:
    """Take up what is accepted of these statements, write it, and read it back. Returns how many were."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        first = opened(folder)
        accepted = 0
        for text in (*BASE.split("; "), *texts):
            try:
                defined(first, text.removesuffix(";"))
                accepted += 1
            except StreamsqlError:
                continue
        first.parts.workspace.save()
        second = opened(folder)
        again = reopen(second.parts)
        assert again.warnings == ()
        assert views_of(second) == views_of(first)
        assert second.parts.settings.changed == first.parts.settings.changed
        assert second.parts.store is not None and first.parts.store is not None
        assert second.parts.store.withheld == first.parts.store.withheld
        if not has_secrets(first.catalog):  # which are neither written nor shown
            assert second.catalog == first.catalog
            shown_again(first)
        return accepted - 2


def shown_again(session: Session) -> None:
    """What SHOW CREATE gives makes the same when it is typed."""
    catalog = session.catalog
    with tempfile.TemporaryDirectory() as made:
        typed = opened(Path(made))
        for stream in catalog.streams.values():
            defined(typed, stream.sql())
        fed = {s.casefold() for query in catalog.queries.values() if query.live_table for s in query.sinks}
        for key, sink in catalog.sinks.items():
            if key not in fed:
                defined(typed, sink.sql())
        for query in catalog.queries.values():
            defined(typed, query.sql(catalog.sinks.get(query.sinks[0].casefold())))
        for function in catalog.functions.values():
            defined(typed, function.sql())
        assert replace(typed.catalog, tables={}) == replace(catalog, tables={})


@examples(40)
@example("CREATE SINK `a` USING kafka OPTIONS (servers 'h:1', topic 't', 'kafka.Sas' 'x')")
@given(statements())
def test_a_statement_that_is_accepted_reads_back_as_the_same(text: str) -> None:
    check([text])


@examples(8)
@given(st.lists(statements(), min_size=2, max_size=5))
def test_several_do_not_disturb_each_other(texts: list[str]) -> None:
    check(texts)


@pytest.mark.parametrize(
    "text",
    [
        "SET spark.a = '--1'",
        "SET spark.a = --1",
        "SET 'spark.x = 1; CREATE SINK evil USING noop; SET spark.y' = 2",
        "SET spark.a = '\\u0024{x}'",
        "SET spark.a = '\\u0024{env:HOME}'",
        "SET spark.a = 'it\\'s' 'two'",
        "SET spark.a = '\\ud83d'",
        "SET spark.jars = 'a;b'",
        "CREATE STREAM t AS SELECT '\\u0024{x}' AS a, r'\\' AS b FROM s",
        "CREATE LIVE TABLE t COMMENT '\\u0024{env:HOME}' AS SELECT n FROM s",
        "CREATE SINK t USING kafka OPTIONS (servers '${env:SERVERS}', topic 't')",
        "CREATE SINK `a``;--` USING noop COMMENT 'x\r\ny'",
        "CREATE STREAM `a\r\nb` AS SELECT n\r\nFROM s -- why\r\n WHERE n > 1",
        "INSERT INTO k AS QUERY `BEGIN` SELECT n FROM s",
        "CREATE LIVE TABLE `select` AS SELECT CASE WHEN n > 1 THEN 'END;' END AS x FROM s",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO k SELECT CASE n WHEN 1 THEN ';' END AS c FROM s; END",
    ],
)
def test_what_was_written_wrongly_once(text: str) -> None:
    assert check([text]) == 1


def test_a_value_that_holds_a_variable_is_refused_where_it_stands() -> None:
    with pytest.raises(StreamsqlError, match="the value of variable a contains"):
        parse(split_script(Source("t", "SET spark.a = '${a}'"))[0], {"a": "${b}"})


def test_what_is_not_unicode_is_refused_where_it_stands() -> None:
    with pytest.raises(StreamsqlError, match="this is not valid UTF-8") as caught:
        split_script(Source("t", "SET spark.a = '\udcff'"))
    assert caught.value.span is not None and caught.value.span.start == 15
