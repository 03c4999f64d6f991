"""Listens for messages that programs send with POST."""

from __future__ import annotations

import hmac
import threading
import zlib
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streamsql.cli.addresses import shown_address
from streamsql.errors import reason_of
from streamsql.features.receivers.payloads import payloads_of
from streamsql.features.receivers.spool import Message, Spool
from streamsql.guard import log


@dataclass(frozen=True)
class Target:
    """Where the messages for a path go. token: "" for none; most: the largest body, in bytes."""

    stream: str
    form: str
    spool: Spool
    token: str
    most: int


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HttpListener:
    """A server at an address, on a thread of its own. targets: by the path of the URL; they may change while
    it runs. certificate, key: the files of TLS, "" without. Raises OSError when they cannot be used.
    """

    def __init__(self, address: tuple[str, int], listener: Any, certificate: str = "", key: str = "") -> None:
        self.targets: dict[str, Target] = {}
        self.address = address
        self.tls = (certificate, key)
        methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        app = Starlette(routes=[Route("/{path:path}", self._answer, methods=methods)])
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", server_header=False,
            ssl_certfile=certificate or None, ssl_keyfile=key or None,
        )  # fmt: skip
        try:
            config.load()
        except BaseException:
            listener.close()
            raise
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), daemon=True, name=f"http {shown_address(*address)}"
        )
        self._thread.start()

    def url(self, path: str) -> str:
        """The URL of a path."""
        return f"{'https' if self.tls[0] else 'http'}://{shown_address(*self.address)}{path}"

    def close(self) -> None:
        """Answer the requests that are under way, and end."""
        self._server.should_exit = True
        self._thread.join(5)

    async def _answer(self, request: Request) -> Response:
        try:
            return JSONResponse({"received": await self._take(request)})
        except Refused as refused:
            headers = {405: {"Allow": "POST"}, 401: {"WWW-Authenticate": "Bearer"}}.get(refused.status)
            return JSONResponse({"error": str(refused)}, refused.status, headers)

    async def _take(self, request: Request) -> int:
        """Write the messages of a request. Returns their number. Raises Refused."""
        target = self.targets.get(request.url.path)
        if target is None:
            raise Refused(404, f"no stream receives at {request.url.path}")
        given = request.headers.get("authorization", "")
        if target.token and not hmac.compare_digest(given.encode(), f"Bearer {target.token}".encode()):
            raise Refused(401, "the token is wrong or missing: Authorization: Bearer …")
        if request.method != "POST":
            raise Refused(405, "messages are sent with POST")
        try:
            messages = payloads_of(await _body(request, target.most), target.form)
        except ValueError as error:
            raise Refused(400, f"the body cannot be read as {target.form}: {error}") from None
        if not messages:
            raise Refused(400, "the body has no message")
        try:
            await run_in_threadpool(target.spool.append, [Message(message) for message in messages])
        except Exception as error:
            log(error, f"messages for {target.stream} are refused")
            raise Refused(503, f"the messages cannot be stored: {reason_of(error)}") from None
        return len(messages)


async def _body(request: Request, most: int) -> bytes:
    """The body of a request, unpacked. Raises Refused."""
    encoding = request.headers.get("content-encoding", "identity").strip().casefold()
    if encoding not in ("identity", "gzip"):
        raise Refused(415, f"Content-Encoding {encoding} is not supported: gzip is")
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding == "gzip" else None
    body = bytearray()
    try:
        async for part in request.stream():
            body += part if unpacking is None else unpacking.decompress(part, most + 1 - len(body))
            if len(body) > most:
                raise Refused(413, f"the body has more than {most} bytes (option maxBodyBytes)")
    except zlib.error:
        raise Refused(400, "the body is not in the format of gzip") from None
    except ClientDisconnect:
        raise Refused(400, "the body is not complete") from None
    if unpacking is not None and not unpacking.eof:
        raise Refused(400, "the body ends before its gzip data does")
    return bytes(body)
