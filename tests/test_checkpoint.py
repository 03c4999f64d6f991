"""Checkpoint folders read without Spark, file by file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from streamsql.errors import InputFault
from streamsql.runtime.checkpoints.checkpoint_files import Entry, LocalFiles, local_path
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint, Store


def made(folder: Path, **files: str) -> Path:
    """A checkpoint folder of these files (`offsets_0` is offsets/0)."""
    for name, text in {"metadata": '{"id":"9a4d7b0e-77a5-4e5f-8a6e-0f6f0c9e4d11"}', **files}.items():
        file = folder / name.replace("_", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def offsets(version: str, *sources: str, watermark: int = 0, **conf: str) -> str:
    known = {"batchWatermarkMs": watermark, "batchTimestampMs": 1000, "conf": conf}
    return "\n".join([version, json.dumps(known), *sources])


def test_the_log_in_its_versions(tmp_path: Path) -> None:
    made(
        tmp_path,
        offsets_9=offsets("v1", '{"logOffset":1}', "-", watermark=5, a="b"),
        commits_9='v1\n{"nextBatchWatermarkMs":7}',
        offsets_10=offsets("v2", '0:{"logOffset":2}', "clicks:-"),
        commits_10='v2\n{"nextBatchWatermarkMs":8,"stateUniqueIds":{"0":[["x"]]}}',
        offsets_11='v1\n\n{"1":{"value":1}}',  # continuous
    )
    there = Checkpoint(f"file://{tmp_path}")
    assert there.id == "9a4d7b0e-77a5-4e5f-8a6e-0f6f0c9e4d11"
    nine, ten, eleven = there.batches()
    assert nine.planned is not None
    assert (nine.planned.offsets, nine.planned.watermark) == ({"0": '{"logOffset":1}', "1": None}, 5)
    assert (nine.planned.at, nine.planned.conf) == (1000, {"a": "b"})
    assert (nine.committed and nine.committed.watermark, nine.status) == (7, "committed")
    assert ten.planned is not None
    assert ten.planned.offsets == {"0": '{"logOffset":2}', "clicks": None}
    assert ten.planned.watermark is None
    assert (ten.committed and ten.committed.version) == 2
    assert (eleven.status, eleven.planned and eleven.planned.at) == ("planned", None)
    assert [b.number for b in there.batches(2)] == [10, 11]
    assert there.batch(12) is None


def test_what_lies_about_is_passed_over_and_what_is_broken_is_said(tmp_path: Path) -> None:
    made(
        tmp_path,
        offsets_0=offsets("v1", "3"),
        commits_0="v1",  # Spark 2.x wrote no more
        offsets_1="v1\n{",
        commits_1='v1\n{"nextBatchWatermarkMs":0}',
        offsets_2="",
        offsets_3=offsets("v7", "3"),
        commits_4="v1\n{}",
    )
    for name in (".0.crc", ".5.9c2b.tmp", "6.compact", "7.tmp"):
        (tmp_path / "offsets" / name).write_text("x")
    there = Checkpoint(str(tmp_path))
    found = {b.number: (b.status, b.damage) for b in there.batches()}
    assert found == {
        0: ("committed", ""),
        1: ("damaged", "offsets/1 is incomplete"),
        2: ("damaged", "offsets/2 is incomplete"),
        3: ("damaged", "offsets/3 has version 7, which a newer Spark has written"),
        4: ("committed", ""),
    }
    assert sorted(there.unfinished()) == ["offsets/.5.9c2b.tmp", "offsets/7.tmp"]


def test_folders_that_are_no_checkpoints(tmp_path: Path) -> None:
    made(tmp_path / "clicks")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-0.json").write_text("{}")
    assert Checkpoint(str(tmp_path / "clicks")).batches() == []
    with pytest.raises(InputFault, match=r"there is no folder .*click") as missing:
        Checkpoint(str(tmp_path / "click"))
    assert missing.value.hint == "did you mean clicks?"
    with pytest.raises(InputFault, match="out is not a checkpoint") as other:
        Checkpoint(str(tmp_path / "out"))
    assert "there is part-0.json" in other.value.detail
    with pytest.raises(InputFault, match="is a file; a checkpoint is a folder"):
        Checkpoint(str(tmp_path / "out" / "part-0.json"))
    with pytest.raises(InputFault, match="not on the local file system"):
        Checkpoint("s3a://bucket/ck")


# ---- the state ----------------------------------------------------------------------------------------


def metadata(name: str, *stores: dict[str, Any], **properties: Any) -> str:
    known = {"operatorInfo": {"operatorName": name}, "stateStoreInfo": stores}
    return "v1\n" + json.dumps(known | {"operatorPropertiesJson": json.dumps(properties)})


def test_the_operators_with_state(tmp_path: Path) -> None:
    made(tmp_path)
    store = {"storeName": "default", "numPartitions": 3}
    variables = [
        {"stateName": "seen", "stateVariableType": "ValueState"},
        {"stateName": "timer", "stateVariableType": "TimerState"},
    ]
    rows = {"storeName": "rows", "numPartitions": 5}
    files = {
        "0/_metadata/metadata": metadata("stateStoreSave", store),
        "2/_metadata/metadata": metadata("old", store),
        "2/_metadata/v2/9": metadata("older", store),
        "2/_metadata/v2/10": metadata("transformWithStateExec", rows, stateVariables=variables),
        "10/_metadata/metadata": metadata("symmetricHashJoin", {"storeName": "left", "numPartitions": 2}),
        "11/0/1.delta": "x",
        "11/1/1.delta": "x",
        "11/_metadata/metadata": "v1\n{}",
        "other/0/1.delta": "x",
    }
    for name, text in files.items():
        (tmp_path / "state" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "state" / name).write_text(text)
    there = Checkpoint(str(tmp_path))
    save, processor, join, unknown = there.operators()
    assert [(o.number, o.name) for o in (save, processor, join, unknown)] == [
        (0, "stateStoreSave"), (2, "transformWithStateExec"), (10, "symmetricHashJoin"), (11, ""),
    ]  # fmt: skip
    assert save.stores == (Store("default", 3),)
    assert processor.stores == (Store("rows", 5),)
    assert join.stores == (Store("left", 2),)
    assert unknown.stores == (Store("", 2),)
    assert [o.is_join for o in (save, processor, join)] == [False, False, True]
    assert [o.is_processor for o in (save, processor, join)] == [False, True, False]
    assert (processor.variables, save.variables) == ({"seen": "ValueState"}, {})
    assert there.has_files("state/11/0", ".delta") and not there.has_files("state/11/0", ".snapshot")
    assert Checkpoint(str(made(tmp_path / "stateless"))).operators() == []


def test_what_is_beside_the_log(tmp_path: Path) -> None:
    made(tmp_path, offsets_0=offsets("v1", "3"), commits_0="v1\n{}", sources_0_0='v1\n{"path":"file:/in/a"}')
    made(tmp_path, sources_0_1='v1\n{"path":"file:/in/b"}\n{"path":"file:/in/c"}', sources_1_0="v1\n3")
    there = Checkpoint(f"{tmp_path}/")
    assert (there.file_read("0"), there.file_read("1"), there.file_read("2")) == ("file:/in/a", "", "")
    assert there.marker() == {}
    (tmp_path / "streamsql.json").write_text('{"query": "q"}')
    assert there.marker() == {"query": "q"}
    (tmp_path / "streamsql.json").write_text("[]")
    assert there.marker() == {}
    os.utime(tmp_path / "offsets/0", (1_000, 2_000))
    os.utime(tmp_path / "commits/0", (1_000, 3_000))
    assert there.last_written() == 3_000
    made(tmp_path, offsets_1=offsets("v1", "4"))
    os.utime(tmp_path / "offsets/1", (1_000, 4_000))
    assert there.last_written() == 4_000
    assert Checkpoint(str(made(tmp_path / "new"))).last_written() is None
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert there.size() == (sum(file.stat().st_size for file in files), len(files))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_an_id_that_cannot_be_read_is_empty(text: str, tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "metadata").write_text(text)
    assert Checkpoint(str(tmp_path)).id == ""


@pytest.mark.parametrize(
    ("file", "text", "damage"),
    [
        ("offsets_0", "x1\n{}", "offsets/0 is incomplete"),
        ("offsets_0", "v\n{}", "offsets/0 is incomplete"),
        ("offsets_0", "v1", "offsets/0 is incomplete"),
        ("offsets_0", "v1\n[]", "offsets/0 is incomplete"),
        ("offsets_0", "v3\n{}", "offsets/0 has version 3, which a newer Spark has written"),
        ("commits_0", "v1\n[]", "commits/0 is incomplete"),
        ("commits_0", "v3\n{}", "commits/0 has version 3, which a newer Spark has written"),
    ],
)
def test_a_damaged_file_of_the_log_is_named(file: str, text: str, damage: str, tmp_path: Path) -> None:
    made(tmp_path, **({"offsets_0": offsets("v1", "3"), "commits_0": "v1\n{}"} | {file: text}))
    [found] = Checkpoint(str(tmp_path)).batches()
    assert (found.status, found.damage) == ("damaged", damage)


def test_both_files_of_a_micro_batch_may_be_damaged(tmp_path: Path) -> None:
    made(tmp_path, offsets_0="", commits_0="x")
    [found] = Checkpoint(str(tmp_path)).batches()
    assert found.damage == "offsets/0 is incomplete and commits/0 is incomplete"


def test_another_file_system_gets_the_folder_as_it_was_given(tmp_path: Path) -> None:
    """Without its scheme it would be a folder of Hadoop's default file system."""
    asked: list[str] = []

    class Hadoop(LocalFiles):
        def entries(self, folder: str) -> list[Entry]:
            asked.append(folder)
            return super().entries(folder.removeprefix("file://"))

    Checkpoint(f"file://{made(tmp_path)}/", Hadoop())
    assert asked == [f"file://{tmp_path}"]


def test_which_paths_are_local() -> None:
    assert [local_path(p) for p in ("/a/b", "a/b", "file:/a", "file:///a", "hdfs://h/a", "s3a://b/c")] == [
        "/a/b", "a/b", "/a", "/a", None, None,
    ]  # fmt: skip
