"""EXPORT QUERY: a folder with which spark-submit runs queries."""

from __future__ import annotations

from streamsql.errors import InputFault, Note, reason_of
from streamsql.features.export.job import chosen_settings, job_of
from streamsql.features.export.job_folder import check_free, file_of, write_folder
from streamsql.features.export.plan import Export
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import quote_name
from streamsql.results import Done, Result
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON


def _export(parts: SessionParts, plan: Export, statement: Statement) -> Result:
    path = check_free(plan.folder)
    jobs, files = [], set[str]()
    for run in plan.queries:
        file = file_of(run.query.name, files)
        files.add(file)
        jobs.append(job_of(run, file, parts))
        parts.cancel.check()
    try:
        write_folder(path, jobs, chosen_settings(parts))
    except OSError as error:
        raise InputFault(
            f"{path} cannot be written: {reason_of(error)}",
            span=plan.folder.span,
            code="FILE_NOT_WRITTEN",
        ) from None
    names = ", ".join(run.query.name for run in plan.queries)
    return Done(_notes(parts, plan), f"exported to {path}: {names}")


def _notes(parts: SessionParts, plan: Export) -> tuple[Note, ...]:
    """A note about queries that are running: their checkpoints are in use."""
    running = [
        run.query.name
        for run in plan.queries
        if (started := parts.queries.all.get(run.query.name.casefold())) and started.status() in GOING_ON
    ]
    if not running:
        return ()
    names = ", ".join(running)
    stop = "STOP QUERY ALL;" if len(running) > 1 else f"STOP QUERY {quote_name(names)};"
    text = f"{names} runs here: {stop} before a program takes over its checkpoint"
    return (Note("CHECKPOINT_HERE", text),)


PLANS: Answers = {Export: _export}
