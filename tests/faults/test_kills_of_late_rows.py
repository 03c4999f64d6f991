"""A console that writes late rows beside its queries is killed: the next one goes on, and each late row is in its
sink once. STREAMSQL_KILLS=10 and more kills it twice, once for each kind of sink.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from pipeline import Console, wait_for_end

ROOMS = ("streamsql/runtime/",)

DEFINITIONS = """
CREATE STREAM clicks (id INT, ts TIMESTAMP) USING json OPTIONS (path 'clicks', maxFilesPerTrigger '1')
  WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE SINK out USING noop;
CREATE SINK files USING json OPTIONS (path 'late');
CREATE SINK kept USING memory;
INSERT INTO out AS QUERY a ON LATE INTO files SELECT DISTINCT ON (id) WITHIN WATERMARK * FROM clicks;
INSERT INTO out AS QUERY b ON LATE INTO kept SELECT DISTINCT ON (id) WITHIN WATERMARK * FROM clicks;
"""
RESULT = """AWAIT QUERY ALL IDLE;
SELECT id AS kept FROM kept;
SELECT id AS late FROM LATE ROWS OF QUERY a;
SELECT id AS late_of_b FROM LATE ROWS OF QUERY b;"""


KILLED = "ab" if int(os.environ.get("STREAMSQL_KILLS", "2")) >= 10 else "a"
"""The queries whose late rows are being written when the console is killed."""


class Clicks:
    """Files of two rows on time and two that are late, once the watermark has moved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = 0
        folder.mkdir()

    def feed(self, files: int = 3) -> None:
        for _ in range(files):
            self.files += 1
            hour = f"2026-01-{1 + self.files // 20:02}T{self.files % 20 + 2:02}"
            times = (f"{hour}:00:00", f"{hour}:00:01", "2026-01-01T00:00:00", "2026-01-01T00:00:01")
            part = self.folder.parent / "part"
            part.write_text(
                "".join(json.dumps({"id": self.files * 10 + n, "ts": t}) + "\n" for n, t in enumerate(times))
            )
            part.rename(self.folder / f"{self.files:03}.json")


def ids(console: Console, column: str) -> Counter[object]:
    return Counter(row[column] for row in console.rows(column))


def test_late_rows_are_written_once_after_kills(tmp_path: Path) -> None:
    clicks = Clicks(tmp_path / "clicks")
    clicks.feed()
    console = Console(tmp_path, DEFINITIONS)
    console.until(lambda: console.said("query b started"))
    for number, query in enumerate(KILLED):
        if number:
            console = Console(tmp_path, "SHOW QUERIES; START QUERY ALL;")
            console.until(lambda console=console: console.said("started: a, b"))
        clicks.feed()
        # Late rows are being written: they are noted, and not yet known to be in the sink.
        noted = tmp_path / "w" / "run" / "queries" / query / "current" / "checkpoint" / "late_rows"
        console.until(lambda noted=noted: any(noted.glob("begun-*")), 0.002)
        jvm = console.jvm()
        console.kill("both", jvm)
        wait_for_end(jvm)
    clicks.feed(1)
    console = Console(tmp_path, RESULT, "--resume")
    console.until(lambda: console.rows("late_of_b"))
    assert "warning" not in console.words
    lines = (line for file in (tmp_path / "late").glob("*/*.json") for line in file.read_text().splitlines())
    late = Counter(json.loads(line)["id"] for line in lines)
    assert late == ids(console, "late")
    assert ids(console, "kept") == ids(console, "late_of_b")
    assert set(late.values()) == {1}
    # All but those of the first files, which came before there was a watermark.
    assert len(late) >= 2 * (clicks.files - 2)
    console.kill("both", console.jvm())
