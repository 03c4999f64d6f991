"""Plans for statements about the rows of a query as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsql.language.statements.copy import FileForm
from streamsql.plan.basic_plans import Plan


@dataclass(frozen=True)
class CopyRows(Plan):
    """COPY TO. rows: the plan of the SELECT; path: of the file."""

    rows: Plan = field(kw_only=True)
    path: str = ""
    form: FileForm = field(default_factory=lambda: FileForm(format="csv"))


@dataclass(frozen=True)
class Summary(Plan):
    """SUMMARIZE. rows: the plan of the SELECT."""

    rows: Plan = field(kw_only=True)
