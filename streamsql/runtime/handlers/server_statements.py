"""DETACH, SHOW SERVER and STOP SERVER."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsql.errors import NameFault, RuleFault
from streamsql.language.statements.server import Detach, ShowServer, StopServer
from streamsql.results import Done, Leave, Result
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import pairs_of
from streamsql.runtime.parts import SessionParts

if TYPE_CHECKING:
    from streamsql.server import listener


def _host(parts: SessionParts) -> listener.Server:
    host = parts.hosting.host
    if host is None:
        raise NameFault(
            "this console has no server",
            detail="its queries run in this process",
            hint="DETACH; turns it into a server, streamsql serve starts one",
            code="NOT_A_SERVER",
        )
    return host


def _show(parts: SessionParts, statement: ShowServer) -> Result:
    return pairs_of(list(_host(parts).rows()))


def _stop(parts: SessionParts, statement: StopServer) -> Result:
    _host(parts).stop()
    return Done(message="the server ends after the current micro-batches")


def _detach(parts: SessionParts, statement: Detach) -> Result:
    if not parts.config.interactive:
        raise RuleFault(
            "DETACH is a statement of the prompt",
            hint="streamsql serve FILE.sql runs a script in a server",
            code="NOT_DETACHED",
        )
    if parts.hosting.host is None and (parts.store is None or parts.config.read_only):
        what = "is read-only" if parts.config.read_only else "uses a temporary workspace"
        raise RuleFault(
            f"this console {what}, so it cannot become a server",
            hint="streamsql -w DIR opens a lasting workspace",
            code="NOT_DETACHED",
        )
    return Leave(detach=True)


DIRECT: Answers = {ShowServer: _show, StopServer: _stop, Detach: _detach}
