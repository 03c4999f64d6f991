"""COPY … TO and FROM files, and SUMMARIZE: the rows of a query or relation as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from streamsql.errors import Source, Span
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Fragment, Name, Statement, fragment_of, name_of
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
class Copy(Statement):
    """COPY TO: of a query, or of a relation."""

    topic: ClassVar[str] = "queries"
    not_on_connect: ClassVar[str] = "preview"
    needs_spark: ClassVar[bool] = True

    path: Name
    form: FileForm
    query: Fragment | None = None
    name: Name | None = None

    @classmethod
    def read(cls, node: Node, source: Source) -> Copy:
        path, inner, name = name_of(node.get("Path")), node.get("CopyQuery"), node.get("RelationName")
        query = inner.get("Query") if inner else None
        return cls(
            path=path,
            form=_form(node.get("CopyOptions"), path),
            query=fragment_of(source, query) if query else None,
            name=name_of(name) if name else None,
        )


@dataclass(frozen=True, kw_only=True)
class CopyFrom(Statement):
    topic: ClassVar[str] = "queries"
    not_on_connect: ClassVar[str] = "preview"
    needs_spark: ClassVar[bool] = True
    read_only: ClassVar[bool] = False

    name: Name
    path: Name
    form: FileForm

    @classmethod
    def read(cls, node: Node, source: Source) -> CopyFrom:
        path = name_of(node.get("Path"))
        name = name_of(node.get("RelationName"))
        return cls(name=name, path=path, form=_form(node.get("CopyOptions"), path))


@dataclass(frozen=True, kw_only=True)
class Summarize(Statement):
    topic: ClassVar[str] = "queries"
    not_on_connect: ClassVar[str] = "preview"
    needs_spark: ClassVar[bool] = True

    query: Fragment | None = None
    name: Name | None = None


def _form(node: Node | None, path: Name) -> FileForm:
    """The form of a file, whether or not its format is known."""
    options = node.all("CopyOption") if node else []
    format, header, delimiter = _ending(path), None, ","
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


def _ending(path: Name) -> Name:
    """The format that the ending of a path says."""
    return Name(format_of(path.value), path.span)
