"""The files of a live table's rows and what a query has recorded about its micro-batches, without Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from streamsql.errors import UsageFault
from streamsql.runtime.checkpoints.checkpoint_files import CheckpointFolder, local_folder
from streamsql.runtime.embedded.live_files import LiveFiles, persist_rows
from streamsql.runtime.embedded.live_rows import LiveRows
from streamsql.runtime.live.journal import Journal, LiveTables, UnfitRows, UnreadableRows
from streamsql.runtime.live.recorded_progress import (
    FROM_NOW,
    LATE_ROWS,
    Recorded,
    misfit,
    of_changes,
    of_checkpoint,
    of_late_rows,
)


def local(folder: str) -> CheckpointFolder:
    found = local_folder(folder)
    assert found is not None
    return found


QUERY, OTHER = "9a4d7b0e-77a5-4e5f-8a6e-0f6f0c9e4d11", "9a4d7b0e-77a5-4e5f-8a6e-0f6f0c9e4d12"
SCHEMA = StructType().add("k", "string").add("n", "long")


def new_rows(mode: str = "append", **parts: Any) -> LiveRows:
    rows = LiveRows(SCHEMA, mode, ["k"] if mode == "update" else None, 1_000, **parts)
    rows.query = QUERY
    return rows


def batch(*numbers: int, keyed: bool = False) -> pa.Table:
    keys = [f"k{number}" for number in numbers]
    columns = {"k": pa.array(keys, pa.string()), "n": pa.array(numbers, pa.int64())}
    return pa.table(columns | ({LiveRows.KEY: pa.array(keys, pa.string())} if keyed else {}))


def written(folder: Path, batches: int, mode: str = "append") -> LiveRows:
    """Rows whose micro-batch n has the row n, but for each third one, which has none; their files."""
    rows = new_rows(mode)
    Journal(folder).begin(rows)
    for number in range(batches):
        rows.take(batch(*[number] * (number % 3 < 2), keyed=mode == "update"), number)
    return rows


def numbers(rows: LiveRows | None) -> list[int]:
    return [] if rows is None or rows.table is None else rows.table["n"].to_pylist()


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if file.suffix in (".all", ".new", ".none")}


# ---- what is recorded ---------------------------------------------------------------------------------


def checkpoint(folder: Path, *files: str, metadata: str = json.dumps({"id": QUERY})) -> Path:
    for name in ("metadata", *files):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(metadata if name == "metadata" else "x")
    return folder


LOGS = (
    "offsets/0",
    "offsets/1",
    "offsets/10",
    "offsets/.11.crc",
    "commits/0",
    "commits/9",
    "commits/.10.crc",
)


@pytest.mark.parametrize(
    ("files", "recorded"),
    [
        ((), Recorded(QUERY, -1, -1, False)),
        (("offsets/0",), Recorded(QUERY, -1, 0, False)),
        (("offsets/0", "commits/0"), Recorded(QUERY, 0, 0, True)),
        (("offsets/0", "commits/0", FROM_NOW), Recorded(QUERY, -1, 0, False)),
        (("offsets/1", "commits/1", FROM_NOW), Recorded(QUERY, 1, 1, True)),
        (("commits/3",), Recorded(QUERY, 3, 3, True)),
        (LOGS, Recorded(QUERY, 9, 10, True)),
    ],
)
def test_the_record_of_a_query_is_its_checkpoint(
    files: tuple[str, ...], recorded: Recorded, tmp_path: Path
) -> None:
    assert of_checkpoint(local(f"file:{checkpoint(tmp_path, *files)}")) == recorded


@pytest.mark.parametrize("metadata", ["", "{", "[]", "{}", '{"id": 3}', '{"id": "x"}'])
def test_a_checkpoint_without_an_id_has_none(metadata: str, tmp_path: Path) -> None:
    assert of_checkpoint(local(str(checkpoint(tmp_path, metadata=metadata)))).query == ""
    assert of_late_rows(local(str(tmp_path))).query == ""


def test_the_record_of_late_rows_is_the_notes_of_their_writer(tmp_path: Path) -> None:
    own = str(uuid.uuid5(uuid.UUID(QUERY), LATE_ROWS))
    assert of_late_rows(local(str(checkpoint(tmp_path)))) == Recorded(own, -1, -1, False)
    checkpoint(tmp_path, *(f"{LATE_ROWS}/{name}" for name in ("rows-2", "rows-11", "other", ".rows-12.crc")))
    assert of_late_rows(local(str(tmp_path))) == Recorded(own, -1, 11, True)


def test_the_record_of_a_query_of_changes_is_its_log(tmp_path: Path) -> None:
    assert of_changes(tmp_path / "none") == Recorded("", -1, -1, False)
    (tmp_path / "3.next").write_text("x")
    (tmp_path / "20.other").write_text("x")
    assert of_changes(tmp_path) == Recorded("", -1, 3, False)
    (tmp_path / "12.all").write_text("x")
    (tmp_path / "kind.json").write_text('{"query": "q"}')
    assert of_changes(tmp_path) == Recorded("q", -1, 12, True)


GONE = "its rows are of another checkpoint than the one that its query has now"


@pytest.mark.parametrize(
    ("query", "last", "recorded", "reason"),
    [
        (QUERY, 3, Recorded(QUERY, 3, 3, True), ""),
        (QUERY, 3, Recorded(QUERY, 2, 3, True), ""),
        (QUERY, 4, Recorded(QUERY, 3, 4, True), ""),
        (QUERY, -1, Recorded(QUERY, -1, 0, False), ""),
        (None, -1, Recorded("", -1, -1, False), ""),
        (None, 3, Recorded(QUERY, 3, 3, True), ""),  # of a version that noted no id
        (OTHER, 3, Recorded(QUERY, 3, 3, True), GONE),
        (OTHER, -1, Recorded(QUERY, -1, 3, False), GONE),
        (None, 0, Recorded("", -1, -1, False), "it has rows up to micro-batch 0, and the checkpoint of its query is gone"),
        (QUERY, 2, Recorded(QUERY, 3, 3, True), "its rows end with micro-batch 2, and the checkpoint of its query has committed micro-batch 3"),
        (QUERY, 0, Recorded(QUERY, 1, 1, True), "its rows end with micro-batch 0, and the checkpoint of its query has committed micro-batch 1"),
        (QUERY, -1, Recorded(QUERY, 0, 0, True), "it has no rows, and the checkpoint of its query has committed micro-batch 0"),
        (QUERY, 4, Recorded(QUERY, 3, 3, True), "its rows end with micro-batch 4, and the checkpoint of its query ends with micro-batch 3"),
        (QUERY, 1, Recorded(QUERY, 0, 0, True), "its rows end with micro-batch 1, and the checkpoint of its query ends with micro-batch 0"),
        (QUERY, 0, Recorded(QUERY, -1, -1, False), "its rows end with micro-batch 0, and it is empty"),
    ],
)  # fmt: skip
def test_rows_fit_what_is_recorded_or_the_reason_is_said(
    query: str | None, last: int, recorded: Recorded, reason: str
) -> None:
    rows = new_rows()
    rows.query, rows.last_batch = query, last
    assert misfit(rows, recorded) == reason


def test_rows_that_are_gone_are_missed_where_the_query_has_written() -> None:
    assert misfit(None, Recorded(QUERY, -1, 0, False)) == ""
    assert (
        misfit(None, Recorded(QUERY, 0, 0, True))
        == "the files of its rows are gone, and its query has written rows"
    )


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are written more often, so that tests need few micro-batches: each file is synced."""
    monkeypatch.setattr(LiveFiles, "COMPACT", 10)


