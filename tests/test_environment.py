"""The console in poor environments: no home, a user without a name, an encoding of ASCII, no Linux, Windows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import command

from streamsql import __main__
from streamsql.config.folders import config_folder, data_folder
from streamsql.runtime.engine import unix_sockets
from streamsql.runtime.engine.start_failures import start_failure

ROOMS = ("streamsql/cli/", "streamsql/config/", "streamsql/runtime/engine/")

TEXT = "é€😀\x01"
POOR = (
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
)


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("environment", POOR, ids=["output", "locale"])
def test_json_stays_json_under_an_ascii_encoding(environment: dict[str, str], tmp_path: Path) -> None:
    """And the texts of the command line are read as UTF-8."""
    script = "SELECT '${word}' AS s, 'ü' AS t;"
    done = subprocess.run(
        command("--format", "jsonl", "-q", "-D", f"word={TEXT}", "-e", script),
        capture_output=True,
        cwd=tmp_path,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode("ascii")) == {"s": TEXT, "t": "ü"}


def test_without_a_home_there_is_none_below_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a name and without HOME, as in a container: as with HOME=/."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda user: {}[user])
    assert os.path.expanduser("~") == "~"
    assert config_folder() == Path("/.config/streamsql")
    assert data_folder() == Path("/.local/share/streamsql")


@pytest.mark.usefixtures("processes")
def test_a_user_without_a_name_is_said_to_be_the_cause(tmp_path: Path) -> None:
    thrown = Exception("Invalid UID, could not determine effective user: java.lang.NullPointerException")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        failure = start_failure(process, tmp_path / "log", 0, thrown)
        process.kill()
    user, group = os.geteuid(), os.getegid()
    assert failure.message == f"Spark needs the name of the user, and the system has none for user {user}"
    assert failure.hint == f"echo 'streamsql:x:{user}:{group}::/tmp:/bin/sh' >> /etc/passwd"


def test_windows_gets_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(__main__.os, "name", "nt")
    code = __main__.main()
    monkeypatch.undo()
    assert code == 2
    assert capsys.readouterr().err == (
        "streamsql does not run on Windows itself; it runs in WSL (wsl --install)\n"
    )


def test_a_socket_may_be_in_a_folder_of_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    path = folder / "server.sock"
    with unix_sockets.listen_at(path) as listener, unix_sockets.connect_to(path, 5) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert unix_sockets.user_of(accepted) in (os.geteuid(), None)
            client.sendall(b"hello")
            assert accepted.recv(5) == b"hello"
    assert [path.name for path in folder.iterdir()] == ["server.sock"]
