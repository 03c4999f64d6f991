"""The syntax trees of the project's modules, read once for all tests that walk them."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "streamsql"


@cache
def trees() -> dict[str, ast.Module]:
    """By the path of a module below streamsql/, its tree."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text("utf-8")) for file in files}


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """(`module:line`, node) of all nodes of all trees.

    The half million nodes are kept until the end of the run: a search for garbage among them would find none and
    take most of the time.
    """
    gc.disable()
    try:
        return [
            (f"{name}:{getattr(n, 'lineno', 0)}", n) for name, tree in trees().items() for n in ast.walk(tree)
        ]
    finally:
        gc.freeze()
        gc.enable()
