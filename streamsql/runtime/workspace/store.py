"""The files of a workspace: the definitions as a script, and the last status of the queries.

catalog.sql is a valid script, which creates all definitions again. Opening a workspace reads it but does
not run it: streams and sinks are defined, and so are queries, which are stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from streamsql.catalog import Catalog
from streamsql.definition_sql import setting_sql
from streamsql.definitions import Function, Stream, is_aside, is_staged, staged_name
from streamsql.language.names_read import names_in_query, relations_of
from streamsql.language.redaction import holds_secret
from streamsql.language.script import Written
from streamsql.language.statements.base import Statement
from streamsql.query_facts import Failure
from streamsql.runtime.embedded.durable_files import write_file
from streamsql.runtime.queries.run import GOING_ON, Running
from streamsql.runtime.workspace.workspace_files import CATALOG, check_version, read_statements
from streamsql.runtime.workspace.workspace_files import STATUS as STATUS_VERSION
from streamsql.secrets import redact_option

LEFT, LOST = "left", "lost"
_ENDED = {LEFT: "the console was left", LOST: "the console ended unexpectedly"}
"""How a console ended → the reason for which its queries stopped."""
STATUS = "status.json"
_HEAD = "-- The definitions of a streamsql workspace, written by the console. It is a script.\n\n"


@dataclass(frozen=True)
class Past:
    """The last known state of a query: its status, since when, and its newest failures, oldest first.

    console: how the console ended with which it stopped, LEFT or LOST; empty if it stopped by itself; told:
    whether a prompt has said so. on_purpose: a STOP QUERY that names it has stopped it.
    """

    status: str
    since: str = ""
    error: str = ""
    batch: int = -1
    failures: tuple[Failure, ...] = ()
    console: str = ""
    told: bool = False
    on_purpose: bool = False

    @property
    def reason(self) -> str:
        """Why it does not run."""
        return self.error or _ENDED.get(self.console, "")


@dataclass(frozen=True)
class CatalogEntry:
    """An entry of the catalog: its kind and name, and the statement that creates it. names: the folded names
    of the entries that it needs; readable: whether other statements can read from it.
    """

    kind: str
    name: str
    text: str
    names: frozenset[str] = frozenset()
    readable: bool = True


class Store:
    """The files of a workspace. unread: statements of catalog.sql that could not be read, and stay in it;
    withheld: settings that are not applied, and stay in it; past: the last state of queries, by folded
    name; functions: the properties of functions when they were created, by folded name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unread: list[str] = []
        self.past: dict[str, Past] = {}
        self.withheld: dict[str, str] = {}
        self.functions: dict[str, dict[str, Any]] = {}
        self._order: list[tuple[str, str]] = []
        self._last: dict[str, str] = {}

    # ---- reading --------------------------------------------------------------------------

    def statements(self) -> list[Written]:
        """The statements of catalog.sql; none if it does not exist. Raises faults when it is not a script."""
        return read_statements(self.folder)

    def read_status(self, *, runs: bool = False) -> str:
        """Read the status of queries. A query that ran when its console ended unexpectedly is stopped.

        runs: that console is still running. Returns why the file cannot be read; empty when it can. Raises
        UsageFault when a later version has written it.
        """
        file = self.folder / STATUS
        try:
            saved = json.loads(file.read_text("utf-8"))
            check_version(saved, STATUS_VERSION, str(file))
            self.past = {name: _past(**past) for name, past in saved["queries"].items()}
            self.functions = {name: _function(f) for name, f in saved["functions"].items()}
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return f"{file} cannot be read: {error}"
        for name, past in self.past.items():
            if past.status in GOING_ON and not runs:
                self.past[name] = replace(past, status="stopped", console=LOST)
        return ""

    def set_aside(self, name: str) -> Path:
        """Rename a file that cannot be read, so that it is not overwritten. Returns its new path."""
        aside = self.folder / f"{name}.{datetime.now():%Y%m%d-%H%M%S}"
        (self.folder / name).replace(aside)
        return aside

    # ---- writing --------------------------------------------------------------------------

    def save(
        self, catalog: Catalog, settings: Mapping[str, str], views: Iterable[tuple[str, Statement]]
    ) -> None:
        """Write the definitions if they have changed. Raises OSError."""
        saved = (*entries_of(catalog, views), *_aside(catalog))
        entries = {(e.kind, e.name.casefold()): e for e in saved}
        self._order = [k for k in self._order if k in entries]
        self._order += [k for k in entries if k not in self._order]
        lasting = {k: v for k, v in (self.withheld | dict(settings)).items() if redact_option(k, v) == v}
        lines = [f"{setting_sql(key, value)};" for key, value in lasting.items()]
        lines += [entry.text + ";" for entry in in_order([entries[k] for k in self._order])]
        lines += [f"{change.sql()};" for change in catalog.changes.values() if change.members]
        lines += self.unread
        self._write(CATALOG, _HEAD + "\n\n".join(lines) + "\n")

    def save_status(self, queries: Mapping[str, Past], functions: Mapping[str, Function]) -> None:
        """Write the state of queries and the properties of functions. Raises OSError."""
        status = {
            "version": STATUS_VERSION,
            "queries": {n: asdict(p) for n, p in queries.items()},
            "functions": {
                n: {"folder": f.folder, "kind": f.kind, "form": f.form, "modules": f.modules}
                for n, f in functions.items()
            },
        }
        self._write(STATUS, json.dumps(status, indent=1))

    def _write(self, name: str, text: str) -> None:
        """Write a file atomically, if its text has changed."""
        if self._last.get(name) == text:
            return
        write_file(self.folder / name, lambda out: out.write(text.encode()))
        self._last[name] = text


