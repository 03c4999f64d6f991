"""%load_ext streamsql: %streamsql and %%streamsql, completion in cells, errors as the console shows them."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import HTML, display

from streamsql.api.connection import Connection, Explanation, connect
from streamsql.api.query_result import QueryResult
from streamsql.errors import StreamsqlError, UsageFault
from streamsql.features.notebook.html import explanation_html, live_html, result_html
from streamsql.guard import informing
from streamsql.output.error_text import format_error
from streamsql.results import Live, discard
from streamsql.shell.completion.complete import Candidate, complete

EVERY = 0.5
"""The seconds between two frames of WATCH."""
_CELL = "%%streamsql"
_USAGE = (
    "%streamsql SQL, %streamsql why NAME, %streamsql connect DIR [--read-only], %streamsql close; "
    "a cell: %%streamsql [-o NAME]"
)


@magics_class
class StreamsqlMagics(Magics):
    """%streamsql and %%streamsql. A connection is opened when it is needed first: to a temporary workspace,
    unless `%streamsql connect DIR` names one.
    """

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """The connection of this notebook."""
        if self._connection is None or self._connection.closed:
            self._connection = connect()
        return self._connection

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @line_cell_magic  # type: ignore[untyped-decorator, unused-ignore]
    def streamsql(self, line: str, cell: str | None = None) -> QueryResult | Explanation | None:
        """Statements of streamsql. %streamsql SQL; %streamsql why NAME; %streamsql connect DIR [--read-only];
        %streamsql close. As %%streamsql [-o NAME] the cell has the statements; NAME then is the result.
        """
        if cell is not None:
            return self._run(cell, _name_of(line))
        word, _, rest = line.strip().partition(" ")
        if word == "close" and not rest:
            self.close()
            return None
        if word == "connect":
            self._connect(shlex.split(rest))
            return None
        if word == "why":
            return self.connection.why(rest.strip().rstrip(";") or None)
        if not word:
            raise UsageFault("there is nothing to run", hint=_USAGE)
        return self._run(line, "")

    def _connect(self, words: list[str]) -> None:
        read_only = "--read-only" in words
        folders = [word for word in words if word != "--read-only"]
        if len(folders) != 1 or folders[0].startswith("-"):
            raise UsageFault("connect takes one folder", hint="%streamsql connect DIR [--read-only]")
        self.close()
        self._connection = connect(folders[0], read_only=read_only)

    def _run(self, text: str, name: str) -> QueryResult | None:
        result = self.connection.run(text)
        if isinstance(result, Live):
            _watch(result)
            return None
        if name:
            self.shell.user_ns[name] = result
        return result

    @context_matcher()  # type: ignore[untyped-decorator, unused-ignore]
    def matcher(self, context: CompletionContext) -> Any:
        """The candidates at the cursor of a cell of %%streamsql; starts nothing."""
        full, line = context.full_text, context.cursor_line
        if line == 0 or not full.startswith(_CELL):
            return {"completions": []}
        before = "".join(part + "\n" for part in full.split("\n")[1:line])
        position = len(before) + context.cursor_position
        body = full.partition("\n")[2]
        found = informing(lambda: self._candidates(body, position), [])
        length = found[0].length if found else 0
        return {
            "completions": [
                SimpleCompletion(c.text, type=c.kind or "sql") for c in found if c.length == length
            ],
            "matched_fragment": body[position - length : position],
            "suppress": True,
            "ordered": True,
        }

    def _candidates(self, text: str, position: int) -> list[Candidate]:
        from streamsql.catalog import Catalog

        if self._connection is None or self._connection.closed:
            return list(complete(text, position, Catalog()))
        session = self._connection.session
        return list(complete(text, position, session.catalog, session.columns, session.query_state))


def _name_of(line: str) -> str:
    """The NAME of -o NAME; "" without it. Raises UsageFault."""
    words = line.split()
    if not words:
        return ""
    if len(words) != 2 or words[0] != "-o" or not words[1].isidentifier():
        raise UsageFault(f"%%streamsql takes -o NAME, not {line}", hint=_USAGE)
    return words[1]


def _watch(live: Live) -> None:
    """Show a result that refreshes in place, until its query ends or the cell is interrupted."""
    shown: Any = None
    before = ""
    try:
        while True:
            status = live.status()
            fault = live.fault() if status.over else None
            page = live_html(live, "" if status.over else "refreshes until the cell is interrupted")
            if shown is None:
                shown = display(HTML(page), display_id=True)
            elif page != before:
                shown.update(HTML(page))
            before = page
            if fault is not None:
                raise fault
            if status.over:
                return
            time.sleep(live.every or EVERY)
    except KeyboardInterrupt:
        shown.update(HTML(live_html(live, "as of the interrupt")))
    finally:
        discard(live)


def _show_error(
    shell: Any, kind: type, error: StreamsqlError, trace: Any, tb_offset: Any = None
) -> list[str]:
    """An error as the console shows it, in place of a traceback; the cell has failed all the same."""
    lines = format_error(error).splitlines()
    shell._showtraceback(kind, error, lines)
    return lines


_FORMATS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (QueryResult, result_html),
    (Explanation, explanation_html),
)


def load_ipython_extension(shell: Any) -> None:
    """%load_ext streamsql."""
    magics = StreamsqlMagics(shell)
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(magics.matcher)
    shell.set_custom_exc((StreamsqlError,), _show_error)
    formatter = shell.display_formatter.formatters["text/html"]
    for kind, shown in _FORMATS:
        formatter.for_type(kind, shown)


def unload_ipython_extension(shell: Any) -> None:
    """%unload_ext streamsql: the connection is closed, its queries in a server go on."""
    magics = shell.magics_manager.registry.pop(StreamsqlMagics.__name__, None)
    for where in ("line", "cell"):
        shell.magics_manager.magics[where].pop("streamsql", None)
    if magics is not None:
        shell.Completer.custom_matchers.remove(magics.matcher)
        magics.close()
    shell.set_custom_exc((), None)
    for kind, _ in _FORMATS:
        shell.display_formatter.formatters["text/html"].pop(kind, None)
