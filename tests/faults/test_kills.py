"""Consoles are killed at any moment, and after each kill the workspace opens and nothing is lost or twice.

A short run is a part of the suite. The long one is
`STREAMSQL_KILLS=50 python -m pytest tests/faults -s`; it prints its figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from pipeline import DEFINITIONS, PATIENCE, QUERIES, RESULT, VERIFIED, Console, Pipeline, wait_for_end
from scripts import command

ROOMS = ("streamsql/runtime/",)

KILLS = int(os.environ.get("STREAMSQL_KILLS", "2"))
LONG = KILLS >= 10
MOMENTS = (
    "inside", "between", "inside", "catalog", "written", "inside", "random", "written", "between", "written",
)  # fmt: skip
"""inside: a micro-batch has begun; written: its sink has it, too, and it is not committed; between: all
input is processed; catalog: a new catalog is being written; random: at any time from the start on.
"""
KINDS = ("both", "jvm", "python")
MISSED = 5
"""Kills that may miss the first micro-batch that they are meant for: it may end before its console is dead."""
CHURN = 1500
"""Statements that each write the catalog anew."""


class Killer:
    """Starts a console on the workspace that the one before has left, and kills it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.counted = Counter[str]()
        self.churned = (0, 0)
        """The first and the last definition of the stream `churn` that may be in the catalog."""
        self.outlived = 0.0
        self.console = Console(pipeline.folder, DEFINITIONS)
        self.is_first = True

    def next_console(self, moment: str) -> None:
        script, flags = "SHOW QUERIES; SHOW STREAMS; START QUERY ALL;", ()
        if moment == "between":
            script, flags = "SHOW QUERIES; SHOW STREAMS;" + RESULT, ("--resume",)  # type: ignore[assignment]
        if moment == "catalog":
            first = self.churned[1] + 1
            script += "".join(
                f"CREATE OR REPLACE STREAM churn (n{n} INT) USING values;"
                for n in range(first, first + CHURN)
            )
        self.console = Console(self.pipeline.folder, script, *flags)
        self.is_first = False

    def opened(self) -> None:
        """What the console before has left is all there: all definitions, all queries, and why they ended."""
        console = self.console
        console.until(
            lambda: console.rows("status") and console.rows("connector") and console.said(r"started: counts")
        )
        known = {str(r["name"]): r for r in console.rows("status")}
        assert sorted(known) == sorted(QUERIES), console.words
        streams = {str(r["name"]): str(r["columns"]) for r in console.rows("connector")}
        assert sorted(streams) == ["buys", "churn", "clicks"], console.words
        assert "warning" not in console.words
        first, last = self.churned
        churned = int(streams["churn"].removeprefix("n"))
        assert first <= churned <= last, f"n{churned}: of n{first}, the last that was told, to n{last}"
        self.churned = (churned, churned)

    def run(self, moment: str, kind: str) -> None:
        """Kill the console at a moment; the next one is not started yet."""
        pipeline, console = self.pipeline, self.console
        if moment != "random":
            if self.is_first:
                console.until(lambda: console.said("query joined started"))
            else:
                self.opened()
        jvm = console.jvm()  # now: the moment of the kill must not wait for it
        if moment in ("inside", "written"):
            self.wait_inside(moment)
        elif moment == "between":
            self.compare()
        elif moment == "catalog":
            enough = pipeline.random.randrange(1, CHURN // 3)
            console.until(lambda: console.words.count("stream churn created") >= enough, 0.001)
            console.until((pipeline.folder / "w" / "catalog.sql.part").exists, 0)
        else:
            time.sleep(pipeline.random.random() * 15)  # the moment of the fault is what is tried
            jvm = console.jvm()
        started = self.is_first or console.said("started: counts")
        console.kill(kind, jvm)
        self.outlived = max(self.outlived, wait_for_end(jvm))
        self.count(moment, kind, started)
        if moment == "catalog":
            told = console.words.count("stream churn created")
            self.churned = (self.churned[1] + told, self.churned[1] + told + 1)

    def wait_inside(self, moment: str) -> None:
        """Wait for a micro-batch that is under way, each time of another query."""
        pipeline = self.pipeline
        query = QUERIES[self.counted["kills"] % len(QUERIES)]
        if moment == "written" and query == "totals":
            query = "copies"  # a look into the database would hold up who writes

        def caught() -> bool:
            batch = pipeline.under_way(query)
            if batch is None:
                return False
            return moment == "inside" or pipeline.sink_has(query, batch)

        deadline = time.monotonic() + 20  # one that is never caught is killed all the same
        self.console.until(lambda: caught() or time.monotonic() > deadline, 0.001)

    def compare(self) -> None:
        """All results are those of the whole input, row for row."""
        console, pipeline = self.console, self.pipeline
        console.until(lambda: console.said(r"\(\d+ rows?, "), patience=5 * PATIENCE)
        assert console.words.count(" is verified: ") == len(VERIFIED), console.words
        assert pipeline.results(console) == pipeline.expected()
        self.counted["comparisons"] += 1
        console.until(lambda: not any(map(pipeline.under_way, QUERIES)))

    def count(self, moment: str, kind: str, started: bool) -> None:
        """By what lies on disk once all is dead."""
        cut = [(q, b) for q in QUERIES if started and (b := self.pipeline.under_way(q)) is not None]
        held = [q for q, batch in cut if self.pipeline.sink_has(q, batch)]
        where = "inside" if cut else "between" if started else "opening"
        self.counted.update(("kills", f"moment {moment}", kind, where))
        self.counted["cut"] += len(cut)
        self.counted["held"] += len(held)
        self.counted["catalog"] += any((self.pipeline.folder / "w").glob("*.part"))
        if LONG:
            words = f"{self.counted['kills']:3} {moment:8} {kind:6} {where:7} cut {cut} held {held}"
            print(words, file=sys.stderr, flush=True)


def test_killed_consoles_lose_nothing(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, seed=int(os.environ.get("STREAMSQL_SEED", "7")))
    pipeline.feed()
    began = time.monotonic()
    killer = Killer(pipeline)
    try:
        moments = [MOMENTS[number % len(MOMENTS)] for number in range(KILLS)]
        for number, moment in enumerate(moments):
            if number:
                pipeline.feed()
                killer.next_console(moment)
            killer.run(moment, KINDS[number % len(KINDS)])
            if moment == "inside" and not killer.counted["inside"] and number < MISSED:
                moments.insert(number + 1, moment)
        if moment != "between":  # which has compared all right before the last kill
            pipeline.feed()
            killer.next_console("between")
            killer.opened()
            killer.compare()
    finally:
        killer.console.process.kill()
        killer.console.process.wait()
    counted = killer.counted
    assert counted["inside"] and counted["between"]
    if LONG:
        compare_with_a_run_that_nobody_cut_short(pipeline)
    moments = ", ".join(f"{n.removeprefix('moment ')} {c}" for n, c in counted.items() if "moment" in n)
    print(
        f"\n{counted['kills']} kills ({', '.join(f'{k} {counted[k]}' for k in KINDS)}; aimed at: {moments}): "
        f"{counted['inside']} inside micro-batches ({counted['cut']} of them cut, {counted['held']} that the sink "
        f"had already), {counted['between']} between, {counted['opening']} before the queries had started, "
        f"{counted['catalog']} with a half-written file of the workspace; {counted['comparisons']} comparisons, "
        f"{pipeline.batches()} micro-batches, {sum(map(len, pipeline.input.values()))} rows in, "
        f"a JVM outlived its console by {killer.outlived:.1f} s at most, {(time.monotonic() - began) / 60:.1f} min",
        file=sys.stderr,
    )


def compare_with_a_run_that_nobody_cut_short(pipeline: Pipeline) -> None:
    """The same statements over the same files, in a workspace of their own."""
    folder = pipeline.folder / "plain"
    folder.mkdir()
    plain = Pipeline(folder, seed=0)
    for name in plain.input:
        for file in (pipeline.folder / name).iterdir():
            (folder / name / file.name).hardlink_to(file)
    console = Console(folder, DEFINITIONS + RESULT)
    console.until(lambda: console.said(r"\(\d+ rows?, "), patience=10 * PATIENCE)
    assert plain.results(console) == pipeline.expected()
    console.kill("both", console.jvm())


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_while_the_catalog_is_written_leaves_it_whole(tmp_path: Path, moment: str) -> None:
    """The console dies right before, or right behind, the moment that the new catalog takes the old one's place."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "replace = os.replace\n"
        "def dying(source, target):\n"
        "    last = os.path.basename(target) == 'catalog.sql' and 'second' in open(source).read()\n"
        f"    if last and {moment!r} == 'before': os.kill(os.getpid(), 9)\n"
        "    replace(source, target)\n"
        "    if last: os.kill(os.getpid(), 9)\n"
        "os.replace = dying\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    script = "CREATE STREAM first (n INT) USING values; CREATE STREAM second (n INT) USING values;"
    done = subprocess.run(
        command("-w", "w", "-e", script), cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == -9, done.stderr
    again = subprocess.run(
        command("-w", "w", "--format", "csv", "-e", "SHOW STREAMS;"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    names = [line.split(",")[0] for line in again.stdout.splitlines()[1:]]
    assert names == (["first"] if moment == "before" else ["first", "second"]), again.stderr
