"""connect(): a session of streamsql for a Python program."""

from __future__ import annotations

import atexit
import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from streamsql.api.opening import Words, opened, read_arguments
from streamsql.api.query_result import QueryResult
from streamsql.api.watched import Watch
from streamsql.cli.command_line import CommandLine
from streamsql.config.preferences import Preferences
from streamsql.errors import Note, RuleFault, Source, StreamsqlError
from streamsql.guard import internal
from streamsql.language.parameters import Values
from streamsql.language.parser import Written, parse, split_script
from streamsql.language.statements.session import SourceFile
from streamsql.language.tokens import quote_name
from streamsql.output.copy_file import copy_to_file
from streamsql.output.error_text import format_error
from streamsql.output.script_runner import included
from streamsql.query_facts import QueryFacts
from streamsql.results import ArrowRows, Copied, Done, Live, Result, Started, Why, discard
from streamsql.runtime.console_session import ConsoleSession
from streamsql.runtime.engine.statement_thread import StatementThread


@dataclass(frozen=True)
class Explanation:
    """Why there are no rows. verdict: one sentence; code: of the verdict; facts: the evidence, as property
    and value; proposal: statements that resolve it, "" when there is nothing to do.
    """

    verdict: str
    code: str
    facts: tuple[tuple[str, str], ...]
    proposal: str

    def __str__(self) -> str:
        return self.verdict


def connect(
    workspace: str | os.PathLike[str] | None = None,
    *,
    read_only: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    config: bool = True,
    spark: Any = None,
) -> Connection:
    """A connection to a workspace: to its server where one runs (streamsql serve, or a console after DETACH),
    else the session runs in this process, with Spark, until the connection is closed.

    workspace: its folder, which is created if it is missing; None for a temporary one, which is gone at the
    end. read_only: nothing is changed, also while another process holds the workspace. master, conf: of
    Spark, where it is started here. variables: the values of ${name}. config: whether the config file of the
    console is read. spark: a SparkSession of this process that runs already; it is not ended. Raises Error
    when the workspace cannot be opened: UsageFault with the code WORKSPACE_IN_USE while another process that
    is no server holds it.
    """
    preferences = Preferences()
    with _placed_errors():
        line = read_arguments(
            workspace,
            preferences,
            read_only=read_only,
            master=master,
            conf=conf or {},
            variables=variables or {},
            config=config,
        )
        return Connection(line, Words(preferences), spark)


