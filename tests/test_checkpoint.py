"""Checkpoint folders read without Spark, file by file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamsql.errors import InputFault
from streamsql.runtime.checkpoints.checkpoint_files import local_path
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint


def made(folder: Path, **files: str) -> Path:
    """A checkpoint folder of these files (`offsets_0` is offsets/0)."""
    for name, text in {"metadata": '{"id":"the-id"}', **files}.items():
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
    there = Checkpoint.open(f"file://{tmp_path}")
    assert there.id == "the-id"
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
    there = Checkpoint.open(str(tmp_path))
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
    assert Checkpoint.open(str(tmp_path / "clicks")).batches() == []
    with pytest.raises(InputFault, match=r"there is no folder .*click") as missing:
        Checkpoint.open(str(tmp_path / "click"))
    assert missing.value.hint == "did you mean clicks?"
    with pytest.raises(InputFault, match="out is not a checkpoint") as other:
        Checkpoint.open(str(tmp_path / "out"))
    assert "there is part-0.json" in other.value.detail
    with pytest.raises(InputFault, match="is a file; a checkpoint is a folder"):
        Checkpoint.open(str(tmp_path / "out" / "part-0.json"))
    with pytest.raises(InputFault, match="not on the local file system"):
        Checkpoint.open("s3a://bucket/ck")


def test_which_paths_are_local() -> None:
    assert [local_path(p) for p in ("/a/b", "a/b", "file:/a", "file:///a", "hdfs://h/a", "s3a://b/c")] == [
        "/a/b", "a/b", "/a", "/a", None, None,
    ]  # fmt: skip
