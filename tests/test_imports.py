"""What needs no Spark loads nothing heavy, and the benchmarks import what exists."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("processes")

TESTS = Path(__file__).resolve().parent

HEAVY = ["importlib.metadata", "pandas", "prompt_toolkit", "py4j", "pyarrow", "pyspark", "sqlglot", "wcwidth"]
LOADS = {
    "cli.main": [],
    "server.client": ["importlib.metadata", "pyarrow", "wcwidth"],
    "cli.dry_run": ["importlib.metadata", "pyarrow", "wcwidth"],
    "plan.planner": ["importlib.metadata", "pyarrow", "wcwidth"],
    "runtime.session": ["importlib.metadata", "pyarrow", "wcwidth"],
    "output.script_runner": ["importlib.metadata", "pyarrow", "wcwidth"],
    "shell.prompt": ["importlib.metadata", "prompt_toolkit", "pyarrow", "wcwidth"],
}
"""Modules, in the order in which one program imports them, and which heavy packages may be loaded by then."""


def run(code: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.strip(), done.stderr


def test_importing_loads_nothing_heavy() -> None:
    code = ["import importlib, sys"]
    for module, allowed in LOADS.items():
        code.append(f"importlib.import_module('streamsql.{module}')")
        code.append(f"print({module!r}, sorted((set({HEAVY!r}) & set(sys.modules)) - set({allowed!r})))")
    assert run("\n".join(code)) == (0, "\n".join(f"{module} []" for module in LOADS), "")


def test_what_benchmarks_import_exists() -> None:
    """They run by hand, some in programs that are texts: nothing else notices a module that moved."""
    code = set[str]()
    for file in (TESTS / "benchmarks").glob("*.py"):
        for line in file.read_text().splitlines():
            if line.strip().startswith("from streamsql") and not line.endswith("("):
                code.add(line.strip())
    assert len(code) > 20
    assert run("\n".join(sorted(code))) == (0, "", "")
