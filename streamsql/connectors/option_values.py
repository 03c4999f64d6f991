"""The option values of a stream or sink: secrets, and absolute paths."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.registry import connector
from streamsql.definitions import Sink, Stream
from streamsql.errors import EngineFault
from streamsql.language.redaction import lost_secret
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.secrets import is_lost, redact_option


def secret_options(entry: Stream | Sink) -> list[str]:
    """The folded names of the options with a secret as their value. A workspace does not keep that value; an
    option that says where its secret lies is not among them.
    """
    return sorted(k.casefold() for k, v in entry.options if redact_option(k, v) != v)


def check_secrets(entries: Iterable[Stream | Sink], query: str) -> None:
    """Raise EngineFault for a stream, sink or query reopened from a workspace, which stores no secrets.

    query: its text.
    """
    if lost_secret(query):
        raise EngineFault(
            "the secret in the query was not kept in the workspace",
            hint="drop it and create it again",
            code="SECRET_LOST",
        )
    for entry in entries:
        kind = "STREAM" if isinstance(entry, Stream) else "SINK"
        if isinstance(entry, Stream) and lost_secret(entry.query):
            raise EngineFault(
                f"the secret in the stream {entry.name} was not kept in the workspace",
                hint=f"CREATE OR REPLACE STREAM {quote_name(entry.name)} AS SELECT …",
                code="SECRET_LOST",
            )
        lost = next((k for k, v in entry.options if is_lost(k, v)), "")
        if lost:
            raise EngineFault(
                f"the {lost} of {entry.name} was not kept in the workspace",
                hint=f"CREATE OR REPLACE {kind} {entry.name} …, with {lost} '${{env:NAME}}'",
                code="SECRET_LOST",
            )


def placed(entry: Any) -> Any:
    """A stream or sink with absolute paths: the workspace may be opened from another folder."""
    if not entry.connector or entry.connector == "table":
        return entry
    using = connector(Name(entry.connector))
    specs: tuple[OptionSpec, ...] = (*(using.reads or ()), *(using.writes or ()))
    paths = {s.name.casefold() for s in specs if s.kind == "path"}
    options = tuple((k, in_full(v) if k.casefold() in paths else v) for k, v in entry.options)
    return replace(entry, options=options)


def in_full(path: str) -> str:
    """An absolute path."""
    return path if "://" in path or path.startswith("file:") or not path else os.path.abspath(path)
