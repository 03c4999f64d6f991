"""How queries ended is saved as a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamsql.catalog import Catalog
from streamsql.errors import Source
from streamsql.language.parser import parse_script
from streamsql.language.spark_definitions import definition_of
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.runtime.workspace.store import LEFT, LOST, Store

QUERIES = {
    "left": {"status": "stopped", "console": LEFT},
    "lost": {"status": "stopped", "console": LOST},
    "running": {"status": "running"},
    "failed": {"status": "FAILED", "error": "the console said no"},
}


def test_the_status_is_read_and_saved(tmp_path: Path) -> None:
    """A query that ran when its console ended has stopped since."""
    (tmp_path / "status.json").write_text(json.dumps({"version": 2, "queries": QUERIES, "functions": {}}))
    store = Store(tmp_path)
    assert store.read_status() == ""
    assert {name: past.reason for name, past in store.past.items()} == {
        "left": "the console was left",
        "lost": "the console ended unexpectedly",
        "running": "the console ended unexpectedly",
        "failed": "the console said no",
    }
    store.save_status(store.past, {})
    again = Store(tmp_path)
    assert again.read_status() == "" and again.past == store.past
    assert json.loads((tmp_path / "status.json").read_text())["queries"]["running"]["console"] == LOST


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("CREATE TEMPORARY VIEW v AS SELECT 1", True),
        ("DROP VIEW v", True),
        ("SHOW DATABASES LIKE 'a*'", False),
        ("CACHE TABLE v", False),
    ],
)
def test_a_spark_statement_that_defines_nothing_writes_no_workspace(statement: str, changes: bool) -> None:
    (read,) = parse_script(Source("a.sql", statement))
    assert plan(read, Context(Catalog())).changes_definitions is changes


@pytest.mark.parametrize(
    ("statement", "written"),
    [
        ("CREATE TEMPORARY VIEW v AS SELECT 1", "v"),
        ("CREATE TEMPORARY VIEW `a ``b` AS SELECT 1", "`a ``b`"),
        ("CREATE VIEW `a.b`.`c d` AS SELECT 1", "`a.b`.`c d`"),
        ("CREATE GLOBAL TEMPORARY VIEW g AS SELECT 1", "global_temp.g"),
    ],
)
def test_a_created_name_is_quoted_for_spark(statement: str, written: str) -> None:
    assert definition_of(statement).written == written
