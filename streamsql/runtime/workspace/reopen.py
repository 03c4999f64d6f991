"""Opens a workspace: restores its definitions, and runs nothing."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.definitions import HISTORY, Function, Table, is_aside
from streamsql.errors import EngineFault, NameFault, Note
from streamsql.feature_registry import extensions
from streamsql.language.parser import parse
from streamsql.language.spark_definitions import definition_of, in_default
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Set
from streamsql.plan import planner, plans
from streamsql.runtime.engine.kept_tables import is_table
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.parts import SessionParts, StatementBegins
from streamsql.runtime.preflight.schema_files import with_schema_file
from streamsql.runtime.workspace import owned_folders
from streamsql.runtime.workspace.folder import holder
from streamsql.runtime.workspace.generations import generations_of, move_over
from streamsql.runtime.workspace.store import STATUS, Store
from streamsql.runtime.workspace.workspace_files import CATALOG


@dataclass(frozen=True)
class Reopened:
    """The report on an opened workspace. words: what it contains; notes: what was done; warnings; stopped:
    the queries that stopped with the last console.
    """

    words: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    warnings: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()

    def lines(self, *, resumes: bool = False) -> Iterator[str]:
        """resumes: the queries are resumed now."""
        yield from self.words
        if self.stopped and not resumes:
            yield f"stopped with the last console: {', '.join(self.stopped)}; START QUERY ALL; resumes"
        yield from (f"note: {n}" for n in self.notes)
        yield from (f"warning: {w}" for w in self.warnings)


def reopen(parts: SessionParts) -> Reopened:
    """Load the workspace of a session. Raises faults for a catalog that cannot be read."""
    store = parts.store
    if store is None:
        return Reopened()
    if parts.config.read_only:
        return _follow(parts, store)
    statements = store.statements()
    warnings = []
    unreadable = store.read_status()
    if unreadable:
        warnings.append(f"{unreadable}; it is kept as {store.set_aside(STATUS)}")
    parts.queries.failures = {name: list(past.failures) for name, past in store.past.items()}
    for written in statements:
        try:
            take_up(parse(written, literal=True), parts, store)
        except Exception as error:  # an unreadable statement does not affect the others
            store.unread.append(written.text.rstrip(";") + ";")
            place = f"kept in {store.folder / CATALOG}: {_start(written.text)}"
            warnings.append(f"{translate(error).message}; {place}")
    warnings += _move_over(parts)
    for complete in extensions("reopened"):
        warnings += complete(parts)
    notes = [] if store.unread else _clear_up(parts, store.folder)
    return Reopened(_words(parts, store), (*_withheld(store), *notes), tuple(warnings), _stopped(parts))


def _withheld(store: Store) -> Iterator[Note]:
    if store.withheld:
        yield Note(
            "SETTINGS_NOT_APPLIED",
            f"settings of the workspace that can run code are not applied: {', '.join(store.withheld)} "
            "(--trust-workspace applies them)",
        )


def _follow(parts: SessionParts, store: Store) -> Reopened:
    """Load another console's workspace, now and before each statement if it has changed."""
    seen: list[tuple[int, int]] = []

    def stamp() -> tuple[int, int]:
        try:
            now = (store.folder / CATALOG).stat()
        except OSError:
            return 0, 0
        return now.st_ino, now.st_mtime_ns

    def read() -> list[str]:
        seen[:] = [stamp()]
        unreadable = store.read_status(runs=bool(holder(store.folder)))
        warnings = [unreadable] if unreadable else []
        # Spark's tables belong to this console. All else is read again, and replaced at once when complete.
        new = CurrentCatalog(Catalog(tables=parts.catalog.tables))
        reading = replace(parts, current=new)
        for written in store.statements():
            try:
                take_up(parse(written, literal=True), reading, store)
            except Exception as error:
                warnings.append(f"{translate(error).message}: {_start(written.text)}")
        parts.current.update(lambda catalog: new.snapshot)
        return warnings

    def again() -> None:
        if [stamp()] == seen:
            return
        read()
        if parts.engine.started:
            parts.temporary.restore(parts.spark)

    warnings = [*read(), *_of_earlier_version(parts)]
    parts.events.subscribe(StatementBegins, lambda event: again())
    who = holder(store.folder)
    words = (*_words(parts, store), f"read-only: it is held by {who}" if who else "read-only")
    return Reopened(words, tuple(_withheld(store)), tuple(warnings), _stopped(parts))


