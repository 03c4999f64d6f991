"""Reads Spark's golden SQL files from Spark's own test jar: statements, each with Spark's answer or error.

A golden file `results/NAME.sql.out` holds one session. Each statement stands in three sections, which begin
with a line `-- !query`: its text, the schema of its rows, and its rows or its error.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from maven import fetched

VERSION = "4.2.0"
"""The newest release of Spark whose test jar can be had."""
JAR = f"org.apache.spark:spark-sql_2.13:{VERSION}:tests"

_RESULTS, _INPUTS, _ENDING = "sql-tests/results/", "sql-tests/inputs/", ".sql.out"
_SECTION = re.compile(r"^-- !query.*\n", re.MULTILINE)
_SECTIONS_OF_A_STATEMENT = 3
_ERROR = re.compile(r"(?:org|java|scala)\.[\w.$]*?(\w+(?:Exception|Error))\b")
_SETTINGS = re.compile(r"^--SET (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class GoldenStatement:
    """A statement of a golden file. file: the name of the file, without `.sql.out`; number: which statement of
    the file it is, from 0; error: the class of Spark's error, "" where Spark runs the statement.
    """

    file: str
    number: int
    text: str
    error: str

    @property
    def key(self) -> str:
        """File, number, and a checksum of the text, by which a test chooses statements."""
        return f"{self.file} {self.number} {self.checksum:08x}"

    @property
    def checksum(self) -> int:
        return zlib.crc32(self.text.encode())

    def shown(self, told: str) -> str:
        """The statement, with what a test has to say about it."""
        return f"{self.file}.sql, statement {self.number}:\n{self.text}\n-> {told}"

    @property
    def parses(self) -> bool:
        """Whether Spark's parser takes the statement."""
        return self.error != "ParseException"


class GoldenFiles:
    """The golden files of a test jar of Spark."""

    def __init__(self, jar: Path) -> None:
        self._jar = zipfile.ZipFile(jar)

    @cached_property
    def names(self) -> list[str]:
        """The names of all files, in the order of the alphabet. Those of single Java versions are left out."""
        paths = (p for p in self._jar.namelist() if p.startswith(_RESULTS) and p.endswith(_ENDING))
        return sorted(p.removeprefix(_RESULTS).removesuffix(_ENDING) for p in paths)

    def statements(self, file: str) -> list[GoldenStatement]:
        """The statements of a file, in their order."""
        text = self._jar.read(f"{_RESULTS}{file}{_ENDING}").decode()
        return list(_statements(file, text))

    def settings(self, file: str) -> dict[str, str]:
        """The settings of Spark with which the statements of a file run: those of its folder and its --SET."""
        settings = {}
        if file.startswith("nonansi/"):
            settings["spark.sql.ansi.enabled"] = "false"
        if file.startswith("timestampNTZ/"):
            settings["spark.sql.timestampType"] = "TIMESTAMP_NTZ"
        for line in _SETTINGS.findall(self._jar.read(f"{_INPUTS}{file}.sql").decode()):
            for pair in line.split(","):
                name, _, value = pair.partition("=")
                settings[name.strip()] = value.strip()
        return settings


def fetched_files() -> GoldenFiles:
    """The golden files of Spark's test jar, which is fetched once. Skips the test where it cannot be had."""
    folder = fetched([JAR], alone=True)
    if folder is None:
        pytest.skip(f"{JAR} cannot be fetched: mvn is missing or reaches no repository")
    return GoldenFiles(next(folder.glob("*.jar")))


def _statements(file: str, text: str) -> Iterator[GoldenStatement]:
    _, *sections = _SECTION.split(text)
    for start in range(0, len(sections), _SECTIONS_OF_A_STATEMENT):
        written, _, answer = sections[start : start + _SECTIONS_OF_A_STATEMENT]
        error = _ERROR.match(answer.strip())
        yield GoldenStatement(
            file, start // _SECTIONS_OF_A_STATEMENT, written.strip(), error.group(1) if error else ""
        )
