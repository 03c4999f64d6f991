"""The consoles of stories: one in this process, which a crash leaves behind, and a process that is killed.

`python story_console.py FOLDER` is such a process: a session on the workspace in a folder, with a Spark of its
own. It reads calls from standard input, one in a line of JSON, and answers each with a line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from test_reopened import Opened

from streamsql.errors import StreamsqlError
from streamsql.runtime.engine import jvm


class Here(Opened):
    """A console in this process. Its crash: its queries end within their micro-batches, nothing is written."""

    def leave(self) -> None:
        self.session.close()

    def crash(self) -> None:
        for query in self.session.spark.streams.active:
            query.stop()
        self.session.parts.queries.close()

    def kill_within(self, statement: str, seconds: float) -> None:
        raise NotImplementedError("only a process can be killed within a statement")


class Process:
    """A console in a process of its own. Its crash: the process and its JVM are killed."""

    def __init__(self, folder: Path) -> None:
        self.log = folder.with_name("console.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.jvm = int(self._answer()["jvm"])

    def run(self, script: str) -> object:
        return self._call("run", script)

    def rows(self, script: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._call("rows", script)]

    def text(self, script: str) -> str:
        return str(self._call("text", script))

    def leave(self) -> None:
        self._call("leave", "")
        self._end()

    def crash(self) -> None:
        for pid in (self.process.pid, self.jvm):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._end()

    def kill_within(self, statement: str, seconds: float) -> None:
        """Begin to run a statement, and kill the console so many seconds later."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(["run", statement]) + "\n")
        self.process.stdin.flush()
        time.sleep(seconds)  # the moment of the kill is what is tried
        self.crash()

    def _call(self, what: str, script: str) -> Any:
        assert self.process.stdin
        self.process.stdin.write(json.dumps([what, script]) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        if "message" in answer:
            raise StreamsqlError(
                answer["message"], detail=answer["detail"], hint=answer["hint"], code=answer["code"]
            )
        return answer["rows"]

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"the console has ended with {self.process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> None:
        """Wait until the process and its JVM have ended."""
        self.process.wait(60)
        deadline = time.monotonic() + 60
        while Path(f"/proc/{self.jvm}").exists() and _lives(self.jvm):
            assert time.monotonic() < deadline, "the JVM outlives its console"
            time.sleep(0.02)
        assert self.process.stdin and self.process.stdout
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()


def _lives(pid: int) -> bool:
    """Whether a process runs: what is left of one that was killed has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def serve(folder: Path) -> None:
    """Answer the calls of a Process."""
    from conftest import FOR_SECONDS

    os.environ["JDK_JAVA_OPTIONS"] = FOR_SECONDS
    console = Opened(folder, None)
    spark = console.session.spark
    print(json.dumps({"jvm": spark.sparkContext._gateway.proc.pid}), flush=True)
    for line in sys.stdin:
        what, script = json.loads(line)
        answer: dict[str, Any] = {"rows": []}
        try:
            if what == "leave":
                console.session.close()
            elif what in ("rows", "text"):
                answer["rows"] = getattr(console, what)(script)
            else:
                console.run(script)
        except StreamsqlError as error:
            answer = {
                "message": error.message,
                "detail": error.detail,
                "hint": error.hint,
                "code": error.code,
            }
        print(json.dumps(answer), flush=True)
        if what == "leave":
            return


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
    jvm.forget_session()
