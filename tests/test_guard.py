"""What only informs fails nothing, and an unexpected exception fails its statement alone."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from scripts import run_main

from streamsql.cli import dry_run
from streamsql.errors import Cancelled
from streamsql.guard import informing
from streamsql.plan import planner
from streamsql.plan.statements import query_run
from streamsql.shell import prompt as prompts
from streamsql.shell.completion import complete as completion

STREAM = "CREATE STREAM s (n INT) USING values;"


def fails(*arguments: Any, **options: Any) -> Any:
    raise ZeroDivisionError("float division by zero")


def test_a_fault_of_advice_is_logged_and_shows_as_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(query_run, "advice", fails)
    done = run_main("--no-config", "--check", "-e", f"{STREAM} CREATE LIVE TABLE t AS SELECT n FROM s;")
    assert (done.code, done.err) == (0, "2 statements checked\n")
    (line,) = [record for record in caplog.records if record.name == "streamsql"]
    assert line.levelno == logging.ERROR
    assert line.getMessage() == "[INTERNAL] what informs is omitted: float division by zero"
    assert line.exc_info is not None


def test_ctrl_c_is_for_what_informs_too() -> None:
    def cancelled() -> None:
        raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        informing(cancelled, None)


def test_completion_and_toolbar_that_fail_show_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(completion, "complete", fails)
    desk = Mock(session=Mock(summary=fails))
    completer = prompts._Completer(lambda: desk)
    assert list(completer.get_completions(Document("SHOW "), CompleteEvent())) == []
    assert prompts.Prompt.toolbar(Mock(_toolbar=fails)) == []


@pytest.fixture
def signals_kept() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals_kept")
@pytest.mark.parametrize("check", [True, False])
def test_an_unexpected_exception_fails_one_statement(
    check: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    of = dry_run if check else planner
    plan = of.plan

    def fails_once(statement: Any, context: Any) -> Any:
        return fails() if "bad" in statement.text else plan(statement, context)

    monkeypatch.setattr(of, "plan", fails_once)
    script = f"{STREAM} CREATE STREAM bad (n INT) USING values; DROP STREAM s; DROP STREAM s;"
    flags = ("--check",) if check else ("--java", "/nowhere")
    done = run_main("--no-config", *flags, "--on-error", "continue", "-e", script)
    assert done.code == 1
    assert "error[INTERNAL]: ZeroDivisionError: float division by zero" in done.err
    assert "there is no stream s" in done.err  # the statements after it were run
    assert "Traceback" not in done.err
    assert "[INTERNAL]" in caplog.text
