"""Errors have codes, and no code reads a message: the source is walked."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from source_trees import nodes

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.error_codes import CODES, NOTES
from streamsql.errors import QueryFault, Source, StreamsqlError
from streamsql.language.parser import parse_script
from streamsql.language.statements.spark import Spark
from streamsql.language.topics import topics
from streamsql.plan.context import Context
from streamsql.plan.planner import plan

KINDS = {
    StreamsqlError,
    *(k for k in StreamsqlError.__subclasses__() if k.__module__ == StreamsqlError.__module__),
}
PROSE = ("message", "detail", "hint", "fact", "cause")
"""Attributes whose words are for people."""


def codes_of(value: ast.expr) -> list[str]:
    """The texts that an expression may be; of a name, none."""
    texts = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [t for t in texts if t.isupper()]


def test_every_code_is_listed_and_every_listed_code_is_used() -> None:
    used = {kind.code for kind in KINDS}
    for place, node in nodes():
        if isinstance(node, ast.keyword) and node.arg == "code":
            for code in codes_of(node.value):
                assert code in CODES, f"{place}: {code} is not listed in error_codes"
                used.add(code)
    listed_by_name = {"FILE_GONE", "MALFORMED_MESSAGE", "OUTPUT_MODE_NOT_SUPPORTED", "NOT_ON_STREAMS",
                      "ROW_OF_EACH_KEY"}  # fmt: skip
    kinds = ("STREAM", "SINK", "LIVE_TABLE", "QUERY", "FUNCTION", "VIEW")
    by_kind = {f"UNKNOWN_{kind}" for kind in kinds}
    assert set(CODES) - used - listed_by_name - by_kind == set()


PLAIN = {
    "SyntaxFault": ("language/grammar", "language/parser", "language/query", "language/tokens"),
    "EngineFault": ("runtime/engine/spark_errors",),
    "QueryFault": ("runtime/engine/spark_errors", "runtime/queries/run"),
    "StartFault": (
        "runtime/engine/java",
        "runtime/engine/java_command",
        "runtime/engine/jvm",
        "runtime/engine/jvm_process",
        "runtime/engine/lifecycle",
        "runtime/engine/start_failures",
    ),
    "UnmetExpectation": ("features/testing/expectations",),
    "UsageFault": (
        "cli/command_line",
        "cli/main",
        "cli/open_session",
        "cli/serve_command",
        "cli/open_workspace",
        "features/testing/command",
        "runtime/engine/settings",
        "features/notebook/magics",
        "features/setup/examples",
        "features/setup/shell_completion",
        "features/setup/support",
        "features/web/page_door",
        "features/mysql/mysql_door",
    ),
    "TimeFault": ("cli/signals", "runtime/queries/drain", "runtime/queries/query_waits"),
}
"""The modules whose errors have the code of their class: it says all that there is to tell apart."""


def test_an_error_that_can_be_told_from_others_has_a_code_of_its_own() -> None:
    kinds = {kind.__name__ for kind in KINDS} - {"Cancelled"}
    for place, node in nodes():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in kinds:
            kind = node.func.id  # type: ignore[attr-defined]
            given = {keyword.arg for keyword in node.keywords}
            module = place.rpartition(".py:")[0]
            assert given & {"code", "condition", None} or module in PLAIN.get(kind, ()), f"{place}: {kind}"


def test_help_lists_all_codes() -> None:
    page = topics()["error codes"].page()
    for code, meaning in (*CODES.items(), *NOTES.items()):
        assert f"- {code}: {meaning}" in page.splitlines()


def test_every_code_of_a_note_is_listed_and_every_listed_one_is_used() -> None:
    used = set()
    for place, node in nodes():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Note":
            code = node.args[0]
            if isinstance(code, ast.Constant):
                assert code.value in NOTES, f"{place}: {code.value} is not listed in error_codes"
                used.add(code.value)
            else:
                assert ast.unparse(code) == "note.code", f"{place}: the code is not written there"
    assert used == set(NOTES)


def test_only_what_prints_reads_the_text_of_a_note() -> None:
    texts = (place for place, node in nodes() if isinstance(node, ast.Attribute) and is_text_of_note(node))
    assert {place.rpartition(":")[0] for place in texts} <= {"output/console_messages.py", "cli/findings.py"}


def is_text_of_note(node: ast.Attribute) -> bool:
    return node.attr == "text" and isinstance(node.value, ast.Name) and node.value.id in ("note", "n")


def test_every_class_of_errors_has_a_code_of_its_own() -> None:
    assert len({kind.code for kind in KINDS}) == len(KINDS)
    for code, meaning in (*CODES.items(), *NOTES.items()):
        assert code.replace("_", "").isalpha() and code.isupper()
        assert meaning and "\n" not in meaning and not meaning.endswith(".")


def reads_prose(node: ast.AST) -> bool:
    """Whether a node decides by the words of an error: a comparison, or a method that looks into them."""
    looked_into: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        looked_into = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("startswith", "endswith", "find", "index", "replace", "partition", "split"):
            indents = bool(node.args) and ast.unparse(node.args[0]) == repr("\n")
            looked_into = [] if indents else [node.func.value]
        elif node.func.attr in ("search", "match", "fullmatch", "sub"):
            looked_into = node.args
    return any(isinstance(e, ast.Attribute) and e.attr in PROSE for e in looked_into)


def test_no_code_reads_a_message() -> None:
    assert [place for place, node in nodes() if reads_prose(node)] == []


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("DROP STREAM", "SYNTAX_ERROR"),
        ("CREATE STREAM s USING kafkaa", "UNKNOWN_CONNECTOR"),
        ("CREATE STREAM s (n INT) USING kafka OPTIONS (topik 't')", "UNKNOWN_OPTION"),
        ("CREATE LIVE TABLE x AS SELECT 1", "NO_STREAM"),
        ("EXPLAIN QUERY q", "UNKNOWN_QUERY"),
        ("SELECT '${x}'", "UNKNOWN_VARIABLE"),
        ("INSERT INTO a, b SELECT 1", "UNKNOWN_SINK"),
        ("CREATE STREAM s (n INT, n INT) USING rate", "DUPLICATE_NAME"),
        ("CREATE STREAM s (n INTT) USING json", "UNKNOWN_TYPE"),
        (f"CREATE STREAM {'x' * 300} USING rate", "NAME_TOO_LONG"),
        ("CREATE STREAM s USING rate OPTIONS (rowsPerSecond 'many')", "BAD_OPTION_VALUE"),
        ("CREATE STREAM s USING rate WITH WATERMARK timestamp DELAY '10 minuts'", "BAD_DURATION"),
        ("CREATE STREAM s USING rate WITH WATERMARK at DELAY '10 minutes'", "UNKNOWN_COLUMN"),
        ("CREATE STREAM s USING kafka OPTIONS (servers 'h:1')", "MISSING_OPTION"),
        ("CREATE SINK k USING rate", "CONNECTOR_NOT_SUPPORTED"),
        ("CREATE SINK k USING noop KEY (a)", "CLAUSE_NOT_SUPPORTED"),
        ("EXPLAIN SHOW STREAMS", "NO_PROGRAM"),
    ],
)
def test_common_errors_have_codes_of_their_own(script: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(StreamsqlError) as raised:
        for statement in parse_script(Source("a.sql", script)):
            plan(statement, Context(Catalog(), Places(str(tmp_path))))
    assert raised.value.code == code


def test_a_statement_that_the_console_does_not_know_is_left_to_spark() -> None:
    (statement,) = parse_script(Source("a.sql", "SELEC 1"))
    assert isinstance(statement, Spark)
    assert statement.doubt is not None and statement.doubt.code == "UNKNOWN_STATEMENT"


def test_a_failure_can_be_told_of_another_subject() -> None:
    fault = QueryFault("the disk is full", subject="query q failed")
    assert fault.message == "query q failed: the disk is full"
    assert fault.of("the query failed").message == "the query failed: the disk is full"
    assert fault.code == "QUERY_FAILED"
