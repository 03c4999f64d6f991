"""A workspace is opened: its definitions are there again, and nothing is run."""

from __future__ import annotations

import shutil
from pathlib import Path

from streamsql.catalog import Table
from streamsql.errors import StreamsqlError
from streamsql.language.parser import parse
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Set
from streamsql.plan import plans
from streamsql.plan.planner import plan
from streamsql.runtime.faults import translate
from streamsql.runtime.session import Session
from streamsql.runtime.store import CATALOG, ENDED, Store
from streamsql.workspace import holder


def reopen(session: Session) -> tuple[list[str], list[str]]:
    """Take up what the session's workspace holds. Returns (what is there again, warnings)."""
    store = session.store
    if store is None:
        return [], []
    if session.config.read_only:
        return _look_into(session, store)
    store.read_status()
    warnings = []
    try:
        statements = store.statements()
    except StreamsqlError as error:
        return [], [
            f"{error.message}; the workspace begins empty, and the file is kept as {store.set_aside()}"
        ]
    for written in statements:
        try:
            _take_up(parse(written, {}), session, store)
        except Exception as error:  # whatever is wrong with one, the others are there
            store.unread.append(written.text.rstrip(";") + ";")
            kept = f"kept in {store.folder / CATALOG}: {_start(written.text)}"
            warnings.append(f"{translate(error).message}; {kept}")
    if not warnings:
        _clear_up(session)
    return _words(session, store), warnings


def _look_into(session: Session, store: Store) -> tuple[list[str], list[str]]:
    """Take up what another console's workspace holds, now and whenever that has changed."""
    seen: list[tuple[int, int]] = []

    def stamp() -> tuple[int, int]:
        try:
            now = (store.folder / CATALOG).stat()
        except OSError:
            return 0, 0
        return now.st_ino, now.st_mtime_ns

    def look() -> list[str]:
        seen[:] = [stamp()]
        warnings = []
        for written in store.statements():
            try:
                _take_up(parse(written, {}), session, store)
            except Exception as error:
                warnings.append(f"{translate(error).message}: {_start(written.text)}")
        return warnings

    def again() -> None:
        if [stamp()] == seen:
            return
        catalog = session.catalog
        for entries in (catalog.streams, catalog.sinks, catalog.queries, catalog.functions):
            entries.clear()
        look()
        if session.engine.started:
            session.temporary.restore(session.spark)

    store.read_status(runs=bool(holder(store.folder)))
    warnings = look()
    session.look_again = again
    who = holder(store.folder)
    return [
        *_words(session, store),
        *([f"read-only: it is held by {who}"] if who else ["read-only"]),
    ], warnings


def _words(session: Session, store: Store) -> list[str]:
    catalog = session.catalog
    live = sum(s.is_live for s in catalog.sinks.values())
    kinds = (
        ("stream", len(catalog.streams)),
        ("sink", len(catalog.sinks) - live),
        ("live table", live),
        ("function", len(catalog.functions)),
    )
    there = [f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in kinds if n]
    words = [f"{store.folder} holds {', '.join(there)}"] if there else []
    ended = [q.name for q in catalog.queries.values() if session.past(q.name).error.startswith(ENDED)]
    if ended:
        words.append(f"ended with the last console: {', '.join(ended)}; START QUERY ALL; goes on")
    return words


def _take_up(statement: Statement, session: Session, store: Store) -> None:
    """A definition, without what carrying it out would do. Raises faults."""
    if isinstance(statement, Set):
        assert statement.key is not None and statement.value is not None
        session.settings.changed[statement.key.value] = statement.value
        return
    made = plan(statement, session.context())
    catalog = session.catalog
    if isinstance(made, plans.DefineStream):
        catalog.streams[made.stream.name.casefold()] = made.stream
    elif isinstance(made, plans.DefineSink):
        catalog.sinks[made.sink.name.casefold()] = made.sink
    elif isinstance(made, plans.DefineFunction):
        folder = store.folders.get(made.function.name.casefold(), "")
        others = list(catalog.functions.values())
        found = session.modules.find(made.function, made.target, folder, others)
        catalog.functions[found.name.casefold()] = found
    elif isinstance(made, plans.Run):
        if made.define:
            catalog.sinks[made.sink.name.casefold()] = made.sink
        catalog.queries[made.query.name.casefold()] = made.query
    elif isinstance(made, plans.Collect) and made.creates:
        session.temporary.remember(statement, made.creates)
        catalog.tables[made.creates.casefold()] = Table(made.creates, made.streaming)


def _clear_up(session: Session) -> None:
    """Throw away what an earlier console left of queries and live tables that nobody knows any more."""
    catalog, places = session.catalog, session.places
    known = {
        "queries": {Path(places.checkpoint(q)).parent.name for q in catalog.queries},
        "live": {Path(places.live(s)).name for s in catalog.sinks},
        "streams": {Path(places.values(s)).name for s in catalog.streams},
    }
    for name, there in known.items():
        folder = session.config.folder / name
        for left in folder.iterdir() if folder.is_dir() else ():
            if left.name not in there:
                shutil.rmtree(left, ignore_errors=True)


def _start(text: str) -> str:
    """The beginning of a statement, in one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:59] + "…"
