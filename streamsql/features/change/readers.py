"""What reads a stream that is promoted or rolled back, and is not staged with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.definitions import Query, before_name, is_staged, promoted_name
from streamsql.errors import Cancelled, RuleFault, Span
from streamsql.features.change.affected import relations_over
from streamsql.features.change.plan import changed_entry
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan.planner import start_plan
from streamsql.plan.streaming.readers import reads
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON
from streamsql.runtime.queries.start import check_goes_on
from streamsql.runtime.workspace.generations import CURRENT, Generations


def going_on(
    parts: SessionParts, streams: Mapping[str, Span], swapped: Collection[str], after: Catalog, word: str
) -> list[str]:
    """The running queries that read streams and go on from their checkpoints once these have other
    definitions. streams: with the places of their names; swapped: the queries that are replaced with the
    streams; after: the catalog with these definitions; word: of the statement. Raises RuleFault for a query
    that cannot go on.
    """
    if not streams:
        return []
    over = relations_over(streams, parts.catalog) | relations_over(streams, after)
    found, later = list[str](), replace(parts, current=CurrentCatalog(after))
    for query in parts.catalog.named(None):
        running = parts.queries.all.get(query.name.casefold())
        if query.name in swapped or running is None or running.status() not in GOING_ON:
            continue
        read = [name for name in over if reads(query.text, name)]
        if not read:
            continue
        try:
            with parts.cancel.holding(parts.queries.starting):
                check_goes_on(later, start_plan(query, later.context()))
        except Cancelled:
            raise
        except Exception as error:
            raise _cannot_go_on(query, error, streams, word) from error
        found.append(query.name)
    return found


def _cannot_go_on(query: Query, error: Exception, streams: Mapping[str, Span], word: str) -> RuleFault:
    fault, name = translate(error), quote_name(query.name)
    hint = f"STOP QUERY {name}; {word} {', '.join(map(quote_name, streams))}; "
    hint += f"then START QUERY {name} FROM BEGINNING; or ACCEPT CHANGES"
    if is_staged(query.name):
        hint = f"DROP STAGED {quote_name(promoted_name(query.name))};"
    elif query.live_table:
        hint += (
            f"\nor CREATE OR REPLACE LIVE TABLE {name} STAGED AS …; with its SELECT, which is promoted, too"
        )
    return RuleFault(
        f"{query.name} reads {', '.join(streams)}, and cannot go on from its checkpoint with the change",
        detail="\n".join(filter(None, (fault.message, fault.detail))),
        hint=hint,
        span=next(iter(streams.values())),
        code="IN_USE",
    )


def to_roll_back(
    parts: SessionParts, names: Iterable[Name], generation: int | None
) -> tuple[dict[str, Span], dict[str, Span]]:
    """(the streams, the live tables) that are rolled back by these names, with the places of these: a stream
    with all that was promoted with it. Raises RuleFault where a stream has no earlier definition, and where a
    live table cannot go back without a stream.
    """
    catalog = parts.catalog
    streams, tables = dict[str, Span](), dict[str, Span]()
    for name in names:
        stream = catalog.streams.get(name.value.casefold())
        if stream is None:
            tables[changed_entry(name, catalog)] = name.span
        elif before_name(stream.name).casefold() not in catalog.aside:
            raise RuleFault(
                f"no earlier definition of {stream.name} is kept",
                detail="the one is kept that PROMOTE has replaced, until the stream is changed otherwise",
                hint=f"SHOW CREATE STREAM {quote_name(stream.name)};",
                span=name.span,
                code="NO_GENERATION",
            )
        else:
            streams[stream.name] = name.span
    if parts.store is None:
        return streams, tables
    for query in catalog.named(None):
        if not query.live_table or is_staged(query.name):
            continue
        lefts = Generations(parts.places.query(query.name), CURRENT).left()
        if query.name not in tables and lefts and streams.keys() & set(lefts[0].streams):
            tables[query.name] = next(iter(streams.values()))
        if query.name not in tables:
            continue
        number = None if generation is None else str(generation)
        at = next((n for n, left in enumerate(lefts) if left.folder.name == number), 0)
        with_it = {stream for left in lefts[: at + 1] for stream in left.streams}
        if with_it - streams.keys() or (with_it and at):
            raise RuleFault(
                f"{query.name} was promoted together with {', '.join(sorted(with_it))}",
                detail="its rows before are those of the definition before",
                hint=f"ROLLBACK {', '.join(map(quote_name, sorted(with_it | streams.keys())))};",
                span=tables[query.name],
                code="IN_USE",
            )
    return streams, tables
