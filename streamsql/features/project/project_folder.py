"""The files of a project: the statements that define, in the order in which they can be executed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from streamsql.config.preferences import is_preference
from streamsql.connectors.registry import ENDLESS
from streamsql.errors import InputFault, NameFault, RuleFault, Source, StreamsqlError
from streamsql.language.dialects.translation import Translation
from streamsql.language.names_read import names_in_query, relations_of
from streamsql.language.parser import parse
from streamsql.language.redaction import holds_secret
from streamsql.language.script import Written, split_script
from streamsql.language.spark_definitions import definition_of, in_default
from streamsql.language.statements.base import Fragment, Name, Statement
from streamsql.language.statements.function import CreateFunction
from streamsql.language.statements.insert import Insert, InsertSet
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.session import Set
from streamsql.language.statements.sink import CreateSink
from streamsql.language.statements.spark import Spark
from streamsql.language.statements.stream import CreateStream
from streamsql.output.script_files import read_file
from streamsql.runtime.engine.kept_tables import is_table
from streamsql.runtime.workspace.store import CatalogEntry, in_order
from streamsql.secrets import redact_option

TESTS = ".test.sql"
Key = tuple[str, str]
"""The kind and the folded name of an entry."""

_KINDS: dict[type[Statement], str] = {
    CreateStream: "stream",
    CreateSink: "sink",
    CreateLiveTable: "query",
    CreateFunction: "function",
    Insert: "query",
    InsertSet: "query",
    Set: "setting",
}
_RENAMED = re.compile(r"--[ \t]*renamed from:[ \t]*(`(?:[^`]|``)+`|\S+)[ \t]*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """A statement of the folder. entry: what it defines; its text is as written. renamed_from: the earlier
    name that the comment before it says, "" without one.
    """

    written: Written = field(compare=False)
    statement: Statement = field(compare=False)
    entry: CatalogEntry
    renamed_from: str = ""

    @property
    def key(self) -> Key:
        return key_of(self.entry)

    @property
    def place(self) -> tuple[str, int]:
        """Its file and line."""
        return self.written.source.name, self.written.source.line_column(self.written.span.start)[0]

    def placed(self, fault: StreamsqlError) -> StreamsqlError:
        """A fault of this statement, with its place."""
        return fault.at(self.written.source, self.written.span)


def key_of(entry: CatalogEntry) -> Key:
    return entry.kind, entry.name.casefold()


def files_of(folder: Path) -> list[Path]:
    """The files of a project, without its tests. Raises InputFault where there are none."""
    if not folder.is_dir():
        raise InputFault(
            f"there is no folder {folder}",
            hint="streamsql plan DIR, a folder of SQL files",
            code="FILE_NOT_READ",
        )
    files = [file for file in sorted(folder.rglob("*.sql")) if not file.name.endswith(TESTS)]
    if not files:
        raise InputFault(f"there is no file *.sql in {folder}", code="FILE_NOT_READ")
    return files


def read_project(
    files: Iterable[Path], variables: Mapping[str, str], translation: Translation | None
) -> tuple[list[Part], list[StreamsqlError]]:
    """(the statements of files in the order in which they can be executed, what is wrong with them)."""
    parts, faults = dict[Key, Part](), list[StreamsqlError]()
    for file in files:
        try:
            statements = split_script(read_file(str(file)))
        except StreamsqlError as error:
            faults.append(error)
            continue
        end = 0
        for written in statements:
            before, end = written.source.text[end : written.span.start], written.span.end
            try:
                statement = parse(written, {**variables, "here": str(file.parent)}, translation=translation)
                part = Part(written, statement, _entry(statement), _renamed_from(before))
                if same := parts.get(part.key):
                    raise _twice(part, same)
                parts[part.key] = part
            except StreamsqlError as error:
                faults.append(error.at(written.source, written.span))
    settings_first = sorted((part.entry for part in parts.values()), key=lambda e: e.kind != "setting")
    ordered = in_order(settings_first)
    return [parts[key_of(entry)] for entry in ordered], faults or list(_circles(parts))


def _renamed_from(before: str) -> str:
    """The name in the comment at the end of a text between two statements."""
    found = _RENAMED.search(before.rstrip())
    return found[1].strip("`").replace("``", "`") if found else ""


def _entry(statement: Statement) -> CatalogEntry:
    """What a statement defines. Raises RuleFault for one that does not belong into a project."""
    kind = _KINDS.get(type(statement), "")
    in_spark = definition_of(statement.text) if isinstance(statement, Spark) else None
    if in_spark and in_spark.creates and not is_table(statement):
        kind = in_spark.kind
    if not kind:
        raise RuleFault(
            "a project has only statements that define",
            detail="CREATE STREAM, SINK, LIVE TABLE, FUNCTION and VIEW, INSERT … AS QUERY, EXECUTE STATEMENT "
            "SET, and SET of a setting of Spark",
            hint="leave it out of the folder",
            code="NOT_A_DEFINITION",
        )
    name = _name_of(statement)
    of_console = (CreateLiveTable, CreateStream, CreateFunction, Insert)
    if (in_spark and in_spark.staged) or (isinstance(statement, of_console) and statement.staged):
        raise RuleFault(
            "a project says what is in use, not what is staged", hint="omit STAGED", code="NOT_A_DEFINITION"
        )
    if isinstance(statement, Set):
        _check_setting(name, statement)
    if in_spark and holds_secret(statement.text):
        raise RuleFault(
            f"a {kind} with a secret is not kept in a workspace",
            hint="leave it out of the folder",
            code="SECRET_LOST",
        )
    readable = kind != "setting" and not isinstance(statement, (Insert, InsertSet))
    return CatalogEntry(kind, name, statement.text, _needs(statement), readable)


def _check_setting(key: str, statement: Set) -> None:
    """Raise RuleFault for a setting that a workspace does not keep."""
    if statement.value is None or is_preference(key) or not key.startswith("spark."):
        raise RuleFault(
            "a project has settings of Spark only", hint="SET spark.… = …;", code="NOT_A_DEFINITION"
        )
    if redact_option(key, statement.value) != statement.value:
        raise RuleFault(
            f"the workspace does not keep the setting {key}: it is a secret",
            hint="give it on the command line: --conf KEY=VALUE",
            code="SECRET_LOST",
        )


def _name_of(statement: Statement) -> str:
    """The name that a statement defines; that of an INSERT which names no query is that of its sinks."""
    if isinstance(statement, Spark):
        return in_default(definition_of(statement.text).creates)
    if isinstance(statement, Set):
        return statement.key.value if statement.key else ""
    if isinstance(statement, (Insert, InsertSet)):
        inserts = statement.inserts if isinstance(statement, InsertSet) else (statement,)
        given = statement.query_name
        targets = (name.value.rpartition(".")[2] for part in inserts for name in part.targets)
        return given.value if given else "_".join(targets)
    name: Name = statement.name  # type: ignore[attr-defined]
    return name.value


def _needs(statement: Statement) -> frozenset[str]:
    """The folded names that a statement needs, as the entry of the catalog that it makes has them."""
    if isinstance(statement, Spark):
        own = definition_of(statement.text).creates.casefold()
        return frozenset(relation.name.casefold() for relation in relations_of(statement)) - {own}
    parts = (statement, *getattr(statement, "inserts", ()))
    computed = getattr(getattr(statement, "watermark", None), "computed", None)
    queries = (computed, *(getattr(part, "query", None) for part in parts))
    texts = [query.text for query in queries if isinstance(query, Fragment)]
    targets = [name for part in parts for name in getattr(part, "targets", ())]
    clauses = [getattr(statement, clause, None) for clause in ("late", "malformed_sink")]
    named = (name.value.casefold() for name in (*targets, *clauses) if isinstance(name, Name))
    return frozenset(named).union(*map(names_in_query, texts))


def _twice(part: Part, first: Part) -> NameFault:
    file, line = first.place
    return NameFault(
        f"{part.entry.name} is defined twice",
        detail=f"the first time at {file}:{line}",
        hint="leave one of them out",
        code="DUPLICATE_NAME",
    )


def _circles(parts: Mapping[Key, Part]) -> Iterator[RuleFault]:
    """The fault of definitions that need each other. (A statement of Spark names all its words; Spark checks
    these.)
    """
    by_name = {
        part.entry.name.casefold(): part
        for part in parts.values()
        if part.entry.readable and not isinstance(part.statement, Spark)
    }
    needs = {
        name: {base for needed in part.entry.names if (base := needed.partition("$")[0]) in by_name} - {name}
        for name, part in by_name.items()
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = [by_name[name] for name in reversed(error.args[1])]
        fault = RuleFault(
            f"{circle[0].entry.name} is computed from itself",
            detail=" reads ".join(part.entry.name for part in circle),
            code="CIRCULAR_DEFINITION",
        )
        circle[0].placed(fault)
        yield fault


def needed(names: Iterable[str], parts: Sequence[Part]) -> set[Key]:
    """The entries of a folder with these folded names, and those that they name, also through others."""
    found_keys, ahead = set[Key](), set(names)
    while ahead:
        found = [p for p in parts if p.entry.name.casefold() in ahead and p.key not in found_keys]
        found_keys |= {part.key for part in found}
        ahead = set[str]().union(*(part.entry.names for part in found))
    return found_keys


def is_endless(part: Part, parts: Sequence[Part]) -> bool:
    """Whether a definition reads a stream that always has new rows, directly or through other streams."""
    streams = {p.entry.name.casefold(): p for p in parts if isinstance(p.statement, CreateStream)}
    read = [streams[name] for name in part.entry.names if name in streams]
    return any(
        statement.connector.value.casefold() in ENDLESS if statement.connector else is_endless(stream, parts)
        for stream in read
        if isinstance(statement := stream.statement, CreateStream)
    )


def edited(part: Part, text: str) -> Written:
    """The statement of a folder in another text of its file; as many statements stand before it."""
    source = part.written.source
    before = sum(other.span.start < part.written.span.start for other in split_script(source))
    return split_script(Source(source.name, text))[before]


_BEFORE_NAME = 8
"""The most words of CREATE … IF NOT EXISTS."""


def replacing(part: Part, *, staged: bool = False) -> Written:
    """The statement of the folder as CREATE OR REPLACE, with the same place. staged: a live table, whose
    change is staged.
    """
    source, tokens = part.written.source, part.written.tokens
    text, words = source.text, [token.upper for token in tokens[:_BEFORE_NAME]]
    kept = "NOT" in words and words[words.index("NOT") - 1] == "IF"
    if staged:
        name = tokens[words.index("TABLE") + (4 if kept else 1)]
        text = f"{text[: name.end]} STAGED{text[name.end :]}"
    if kept:
        at = words.index("NOT")
        text = text[: tokens[at - 1].start] + text[tokens[at + 2].start :]
    if words[1] != "OR":
        text = f"{text[: tokens[0].end]} OR REPLACE{text[tokens[0].end :]}"
    return edited(part, text)
