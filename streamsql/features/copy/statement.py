"""COPY … TO and FROM files, and SUMMARIZE: the rows of a query or relation as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamsql.errors import Source, Span
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Fragment, Name, Statement, name_of
from streamsql.text_files import format_of

FORMATS = ("csv", "tsv", "json", "jsonl", "parquet")


@dataclass(frozen=True, kw_only=True)
class FileForm:
    """format: one of FORMATS, once it is checked; header: whether the first line has the names of the columns
    (None: not said); delimiter: of csv; span: of the format, or of the path that says it.
    """

    format: str
    header: bool | None = None
    delimiter: str = ","
    span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True, kw_only=True)
class Copy(Statement, topic="queries", not_on_connect="preview", needs_spark=True):
    """COPY TO: of a query, or of a relation."""

    path: Name
    form: FileForm
    query: Fragment | None = None
    name: Name | None = None

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        return {"form": _form(node)}


@dataclass(frozen=True, kw_only=True)
class CopyFrom(Statement, topic="queries", not_on_connect="preview", needs_spark=True, read_only=False):
    name: Name
    path: Name
    form: FileForm

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        return {"form": _form(node)}


@dataclass(frozen=True, kw_only=True)
class Summarize(Statement, topic="queries", not_on_connect="preview", needs_spark=True):
    query: Fragment | None = None
    name: Name | None = None


def _form(node: Node) -> FileForm:
    """The form of the file of a statement, whether or not its format is known."""
    path, written = name_of(node.get("Path")), node.get("CopyOptions")
    options = written.all("CopyOption") if written else []
    format, header, delimiter = Name(format_of(path.value), path.span), None, ","
    for option in options:
        named, heads, separates = (option.get(n) for n in ("CopyFormat", "CopyHeader", "CopyDelimiter"))
        if named:
            format = Name(named.parts[-1].value.lower(), named.span)
        elif heads:
            header = not heads.has("FALSE")
        elif separates:
            delimiter = separates.text("String")
        elif option.has("CSV"):
            format = Name("csv", option.span)
    return FileForm(format=format.value, header=header, delimiter=delimiter, span=format.span)
