"""sqlglot's compiled form reads and plans as its interpreted one: each in a process of its own.

The package sqlglotc has extension modules that lie inside the folder sqlglot, beside the .py files
that they replace. So both packages are installed into one folder, which comes first on the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOMS = ("streamsql/language/", "streamsql/plan/")

FUZZ = Path(__file__).parents[1] / "fuzz"
PLANNED = """
import sys
import sqlglot.parser
from corpus import shared_queries, statements as known
from properties import Console
from statements import texts
print("compiled" if not sqlglot.parser.__file__.endswith(".py") else "interpreted")
console = Console()
for text in [*known(), *shared_queries(), *texts(600, seed=5)]:
    print(ascii(text[:200]), *console.outcomes(text), *console.problems(text))
"""


def install(folder: Path) -> None:
    """sqlglot of the version that is here and its compiled form in a folder; skips when they cannot be had."""
    same = version("sqlglot")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--target",
        str(folder),
    ]
    try:
        done = subprocess.run(
            [*command, f"sqlglot=={same}", f"sqlglotc=={same}"], capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        pytest.skip("sqlglotc was not fetched within two minutes")
    if done.returncode:
        pytest.skip(f"sqlglotc {same} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")


def outcomes(path: list[Path]) -> list[str]:
    """What becomes of each statement, in a process that finds sqlglot on that path first."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [*path, FUZZ])), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PLANNED], capture_output=True, text=True, env=environment, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("compiled")
    install(folder)
    return outcomes([folder])


def test_the_compiled_form_plans_the_same(compiled: list[str]) -> None:
    assert compiled[0] == "compiled"
    interpreted = outcomes([])
    # Python counts the calls of the interpreted form, so that it stops at a lower depth.
    both = (
        (a, b) for a, b in zip(interpreted[1:], compiled[1:], strict=True) if "nested too deeply" not in a
    )
    differ = [f"{a}\n{b}" for a, b in both if a != b]
    assert not differ, f"{len(differ)} of {len(compiled)} differ:\n" + "\n".join(differ[:10])
    assert sum(" plan " in line for line in compiled) > 800
