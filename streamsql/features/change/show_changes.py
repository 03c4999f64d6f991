"""SHOW STAGED and SHOW GENERATIONS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamsql import definitions
from streamsql.definitions import in_use_name, is_before, is_staged, promoted_name, staged_name
from streamsql.features.change.statement import ShowGenerations, ShowStaged
from streamsql.results import Result, counted
from streamsql.runtime.checkpoints.checkpoint_files import LocalFiles, local_path
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.checkpoints.offsets import kind_of, step
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.evidence.source_files import files_read
from streamsql.runtime.handlers.info_table import size_text, table
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.new_generations import query_now
from streamsql.runtime.staged_progress import reading, staged_progress
from streamsql.runtime.workspace.generations import CURRENT, STAGED, Generations


def show_staged(parts: SessionParts, statement: ShowStaged) -> Result:
    rows = []
    for query in parts.catalog.named(None):
        if is_staged(query.name) and not is_before(query.name):
            name, kind = promoted_name(query.name), "query" if query.into else "live table"
            rows.append((name, kind, *_progress(parts, query.name), parts.catalog.set_of(name)))
    nothing = (None,) * 5
    for entry in parts.catalog.aside.values():
        if is_staged(entry.name):
            name, kind = in_use_name(entry.name), definitions.kind_of(entry)
            rows.append((name, kind, "", *nothing, "", "", "", "", parts.catalog.set_of(name)))
    columns = (
        "name", "kind", "status", "batch", "rows in", "of", "%", "rows", "running", "left", "read to",
        "last error", "change",
    )  # fmt: skip
    return table(columns, rows, (3, 4, 5, 6, 7), "nothing is staged")


def _progress(parts: SessionParts, staged: str) -> tuple[Any, ...]:
    """The columns of SHOW STAGED behind the name: what the change has read, of what the live table has."""
    progress, facts = staged_progress(parts, staged), parts.facts(staged)
    of = progress.of.cell if progress.of else None
    rows = parts.live.loaded(staged.casefold())
    count = None if rows is None or rows.table is None else rows.table.num_rows
    batch = facts.batch if facts.batch >= 0 else None
    times = [brief(seconds) if seconds else "" for seconds in (progress.seconds, progress.left)]
    cells = (facts.status, batch, progress.read.cell, of, progress.percent, count, *times)
    return *cells, ", ".join(_read_to(parts, staged)), facts.error


def _read_to(parts: SessionParts, staged: str) -> Iterator[str]:
    """Where a change is in its sources: how many files it has read, or the newest offsets."""
    for run in reading(parts, staged):
        for report in run.progress():
            ends = [source.get("endOffset") for source in report.get("sources", ())]
            texts = [end if isinstance(end, str) else json.dumps(end) for end in ends if end is not None]
            local = local_path(run.plan.checkpoint) is not None
            of_files = [text for text in texts if local and kind_of(text) == "files"]
            if of_files:
                yield counted(len(files_read(Checkpoint(run.plan.checkpoint))), "file")
            yield from (step(text, text) for text in texts if text not in of_files)


def show_generations(parts: SessionParts, statement: ShowGenerations) -> Result:
    rows = []
    for query in parts.catalog.named(statement.name):
        if not is_staged(query.name):
            rows += list(_generations(parts, query.name))
    columns = ("name", "generation", "status", "left at", "size", "definition")
    return table(columns, rows, (1,), "no generations")


def _generations(parts: SessionParts, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows of SHOW GENERATIONS for a query, the newest first."""
    folder, catalog = parts.places.query(name), parts.catalog
    in_use, staged = Generations(folder, CURRENT), Generations(folder, STAGED)
    found: list[tuple[Path, str, str, str]] = []
    for generations, status, query in ((in_use, "in use", name), (staged, "staged", staged_name(name))):
        if generations.current is not None and query.casefold() in catalog.queries:
            definition = query_now(catalog, parts.places, query).definition
            found.append((generations.current, status, "", definition))
    for left in in_use.left():
        found.append((left.folder, "left", f"{left.at:%Y-%m-%d %H:%M:%S}", left.definition))
    for path, status, left_at, text in sorted(found, key=lambda row: int(row[0].name), reverse=True):
        yield (
            name,
            int(path.name),
            status,
            left_at,
            size_text(LocalFiles().size(str(path))[0]),
            " ".join(text.split()),
        )
