"""Opens the page for a browser, on a thread of its own. Who opens it needs a token."""

from __future__ import annotations

import os
import secrets
import threading
from dataclasses import dataclass
from typing import Any

from streamsql.cli.addresses import address_of, is_loopback, listening_socket, shown_address
from streamsql.cli.command_line import CommandLine
from streamsql.errors import UsageFault
from streamsql.output.printer import Printer
from streamsql.runtime.parts import SessionParts

TOKEN = "STREAMSQL_WEB_TOKEN"
"""The variable that chooses the token; by default each start makes a new one."""
_SHORTEST = 16


@dataclass(frozen=True)
class Door:
    """An open door. url: of the page, with the token, or with the name of the variable that has it."""

    url: str
    server: Any
    thread: threading.Thread

    def close(self) -> None:
        """End the server and its thread."""
        self.server.should_exit = True
        self.server.force_exit = True
        self.thread.join(5)


def serve_page(line: CommandLine, parts: SessionParts, printer: Printer) -> None:
    """Serve the page of a session if --web asks for it. Raises UsageFault."""
    if not line.flags["web"]:
        return
    address = line.flags["web"]
    url = open_door(parts, address).url
    with printer.terminal.held():  # unlike messages, as it is: in one line, with the token that was made now
        print(f"page: {url}", file=printer.words, flush=True)
    host, _ = address_of(address, "--web", 8088)
    if not is_loopback(host):
        printer.warn("other machines reach the page, and it is not encrypted: put a proxy with TLS in front")


def open_door(parts: SessionParts, address: str) -> Door:
    """Serve the page of a session. Raises UsageFault."""
    host, port = address_of(address, "--web", 8088)
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    if len(token) < _SHORTEST:
        raise UsageFault(f"{TOKEN} has less than {_SHORTEST} characters", hint=f"unset {TOKEN}: one is made")
    try:
        import uvicorn

        from streamsql.features.web.page import application
    except ImportError:
        raise UsageFault(
            "--web needs the packages starlette and uvicorn", hint="pip install 'streamsql-console[web]'"
        ) from None
    listener = listening_socket(host, port, "--web")
    config = uvicorn.Config(
        application(parts, token), log_config=None, access_log=False, lifespan="off", server_header=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True, name="web")
    thread.start()
    url = f"http://{shown_address(host, listener.getsockname()[1])}/?token="
    return Door(url + (f"${TOKEN}" if TOKEN in os.environ else token), server, thread)
