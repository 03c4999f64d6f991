"""What a statement is stands on its class: the registry is walked, so that a new one lacks nothing."""

from __future__ import annotations

import io
from dataclasses import fields, replace
from inspect import getsource
from pathlib import Path

import pytest

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker, read_all
from streamsql.cli.findings import Reporter
from streamsql.cli.signals import needs_spark
from streamsql.config.preferences import Preferences
from streamsql.connectors.base import Places
from streamsql.errors import Source, StreamsqlError
from streamsql.feature_registry import handlers, planners
from streamsql.language.grammar import load
from streamsql.language.parser import parse, parse_script, split_script
from streamsql.language.spark_definitions import Definition, definition_of
from streamsql.language.statements.base import Statement, StatementWithBlock, StatementWithBody
from streamsql.language.statements.binder import FIELDS
from streamsql.language.statements.registry import STATEMENTS, first_words
from streamsql.language.statements.spark import Spark
from streamsql.output.printer import Printer
from streamsql.plan.context import Context
from streamsql.plan.planner import PLANNERS, plan
from streamsql.plan.plans import Explain, Plan, Run, Start
from streamsql.runtime.session import DIRECT

KINDS = {"stream", "sink", "live_table", "function", "query", "change"}
each_statement = pytest.mark.parametrize("rule", STATEMENTS)


def classes_below(kind: type[Statement]) -> set[type[Statement]]:
    """All classes that are derived from a class."""
    return {kind for below in kind.__subclasses__() for kind in (below, *classes_below(below))}


@each_statement
def test_each_field_of_a_statement_is_read(rule: str) -> None:
    kind = STATEMENTS[rule]
    by_parser = {"body", "doubt", "is_refused", "of_spark", *(field.name for field in fields(Statement))}
    own = getsource(kind.own_fields)
    names = {field.name for field in fields(kind)} - by_parser - FIELDS.keys()
    assert [name for name in names if f'"{name}"' not in own] == []


def test_every_class_of_a_statement_is_registered() -> None:
    assert set(STATEMENTS.values()) == classes_below(Statement) - {StatementWithBody, StatementWithBlock}


@each_statement
def test_a_statement_has_a_rule_help_and_attributes(rule: str) -> None:
    kind, grammar = STATEMENTS[rule], load()
    assert rule in grammar.rules
    assert grammar.help[rule].endswith(".")
    assert kind.topic
    assert {kind.defines, kind.refers} <= KINDS | {""}
    for attribute in (kind.needs_spark, kind.changes_workspace, kind.read_only):
        assert isinstance(attribute, bool)
    assert kind.changes_workspace or not kind.defines
    assert any(rule in rules for rules in first_words().values())


@each_statement
def test_a_statement_has_a_planner_or_a_handler(rule: str) -> None:
    kind = STATEMENTS[rule]
    # A script file is read by the runner, which hands its statements to the session.
    handled = kind in PLANNERS or kind in DIRECT or kind in planners(kind) or kind in handlers(kind, "DIRECT")
    assert handled or rule == "SourceFile"


@pytest.mark.parametrize(
    ("script", "wants"),
    [
        ("HELP; SHOW STREAMS; DEFINE x = '1'; SET streamsql.format = csv", False),
        ("CREATE STREAM a USING rate; CREATE OR REPLACE SINK b USING noop; DROP SINK b", False),
        ("DEFINE t = 'a'; EXPLAIN PYSPARK SELECT * FROM ${t}", False),
        ("SHOW STREAMS; SHOW TABLES", True),
        ("CREATE STREAM a USING rate; SELECT * FROM ${a}", True),
        ("SOURCE 'more.sql'", True),
        ("CREATE STREAM", False),
    ],
)
def test_a_script_that_needs_spark_starts_it_early(script: str, wants: bool) -> None:
    assert needs_spark(Source("a.sql", script)) is wants


@pytest.mark.parametrize(
    ("text", "changes", "read_only"),
    [
        ("CREATE STREAM a USING rate", True, False),
        ("INSERT INTO a SELECT 1", True, False),
        ("START QUERY a", True, False),
        ("SELECT 1", False, True),
        ("EXPLAIN INSERT INTO a SELECT 1", False, True),
        ("WATCH a", False, True),
        ("AWAIT QUERY a", False, False),
        ("SET spark.sql.shuffle.partitions = 3", True, True),
    ],
)
def test_what_changes_the_workspace_stands_on_the_class(text: str, changes: bool, read_only: bool) -> None:
    statement = parse(split_script(Source("", text))[0])
    assert (statement.changes_workspace, statement.read_only) == (changes, read_only)