def _of_earlier_version(parts: SessionParts) -> Iterator[str]:
    """A warning if the folders of an earlier version were not moved over yet."""
    queries = (generations_of(parts.places, name) for name in parts.catalog.queries)
    older = Path(parts.places.folder, "live")
    if older.is_dir() and any(q.folder.is_dir() and q.current is None for q in queries):
        yield "the rows of live tables are not shown: an earlier version of streamsql has written them"
        yield "opened once without --read-only, the workspace has the form of this version"


def _words(parts: SessionParts, store: Store) -> tuple[str, ...]:
    catalog = parts.catalog
    live = len(catalog.live_tables())
    in_spark = [definition_of(s.text) for n, s in parts.temporary.statements() if not is_table(s)]
    views = [d for d in in_spark if d.kind == "view" and not is_aside(d.creates)]
    kinds = (
        ("stream", len(catalog.streams)),
        ("sink", sum(not s.is_live for s in catalog.sinks.values())),
        ("live table", live),
        ("view", len(views)),
        ("function", len(catalog.functions) + len(catalog.sql_functions)),
    )
    counts = [f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in kinds if n]
    stopped = sum(parts.workspace.past(q.name).status == "stopped" for q in catalog.named(None))
    if stopped and parts.server() is None:  # those of a Spark Connect server go on without a console
        counts.append("1 stopped query" if stopped == 1 else f"{stopped} stopped queries")
    return (f"{store.folder} holds {', '.join(counts)}",) if counts else ()


def _stopped(parts: SessionParts) -> tuple[str, ...]:
    """The queries that stopped with the last console, if the prompt has not named them yet."""
    catalog = parts.catalog
    past = {q.name: parts.workspace.past(q.name) for q in catalog.named(None)}
    return tuple(name for name, last in past.items() if last.console and not last.told)


def take_up(statement: Statement, parts: SessionParts, store: Store) -> None:
    """Add a definition to the catalog without executing its statement. Raises faults."""
    if isinstance(statement, Set):
        assert statement.key is not None and statement.value is not None
        key, value = statement.key.value, statement.value
        if can_run_code(key, value) and not parts.config.trusted:
            store.withheld[key] = value
        else:
            parts.settings.changed[key] = value
        return
    definition = planner.plan(statement, replace(parts.context(), stages=True))
    if isinstance(definition, plans.DefineStream):
        parts.define(with_schema_file(definition.stream))
    elif isinstance(definition, plans.DefineSink):
        parts.define(with_schema_file(definition.sink))
    elif isinstance(definition, plans.DefineFunction):
        parts.define(_function(definition.function, store))
    elif isinstance(definition, plans.Refresh) and _ran_as_one(definition, store):
        parts.define(replace(definition.query, inputs=()))
    elif isinstance(definition, plans.Refresh):
        parts.update(replace(definition, skip_existing=False).applied)
    elif isinstance(definition, plans.Run):
        otherwise = definition.otherwise
        if isinstance(otherwise, plans.Refresh) and _ran_in_stages(otherwise, store):
            parts.update(otherwise.applied)
        else:
            parts.define(definition.query, *((definition.sink,) if definition.define else ()))
    elif isinstance(definition, plans.DefineChange):
        parts.define(definition.change)
    elif isinstance(definition, plans.Write):
        raise NameFault("it reads no stream and no live table any more", code="UNKNOWN_LIVE_TABLE")
    elif isinstance(definition, plans.Collect) and parts.config.read_only and is_table(statement):
        pass  # the files of a table are those of the console that holds the workspace
    elif isinstance(definition, plans.Collect) and definition.defines.creates:
        parts.temporary.remember(statement, definition.defines)
        parts.define(definition.entry(definition.streaming))


def tables_in(store: Store) -> list[Table]:
    """The tables of Spark that a workspace keeps. (A reader of the workspace does not take them up.)"""
    definitions = (definition_of(written.text) for written in store.statements() if is_table(written))
    return [Table(in_default(definition.creates)) for definition in definitions]


def _ran_in_stages(plan: plans.Refresh, store: Store) -> bool:
    """Whether Spark has refused a query that only Spark reads, so that it ran in stages."""
    return any(stage.query.name.casefold() in store.past for stage in plan.stages)


