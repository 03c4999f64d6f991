"""The spool of a stream: what is confirmed is there after any end of the process, and nothing else is."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from streamsql.features.receivers import spool as spool_module
from streamsql.features.receivers.payloads import payloads_of
from streamsql.features.receivers.segments import segments_of
from streamsql.features.receivers.spool import Message, Spool
from streamsql.features.receivers.spool_source import StreamReader

ROOMS = ("streamsql/features/receivers/",)
SYNC = "fdatasync" if hasattr(os, "fdatasync") else "fsync"  # as the spool does: macOS has no fdatasync


def values(folder: Path) -> list[bytes]:
    """All messages of a spool, as readers see them."""
    return [
        value
        for segment in segments_of(folder)
        for batch in segment.batches()
        for value in batch.column("value").to_pylist()
    ]


def messages(*texts: str) -> list[Message]:
    return [Message(text.encode()) for text in texts]


def test_messages_are_there_in_their_order(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(messages("a", "b"))
    spool.append([])
    spool.append([Message(b"\xff\x00", "kind", "7")])
    assert values(tmp_path) == [b"a", b"b", b"\xff\x00"]
    assert (spool.messages, spool.last_id(), spool.is_empty()) == (3, "7", False)
    spool.close()
    again = Spool(tmp_path)
    again.append(messages("c"))
    assert values(tmp_path) == [b"a", b"b", b"\xff\x00", b"c"]
    assert [segment.number for segment in segments_of(tmp_path)] == [1, 2]


def test_what_the_header_does_not_count_is_not_read(tmp_path: Path) -> None:
    """Power fails while a commit is written: any part of it is on the disk, and its header is not."""
    made = tmp_path / "made"
    made.mkdir()
    spool, path = Spool(made), made / "00000001.arrow"
    for text in ("one", "two"):
        spool.append(messages(text))
    before = path.read_bytes()
    spool.append(messages("three"))
    spool.close()
    commit = path.read_bytes()[len(before) :]
    for cut in range(0, len(commit) + 1, 3):
        for part in (commit[:cut], bytes(cut), bytes(len(commit) - cut) + commit[len(commit) - cut :]):
            path.write_bytes(before + part)
            again = Spool(made)
            assert values(made) == [b"one", b"two"]
            again.append(messages("four"))
            assert values(made) == [b"one", b"two", b"four"]
            again.close()
            (made / "00000002.arrow").unlink()
    for header in (b"", b"\x08\x00\x00"):  # before the header itself is whole
        path.write_bytes(header)
        assert values(made) == [] and Spool(made).is_empty()


def test_a_commit_that_fails_counts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at any step, in the middle of the data, too."""
    spool, written = Spool(tmp_path), [b"0"]
    spool.append(messages("0"))
    for number, step in enumerate(("pwrite", SYNC, "half", "second sync", "pwrite"), 1):
        with monkeypatch.context() as patch:
            patch.setattr(spool_module, "os", FailingOs(step))
            with pytest.raises(OSError, match="No space left"):
                spool.append(messages(f"lost {number}"))
        assert values(tmp_path) == written
        spool.append(messages(str(number)))
        written.append(str(number).encode())
        assert values(tmp_path) == written
    assert spool.messages == len(written)