# ---- the files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
@pytest.mark.parametrize("batches", [0, 1, 2, 3, 4, 10, 11, 20, 32])
def test_rows_are_restored(mode: str, batches: int, tmp_path: Path) -> None:
    rows = written(tmp_path / "t", batches, mode)
    restored = Journal(tmp_path / "t").load()
    assert restored is not None
    assert sorted(numbers(restored)) == sorted(numbers(rows))
    assert (restored.last_batch, restored.mode) == (batches - 1, mode)
    assert restored.query == (QUERY if batches else None)


def test_which_files_there_are(tmp_path: Path) -> None:
    """All rows after each tenth micro-batch; the files since the one before remain, to go back to."""
    folder = tmp_path / "t"
    written(folder, 5)
    assert names(folder) == {"0.new", "1.new", "2.none", "3.new", "4.new"}
    written(folder, 10)
    assert len(names(folder)) == 10 and names(folder) >= {"0.new", "2.none", "8.none", "9.all"}
    written(folder, 20)
    assert names(folder) == {"9.all", "19.all"} | {
        f"{n}.{'none' if n % 3 == 2 else 'new'}" for n in range(10, 19)
    }


def test_old_notes_of_micro_batches_without_rows_are_removed(tmp_path: Path) -> None:
    rows = new_rows()
    Journal(tmp_path / "t").begin(rows)
    for number in range(9):
        rows.take(batch(), number)
    files = LiveFiles(tmp_path / "t")
    for number in (9, 10, 11, 12):
        files._note_empty(number, rows)
    assert names(tmp_path / "t") == {f"{number}.none" for number in range(2, 13)}


