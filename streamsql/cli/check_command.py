"""`--check` and the checks of features: scripts against what a workspace holds, in which nothing changes."""

from __future__ import annotations

from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.cli.command_line import CommandLine
from streamsql.cli.dry_run import check
from streamsql.cli.open_session import open_session, scripts_of, spark_settings
from streamsql.cli.open_workspace import workspace_to_read
from streamsql.cli.unknown_names import brings_tables
from streamsql.config.folders import cache_folder
from streamsql.config.preferences import Preferences
from streamsql.feature_registry import chosen_check
from streamsql.output.printer import Printer
from streamsql.plan.context import Context
from streamsql.runtime.engine.java import JavaNotFound, find_java
from streamsql.runtime.engine.java_command import spark_defaults
from streamsql.runtime.engine.warm_engine import socket_path, wanted_engine
from streamsql.runtime.engine.warm_parser import WarmParser


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
    parser = _warm_parser(line, printer.preferences)
    try:
        return check(
            sources,
            variables,
            printer,
            context,
            closed=closed,
            settings=settings,
            parser=parser.fault if parser else None,
            format=line.findings,
        )
    finally:
        if parser:
            parser.close()


def _warm_parser(line: CommandLine, preferences: Preferences) -> WarmParser | None:
    """The parser of the Spark that waits for a console with these settings; None if none waits."""
    cache = cache_folder()
    if line.server or not socket_path(cache).exists():
        return None
    try:
        java = find_java(preferences["java"])
    except JavaNotFound:
        return None
    conf = spark_defaults() | spark_settings(line, preferences).start_conf()
    return WarmParser(wanted_engine(conf, cache / "spark.log", cache, java))
