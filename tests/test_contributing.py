"""The pages for contributors name what is there."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

CONTRIBUTING = ".github/CONTRIBUTING.md"
PAGES = {page: (ROOT / page).read_text() for page in (CONTRIBUTING, ".github/SECURITY.md", "tests/README.md")}
PATH = re.compile(r"(?<![\w/])(?:streamsql|grammars|examples|tests|\.github|\.ci)/[\w./]*[\w/]")
DEFINED = re.compile(r"`(streamsql/[\w/]+\.py)`: `(\w+)`|`(\w+)` of\s+`(streamsql/[\w/]+\.py)`")


@pytest.mark.parametrize("page", PAGES)
def test_every_path_is_there(page: str) -> None:
    named = PATH.findall(PAGES[page])
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_name_is_defined_in_the_module_that_is_said() -> None:
    named = [(m[1] or m[4], m[2] or m[3]) for m in DEFINED.finditer(PAGES[CONTRIBUTING])]
    assert len(named) > 20
    definition = r"(?m)^(?: *(?:def|class) {0}\b|{0}\b.* = )"
    missing = [
        (module, name)
        for module, name in named
        if not re.search(definition.format(name), (ROOT / module).read_text())
    ]
    assert missing == []