def test_complete_results_replace_each_other(tmp_path: Path) -> None:
    written(tmp_path / "t", 5, "complete")
    assert names(tmp_path / "t") == {"3.all", "4.all"}


def test_files_before_the_newest_with_all_rows_are_not_needed(tmp_path: Path) -> None:
    rows = written(tmp_path / "t", 22)
    for name in ("9.all", "13.new", "17.none"):
        (tmp_path / "t" / name).unlink()
    assert numbers(Journal(tmp_path / "t").load()) == numbers(rows)


@pytest.mark.parametrize("upto", [0, 1, 2, 3, 9, 12, 19, 30])
def test_rows_go_back_to_a_micro_batch_that_is_recorded(upto: int, tmp_path: Path) -> None:
    """Spark has lost the micro-batches after it. The files that are left reach back to the last but one with all rows."""
    count = upto + 2
    written(tmp_path / "t", count)
    restored = Journal(tmp_path / "t").load(lambda: Recorded(QUERY, upto, upto, True))
    assert restored is not None and restored.last_batch == upto
    assert numbers(restored) == [number for number in range(upto + 1) if number % 3 < 2]


def dropped(*gone: str) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        for name in gone:
            (folder / name).unlink()

    return harm


def of_another_query(name: str) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        files, rows = LiveFiles(folder), new_rows()
        rows.query = OTHER
        number, kind = name.split(".")
        files.newest = int(number) - 1
        if kind == "none":
            files._note_empty(int(number), rows)
        else:
            files._write(name, batch(int(number)), rows)

    return harm


def of_no_query(folder: Path) -> None:
    with pa.ipc.new_file(str(folder / "4.new"), batch(4).schema) as file:
        file.write_table(batch(4))


