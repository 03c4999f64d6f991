"""What a workspace keeps of a session: its definitions as a script, and how its queries ended.

catalog.sql is a valid script: it makes everything again from nothing. Opening a workspace reads it
without running it: streams and sinks are there, queries are there and stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.catalog import Catalog, Sink, Stream
from streamsql.connectors.base import OptionSpec, is_secret
from streamsql.connectors.registry import connector
from streamsql.errors import EngineFault, InputFault, Source, holds_secret
from streamsql.language.parser import Written, split_script
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote, refers, tokenize, unquote

if TYPE_CHECKING:
    from streamsql.runtime.queries import Running

CATALOG = "catalog.sql"
HIDDEN = "***"
"""What catalog.sql holds in the place of a secret."""
ENDED = "the console "
"""How the reason begins for which a query ended with its console."""
STATUS = "status.json"
_HEAD = "-- The definitions of a streamsql workspace, written by the console. It is a script.\n\n"


@dataclass(frozen=True)
class Past:
    """How a query was when it was last heard of. status: running, stopped, finished or FAILED."""

    status: str
    since: str = ""
    error: str = ""
    batch: int = -1


@dataclass(frozen=True)
class Kept:
    """An entry of the catalog: its kind and name, and the statement that makes it. readable: whether
    other statements may name it.
    """

    kind: str
    name: str
    text: str
    readable: bool = True


class Store:
    """The files of a workspace. unread: statements of catalog.sql that could not be taken up again,
    which stay in it; past: how queries were, by folded name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unread: list[str] = []
        self.past: dict[str, Past] = {}
        self.folders: dict[str, str] = {}
        self._order: list[tuple[str, str]] = []
        self._last: dict[str, str] = {}

    # ---- reading --------------------------------------------------------------------------

    def statements(self) -> list[Written]:
        """The statements of catalog.sql; none when there is none. Raises InputFault when it is no script."""
        file = self.folder / CATALOG
        try:
            return split_script(Source(str(file), file.read_text("utf-8")))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise InputFault(f"{file} cannot be read: {error}") from None

    def set_aside(self) -> Path:
        """Put a catalog.sql that cannot be read where nothing is written over it. Returns where."""
        aside = self.folder / f"{CATALOG}.{datetime.now():%Y%m%d-%H%M%S}"
        (self.folder / CATALOG).replace(aside)
        return aside

    def read_status(self, *, runs: bool = False) -> None:
        """Read how the queries were. One that ran when the console ended without a word has stopped.

        runs: that console has not ended.
        """
        try:
            known = json.loads((self.folder / STATUS).read_text("utf-8"))
            self.past = {name: Past(**past) for name, past in known["queries"].items()}
            self.folders = dict(known["functions"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        for name, past in self.past.items():
            if past.status == "running" and not runs:
                self.past[name] = replace(
                    past, status="stopped", error=past.error or ENDED + "ended without a word"
                )

    # ---- writing --------------------------------------------------------------------------

    def save(self, catalog: Catalog, settings: Mapping[str, str], views: Iterable[tuple[str, str]]) -> None:
        """Write the definitions if they have changed. Raises OSError."""
        entries = {(e.kind, e.name.casefold()): e for e in _entries(catalog, views)}
        self._order = [k for k in self._order if k in entries]
        self._order += [k for k in entries if k not in self._order]
        lines = [f"SET {key} = {_value(value)};" for key, value in settings.items() if not is_secret(key)]
        lines += [entry.text + ";" for entry in _sorted([entries[k] for k in self._order])]
        lines += self.unread
        self._write(CATALOG, _HEAD + "\n\n".join(lines) + "\n")

    def save_status(self, queries: Mapping[str, Past], folders: Mapping[str, str]) -> None:
        """Write how the queries are, and where the modules of functions lie. Raises OSError."""
        known = {"queries": {n: asdict(p) for n, p in queries.items()}, "functions": dict(folders)}
        self._write(STATUS, json.dumps(known, indent=1))

    def _write(self, name: str, text: str) -> None:
        """Whole or not at all."""
        if self._last.get(name) == text:
            return
        file = self.folder / name
        part = file.with_name(name + ".part")
        with open(part, "w", encoding="utf-8", opener=_private) as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
        self._last[name] = text


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _value(text: str) -> str:
    return text if text.replace(".", "").replace("-", "").isalnum() else quote(text)


def _entries(catalog: Catalog, views: Iterable[tuple[str, str]]) -> Iterable[Kept]:
    for function in catalog.functions.values():
        yield Kept("function", function.name, function.sql())
    for stream in catalog.streams.values():
        yield Kept("stream", stream.name, stream.sql(redact=secrets(stream)))
    fed = {s.casefold() for q in catalog.queries.values() if q.live_table for s in q.sinks}
    for key, sink in catalog.sinks.items():
        if key not in fed:
            yield Kept("sink", sink.name, sink.sql(redact=secrets(sink)))
    for name, text in views:
        if not holds_secret(text):
            yield Kept("view", name, text)
    for query in catalog.queries.values():
        text = query.sql(catalog.sinks.get(query.sinks[0].casefold()))
        yield Kept("query", query.name, text, query.live_table)


def _sorted(entries: list[Kept]) -> list[Kept]:
    """Each entry behind those that its text names; else as they were made."""
    by_name: dict[str, list[Kept]] = {}
    for entry in entries:
        if entry.readable:
            by_name.setdefault(entry.name.casefold(), []).append(entry)
    done: dict[Kept, None] = {}
    under_way: set[Kept] = set()

    def put(entry: Kept) -> None:
        if entry in done or entry in under_way:
            return
        under_way.add(entry)
        for token in tokenize(entry.text):
            name = unquote(token).casefold() if token.kind in ("word", "quoted") else ""
            for other in by_name.get(name.partition("$")[0], ()):
                put(other)
        done[entry] = None

    for entry in entries:
        put(entry)
    return list(done)


def secrets(entry: Stream | Sink) -> frozenset[str]:
    """The options whose values are shown and written nowhere; one that says where its value lies may be."""
    declared = connector(Name(entry.connector)).secrets() if entry.connector else frozenset()
    keys = {k.casefold(): v for k, v in entry.options}
    return frozenset(k for k, v in keys.items() if (k in declared or is_secret(k)) and not refers(v))


def check_secrets(entries: Iterable[Stream | Sink]) -> None:
    """Raise EngineFault for a stream or sink that came out of a workspace, which kept no secrets."""
    for entry in entries:
        hidden = secrets(entry) if entry.connector not in ("", "table") else frozenset()
        lost = next((k for k, v in entry.options if k.casefold() in hidden and v == HIDDEN), "")
        if lost:
            kind = "STREAM" if isinstance(entry, Stream) else "SINK"
            raise EngineFault(
                f"the {lost} of {entry.name} was not kept in the workspace",
                hint=f"CREATE OR REPLACE {kind} {entry.name} …, with {lost} '${{env:NAME}}'",
            )


def placed(entry: Any) -> Any:
    """A stream or sink with its paths in full: the workspace may be opened from another folder."""
    if not entry.connector or entry.connector == "table":
        return entry
    made = connector(Name(entry.connector))
    specs: tuple[OptionSpec, ...] = (*(made.reads or ()), *(made.writes or ()))
    paths = {s.name.casefold() for s in specs if s.kind == "path"}
    options = tuple((k, in_full(v) if k.casefold() in paths else v) for k, v in entry.options)
    return replace(entry, options=options)


def in_full(path: str) -> str:
    """A path that means the same from any folder."""
    return path if "://" in path or path.startswith("file:") or not path else os.path.abspath(path)


def past_of(running: Running, why: str = "") -> Past:
    """How a query is, to be kept. why: the reason for which it is about to end, if it runs."""
    status = running.status()
    last = running.reports.newest(1)
    batch = last[-1].get("batchId", -1) if last else -1
    since = (running.ended or datetime.now()).isoformat(" ", "seconds")
    if status == "running" and why:
        return Past("stopped", since, why, batch)
    return Past(status, since, running.fault.message if running.fault else "", batch)
