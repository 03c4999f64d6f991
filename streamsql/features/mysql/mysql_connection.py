"""One connection: mysql-mimic's, with what it lacks. It goes on after a wrong password, keeps all rows of a
result in memory, knows no parameter that is a date or a DECIMAL, and does not see that a client has gone.
"""

from __future__ import annotations

import asyncio
import io
import struct
from collections.abc import Callable
from contextlib import aclosing, suppress
from ssl import SSLContext
from typing import Any

from mysql_mimic import packets, types
from mysql_mimic.auth import IdentityProvider, NativePasswordAuthPlugin, User
from mysql_mimic.connection import Connection
from mysql_mimic.constants import DEFAULT_SERVER_CAPABILITIES, KillKind
from mysql_mimic.control import LocalControl
from mysql_mimic.errors import ErrorCode, MysqlError, get_sqlstate
from mysql_mimic.stream import ConnectionClosed, MysqlStream
from mysql_mimic.types import Capabilities, ServerStatus

from streamsql.errors import StreamsqlError, SyntaxFault
from streamsql.features.mysql.mysql_client import Answer, DoorSession
from streamsql.features.mysql.mysql_parameters import Prepared, parameters
from streamsql.guard import internal, log
from streamsql.language.parameters import number_of_parameters
from streamsql.output.error_text import format_error
from streamsql.runtime.parts import SessionParts

LOGIN = 10.0
"""The seconds that a client has to log in."""
WRONG_PASSWORD = 0.5
"""The seconds after which a wrong password is refused."""
BEFORE_LOGIN, FULL, MOST = 1 << 16, 0xFFFFFF, 4
"""The longest packet before the login; the longest frame; the frames of the longest packet."""
MOST_CLIENTS = 100
GONE = (ConnectionClosed, ConnectionError, asyncio.IncompleteReadError, TimeoutError)
ABILITIES = (
    DEFAULT_SERVER_CAPABILITIES & ~Capabilities.CLIENT_QUERY_ATTRIBUTES | Capabilities.CLIENT_TRANSACTIONS
)
_NUMBERS = {
    "PARSE_SYNTAX_ERROR": (1064, "42000"),
    "SYNTAX_ERROR": (1064, "42000"),
    "TABLE_OR_VIEW_NOT_FOUND": (1146, "42S02"),
    "UNRESOLVED_COLUMN.WITH_SUGGESTION": (1054, "42S22"),
    "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION": (1054, "42S22"),
    "SCHEMA_NOT_FOUND": (1049, "42000"),
    "READ_ONLY": (1290, "HY000"),
    "CLAUSE_NOT_SUPPORTED": (1235, "42000"),
    "WRONG_PARAMETERS": (1210, "HY000"),
    "CANCELLED": (1317, "70100"),
}
"""From our codes to MySQL's numbers and states, which drivers act on."""
_OTHER = (1105, "HY000")


class ClientReader(asyncio.StreamReader):
    """Reads the frames of a client. gone: is called when it has closed the connection."""

    gone: Callable[[], None] | None = None
    logged_in = False
    _full = 0

    async def read(self, n: int = -1) -> bytes:
        """The head of a frame, whole; b"" at the end. Raises MysqlError for a packet that is too long."""
        try:
            head = await self.readexactly(n)
        except asyncio.IncompleteReadError:
            return b""
        length = int.from_bytes(head[:3], "little")
        self._full = self._full + 1 if length == FULL else 0
        if self._full > MOST or (length > BEFORE_LOGIN and not self.logged_in):
            raise MysqlError("the packet is too long", ErrorCode.MALFORMED_PACKET)
        return head

    async def received(self) -> bytes:
        """What was received and not read."""
        try:
            async with asyncio.timeout(0):
                return await super().read(BEFORE_LOGIN)
        except TimeoutError:
            return b""

    def feed_eof(self) -> None:
        """See asyncio."""
        super().feed_eof()
        if self.gone is not None:
            self.gone()