def cut_short(folder: Path) -> None:
    (folder / "4.new").write_bytes((folder / "4.new").read_bytes()[:40])


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (dropped("1.new"), "the file of micro-batch 1, which 3.new continues, is missing"),
        (dropped("0.new"), "the file of micro-batch 0, which 1.new continues, is missing"),
        (dropped("4.new"), "the file of micro-batch 4, which 5.none continues, is missing"),
        (dropped("0.new", "1.new", "3.new", "4.new"), "the file of micro-batch 4, which 5.none continues, is missing"),
        (of_another_query("4.new"), "4.new is of another checkpoint than the files before it"),
        (of_another_query("5.none"), "5.none is of another checkpoint than the files before it"),
        (of_no_query, "4.new does not say to which query it belongs"),
        (cut_short, "Not an Arrow file"),
        (dropped("kind.json"), "No such file"),
        (lambda folder: (folder / "kind.json").write_text("{"), "Expecting"),
        (lambda folder: (folder / "kind.json").write_text("{}"), "'schema'"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_each_other_are_refused(
    harm: Callable[[Path], Any], words: str, tmp_path: Path
) -> None:
    written(tmp_path / "t", 6)
    harm(tmp_path / "t")
    with pytest.raises(UnreadableRows, match=words) as refused:
        Journal(tmp_path / "t").load()
    assert not isinstance(refused.value, UnfitRows)


def test_micro_batches_that_are_computed_again_are_cut(tmp_path: Path) -> None:
    written(tmp_path / "t", 6)
    LiveFiles(tmp_path / "t").cut(2)
    assert names(tmp_path / "t") == {"0.new", "1.new", "2.none"}
    LiveFiles(tmp_path / "t").cut(2)
    assert names(tmp_path / "t") == {"0.new", "1.new", "2.none"}


def test_an_exported_program_continues_its_rows(tmp_path: Path) -> None:
    persist_rows(new_rows(), None)
    first = new_rows()
    persist_rows(first, tmp_path / "t")
    for number in range(3):
        first.take(batch(number), number)
    second = new_rows()
    persist_rows(second, tmp_path / "t")
    assert (second.last_batch, numbers(second)) == (2, [0, 1, 2])
    second.take(batch(3), 3)
    third = new_rows()
    persist_rows(third, tmp_path / "t")
    assert (third.last_batch, numbers(third)) == (3, [0, 1, 2, 3])


# ---- the journal --------------------------------------------------------------------------------------


def test_what_the_rows_are_is_persisted(tmp_path: Path) -> None:
    made = LiveRows(SCHEMA, "update", ["k"], 7, True, ["h"], "kept", True)
    Journal(tmp_path / "t").begin(made)
    again = Journal(tmp_path / "t").load()
    assert again is not None
    parts = ("schema", "mode", "keys", "retain", "one", "hidden", "kept", "strict")
    assert [getattr(again, part) for part in parts] == [getattr(made, part) for part in parts]


@pytest.mark.parametrize(("strict", "restored"), [(True, [0, 1, 2, 3]), (False, [2, 3])])
def test_a_lower_limit_is_one_for_rows_to_come(strict: bool, restored: list[int], tmp_path: Path) -> None:
    """Where more rows are an error, those that are there remain readable."""
    rows = new_rows(strict=strict)
    Journal(tmp_path / "t").begin(rows)
    for number in range(4):
        rows.take(batch(number), number)
    kind = json.loads((tmp_path / "t/kind.json").read_text())
    (tmp_path / "t/kind.json").write_text(json.dumps(kind | {"retain": 2}))
    again = Journal(tmp_path / "t").load()
    assert again is not None and (numbers(again), again.retain) == (restored, 2)


def test_rows_of_other_versions(tmp_path: Path) -> None:
    written(tmp_path / "t", 2)
    file = tmp_path / "t/kind.json"
    kind = json.loads(file.read_text())
    for version in (3, kind["version"]):
        file.write_text(json.dumps(kind | {"version": version}))
        assert Journal(tmp_path / "t").load() is not None, version
    file.write_text(json.dumps(kind | {"version": kind["version"] + 1}))
    with pytest.raises(UsageFault):
        Journal(tmp_path / "t").load()


def test_a_live_table_without_files_has_no_rows(tmp_path: Path) -> None:
    assert Journal(tmp_path / "t").load() is None
    with pytest.raises(UnfitRows, match="the files of its rows are gone"):
        Journal(tmp_path / "t").load(lambda: Recorded(QUERY, 0, 0, True))


def test_a_micro_batch_may_be_written_while_rows_are_loaded(tmp_path: Path) -> None:
    """It is planned, then written, then committed: what is recorded before counts as written, after as planned."""
    written(tmp_path / "t", 2)
    for first, second, fits in ((0, 1, True), (1, 2, True), (2, 2, False)):
        records = iter([Recorded(QUERY, first, first, True), Recorded(QUERY, second, second, True)])
        if fits:
            rows = Journal(tmp_path / "t").load(lambda records=records: next(records))  # type: ignore[misc]
            assert rows is not None and rows.last_batch == 1
        else:
            with pytest.raises(UnfitRows, match="has committed micro-batch 2"):
                Journal(tmp_path / "t").load(lambda records=records: next(records))  # type: ignore[misc]


def test_rows_of_another_checkpoint_do_not_go_back(tmp_path: Path) -> None:
    written(tmp_path / "t", 4)
    with pytest.raises(UnfitRows, match="of another checkpoint"):
        Journal(tmp_path / "t").load(lambda: Recorded(OTHER, 1, 1, True))


def test_a_checkpoint_that_cannot_be_read_refuses_the_rows(tmp_path: Path) -> None:
    written(tmp_path / "t", 2)

    def record() -> Recorded:
        raise OSError("no disk")

    with pytest.raises(UnreadableRows, match="the checkpoint of its query cannot be read: no disk"):
        Journal(tmp_path / "t").load(record)


def test_a_reader_tries_again_while_another_console_writes(tmp_path: Path) -> None:
    written(tmp_path / "t", 2)
    asked: list[int] = []

    def record() -> Recorded:
        asked.append(1)
        if len(asked) < 5:
            raise OSError("a file is just being replaced")
        return Recorded(QUERY, 1, 1, True)

    assert numbers(Journal(tmp_path / "t").refresh(None, record)) == [0, 1]


def test_a_reader_adds_what_is_new(tmp_path: Path) -> None:
    rows, reader = written(tmp_path / "t", 2), Journal(tmp_path / "t")
    first = reader.refresh(None)
    rows.take(batch(7), 2)
    second = reader.refresh(first)
    assert second is first and numbers(second) == [0, 1, 7]


def test_a_reader_notices_a_table_that_was_created_again(tmp_path: Path) -> None:
    """Whichever of the two files says that it is newer."""
    contents = {"a": [0, 1], "b": [10]}
    for name, listed in contents.items():
        rows = new_rows()
        Journal(tmp_path / name).begin(rows)
        for number, value in enumerate(listed):
            rows.take(batch(value), number)
    reader, read = Journal(tmp_path / "t"), None
    for name in ("a", "b", "a"):
        (tmp_path / name).rename(tmp_path / "t")
        read = reader.refresh(read)
        assert numbers(read) == contents[name]
        (tmp_path / "t").rename(tmp_path / name)


# ---- the rows of all live tables ----------------------------------------------------------------------


def tables(folder: Path, recorded: Recorded | None = None) -> LiveTables:
    return LiveTables(
        lambda name: str(folder / name), lambda name: name == "t", lambda name: "q", lambda name: recorded
    )


def test_rows_of_an_earlier_console_are_taken_up_and_followed(tmp_path: Path) -> None:
    written(tmp_path / "t", 4)
    opened = tables(tmp_path, Recorded(QUERY, 1, 2, True))
    assert opened.get("unknown", "nothing") == "nothing"
    assert opened.loaded("t") is None
    rows = opened.get("t")
    assert (opened.loaded("t"), numbers(rows), rows.last_batch) == (rows, [0, 1], 2)
    assert names(tmp_path / "t") == {"0.new", "1.new", "2.none"}
    rows.take(batch(8), 3)
    assert numbers(tables(tmp_path).get("t")) == [0, 1, 8]
    opened.forget("t")
    assert opened.loaded("t") is None


@pytest.mark.parametrize(
    ("harm", "code", "words"),
    [
        (lambda folder: None, "ROWS_NOT_OF_CHECKPOINT", "do not fit the checkpoint of its query"),
        (dropped("1.new"), "ROWS_NOT_READ", "cannot be read"),
    ],
)
def test_rows_that_cannot_be_used_are_an_error_with_the_way_out(
    harm: Callable[[Path], None], code: str, words: str, tmp_path: Path
) -> None:
    written(tmp_path / "t", 4)
    harm(tmp_path / "t")
    with pytest.raises(UnreadableRows) as refused:
        tables(tmp_path, Recorded(QUERY, 9, 9, True)).get("t")
    assert (refused.value.code, refused.value.message) == (code, f"the rows of t {words}")
    assert refused.value.hint == "START QUERY q FROM BEGINNING; computes them again"


def test_a_new_live_table_begins_without_the_rows_before(tmp_path: Path) -> None:
    written(tmp_path / "t", 4)
    begun: list[str] = []
    opened = tables(tmp_path)
    opened.on_begin = lambda: begun.append("t")
    opened.begin("t", new_rows(), tmp_path / "t")
    assert (begun, names(tmp_path / "t"), numbers(opened.get("t"))) == (["t"], set(), [])
    memory = LiveTables(None, lambda name: True)
    memory.begin("t", new_rows(), tmp_path / "u")
    assert not (tmp_path / "u").exists()
    assert memory.get("other") is None


def test_rows_get_the_columns_of_a_changed_query(tmp_path: Path) -> None:
    rows = written(tmp_path / "t", 2)
    opened = tables(tmp_path)
    opened["t"] = rows
    version = rows.version
    changed = StructType().add("n", "long", False).add("K", "string").add("more", "string", False)
    opened.fit("t", changed, 5)
    assert rows.table.column_names == ["n", "K", "more"]
    assert rows.table.to_pylist() == [{"n": n, "K": f"k{n}", "more": None} for n in (0, 1)]
    assert [field.nullable for field in rows.schema] == [False, True, True]
    assert (rows.retain, rows.version) == (5, version + 1)
    empty = tables(tmp_path)
    empty["t"] = new_rows()
    empty.fit("t", changed, 5)
    assert (empty["t"].table, empty["t"].schema.fieldNames()) == (None, ["n", "K", "more"])
