"""The generation of a query that is started: the one in use, or a new one that is put in use at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from streamsql.plan.plans import Run
from streamsql.runtime.queries.parts import QueryParts
from streamsql.runtime.workspace.generations import Generations
from streamsql.runtime.workspace.owned_folders import claim, private_folder


@dataclass(frozen=True)
class Generation:
    """folder: of the generation; new: it has no rows yet."""

    folder: Path
    new: bool


def in_use(parts: QueryParts, plan: Run) -> Path | None:
    """The generation with which a query goes on; None for a new query. Raises EngineFault."""
    if plan.transient or plan.query.name.casefold() not in parts.catalog.queries:
        return None
    return Generations(parts.places.query(plan.query.name)).current


def in_generation(plan: Run, generation: Path) -> Run:
    """The plan with the checkpoint of a generation, unless CHECKPOINT names another folder."""
    return plan if plan.query.checkpoint else replace(plan, checkpoint=str(generation / "checkpoint"))


@contextmanager
def generation_of(parts: QueryParts, plan: Run, old: Path | None) -> Iterator[Generation]:
    """The generation of a query that is started. old: the one that it continues; None for a new one, which is
    put in use when the block ends without an error, and else is removed. Raises EngineFault, OSError.
    """
    if old is not None:
        yield Generation(old, new=False)
        return
    if plan.transient:
        folder = Path(plan.checkpoint).parent
        claim(folder.parent)
        private_folder(folder)
        yield Generation(folder, new=True)
        return
    generations = Generations(parts.places.query(plan.query.name))
    folder = generations.prepare()
    try:
        yield Generation(folder, new=True)
        generations.publish(folder)
    except BaseException:
        generations.discard(folder)
        for sink in (*plan.query.sinks, plan.query.late):
            parts.live.forget(sink.casefold())
        raise
    generations.clear()
