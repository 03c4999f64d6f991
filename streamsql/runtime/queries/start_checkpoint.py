"""The checkpoint of a query that is started: its folder, and what it begins with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamsql.calls import run
from streamsql.errors import Cancelled, Note, RuleFault
from streamsql.plan import plans
from streamsql.plan.streaming.rules import Choice
from streamsql.runtime.checkpoints.query_marker import Folder
from streamsql.runtime.engine.settings import LOCAL_CHECKPOINTS
from streamsql.runtime.engine.spark_errors import query_fault
from streamsql.runtime.live.recorded_progress import FROM_NOW
from streamsql.runtime.queries.parts import QueryParts
from streamsql.runtime.queries.query_waits import POLL
from streamsql.runtime.workspace.owned_folders import private_folder


@contextmanager
def prepared_checkpoint(
    parts: QueryParts, plan: plans.Run, choice: Choice, env: dict[str, Any], folder: Folder, old: Path | None
) -> Iterator[tuple[Note, ...]]:
    """Create the folder of the checkpoint. A folder of the user's is moved aside for FROM BEGINNING and FROM
    NOW, and back where the block ends with an error; FROM NOW also skips the available input. old: the
    generation that was in use. Gives notes.
    """
    _set_checkpoint_manager(parts, plan.checkpoint)
    begins = plan.begins in ("now", "beginning")
    aside = ""
    if begins and plan.query.checkpoint:
        aside = folder.set_aside()
    elif begins and old is not None and (old / "checkpoint").exists():
        aside = str(old / "checkpoint")
    try:
        _make_private(plan)
        if not begins and folder.newest("offsets") < 0:
            folder.remove_unfinished()
        if plan.begins == "now":
            pass_over(parts, plan, choice, env)
        yield (Note("CHECKPOINT_KEPT", f"the old checkpoint is kept as {aside}"),) if aside else ()
    except BaseException:
        if aside and plan.query.checkpoint:
            folder.put_back(aside)
        raise


def _make_private(plan: plans.Run) -> None:
    """Create the checkpoint's folder, readable by its owner only; Spark would let others read it."""
    if not _is_url(plan.checkpoint):
        private_folder(Path(plan.checkpoint))


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


def pass_over(parts: QueryParts, plan: plans.Run, choice: Choice, env: dict[str, Any]) -> None:
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
