"""The loop: read a statement, run it, show it. Spark starts meanwhile; queries run on behind it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable
from typing import Any

from prompt_toolkit import PromptSession, prompt
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from streamsql.errors import Source, StreamsqlError
from streamsql.folders import state_folder
from streamsql.language.grammar import load
from streamsql.language.parser import split_script
from streamsql.output.printer import Printer
from streamsql.runtime.session import Session
from streamsql.script import ScriptRunner
from streamsql.shell.complete import SELECT_WORDS, complete
from streamsql.shell.editing import History, is_complete

STYLE = Style.from_dict(
    {"keyword": "ansiblue bold", "string": "ansigreen", "number": "ansimagenta", "comment": "ansibrightblack",
     "bottom-toolbar": "noreverse", "failed": "ansired bold"}
)  # fmt: skip


class _Completer(Completer):
    def __init__(self, session: Session) -> None:
        self.session = session

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        for found in complete(document.text, document.cursor_position, self.session.catalog):
            yield Completion(found.text, -found.length, display_meta=found.kind)


class _Lexer(Lexer):
    """Colours by the tokens that the parser sees; the keywords are the grammar's."""

    def __init__(self) -> None:
        self.keywords = load().keywords | {w for words in SELECT_WORDS for w in words.split()}

    def lex_document(self, document: Document) -> Any:
        from streamsql.language.tokens import tokenize

        pieces: list[tuple[str, str]] = []
        at = 0
        for token in tokenize(document.text, strict=False):
            style = {"string": "class:string", "number": "class:number"}.get(token.kind, "")
            if token.kind == "word" and token.upper in self.keywords:
                style = "class:keyword"
            pieces += [("class:comment", document.text[at : token.start]), (style, token.text)]
            at = token.end
        pieces.append(("class:comment" if "--" in document.text[at:] else "", document.text[at:]))
        lines: list[StyleAndTextTuples] = [[]]
        for style, text in pieces:
            for number, part in enumerate(text.split("\n")):
                if number:
                    lines.append([])
                lines[-1].append((style, part))
        return lambda number: lines[number] if number < len(lines) else []


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: True))
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    return keys


class Shell:
    """One prompt over one session."""

    def __init__(self, session: Session, printer: Printer, **prompt_options: Any) -> None:
        self.session = session
        self.runner = ScriptRunner(session, printer, keep_going=False)
        self.printer = printer
        self.interrupted = threading.Event()
        self.prompt: PromptSession[str] = PromptSession(
            multiline=True,
            history=History(state_folder() / "history"),
            auto_suggest=AutoSuggestFromHistory(),
            completer=ThreadedCompleter(_Completer(session)),
            complete_while_typing=True,
            lexer=_Lexer(),
            style=STYLE,
            key_bindings=_keys(),
            bottom_toolbar=self.toolbar,
            refresh_interval=1.0,
            prompt_continuation=lambda width, number, wrapped: "." * (width - 1) + " ",
            enable_open_in_editor=True,
            **prompt_options,
        )
        self.began = time.monotonic()

    def toolbar(self) -> StyleAndTextTuples:
        """Spark's state and how many queries run; never asks Spark itself."""
        if self.session.started:
            spark = "Spark ready"
        elif self.session.failed:
            spark = "Spark could not start"
        else:
            spark = f"starting Spark… {time.monotonic() - self.began:.0f} s"
        count = len(self.session.catalog.queries)
        queries = f"{count} quer{'y' if count == 1 else 'ies'}"
        return [("", f" {spark} · {queries} · end a statement with ; · HELP;")]

    def run(self) -> int:
        """Read and run until the end. Returns the exit code, 0."""
        self.printer.say("streamsql: SQL over streams. HELP; lists the statements, Ctrl-D leaves.")
        # Ctrl-C must never break into a call to Spark: outside the prompt it is only remembered.
        signal.signal(signal.SIGINT, lambda number, frame: self.interrupted.set())
        emptied = 0
        while True:
            self.tell_failures()
            try:
                with patch_stdout(raw=True):
                    text = self.prompt.prompt("sql> ")
                emptied = 0
            except KeyboardInterrupt:
                emptied += 1
                if emptied > 1:
                    self.printer.say("Ctrl-D or EXIT; leaves")
                continue
            except EOFError:
                if self.may_leave():
                    return 0
                continue
            if not self.execute(text):
                return 0

    def may_leave(self) -> bool:
        """Ask when queries run."""
        running = self.session.queries.active() if self.session.started else []
        if not running:
            return True
        count = len(running)
        question = f"{count} quer{'y' if count == 1 else 'ies'} running; stop and leave? [y/N] "
        try:
            return prompt(question).strip().casefold() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def execute(self, text: str) -> bool:
        """Run the statements of a text on a thread, so that Ctrl-C is obeyed. False: leave."""
        text = text.strip()
        source = Source("sql", text if text.endswith(";") else text + ";")
        outcome: list[bool] = []
        work = threading.Thread(target=lambda: outcome.append(self._execute(source)), daemon=True)
        began = time.monotonic()
        self.interrupted.clear()
        self.session.resume()
        work.start()
        if self._wait(work):
            return not outcome or outcome[0]
        self.session.cancel()
        work.join(10)
        self.printer.say(f"cancelled after {time.monotonic() - began:.1f} s")
        return True

    def _wait(self, work: threading.Thread) -> bool:
        """Wait until a statement is done; False when Ctrl-C came first."""
        said = False
        began = time.monotonic()
        while work.is_alive():
            work.join(0.05)
            if self.interrupted.is_set():
                return False
            if not said and not self.session.started and time.monotonic() - began > 0.5:
                self.printer.say("waiting for Spark to start…")
                said = True
        return True

    def _execute(self, source: Source) -> bool:
        try:
            statements = split_script(source)
        except StreamsqlError as error:
            self.printer.error(error)
            return True
        for written in statements:
            self.runner.exit_code = 0
            going_on = self.runner.run_statement(written)
            if self.runner.exit_code:
                return True
            if not going_on:
                return False
        return True

    def tell_failures(self) -> None:
        """One line for each query that has failed since the last prompt."""
        if not self.session.started:
            return
        for running in list(self.session.queries.all.values()):
            if running.status() == "FAILED" and running.fault and not running.reported:
                running.reported = True
                self.printer.say(f"{running.fault.message}; DESCRIBE QUERY {running.name}; tells more")
