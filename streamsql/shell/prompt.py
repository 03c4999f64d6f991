"""The prompt: keys, completion, toolbar, and the loop that reads statements.

Nothing here waits for Spark or the session: they are opened after the first prompt is shown.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.search import accept_search

from streamsql.config.folders import state_folder
from streamsql.errors import EngineFault, Source, StreamsqlError
from streamsql.guard import informing, internal
from streamsql.output.console_messages import Messages
from streamsql.output.terminal import window
from streamsql.shell.bare_terminal import IN_CHANGE, PROMPT, Interrupt, is_lost, let_go, no_echo, set_echo
from streamsql.shell.editing import History, drops_all_queries, is_complete, open_sign
from streamsql.shell.highlighting import PLAIN, STYLE, SqlLexer
from streamsql.shell.word_wrap import WordWrap

SOON = 1.0
"""The seconds after which a message explains what the end of the console waits for."""

if TYPE_CHECKING:
    from streamsql.output.printer import Printer
    from streamsql.runtime.console_session import ConsoleSession
    from streamsql.shell.statement_runner import Desk


class _Completer(Completer):
    def __init__(self, desk: Callable[[], Desk]) -> None:
        self.desk = desk

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        from streamsql.shell.completion.complete import complete

        session, text, position = self.desk().session, document.text, document.cursor_position
        offered = informing(
            lambda: list(complete(text, position, session.catalog, session.columns, session.query_state)), ()
        )
        for candidate in offered:
            yield Completion(candidate.text, -candidate.length, display_meta=candidate.kind)


class Prompt:
    """A prompt with its session.

    open_session: gives the session and the printer of its results; called on a thread after the first prompt
    is shown, to not slow it down. resume: first resume the workspace's queries. detach: begins to go on
    without the terminal, or raises why that cannot be; None in a client of a server, which only leaves.
    typed: what was typed before, for the first prompt. options: input and output, if they are not the
    terminal.
    """

    def __init__(
        self,
        open_session: Callable[[], tuple[ConsoleSession, Printer]],
        messages: Messages,
        *,
        resume: bool = False,
        detach: Callable[[], None] | None = None,
        typed: str = "",
        **options: Any,
    ) -> None:
        self.messages = messages
        self.detach = detach
        self.detached = False
        self._signals = {True: 0, False: 0}
        self.resume = resume
        self.options = options
        self.interrupted = Interrupt()
        self.leaving = False
        self.hung_up = False
        self.multiline = False
        self._open_session = open_session
        self._opening: threading.Thread | None = None
        self._desk: Desk | None = None
        self._failure: BaseException | None = None
        self.history = History(state_folder() / "history")
        self.lexer = SqlLexer()
        self.prompt = self._prompt_session()
        self.prompt.app.after_render += lambda app: self._open()
        keys: list[KeyPress] = []
        Vt100Parser(keys.append).feed_and_flush(typed)
        store_typeahead(self.prompt.app.input, keys)

    def _open(self) -> None:
        if self._opening is None:
            self._opening = threading.Thread(target=self._make_desk, daemon=True, name="open-session")
            self._opening.start()

    def _make_desk(self) -> None:
        try:
            from streamsql.connectors.registry import plug_in_warnings
            from streamsql.shell.statement_runner import Desk

            session, printer = self._open_session()
            lines = [*session.open(), *(f"warning: {warning}" for warning in plug_in_warnings())]
            self._desk = Desk(session, printer, self.interrupted, self.options)
            for line in lines:
                self.messages.announce(line)
            self.lexer.load()
            self.prompt.app.invalidate()
        except BaseException as error:
            self._failure = error
            self._end_prompt()  # then `desk` raises it

    def desk(self) -> Desk:
        """The statement runner of the prompt; waits until the session is open."""
        self._open()
        assert self._opening is not None
        self._opening.join()
        if self._failure is not None:
            raise self._failure
        assert self._desk is not None
        return self._desk

    def close(self) -> None:
        """Stop the queries after their micro-batches, then Spark. Ctrl-C aborts the micro-batches."""
        if self._opening is None or self._failure is not None:
            return
        from streamsql.runtime.engine.cancel import CancelToken
        from streamsql.runtime.queries.stop import LEAVING, PATIENCE

        session = self.desk().session
        self.interrupted.clear()
        limit, cancel = LEAVING if self.leaving else PATIENCE, CancelToken()
        closing = threading.Thread(target=session.close, args=(limit, cancel), daemon=True, name="close")
        closing.start()
        closing.join(SOON)
        if closing.is_alive() and not self.leaving:
            self.messages.say("waiting for the current micro-batches to complete; Ctrl-C aborts them")
        while closing.is_alive():
            closing.join(0.1)
            if self.interrupted.is_set():
                cancel.cancel()

    def _prompt_session(self) -> PromptSession[str]:
        vi = self.messages.preferences["editing"] == "vi"
        return PromptSession(
            multiline=True,
            history=self.history,
            auto_suggest=AutoSuggestFromHistory(),
            completer=ThreadedCompleter(_Completer(self.desk)),
            complete_while_typing=True,
            lexer=self.lexer,
            input_processors=[WordWrap(len(PROMPT))],
            style=STYLE if self.messages.color else PLAIN,
            include_default_pygments_style=False,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            key_bindings=self._keys(),
            bottom_toolbar=self.toolbar,
            refresh_interval=1.0,
            prompt_continuation=self._continuation,
            enable_open_in_editor=True,
            enable_suspend=True,
            tempfile_suffix=".sql",
            **self.options,
        )

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=is_searching)
        def _(event: KeyPressEvent) -> None:
            accept_search()
            buffer = event.current_buffer
            if is_complete(buffer.text) and not self.multiline:
                buffer.validate_and_handle()

        @keys.add("enter", filter=~is_searching)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.complete_state and buffer.complete_state.current_completion:
                buffer.complete_state = None
            elif is_complete(buffer.text) and not self.multiline:
                buffer.validate_and_handle()
            else:
                # Keys that wait are those of a paste, in a terminal without bracketed paste: it has its own
                # indentation.
                buffer.newline(copy_margin=not event.app.key_processor.input_queue)

        @keys.add("c-j", filter=~is_searching)
        @keys.add("escape", "enter", filter=~is_searching)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            pasted = event.data.replace("\r\n", "\n").replace("\r", "\n")
            event.current_buffer.insert_text(pasted.replace("\t", "    "))

        @keys.add("q", filter=Condition(self._view_just_ended))
        def _(event: KeyPressEvent) -> None:
            self.messages.terminal.view_ended = 0.0

        @keys.add("f3")
        def _(event: KeyPressEvent) -> None:
            self.multiline = not self.multiline

        @keys.add("f4")
        def _(event: KeyPressEvent) -> None:
            vi = event.app.editing_mode == EditingMode.VI
            event.app.editing_mode = EditingMode.EMACS if vi else EditingMode.VI

        return keys

    def _view_just_ended(self) -> bool:
        """Whether a q is for a view that has ended by itself while it was typed."""
        since = time.monotonic() - self.messages.terminal.view_ended
        return since < SOON and not self.prompt.default_buffer.text

    def _continuation(self, width: int, number: int, wrapped: int) -> str:
        """What stands before a further line: the sign that its beginning is inside of, as psql has it."""
        lines = self.prompt.default_buffer.text.split("\n")[:number]
        sign = informing(lambda: open_sign(lines), "")
        return f"{sign}> ".rjust(width) if sign else "." * (width - 1) + " "

    def toolbar(self) -> StyleAndTextTuples:
        """The toolbar: Spark's state, the running and failed queries, their rate. Does not call Spark."""
        return informing(self._toolbar, [])

    def _toolbar(self) -> StyleAndTextTuples:
        desk = self._desk
        if desk is None:
            return [("", " starting…")]
        from streamsql.output.live_frames import SEPARATOR, that_fit
        from streamsql.query_facts import lost_rows
        from streamsql.results import counted

        facts = desk.session.summary()
        parts = [(0, lost, "class:failed") for lost in lost_rows(facts.late, facts.malformed)]
        parts += [(0, facts.server or facts.spark, ""), (1, f"{facts.running} running", "")]
        if rate := round(facts.rate):
            parts.append((4, f"{counted(rate, 'row')}/s", ""))
        if facts.failed:
            parts.append((1, f"{facts.failed} FAILED", "class:failed"))
        if facts.change:
            parts.append((1, f"change {facts.change} is open", ""))
        if facts.staged:
            parts.append((3, f"{facts.staged[0]} staged {facts.staged[1]} %", ""))
        if facts.silent:
            parts.append((3, f"{facts.silent[0]}: no rows for {facts.silent[1] // 60:.0f} min, WHY;", ""))
        if facts.stale:
            from streamsql.runtime.engine.moments import brief

            parts.append((2, f"{facts.stale[0]}: {brief(facts.stale[1])} behind", "class:failed"))
            parts.append((4, "SHOW LIVE TABLES;", ""))
        vi = self.prompt.editing_mode == EditingMode.VI
        modes = ("vi · " if vi else "") + ("Esc Enter runs" if self.multiline else "end with ;")
        lines, rank = self.prompt.default_buffer.text.split("\n"), 5
        if len(lines) > 1 and not self.multiline:
            sign, rank = open_sign(lines), 0
            what = "the comment" if sign == "*" else f"the quote {sign}"
            modes = f"{what} is not closed" if sign else "; and Enter run it"
        line: StyleAndTextTuples = [("", " ")]
        for _, text, style in that_fit([*parts, (rank, modes, ""), (6, "HELP;", "")], window().columns - 3):
            line += [(style, text), ("", SEPARATOR)]
        return line[:-1]

    # ---- the loop -------------------------------------------------------------------------

    def run(self, first: Source | None = None) -> int:
        """Read and run statements until the user leaves. first: a script to run before the first prompt
        (init.sql). Returns the exit code, 0.
        """
        # Ctrl-C must never interrupt a call to Spark: outside the prompt it only sets an event.
        signal.signal(signal.SIGINT, lambda number, frame: self.interrupted.set())
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, self._on_signal)
        threading.excepthook = self._thread_failed
        with no_echo(), patch_stdout(raw=True):
            if self.resume:
                self.desk().run(Source("--resume", "START QUERY ALL;"))
            if first is not None and not self.desk().run(first):
                return 0
            try:
                code = self._loop()
                if not self.leaving:
                    self._say_what_is_open()
            except OSError:
                if not self._lost_terminal():
                    raise
                code = 0
            if self.hung_up:
                let_go()
                self._keep_queries()
            return code

    def _on_signal(self, number: int, frame: object) -> None:
        """End the console after a signal: as Ctrl-D, but without a question. A second one exits at once; the
        same one may also come through the process that waits for this one, as SIGUSR1. The loss of a terminal
        may come from the kernel and from the shell.
        """
        if number == signal.SIGHUP:
            self.hung_up = True
        else:
            self._signals[number == signal.SIGUSR1] += 1
        if max(self._signals.values()) > 1:
            set_echo(True)
            os._exit(128 + signal.SIGTERM)
        self.leaving = True
        self.interrupted.set()
        self._end_prompt()

    def _end_prompt(self) -> None:
        """End the prompt that is shown, from any thread, as Ctrl-D does."""
        app = (
            self.prompt.app
            if threading.current_thread() is not threading.main_thread()
            else get_app_or_none()
        )
        if app is not None and app.loop is not None:
            app.loop.call_soon_threadsafe(
                lambda: app.exit(exception=EOFError) if app.is_running and not app.is_done else None
            )

    def _end_if_leaving(self) -> None:
        """As a prompt begins: end it if a signal came before, when `_end_prompt` found none."""
        if self.leaving:
            self._end_prompt()

    def _thread_failed(self, failed: threading.ExceptHookArgs) -> None:
        """Report a defect of the console in one line; the prompt continues."""
        name = failed.thread.name if failed.thread else "a thread"
        fault = internal(failed.exc_value or failed.exc_type())
        self.messages.error(EngineFault(f"{name}: {fault.message}", code=fault.code))

    def _say_what_is_open(self) -> None:
        from streamsql.runtime.console_session import left_open

        self.desk().printer.note(left_open(self.desk().session.summary()))

    def _sign(self) -> str:
        """The text of the prompt: another one while a set of changes is open."""
        desk = self._desk
        return IN_CHANGE if desk is not None and desk.session.summary().change else PROMPT

    def _loop(self) -> int:
        emptied, text = 0, ""
        while not self.leaving:
            try:
                self.interrupted.clear()
                with self.messages.terminal.prompting(sys.stdout):
                    text = self.prompt.prompt(self._sign, default=text, pre_run=self._end_if_leaving)
                emptied = 0
                if self._interrupted_at_once():
                    self.interrupted.set()
            except KeyboardInterrupt:
                text = ""
                emptied = 1 if self.prompt.default_buffer.text else emptied + 1
                if emptied > 1:
                    self.messages.say("Ctrl-D or EXIT; leaves")
                continue
            except EOFError:
                text = ""
                if self.may_leave():
                    return 0
                continue
            if not self._agrees(text):
                text = ""
                continue
            if not self.desk().execute(text) and (self._detaches() or self.may_leave()):
                return 0
            text, self.desk().next_text = self.desk().next_text, ""
            desk = self.desk()
            for text_offered in filter(None, (desk.not_run, desk.offered)):
                self.history.offer(text_offered)
            desk.not_run = desk.offered = ""
        return 0

    def _interrupted_at_once(self) -> bool:
        """Whether Ctrl-C was read together with the Enter that ended the prompt: it is for the statement, and
        takes what was typed before it along, as that of a terminal does.
        """
        keys = self.prompt.app.input
        ahead = get_typeahead(keys)
        after = next((n for n, key in enumerate(reversed(ahead)) if key.key == Keys.ControlC), len(ahead))
        store_typeahead(keys, ahead[len(ahead) - after :])
        return after < len(ahead)

    def _agrees(self, text: str) -> bool:
        """Whether the typed text may run: asks the user before DROP QUERY ALL."""
        queries = [q.name for q in self.desk().session.catalog.queries.values() if not q.owner]
        if len(queries) < 2 or not drops_all_queries(text):
            return True
        question = f"drop {', '.join(queries)} with their checkpoints and rows? [y/N] "
        return self._answer(question) in ("y", "yes")

    def _answer(self, question: str) -> str:
        """What the user answers, in lower case; "" for Ctrl-C and Ctrl-D."""
        try:
            with self.messages.terminal.prompting(sys.stdout):
                asked: PromptSession[str] = PromptSession(**self.options)
                return asked.prompt(question, pre_run=self._end_if_leaving).strip().casefold()
        except (EOFError, KeyboardInterrupt):
            return ""

    def may_leave(self) -> bool:
        """Whether to leave: asks the user if queries run, unless a signal ends the console."""
        if self.leaving or self._lost_terminal():
            return True
        summary = self.desk().session.summary()
        if summary.server or not summary.running:
            return True
        one = summary.running == 1
        choices = "stop and leave, detach, or stay? [y/d/N] " if self.detach else "stop and leave? [y/N] "
        question = f"{summary.running} {'query' if one else 'queries'} running; {choices}"
        answer = self._answer(question)
        if self.detach and answer in ("d", "detach"):
            return self._detach()
        return answer in ("y", "yes", "s", "stop")

    def _lost_terminal(self) -> bool:
        """Whether the terminal is lost, as the end of its input tells before the signal comes."""
        if not self.options and is_lost(0):
            self.hung_up = self.leaving = True
        return self.hung_up

    def _keep_queries(self) -> None:
        """After the loss of the terminal: let running queries go on without it, unless that is not wanted."""
        wanted = not self.detached and self.messages.preferences["hangup"] == "detach"
        if wanted and self.detach is not None and self._desk and self._desk.session.summary().running:
            self._detach()

    def _detaches(self) -> bool:
        """After a statement that leaves: whether the console now goes on without the terminal."""
        return self.desk().detach and self._detach()

    def _detach(self) -> bool:
        """Begin to go on without the terminal; a client of a server just leaves. False if that cannot be."""
        if self.detach is None:
            return True
        try:
            self.detach()
        except StreamsqlError as error:
            self.messages.error(error)
            return False
        self.detached = True
        return True