class DoorStream:
    """The frames of a client: mysql-mimic's, whose compiled class cannot be extended."""

    def __init__(self, stream: MysqlStream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def start_tls(self, ssl: SSLContext) -> None:
        """Go on with TLS. A client may begin it at once: what came with its request is TLS, which asyncio
        would lose it.
        """
        loop, transport = asyncio.get_running_loop(), self.writer.transport
        transport.pause_reading()
        ahead = await self.reader.received()
        handshake = loop.create_task(self._stream.start_tls(ssl))
        await asyncio.sleep(0)  # it has set the protocol, and will start it before what is called next
        if ahead:
            loop.call_soon(_feed, transport.get_protocol(), ahead)
        await handshake


def _feed(protocol: asyncio.BufferedProtocol, data: bytes) -> None:
    memoryview(protocol.get_buffer(len(data)))[: len(data)] = data
    protocol.buffer_updated(len(data))


class DoorConnection(Connection):
    """A connection of the door."""

    session: DoorSession

    async def connection_phase(self) -> None:
        """The login, within LOGIN seconds. Raises ConnectionClosed for one that is refused."""
        async with asyncio.timeout(LOGIN):
            await super().connection_phase()
        self.stream.reader.logged_in = True

    async def authenticate(self, *arguments: Any, **named: Any) -> None:
        """mysql-mimic's, but a client that is refused is cut off."""
        if self.ssl is not None and self.stream.writer.get_extra_info("ssl_object") is None:
            await self._refuse(
                MysqlError("this door takes TLS connections only", ErrorCode.ACCESS_DENIED_ERROR)
            )
        self.session.username = None
        await super().authenticate(*arguments, **named)
        if self.session.username is None:
            await asyncio.sleep(WRONG_PASSWORD)
            await self._refuse(None)

    async def _refuse(self, error: Exception | None) -> None:
        if error is not None:
            await self.stream.write(self.error(msg=error))
        self.stream.writer.close()
        raise ConnectionClosed

    def kill(self, kind: KillKind = KillKind.CONNECTION) -> None:
        """KILL of another connection, or this one."""
        self.session.cancel()
        if kind is KillKind.CONNECTION:
            super().kill(kind)

    def error(self, *, msg: Any, code: int = ErrorCode.UNKNOWN_ERROR) -> bytes:
        """The packet of an error. msg: the exception, or the text of one that MySQL itself has."""
        if isinstance(msg, MysqlError):
            msg, code = msg.msg, msg.code
        if isinstance(msg, TimeoutError):
            msg = f"the login took longer than {LOGIN:.0f} s"
        if isinstance(msg, (struct.error, IndexError, *GONE)):
            msg, code = "the packet cannot be read", ErrorCode.MALFORMED_PACKET
        state = get_sqlstate(ErrorCode(code)).decode() if not isinstance(msg, Exception) else ""
        if isinstance(msg, Exception):
            fault = msg if isinstance(msg, StreamsqlError) else internal(msg)
            of_class = _NUMBERS["SYNTAX_ERROR"] if isinstance(fault, SyntaxFault) else _OTHER
            code, state = _NUMBERS.get(fault.code, of_class)
            msg = format_error(fault)
        return b"\xff" + types.uint_2(code) + f"#{state}{msg}".encode(errors="replace")

    # ---- statements -----------------------------------------------------------------------

    async def handle_query(self, data: bytes) -> None:
        """COM_QUERY: a statement as text."""
        sql = data.decode(self.client_charset.codec, errors="replace")
        await self._send(await self.session.answer(sql), packets.make_text_resultset_row)

    async def handle_reset_connection(self, data: bytes) -> None:
        """COM_RESET_CONNECTION: pools send it between two users of a connection."""
        self.prepared_stmts.clear()
        await self.session.reset()
        await self.stream.write(self.ok())

    async def _send(self, answer: Answer, encode: Callable[[Any, Any], bytes]) -> None:
        if not answer.columns or answer.blocks is None:
            await self.stream.write(self.ok(warnings=answer.warnings))
            return
        encoders = [column.encoder for column in answer.columns]
        self.stream.write_many([types.uint_len(len(encoders)), *(c.definition for c in answer.columns)])
        if not self.deprecate_eof():
            self.stream.write_many([self.eof()])
        async with aclosing(answer.blocks) as blocks:
            async for block in blocks:
                rows = [encode(row, encoders) for row in block]
                if max(map(len, rows), default=0) < FULL:
                    self.stream.write_many(rows)
                else:  # in several frames
                    for row in rows:
                        await self.stream.write(row, drain=False)
                await self.stream.drain()  # waits while the client has not read what was sent
        await self.stream.write(self.ok_or_eof(warnings=answer.warnings))

    # ---- prepared statements --------------------------------------------------------------

    async def handle_stmt_prepare(self, data: bytes) -> None:
        """COM_STMT_PREPARE: ? are those that are signs, not those in texts and comments."""
        sql = data.decode(self.client_charset.codec, errors="replace")
        statement = Prepared(next(self.prepared_stmt_seq) + 1, sql, number_of_parameters(sql))
        self.prepared_stmts[statement.stmt_id] = statement
        for packet in self.com_stmt_prepare_response(statement):
            await self.stream.write(packet, drain=False)
        await self.stream.drain()

    async def handle_stmt_execute(self, data: bytes) -> None:
        """COM_STMT_EXECUTE. A cursor that the client asks for is not opened, as MySQL may do: it gets all
        rows.
        """
        statement = self.get_stmt(int.from_bytes(data[:4], "little"))
        values = parameters(statement, io.BytesIO(data[9:]), self.client_charset.codec)
        await self._send(await self.session.answer(statement.sql, values), packets.make_binary_resultrow)

    async def handle_stmt_reset(self, data: bytes) -> None:
        """COM_STMT_RESET."""
        self.get_stmt(int.from_bytes(data[:4], "little")).param_buffers = None
        await self.stream.write(self.ok())

    async def handle_stmt_fetch(self, data: bytes) -> None:
        """COM_STMT_FETCH: of a cursor."""
        raise MysqlError("there are no cursors", ErrorCode.NOT_SUPPORTED_YET)


class Users(IdentityProvider):
    """Users of any name, with one password; "" for none."""

    def __init__(self, password: str) -> None:
        self._secret = NativePasswordAuthPlugin.create_auth_string(password) if password else None

    async def get_user(self, username: str) -> User:
        """See mysql-mimic."""
        return User(username or "streamsql", self._secret, NativePasswordAuthPlugin.name)


class Clients:
    """The clients of a door; see Door for its values."""

    def __init__(self, parts: SessionParts, password: str, tls: SSLContext | None, *, writes: bool) -> None:
        self._parts, self._tls, self._writes = parts, tls, writes
        self._users, self._control = Users(password), LocalControl(1)
        self._tasks = set[asyncio.Task[Any]]()

    def protocol(self) -> asyncio.Protocol:
        """What reads and writes the bytes of a new client."""
        loop = asyncio.get_running_loop()
        return asyncio.StreamReaderProtocol(ClientReader(loop=loop), self._serve, loop=loop)

    async def leave(self) -> None:
        """Cut off all clients."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: Any, writer: asyncio.StreamWriter) -> None:
        stream: Any = DoorStream(MysqlStream(reader, writer))
        session = DoorSession(self._parts, writes=self._writes)
        connection = DoorConnection(stream, session, self._control, self._users, ABILITIES, self._tls)
        connection.status_flags = ServerStatus.SERVER_STATUS_AUTOCOMMIT
        reader.gone = session.leave
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(self._tasks) >= MOST_CLIENTS:
                raise MysqlError("Too many connections", ErrorCode.CON_COUNT_ERROR)
            self._tasks.add(task)
            connection.connection_id = await self._control.add(connection)
            await connection.start()
        except (asyncio.CancelledError, *GONE):
            pass  # the client has gone or was told why not, or the door closes
        except Exception as error:  # whatever bytes a client sends: it is closed, others are not
            log(error, "a MySQL client is cut off")
            if session.username or not connection.connection_id:  # else it was told during the login
                with suppress(ConnectionError):
                    await stream.write(connection.error(msg=error))
        finally:
            self._tasks.discard(task)
            await session.close()
            await self._control.remove(connection.connection_id)
            writer.close()
