"""Renames: stops the queries that name an entry, gives the name to all that is kept, and starts them again.

Before the first file is changed, a record of the new names is written; once the catalog has them, it is
removed. What fails before is undone. A workspace that was not left properly is completed from the record when
it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from streamsql.errors import Note, StreamsqlError
from streamsql.features.rename.files import changes_of
from streamsql.features.rename.plan import Renamed
from streamsql.features.rename.statement import Rename
from streamsql.language.spark_definitions import definition_of
from streamsql.language.tokens import quote_name
from streamsql.plan import planner
from streamsql.plan.renaming import Renaming, with_stages
from streamsql.results import Done, Result
from streamsql.runtime.embedded.durable_files import make_folder, remove_file, sync_folder, write_file
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.kept_tables import is_table
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON
from streamsql.runtime.queries.start import start_again, start_query
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.workspace.generations import generations_of
from streamsql.runtime.workspace.store import Past, past_of

_RECORD = "rename.json"


def _rename(parts: SessionParts, plan: Renamed, statement: Rename) -> Result:
    """Until the files have the new name, an error or Ctrl-C leaves all as it was."""
    names = _with_left_stages(parts, plan)
    runs = [parts.queries.all.get(name.casefold()) for name in plan.queries]
    went_on = [run.name for run in runs if run is not None and run.status() in GOING_ON]

    def stop(name: str) -> None:
        parts.queries.stop(parts.queries.all[name.casefold()], parts.cancel)

    with parts.cancel.holding(parts.queries.starting):
        stops = [Step(partial(stop, name), partial(start_again, parts, name)) for name in went_on]
        flush = Step(parts.histories.flush)
        record = Step(partial(_write_record, parts, names), partial(_forget_record, parts))
        run_steps((*stops, flush, record, Step(lambda: _change_files(parts, names), final=True)))
        parts = parts.under(CancelToken())  # Ctrl-C would leave half of it
        notes = _take_over(parts, names, plan.queries)
        started = []
        for name in reversed(went_on):
            query = parts.catalog.queries[names.queries.get(name.casefold(), name).casefold()]
            try:
                start_query(parts, planner.start_plan(query, parts.context()))
                started.append(query.name)
            except Exception as error:
                why = translate(error, None, parts.catalog.relation_names()).message
                again = f"START QUERY {quote_name(query.name)};"
                notes += (Note("READER_STOPPED", f"{query.name} does not run any more: {why}; {again}"),)
        parts.queries.refreshes.notify()
    text = f"{plan.kind} {plan.old} is named {plan.new} now"
    if started:
        text += f"; {', '.join(started)} {'goes' if len(started) == 1 else 'go'} on from the checkpoint"
    return Done(notes, text)


def _with_left_stages(parts: SessionParts, plan: Renamed) -> Renaming:
    """The new names, also of stages that only generations have which are not in use any more."""
    names = plan.renaming
    if plan.old.casefold() not in names.queries:
        return names
    left = generations_of(parts.places, plan.old).left()
    stages = with_stages(plan.old, plan.new, (stage for one in left for stage in one.stages))
    return replace(names, queries={**names.queries, **stages}, sinks={**names.sinks, **stages})


# ---- the record ---------------------------------------------------------------------------


def _record(parts: SessionParts) -> Path:
    return Path(parts.places.folder, _RECORD)


def _write_record(parts: SessionParts, names: Renaming) -> None:
    content = json.dumps(asdict(names)).encode()
    make_folder(parts.places.folder)
    write_file(_record(parts), lambda file: file.write(content))


def _forget_record(parts: SessionParts) -> None:
    """Remove the record. It must not come back: the old name may be that of another entry then."""
    if _record(parts).exists():
        remove_file(_record(parts))
        sync_folder(parts.places.folder)


def complete(parts: SessionParts) -> list[str]:
    """Complete what a crash has interrupted in a workspace that was opened. Returns warnings about what
    cannot be completed.
    """
    try:
        names = Renaming(**json.loads(_record(parts).read_text("utf-8")))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        return [f"{_record(parts)} cannot be read, so that a rename is not completed: {error}"]
    try:
        _change_files(parts, names)
        return [f"{note}" for note in _take_over(parts, names, ())]
    except (OSError, StreamsqlError) as error:
        return [f"a rename is not completed; it is tried again with the next console: {error}"]


# ---- what is changed ----------------------------------------------------------------------


def _change_files(parts: SessionParts, names: Renaming) -> None:
    """Give the new names to the files. What fails is undone. Raises OSError, StreamsqlError."""
    run_steps(changes_of(parts.places, parts.catalog, names))


def _take_over(parts: SessionParts, names: Renaming, queries: Iterable[str]) -> tuple[Note, ...]:
    """Give the new names to what is in memory, and save it. queries: those that have stopped. Returns
    notes.
    """
    before = parts.catalog
    own = [query for name in queries for query in (name, *(stage.name for stage in before.stages_of(name)))]
    pasts, failures = _pasts(parts, own), dict(parts.queries.failures)
    rows = {name: parts.live.loaded(name) for name in names.sinks}
    for query in own:
        parts.queries.forget(query)
        parts.histories.forget(query)
        for sink in before.queries[query.casefold()].sinks:
            if parts.live.home and parts.live.home(sink):
                parts.live.forget(sink.casefold())
    parts.update(names.applied)
    for name, new in names.sinks.items():
        parts.live.forget(name)
        in_memory = rows[name]
        if in_memory is not None and not (parts.live.home and parts.live.home(new)):  # they are in no file
            parts.live[new.casefold()] = in_memory
    for name, new in names.queries.items():
        if name in failures:
            failures[new.casefold()] = failures[name]
    parts.queries.failures = {n: f for n, f in failures.items() if n in parts.catalog.queries}
    _rename_in_views(parts, names)
    if parts.store is not None:
        renamed = {new.casefold(): pasts[name] for name, new in names.queries.items() if name in pasts}
        parts.store.past = pasts | renamed
        with suppress(OSError):  # the status alone: a crash now must find that of either name
            parts.store.save_status(parts.store.past, parts.catalog.all_functions)
    notes = parts.workspace.save()
    if not notes:
        _forget_record(parts)
    return notes


def _pasts(parts: SessionParts, queries: Iterable[str]) -> dict[str, Past]:
    """The last states of queries, by folded name, those of the newest runs among them."""
    pasts = dict(parts.store.past) if parts.store is not None else {}
    for query in queries:
        running = parts.queries.all.get(query.casefold())
        if running is not None:
            pasts[query.casefold()] = past_of(running, parts.queries.failures.get(query.casefold(), ()))
    return pasts


def _rename_in_views(parts: SessionParts, names: Renaming) -> None:
    """Define the views and temporary views again that name a renamed relation."""
    spark = parts.spark if parts.engine.started else None
    for _, view in parts.temporary.statements():
        renamed = view if is_table(view) else names.view(view)
        if renamed is not view:
            parts.temporary.change(renamed, definition_of(renamed.text), spark)


PLANS: Answers = {Renamed: _rename}
