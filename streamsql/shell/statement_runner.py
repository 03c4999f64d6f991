"""What stands behind the prompt: the session, running statements on a thread, live views, news.

All that is heavy to import is imported from here, after the first prompt is on the screen.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from streamsql.errors import EngineFault, Note, Source, StreamsqlError
from streamsql.language.parser import split_script
from streamsql.output.printer import Printer
from streamsql.output.script_runner import ScriptRunner
from streamsql.results import Live, Text
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.session import Session
from streamsql.shell.background_events import Announcer, toolbar_numbers
from streamsql.shell.backslash_commands import EDIT, LAST, LIST, expand, listing
from streamsql.shell.editing import edit
from streamsql.shell.highlighting import PLAIN, STYLE
from streamsql.shell.live_view import LiveView
from streamsql.shell.progress import ProgressLine

GIVING_UP = 10.0
"""Seconds that a statement has to end in after Ctrl-C, before the prompt comes back without it."""


class Desk:
    """Carries out what is typed. interrupted: set by Ctrl-C outside the prompt; options: input and
    output of prompt_toolkit, where they are not the terminal.

    All methods are called on the main thread, which owns the terminal; statements run on others.
    """

    def __init__(
        self, session: Session, printer: Printer, interrupted: threading.Event, options: dict[str, Any]
    ) -> None:
        self.session = session
        self.printer = printer
        self.interrupted = interrupted
        self.options = options
        self.next_text = ""
        """What the next prompt begins with, such as a statement that comes from the editor."""
        self.offered = ""
        """A statement that was proposed and that the next prompt has in its history."""
        self._last_text = ""
        self._views: queue.Queue[tuple[Live, threading.Event]] = queue.Queue()
        moving = printer.words.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.progress = ProgressLine(session.engine, printer.terminal, moving=moving)
        printer.present = self._present
        printer.offer = self._offer
        self.announcer = Announcer(session.parts, self._announce)

    def state(self) -> str:
        """Spark's state in a few words; asks nobody."""
        engine = self.session.engine
        if engine.started:
            return "Spark ready"
        if engine.failed:
            return "Spark could not start"
        if engine.starting:
            return f"starting Spark… {time.monotonic() - engine.began:.0f} s"
        return "Spark not started"

    def numbers(self) -> tuple[int, int, float]:
        """(queries that run, queries that failed, rows per second read by all); asks nobody."""
        return toolbar_numbers(self.session.parts)

    def columns(self, name: str) -> list[tuple[str, str]]:
        """(name, type) of the columns of a live table, by its name; asks nobody."""
        rows = self.session.live.loaded(name.casefold())
        fields = rows.schema.fields if rows is not None and rows.schema is not None else ()
        return [(f.name, f.dataType.simpleString()) for f in fields]

    def _announce(self, line: str) -> None:
        """Above the prompt, or after what is printed; what is being typed stays as it is."""
        while self.printer.paging.is_set():
            time.sleep(0.1)
        self.printer.announce(line, alarm=True)

    # ---- statements -----------------------------------------------------------------------

    def execute(self, text: str) -> bool:
        """Carry out a text as typed: statements, or a short form. False: leave."""
        try:
            short = expand(text, self.printer.preferences)
        except StreamsqlError as error:
            self.printer.error(error.at(Source("sql", text)))
            return True
        if short == EDIT:
            self.next_text = edit(self._last_text, self.printer)
            return True
        if short == LAST:
            return self._on_thread(self._show_last)
        if short == LIST:
            self.printer.show(Text(text=listing()))
            return True
        if short is None:
            self._last_text = text
        text = (short or text).strip()
        return self.run(Source("sql", text if text.endswith(";") else text + ";"))

    def _show_last(self, cancel: CancelToken) -> bool:
        self.printer.show_last()
        return True

    def run(self, source: Source) -> bool:
        """Carry out the statements of a source. False: leave."""
        return self._on_thread(lambda cancel: self._execute(source, cancel))

    def _on_thread(self, act: Callable[[CancelToken], bool]) -> bool:
        """Carry something out on a thread, so that Ctrl-C is obeyed. False: leave."""
        outcome: list[bool] = []
        cancel = CancelToken()

        def work_on() -> None:
            try:
                outcome.append(act(cancel))
            except Exception as error:  # a fault of the console's own must not end it
                if not cancel.abandoned:
                    self.printer.error(EngineFault(f"{type(error).__name__}: {error}", code="INTERNAL_ERROR"))

        work = threading.Thread(target=work_on, daemon=True, name="statement")
        began = time.monotonic()
        self.interrupted.clear()
        self.progress.start(cancel)
        work.start()
        try:
            done = self._wait(work)
        finally:
            self.progress.stop()
        if done:
            return not outcome or outcome[0]
        cancel.cancel()
        work.join(GIVING_UP)
        took = f"{time.monotonic() - began:.1f} s"
        if work.is_alive():
            cancel.abandoned = True
            self.printer.say(f"cancelled after {took}, but it does not respond: it stops at its next step")
        else:
            self.printer.say(f"cancelled after {took}")
        return True

    def _wait(self, work: threading.Thread) -> bool:
        """Wait until a statement is done, showing the live views it asks for; False: Ctrl-C came first."""
        while work.is_alive():
            try:
                live, shown = self._views.get(timeout=0.05)
            except queue.Empty:
                pass
            else:
                self._show(live)
                shown.set()
            if self.interrupted.is_set():
                if not self.printer.paging.is_set():
                    return False
                self.interrupted.clear()  # it was meant for the pager
        return True

    def _execute(self, source: Source, cancel: CancelToken) -> bool:
        try:
            statements = split_script(source)
        except StreamsqlError as error:
            self.printer.error(error)
            return True
        for written in statements:
            runner = ScriptRunner(self.session, self.printer, cancel)
            going_on = runner.run_statement(written)
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
        """Called by the printer on the statement's thread: the terminal belongs to the main one."""
        shown = threading.Event()
        self._views.put((live, shown))
        shown.wait()
        live.close()
        fault = live.fault()
        if fault is not None:
            self.printer.error(fault)
        said = live.said()
        if said:
            self.printer.say(said)

    def _show(self, live: Live) -> None:
        view = LiveView(
            live,
            every=self.printer.preferences.number("refresh"),
            color=self.printer.color,
            null=self.printer.preferences["null"],
            style=STYLE if self.printer.color else PLAIN,
            **self.options,
        )
        self.progress.stop()
        self.announcer.hold()
        try:
            # EOFError: the console is told to end.
            with suppress(EOFError), self.printer.terminal.prompting(sys.stdout):
                view.run()
        finally:
            self.announcer.release()
        last = view.final()
        self.printer.lines_as_they_are((*last.lines, *last.footer))
        if view.message:
            self.printer.say(view.message)
