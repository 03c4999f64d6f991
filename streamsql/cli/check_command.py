"""`--check` and the checks of features: scripts against what a workspace holds, in which nothing changes."""

from __future__ import annotations

from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.cli.command_line import CommandLine
from streamsql.cli.dry_run import Checker, read_all
from streamsql.cli.findings import Reporter
from streamsql.cli.open_session import open_session, scripts_of
from streamsql.cli.open_workspace import workspace_to_read
from streamsql.cli.unknown_names import brings_tables
from streamsql.feature_registry import chosen_check
from streamsql.output.printer import Printer
from streamsql.plan.context import Context
from streamsql.runtime.engine.java_command import spark_defaults


def check_scripts(line: CommandLine, printer: Printer) -> int:
    """Check scripts, with what a workspace holds if one is named. Returns the exit code."""
    own_check = chosen_check(line.flags)
    sources = scripts_of(line) if line.inputs or not own_check else []
    server = line.server.planned() if line.server else None
    context, session, closed = Context(Catalog(), server=server), None, False
    if line.workspace or line.read_only:
        from streamsql.runtime.workspace.reopen import reopen, tables_in

        folder = workspace_to_read(line)
        session = open_session(line, printer, folder / "run", folder)
        for warning in reopen(session.parts).warnings:
            printer.warn(warning)
        context = session.parts.context()
        store = session.parts.store
        if store and not (line.read_only or context.server):
            context = replace(context, catalog=context.catalog.having(*tables_in(store)))
            closed = not brings_tables(spark_defaults() | session.parts.settings.start_conf())
    variables = line.variables.copy()
    if own_check:
        session = session or open_session(line, printer, line.folder, None)
        code: int = own_check(session.parts, context, sources, variables, printer)
        return code
    settings = spark_defaults() | (line.config.spark | line.conf)
    checker = Checker(context, closed=closed, settings=settings, preferences=printer.preferences)
    return read_all(sources, variables, Reporter(printer, line.findings), checker)
