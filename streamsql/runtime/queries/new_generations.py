"""The generation and the checkpoint of a query that is started: those in use, or new ones that are put in use
at the end.

A generation has one checkpoint for ever, also where CHECKPOINT names its folder: the id of that is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamsql.calls import run
from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import Cancelled, EngineFault, RuleFault
from streamsql.guard import log
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Run
from streamsql.plan.streaming.rules import Choice
from streamsql.runtime.checkpoints.query_marker import ANEW, Folder
from streamsql.runtime.embedded.durable_files import write_file
from streamsql.runtime.engine.settings import LOCAL_CHECKPOINTS
from streamsql.runtime.engine.spark_errors import query_fault
from streamsql.runtime.live.recorded_progress import FROM_NOW
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.query_waits import POLL
from streamsql.runtime.workspace.generations import generations_of
from streamsql.runtime.workspace.owned_folders import claim, private_folder

CHECKPOINT_ID = "checkpoint.id"
"""The file of a generation with the id of its checkpoint."""


_ACCEPT = "ACCEPT CHANGES   resumes from the checkpoint that is there"


@dataclass(frozen=True)
class Generation:
    """folder: of the generation; new: it has no rows yet. publish: puts a new one in use; discard: removes it
    unless it is in use.
    """

    folder: Path
    new: bool
    publish: Callable[[], None] = lambda: None
    discard: Callable[[], None] = lambda: None


def in_use(parts: QueryParts, plan: Run) -> Path | None:
    """The generation with which a query goes on; None for a new query. Raises EngineFault."""
    if plan.transient or plan.query.name.casefold() not in parts.catalog.queries:
        return None
    return generations_of(parts.places, plan.query.name).current


def in_generation(plan: Run, generation: Path) -> Run:
    """The plan with the checkpoint of a generation, unless CHECKPOINT names another folder."""
    return plan if plan.query.checkpoint else replace(plan, checkpoint=str(generation / "checkpoint"))


@dataclass(frozen=True)
class BeforeStart:
    """A query before it is started anew. definition: the statement that creates it, "" for none and for a
    stage; stages: the generations that its stages have in use, by their names.
    """

    definition: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)


def query_now(catalog: Catalog, places: Places, name: str) -> BeforeStart:
    """A query as it is now; nothing for one that is in no catalog."""
    query = catalog.queries.get(name.casefold())
    if query is None or query.owner:
        return BeforeStart()
    stages = {stage.name: generations_of(places, stage.name).current for stage in catalog.stages_of(name)}
    definition = query.sql(catalog.sinks.get(query.sinks[0].casefold()))
    return BeforeStart(definition, {stage: folder.name for stage, folder in stages.items() if folder})


def generation_for(parts: QueryParts, plan: Run, old: Path | None, before: BeforeStart) -> Generation:
    """The generation of a query that is started. old: the one that it continues; None for a new one; before:
    the query as it was. Raises EngineFault, OSError.
    """
    if old is not None:
        return Generation(old, new=False)
    if plan.transient:
        folder = Path(plan.checkpoint).parent
        claim(folder.parent)
        private_folder(folder)
        return Generation(folder, new=True)
    generations = generations_of(parts.places, plan.query.name)
    folder = generations.prepare()

    def publish() -> None:
        generations.leave(before.definition, before.stages)
        generations.publish(folder)
        with suppress(OSError, EngineFault):  # the next start clears them
            generations.clear(parts.config.preferences.count("generations"))

    def discard() -> None:
        generations.discard(folder)
        for sink in (*plan.query.sinks, plan.query.late):
            parts.live.forget(sink.casefold())

    return Generation(folder, True, publish, discard)


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
    recorded, now = _recorded(generation), folder.query_id()
    if not recorded or recorded == now or _compares_itself(plan) or (now and plan.begins == "accept"):
        return
    name = plan.query.name
    aside = folder.renamed(lambda other: other.query_id() == recorded)
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


def old_checkpoint(plan: Run, folder: Folder, old: Path | None) -> str:
    """Where the checkpoint before FROM BEGINNING and FROM NOW is kept; "" without one. A folder of the
    user's is moved aside. old: the generation that was in use.
    """
    if plan.begins not in ("now", "beginning"):
        return ""
    if plan.query.checkpoint:
        return folder.set_aside()
    return str(old / "checkpoint") if old is not None and (old / "checkpoint").exists() else ""


def begin_checkpoint(
    parts: QueryParts, plan: Run, choice: Choice, env: dict[str, Any], folder: Folder
) -> None:
    """Create the folder of the checkpoint; FROM NOW also skips the available input."""
    _set_checkpoint_manager(parts, plan.checkpoint)
    if not _is_url(plan.checkpoint):
        private_folder(Path(plan.checkpoint))  # Spark would let others read it
    if plan.begins not in ("now", "beginning") and folder.newest("offsets") < 0:
        folder.remove_unfinished()
    if plan.begins == "now":
        pass_over(parts, plan, choice, env)


def _set_checkpoint_manager(parts: QueryParts, checkpoint: str) -> None:
    """Set the fast checkpoint file manager, which is only safe on a local file system."""
    key = "spark.sql.streaming.checkpointFileManagerClass"
    if parts.settings.start_conf().get(key) != LOCAL_CHECKPOINTS:
        return
    if _is_url(checkpoint) and not checkpoint.startswith("file:"):
        parts.spark.conf.unset(key)
    else:
        parts.spark.conf.set(key, LOCAL_CHECKPOINTS)


def _is_url(path: str) -> bool:
    return "://" in path or path.startswith("file:")


def pass_over(parts: QueryParts, plan: Run, choice: Choice, env: dict[str, Any]) -> None:
    """Advance a new checkpoint to the current end of the input: see Run.passing_over."""
    *steps, last = plan.passing_over(choice.mode)
    run(tuple(steps), env)
    if _reads_more(env["result"]._jdf.queryExecution().analyzed()):
        raise RuleFault(
            "FROM NOW needs a query that reads only streams of the console",
            detail="this query reads a stream that only Spark knows",
            hint="CREATE STREAM … USING … for it, or omit FROM NOW",
            span=plan.body_span,
            code="FOREIGN_STREAM",
        )
    run((last,), env)
    handle = env["query"]
    try:
        while not handle.awaitTermination(POLL):
            parts.cancel.check()
    except Cancelled:
        handle.stop()
        if plan.query.checkpoint:
            Folder(parts.spark, plan.checkpoint).set_aside()
        raise
    except Exception as error:
        raise query_fault(error, plan.query.name) from error
    Folder(parts.spark, plan.checkpoint).write(FROM_NOW, "")
    run(plan.program, env)


def _reads_more(plan: Any) -> bool:
    """Whether a plan has a streaming source whose rows are not filtered out."""
    if not plan.isStreaming() or (
        plan.getClass().getSimpleName() == "Filter" and plan.condition().sql() == "false"
    ):
        return False
    children = plan.children()
    if not children.size():
        return True
    return any(_reads_more(children.apply(i)) for i in range(children.size()))