class FailingOs:
    """`os` with a step that finds the disk full; half: the data are written in part; second sync: that of
    the header.
    """

    def __init__(self, step: str) -> None:
        self.step = step
        self.synced = False

    def __getattr__(self, name: str) -> Any:
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if name == "pwrite" and self.step == "half":

            def half(file: int, data: memoryview, at: int) -> int:
                os.pwrite(file, data[: len(data) // 2], at)
                raise full

            return half
        if name == SYNC and self.step == "second sync":

            def second(file: int) -> None:
                if self.synced:
                    raise full
                getattr(os, SYNC)(file)
                self.synced = True

            return second
        if name != self.step:
            return getattr(os, name)

        def fail(*arguments: object) -> None:
            raise full

        return fail


def test_many_threads_share_commits(tmp_path: Path) -> None:
    spool, begin = Spool(tmp_path), threading.Barrier(50)

    def send(number: int) -> None:
        begin.wait()
        for part in range(20):
            spool.append(messages(f"{number} {part}"))

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(send, range(50)))
    found = values(tmp_path)
    assert sorted(found) == sorted(f"{n} {part}".encode() for n in range(50) for part in range(20))
    for number in range(50):
        own = [value for value in found if value.startswith(f"{number} ".encode())]
        assert own == [f"{number} {part}".encode() for part in range(20)]
    commits = sum(1 for segment in segments_of(tmp_path) for _ in segment.batches())
    assert commits < 1000


_APPEND = """
import sys
from pathlib import Path
from streamsql.features.receivers.spool import Message, Spool
spool, number = Spool(Path(sys.argv[1])), 0
while True:
    spool.append([Message(str(number).encode())] * 3)
    print(number, flush=True)
    number += 1
"""


def test_what_was_confirmed_survives_a_kill(processes: None, tmp_path: Path) -> None:
    before: list[bytes] = []
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", _APPEND, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        confirmed = [int(process.stdout.readline()) for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        confirmed += [int(line) for line in process.stdout.read().splitlines() if line]
        process.wait()
        Spool(tmp_path).close()
        found = values(tmp_path)
        assert found[: len(before)] == before
        own = found[len(before) :]
        count = len(own) // 3
        assert own == [str(n).encode() for n in range(count) for _ in range(3)]
        assert count >= len(confirmed)
        before = found


def test_a_reader_takes_what_a_limit_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "SEGMENT_BYTES", 3_000)
    spool = Spool(tmp_path)
    reader = StreamReader(tmp_path, 5)
    start = offset = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start and not reader.partitions(start, start)
    for number in range(40):
        spool.append(messages(f"{number}", f"{number} again"))
    assert len(segments_of(tmp_path)) > 2
    taken: list[int] = []
    found: list[bytes] = []
    while (end := reader.latestOffset(offset, ReadMaxRows(5))) != offset:
        batches = [batch for part in reader.partitions(offset, end) for batch in reader.read(part)]
        taken.append(sum(batch.num_rows for batch in batches))
        found += [value for batch in batches for value in batch.column("value").to_pylist()]
        offset = json.loads(json.dumps(end))
    assert found == values(tmp_path) and len(found) == 80
    assert set(taken[:-1]) == {6}  # a commit is not divided
    whole = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    assert [v for p in whole for b in reader.read(p) for v in b.column("value").to_pylist()] == found
    reader.prepareForTriggerAvailableNow()
    target = reader.latestOffset(start, ReadAllAvailable())
    spool.append(messages("later"))
    assert reader.latestOffset(start, ReadAllAvailable()) == target


def test_old_segments_go_and_a_reader_that_needs_them_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "SEGMENT_BYTES", 100)
    spool = Spool(tmp_path, retention=60.0)
    reader = StreamReader(tmp_path, None)
    start = reader.initialOffset()
    for number in range(3):
        spool.append(messages(str(number)))
    os.utime(tmp_path / "00000001.arrow", (0, 0))
    os.utime(tmp_path / "00000003.arrow", (0, 0))  # the newest stays, however old it is
    spool.append(messages("3"))
    assert values(tmp_path) == [b"1", b"2", b"3"]
    with pytest.raises(ValueError, match="have been deleted"):
        reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    assert reader.initialOffset() == {"segment": 2, "byte": 0}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(JSON, max_size=4), st.sampled_from((None, 1)), st.booleans())
def test_json_in_bodies(parts: list[Any], indent: int | None, ascii: bool) -> None:
    def text(value: Any) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=ascii)

    def read(body: str) -> list[Any]:
        return [json.loads(message) for message in payloads_of(body.encode("utf-8", "surrogatepass"), "json")]

    try:
        text(parts).encode()
    except UnicodeEncodeError:
        return
    assert read(text(parts)) == parts
    # Arrays between other values are taken apart, too.
    flat = [element for part in parts for element in (part if isinstance(part, list) else [part])]
    assert read("\n".join(map(text, parts))) == flat


def test_numbers_are_not_changed() -> None:
    body = b'[{"a": 1.10, "b": 12345678901234567890123456789.00}, 1e400]'
    assert payloads_of(body, "json") == [b'{"a": 1.10, "b": 12345678901234567890123456789.00}', b"1e400"]


@pytest.mark.parametrize(
    "body", [b'{"a": 1', b"[1 2]", b"[1,]", b"NaN", b"\xff", b"[" * 100_000, b"{} x", b"[1"]
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        payloads_of(body, "json")


def test_lines_and_whole_bodies() -> None:
    assert payloads_of(b"a,1\r\nb,2\n\n", "csv") == [b"a,1", b"b,2"]
    assert payloads_of(b"\xff\n\x00", "raw") == [b"\xff\n\x00"]
    with pytest.raises(ValueError):
        payloads_of(b"\xff", "text")
    assert payloads_of(b"", "json") == payloads_of(b"\n", "text") == []
