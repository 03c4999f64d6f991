"""The modules import in one direction, and the heavy packages stay where they belong."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "streamsql"

# A module imports from its own line and from the lines above it, never from below.
ORDER = [
    "errors folders workspace",
    "preferences",
    "configfile",
    "language",
    "catalog",
    "calls",
    "connectors",
    "plan",
    "results",
    "runtime output",
    "info",
    "script",
    "supervisor",
    "shell",
    "cli",
    "__main__",
]
LAYER = {name: number for number, names in enumerate(ORDER) for name in names.split()}
# Inside language/ and plan/, too, there is a direction.
LANGUAGE = [
    "tokens reader reference",
    "functions dialect terminals",
    "grammar synopsis",
    "statements",
    "parser",
]
PLAN = [
    "shape functions texts ranges windows guesses",
    "rules firsts",
    "sources",
    "states",
    "stateful",
    "frames",
    "relations grouping",
    "blocks",
    "lower",
    "plans",
    "changes",
    "context",
    "shared",
    "definitions queries",
    "looking",
    "planner",
    "check",
]

# The one place of each heavy package.
HOMES = {
    "pyspark": "runtime/",
    "py4j": "runtime/",
    "prompt_toolkit": "shell/",
    "sqlglot": "language/dialect.py",
}


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def imports(module: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all that a module imports, inside functions as well."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(module)}:{node.lineno} imports relatively"
            yield node.lineno, node.module or ""
            # `from streamsql.runtime import jvm` imports a module.
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def own(module: Path) -> list[tuple[int, list[str]]]:
    """(line, parts of the name behind `streamsql`) of the imports of our own."""
    return [(n, i.split(".")[1:]) for n, i in imports(module) if i.split(".")[0] == "streamsql" and "." in i]


def for_types_only(module: Path) -> set[int]:
    """Lines below `if TYPE_CHECKING`: they import nothing when the program runs."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found |= {n.lineno for n in ast.walk(node) if isinstance(n, (ast.Import, ast.ImportFrom))}
    return found


def test_every_module_has_its_place_in_the_order() -> None:
    there = {name_of(m).split("/")[0].removesuffix(".py") for m in modules()}
    assert there <= set(LAYER)


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_imports_go_one_way(module: Path) -> None:
    here = name_of(module).split("/")[0].removesuffix(".py")
    backwards = [
        f"{name_of(module)}:{line} imports {target[0]}, which comes after {here}"
        for line, target in own(module)
        if LAYER.get(target[0], -1) > LAYER[here]
    ]
    assert backwards == []


@pytest.mark.parametrize(("folder", "order"), [("language", LANGUAGE), ("plan", PLAN)])
def test_imports_inside_a_folder_go_one_way(folder: str, order: list[str]) -> None:
    place = {name: number for number, names in enumerate(order) for name in names.split()}
    backwards = []
    for module in sorted((PACKAGE / folder).rglob("*.py")):
        here = module.relative_to(PACKAGE / folder).parts[0].removesuffix(".py")
        if here == "__init__":
            continue
        assert here in place, f"{folder}/{here} has no place in the order"
        for line, target in own(module):
            deeper = target[0] == folder and len(target) > 1
            if deeper and place.get(target[1], -1) > place[here]:
                backwards.append(f"{name_of(module)}:{line} imports {target[1]}, which comes after {here}")
    assert backwards == []


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_heavy_packages_stay_where_they_belong(module: Path) -> None:
    astray = [
        f"{name_of(module)}:{line} imports {target}"
        for line, target in imports(module)
        for package, home in HOMES.items()
        if target.split(".")[0] == package and not name_of(module).startswith(home)
    ]
    assert astray == []


@pytest.mark.parametrize("module", [m for m in modules() if name_of(m).startswith("runtime/")], ids=name_of)
def test_pyspark_is_imported_when_it_is_needed(module: Path) -> None:
    """Inside functions only, so that what needs no Spark does not wait for it."""
    top = [
        n for n in ast.parse(module.read_text("utf-8")).body if isinstance(n, (ast.Import, ast.ImportFrom))
    ]
    lines = {n.lineno for n in top}
    heavy = [i for n, i in imports(module) if n in lines and i.split(".")[0] in ("pyspark", "py4j")]
    assert heavy == []


LIGHT = ["cli", "script", "plan.planner", "plan.check", "runtime.session"]


@pytest.mark.parametrize("module", [f"streamsql.{m}" for m in LIGHT])
def test_importing_loads_nothing_heavy(module: str) -> None:
    heavy = sorted(HOMES) + (["pandas"] if module != "streamsql.cli" else ["pandas", "pyarrow", "wcwidth"])
    code = f"import sys, {module}; print(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def test_the_check_finds_an_import_that_turns_back(tmp_path: Path) -> None:
    """The walk itself: it sees imports of every form, at any depth."""
    module = tmp_path / "made.py"
    module.write_text(
        "import streamsql.cli\nfrom streamsql import plan\n"
        "def f():\n    from streamsql.runtime import jvm\n    import pyspark.sql as s\n"
    )
    found = {(line, target) for line, target in imports(module)}
    assert {
        (1, "streamsql.cli"),
        (2, "streamsql.plan"),
        (4, "streamsql.runtime.jvm"),
        (5, "pyspark.sql"),
    } <= found
    assert (2, ["plan"]) in own(module)
    assert (4, ["runtime", "jvm"]) in own(module)
