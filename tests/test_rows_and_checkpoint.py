"""The rows of a live table and the checkpoint of its query fit each other, or the start is refused."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import cases_of
from pyspark.sql.types import StructType
from test_reopened import Open, Opened, opened  # noqa: F401  the fixture

from streamsql.errors import StreamsqlError
from streamsql.runtime.embedded.live_files import LiveFiles
from streamsql.runtime.embedded.live_rows import LiveRows
from streamsql.runtime.live.journal import Journal, UnfitRows, UnreadableRows
from streamsql.runtime.live.recorded_progress import Recorded
from streamsql.runtime.live.result_views import ChangesView

ROOMS = ("streamsql/runtime/",)

STREAM = "CREATE STREAM s (k STRING, n INT) USING values;"
TABLES = {
    "append": "CREATE LIVE TABLE t AS SELECT k, n FROM s;",
    "update": "CREATE LIVE TABLE t AS SELECT k, sum(n) AS n FROM s GROUP BY k;",
    "complete": "CREATE LIVE TABLE t OUTPUT MODE COMPLETE AS SELECT k, sum(n) AS n FROM s GROUP BY k;",
}
BATCHES = ("('a', 1), ('b', 2)", "('a', 3)", "('c', 4)")
ANEW = "START QUERY t FROM BEGINNING; computes them again"


def right(mode: str, *more: tuple[str, int]) -> list[tuple[str, int]]:
    rows = [("a", 1), ("b", 2), ("a", 3), ("c", 4), *more]
    if mode == "append":
        return sorted(rows)
    return sorted((k, sum(n for key, n in rows if key == k)) for k in {k for k, _ in rows})


def feed(console: Opened, *values: str) -> None:
    for each in values:
        console.run(f"INSERT INTO s VALUES {each}; AWAIT QUERY t IDLE;")


def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The checkpoint and the rows of t."""
    current = tmp_path / "w/run/queries/t/current"
    return current / "checkpoint", current / "rows/t"


def drop_checkpoint(checkpoint: Path, rows: Path) -> None:
    shutil.rmtree(checkpoint)


def drop_rows(checkpoint: Path, rows: Path) -> None:
    shutil.rmtree(rows)


def drop_files(checkpoint: Path, rows: Path) -> None:
    for file in rows.glob("[0-9]*"):
        file.unlink()


def drop_the_last(checkpoint: Path, rows: Path) -> None:
    newest = max(rows.glob("[0-9]*"), key=lambda file: int(file.stem))
    newest.unlink()


def other_checkpoint(checkpoint: Path, rows: Path) -> None:
    (checkpoint / "metadata").write_text('{"id":"9a4d7b0e-77a5-4e5f-8a6e-0f6f0c9e4d11"}')
    (checkpoint / ".metadata.crc").unlink(missing_ok=True)


def drop_one_between(checkpoint: Path, rows: Path) -> None:
    (rows / "1.new").unlink()


HARMS = {
    "the checkpoint is gone": (drop_checkpoint, "and the checkpoint of its query is gone"),
    "the folder of the rows is gone": (drop_rows, "the files of its rows are gone"),
    "the files of the rows are gone": (
        drop_files,
        "it has no rows, and the checkpoint of its query has comm",
    ),
    "the last file is gone": (drop_the_last, "and the checkpoint of its query has committed micro-batch 2"),
    "another checkpoint": (other_checkpoint, "its rows are of another checkpoint"),
}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "table",
    cases_of({f"{mode}-{harm}": (mode, harm) for mode in TABLES for harm in HARMS}, 6),
)
def test_what_does_not_fit_is_refused_and_from_beginning_computes_it_again(
    opened: Open, tmp_path: Path, table: tuple[str, str]
) -> None:
    mode, harm = table
    first = opened()
    first.run(STREAM + TABLES[mode])
    feed(first, *BATCHES)
    assert sorted(first.rows("SELECT * FROM t;")) == right(mode)
    again = opened()
    how, reason = HARMS[harm]
    how(*folders(tmp_path))
    for statement in ("START QUERY t;", "SELECT * FROM t;"):
        with pytest.raises(StreamsqlError) as refused:
            again.run(statement)
        assert refused.value.code == "ROWS_NOT_OF_CHECKPOINT", refused.value
        assert refused.value.message == "the rows of t do not fit the checkpoint of its query"
        assert reason in refused.value.detail
        assert refused.value.hint == ANEW
    shown = {row[0]: row[-1] for row in again.rows("SHOW LIVE TABLES;")}
    assert ANEW in shown["t"]
    again.run(f"{ANEW.partition(';')[0]}; AWAIT QUERY t IDLE;")
    assert sorted(again.rows("SELECT * FROM t;")) == right(mode)
    feed(again, "('d', 5)")
    assert sorted(opened().rows("SELECT * FROM t;")) == right(mode, ("d", 5))


