"""HELP of a statement begins with examples; they are planned here, in what the other pages define."""

from __future__ import annotations

import re

import pytest

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.error_codes import CODES
from streamsql.errors import Source
from streamsql.features.testing import statement as test_statements
from streamsql.language.grammar import load
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.registry import STATEMENTS
from streamsql.language.statements.session import Define, Help
from streamsql.plan.context import Context
from streamsql.results import Text
from streamsql.runtime.handlers.help import DIRECT

OF_TESTS = [
    rule for rule, kind in STATEMENTS.items() if kind.topic == "testing" and kind is not test_statements.Test
]
RULES = [rule for rule in STATEMENTS if rule != "Spark"]
DEFINING = ("CreateStream", "CreateSink", "CreateFunction", "CreateLiveTable", "Insert")


def page(*words: str) -> str:
    shown = DIRECT[Help](None, Help(words=words))  # type: ignore[arg-type]
    assert isinstance(shown, Text)
    return shown.text


def checked(checker: Checker, text: str) -> list[str]:
    """The names of the statements of a text, which are planned."""
    variables, kinds = {"here": "."}, []
    for written in split_script(Source("help", text)):
        assert written.closed, text
        statement = parse(written, variables)
        if isinstance(statement, Define):
            variables[statement.name.value] = statement.value
        checker.check(statement)
        kinds.append(type(statement).__name__)
    return kinds


@pytest.mark.parametrize("rule", RULES)
def test_the_examples_of_a_statement_are_planned(rule: str) -> None:
    if rule in OF_TESTS:  # only a test runs them
        test = parse(split_script(Source("help", f"TEST 'x' BEGIN {load().examples[rule]} END TEST;"))[0])
        assert isinstance(test, test_statements.Test)
        assert {type(statement).__name__ for statement in test.body} == {rule}
        return
    checker = Checker(Context(Catalog()))
    for defining in DEFINING[: DEFINING.index(rule) if rule in DEFINING else None]:
        checked(checker, load().examples[defining])
    assert rule in checked(checker, load().examples[rule])


def test_a_page_begins_with_examples_and_names_a_duration_once() -> None:
    first, *_ = page("STOP", "QUERY").split("\n\n")
    assert first == load().examples["StopQuery"]
    shown = page("CREATE", "LIVE", "TABLE").split("\n\n")[1]
    assert shown.count("INTERVAL 10 MINUTES") == 1
    assert "EVERY duration" in shown
    pages = "\n".join(
        page(*words.split()) for words in ("CREATE", "INSERT", "STOP", "AWAIT", "WATCH", "START")
    )
    assert not re.search(r"\{\{INTERVAL|MILLISECOND", pages)
    # What the window wraps is indented.
    assert max(len(line) for line in pages.splitlines() if not line.startswith("    ")) <= 110
    assert "third" in page("WATCH")


def test_help_of_a_code_says_what_it_means() -> None:
    assert page("UNKNOWN_STREAM") == f"UNKNOWN_STREAM: {CODES['UNKNOWN_STREAM']}"
    assert page("nothing_wrong").startswith("NOTHING_WRONG: ")
