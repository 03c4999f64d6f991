"""The generation of a query that is started: the one in use, or a new one that is put in use at the end.

A generation has one checkpoint for ever, also where CHECKPOINT names its folder: the id of that is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from streamsql.errors import RuleFault
from streamsql.guard import log
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Run
from streamsql.runtime.checkpoints.query_marker import ANEW, Folder
from streamsql.runtime.embedded.durable_files import write_file
from streamsql.runtime.live.recorded_progress import checkpoint_id
from streamsql.runtime.queries.parts import QueryParts
from streamsql.runtime.workspace.generations import Generations
from streamsql.runtime.workspace.owned_folders import claim, private_folder

CHECKPOINT_ID = "checkpoint.id"
"""The file of a generation with the id of its checkpoint."""


_ACCEPT = "ACCEPT CHANGES   resumes from the checkpoint that is there"


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


def record_checkpoint(plan: Run, generation: Path, query: str) -> None:
    """Record the checkpoint of a generation, for `check_checkpoint`, as far as that is possible: the query
    runs already. query: the id of the checkpoint.
    """
    if _compares_itself(plan):
        return
    try:
        if _recorded(generation) != query:
            write_file(generation / CHECKPOINT_ID, lambda file: file.write(query.encode()))
    except OSError as error:
        log(error, f"another checkpoint in the place of that of {plan.query.name} will not be noticed")


def check_checkpoint(plan: Run, generation: Path, folder: Folder) -> None:
    """Raise RuleFault when a query that is to go on with a generation has another checkpoint now, or none: it
    would write again what its sinks have, or leave it out.
    """
    recorded, now = _recorded(generation), checkpoint_id(folder)
    if not recorded or recorded == now or _compares_itself(plan) or (now and plan.begins == "accept"):
        return
    name = plan.query.name
    aside = folder.renamed(lambda other: checkpoint_id(other) == recorded)
    back = f"rename {aside} to {plan.checkpoint}, where it was; or\n" if aside else ""
    ways = (*ANEW, _ACCEPT) if now else ANEW
    raise RuleFault(
        f"the checkpoint of {name} is {'another one than before' if now else 'gone'}",
        detail=f"{plan.checkpoint} records what it has read and written; without that record, its sink would "
        "get rows again, or lack rows",
        hint="\n".join((f"{back}START QUERY {quote_name(name)} with one of", *ways)),
        span=plan.body_span,
        code="OTHER_CHECKPOINT",
    )


def _compares_itself(plan: Run) -> bool:
    """Whether all that a query writes are rows of live tables, which carry the id of their checkpoint."""
    return all(target.sink.is_live for target in plan.targets)


def _recorded(generation: Path) -> str:
    """The id of the checkpoint of a generation; "" where it is not recorded."""
    try:
        return (generation / CHECKPOINT_ID).read_text("utf-8")
    except FileNotFoundError:
        return ""
