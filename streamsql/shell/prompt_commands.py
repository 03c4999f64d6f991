"""Commands of the prompt that no statement corresponds to: \\!, \\o, \\watch SECONDS and \\errverbose."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TextIO, cast

from streamsql.catalog import Catalog
from streamsql.errors import Cancelled, InputFault, Source, StreamsqlError, reason_of
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.select import Select
from streamsql.language.tokens import quote, substitute
from streamsql.output.error_text import format_error
from streamsql.output.printer import Printer
from streamsql.output.row_formats import RAW
from streamsql.results import counted
from streamsql.runtime.console_session import ConsoleSession
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.secrets import redact_text
from streamsql.shell.bare_terminal import echo
from streamsql.text_files import format_of, open_text


def run_in_shell(command: str) -> None:
    """Run a command in the user's shell; without one, the shell itself."""
    with echo():
        code = subprocess.call(command or os.environ.get("SHELL", "/bin/sh"), shell=True)
    if code in (-signal.SIGINT, 128 + signal.SIGINT):
        print(flush=True)  # the terminal has written ^C, without the end of a line


def described(statement: str, catalog: Catalog) -> str:
    """DESCRIBE TABLE [EXTENDED] name of \\d, and SHOW CREATE TABLE name of .schema, as the statement for what
    has that name; any other statement as it is.
    """
    head, _, name = statement.removesuffix(";").partition(" TABLE ")
    if head not in ("DESCRIBE", "SHOW CREATE") or not name:
        return statement
    name = name.removeprefix("EXTENDED ")
    key = name.strip('`"').casefold()
    sink = catalog.sinks.get(key)
    if key in catalog.streams:
        return f"{head} STREAM {name};"
    if sink is not None:
        return f"{head} {'LIVE TABLE' if sink.is_live else 'SINK'} {name};"
    return f"{head} QUERY {name};" if key in catalog.queries and head == "DESCRIBE" else statement


def connection(session: ConsoleSession) -> str:
    """Where statements run, as \\conninfo of psql says it."""
    facts = session.summary()
    place = f"in the {facts.server}" if facts.server else f"in this process, {facts.spark}"
    return (
        f"statements run {place}; Spark {version('pyspark')}\n"
        f"{counted(facts.running, 'query')} running; SHOW QUERIES; lists them, SET; the settings"
    )


def echoed(text: str, variables: dict[str, str]) -> str:
    """A text as \\echo prints it: without the quotes around its words, and with the values of variables,
    ${name} or :name. Raises NameFault.
    """
    whole, _ = substitute(Source("sql", text), variables)
    values = {sign + name + sign: value for name, value in variables.items() for sign in ("", "'", '"')}
    part = re.compile(r"'(?P<text>(?:[^']|'')*)'|(?<![\w:]):(?P<name>\w+|'\w+'|\"\w+\")")

    def shown(match: re.Match[str]) -> str:
        if match["text"] is not None:
            return match["text"].replace("''", "'")
        return values.get(match["name"], match[0])

    return part.sub(shown, whole)


_NO_TEXT = ("parquet", "xlsx", "xls")


def check_text_file(path: str, last: str) -> None:
    """Raise InputFault for a file whose format is none of text, with the COPY that writes it. last: the last
    text that was typed.
    """
    format = "" if path.startswith("|") else format_of(path)
    if format not in _NO_TEXT:
        return
    own = path if format == "parquet" else f"{path.rpartition('.')[0]}.csv"
    raise InputFault(
        f"rows go into a file as text, not as {format}",
        detail="" if format == "parquet" else "spreadsheet programs open csv files",
        proposal=f"COPY ({_query_of(last) or 'SELECT …'}) TO {quote(own)};",
        code="UNKNOWN_FORMAT",
    )


def _query_of(text: str) -> str:
    """The query that a text is; "" if it is none, or several statements."""
    try:
        [written] = split_script(Source("sql", text))
        return written.text if isinstance(parse(written, literal=True), Select) else ""
    except (StreamsqlError, ValueError):
        return ""


def printer_to(path: str, like: Printer) -> Printer:
    """A printer that writes rows to a new file, or `|` a command of the shell, and all else where another
    does. Raises InputFault.
    """
    file: TextIO
    try:
        if path.startswith("|"):
            file = cast(TextIO, os.popen(path[1:], "w"))
        else:
            file = open_text(Path(path).expanduser(), "w")
    except OSError as error:
        raise InputFault(f"cannot write {path}: {reason_of(error)}", code="FILE_NOT_WRITTEN") from None
    printer = Printer.beside(like)
    printer.file, printer.width = file, lambda: 0
    format = "" if path.startswith("|") else format_of(path)
    printer.file_format = format if format in RAW else ""
    printer.present, printer.offer = like.present, like.offer
    return printer


def repeat(act: Callable[[], bool], seconds: float, times: int, cancel: CancelToken) -> bool:
    """Call a function again and again, at most so many times (0: no limit), until it returns False or the
    token is set. Returns True.
    """
    with suppress(Cancelled):
        while act() and times != 1:
            times -= 1
            cancel.wait(seconds)
    return True


def in_full(error: StreamsqlError) -> str:
    """An error with its code, SQLSTATE and the whole message of Spark."""
    return "\n".join([format_error(error, 0), *_more(error)])


_SQLSTATE = re.compile(r"SQLSTATE: (\w+)")


_FRAMES = re.compile(
    r"Traceback \(most recent call last\):\n|^ +File \".*\n(^ {4}.*\n)*"
    r"|^\s+at [\w.$/]+\(.*\n?|^\s+\.{3} \d+ more\n?",
    re.MULTILINE,
)
"""The frames of the stacks of Python and Java in the text of an exception."""


def _more(error: StreamsqlError) -> Iterator[str]:
    yield f"code: {error.code}"
    cause: BaseException | None = error.__cause__ or error.__context__
    written = _SQLSTATE.search(str(cause))
    state = getattr(cause, "getSqlState", lambda: None)() or (written[1] if written else "")
    if state:
        yield f"SQLSTATE: {state}"
    if cause is not None:
        yield redact_text(f"cause: {type(cause).__name__}: {_FRAMES.sub('', str(cause))}")
