"""The program of one query as spark-submit runs it: that of EXPLAIN PYSPARK, with arguments."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from streamsql.calls import Assign, Call, Program, Var, variables_in
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.option_values import check_secrets, in_full
from streamsql.connectors.packages import Package, needed
from streamsql.definitions import Function, Sink, Stream, is_staged
from streamsql.features.export.job_arguments import JobArguments
from streamsql.language.names_read import names_in_query, relations_of
from streamsql.language.spark_definitions import path_in_options
from streamsql.language.statements.base import Statement
from streamsql.plan import planner
from streamsql.plan.plans import Collect, Run
from streamsql.plan.streaming.rules import Choice
from streamsql.runtime.checkpoints.checkpoint_files import CheckpointFolder, LocalFiles
from streamsql.runtime.engine.kept_tables import is_table
from streamsql.runtime.engine.settings import REQUIRED
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.program_helpers import sources
from streamsql.runtime.program_source import SHOW_BATCH, ProgramSource, modules_text
from streamsql.secrets import redact_option


@dataclass
class Job:
    """query: its plan; file: the name of its program; text: the program; functions: those written in Python;
    packages: that Spark needs; tables: the statements that define the tables of Spark that it reads.
    """

    query: Run
    file: str
    arguments: JobArguments
    text: str = ""
    functions: tuple[Function, ...] = ()
    packages: list[Package] = field(default_factory=list)
    tables: list[Statement] = field(default_factory=list)
    feeding: list[Run] = field(default_factory=list)

    @property
    def checkpoints(self) -> dict[str, str]:
        """The folders of the console's checkpoints, by the flag of the program's argument."""
        return {
            self.arguments.checkpoint(run.query.name).flag: in_full(run.query.checkpoint)
            or os.path.realpath(run.checkpoint)
            for run in (*self.feeding, self.query)
            if run.query.name in self.arguments.queries
        }


def job_of(plan: Run, file: str, parts: SessionParts) -> Job:
    """The job of a query. Raises EngineFault when a secret was not kept in the workspace."""
    context = parts.context()
    arguments = JobArguments(parts.places)

    def stored(table: Sink) -> Program:
        """The step that keeps the rows of a live table in a folder."""
        rows, folder = Var(rows_variable(table.name)), arguments.rows_of(table.name).node
        return (Assign("", Call(Var("persist_rows"), (rows, folder))),)

    source = ProgramSource(plan, context, arguments.rewrite, lambda run: _mode_of(run, parts), stored)
    runs = (*source.feeding, plan)
    streaming = {run.query.name: run.query.checkpoint for run in runs if not run.query.inputs}
    entries = _entries(runs)
    for run in runs:
        check_secrets(entries, run.query.text)
    arguments.begin(entries, streaming)
    job = Job(plan, file, arguments, feeding=source.feeding)
    views = _views(job, runs, parts)
    steps = (*(step for view in views for step in view), *source.steps)
    body = "".join(source.part(view) for view in views) + source.body()
    job.functions = tuple(source.functions)
    job.packages = needed(steps)
    rewritten = arguments.rewrite(steps)
    job.text = _head(job) + _helpers(rewritten, job) + _start(job, parts) + body
    return job


def _entries(runs: tuple[Run, ...]) -> list[Stream | Sink]:
    """The streams and sinks of queries, once each."""
    entries: dict[str, Stream | Sink] = {}
    for run in runs:
        late = (run.late.sink,) if run.late else ()
        for entry in (*run.reads.streams, *(t.sink for t in run.targets), *late):
            entries[entry.name.casefold()] = entry
    return list(entries.values())


def _mode_of(run: Run, parts: SessionParts) -> Choice:
    """The output mode in which a query runs, or has written its checkpoint; else the first possible one."""
    running = parts.queries.all.get(run.query.name.casefold())
    recorded = CheckpointFolder(LocalFiles(), run.checkpoint).marker().get("facts") or {}
    mode = running.mode if running else recorded.get("mode")
    return next((choice for choice in run.choices if choice.mode == mode), run.choices[0])


def _views(job: Job, runs: tuple[Run, ...], parts: SessionParts) -> list[Program]:
    """The programs that create the temporary views that queries read. Sets the tables of the job."""
    texts = [run.query.text for run in runs]
    texts += [s.query for run in runs for s in run.reads.streams if s.query]
    wanted = set[str]().union(*map(names_in_query, texts))
    statements = parts.temporary.statements()
    if any(run.reads.staged for run in runs):
        wanted |= {name for name, _ in statements if is_staged(name)}
    for name, statement in reversed(statements):
        if name in wanted:
            wanted |= {relation.name.casefold() for relation in relations_of(statement)}
    programs = []
    for name, statement in statements:
        if name not in wanted:
            continue
        if is_table(statement):
            job.tables.append(statement)
            continue
        plan = planner.plan(statement, parts.context())
        assert isinstance(plan, Collect)
        programs.append(_with_path(plan.program, statement, name, job.arguments))
    return programs


def _with_path(program: Program, statement: Statement, name: str, arguments: JobArguments) -> Program:
    """The program of a view whose path is an argument, if it has one."""
    place = path_in_options(statement.text)
    *steps, last = program
    if place is None or getattr(statement, "query", None) is not None:
        return tuple(steps) + (Assign("", last.node),)
    text = arguments.path_in(statement.text, (place.start, place.end), f"{name}-path")
    return (*steps, Assign("", Var("spark").call("sql", text)))


def _head(job: Job) -> str:
    name = " ".join(job.query.query.name.split()).replace("\\", "\\\\").replace('"', "'")
    return f'"""The streaming query {name}, exported from streamsql. README.md has the command."""\n\n'


def _helpers(steps: Program, job: Job) -> str:
    """The imports and helpers that a program needs."""
    names = variables_in(steps)
    imports, helpers = sources(names | ({"load_module"} if job.functions else set()))
    lines = {*imports.splitlines(), "import argparse", "import os"}
    shown = SHOW_BATCH if "show_batch" in names else ""
    return (
        "\n".join(sorted(lines))
        + "\n\nfrom pyspark.sql import SparkSession, functions as F\n\n"
        + (helpers + shown).lstrip("\n")
    )


def _start(job: Job, parts: SessionParts) -> str:
    """The part of a program that reads its arguments and starts Spark."""
    text = "\nparser = argparse.ArgumentParser()\n"
    text += "".join(argument.source for argument in job.arguments.ordered())
    text += "arguments = parser.parse_args()\n"
    if job.arguments.environment:
        names = ", ".join(map(repr, job.arguments.environment))
        text += f"for name in [{names}]:\n    if name not in os.environ:\n"
        text += '        parser.error(f"the environment has no variable {name}")\n'
    if job.functions or job.arguments.code:
        text += 'modules = os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules")\n'
    text += modules_text(list(job.functions), "modules")
    chosen = chosen_settings(parts)
    conf = {k: v for k, v in chosen.items() if k.startswith("spark.sql.") and redact_option(k, v) == v}
    options = "".join(f"\n    .config({k!r}, {v!r})" for k, v in conf.items())
    name = job.query.query.name
    return (
        f"{text}\nspark = (\n    SparkSession.builder.appName({name!r}){options}\n    .getOrCreate()\n)\n\n"
    )


def chosen_settings(parts: SessionParts) -> dict[str, str]:
    """The settings of Spark that the analyst has chosen, and those that queries require: other defaults of
    the console are for its own machine.
    """
    settings = parts.settings
    return REQUIRED | settings.configured | settings.given | settings.changed