def entries_of(catalog: Catalog, views: Iterable[tuple[str, Statement]]) -> Iterator[CatalogEntry]:
    """The entries of a catalog without their secrets. views: as (`Definition.key`, statement), functions in
    SQL among them; one with a secret is left out.
    """
    for function in catalog.functions.values():
        yield CatalogEntry("function", function.name, function.sql())
    for stream in catalog.streams.values():
        yield CatalogEntry("stream", stream.name, stream.sql(), _named_by(stream))
    fed = {s.casefold() for q in catalog.queries.values() if q.live_table for s in q.sinks}
    for key, sink in catalog.sinks.items():
        if key not in fed:
            yield CatalogEntry("sink", sink.name, sink.sql())
    for key, view in views:
        if not holds_secret(view.text):
            name, kind = key.removesuffix("()"), "function" if key.endswith("()") else "view"
            named = frozenset(relation.name.casefold() for relation in relations_of(view)) - {name}
            if is_aside(name):  # it reads what is aside with it
                named |= {f"{one}${name.rpartition('$')[2]}" for one in named}
            yield CatalogEntry(kind, name, view.text, named)
    for query in catalog.named(None):
        text = query.sql(catalog.sinks.get(query.sinks[0].casefold()))
        names = names_in_query(query.text).union(s.casefold() for s in (*query.sinks, query.late))
        if query.backfill:
            names |= names_in_query(query.backfill.query)
        if is_staged(query.name):  # it reads the staged changes of what it names
            names |= {staged_name(name).casefold() for name in names} | set(catalog.aside)
        yield CatalogEntry("query", query.name, text, names, query.live_table)


def _aside(catalog: Catalog) -> Iterator[CatalogEntry]:
    """The definitions of streams and functions that are not in use."""
    for entry in catalog.aside.values():
        if isinstance(entry, Stream):
            yield CatalogEntry("stream", entry.name, entry.sql(), _named_by(entry))
        elif isinstance(entry, Function):
            yield CatalogEntry("function", entry.name, entry.sql())


def _named_by(stream: Stream) -> frozenset[str]:
    """The names that a stream depends on: of its query, and the sink of its malformed messages."""
    computed = stream.watermark.computed if stream.watermark else None
    texts = [text for text in (stream.query, computed.text if computed else "") if text]
    return frozenset((stream.malformed_sink.casefold(),)).union(*map(names_in_query, texts))


def in_order(entries: Sequence[CatalogEntry]) -> list[CatalogEntry]:
    """Each entry after those that it names, otherwise in the order of creation."""
    by_name: dict[str, list[CatalogEntry]] = {}
    for entry in entries:
        if entry.readable:
            by_name.setdefault(entry.name.casefold(), []).append(entry)
    done: dict[CatalogEntry, None] = {}
    under_way: set[CatalogEntry] = set()

    def put(entry: CatalogEntry) -> None:
        if entry in done or entry in under_way:
            return
        under_way.add(entry)
        for name in sorted(entry.names):
            for other in (*by_name.get(name, ()), *by_name.get(name.partition("$")[0], ())):
                put(other)
        done[entry] = None

    for entry in entries:
        put(entry)
    return list(done)


def _past(*, failures: Iterable[Mapping[str, Any]] = (), **saved: Any) -> Past:
    return Past(failures=tuple(Failure(**_fields(f, Failure)) for f in failures), **_fields(saved, Past))


def _fields(values: Mapping[str, Any], of: type[Any]) -> dict[str, Any]:
    """The values of a dataclass's fields among those that are known."""
    return {f.name: values[f.name] for f in fields(of) if f.name in values}


def _function(saved: Any) -> dict[str, Any]:
    """The saved properties of a function."""
    properties = {k: str(saved[k]) for k in ("folder", "kind", "form") if k in saved}
    return properties | {"modules": tuple(map(str, saved.get("modules", ())))}


def past_of(running: Running, failures: Iterable[Failure], console: str = "") -> Past:
    """The state of a query, to be saved. console: see Past; it is about to end, and the query with it."""
    status = running.status()
    batch = running.reports.latest.get("batchId", -1)
    since = (running.ended or datetime.now()).isoformat(" ", "seconds")
    if status in GOING_ON and console:
        return Past("stopped", since, "", batch, tuple(failures), console)
    error = running.fault.message if running.fault else ""
    on_purpose = running.on_purpose and status == "stopped"
    return Past(status, since, error, batch, tuple(failures), on_purpose=on_purpose)
