"""A query that reads no stream: a misspelt stream is pointed at; what may be a table of Spark is not missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Console
from scripts import run_main

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.cli.unknown_names import brings_tables
from streamsql.config.preferences import Preferences
from streamsql.errors import NameFault, RuleFault, Source, SyntaxFault
from streamsql.language.parser import parse_script
from streamsql.language.short_forms import expand
from streamsql.plan.context import Context
from streamsql.plan.planner import plan


def plan_script(text: str) -> None:
    """Plan each statement of a script with what those before define."""
    context = Context(Catalog())
    for statement in parse_script(Source("t.sql", text)):
        context = Context(plan(statement, context).applied(context.catalog))


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE LIVE TABLE c AS SELECT word, count(*) FROM {} GROUP BY word", "UNKNOWN_STREAM"),
        ("CREATE STREAM c AS SELECT word FROM {}", "UNKNOWN_STREAM"),
        ("CREATE LIVE TABLE c AS SELECT w.word FROM dimension d JOIN {} w ON d.k = w.k", "UNKNOWN_STREAM"),
        ("INSERT INTO k AS QUERY q SELECT word FROM {}", "UNKNOWN_STREAM"),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO k SELECT word FROM {}; END", "UNKNOWN_STREAM"),
        ("EXPLAIN CREATE LIVE TABLE c AS SELECT word FROM {}", "UNKNOWN_STREAM"),
    ],
)
def test_a_misspelt_stream_is_pointed_at(statement: str, code: str) -> None:
    given = (
        "CREATE STREAM words (word STRING, k INT) USING json OPTIONS (path 'in'); CREATE SINK k USING noop;"
    )
    text = given + statement.format("wrods")
    with pytest.raises(NameFault) as raised:
        plan_script(text)
    fault = raised.value
    assert (fault.message, fault.code) == ("there is no stream wrods", code)
    assert fault.hint == "did you mean words?"
    assert fault.span and text[fault.span.start : fault.span.end] == "wrods"


def test_a_table_of_spark_is_not_called_missing() -> None:
    """Planning does not ask Spark, so the message is about streams only."""
    with pytest.raises(NameFault, match="there is no stream sales") as raised:
        plan_script("CREATE LIVE TABLE c AS SELECT count(*) FROM sales")
    assert raised.value.detail == "the query reads no stream: sales does not exist, or is a table of Spark"
    plan_script("CREATE LIVE TABLE c AS SELECT count(*) FROM STREAM sales")
    for known in ("json.`in`", "main.sales", "range(10)", "(VALUES (1)) AS t", "(SELECT 1) AS t"):
        with pytest.raises(RuleFault, match="the query of live table c reads no stream") as refused:
            plan_script(f"CREATE LIVE TABLE c AS SELECT count(*) FROM {known}")
        assert refused.value.code == "NO_STREAM"


def test_a_query_creates_no_table_for_a_misspelt_sink(console: Console) -> None:
    console.run("CREATE STREAM r USING rate;")
    statement = "INSERT INTO nowhere SELECT value FROM r;"
    with pytest.raises(NameFault, match="there is no sink or table nowhere") as caught:
        console.run(statement)
    span = caught.value.span
    assert span and statement[span.start : span.end] == "nowhere"
    assert not console.session.spark.catalog.tableExists("nowhere")
    console.run("CREATE TABLE nowhere (value BIGINT) USING parquet;")
    console.run("INSERT INTO nowhere TRIGGER ONCE SELECT value FROM r;")
    console.run("AWAIT QUERY nowhere;")


def test_from_with_the_name_of_a_sink_proposes_to_preview_what_it_wrote(
    console: Console, tmp_path: Path
) -> None:
    console.run(
        f"""CREATE STREAM s (k STRING, n INT) USING values; INSERT INTO s VALUES ('a', 1);
        CREATE SINK out USING csv OPTIONS (path '{tmp_path}/out', header true);
        INSERT INTO out TRIGGER AVAILABLE NOW SELECT * FROM s; AWAIT QUERY out;
        CREATE SINK nowhere USING noop;"""
    )
    for statement in ("SELECT * FROM out", "CREATE LIVE TABLE t AS SELECT k FROM out"):
        with pytest.raises(RuleFault, match="out is a sink: queries write to it, and FROM cannot") as refused:
            console.run(f"{statement};")
        assert refused.value.span and statement[refused.value.span.start :] == "out"
    preview = console.run(refused.value.proposal)[0]
    assert preview.columns[:2] == ("k", "n") and [row[:2] for row in preview.rows] == [("a", 1)]
    with pytest.raises(RuleFault, match="nowhere is a sink") as refused:
        console.run("SELECT * FROM nowhere;")
    assert not refused.value.proposal


def test_a_live_table_of_tables_only_proposes_a_view(console: Console) -> None:
    console.run("CREATE TEMPORARY VIEW dim AS SELECT 1 AS k;")
    for statement in ("CREATE LIVE TABLE t", "CREATE STREAM t"):
        with pytest.raises(RuleFault, match="reads no stream") as refused:
            console.run(f"{statement} AS SELECT k + 1 AS k FROM dim;")
        console.run(refused.value.proposal)
        assert console.rows("SELECT * FROM t;") == [(2,)]
        console.run("DROP VIEW t;")


def test_show_of_what_is_not_shown(console: Console) -> None:
    for typed, message, hint in (
        ("SHOW LATE ROWS", "there is no statement SHOW LATE", "HELP SHOW"),
        ("SHOW SETTINGS LIKE 's%'", "there is no statement SHOW SETTINGS", "SET; shows the settings"),
        ("SHOW QUERY", "there is no statement SHOW QUERY", "did you mean QUERIES?"),
        ("SHOW FUNCTION", "there is no statement SHOW FUNCTION", "did you mean FUNCTIONS?"),
    ):
        with pytest.raises(SyntaxFault, match=message) as refused:
            console.run(f"{typed};")
        assert hint in refused.value.hint


def test_lists_of_names_like_a_pattern(console: Console) -> None:
    console.run(
        """CREATE STREAM aa (n INT) USING values; CREATE STREAM ab (n INT) USING values; CREATE SINK sb USING noop;
        CREATE LIVE TABLE la AS SELECT n FROM aa; CREATE LIVE TABLE lb AS SELECT n FROM ab;"""
    )
    for statement, names in (
        ("SHOW STREAMS LIKE '%b'", ["ab"]),
        ("SHOW SINKS LIKE 's*'", ["sb"]),
        ("SHOW SINKS LIKE 'x*'", []),
        ("SHOW LIVE TABLES LIKE '*a'", ["la"]),
        ("SHOW QUERIES LIKE 'L%'", ["la", "lb"]),
        ("SHOW QUERIES EXTENDED LIKE 'lb'", ["lb"]),
        ("SHOW TABLES LIKE 'lb|la*'", ["la", "lb"]),
        (expand(r"\dq *b", Preferences()) or "", ["lb"]),
        (expand(r"\d a*", Preferences()) or "", ["aa", "ab"]),
    ):
        assert [row[0] for row in console.rows(f"{statement.rstrip(';')};")] == names, statement


TABLES = (
    "CREATE STREAM words (word STRING) USING values; CREATE SINK counts USING noop;"
    "CREATE TABLE sales (n INT) USING parquet; CREATE TEMPORARY VIEW v AS SELECT 1 AS n;"
)


def checked(script: str, *, closed: bool = False) -> list[str]:
    """The notes of --check. closed: in a workspace, where Spark has no other tables. Raises its first fault."""
    checker = Checker(Context(Catalog()), closed=closed)
    return [
        note.text
        for statement in parse_script(Source("t.sql", script))
        for note in checker.check(statement)
        if note.code == "ASSUMED_TABLE"
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM stock; SELECT n FROM sales JOIN stock USING (n);",
        "INSERT INTO stock SELECT 1; INSERT INTO stock SELECT word FROM words;",
        "CREATE TABLE copied AS SELECT * FROM stock;",
        "CREATE TEMPORARY VIEW w AS WITH e AS (SELECT * FROM stock) SELECT * FROM e;",
        "EXPLAIN SELECT * FROM stock;",
    ],
)
def test_a_check_assumes_a_table_that_the_script_does_not_know_once(statement: str) -> None:
    assert checked(TABLES + statement) == ["table stock is not known to the script; Spark must have it"]
    with pytest.raises(NameFault, match="there is no (stream, table or view|sink or table) stock"):
        checked(TABLES + statement, closed=True)


@pytest.mark.parametrize(
    ("statement", "name", "like"),
    [("SELECT * FROM wrods;", "wrods", "words"), ("INSERT INTO slaes SELECT 1;", "slaes", "sales")],
)
def test_a_name_that_is_like_a_known_one_may_be_a_table_of_spark(
    statement: str, name: str, like: str
) -> None:
    note = f"table {name} is not known to the script; Spark must have it; did you mean {like}?"
    assert checked(TABLES + statement) == [note]
    with pytest.raises(
        NameFault, match=f"there is no (stream, table or view|sink or table) {name}"
    ) as raised:
        checked(TABLES + statement, closed=True)
    assert raised.value.hint == f"did you mean {like}?"


@pytest.mark.parametrize("closed", [False, True], ids=["script", "workspace"])
@pytest.mark.parametrize(
    ("statement", "message", "detail", "hint"),
    [
        (
            "DROP TABLE sales; SELECT * FROM sales;",
            "there is no stream, table or view sales",
            "the script has dropped it",
            "SHOW STREAMS; and SHOW TABLES; list them",
        ),
        (
            "ALTER TABLE sales RENAME TO sold; INSERT INTO sold SELECT 1; SELECT * FROM sales;",
            "there is no stream, table or view sales",
            "the script has renamed it to sold",
            "did you mean sold?",
        ),
        (
            "DROP TABLE default.sales; INSERT INTO sales SELECT 1;",
            "there is no sink or table sales",
            "",
            "CREATE SINK sales USING … or CREATE TABLE sales (…) first",
        ),
    ],
)  # fmt: skip
def test_a_check_refuses_a_table_that_cannot_exist(
    statement: str, message: str, detail: str, hint: str, closed: bool
) -> None:
    with pytest.raises(NameFault) as raised:
        checked(TABLES + statement, closed=closed)
    assert message in raised.value.message
    assert (raised.value.detail, raised.value.hint) == (detail, hint)
    assert raised.value.span is not None


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE sales RENAME TO default.sold; SELECT * FROM sold;",
        "ALTER TABLE sales PARTITION (n = 1) RENAME TO PARTITION (n = 2); SELECT * FROM sales;",
        "ALTER TABLE sales RENAME COLUMN n TO m; SELECT * FROM sales;",
        "ALTER VIEW v RENAME TO w; SELECT * FROM w;",
        "DROP TABLE sales; CREATE TABLE sales (m INT) USING parquet; SELECT * FROM sales;",
        "CACHE LAZY TABLE kept AS SELECT 1 AS n; SELECT * FROM kept;",
        "CREATE TABLE default.b (n INT) USING parquet; SELECT * FROM b; SELECT * FROM default.b;",
        "INSERT INTO default.sales SELECT 1; INSERT INTO counts SELECT word FROM words;",
    ],
)
def test_a_check_follows_what_a_script_makes_and_renames(statement: str) -> None:
    assert checked(TABLES + statement, closed=True) == []


def test_a_check_knows_nothing_of_another_schema_or_catalog() -> None:
    assert checked("USE other; SELECT * FROM sales; CREATE TABLE a_table (n INT) USING csv; SELECT * FROM a_tabel;", closed=True) == [
        f"table {name} is not known to the script; Spark must have it" for name in ("sales", "a_tabel")
    ]  # fmt: skip
    setting = "SET spark.sql.catalog.lake = org.example.Lake; "
    assert len(checked(setting + "SELECT * FROM sales;", closed=True)) == 1
    assert brings_tables({"spark.sql.catalogImplementation": "hive"})
    assert brings_tables({"spark.sql.catalog.lake": "org.example.Lake"})
    assert not brings_tables(
        {"spark.sql.catalogImplementation": "in-memory", "spark.sql.ansi.enabled": "true"}
    )


def test_a_view_or_stream_that_a_script_has_dropped_is_unknown_to_it() -> None:
    for drop, name in (("DROP VIEW v;", "v"), ("DROP STREAM words;", "words")):
        assert checked(f"{TABLES} {drop} SELECT * FROM {name};") == [
            f"table {name} is not known to the script; Spark must have it"
        ]


def test_a_check_in_a_workspace_knows_its_tables_and_that_there_are_no_others(tmp_path: Path) -> None:
    workspace = ("-w", "w", "-e")
    assert run_main(*workspace, "CREATE STREAM s USING rate;", cwd=tmp_path).code == 0
    with (tmp_path / "w" / "catalog.sql").open("a") as catalog:
        catalog.write("\nCREATE TABLE kept (n INT) USING parquet;\n")
    assert run_main("--check", *workspace, "SELECT * FROM kept;", cwd=tmp_path).code == 0
    outcome = run_main("--check", *workspace, "SELECT * FROM kept, other;", cwd=tmp_path)
    assert outcome.code == 1
    assert "there is no stream, table or view other" in outcome.err
    hive = ("--conf", "spark.sql.catalogImplementation=hive")
    outcome = run_main("--check", *hive, *workspace, "SELECT * FROM kept, other;", cwd=tmp_path)
    assert outcome.code == 0
    assert "table other is not known to the script; Spark must have it" in outcome.err
