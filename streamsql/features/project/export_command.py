"""`streamsql export`: the definitions of a workspace as a folder of SQL files."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from pathlib import Path

from streamsql.cli.command_line import Command
from streamsql.cli.open_workspace import workspace_to_read
from streamsql.config.preferences import Preferences
from streamsql.connectors.base import file_name
from streamsql.errors import InputFault, reason_of
from streamsql.features.project.definition_set import DefinitionSet, own_query, with_malformed
from streamsql.features.project.plan_command import (
    line_of,
    project_parser,
    shown_kind,
    workspace_parts,
)
from streamsql.language.redaction import lost_secret
from streamsql.output.printer import Printer
from streamsql.results import counted
from streamsql.runtime.workspace.store import CatalogEntry

_FOLDERS = {"query": "queries", "live table": "live_tables"}


def _parser() -> argparse.ArgumentParser:
    return project_parser(
        "export",
        "Write the definitions of a workspace into a new folder, a file for each. Secrets, tables of Spark, "
        "rows and checkpoints are not written.",
        "0 success",
    )


def _export(options: Namespace, preferences: Preferences) -> int:
    """Run `streamsql export`. Returns the exit code. Raises StreamsqlError."""
    line = line_of(options, preferences)
    printer = Printer(preferences, sys.stdout, sys.stderr)
    folder = Path(options.folder)
    workspace_to_read(line)
    definitions = DefinitionSet.of(workspace_parts(line, printer, is_there=True))
    of_console = {("query", own_query(stream)) for stream in with_malformed(definitions.catalog)}
    entries = [entry for key, entry in definitions.entries.items() if key not in of_console]
    texts: dict[Path, str] = {}
    for entry in entries:
        file = _file_of(folder, entry)
        texts[file] = f"{texts.get(file, '')}{entry.text};\n"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputFault(
            f"{folder} exists and is not an empty folder", hint="name a new folder", code="FOLDER_IN_USE"
        )
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    except OSError as error:
        raise InputFault(f"cannot write {folder}: {reason_of(error)}", code="FILE_NOT_WRITTEN") from None
    if secret := [entry.name for entry in entries if lost_secret(entry.text)]:
        printer.say(f"note: secrets are not written: {', '.join(secret)}")
    printer.say(f"{counted(len(entries), 'definition')} written to {folder}")
    return 0


COMMAND = Command(_parser, _export)


def _file_of(folder: Path, entry: CatalogEntry) -> Path:
    """The file of a definition. All settings are in one."""
    if entry.kind == "setting":
        return folder / "settings.sql"
    kind = shown_kind(entry)
    return folder / _FOLDERS.get(kind, f"{kind}s") / f"{file_name(entry.name)}.sql"
