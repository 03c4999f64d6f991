"""A changed query on an old checkpoint: recognised before the start, with what changed and the ways out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from data_files import put_whole

from streamsql.errors import RuleFault, StreamsqlError
from streamsql.output.error_text import format_error

ROOMS = ("streamsql/runtime/", "streamsql/plan/")

STREAM = (
    "CREATE OR REPLACE STREAM clicks (id INT, user STRING, ts TIMESTAMP) USING json"
    " OPTIONS (path '{folder}/in') WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES;"
)
SINK = "CREATE OR REPLACE SINK out USING foreach_batch OPTIONS (function 'test_changed_sink.take');"
COUNT = "SELECT user, count(*) AS n FROM clicks GROUP BY user"


class Place:
    """A console, a folder of input, and one checkpoint."""

    def __init__(self, console: Console, folder: Path) -> None:
        self.console = console
        self.folder = folder
        (folder / "in").mkdir()
        (folder / "test_changed_sink.py").write_text(
            "import json\n"
            "def take(batch, number):\n"
            f"    with open({str(folder / 'rows')!r}, 'a') as out:\n"
            "        out.writelines(json.dumps(r.asDict(), default=str) + '\\n' for r in batch.collect())\n"
        )
        console.session.variables["here"] = str(folder)
        self.feed("a", (1, "ann", "10:00"), (2, "bob", "10:01"))
        console.run(self.placed(STREAM + SINK))

    def placed(self, text: str) -> str:
        return text.replace("{folder}", str(self.folder))

    def feed(self, name: str, *rows: tuple[int, str, str]) -> None:
        lines = [json.dumps({"id": i, "user": u, "ts": f"2026-01-01T{t}:00"}) for i, u, t in rows]
        put_whole(self.folder / "in" / f"{name}.json", "\n".join(lines) + "\n")

    def insert(self, select: str, *, clauses: str = "", sink: str = "out") -> list[str]:
        """Run an INSERT on the checkpoint to its end. Returns the notes of its start."""
        results = self.console.run(
            f"INSERT INTO {sink} AS QUERY q {clauses} TRIGGER AVAILABLE NOW"
            f" CHECKPOINT '{self.folder}/ck' {select};"
        )
        self.console.run("AWAIT QUERY q; DROP QUERY q;")
        return list(notes_of(results[0]))

    def rows(self) -> list[dict[str, Any]]:
        """The rows that have come out since the last time."""
        file = self.folder / "rows"
        found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        file.unlink(missing_ok=True)
        return sorted(found, key=str)


@pytest.fixture
def place(console: Console, tmp_path: Path) -> Place:
    return Place(console, tmp_path)


WINDOW = "SELECT window.start AS w, user, count(*) AS n FROM clicks GROUP BY window(ts, '10 minutes'), user"


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("before", "after", "changed", "goes_on"),
    [
        (
            WINDOW,
            WINDOW.replace("10 min", "20 min"),
            "GROUP BY: window(ts, '10 minutes') → window(ts, '20 minutes')",
            True,
        ),
        (COUNT, COUNT.replace("count(*)", "sum(id)"), "SELECT: count(*) AS n → sum(id) AS n", True),
        (COUNT, COUNT.replace("GROUP", "WHERE id > 1 GROUP"), "WHERE: id > 1 added", True),
        (
            COUNT,
            COUNT.replace(" AS n", " AS n, max(id) AS m"),
            "values in the state of the aggregation: bigint → bigint, int",
            False,
        ),
        (
            COUNT,
            COUNT.replace("BY user", "BY user, id"),
            "keys in the state of the aggregation: string → string, int",
            False,
        ),
        (COUNT, "SELECT user, id AS n FROM clicks", "state: aggregation → none", False),
        (
            "SELECT DISTINCT ON (user) user, id FROM clicks",
            "SELECT user, max(id) AS id FROM clicks GROUP BY user",
            "state: deduplication → aggregation",
            False,
        ),
        (
            "SELECT id FROM clicks",
            "SELECT id FROM clicks WHERE user = 'ann'",
            "WHERE: user = 'ann' added",
            True,
        ),
    ],
)
def test_a_changed_select_is_told_apart(
    place: Place, before: str, after: str, changed: str, goes_on: bool
) -> None:
    """What Spark does about each is what the verdict says: the ways out are tried."""
    place.insert(before)
    with pytest.raises(RuleFault) as caught:
        place.insert(after)
    shown = format_error(caught.value)
    assert "has changed since its checkpoint was created" in shown
    assert changed in shown
    assert ("ACCEPT CHANGES" in shown) is goes_on
    assert "FROM BEGINNING" in shown and "FROM NOW" in shown
    if goes_on:
        notes = place.insert(after, clauses="ACCEPT CHANGES")
        assert any(changed in n for n in notes)
        assert not any("changed" in n for n in place.insert(after))
    else:
        with pytest.raises(RuleFault, match="has changed"):
            place.insert(after, clauses="ACCEPT CHANGES")


@pytest.mark.slow
def test_what_makes_no_difference_needs_no_word(place: Place) -> None:
    place.insert(COUNT)
    place.rows()
    place.console.run(place.placed(STREAM.replace("/in'", "/in', maxFilesPerTrigger '1'")))
    place.feed("b", (3, "ann", "10:02"))
    place.insert("-- the same\nselect USER,  count(*) AS n\nFROM clicks GROUP BY user")
    assert place.rows() == [{"USER": "ann", "n": 2}]


def test_another_path_watermark_and_mode_are_said(place: Place) -> None:
    place.insert(COUNT, clauses="OUTPUT MODE UPDATE")
    (place.folder / "in2").mkdir()
    other = STREAM.replace("/in'", "/in2'").replace("10 MINUTES", "1 HOUR")
    place.console.run(place.placed(other))
    with pytest.raises(RuleFault) as caught:
        place.insert(COUNT, clauses="OUTPUT MODE COMPLETE")
    detail = caught.value.detail.replace(str(place.folder), "")
    assert "path of clicks: /in → /in2" in detail
    assert "watermark of clicks: ts, 10 minutes → ts, 1 hour" in detail
    assert "output mode: update → complete" in detail
    assert "mix old results with those of the changed query" in detail


def test_another_number_and_another_kind_of_source(place: Place) -> None:
    place.insert("SELECT id FROM clicks")
    place.console.run(place.placed(STREAM.replace("STREAM clicks", "STREAM more")))
    with pytest.raises(RuleFault) as caught:
        place.insert("SELECT id FROM clicks UNION ALL SELECT id FROM more")
    assert "sources: more is also read now" in caught.value.detail
    assert "Spark cannot resume" in caught.value.detail
    place.console.run("CREATE OR REPLACE STREAM clicks USING rate;")
    with pytest.raises(RuleFault) as caught:
        place.insert("SELECT value AS id FROM clicks")
    assert "source clicks: clicks USING json → clicks USING rate" in caught.value.detail


def test_another_sink_and_a_stream_that_is_a_query(place: Place) -> None:
    place.console.run("CREATE STREAM big AS SELECT * FROM clicks WHERE id > 0; CREATE SINK other USING noop;")
    place.insert("SELECT id FROM big")
    place.console.run("CREATE OR REPLACE STREAM big AS SELECT * FROM clicks WHERE id > 1;")
    with pytest.raises(RuleFault) as caught:
        place.insert("SELECT id FROM big", sink="other")
    assert "stream big, WHERE: id > 0 → id > 1" in caught.value.detail
    assert "connector of other: foreach_batch → noop" in caught.value.detail


def test_a_console_killed_while_it_wrote_the_first_entry_of_a_log(place: Place) -> None:
    offsets = place.folder / "ck" / "offsets"
    offsets.mkdir(parents=True)
    for name in (".0.5f0e.tmp", "..0.5f0e.tmp.crc"):
        (offsets / name).write_text("v1")
    place.insert(COUNT)
    assert place.rows() == [{"n": 1, "user": "ann"}, {"n": 1, "user": "bob"}]
    assert not list(offsets.glob(".*.tmp"))


def test_from_beginning_reads_all_again(place: Place) -> None:
    place.insert(COUNT)
    place.rows()
    notes = place.insert(COUNT.replace("count(*)", "sum(id)"), clauses="FROM BEGINNING")
    assert place.rows() == [{"user": "ann", "n": 1}, {"user": "bob", "n": 2}]
    kept = next(n for n in notes if "is kept as" in n).rpartition(" ")[2]
    assert Path(kept.removeprefix("file:"), "offsets").is_dir()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (COUNT, [{"user": "ann", "n": 1}, {"user": "eve", "n": 2}]),
        ("SELECT id FROM clicks WHERE id <> 4", [{"id": 3}, {"id": 5}]),
        ("SELECT DISTINCT ON (user) user FROM clicks", [{"user": "ann"}, {"user": "eve"}]),
        (
            "SELECT c.id, d.id AS other FROM clicks c JOIN clicks d ON c.user = d.user"
            " AND d.ts BETWEEN c.ts AND c.ts + INTERVAL 1 HOUR WHERE c.id < d.id",
            [{"id": 4, "other": 5}],
        ),
    ],
)
def test_from_now_passes_over_what_is_there(place: Place, select: str, expected: list[Any]) -> None:
    """Without a row of the old input in the result, or in the state."""
    place.insert("SELECT id AS before FROM clicks")
    place.rows()
    place.insert(select, clauses="FROM NOW")
    assert place.rows() == []
    place.feed("b", (3, "ann", "10:02"), (4, "eve", "10:03"), (5, "eve", "10:04"))
    place.insert(select)
    assert place.rows() == sorted(expected, key=str)


@pytest.mark.slow
def test_live_tables_begin_anew_with_their_checkpoint(place: Place) -> None:
    console = place.console
    console.run(f"CREATE LIVE TABLE t AS {COUNT}; AWAIT QUERY t IDLE; STOP QUERY t;")
    console.run(place.placed(STREAM.replace("10 MINUTES", "1 HOUR")))
    with pytest.raises(RuleFault, match="has changed") as caught:
        console.run("START QUERY t;")
    assert "START QUERY t with one of" in caught.value.hint
    assert console.rows("SELECT * FROM t ORDER BY user;") == [("ann", 1), ("bob", 1)], "nothing is lost by it"
    console.run("START QUERY t FROM NOW; AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t;") == []
    place.feed("b", (3, "ann", "10:02"))
    console.run("AWAIT QUERY t IDLE; STOP QUERY t;")
    assert console.rows("SELECT * FROM t;") == [("ann", 1)]
    console.run("START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t ORDER BY user;") == [("ann", 2), ("bob", 1)]
    with pytest.raises(RuleFault, match="the query t is running"):
        console.run("START QUERY t FROM NOW;")


def test_start_query_all_starts_those_that_have_not_changed(place: Place) -> None:
    console = place.console
    console.run(place.placed(STREAM.replace("STREAM clicks", "STREAM more")))
    console.run(f"CREATE LIVE TABLE a AS {COUNT}; CREATE LIVE TABLE b AS {COUNT.replace('clicks', 'more')};")
    console.run("AWAIT QUERY ALL IDLE; STOP QUERY ALL;")
    console.run(place.placed(STREAM.replace("10 MINUTES", "1 HOUR")))
    with pytest.raises(RuleFault, match="the query a has changed") as caught:
        console.run("START QUERY ALL;")
    assert "started: b" in caught.value.detail
    assert [r[:2] for r in console.rows("SHOW QUERIES;")] == [("a", "stopped"), ("b", "running")]


def test_settings_that_a_checkpoint_keeps_are_said(place: Place) -> None:
    place.insert(COUNT)
    place.console.run("SET spark.sql.shuffle.partitions = 3;")
    notes = place.insert(COUNT)
    assert any(
        n == "partitions of the state: 1, as when its checkpoint was created; "
        "spark.sql.shuffle.partitions = 3 applies to new checkpoints only"
        for n in notes
    ), notes


def test_a_checkpoint_of_another_program_is_said(place: Place, spark: Any) -> None:
    frame = spark.readStream.schema("id INT, user STRING").json(f"{place.folder}/in").select("id")
    writer = frame.writeStream.format("noop").option("checkpointLocation", f"{place.folder}/ck")
    writer.trigger(availableNow=True).start().awaitTermination()
    notes = place.insert("SELECT id FROM clicks")
    assert any("was created by another program" in n for n in notes)
    assert place.rows() == [], "it went on from there"


def test_a_secret_is_no_change_and_stands_in_no_marker(place: Place) -> None:
    table = "CREATE OR REPLACE SINK s USING jdbc OPTIONS (url 'jdbc:sqlite:{folder}/x.db', table 't', password '%s');"
    console = place.console
    console.run(place.placed(table % "one-secret"))
    try:
        place.insert("SELECT id FROM clicks", sink="s")
    except StreamsqlError as error:
        pytest.skip(f"no driver: {error.message}")
    console.run(place.placed(table % "two-secret"))
    place.insert("SELECT id FROM clicks", sink="s")
    marker = (place.folder / "ck" / "streamsql.json").read_text()
    assert "one-secret" not in marker and "two-secret" not in marker


def test_a_second_query_of_a_file_sink_is_refused_while_the_first_has_written_nothing(place: Place) -> None:
    """Else Spark would skip its first micro-batches, once the first query has written its own."""
    (place.folder / "empty").mkdir()
    for path in ("{folder}/files", "file://{folder}/files"):
        name = "a" if path.startswith("{") else "b"
        place.console.run(place.placed(f"CREATE SINK {name} USING json OPTIONS (path '{path}');"))
    place.console.run(
        place.placed(
            "CREATE STREAM none (id INT) USING json OPTIONS (path '{folder}/empty');"
            "INSERT INTO a AS QUERY first SELECT id FROM none;"
        )
    )
    with pytest.raises(RuleFault, match=f"the query first writes to {place.folder}/files") as caught:
        place.insert("SELECT id FROM clicks", sink="b")
    assert "their rows would be lost" in caught.value.detail
    place.console.run("STOP QUERY first;")
    place.insert("SELECT id FROM clicks", sink="b")


def test_a_new_checkpoint_never_writes_nothing_into_an_old_folder(place: Place) -> None:
    """Spark passes over a micro-batch whose number is in the log of a file sink, whoever wrote it."""
    place.console.run(place.placed("CREATE SINK files USING json OPTIONS (path '{folder}/files');"))
    place.insert("SELECT id FROM clicks", sink="files")
    with pytest.raises(RuleFault) as caught:
        place.insert("SELECT id FROM clicks", sink="files", clauses="FROM BEGINNING")
    assert "another checkpoint has written to" in caught.value.message
    assert "their rows would be lost" in caught.value.detail
    place.feed("b", (3, "ann", "10:02"))
    place.insert("SELECT id FROM clicks", sink="files")
    assert sorted(place.console.rows(place.placed("SELECT id FROM json.`{folder}/files`;"))) == [
        (1,),
        (2,),
        (3,),
    ]


def test_from_now_is_refused_where_it_cannot_be_had(place: Place) -> None:
    with pytest.raises(RuleFault, match="FROM NOW is not supported with TRIGGER CONTINUOUS"):
        place.console.run(
            "CREATE STREAM r USING rate; CREATE SINK n USING noop;"
            "INSERT INTO n FROM NOW TRIGGER CONTINUOUS EVERY INTERVAL 1 SECOND SELECT value FROM r;"
        )
