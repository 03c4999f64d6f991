"""The examples of a systemd unit and a Dockerfile: they can be read, and their commands are streamsql's."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

from streamsql.cli.arguments import command_parser, in_order
from streamsql.cli.serve_command import serve_parser
from streamsql.language.parser import parse_script

UNIT, DOCKERFILE = ROOT / "examples" / "streamsql.service", ROOT / "examples" / "Dockerfile"
INSTRUCTIONS = {
    "FROM", "COPY", "RUN", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT",
}  # fmt: skip


def check_command(words: list[str]) -> None:
    """Parse a command line as streamsql does; argparse exits for what it does not know."""
    assert Path(words[0]).name == "streamsql"
    serves = words[1:2] == ["serve"]
    parser = serve_parser() if serves else command_parser()
    options = parser.parse_args(in_order(parser, words[2 if serves else 1 :]))
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
