"""What `--check` finds in scripts, and how it prints it: as messages, as rows in a format, or as SARIF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from streamsql import __version__
from streamsql.cli.command_line import SARIF
from streamsql.error_codes import CODES, NOTES
from streamsql.errors import Note, Source, Span, StreamsqlError
from streamsql.output.console_messages import SHOWN_ONCE
from streamsql.output.printer import Printer
from streamsql.results import Rows
from streamsql.secrets import redact_text

ERROR, NOTE = "error", "note"
"""The severities, which are levels of SARIF, too."""


class Finding(NamedTuple):
    """An error or a note of a script. line, column: 1-based, in characters; the end is the first character
    after it.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    severity: str
    code: str
    message: str
    hint: str = ""


def _place(source: Source | None, span: Span | None) -> tuple[str, int, int, int, int]:
    assert source is not None
    span = span or Span(0, 0)
    return source.name, *source.line_column(span.start), *source.line_column(max(span.end, span.start))


class Reporter:
    """Prints findings. format: "" for messages, as they come; SARIF or an output format of rows for all
    together.
    """

    def __init__(self, printer: Printer, format: str = "") -> None:
        self.printer = printer
        self.format = format
        self.findings: list[Finding] = []
        self._reported: set[Note] = set()

    def error(self, error: StreamsqlError) -> None:
        """Report an error that has a place."""
        message = f"{error.message}: {error.detail}" if error.detail else error.message
        place = _place(error.source, error.span)
        self.findings.append(Finding(*place, ERROR, error.code, message, error.hint))
        if not self.format:
            self.printer.error(error)

    def note(self, note: Note, source: Source, span: Span) -> None:
        """Report a note about a part of a script."""
        finding = Finding(*_place(source, span), NOTE, note.code, redact_text(note.text))
        if note.code in SHOWN_ONCE and note in self._reported:
            return
        self._reported.add(note)
        self.findings.append(finding)
        if not self.format:
            self.printer.remark(
                f"{finding.file}:{finding.line}:{finding.column}: note[{finding.code}]: {finding.message}"
            )

    def close(self, statements: int) -> None:
        """Print what stands at the end. statements: how many were checked."""
        if self.format == SARIF:
            self.printer.write(json.dumps(sarif(self.findings), indent=2, ensure_ascii=False).split("\n"))
        elif self.format:
            numeric = tuple(name.endswith(("line", "column")) for name in Finding._fields)
            found = Rows((), Finding._fields, self.findings, numeric)
            self.printer.write(self.printer.layout().formatted(found, self.format))
        errors = sum(finding.severity == ERROR for finding in self.findings)
        more = f", {errors} error{'' if errors == 1 else 's'}" if errors else ""
        self.printer.say(f"{statements} statement{'' if statements == 1 else 's'} checked{more}")


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """Findings as a log of SARIF 2.1.0, which CI systems show beside the lines of a change."""
    meanings = {**CODES, **NOTES}
    codes = list(dict.fromkeys(finding.code for finding in findings))
    rules = [{"id": code, "shortDescription": {"text": meanings.get(code, code)}} for code in codes]
    results = [
        {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": finding.severity,
            "message": {
                "text": f"{finding.message}\nhint: {finding.hint}" if finding.hint else finding.message
            },
            "locations": [{"physicalLocation": _location(finding)}],
        }
        for finding in findings
    ]
    driver = {"name": "streamsql", "version": __version__, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results},
        ],
    }


def _location(finding: Finding) -> dict[str, Any]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    uri = finding.file.replace("\\", "/")
    return {"artifactLocation": {"uri": uri}, "region": region}
