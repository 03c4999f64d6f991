"""The door: streamsql serve --mysql HOST:PORT."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from streamsql.cli.addresses import address_of, is_loopback, listening_socket, shown_address
from streamsql.cli.command_line import CommandLine
from streamsql.errors import InputFault, StartFault, UsageFault, reason_of
from streamsql.guard import log
from streamsql.output.printer import Printer
from streamsql.runtime.embedded.secret_references import filled
from streamsql.runtime.parts import SessionParts

FLAG = "--mysql"
MOST_CLIENTS = 100
NONE = "none"


def open_doors(line: CommandLine, parts: SessionParts, printer: Printer) -> None:
    """Open the door that --mysql asks for. Raises faults for flags that cannot be used."""
    flags = line.flags
    if not flags["mysql"]:
        given = next((f for f in ("mysql_password", "mysql_tls", "mysql_write") if flags[f]), "")
        if given:
            raise UsageFault(f"--{given.replace('_', '-')} needs --mysql", hint=f"{FLAG} 3306")
        return
    if not line.serving or line.server:
        raise UsageFault(
            "--mysql is for a server that runs Spark itself: clients come and go while it runs",
            hint=f"streamsql serve -w DIR {FLAG} 3306",
        )
    host, port = address_of(flags["mysql"], FLAG, 3306)
    password = password_of(flags["mysql_password"] or "", host)
    door = Door(parts, host, port, password, tls_of(flags["mysql_tls"] or ""), writes=flags["mysql_write"])
    printer.say(f"MySQL: {shown_address(*door.address)}, {'writes, too' if door.writes else 'read-only'}")
    if not is_loopback(host) and door.tls is None:
        printer.warn("what goes through the MySQL door can be read on the network: --mysql-tls CERT,KEY")


def password_of(reference: str, host: str) -> str:
    """The password that a reference names; "" for none. Raises UsageFault."""
    if reference == NONE and is_loopback(host):
        return ""
    if reference == NONE:
        raise UsageFault(
            f"a door that is open beyond this machine ({host}) needs a password",
            hint="--mysql-password env:NAME or file:PATH",
        )
    if not reference.startswith(("env:", "file:")):
        what = "takes a reference, never the password itself" if reference else "is missing"
        raise UsageFault(
            f"--mysql-password {what}",
            hint="--mysql-password env:NAME, file:PATH, or none, which is for this machine only",
        )
    try:
        password: str = filled(f"${{{reference}}}")
    except ValueError as error:
        raise UsageFault(f"--mysql-password {reference}: {str(error).partition(', which')[0]}") from None
    if not password:
        raise UsageFault(f"--mysql-password {reference} is empty")
    return password


def tls_of(files: str) -> ssl.SSLContext | None:
    """The TLS of CERT,KEY; None for "". Raises InputFault."""
    if not files:
        return None
    certificate, _, key = files.partition(",")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key or None)
    except (OSError, ssl.SSLError) as error:
        reason = (
            "they are no certificate and its key in PEM"
            if isinstance(error, ssl.SSLError)
            else reason_of(error)
        )
        raise InputFault(
            f"--mysql-tls {files}: {reason}", hint="--mysql-tls cert.pem,key.pem", code="FILE_NOT_READ"
        ) from None
    return context


class Door:
    """An open door, on a thread of its own. address: where it listens; port 0 takes a free one; password: ""
    for none. Raises UsageFault when it cannot listen, StartFault when mysql-mimic is not installed.
    """

    def __init__(
        self, parts: SessionParts, host: str, port: int, password: str = "",
        tls: ssl.SSLContext | None = None, *, writes: bool = False,
    ) -> None:  # fmt: skip
        try:
            import mysql_mimic
        except ImportError as error:
            raise StartFault(
                f"the MySQL door needs a package that is not installed: {error.name or error}",
                hint="pip install 'streamsql-console[mysql]'",
                code="PACKAGE_NOT_AVAILABLE",
            ) from None
        logging.getLogger(mysql_mimic.__name__).setLevel(logging.CRITICAL + 1)
        self.parts, self.password, self.tls, self.writes = parts, password, tls, writes
        self._socket = listening_socket(host, port, FLAG)
        self.address: tuple[str, int] = (host, self._socket.getsockname()[1])
        self._clients = set[asyncio.Task[Any]]()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(
            lambda loop, told: log(
                told.get("exception") or Exception(told["message"]), "a MySQL client is cut off"
            )
        )
        self._thread = threading.Thread(target=self._run, daemon=True, name="mysql-door")
        self._thread.start()

    def close(self) -> None:
        """Let no more clients in, and leave those that there are."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._loop.create_server(self._protocol(), sock=self._socket))
        try:
            self._loop.run_forever()
        finally:
            for client in self._clients:
                client.cancel()
            with suppress(Exception):
                self._loop.run_until_complete(asyncio.gather(*self._clients, return_exceptions=True))
            self._socket.close()
            self._loop.close()

    def _protocol(self) -> Callable[[], asyncio.Protocol]:
        """Makes what reads and writes the bytes of a client."""
        from mysql_mimic import packets
        from mysql_mimic.auth import IdentityProvider, NativePasswordAuthPlugin, User
        from mysql_mimic.constants import DEFAULT_SERVER_CAPABILITIES
        from mysql_mimic.control import LocalControl
        from mysql_mimic.errors import ErrorCode, MysqlError
        from mysql_mimic.stream import ConnectionClosed, MysqlStream
        from mysql_mimic.types import Capabilities, ServerStatus

        from streamsql.features.mysql.client import DoorSession
        from streamsql.features.mysql.connection import ClientReader, DoorConnection

        secret = NativePasswordAuthPlugin.create_auth_string(self.password) if self.password else None

        class Users(IdentityProvider):
            """Any name, with the one password."""

            async def get_user(self, username: str) -> User:
                return User(username or "streamsql", secret, NativePasswordAuthPlugin.name)

        abilities = DEFAULT_SERVER_CAPABILITIES & ~Capabilities.CLIENT_QUERY_ATTRIBUTES
        abilities |= Capabilities.CLIENT_TRANSACTIONS
        control, users = LocalControl(1), Users()

        async def serve(reader: Any, writer: asyncio.StreamWriter) -> None:
            stream = MysqlStream(reader, writer)
            session = DoorSession(self.parts, writes=self.writes)
            connection = DoorConnection(stream, session, control, users, abilities, self.tls)
            connection.status_flags = ServerStatus.SERVER_STATUS_AUTOCOMMIT
            reader.gone = session.leave
            task = asyncio.current_task()
            assert task is not None
            try:
                if len(self._clients) >= MOST_CLIENTS:
                    raise MysqlError("Too many connections", ErrorCode.CON_COUNT_ERROR)
                self._clients.add(task)
                connection.connection_id = await control.add(connection)
                await connection.start()
            except (ConnectionClosed, ConnectionError, asyncio.IncompleteReadError, TimeoutError):
                pass  # the client has gone, or was told why not
            except MysqlError as error:
                with suppress(ConnectionError):
                    await stream.write(connection.error(msg=error))
            except Exception as error:  # whatever bytes a client sends: it is closed, others are not
                log(error, "a MySQL client is cut off")
                with suppress(ConnectionError):
                    fault = MysqlError("the packet cannot be read", ErrorCode.MALFORMED_PACKET)
                    await stream.write(packets.make_error(msg=fault.msg, code=fault.code))
            finally:
                self._clients.discard(task)
                await session.close()
                await control.remove(connection.connection_id)
                writer.close()

        def protocol() -> asyncio.Protocol:
            reader = ClientReader(loop=self._loop)
            return asyncio.StreamReaderProtocol(reader, serve, loop=self._loop)

        return protocol
