"""--remote: which flags it excludes, and the session on a Spark Connect server."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from streamsql.cli.attach import has_server
from streamsql.cli.open_workspace import workspace_folder
from streamsql.errors import UsageFault

if TYPE_CHECKING:
    from streamsql.plan.context import ConnectServer
    from streamsql.runtime.session import Session
    from streamsql.runtime.session_config import Config

_OF_A_JVM = {
    "master": "the server has its own",
    "jars": "the jars of a server are given where it is started",
    "packages": "the packages of a server are given where it is started",
    "java": "the console starts no Java",
    "warm": "the console starts no Spark",
    "check_cluster": "it is about --master",
    "read_only": "it is about the workspaces of this machine",
}
"""The flags that --remote excludes, and why."""


def check_remote(options: argparse.Namespace) -> None:
    """Read the address into options.server. Raises UsageFault for an address that cannot be read, for flags
    that do not go together, and for a workspace whose queries a server of streamsql runs.
    """
    from streamsql.runtime.connect.server_address import read_address

    options.server = read_address(options.remote)
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # the functions of PySpark are those of its client
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the console tells what is wrong, in its own words
    if hasattr(options, "status_file"):
        raise _excluded("serve", "the queries of a Connect server go on without a console")
    for flag, why in _OF_A_JVM.items():
        if getattr(options, flag, None):
            raise _excluded(f"--{flag.replace('_', '-')}", why)
    if has_server(options):
        raise UsageFault(
            f"a server of streamsql runs the queries of {workspace_folder(options)}",
            hint="streamsql without --remote attaches to it; or another workspace: -w DIR",
            code="NO_CONNECT",
        )


def _excluded(flag: str, why: str) -> UsageFault:
    return UsageFault(
        f"--remote and {flag} exclude each other", detail=why, hint=f"leave out {flag}", code="NO_CONNECT"
    )


def session_of(options: argparse.Namespace, config: Config) -> Session:
    """The session: on a Spark of its own, or on a Connect server."""
    if options.server:
        from streamsql.runtime.connect.connect_session import ConnectSession

        return ConnectSession(config, options.server)
    from streamsql.runtime.session import Session

    return Session(config)


def server_of(options: argparse.Namespace) -> ConnectServer | None:
    """What --check knows of the server, without asking it."""
    if not options.server:
        return None
    from streamsql.plan.context import ConnectServer

    return ConnectServer(options.server.shown)
