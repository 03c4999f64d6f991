"""SHOW STAGED and SHOW GENERATIONS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamsql.definitions import is_before, is_staged, promoted_name, staged_name
from streamsql.features.change.statement import ShowGenerations, ShowStaged
from streamsql.results import Result
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.handlers.info_table import size_text, table
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.new_generations import query_now
from streamsql.runtime.staged_progress import staged_progress
from streamsql.runtime.workspace.generations import CURRENT, STAGED, Generations


def show_staged(parts: SessionParts, statement: ShowStaged) -> Result:
    rows = []
    for query in parts.catalog.named(None):
        if is_staged(query.name) and not is_before(query.name):
            kind = "query" if query.into else "live table"
            rows.append((promoted_name(query.name), kind, *_progress(parts, query.name)))
    columns = (
        "name",
        "kind",
        "status",
        "batch",
        "rows in",
        "of",
        "%",
        "rows",
        "running",
        "left",
        "last error",
    )
    return table(columns, rows, (3, 4, 5, 6, 7), "nothing is staged")


def _progress(parts: SessionParts, staged: str) -> tuple[Any, ...]:
    """The columns of SHOW STAGED behind the name: what the change has read, of what the live table has."""
    progress, facts = staged_progress(parts, staged), parts.facts(staged)
    of = progress.of.cell if progress.of else None
    rows = parts.live.loaded(staged.casefold())
    count = None if rows is None or rows.table is None else rows.table.num_rows
    batch = facts.batch if facts.batch >= 0 else None
    times = [brief(seconds) if seconds else "" for seconds in (progress.seconds, progress.left)]
    return facts.status, batch, progress.read.cell, of, progress.percent, count, *times, facts.error


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
        yield name, int(path.name), status, left_at, size_text(_size(path)), " ".join(text.split())


def _size(folder: Path) -> int:
    """The bytes of all files in a folder, as far as these can be read."""
    total = 0
    for path, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, file)).st_size
    return total