class Connection:
    """A session. Threads may share it. All methods raise Error (streamsql.Error): with code, place (line,
    column), detail and hint. Ctrl-C cancels the statement that is waited for, never a query in the
    background.
    """

    def __init__(self, line: CommandLine, words: Words, spark: Any) -> None:
        """Use streamsql.connect."""
        self._words = words
        self._stack = ExitStack()
        self._session = self._stack.enter_context(opened(line, words, spark))
        self._closed = False
        self._left = deque[Live]()
        atexit.register(self._leave)

    @property
    def notes(self) -> list[str]:
        """What was told about the workspace and the queries in the background; the newest is the last."""
        return list(self._words.said)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    # ---- statements -----------------------------------------------------------------------

    def sql(self, text: str, parameters: Values = ()) -> QueryResult:
        """Execute statements, up to the first error. Returns the result of the last one, with the notes of
        all.

        A SELECT over a stream gives the rows of the input that is there now, as in a script; `watch` follows
        a result. parameters: the values of ? in their order (of one statement), or a dict of those of :name.
        Raises Error.
        """
        result = self.run(text, parameters, watches=False)
        assert isinstance(result, QueryResult)
        return result

    def run(self, text: str, parameters: Values = (), *, watches: bool = True) -> QueryResult | Live:
        """For the console's own features: the same, and the result of a WATCH, which refreshes. watches:
        False refuses it. Raises Error.
        """
        source = Source("sql", text)
        with _placed_errors(source):
            self._check_open()
            statements = split_script(source)
            if not isinstance(parameters, Mapping) and parameters and len(statements) != 1:
                raise RuleFault(
                    "values of ? are for one statement", hint="use :name and a dict", code="WRONG_PARAMETERS"
                )
            result, thread, notes = self._run_all(statements, parameters, [], watches=watches)
            if isinstance(result, Live):
                thread.close()
                return result
            return self._result(result, thread, notes)

    @property
    def session(self) -> ConsoleSession:
        """For the console's own features: the session behind the connection."""
        return self._session

    def table(self, name: str) -> QueryResult:
        """The rows of a live table as of one micro-batch: its number is `batch`, and `version` grows with
        each. Spark has to do nothing for it. `arrow()` and `df()` give the rows. Raises Error.
        """
        with self._live(f"WATCH {quote_name(name)}") as (live, thread):
            rows = thread.run(live.arrow)
            thread.run(lambda: discard(live))
            return self._result(rows, thread, live.notes)

    def watch(self, table: str | None = None, *, query: str = "") -> Watch:
        """The changes of a live table as they come: an iterator, also for `async for`. query: instead, those
        of the result of a SELECT over live tables, which is computed again when one of them changes. Raises
        Error.
        """
        what = quote_name(table) if table is not None else f"({query})"
        with self._live(f"WATCH {what} AS CHANGES") as (live, thread):
            thread.close()
            return Watch(live, self._left)

    def why(self, name: str | None = None) -> Explanation:
        """Why a query, live table or stream gives no rows; None for the query that was started last. Raises
        Error.
        """
        source = Source("why", f"WHY {quote_name(name)}" if name else "WHY")
        with _placed_errors(source):
            self._check_open()
            result, thread, _ = self._run_all(split_script(source), (), [])
            thread.close()
            assert isinstance(result, Why)
            facts = tuple((str(row[0]), str(row[1])) for row in result.rows)
            return Explanation(result.verdict, result.code, facts, result.proposal)

    def queries(self) -> list[QueryFacts]:
        """What each query is and does now, as SHOW QUERIES shows it: query (its name), status, account (rows
        read, out, late, malformed, …), batch, rows_per_second, watermark, error and hint. Raises Error.
        """
        with _placed_errors():
            self._check_open()
            return list(self._session.query_facts())

    # ---- how ------------------------------------------------------------------------------

    @contextmanager
    def _live(self, text: str) -> Iterator[tuple[Live, StatementThread]]:
        """The result of a WATCH, and the thread of its statement."""
        source = Source("watch", text)
        with _placed_errors(source):
            self._check_open()
            result, thread, _ = self._run_all(split_script(source), (), [], watches=True)
            assert isinstance(result, Live)
            yield result, thread

    def _run_all(
        self, statements: list[Written], parameters: Values, opened_files: list[str], *, watches: bool = False
    ) -> tuple[Result, StatementThread, tuple[Note, ...]]:
        """(the result of the last statement, its thread, the notes of all). opened_files: the scripts that
        include these statements.
        """
        result, thread, notes = Result(), StatementThread(), tuple[Note, ...]()
        for written in statements:
            thread.run(partial(discard, result))
            thread.close()
            thread = StatementThread()
            folder = Path(written.source.name).parent if Path(written.source.name).is_file() else Path.cwd()
            self._session.set_folder(str(folder))
            statement = parse(
                written,
                self._session.variables,
                translation=self._session.translation,
                parameters=parameters,
            )
            if isinstance(statement, SourceFile):
                source = included(statement, written, opened_files)
                inner = [*opened_files, written.source.name]
                result, thread, more = self._run_all(split_script(source), parameters, inner)
                notes += more
                continue
            thread.cancel.only_reads = statement.read_only and not statement.changes_workspace
            try:
                result = thread.run(self._session.execute, statement, thread.cancel)
                if isinstance(result, Started):
                    self._session.place(result, written.source, written.span)
                result = _finished(result, thread, watches=watches)
            except StreamsqlError as error:
                thread.close()
                raise error.at(written.source, written.span) from error.__cause__
            notes += result.notes
        return result, thread, notes

    def _result(self, result: Result, thread: StatementThread, notes: tuple[Note, ...]) -> QueryResult:
        def more(rest: Iterator[Any]) -> Any:
            with _placed_errors():
                return thread.run(next, rest, None)

        def close() -> None:
            if isinstance(result, ArrowRows) and not self._closed:
                thread.run(result.close)
            thread.close()
            closed.append(True)

        closed: list[bool] = []
        return QueryResult(result, notes, more, lambda: None if closed else close())

    def _check_open(self) -> None:
        """Raise RuleFault for a connection that is closed. Ends what was left open."""
        while self._left:
            discard(self._left.popleft())
        if self._closed:
            raise RuleFault("the connection is closed", hint="streamsql.connect()", code="CONNECTION_CLOSED")

    # ---- the end --------------------------------------------------------------------------

    def close(self) -> None:
        """Leave the server, where queries go on; a session in this process ends after the current
        micro-batches of its queries. May be called again.
        """
        if not self._closed:
            self._closed = True
            atexit.unregister(self._leave)
            self._stack.close()

    def _leave(self) -> None:
        """The program ends without `close`: so does Spark. Micro-batches that are under way are repeated when
        their queries are resumed.
        """
        self._closed = True
        self._session.kill()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _finished(result: Result, thread: StatementThread, *, watches: bool) -> Result:
    """A result whose file is written. Raises RuleFault for one that refreshes, unless `watches`."""
    if isinstance(result, Copied):
        return Done(result.notes, thread.run(copy_to_file, result, thread.cancel.check))
    if isinstance(result, Live) and not watches:
        thread.run(partial(discard, result))
        raise RuleFault(
            "sql() has no result that refreshes",
            hint="watch('name') gives the changes of a live table, table('name') its rows now",
            code="CLAUSE_NOT_SUPPORTED",
        )
    return result


@contextmanager
def _placed_errors(source: Source | None = None) -> Iterator[None]:
    """Give an error its place, and the text of the console as a note of the traceback."""
    try:
        yield
    except StreamsqlError as error:
        raise _noted(error if source is None else error.at(source)) from error.__cause__
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except Exception as error:
        raise _noted(internal(error)) from error


def _noted(error: StreamsqlError) -> StreamsqlError:
    more = format_error(error).partition(error.message)[2].strip("\n")
    if more and more not in getattr(error, "__notes__", ()):
        error.add_note(more)
    return error
