"""`streamsql plan`: compares a folder with a workspace, and shows what is to be done."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamsql.cli.command_line import Command, CommandLine, Parser, add_flags, command_parser
from streamsql.cli.open_session import open_session
from streamsql.cli.open_workspace import check_workspace
from streamsql.config.preferences import Preferences
from streamsql.errors import StreamsqlError
from streamsql.features.project.comparison import Change, Project, compare, renames_of
from streamsql.features.project.definition_set import DefinitionSet, wanted
from streamsql.features.project.project_folder import Key, files_of, read_project
from streamsql.features.project.set_of_changes import staged_as_one
from streamsql.features.project.sink_differences import queries_to_stage
from streamsql.output.control_characters import harmless
from streamsql.output.printer import Printer
from streamsql.plan.chosen_dialect import translation_of
from streamsql.results import counted
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.workspace.reopen import reopen
from streamsql.runtime.workspace.store import CatalogEntry, Store

NOTHING, CHANGES, FAILED = 0, 3, 1
"""Exit codes: nothing to do; something is to be done; the folder has errors."""


def project_parser(command: str, description: str, codes: str) -> Parser:
    """The parser of a command about a folder and a workspace. codes: its exit codes but 1 and 2."""
    parser = Parser(
        prog=f"streamsql {command}",
        description=description,
        epilog=f"exit codes: {codes}, 1 an error, 2 usage",
    )
    parser.add_argument("folder", metavar="DIR", help="the folder of the project, with files *.sql")
    add_flags(parser, "-w --workspace", "-D --define", "--trust-workspace", "--dialect", "--color")
    add_flags(parser, "--config", "--no-config", "--debug")
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = project_parser(
        "plan",
        "Compare a folder of SQL files with a workspace, and change nothing.",
        "0 nothing to do, 3 there are changes",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    return parser


def line_of(options: Namespace, preferences: Preferences) -> CommandLine:
    """The command line of a console with the flags of a command of this feature. Raises UsageFault."""
    given = {name: value for name, value in vars(options).items() if name not in ("folder", "format")}
    line = CommandLine.of(Namespace(**vars(command_parser().parse_args([])) | given), preferences)
    return replace(line, workspace=str(line.folder.absolute()))  # the default one is meant, too


def workspace_parts(line: CommandLine, printer: Printer, *, is_there: bool) -> SessionParts:
    """The parts of a session that reads the workspace, and changes nothing; it may be held by a server or by
    another console. is_there: whether there is one. Raises StreamsqlError.
    """
    for warning in line.config.warnings:
        printer.warn(warning)
    reading = replace(line, read_only=True, check=True)
    session = open_session(reading, printer, line.folder / "run", line.folder if is_there else None)
    for warning in reopen(session.parts).warnings:
        printer.warn(warning)
    return session.parts


def read(options: Namespace, line: CommandLine, printer: Printer) -> Project | None:
    """The folder beside the workspace, which is only read. None: it has errors, which are printed. Raises
    StreamsqlError.
    """
    folder = Path(options.folder)
    workspace = workspace_parts(line, printer, is_there=check_workspace(line))
    present, store = DefinitionSet.of(workspace), workspace.store or Store(line.folder)
    reading = replace(line, read_only=True, check=True, trusted=True)
    own = open_session(reading, printer, line.folder / "run", None).parts
    translation = translation_of(printer.preferences["dialect"], own.catalog)
    ordered, faults = read_project(files_of(folder), own.variables, translation)
    if not faults:
        renames = renames_of(present, ordered)
        for rename in (r for r in renames if r.keeps_state):
            old = rename.before
            kind = "live_table" if shown_kind(old) == "live table" else old.kind
            try:
                present = present.renamed(kind, old.name, rename.name)
            except StreamsqlError as error:
                faults.append(next(part for part in ordered if part.key == rename.key).placed(error))
    if not faults:
        defined, faults = wanted(ordered, own, store, present)
    if not faults:
        comparison = compare(present, defined, ordered, renames)
        project = Project(line.folder, folder, tuple(ordered), present, defined, own, comparison)
        together = staged_as_one(project)
        in_set = [present.catalog.queries[part.key[1]] for part in together.inserts]
        differences = dict.fromkeys((*in_set, *queries_to_stage(project)))
        effects = comparison.effects.with_differences(list(differences))
        return replace(project, comparison=replace(comparison, effects=effects), together=together)
    for fault in faults:
        printer.error(fault)
    return None


def _plan(options: Namespace, preferences: Preferences) -> int:
    """Run `streamsql plan`. Returns the exit code."""
    line = line_of(options, preferences)
    project = read(options, line, Printer(preferences, sys.stdout, sys.stderr))
    if project is None:
        return FAILED
    print(as_json(project) if options.format == "json" else as_text(project))
    return CHANGES if project.comparison.changes else NOTHING


COMMAND = Command(_parser, _plan)


# ---- what is shown ------------------------------------------------------------------------


def shown_kind(entry: CatalogEntry) -> str:
    """The kind of an entry, as a person calls it."""
    return "live table" if entry.kind == "query" and entry.readable else entry.kind


def as_text(project: Project) -> str:
    """A comparison for a person."""
    comparison = project.comparison
    unchanged = counted(comparison.unchanged, "definition")
    staged = [f"staged: {name}" for name in project.present.staged]
    if not comparison.changes:
        return harmless("\n".join((*staged, f"nothing to do: {unchanged} unchanged")))
    places, lost = {part.key: part.place for part in project.parts}, _with_lost_rows(project)
    lines, counts = list[str](), dict[str, int]()
    for change in comparison.changes:
        counts[change.what] = counts.get(change.what, 0) + 1
        title = f"{change.what:<8} {shown_kind(change.entry)} {change.entry.name}"
        if change.wanted and change.present and change.wanted.name != change.present.name:
            title += f", formerly {change.present.name}"
        file, number = places.get(change.key, ("", 0))
        lines.append(title + (f"    {file}:{number}" if file else ""))
        lines += (f"    {line}" for line in change.difference)
        if change.key in lost:
            lines.append("    its rows are moved to the trash of the workspace")
    effects = comparison.effects
    listed = {
        "computed anew": effects.anew,
        "rows are written again into": effects.written_again,
        "the sink gets the difference": effects.differences,
        "started again": effects.resumed,
        "staged, compared and promoted as one": project.together.names,
    }
    lines += (f"{what}: {', '.join(names)}" for what, names in listed.items() if names)
    lines += staged
    lines.append(", ".join(f"{count} {what}" for what, count in counts.items()) + f"; {unchanged} unchanged")
    return harmless("\n".join(lines))


def _with_lost_rows(project: Project) -> set[Key]:
    """The changes with which rows are lost: a stream of values that is staged keeps its rows."""
    kept = {part.key for part in project.together.definitions}
    return {change.key for change in project.comparison.changes if change.loses_rows} - kept


def as_json(project: Project) -> str:
    """A comparison as one JSON document."""
    places, lost = {part.key: part.place for part in project.parts}, _with_lost_rows(project)

    def row(change: Change) -> dict[str, Any]:
        file, number = places.get(change.key, (None, None))
        return {
            "change": change.what,
            "kind": shown_kind(change.entry),
            "name": change.entry.name,
            "file": file,
            "line": number,
            "before": change.present.text if change.present else None,
            "loses_rows": change.key in lost,
            "after": change.wanted.text if change.wanted else None,
        }

    comparison = project.comparison
    document = {
        "workspace": str(project.workspace),
        "changes": [row(change) for change in comparison.changes],
        "computed_anew": list(comparison.effects.anew),
        "written_again": list(comparison.effects.written_again),
        "differences": list(comparison.effects.differences),
        "started_again": list(comparison.effects.resumed),
        "promoted_as_one": list(project.together.names),
        "staged": list(project.present.staged),
        "unchanged": comparison.unchanged,
    }
    return json.dumps(document, indent=1)