LIVE = "CREATE STREAM a (n INT) USING kafka OPTIONS (servers 'h:1', topic 't'); CREATE SINK s USING console;"
QUERY = f"{LIVE} INSERT INTO s AS QUERY q SELECT n FROM a WHERE n > 1;"


def planned(script: str, tmp_path: Path) -> tuple[Plan, Catalog]:
    """The plan of a script's last statement, and the catalog after it; faults are raised."""
    context = Context(Catalog(), Places(str(tmp_path)))
    for statement in parse_script(Source("a.sql", script)):
        made = plan(statement, context)
        context = replace(context, catalog=made.applied(context.catalog))
    return made, context.catalog


def checked(script: str, tmp_path: Path) -> str:
    """What `--check` prints of a script."""
    printed = io.StringIO()
    printer = Printer(Preferences(), io.StringIO(), printed)
    read_all(
        [Source("a.sql", script)], {}, Reporter(printer), Checker(Context(Catalog(), Places(str(tmp_path))))
    )
    return printed.getvalue()


def test_start_query_is_planned(tmp_path: Path) -> None:
    started, _ = planned(f"{QUERY} START QUERY q", tmp_path)
    inserted, _ = planned(QUERY, tmp_path)
    assert isinstance(started, Start) and isinstance(inserted, Run)
    again = started.queries[0].run
    assert again is not None
    assert again.program == inserted.program
    assert again.writer("append") == inserted.writer("append")


def test_start_query_can_be_explained(tmp_path: Path) -> None:
    by_start, _ = planned(f"{QUERY} EXPLAIN PYSPARK START QUERY q", tmp_path)
    assert by_start == planned(f"{QUERY} EXPLAIN PYSPARK QUERY q", tmp_path)[0]
    now, _ = planned(f"{QUERY} EXPLAIN PYSPARK START QUERY q FROM NOW", tmp_path)
    assert isinstance(now, Explain) and isinstance(now.plan, Run)
    assert now.plan.begins == "now"


# A query that cannot be started again, as its stream has lost the watermark.
CHANGED = """CREATE STREAM a (n INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '1 minute';
CREATE SINK s USING console; INSERT INTO s AS QUERY q SELECT DISTINCT ON (n) WITHIN WATERMARK n FROM a; \
CREATE OR REPLACE STREAM a (n INT, ts TIMESTAMP) USING values;"""


def test_check_plans_start_query(tmp_path: Path) -> None:
    assert checked(f"{QUERY} START QUERY ALL FROM BEGINNING", tmp_path).endswith("\n4 statements checked\n")
    said = checked(f"{CHANGED}\nSTART QUERY  q FROM NOW", tmp_path)
    assert (
        "a.sql:3:14: error[NOT_ON_STREAMS]: dropDuplicatesWithinWatermark is not supported without watermark"
        in said
    )
    assert " NOW " not in said


def test_one_query_that_cannot_be_planned_does_not_reach_another(tmp_path: Path) -> None:
    two = f"CREATE STREAM b (n INT) USING values; {CHANGED} INSERT INTO s AS QUERY r SELECT n FROM b;"
    made, _ = planned(f"{two} START QUERY ALL", tmp_path)
    assert isinstance(made, Start)
    assert [(again.query.name, again.run is None) for again in made.queries] == [("q", True), ("r", False)]
    assert made.fault is not None


@pytest.mark.parametrize(
    ("script", "left"),
    [
        (QUERY, ["a", "s", "q"]),
        (f"{QUERY} DROP QUERY q", ["a", "s"]),
        (f"{QUERY} DROP QUERY q; DROP SINK s", ["a"]),
        (f"{LIVE} DROP STREAM IF EXISTS b; DROP STREAM a", ["s"]),
        (f"{LIVE} CREATE LIVE TABLE t AS SELECT n FROM a", ["a", "s", "t", "t"]),
        (f"{LIVE} CREATE LIVE TABLE t AS SELECT n FROM a; DROP LIVE TABLE t", ["a", "s"]),
        (f"{LIVE} CREATE LIVE TABLE t AS SELECT n FROM a; DROP QUERY t", ["a", "s"]),
        (f"{LIVE} CREATE STREAM IF NOT EXISTS a USING rate; EXPLAIN SELECT n FROM a", ["a", "s"]),
        (f"{LIVE} EXPLAIN CREATE LIVE TABLE t AS SELECT n FROM a", ["a", "s"]),
    ],
)
def test_a_plan_tells_the_catalog_after_it(script: str, left: list[str], tmp_path: Path) -> None:
    _, catalog = planned(script, tmp_path)
    assert [*catalog.streams, *catalog.sinks, *catalog.queries] == left


