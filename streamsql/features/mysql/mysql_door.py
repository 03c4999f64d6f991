"""The door: streamsql serve --mysql HOST:PORT."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from contextlib import suppress
from typing import Any

from streamsql.cli.addresses import address_of, is_loopback, listening_socket, shown_address, tls_of
from streamsql.cli.command_line import CommandLine
from streamsql.errors import UsageFault
from streamsql.guard import log
from streamsql.output.printer import Printer
from streamsql.runtime.embedded.secret_references import filled
from streamsql.runtime.parts import SessionParts

FLAG = "--mysql"
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
    certificate, _, key = (flags["mysql_tls"] or "").partition(",")
    given = f"--mysql-tls {flags['mysql_tls']}"
    tls = tls_of(certificate, key, given, "--mysql-tls cert.pem,key.pem") if certificate else None
    door = Door(parts, host, port, password, tls, writes=flags["mysql_write"])
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


class Door:
    """An open door, on a thread of its own. address: where it listens; port 0 takes a free one; password: ""
    for none. Raises UsageFault when it cannot listen, and when mysql-mimic is not installed.
    """

    def __init__(
        self, parts: SessionParts, host: str, port: int, password: str = "",
        tls: ssl.SSLContext | None = None, *, writes: bool = False,
    ) -> None:  # fmt: skip
        try:
            import mysql_mimic
        except ImportError as error:
            raise UsageFault(
                f"the MySQL door needs a package that is not installed: {error.name or error}",
                hint="pip install 'streamsql-console[mysql]'",
                code="PACKAGE_NOT_AVAILABLE",
            ) from None
        logging.getLogger(mysql_mimic.__name__).setLevel(logging.CRITICAL + 1)
        self.parts, self.password, self.tls, self.writes = parts, password, tls, writes
        self._socket = listening_socket(host, port, FLAG)
        self.address: tuple[str, int] = (host, self._socket.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log)
        self._thread = threading.Thread(target=self._run, daemon=True, name="mysql-door")
        self._thread.start()

    def close(self) -> None:
        """Let no more clients in, and leave those that there are."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        from streamsql.features.mysql.mysql_connection import Clients

        clients = Clients(self.parts, self.password, self.tls, writes=self.writes)
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._loop.create_server(clients.protocol, sock=self._socket))
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(clients.leave())
            self._socket.close()
            self._loop.close()


def _log(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log(context.get("exception") or Exception(context["message"]), "a MySQL client is cut off")
