"""The tests of files: what is run, in which order, over which pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamsql.errors import InputFault, Source, Span, StreamsqlError
from streamsql.language.parser import Written, name_of_test, parse, split_script
from streamsql.output.script_files import read_file

ENDING = ".test.sql"


@dataclass(frozen=True)
class Case:
    """One TEST. before: the statements outside of tests that stand before it in its file; pipelines: the
    scripts that are loaded first.
    """

    name: str
    written: Written
    before: tuple[Written, ...] = field(repr=False)
    pipelines: tuple[Source, ...] = field(repr=False)

    @property
    def source(self) -> Source:
        return self.written.source

    @property
    def line(self) -> int:
        return self.source.line_column(self.written.span.start)[0]


@dataclass
class Collection:
    """The tests of some files, and the errors of those that cannot be read."""

    cases: list[Case] = field(default_factory=list)
    errors: list[StreamsqlError] = field(default_factory=list)


def collect(files: Iterable[str], pipelines: Sequence[str]) -> Collection:
    """The tests of files in their order. pipelines: the scripts under test; by default that beside the
    file, x.sql for x.test.sql. Raises UsageFault for a file that does not exist, InputFault for one that
    cannot be read.
    """
    given = tuple(map(read_file, pipelines))
    collection = Collection()
    for file in files:
        source = read_file(file)
        try:
            _collect(source, given or _beside(file), collection)
        except StreamsqlError as error:
            collection.errors.append(error.at(source))
    return collection


def _beside(file: str) -> tuple[Source, ...]:
    """The script that a file of tests is named after, if there is one."""
    script = script_of(file)
    return (read_file(str(script)),) if script and script.is_file() else ()


def script_of(file: str) -> Path | None:
    """The path of the script that a file of tests is named after; None for a file of another name."""
    return Path(file.removesuffix(ENDING) + ".sql") if file.endswith(ENDING) else None


def _collect(source: Source, pipelines: tuple[Source, ...], collection: Collection) -> None:
    """Add the tests of one file. Raises faults."""
    before: list[Written] = []
    names: dict[str, Case] = {}
    for written in split_script(source):
        name = name_of_test(written)
        if name is None:
            before.append(written)
            continue
        if name.value in names:
            line = names[name.value].line
            raise InputFault(
                f"there is already a test '{name}', in line {line}",
                hint="give each test of a file its own name",
                span=name.span,
                code="DUPLICATE_NAME",
            )
        names[name.value] = Case(name.value, written, tuple(before), pipelines)
        if "${" not in written.text:  # otherwise it is read when its variables are known
            try:
                parse(written, literal=True)
            except StreamsqlError as error:
                collection.errors.append(error)
    if not names:
        raise InputFault(
            f"{source.name} has no TEST",
            hint="TEST 'name' BEGIN GIVEN stream VALUES (…); EXPECT table VALUES (…); END TEST;",
            span=Span(0, 1),
            code="MISSING_TEST",
        )
    collection.cases += names.values()
