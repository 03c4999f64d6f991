"""Connections of the console to servers that send messages: server-sent events and WebSocket."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from streamsql.errors import reason_of
from streamsql.features.receivers.payloads import JSON_FORMATS, payloads_of
from streamsql.features.receivers.spool import Message, Spool
from streamsql.guard import log

_MOST_WAITING = 10_000
"""Messages in memory, before the connection has to wait for the disk."""
FIRST_DELAY = 1.0
"""The seconds until a broken connection is made again; each further attempt waits twice as long."""
_LONGEST_DELAY = 60.0
_SILENCE = 300.0
"""Seconds without anything after which a connection of server-sent events is made again."""


class Ended(Exception):
    """The server ends the connection, or does not accept it."""


class Connection:
    """A connection that is made again whenever it breaks, on a thread of its own. fault: why there is none
    at the moment, "" while there is one; since: the time of the last change, in seconds since 1970;
    unwritten: why what has come in is not on the disk, "" if it is.
    """

    def __init__(self, stream: str, url: str, form: str, spool: Spool, token: str = "") -> None:
        self.stream, self.url, self.form, self.spool, self.token = stream, url, form, spool, token
        self.fault, self.since, self.unwritten = "not connected yet", time.time(), ""
        self._loop = asyncio.new_event_loop()
        self._work = self._loop.create_task(self._run())
        self._thread = threading.Thread(target=self._serve, daemon=True, name=f"receiver {stream}")
        self._thread.start()

    @property
    def headers(self) -> dict[str, str]:
        """The headers that log in."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def messages(self) -> AsyncGenerator[Message]:
        """What the server sends over one connection; `connected` is called once it stands."""
        raise NotImplementedError

    def connected(self) -> None:
        """Take note that there is a connection."""
        self.fault, self.since = "", time.time()

    def close(self) -> None:
        """End the connection; what has come in is on the disk."""
        for _ in range(2):  # the first lets it write what has come in
            if self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._work.cancel)
                self._thread.join(5)

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._work)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _run(self) -> None:
        delay = FIRST_DELAY
        while True:
            try:
                await self._receive()
                fault = "the server has ended the connection"
            except Exception as error:
                fault = str(error) if isinstance(error, Ended) else _reason(error)
                if fault != self.fault:
                    log(error, f"the connection of the stream {self.stream} is made again")
            delay = FIRST_DELAY if not self.fault else min(delay * 2, _LONGEST_DELAY)
            self.fault, self.since = fault, time.time()
            await asyncio.sleep(delay)

    async def _receive(self) -> None:
        """Write what one connection brings. While the disk is busy, what comes in is collected."""
        waiting: asyncio.Queue[Message | None] = asyncio.Queue(_MOST_WAITING)
        writing = asyncio.create_task(self._write(waiting))
        try:
            async with aclosing(self.messages()) as messages:
                async for message in messages:
                    await waiting.put(message)
        finally:
            await waiting.put(None)
            await writing

    async def _write(self, waiting: asyncio.Queue[Message | None]) -> None:
        while True:
            batch = [await waiting.get()]
            while not waiting.empty():
                batch.append(waiting.get_nowait())
            messages = [part for message in batch if message is not None for part in self._parts(message)]
            await self._store(messages)
            if batch[-1] is None:
                return

    async def _store(self, messages: list[Message]) -> None:
        """Write messages, again and again if the disk is full: the connection waits meanwhile."""
        delay = FIRST_DELAY
        while messages:
            try:
                await asyncio.to_thread(self.spool.append, messages)
                self.unwritten = ""
                return
            except Exception as error:
                if not self.unwritten:
                    log(error, f"messages for {self.stream} wait until they can be written")
                self.unwritten = f"{len(messages)} messages cannot be written: {reason_of(error)}"
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY)

    def _parts(self, message: Message) -> list[Message]:
        """The messages in one of JSON, which may be an array. What is no JSON stays: ON MALFORMED decides."""
        if self.form not in JSON_FORMATS:
            return [message]
        try:
            return [
                Message(text, message.event, message.id) for text in payloads_of(message.value, self.form)
            ]
        except ValueError:
            return [message]


class EventConnection(Connection):
    """Server-sent events. After a break the server is asked for what follows the last event on the disk."""

    async def messages(self) -> AsyncGenerator[Message]:
        import httpx
        from httpx_sse import aconnect_sse

        last = await asyncio.to_thread(self.spool.last_id)
        headers = self.headers | ({"Last-Event-ID": last} if last else {})
        timeout = httpx.Timeout(10.0, read=_SILENCE)
        async with (
            httpx.AsyncClient(timeout=timeout, follow_redirects=True) as client,
            aconnect_sse(client, "GET", self.url, headers=headers) as source,
        ):
            kind = source.response.headers.get("content-type", "")
            if source.response.status_code != 200:
                raise Ended(f"the server answers {source.response.status_code}")
            if "text/event-stream" not in kind:
                raise Ended(f"the server sends no events but {kind or 'something else'}")
            self.connected()
            async for event in source.aiter_sse():
                yield Message(event.data.encode(), event.event, event.id or None)


class WebSocketConnection(Connection):
    """Messages of a WebSocket server. subscribe: what is sent to it first, "" for nothing."""

    def __init__(
        self, stream: str, url: str, form: str, spool: Spool, token: str = "", subscribe: str = ""
    ) -> None:
        self.subscribe = subscribe
        super().__init__(stream, url, form, spool, token)

    async def messages(self) -> AsyncGenerator[Message]:
        from websockets.asyncio.client import connect

        async with connect(self.url, additional_headers=self.headers, max_size=16 << 20) as socket:
            if self.subscribe:
                await socket.send(self.subscribe)
            self.connected()
            async for message in socket:
                yield Message(message.encode() if isinstance(message, str) else message)


def _reason(error: Exception) -> str:
    """The cause of a broken connection in a line."""
    from websockets.exceptions import InvalidStatus

    if isinstance(error, InvalidStatus):
        return f"the server answers {error.response.status_code}"
    cause = error.__cause__ or error.__context__
    if isinstance(error, OSError) or not isinstance(cause, OSError):
        return reason_of(error)
    return reason_of(cause)
