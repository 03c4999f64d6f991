"""--remote: its address, and which flags it excludes."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from streamsql.cli.command_line import CommandLine
from streamsql.cli.open_workspace import has_server
from streamsql.errors import UsageFault

if TYPE_CHECKING:
    from streamsql.features.connect.lacks import ConnectServer
    from streamsql.features.connect.server_address import ServerAddress
    from streamsql.runtime.session import Session
    from streamsql.runtime.session_config import Config

_OF_A_JVM = {
    "master": "the server has its own",
    "jars": "the jars of a server are given where it is started",
    "packages": "the packages of a server are given where it is started",
    "java": "the console starts no Java",
    "check_cluster": "it is about --master",
    "read_only": "it is about the workspaces of this machine",
    "web": "it is for a Spark of this machine",
}
"""The flags that --remote excludes, and why."""


class RemoteServer:
    """The server of --remote, as the command line uses it."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self.host, self.port, self.shown = address.host, address.port, address.shown

    def session(self, config: Config) -> Session:
        """A session on the server."""
        from streamsql.features.connect.connect_session import ConnectSession

        return ConnectSession(config, self.address)

    def planned(self) -> ConnectServer:
        """What --check knows of the server, without asking it."""
        from streamsql.features.connect.lacks import ConnectServer

        return ConnectServer(self.shown)


def server_of(line: CommandLine) -> RemoteServer | None:
    """The server of --remote; None if it is not given. Raises UsageFault for an address that cannot be read,
    for flags that do not go together, and for a workspace whose queries a server of streamsql runs.
    """
    if not line.flags["remote"]:
        return None
    from streamsql.features.connect.server_address import read_address

    server = RemoteServer(read_address(line.flags["remote"]))
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # the functions of PySpark are those of its client
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the console tells what is wrong, in its own words
    if line.serving:
        raise _excluded("serve", "the queries of a Connect server go on without a console")
    for flag, why in _OF_A_JVM.items():
        if line.flags[flag]:
            raise _excluded(f"--{flag.replace('_', '-')}", why)
    line = replace(line, server=server)
    if has_server(line):
        raise UsageFault(
            f"a server of streamsql runs the queries of {line.folder}",
            hint="streamsql without --remote attaches to it; or another workspace: -w DIR",
            code="NO_CONNECT",
        )
    return server


def _excluded(flag: str, why: str) -> UsageFault:
    return UsageFault(
        f"--remote and {flag} exclude each other", detail=why, hint=f"leave out {flag}", code="NO_CONNECT"
    )