def test_a_checkpoint_that_is_removed_between_stop_and_start_of_one_console(
    opened: Open, tmp_path: Path
) -> None:
    """Else the micro-batches of the new checkpoint would be skipped as applied before."""
    console = opened()
    console.run(STREAM + TABLES["append"])
    feed(console, *BATCHES)
    console.run("STOP QUERY t;")
    drop_checkpoint(*folders(tmp_path))
    with pytest.raises(StreamsqlError, match="do not fit the checkpoint") as refused:
        console.run("START QUERY t;")
    assert (refused.value.code, refused.value.hint) == ("ROWS_NOT_OF_CHECKPOINT", ANEW)
    console.run("START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert sorted(console.rows("SELECT * FROM t;")) == right("append")


def test_a_file_that_is_missing_between_others_is_noticed(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(STREAM + TABLES["append"])
    feed(first, *BATCHES)
    again = opened()
    drop_one_between(*folders(tmp_path))
    for statement in ("START QUERY t;", "SELECT * FROM t;"):
        with pytest.raises(StreamsqlError, match="^the rows of t cannot be read$") as refused:
            again.run(statement)
        assert refused.value.code == "ROWS_NOT_READ"
        assert "the file of micro-batch 1, which 2.new continues, is missing" in refused.value.detail
    again.run("START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert sorted(again.rows("SELECT * FROM t;")) == right("append")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "mode", ["append", *(pytest.param(m, marks=pytest.mark.slow) for m in ("update", "complete"))]
)
@pytest.mark.parametrize("logs", [("offsets", "commits"), ("commits",)])
def test_micro_batches_that_spark_has_lost_are_computed_again(
    opened: Open, tmp_path: Path, mode: str, logs: tuple[str, ...]
) -> None:
    """Spark does not sync its log: a loss of power may take its newest entries."""
    first = opened()
    first.run(STREAM + TABLES[mode])
    feed(first, *BATCHES)
    again = opened()
    checkpoint, _ = folders(tmp_path)
    for log in logs:
        (checkpoint / log / "2").unlink()
        (checkpoint / log / ".2.crc").unlink(missing_ok=True)
    feed_now = "('d', 5)"
    again.run(f"INSERT INTO s VALUES {feed_now}; START QUERY t; AWAIT QUERY t IDLE;")
    assert sorted(again.rows("SELECT * FROM t;")) == right(mode, ("d", 5))
    assert sorted(opened().rows("SELECT * FROM t;")) == right(mode, ("d", 5))


def test_rows_of_an_earlier_version_are_continued_and_written_anew(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(STREAM + TABLES["append"])
    feed(first, *BATCHES)
    opened(started=False)
    _, rows = folders(tmp_path)
    as_before(rows)
    again = opened()
    assert sorted(again.rows("SELECT * FROM t;")) == right("append")
    again.run("START QUERY t;")
    assert (rows / "2.all").exists(), "all rows, with the id of the checkpoint"
    feed(again, "('d', 5)")
    assert sorted(opened().rows("SELECT * FROM t;")) == right("append", ("d", 5))
    assert json.loads((rows / "kind.json").read_text())["version"] == 4


def as_before(rows: Path) -> None:
    """Give the files of rows the form of version 3: without the id of the checkpoint and the file before."""
    import pyarrow as pa

    kind = json.loads((rows / "kind.json").read_text())
    (rows / "kind.json").write_text(json.dumps(kind | {"version": 3}))
    for file in [*rows.glob("*.new"), *rows.glob("*.all")]:
        table = pa.ipc.open_file(file.read_bytes()).read_all().replace_schema_metadata({})
        with pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)


def test_rows_of_an_earlier_version_without_their_checkpoint_are_refused(
    opened: Open, tmp_path: Path
) -> None:
    first = opened()
    first.run(STREAM + TABLES["append"])
    feed(first, *BATCHES)
    again = opened()
    checkpoint, rows = folders(tmp_path)
    as_before(rows)
    shutil.rmtree(checkpoint)
    with pytest.raises(StreamsqlError, match="do not fit the checkpoint"):
        again.run("START QUERY t;")
    again.run("START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert sorted(again.rows("SELECT * FROM t;")) == right("append")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("cut", [0, 20])
def test_a_damaged_record_of_the_query_is_an_error_with_ways_out(
    opened: Open, tmp_path: Path, cut: int
) -> None:
    first = opened()
    first.run(STREAM + TABLES["append"])
    feed(first, *BATCHES)
    again = opened()
    checkpoint, _ = folders(tmp_path)
    marker = checkpoint / "streamsql.json"
    whole = marker.read_bytes()
    marker.write_bytes(whole[:cut])
    with pytest.raises(StreamsqlError) as refused:
        again.run("START QUERY t;")
    assert refused.value.code == "DAMAGED_CHECKPOINT"
    assert refused.value.message == "the checkpoint of t has a damaged record of its query"
    assert "START QUERY t with one of" in refused.value.hint
    assert "ACCEPT CHANGES   resumes from the old checkpoint" in refused.value.hint
    again.run("START QUERY t ACCEPT CHANGES; AWAIT QUERY t IDLE;")
    assert sorted(again.rows("SELECT * FROM t;")) == right("append")
    assert json.loads(marker.read_text()) == json.loads(whole), "it is written again"
    third = opened()
    marker.write_bytes(whole[:cut])
    third.run("START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert sorted(third.rows("SELECT * FROM t;")) == right("append")


def test_from_now_begins_without_rows_and_is_resumed(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(STREAM + TABLES["append"])
    feed(first, *BATCHES)
    first.run("STOP QUERY t; START QUERY t FROM NOW; AWAIT QUERY t IDLE;")
    again = opened()
    assert again.rows("SELECT * FROM t;") == []
    again.run("START QUERY t;")
    feed(again, "('d', 5)")
    assert opened().rows("SELECT * FROM t;") == [("d", 5)]


@pytest.mark.slow
def test_late_rows_are_refused_without_their_files(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(
        """CREATE STREAM s (k STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;
        CREATE SINK late USING memory;
        CREATE LIVE TABLE t ON LATE INTO late AS
          SELECT window(at, '1 minute').start AS w, count(*) AS n FROM s GROUP BY window(at, '1 minute');"""
    )
    for at in ("12:00", "13:00", "13:01", "11:00", "13:05"):
        feed(first, f"('a', '2024-05-01 {at}:00')")
    first.run("STOP QUERY t;")
    assert len(first.rows("SELECT * FROM late;")) == 1
    assert len(opened().rows("SELECT * FROM late;")) == 1
    again = opened()
    shutil.rmtree(tmp_path / "w/run/queries/t/current/rows/late")
    for statement in ("START QUERY t;", "SELECT * FROM late;"):
        with pytest.raises(StreamsqlError, match="the rows of late do not fit the checkpoint") as refused:
            again.run(statement)
        assert refused.value.hint == ANEW
    again.run("START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert again.rows("SELECT * FROM t;")


CHANGES = """CREATE LIVE TABLE sums AS SELECT k, sum(n) AS n FROM s GROUP BY k;
CREATE SINK log USING memory;
INSERT INTO log AS QUERY q SELECT * FROM sums;
"""
HARMED = {
    "the record of what was written": lambda q: shutil.rmtree(q / "written"),
    "its first file": lambda q: (q / "written/kind.json").write_text("{"),
    "its rows": lambda q: next((q / "written").glob("*.all")).write_bytes(b"x"),
}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("harm", HARMED)
def test_a_query_of_changes_without_its_record_is_refused(opened: Open, tmp_path: Path, harm: str) -> None:
    """Else all rows would be written again as new ones."""
    first = opened()
    first.run(STREAM + CHANGES + "INSERT INTO s VALUES ('a', 1); AWAIT QUERY ALL IDLE;")
    assert first.rows("SELECT * FROM log;") == [("+I", "a", 1)]
    again = opened()
    HARMED[harm](tmp_path / "w/run/queries/q/current")
    again.run("START QUERY sums;")
    with pytest.raises(StreamsqlError) as refused:
        again.run("START QUERY q;")
    assert refused.value.code == "ROWS_NOT_READ"
    assert refused.value.message == "what q has written into its sink is not known"
    assert "FROM BEGINNING   writes all rows again" in refused.value.hint
    again.run("START QUERY q FROM BEGINNING; AWAIT QUERY q IDLE;")
    assert again.rows("SELECT * FROM log;") == [("+I", "a", 1)]


# ---- without Spark --------------------------------------------------------------------------------


def keyed_rows() -> LiveRows:
    return LiveRows(StructType().add("k", "string").add("n", "long"), "update", ["k"], 1_000)


def batch(key: str, n: int) -> pa.Table:
    return pa.table({"k": [key], "n": pa.array([n], pa.int64()), LiveRows.KEY: [key]})


def test_a_reader_never_takes_a_micro_batch_without_the_one_before(tmp_path: Path) -> None:
    """A folder that is listed while another console writes may show the newer of two files only."""
    rows = keyed_rows()
    Journal(tmp_path / "t").begin(rows)
    rows.take(batch("a", 1), 0)
    reader = Journal(tmp_path / "t")
    taken = reader.refresh(None)
    assert taken is not None and taken.last_batch == 0
    rows.take(batch("b", 2), 1)
    rows.take(batch("a", 3), 2)
    (tmp_path / "t/1.new").rename(tmp_path / "hidden")
    with pytest.raises(
        UnreadableRows, match=r"the file of micro-batch 1, which 2\.new continues, is missing"
    ):
        reader.refresh(taken)
    assert taken.last_batch == 0
    (tmp_path / "hidden").rename(tmp_path / "t/1.new")
    again = reader.refresh(taken)
    assert again is not None and again.rows()[0].to_pydict() == {"k": ["b", "a"], "n": [2, 3]}


def test_the_files_of_a_live_table_stay_few_and_can_go_back(tmp_path: Path) -> None:
    rows, folder = keyed_rows(), tmp_path / "t"
    journal = Journal(folder)
    journal.begin(rows)
    for number in range(250):
        rows.take(batch(f"k{number % 3}", number) if number % 5 else batch("x", 0).slice(0, 0), number)
    assert len(list(folder.iterdir())) < 2 * LiveFiles.COMPACT + 60
    whole = Journal(folder).load()
    assert whole is not None and whole.last_batch == 249
    assert sorted(whole.rows()[0].to_pylist(), key=str) == sorted(rows.rows()[0].to_pylist(), key=str)
    # Spark's checkpoint has lost micro-batches, fewer than the files cover.
    rows.query = "9a4d7b0e-77a5-4e5f-8a6e-0f6f0c9e4d11"
    journal.write_all(249, rows.table, rows)
    rows.take(batch("y", 1), 250)
    rows.take(batch("z", 1), 251)
    back = Journal(folder).load(lambda: Recorded(rows.query, 250, 250, begun=True))
    assert back is not None and back.last_batch == 250
    assert {row["k"] for row in back.rows()[0].to_pylist()} == {"k0", "k1", "k2", "y"}
    with pytest.raises(UnfitRows, match="its rows end with micro-batch -1|it has no rows|cannot"):
        Journal(folder).load(lambda: Recorded(rows.query, 100, 100, begun=True))


def test_the_changes_of_a_view_end_with_the_newest_row() -> None:
    """Also when a micro-batch comes while the view is made."""
    rows = keyed_rows()
    rows.take(batch("a", 1), 0)
    next_batch = threading.Thread(target=lambda: rows.take(batch("a", 2), 1))

    def watch(tell: Callable[..., None]) -> object:
        current = LiveRows.watch(rows, tell)
        next_batch.start()
        next_batch.join(0.2)  # it does not end before the view has its first rows
        return current

    rows.watch = watch  # type: ignore[method-assign]
    view = ChangesView(rows, "UTC")
    next_batch.join()
    assert view.take(10, 0, None).rows == [("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 2)]


# ---- CHECKPOINT 'dir' ------------------------------------------------------------------------------

TAKE = """import json

def take(batch, number):
    with open(FILE, "a") as out:
        out.writelines(json.dumps([row.k, row.n]) + "\\n" for row in batch.collect())
"""


@pytest.fixture
def given(opened: Open, tmp_path: Path) -> Callable[[], list[list[object]]]:
    """A console with an INSERT that has read two rows, and its CHECKPOINT in a folder ck. Gives a function that
    returns the rows that were written.
    """
    rows = tmp_path / "rows"
    (tmp_path / "cellar_of_checkpoints.py").write_text(TAKE.replace("FILE", repr(str(rows))))
    console = opened()
    console.run(
        f"{STREAM} CREATE SINK o USING foreach_batch OPTIONS (function 'cellar_of_checkpoints.take', "
        f"folder '{tmp_path}'); INSERT INTO o AS QUERY q CHECKPOINT '{tmp_path}/ck' SELECT k, n FROM s;"
        "INSERT INTO s VALUES ('a', 1), ('b', 2); AWAIT QUERY q IDLE; STOP QUERY q;"
    )
    return lambda: sorted(map(json.loads, rows.read_text().splitlines()))


ONE = [["a", 1], ["b", 2]]


def test_a_checkpoint_of_the_user_that_is_gone_is_refused(
    opened: Open, given: Callable[[], list[list[object]]], tmp_path: Path
) -> None:
    """Else its sink would get all rows again."""
    console = opened()
    shutil.rmtree(tmp_path / "ck")
    with pytest.raises(StreamsqlError) as refused:
        console.run("START QUERY q;")
    assert refused.value.code == "OTHER_CHECKPOINT"
    assert refused.value.message == "the checkpoint of q is gone"
    assert refused.value.hint.startswith("START QUERY q with one of\nFROM BEGINNING ")
    console.run("START QUERY q FROM NOW; INSERT INTO s VALUES ('c', 3); AWAIT QUERY q IDLE; STOP QUERY q;")
    assert given() == [*ONE, ["c", 3]]
    console.run("START QUERY q;")


def test_another_checkpoint_in_the_place_of_that_of_the_user_is_refused(
    opened: Open, given: Callable[[], list[list[object]]], tmp_path: Path
) -> None:
    console = opened()
    shutil.move(tmp_path / "ck", tmp_path / "own")
    console.run(
        f"INSERT INTO o AS QUERY other CHECKPOINT '{tmp_path}/ck' SELECT k, n FROM s WHERE n > 9; STOP QUERY other;"
        "DROP QUERY other;"
    )
    with pytest.raises(StreamsqlError) as refused:
        console.run("START QUERY q;")
    assert (refused.value.code, refused.value.message) == (
        "OTHER_CHECKPOINT",
        "the checkpoint of q is another one than before",
    )
    shutil.rmtree(tmp_path / "ck")
    shutil.move(tmp_path / "own", tmp_path / "ck")
    console.run("INSERT INTO s VALUES ('c', 3); START QUERY q; AWAIT QUERY q IDLE;")
    assert given() == [*ONE, ["c", 3]]


def test_a_crash_after_the_checkpoint_of_the_user_was_moved_aside(
    opened: Open, given: Callable[[], list[list[object]]], tmp_path: Path
) -> None:
    """The error says where it is: with its old name the query goes on."""
    console, aside = opened(), tmp_path / "ck.before-20260101-000000"
    shutil.move(tmp_path / "ck", aside)
    with pytest.raises(StreamsqlError) as refused:
        console.run("START QUERY q;")
    assert refused.value.hint.startswith(
        f"rename {aside} to {tmp_path}/ck, where it was; or\nSTART QUERY q with"
    )
    shutil.move(aside, tmp_path / "ck")
    console.run("INSERT INTO s VALUES ('c', 3); START QUERY q; AWAIT QUERY q IDLE;")
    assert given() == [*ONE, ["c", 3]]


def test_a_start_from_the_beginning_that_fails_leaves_the_checkpoint_of_the_user(
    opened: Open, given: Callable[[], list[list[object]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = opened()

    def fails(*arguments: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("streamsql.runtime.queries.start.write_marker", fails)
        with pytest.raises(StreamsqlError, match="the disk is full"):
            console.run("START QUERY q FROM BEGINNING;")
    assert not list(tmp_path.glob("ck.before-*"))
    console.run("INSERT INTO s VALUES ('c', 3); START QUERY q; AWAIT QUERY q IDLE; STOP QUERY q;")
    assert given() == [*ONE, ["c", 3]]
    (started,) = console.run("START QUERY q FROM BEGINNING;")
    (aside,) = tmp_path.glob("ck.before-*")
    assert f"the old checkpoint is kept as {aside}" in [note.text for note in started.notes]
    console.run("AWAIT QUERY q IDLE; STOP QUERY q; START QUERY q; AWAIT QUERY q IDLE;")
    assert given() == sorted([*ONE, *ONE, ["c", 3], ["c", 3]])