def _ran_as_one(plan: plans.Refresh, store: Store) -> bool:
    """Whether an INSERT that has stages now ran as one streaming query: what it has written stays as it is,
    and its checkpoint goes on. (A live table is computed again, from stages.)
    """
    ran = plan.query.name.casefold() in store.past
    return ran and bool(plan.stages) and not plan.query.live_table and not _ran_in_stages(plan, store)


def _function(function: Function, store: Store) -> Function:
    """A function with its saved properties: its module is imported only when it is first called."""
    properties = {"kind": "table" if function.columns else "scalar"}
    return replace(function, **(properties | store.functions.get(function.name.casefold(), {})))


def _move_over(parts: SessionParts) -> Iterator[str]:
    """Give the folders of an earlier version the form of this one. Returns warnings."""
    for query in parts.catalog.queries.values():
        try:
            move_over(parts.places, query.name, tuple(filter(None, (*query.sinks, query.late))))
        except (OSError, EngineFault) as error:
            yield f"the folders of {query.name} are those of an earlier version and cannot be moved: {error}"


def _clear_up(parts: SessionParts, workspace: Path) -> list[Note]:
    """Move the folders of queries, live tables and streams that no longer exist into the trash. Returns
    notes.
    """
    catalog, places = parts.catalog, parts.places
    used = {
        "queries": {
            Path(places.query(q)).name
            for q in (*catalog.queries, *catalog.created_by_sets(), *_stages_left(parts))
        },
        "live": set[str](),  # those that are used were moved over
        "streams": {Path(places.values(s)).name for s in (*catalog.streams, *_histories(parts))},
    }
    try:
        owned_folders.clear_removed(workspace / "run")
        moved = owned_folders.put_into_trash(workspace, used)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return [Note("LEFTOVERS_NOT_MOVED", f"leftovers of the workspace could not be moved: {reason}")]
    if not moved:
        return []
    what = "a folder" if len(moved) == 1 else f"{len(moved)} folders"
    trash = workspace / owned_folders.TRASH
    listed = ", ".join(moved)
    text = f"{what} that no definition uses moved to {trash}: {listed}; EMPTY TRASH; deletes"
    return [Note("LEFTOVERS_MOVED", text)]


def _histories(parts: SessionParts) -> Iterator[str]:
    """The streams of history of the live tables, also of generations that are not in use any more."""
    yield from parts.catalog.histories()
    tables = tuple(f"{q.name}${HISTORY}_".casefold() for q in parts.catalog.queries.values() if q.live_table)
    with suppress(FileNotFoundError):
        for folder in os.listdir(Path(parts.places.values("")).parent):
            name = urllib.parse.unquote(folder)
            if name.casefold().startswith(tables):
                yield name


def _stages_left(parts: SessionParts) -> Iterator[str]:
    """The names of the stages of generations that are not in use any more."""
    for name in (*parts.catalog.queries, *parts.catalog.created_by_sets()):
        for generation in generations_of(parts.places, name).left():
            yield from generation.stages


def _start(text: str) -> str:
    """The beginning of a statement, in one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:59] + "…"


_RUNS_CODE = re.compile(
    r"""spark\.(
        master | remote | files | archives | extraListeners
      | (jars | plugins | pyspark | python | r | submit | kubernetes | metrics | executorEnv)(\..*)?
      | yarn\.appMasterEnv\..* | sql\.catalog\..*
      | .*(java.?options | class.?path | library.?path | listeners | extensions)
      | .*(discoveryScript | script | command | shell)(\..*)?
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_NAMES_CLASS = re.compile(
    r".*(class|classes|className|impl|providers?|factory|mapping|serializer|codecs?|registrator|protocol"
    r"|handler|filters|manager)",
    re.IGNORECASE,
)
_OF_SPARK = re.compile(r"[\w$-]*|org\.apache\.spark\.[\w.$]+")
"""A class of Spark, or a short name."""


def can_run_code(key: str, value: str) -> bool:
    """Whether a setting can load or run code that is not Spark's own, or send queries elsewhere."""
    if _RUNS_CODE.fullmatch(key):
        return True
    return bool(_NAMES_CLASS.fullmatch(key)) and not _OF_SPARK.fullmatch(value)
