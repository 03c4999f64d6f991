"""The server's side of one client: its calls, statements, streams of rows and live results."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from itertools import chain, islice
from typing import Any

from streamsql.errors import EngineFault, Source, StreamsqlError
from streamsql.guard import internal
from streamsql.language.origin import Origin
from streamsql.language.parser import parse_text
from streamsql.results import ArrowRows, Copied, Live, Result, RowStream, discard
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.server.client_session import ClientSession
from streamsql.server.encoding import LIVE_CALLS, Message, decode, encode_error
from streamsql.server.socket_frames import Disconnected, FrameSocket

NEWS_EVERY = 20.0
"""The seconds after which a call for news is answered without any."""
BLOCKS = 10
"""The blocks of rows that are sent together."""
MOST_CALLS = 64
"""The calls of a client that may run at a time."""


class ClientConnection:
    """Serves a client until it leaves. say: writes a line about a client that broke the protocol."""

    def __init__(self, frames: FrameSocket, session: ClientSession, say: Callable[[str], None]) -> None:
        self.frames = frames
        self.session = session
        self.say = say
        self._tokens: dict[int, CancelToken] = {}
        self._streams: dict[int, queue.Queue[int | None]] = {}
        self._views: dict[int, Live] = {}
        self._calls = threading.Semaphore(MOST_CALLS)
        self._news: queue.Queue[str | None] = queue.Queue()
        self._reporter: Any = None
        self._sent: Any = None
        self._closed = False
        self._at_once: dict[str, Callable[..., Any]] = {
            "cancel": self._cancel, "next": self._next, "close": self._close_stream,
        }  # fmt: skip
        self._on_thread: dict[str, Callable[..., Any]] = {
            "execute": self._execute, "live": self._live, "news": self._take_news, "facts": self._facts,
            "activity": lambda which: session.activity(self._tokens.get(which) or CancelToken()),
            "place": session.place,
            "await": lambda number, token, names: session.await_queries(names, token),
            "silent": lambda names: session.why_silent(names, CancelToken()),
            "failures": session.failures,
            "query_facts": lambda: list(session.query_facts()),
        }  # fmt: skip

    def serve(self) -> None:
        """Answer the calls of the client; returns when it has left."""
        try:
            while not self._closed:
                self._take(*self.frames.receive())
        except Disconnected:
            pass
        except Exception as error:  # whatever values a frame has: its sender must not wait for an answer
            self.say(f"a client is cut off: {error}")
            fault = EngineFault(f"the server could not read a frame: {error}", code="BAD_FRAME")
            with contextlib.suppress(Disconnected, StreamsqlError):
                self.frames.send({"id": 0, "error": encode_error(fault)})
        finally:
            self.close()

    def close(self) -> None:
        """Cancel what the client only reads, and end its views. A statement that changes something ends by
        itself.
        """
        self._closed = True
        self.frames.close()
        if self._reporter is not None:
            self._reporter.close()
        self._news.put(None)
        for token in list(self._tokens.values()):
            token.abandoned = True
            if token.only_reads:
                token.cancel()
        for stream in list(self._streams.values()):
            stream.put(None)
        for view in list(self._views.values()):
            with contextlib.suppress(Exception):
                discard(view)
        self._views.clear()

    # ---- calls ----------------------------------------------------------------------------

    def _take(self, header: dict[str, Any], body: bytes) -> None:
        number, name, arguments = int(header["id"]), header["call"], decode(header["args"], body)
        if name in self._at_once:
            self._at_once[name](number, *arguments)
            return
        act = self._on_thread[name]
        if not self._calls.acquire(blocking=False):
            self._fail(number, EngineFault("too many calls at a time", code="TOO_MANY_CLIENTS"))
            return
        token = CancelToken()
        if name in ("execute", "await"):
            token.only_reads = name == "await" or bool(header.get("reads"))
            self._tokens[number] = token
            arguments = [number, token, *arguments]
        threading.Thread(
            target=self._run, args=(number, act, arguments), daemon=True, name=f"client-{name}"
        ).start()

    def _run(self, number: int, act: Callable[..., Any], arguments: list[Any]) -> None:
        try:
            self._answer(number, act(*arguments))
        except Disconnected:
            pass
        except StreamsqlError as error:
            self._fail(number, error)
        except Exception as error:  # a defect of the server must not leave its client waiting
            self._fail(number, internal(error))
        finally:
            self._tokens.pop(number, None)
            self._calls.release()

    def _answer(self, number: int, value: Any) -> None:
        if value is _ANSWERED:
            return
        message = Message(value)
        self.frames.send({"id": number, "ok": message.value}, message.body)

    def _fail(self, number: int, error: StreamsqlError) -> None:
        with contextlib.suppress(Disconnected, StreamsqlError):
            self.frames.send({"id": number, "error": encode_error(error)})

    # ---- statements -----------------------------------------------------------------------

    def _cancel(self, number: int, which: int) -> None:
        token = self._tokens.get(which)
        if token is not None:
            token.cancel()

    def _execute(
        self,
        number: int,
        token: CancelToken,
        text: str,
        origin: Origin,
        folder: str,
        given: dict[str, str],
    ) -> Any:
        if self.session.ending():
            raise EngineFault(
                "the server is ending", hint="streamsql serve starts it again", code="SERVER_LOST"
            )
        self.session.variables.clear()
        self.session.variables.update(given)
        self.session.set_folder(folder)
        statement = parse_text(Source("", text), origin)
        result = self.session.execute(statement, token)
        if self._closed:
            discard(result)
            return _ANSWERED
        rows = result.rows if isinstance(result, Copied) else result
        if isinstance(rows, RowStream) and not (isinstance(rows, ArrowRows) and rows.complete):
            self._stream(number, result, rows, token)
            return _ANSWERED
        if isinstance(result, Live):
            self._views[number] = result
            if self._closed:  # meanwhile
                self.close()
            return (result, result.keep is not None)
        return (result, False)

    def _stream(self, number: int, result: Result, rows: RowStream, token: CancelToken) -> None:
        """Send the first rows, and a block of the others whenever the client asks for it: on this thread, to
        which the Spark jobs of the statement belong.
        """
        wanted = self._streams[number] = queue.Queue()
        try:
            self._answer(number, (result, False))
            while not self._closed:
                call = wanted.get()
                if call is None:
                    return
                try:
                    block = list(islice(rows.rest, BLOCKS))
                    several = list(chain.from_iterable(block))
                    self._answer(call, type(rows)(first=several) if block else None)
                    if not block:
                        return
                except StreamsqlError as error:
                    self._fail(call, error)
        finally:
            self._streams.pop(number, None)
            rows.close()

    def _next(self, number: int, which: int) -> None:
        stream = self._streams.get(which)
        if stream is None:
            self._answer(number, None)
        else:
            stream.put(number)

    def _close_stream(self, number: int, which: int) -> None:
        stream = self._streams.get(which)
        if stream is not None:
            stream.put(None)

    # ---- live results ---------------------------------------------------------------------

    def _live(self, which: int, name: str, arguments: list[Any]) -> Any:
        """Call a function of a live result."""
        view = self._views.get(which)
        if view is None or name not in LIVE_CALLS:
            raise EngineFault("the live view has ended", code="SERVER_LOST")
        if name in ("take", "changes") and arguments[2] is not None:
            arguments = [*arguments[:2], tuple(arguments[2])]
        try:
            return getattr(view, name)(*arguments)
        finally:
            if name == "said":
                self._views.pop(which, None)

    # ---- beside ---------------------------------------------------------------------------

    def _facts(self, client_has_them: bool) -> Any:
        """(summary, catalog, columns of live tables, states of queries) for the prompt; all but the summary
        are None where the client has them already.
        """
        session = self.session
        catalog = session.catalog
        columns = {name: session.columns(name) for name in catalog.sinks}
        states = {name: session.query_state(name) for name in catalog.queries}
        more = (catalog, columns, states)
        if client_has_them and self._sent == (id(catalog), columns, states):
            return (session.summary(), None, None, None)
        self._sent = (id(catalog), columns, states)
        return (session.summary(), *more)

    def _take_news(self, restarts_only: bool) -> list[str]:
        """Lines about background events; waits for one, but not for ever."""
        if self._reporter is None:
            self._reporter = self.session.news(self._news.put, restarts_only=restarts_only)
        try:
            line = self._news.get(timeout=NEWS_EVERY)
        except queue.Empty:
            return []
        return [] if line is None else [line]


_ANSWERED = object()
"""What a call returns that has sent its answers itself."""
