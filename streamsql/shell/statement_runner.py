"""Runs the statements of the prompt: on a thread, with live views and background messages.

All slow imports happen here, after the first prompt is shown.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from streamsql.errors import Note, QueryFault, Source, StreamsqlError
from streamsql.feature_registry import extensions
from streamsql.guard import internal
from streamsql.language.lexical import cut_at_commands, trailing_command
from streamsql.language.parser import split_script
from streamsql.language.short_forms import SIGNS, expand, listing
from streamsql.output.printer import Printer
from streamsql.output.script_runner import ScriptRunner
from streamsql.results import Live, Text, discard
from streamsql.runtime.console_session import ConsoleSession
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.shell.asked_views import AskedViews
from streamsql.shell.bare_terminal import Interrupt
from streamsql.shell.editing import edit
from streamsql.shell.progress_line import ProgressLine
from streamsql.shell.prompt_commands import (
    check_text_file,
    connection,
    described,
    echoed,
    in_full,
    printer_to,
    repeat,
    run_in_shell,
)
from streamsql.shell.repeated_view import KeepingPrinter

GIVING_UP = 10.0
"""The seconds that the prompt waits for a cancelled statement that changes something to end."""
AT_ONCE = 0.7
"""The same for a statement that only reads: it may end later, and shows nothing more."""

_READS_ON = "; Spark has not yet ended its work, and nothing of it will be shown"
_DOES_NOT_RESPOND = ", but it does not respond: it stops at its next step"


class Desk:
    """Executes what is typed. interrupted: set by Ctrl-C outside the prompt; options: input and output of
    prompt_toolkit, if they are not the terminal.

    All methods are called on the main thread, which owns the terminal; statements run on other threads.
    """

    def __init__(
        self, session: ConsoleSession, printer: Printer, interrupted: Interrupt, options: dict[str, Any]
    ) -> None:
        self.session = session
        self.printer = printer
        self.interrupted = interrupted
        self.rows_to = printer
        """Writes rows: the printer, or one for the file of \\o."""
        self.next_text = ""
        """The initial text of the next prompt, such as a statement from the editor."""
        self.offered = ""
        """A proposed statement, for the history of the next prompt."""
        self.not_run = ""
        """What was typed behind a statement that failed, for the history of the next prompt."""
        self._failed = False
        """Whether a statement of what was typed has failed or was cancelled."""
        self.detach = False
        """Whether the last statement was DETACH."""
        self._last_text = ""
        self._once = False
        """Whether rows go to a file for one statement only."""
        self._work: threading.Thread | None = None
        """The thread of the statement that is waited for."""
        moving = printer.words.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.progress = ProgressLine(session, printer.terminal, moving=moving)
        printer.present = self._present
        printer.offer = self._offer
        self.views = AskedViews(printer, self.progress, options)
        session.on_news(self._announce)

    def _announce(self, line: str) -> None:
        """Print a line above the prompt, once no view is shown; the typed text is kept."""
        self.views.free.wait()
        while self.printer.paging.is_set():
            time.sleep(0.1)
        self.printer.announce(line, alarm=True)
        message, _, more = line.partition("; DESCRIBE QUERY ")
        if more:
            hint = f"DESCRIBE QUERY {more}"
            stated = QueryFault(message, hint=hint, code="QUERY_FAILED")
            fault = self.session.query_fault(more.partition(";")[0])
            self.printer.terminal.last_error = fault or stated

    # ---- statements -----------------------------------------------------------------------

    def execute(self, text: str) -> bool:
        """Execute the typed text: statements and short forms, up to the first error. False: leave the
        console.
        """
        parts = cut_at_commands(text, SIGNS) or [text]
        for at, part in enumerate(parts, 1):
            self._failed, self.not_run = False, ""
            if not self._execute_part(part):
                return False
            if self._failed:
                self._keep_for_later([self.not_run, *parts[at:]])
                break
        return True

    def _keep_for_later(self, parts: list[str]) -> None:
        """Offer what was not run at the next prompt."""
        self.not_run = "\n".join(part.strip() for part in parts if part.strip())
        if self.not_run:
            keys = "↑ twice" if self.offered else "↑"
            message = f"what follows was not run; press {keys} to edit and run it"
            self.printer.note([Note("NOT_RUN", message)])

    def _execute_part(self, text: str) -> bool:
        """Execute statements, a short form, or a statement with a short form behind it. False: leave."""
        parts = None if text.lstrip().startswith(SIGNS) else trailing_command(text)
        if parts is not None:
            return self._with_command(*parts)
        try:
            short = expand(text, self.printer.preferences)
        except StreamsqlError as error:
            self._fail(error.at(Source("sql", text)))
            return True
        if short is not None and short.startswith("\\"):
            return self._command(*short.partition(" ")[::2])
        if short is None:
            self._last_text = text
        else:
            short = described(short, self.session.catalog)
        return self._run_text(short or text)

    def _run_text(self, text: str) -> bool:
        text = text.strip()
        try:
            return self.run(Source("sql", text if text.endswith(";") else text + ";"))
        finally:
            if self._once:
                self._write_to("")

    def _with_command(self, typed: str, command: str) -> bool:
        """Execute a short form behind a statement that is being typed. \\g runs the statement; others leave
        it at the prompt. False: leave the console.
        """
        try:
            name = (expand(command, self.printer.preferences) or "").partition(" ")[0]
        except StreamsqlError as error:
            self._fail(error.at(Source("sql", command)))
            self.next_text = typed
            return True
        if name == "\\r":
            return True
        if name == "\\p":
            self.printer.show(Text(text=typed))
        elif name in ("\\g", "\\gx", "\\watch", "\\e", "\\fmt"):
            self._last_text = typed if typed.endswith(";") else typed + ";"
            return self.execute(command)
        elif typed.endswith(";"):
            return self.execute(f"{typed}\n{command}")
        elif not self.execute(command):
            return False
        self.next_text = typed
        return True

    def _command(self, name: str, given: str) -> bool:
        """Run a command that no statement corresponds to. False: leave the console."""
        try:
            return COMMANDS[name](self, given) is not False
        except StreamsqlError as error:
            self._fail(error)
        return True

    def _tell(self, text: str, *, prose: bool = True) -> None:
        self.printer.show(Text(text=text, prose=prose))

    def _echo(self, given: str) -> None:
        self.printer.show(Text(text=echoed(given, self.session.variables)), background=True)

    def _edit(self, given: str) -> None:
        self.next_text = edit(self._last_text, self.printer, given)

    def _again(self, given: str, *, expanded: bool = False) -> bool:
        """Run the last statement again: row by row, or into a file. False: leave."""
        if not self._last_text:
            return True
        if given:
            self._write_to(given, once=True)
        self.printer.expanded = self.rows_to.expanded = expanded
        try:
            return self._run_text(self._last_text)
        finally:
            self.printer.expanded = self.rows_to.expanded = False

    def _repeat(self, given: str) -> bool:
        """Run the last statement every so many seconds. False: leave."""
        source, (seconds, times) = Source("sql", self._last_text), (*given.split(), "0")[:2]
        if not self._last_text:
            return True
        if self.progress.moving and self.rows_to is self.printer and self.printer.width():
            return self._on_thread(
                lambda cancel: self._repeat_in_place(source, float(seconds), int(times), cancel)
            )

        def act(cancel: CancelToken) -> bool:
            self.printer.say(f"{datetime.now():%Y-%m-%d %H:%M:%S} (every {seconds} s)")
            return self._execute(source, cancel) and not self._failed

        return self._on_thread(lambda cancel: repeat(lambda: act(cancel), float(seconds), int(times), cancel))

    def _repeat_in_place(self, source: Source, seconds: float, times: int, cancel: CancelToken) -> bool:
        """Run statements again and again and show in one place what they print. times: at most so often, 0
        for no limit. Returns True.
        """
        view = self.views.repeated(seconds, cancel)
        printer = KeepingPrinter(self.printer, self._present)

        def run() -> list[str] | None:
            self._execute(source, cancel, printer)
            return None if self._failed or printer.presented else printer.taken()

        view.repeat(run, times, lambda: self.views.ask(view))
        if threading.current_thread() is self._work:
            self.printer.write(view.lines)
            error = printer.terminal.last_error
            self._failed = error is not None
            if error is not None:
                self.printer.error(error)
            elif view.updated:
                self.printer.say(f"every {view.every:.3g} s, the last time at {view.updated}")
        return True

    def _write_to(self, path: str, *, once: bool = False) -> None:
        """Write rows to a file, here again without one. Raises InputFault."""
        if path[:1] in ("'", '"') and path[-1:] == path[:1] and len(path) > 2:
            path = path[1:-1]
        check_text_file(path, self._last_text)
        if self.rows_to is not self.printer:
            self.rows_to.out.close()
            self.rows_to = self.printer
        self._once = once
        if path:
            self.rows_to = printer_to(path, self.printer)

    def _fail(self, error: StreamsqlError) -> None:
        self._failed = True
        self.printer.error(error)

    def _last_error(self) -> str:
        error = self.printer.terminal.last_error
        return in_full(error) if error else "there was no error"

    def _format_last(self) -> None:
        try:
            for format_script in extensions("formatter"):
                self.next_text = format_script(Source("sql", self._last_text)).rstrip("\n")
        except StreamsqlError as error:
            self.printer.error(error)

    def _show_last(self, cancel: CancelToken) -> bool:
        self.printer.show_last()
        return True

    def run(self, source: Source) -> bool:
        """Execute the statements of a source. False: leave the console."""
        return self._on_thread(lambda cancel: self._execute(source, cancel))

    def _on_thread(self, act: Callable[[CancelToken], bool]) -> bool:
        """Call a function on a thread, so that Ctrl-C can cancel it. False: leave the console."""
        outcome: list[bool] = []
        cancel = CancelToken()

        def work_on() -> None:
            try:
                outcome.append(act(cancel))
            except Exception as error:  # a defect of the console must not end it
                if not cancel.abandoned:
                    self.printer.error(internal(error))

        work = threading.Thread(target=work_on, daemon=True, name="statement")
        began = time.monotonic()
        self.progress.start(cancel)
        self._work = work
        work.start()
        try:
            if self._wait(work, cancel):
                return not outcome or outcome[0]
            self._cancel(work, cancel)
        finally:
            self.progress.stop()
            self._work = None
            self.interrupted.clear()
        took = f"{time.monotonic() - began:.1f} s"
        late = "" if not work.is_alive() else _READS_ON if cancel.only_reads else _DOES_NOT_RESPOND
        if not late and cancel.happened:
            late = f": {cancel.happened}"
        self.printer.say(f"cancelled after {took}{late}")
        self._failed = True
        return True

    def _cancel(self, work: threading.Thread, cancel: CancelToken) -> None:
        """Cancel a statement, say so at once, and wait for a short time until it ends."""
        self.progress.cancelling()
        cancel.cancel()
        deadline = time.monotonic() + (AT_ONCE if cancel.only_reads else GIVING_UP)
        while work.is_alive() and time.monotonic() < deadline:
            work.join(0.05)
            self.views.refuse()
        cancel.abandoned = work.is_alive()
        self._work = None
        self.views.refuse()

    def _wait(self, work: threading.Thread, cancel: CancelToken) -> bool:
        """Wait until a statement has ended, and show its live views. Returns False after Ctrl-C."""
        while work.is_alive():
            self.views.show_next(timeout=0.05)
            if self.interrupted.is_set():
                if not self.printer.paging.is_set():
                    return False
                self.interrupted.clear()  # it was for the pager
                if self.printer.fetching.is_set():
                    cancel.cancel()  # the rows so far can still be read
        return True

    def _execute(self, source: Source, cancel: CancelToken, printer: Printer | None = None) -> bool:
        try:
            statements = split_script(source)
        except StreamsqlError as error:
            self._fail(error)
            return True
        for number, written in enumerate(statements, 1):
            runner = ScriptRunner(self.session, printer or self.rows_to, cancel)
            going_on = runner.run_statement(written)
            self.detach = runner.detach
            if runner.exit_code and not cancel.abandoned:
                self._failed = True
                rest = statements[number:]
                self.not_run = source.text[rest[0].span.start :] if rest else ""
            if runner.exit_code:
                return True
            if not going_on:
                return False
        return True

    def _offer(self, statement: str) -> list[Note]:
        self.offered = statement
        return [Note("PROPOSAL", "press ↑ to edit and run this statement")]

    # ---- live views -----------------------------------------------------------------------

    def _present(self, live: Live) -> None:
        """Called by the printer on the statement's thread; the main thread shows the view."""
        if threading.current_thread() is self._work:
            self.views.ask(live).wait()
        if threading.current_thread() is not self._work:
            return discard(live)  # it was cancelled
        if self.rows_to is not self.printer:
            self.rows_to.show_final(live)
        proposal = live.proposal()
        proposal = "" if proposal and live.take(1, None, None).total else proposal
        live.close()
        fault = live.fault()
        if fault is not None:
            self.printer.error(fault)
        said = live.said()
        if said:
            self.printer.say(said)
        if proposal:
            self.printer.note(self._offer(proposal))


COMMANDS: dict[str, Callable[[Desk, str], bool | None]] = {
    "\\?": lambda desk, given: desk._tell(listing()),
    "\\p": lambda desk, given: desk._tell(desk._last_text, prose=False),
    "\\r": lambda desk, given: None,
    "\\g": Desk._again,
    "\\gx": lambda desk, given: desk._again(given, expanded=True),
    "\\watch": Desk._repeat,
    "\\last": lambda desk, given: desk._on_thread(desk._show_last),
    "\\e": Desk._edit,
    "\\fmt": lambda desk, given: desk._format_last(),
    "\\o": Desk._write_to,
    "\\once": lambda desk, given: desk._write_to(given, once=True),
    "\\echo": Desk._echo,
    "\\!": lambda desk, given: run_in_shell(given),
    "\\errverbose": lambda desk, given: desk._tell(desk._last_error()),
    "\\conninfo": lambda desk, given: desk._tell(connection(desk.session)),
}
"""The commands of the prompt that no statement corresponds to; short_forms.py has their arguments."""