def test_the_doubt_about_a_statement_inside_another_has_its_place() -> None:
    script = "SHOW STREAMS;\n\nEXPLAIN LIVE TABLE u;\nTEST 'x' BEGIN\n  EXPLAIN SINKS u;\nEND TEST;"
    explained, tested = (parse(written, {}) for written in split_script(Source("a.sql", script))[1:])
    assert isinstance(explained, StatementWithBody) and isinstance(tested, StatementWithBlock)
    inside = tested.body[0]
    assert isinstance(inside, StatementWithBody)
    for statement, words in ((explained.body, "LIVE"), (inside.body, "SINKS")):
        assert isinstance(statement, Spark) and statement.doubt is not None
        place = statement.doubt.span
        assert place is not None and script[place.start : place.end] == words


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("DROP SINK s", "the query q writes to s"),
        ("DESCRIBE STREAM b", "there is no stream b"),
        ("SHOW CREATE SINK b", "there is no sink b"),
        ("DESCRIBE LIVE TABLE b", "there is no live table b"),
        ("SHOW PROGRESS b", "there is no query b"),
        ("SHOW BATCHES OF QUERY b", "there is no query b"),
        ("STOP QUERY b", "there is no query b"),
        ("WATCH b", "there is no live table b"),
        ("SET streamsql.fromat = csv", "there is no setting"),
    ],
)
def test_check_knows_what_a_statement_refers_to(statement: str, fault: str, tmp_path: Path) -> None:
    assert f"]: {fault}" in checked(f"{QUERY} {statement}", tmp_path)


@pytest.mark.parametrize(
    ("text", "definition"),
    [
        ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1", Definition(creates="v", temporary=True)),
        ("/* a */ create -- b\n temp view `v w` AS SELECT 1", Definition(creates="v w", temporary=True)),
        ("CREATE GLOBAL TEMP VIEW g AS SELECT 1", Definition(creates="global_temp.g", temporary=True)),
        (
            "CREATE VIEW v(a) AS SELECT 'TEMPORARY VIEW x'",
            Definition("v", view_query="SELECT 'TEMPORARY VIEW x'"),
        ),
        ("CREATE EXTERNAL TABLE IF NOT EXISTS d.t (a INT)", Definition(creates="d.t")),
        ("DROP VIEW IF EXISTS d.v", Definition(drops="d.v")),
        ("DROP TABLE t", Definition(drops="t")),
        ("CREATE TEMPORARY FUNCTION f AS 'x'", Definition()),
        (
            "CREATE OR REPLACE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x",
            Definition("f", temporary=True),
        ),
        ("CREATE FUNCTION f STAGED () RETURNS INT RETURN 1", Definition(creates="f", staged=True)),
        ("DROP FUNCTION f", Definition(drops="f")),
        ("SELECT 'DROP TABLE t'", Definition()),
        ("CREATE", Definition()),
    ],
)
def test_what_a_statement_of_spark_defines(text: str, definition: Definition) -> None:
    assert definition_of(text) == definition


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE STREAM IF NOT EXISTS x USING rate",
        "CREATE OR REPLACE SINK IF NOT EXISTS x USING noop",
        "CREATE OR REPLACE LIVE TABLE IF NOT EXISTS x AS SELECT 1",
        "CREATE OR REPLACE FUNCTION IF NOT EXISTS x AS 'm.f' LANGUAGE PYTHON RETURNS INT",
    ],
)
def test_or_replace_excludes_if_not_exists(statement: str) -> None:
    with pytest.raises(StreamsqlError, match="OR REPLACE and IF NOT EXISTS exclude each other") as raised:
        list(parse_script(Source("a.sql", statement)))
    assert raised.value.code == "CLAUSE_CONFLICT" and raised.value.hint
