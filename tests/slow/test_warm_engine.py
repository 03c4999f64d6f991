"""A warm engine: the next console takes it over, alone, and it ends with that console."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamsql.config.folders import cache_folder
from streamsql.config.preferences import COMMAND_LINE, CONFIG_FILE, SET, Preferences
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.warm_engine import stop_keeper, wanted_engine
from streamsql.runtime.engine.warm_seconds import warm_seconds

ROOMS = ("streamsql/runtime/engine/",)

PID = "SELECT java_method('java.lang.ProcessHandle', 'current') AS pid;"
SLEEP = "SELECT java_method('java.lang.Thread', 'sleep', 600000L);"
COUNTS = """
CREATE STREAM s (k STRING, ts TIMESTAMP) USING values;
INSERT INTO s VALUES ('a', TIMESTAMP '2024-05-01 12:00:00'), ('a', TIMESTAMP '2024-05-01 12:01:00');
SELECT k, count(*) AS n FROM s GROUP BY k;
SHOW TABLES;
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short name: the path of a socket has at most 108 characters."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    (folder / "streamsql").mkdir(mode=0o700)
    for file in cache_folder().glob("spark-java*"):  # the start-up cache, so that it starts as fast as others
        (folder / "streamsql" / file.name).symlink_to(file)
    yield folder
    stop_keeper(folder / "streamsql")
    shutil.rmtree(folder, ignore_errors=True)


def console(place: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "streamsql", *arguments],
        cwd=place,
        env=os.environ | {"XDG_CACHE_HOME": str(place)} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(place: Path, *arguments: str, **environment: str) -> str:
    process = console(place, *arguments, **environment)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def status(place: Path) -> str:
    return str(json.loads(ran(place, "--info"))["warm engine"])


def eventually(true: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def waiting(place: Path) -> int:
    """The process of the engine, once it waits."""
    shown = [""]

    def ready() -> bool:
        shown[0] = status(place)
        return shown[0].startswith("waits")

    assert eventually(ready), shown
    assert re.fullmatch(r"waits for \d+ s more, \d+ MB of memory, process \d+", shown[0])
    return int(shown[0].rpartition(" ")[2])


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.usefixtures("cold_start")
def test_a_check_asks_the_parser_of_the_engine_and_leaves_it(place: Path) -> None:
    script = "SET spark.sql.ansi.enabled = false;\nSELECT k, DATE 'x' FROM t;\nSELECT 1;"
    (place / "a.sql").write_text(script)
    ran(place, "--check", "a.sql")  # without an engine, nothing is known of the value of a literal
    ran(place, "-q", "-e", "SET streamsql.warm = '10 minutes'; SELECT 1 AS one;")
    engine = waiting(place)
    asked = console(place, "--check", "--format", "json", "a.sql")
    out, _ = asked.communicate(timeout=60)
    (error,) = [finding for finding in json.loads(out) if finding["severity"] == "error"]
    assert (error["line"], error["column"], error["code"]) == (2, 11, "INVALID_TYPED_LITERAL")
    ran(place, "--check", "--conf", "spark.sql.ansi.enabled=true", "a.sql")  # another engine would be needed
    assert waiting(place) == engine


@pytest.mark.usefixtures("cold_start")
def test_the_next_console_takes_the_engine_over_and_finds_it_empty(place: Path) -> None:
    ran(place, "-q", "-e", "SET streamsql.warm = '10 minutes'; SELECT 1 AS one;")
    engine = waiting(place)
    _not_for_others(place / "streamsql" / "warm.sock")
    assert waiting(place) == engine

    taken = console(place, "-q", "--warm", "10 minutes", "--format", "csv", "-e", COUNTS + PID + SLEEP)
    assert taken.stdout
    try:
        lines = [taken.stdout.readline().strip() for _ in range(6)]
        assert status(place) == "none waits"
    finally:
        taken.kill()
        taken.communicate()
    assert lines == [
        "k,n",
        "a,2",
        "name,kind,columns,rows,comment",
        's,stream,"k, ts","",""',
        "pid",
        str(engine),
    ]
    assert eventually(lambda: gone(engine)), "the engine outlived its console"


def _not_for_others(path: Path) -> None:
    """Another key, or words that are no request, get nothing, and the engine goes on waiting."""
    assert path.stat().st_mode & 0o777 == 0o600
    for words in (b'{"take": "another"}\n', b"GET / HTTP/1.0\r\n\r\n", b"[]\n", b""):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(words)
            client.shutdown(socket.SHUT_WR)
            answer = client.recv(4096)
        assert b"secret" not in answer and b"port" not in answer


def test_what_an_engine_must_have_in_common_with_a_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(**conf: str) -> str:
        return wanted_engine(conf, tmp_path / "log", tmp_path, find_java()).key

    first = key(a="1")
    monkeypatch.setenv("TERM", "another")
    assert key(**{"a": "1", "spark.sql.warehouse.dir": "/elsewhere"}) == first
    assert key(a="2") != first
    monkeypatch.setenv("AWS_PROFILE", "another")
    second = key(a="1")
    monkeypatch.chdir(tmp_path)
    assert len({first, second, key(a="1")}) == 3


@pytest.mark.parametrize(
    ("layer", "ci", "seconds"),
    [(CONFIG_FILE, "", 0.0), (COMMAND_LINE, "", 600.0), (COMMAND_LINE, "1", 600.0), (SET, "1", 600.0)],
)
def test_the_config_file_is_for_terminals(
    layer: str, ci: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    preferences = Preferences()
    preferences.set("warm", "10 min", layer)
    assert (preferences["warm"], warm_seconds(preferences)) == ("10 minutes", seconds)
