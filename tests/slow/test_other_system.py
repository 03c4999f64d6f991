"""The console needs nothing that exists on Linux only: its tests pass without it (tests/other_system)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import ROOT

ROOMS = (
    "streamsql/cli/",
    "streamsql/shell/",
    "streamsql/server/",
    "streamsql/runtime/engine/",
    "tests/other_system/",
)
FAST = ("-m", "fast", "tests")
PROCESSES = (
    "-m", "", "tests/test_signals.py", "tests/slow/test_leaving.py", "tests/test_server.py",
    # It opens the socket's file to all, where nothing else then holds another user off.
    "--deselect", "tests/test_server.py::test_another_user_is_refused",
)  # fmt: skip


@pytest.mark.timeout(900)
@pytest.mark.parametrize("tests", [FAST, PROCESSES], ids=["fast", "processes"])
def test_the_console_works_without_what_only_linux_has(tests: tuple[str, ...]) -> None:
    """The fast tests; and prompt, scripts, DETACH, attached clients and signals as real processes."""
    paths = os.pathsep.join((str(ROOT / "tests" / "other_system"), str(ROOT)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:anyio", *tests],
        env=environment | {"PYTHONPATH": paths},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "failed" not in done.stdout and "[100%]" in done.stdout
