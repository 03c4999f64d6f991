"""The web application: one page, and what it asks for. It only reads."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamsql.config.preferences import Preferences
from streamsql.errors import Source, StreamsqlError
from streamsql.feature_registry import extensions
from streamsql.guard import internal
from streamsql.language.parser import parse_text
from streamsql.language.tokens import quote_name
from streamsql.output.cells import text
from streamsql.output.error_text import format_error
from streamsql.results import InfoRows, Live, Result, Rows, Why, discard
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.parts import SessionParts
from streamsql.server.client_session import ClientSession

PAGE = Path(__file__).with_name("page.html")
EVERY = 1.0
"""The seconds between two looks at the queries; all pages share one."""
LIVE_EVERY = 0.5
"""The same for a live table."""
MOST_ROWS = 1_000
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def application(parts: SessionParts, token: str) -> Starlette:
    """The application for the session of these parts. Each request needs the token, as the parameter `token`
    or as the cookie that the page then has.
    """
    watched = Watched(parts)
    cookie = f"streamsql_{hashlib.sha256(token.encode()).hexdigest()[:8]}"  # one for each server of a host

    async def page(request: Request) -> Response:
        if "token" in request.query_params:  # it stays in no history
            answer = RedirectResponse("/", 303)
            answer.set_cookie(cookie, token, httponly=True, samesite="strict")
            return answer
        return FileResponse(PAGE, media_type="text/html")

    async def state(request: Request) -> Response:
        return _events(partial(watched.state), EVERY)

    async def table(request: Request) -> Response:
        limit = min(MOST_ROWS, max(1, int(request.query_params.get("rows", "200"))))
        view = await run_in_threadpool(watched.table, request.path_params["name"], limit)
        return _events(view.event, LIVE_EVERY, view.close)

    async def why(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(watched.why, request.path_params["name"]))

    async def fault(request: Request, error: Exception) -> Response:
        shown = error if isinstance(error, StreamsqlError) else internal(error)
        return JSONResponse({"error": format_error(shown)}, 400)

    routes = [
        Route("/", page),
        Route("/state", state),
        Route("/table/{name:path}", table),
        Route("/why/{name:path}", why),
    ]
    handlers: dict[Any, Any] = {Exception: fault, StreamsqlError: fault, ValueError: fault}
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guarded, token=token, cookie=cookie)],
        exception_handlers=handlers,
    )


class Guarded:
    """Refuses who has no token, and sets the headers of all answers."""

    def __init__(self, app: ASGIApp, token: str, cookie: str) -> None:
        self.app, self.token, self.cookie = app, token, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        given = request.query_params.get("token") or request.cookies.get(self.cookie, "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            words = "the token is wrong or missing: open the address that streamsql has printed\n"
            await PlainTextResponse(words, 403, _HEADERS)(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self.app(scope, receive, answer)


def _events(event: Callable[[], str], every: float, close: Callable[[], None] = lambda: None) -> Response:
    """Server-sent events: what `event` returns, when it is another text. close: when the reader has left."""

    async def changes() -> AsyncIterator[str]:
        before, since = "", time.monotonic()
        try:
            while True:
                now = await run_in_threadpool(event)
                if now != before:
                    before, since = now, time.monotonic()
                    yield f"data: {now}\n\n"
                elif time.monotonic() - since > 15:  # a proxy may end a connection that is silent
                    since = time.monotonic()
                    yield ": still there\n\n"
                await asyncio.sleep(every)
        finally:
            close()

    return StreamingResponse(changes(), media_type="text/event-stream")


_FACTS = ("columns", "numeric", "total", "first", "version", "batch")


@dataclass
class LiveView:
    """A live table that a page shows."""

    live: Live
    rows: int
    _sent: tuple[int, str] = (-1, "")

    def event(self) -> str:
        """The rows as JSON: columns, numeric, rows (texts; null), total, first, version and batch."""
        snapshot = self.live.take(self.rows, None, None)
        if snapshot.version != self._sent[0] or not self._sent[1]:
            rows = [[None if value is None else text(value) for value in row] for row in snapshot.rows]
            facts = {name: getattr(snapshot, name) for name in _FACTS}
            self._sent = snapshot.version, json.dumps(facts | {"rows": rows})
        return self._sent[1]

    def close(self) -> None:
        discard(self.live)


@dataclass
class Watched:
    """What pages show of a session. Statements run in a session that only reads."""

    parts: SessionParts
    _state: tuple[float, str] = (0.0, "")
    _graph: tuple[Any, Any] = (None, None)
    """A catalog, which never changes, and its graph."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _run(self, statement: str) -> Result:
        """Raises StreamsqlError."""
        session = ClientSession(self.parts, interactive=False, read_only=True, preferences=Preferences())
        return session.execute(parse_text(Source("web", statement)), CancelToken())

    def state(self) -> str:
        """Queries, live tables and graph as JSON."""
        with self._lock:
            if time.monotonic() - self._state[0] > EVERY / 2:
                self._state = time.monotonic(), json.dumps(self._now())
            return self._state[1]

    def _now(self) -> dict[str, Any]:
        queries = self._run("SHOW QUERIES")
        assert isinstance(queries, (Rows, InfoRows))
        catalog = self.parts.catalog
        graph_of = next(extensions("graph"), None)
        if graph_of is not None and self._graph[0] is not catalog:
            self._graph = catalog, graph_of(catalog)
        graph, status = self._graph[1], {row[0]: row[1] for row in queries.rows}
        nodes = graph.nodes.values() if graph else ()
        return {
            "columns": queries.columns,
            "queries": [[None if value is None else text(value) for value in row] for row in queries.rows],
            "tables": [table.name for table in catalog.live_tables()],
            "nodes": [vars(node) | {"status": status.get(node.name, "")} for node in nodes],
            "edges": [vars(edge) for edge in graph.edges] if graph else [],
        }

    def table(self, name: str, rows: int) -> LiveView:
        """A live table, for at most so many rows. Raises StreamsqlError."""
        live = self._run(f"WATCH {quote_name(name)}")
        assert isinstance(live, Live)
        return LiveView(live, rows)

    def why(self, name: str) -> dict[str, Any]:
        """What WHY says of a query. Raises StreamsqlError."""
        said = self._run(f"WHY QUERY {quote_name(name)}")
        assert isinstance(said, Why)
        facts = [[text(value) for value in row] for row in said.rows]
        return {"verdict": said.verdict, "code": said.code, "facts": facts, "proposal": said.proposal}
