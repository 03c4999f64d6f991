"""A feature is a folder: the console finds it, finds those of other distributions, and works without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from streamsql import feature_registry
from streamsql.cli.command_line import Command
from streamsql.feature_registry import Feature, own_features
from streamsql.language.statements.base import Statement

ROOMS = ("streamsql/features/", "streamsql/feature_registry.py", "grammars/")

NAMES = [feature.package.rpartition(".")[2] for feature in own_features()]
TAKEN_AWAY = ["cluster", "export", "metrics", "verify", "why"]
DOCUMENTING = (
    "test_every_path_is_there",
    "test_every_name_is_defined_in_the_module_that_is_said",
    "test_what_a_topic_refers_to_exists",
    "test_every_topic_that_is_named_is_there",
    "test_every_code_of_a_note_is_listed_and_every_listed_one_is_used",
    "test_every_code_is_listed_and_every_listed_code_is_used",
    "test_the_unit",
    "test_the_dockerfile",
)
"""The tests of pages, lists and examples that name what a feature has (two have --metrics): without it they fail."""

RANDOM = ("test_the_next_token_is_among_the_completions",)
"""Draws other statements from another grammar."""

SCRIPT = """
CREATE STREAM s (word STRING, n INT) USING values;
INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);
CREATE LIVE TABLE counts AS SELECT word, sum(n) AS n FROM s GROUP BY word;
AWAIT QUERY counts IDLE;
SELECT * FROM counts ORDER BY word;
SELECT n FROM s WHERE n > 9;
SHOW QUERIES;
SHOW LIVE TABLES;
DESCRIBE QUERY counts;
HELP;
"""
COMPLETES = """
from streamsql.catalog import Catalog
from streamsql.definitions import Stream
from streamsql.shell.completion.complete import complete
catalog = Catalog().having(Stream("orders", "rate"))
for text in ("SHOW ", "SELECT * FROM or"):
    print([candidate.text for candidate in complete(text, len(text), catalog, lambda name: [])][:3])
"""


@pytest.mark.parametrize("feature", own_features(), ids=NAMES)
def test_what_a_feature_names_is_there(feature: Feature) -> None:
    for module in filter(None, (feature.statements, feature.planners, feature.handlers)):
        assert feature.module(module)
    for reference, _ in feature.commands.values():
        assert isinstance(feature.named(reference), Command)
    for reference in (*feature.checks.values(), *feature.extends.values()):
        assert callable(feature.named(reference))


def test_classes_of_the_kernel_are_of_no_feature() -> None:
    assert feature_registry.planners(Statement) == {}
    assert feature_registry.handlers(Statement, "DIRECT") == {}
    assert "SELECT" not in feature_registry.commands()


# ---- without a feature


def console(folder: Path, home: Path, *arguments: str, more: str = "") -> tuple[int, str, str]:
    """Run the console of a checkout in a process: exit code, standard output and standard error."""
    places = {f"XDG_{kind}_HOME": str(home) for kind in ("STATE", "CONFIG", "DATA")}
    path = os.pathsep.join(filter(None, (str(folder), more)))
    command = [sys.executable, "-m", "streamsql", "--no-config", *arguments]
    environment = {**os.environ, **places, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, cwd=home, env=environment, timeout=200)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def without(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the checkout without the folder of a feature, its grammar, its topic and its tests."""
    copy, name = tmp_path / "checkout", request.param
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".*_cache", ".venv", ".hypothesis")
    shutil.copytree(ROOT, copy, ignore=ignored)
    for folder in (copy / "streamsql" / "features" / name, copy / "tests" / "features" / name):
        shutil.rmtree(folder, ignore_errors=True)
    for file in (
        copy / "grammars" / "statements" / f"{name}.gram",
        copy / "grammars" / "topics" / f"{name}.md",
    ):
        file.unlink(missing_ok=True)
    return copy


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("without", [*TAKEN_AWAY, "alter_stream", "change", "project"], indirect=True)
def test_without_a_feature_the_console_works(without: Path, tmp_path: Path) -> None:
    code, out, err = console(without, tmp_path, "--format", "csv", "-e", SCRIPT)
    assert code == 0, err
    assert "a,4\nb,2\n" in out
    assert "SELECT" in out and "counts" in out
    assert "Traceback" not in err
    code, out, _ = console(without, tmp_path, "--check", "-e", SCRIPT)
    assert code == 0, out
    asked = [sys.executable, "-c", COMPLETES]
    done = subprocess.run(
        asked, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(without)}, timeout=60
    )
    assert done.stdout == "['QUERIES', 'TABLES', 'STREAMS']\n['orders']\n", done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("without", TAKEN_AWAY, indirect=True)
def test_without_a_feature_the_fast_tests_pass(without: Path) -> None:
    """All of them but the feature's own, and those of pages, lists and examples that name features."""
    others = " and ".join(f"not {name}" for name in (*DOCUMENTING, *RANDOM))
    command = [sys.executable, "-m", "pytest", "-m", "fast", "-k", others, "tests"]
    environment = {**os.environ, "PYTHONPATH": str(without)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=without, env=environment, timeout=850)
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 1000
