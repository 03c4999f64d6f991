"""The account of a query: the same figures in every place, and the right sentence where it does not close."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from data_files import put_whole
from test_reopened import Open, Opened, opened  # noqa: F401

from streamsql.cli.open_workspace import console_beside
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.output.live_frames import NEVER_CUT, View, frame, one_line, that_fit
from streamsql.query_facts import Account
from streamsql.results import Done, Live, Why
from streamsql.runtime.checkpoints.batch_history import BatchHistory
from streamsql.runtime.engine.temporary_views import with_full_paths
from streamsql.runtime.explanations import explanations
from streamsql.runtime.queries.progress_reports import account_of
from streamsql.runtime.workspace.folder import Workspace

ROOMS = (
    "streamsql/query_facts.py",
    "streamsql/runtime/queries/",
    "streamsql/features/why/",
    "streamsql/runtime/evidence/",
    "streamsql/runtime/handlers/",
    "streamsql/runtime/checkpoints/batch_history.py",
    "streamsql/runtime/workspace/",
)


# ---- without Spark


def report(batch: int, rows: int, **more: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "batchId": batch,
        "numInputRows": rows,
        "durationMs": {"addBatch": 1, "triggerExecution": 2},
        "sources": [{"description": "FileStreamSource[file:/in]", "numInputRows": rows}],
        **more,
    }


def test_late_rows_are_exact_unless_spark_has_combined_them_before_it_counted() -> None:
    def late(operator: str, dropped: int) -> str:
        state = {"operatorName": operator, "numRowsTotal": 3, "numRowsDroppedByWatermark": dropped}
        return str(account_of(report(0, 9, stateOperators=[state])).late)

    assert late("dedupe", 4) == "4" and late("symmetricHashJoin", 4) == "4"
    assert late("stateStoreSave", 4) == late("sessionWindowStateStoreSaveExec", 4) == "at least 4"
    assert late("stateStoreSave", 0) == "0"


def test_an_account_goes_on_with_its_checkpoint(tmp_path: Path) -> None:
    first = account_of(report(0, 2)).then(account_of(report(1, 3, observedMetrics={"malformed s": {"n": 1}})))
    kept = BatchHistory(tmp_path / "batches.jsonl")
    kept.write(kept.add(report(0, 2), account_of(report(0, 2))))
    kept.write(kept.add(report(1, 3), first))
    known = BatchHistory(tmp_path / "batches.jsonl").account("c1", committed=1)
    assert known == first and (str(known.read), str(known.malformed)) == ("5", "1")
    assert known.streams == (("FileStreamSource[file:/in]", 5),)
    # A console that was killed before it had saved a report.
    lost = BatchHistory(tmp_path / "batches.jsonl").account("c1", committed=2)
    assert (str(lost.read), str(lost.late), str(lost.malformed)) == ("at least 5", "at least 0", "at least 1")
    # Another checkpoint begins at 0.
    assert BatchHistory(tmp_path / "batches.jsonl").account("c2", committed=-1) == Account()


def test_an_account_of_an_earlier_version_is_a_lower_bound(tmp_path: Path) -> None:
    (tmp_path / "batches.jsonl").write_text('{"version": 1, "id": "c1", "batch": 0, "rows": 7, "ms": 3}\n')
    assert str(BatchHistory(tmp_path / "batches.jsonl").account("c1", committed=0).read) == "at least 7"


def test_the_room_of_parts_is_measured_in_cells() -> None:
    parts = [(0, "日本", "class:failed"), (1, "ab", "")]
    assert that_fit(parts, 9) == parts
    assert that_fit(parts, 8) == parts[:1]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_lost_rows_come_first_in_a_status_line_and_are_never_cut(width: int) -> None:
    parts = [(NEVER_CUT, "at least 327 late rows"), (NEVER_CUT, "329 malformed"), (0, "hourly: rows 1-20 of 1,290"),
             (1, "running"), (3, "171,000 rows in"), (0, "q leave")]  # fmt: skip
    line = one_line(parts, width)
    assert line.startswith("at least 327 late rows · 329 malformed") and len(line) <= width


def test_a_view_is_kept_with_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1\n")
    monkeypatch.chdir(tmp_path)

    def kept(text: str) -> str:
        (written,) = split_script(Source("a.sql", f"{text};"))
        return with_full_paths(parse(written)).text

    assert kept("CREATE VIEW v AS SELECT * FROM csv.`data/*.csv` JOIN other.`data/b`") == (
        f"CREATE VIEW v AS SELECT * FROM csv.`{tmp_path}/data/*.csv` JOIN other.`data/b`"
    )
    for option in ("path 'data'", "'path' = 'data'", "path = 'data'"):
        full = option.replace("data", f"{tmp_path}/data")
        head = "CREATE TEMPORARY VIEW v USING csv OPTIONS"
        assert kept(f"{head} ({option}, sep 'data')") == f"{head} ({full}, sep 'data')"
    for same in (
        "SELECT * FROM csv.`s3://b/x.csv` WHERE path = 'data'",
        f"SELECT 'data' AS path FROM csv.`{tmp_path}/data`",
    ):
        assert kept(f"CREATE VIEW v AS {same}") == f"CREATE VIEW v AS {same}"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["OPTIONS (path 'data')", "LOCATION 'data'"])
def test_a_table_with_a_relative_path_that_is_here_is_told_where_spark_looks(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "data").mkdir()
    put_whole(tmp_path / "data" / "a.json", '{"k": "a"}')
    monkeypatch.chdir(tmp_path)
    (created,) = console.run(f"CREATE TABLE near (k STRING) USING json {path};")
    (note,) = created.notes
    assert note.code == "TABLE_PATH"
    here = note.text[note.text.index("CREATE TABLE") :]
    assert console.rows("SELECT * FROM near;") == []
    console.run(f"DROP TABLE near; {here}")
    assert console.rows("SELECT * FROM near;") == [("a",)]
    console.run("DROP TABLE near;")
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"CREATE TABLE near USING json {path};")
    console.run(caught.value.proposal)
    assert console.rows("SELECT * FROM near;") == [("a",)]
    console.run("DROP TABLE near;")


def test_a_script_beside_a_console_says_that_it_does_not_see_its_queries(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    held = Workspace(folder)
    try:
        for queries, number in (({}, ""), ({"a": {}}, "1 query"), ({"a": {}, "b": {}}, "2 queries")):
            (folder / "status.json").write_text(json.dumps({"queries": queries}))
            said = console_beside(folder)
            assert bool(said) is bool(number)
            assert said.endswith(f", has {number} that it does not see" if number else "")
        assert said.startswith(f"this script has a temporary workspace; {folder}, held by another console (")
    finally:
        held.close()
    assert console_beside(folder) == ""  # no console holds it any more


# ---- situations × places


@dataclass
class Places:
    """What each place says of a query."""

    why: Why
    stream: Why
    shown: dict[str, Any]
    described: dict[str, Any]
    footer: str
    verified: str
    metrics: dict[str, float]
    bar: tuple[str, str]
    progress: list[dict[str, Any]]
    script: str


def places(console: Any, query: str, stream: str) -> Places:
    """What each place says. The query is idle. script: the last line of a script."""

    def why(what: str) -> Why:
        answer = console.run(f"WHY {what};")[0]
        assert isinstance(answer, Why)
        return answer

    shown = console.run("SHOW QUERIES;")[0]
    row = next(r for r in shown.rows if r[0] == query)  # type: ignore[attr-defined]
    described = dict(console.rows(f"DESCRIBE QUERY {query};"))
    reported = console.run(f"SHOW PROGRESS {query};")[0]
    footer = ""
    if query in (entry.casefold() for entry in console.session.parts.catalog.sinks):
        watched = console.run(f"WATCH {query};")[0]
        assert isinstance(watched, Live)
        footer = frame(watched, View(width=60)).footer[0]
        watched.close()
    try:
        answer = console.run(f"VERIFY QUERY {query};")[0]
        assert isinstance(answer, Done)
        verified = answer.message
    except StreamsqlError as error:
        verified = f"{error.message}\n{error.detail}"
    from streamsql.features.metrics.query_metrics import QueryMetrics  # one of the places, if it is there

    metrics = {
        sample.name: sample.value
        for family in QueryMetrics(console.session.parts).collect()
        for sample in family.samples
        if sample.labels.get("query") == query
    }
    columns, bar = shown.columns, console.session.summary()
    running = console.session.parts.queries.all.get(query)
    ends = (
        [note.text for note in explanations().at_end_of_script(console.session.parts, running)]
        if running
        else []
    )
    return Places(
        why(query),
        why(f"STREAM {stream}"),
        dict(zip(columns, row, strict=True)),
        described,
        footer,
        verified,
        metrics,
        (str(bar.late or ""), str(bar.malformed or "")),
        [dict(zip(reported.columns, row, strict=True)) for row in reported.rows],
        next((text for text in ends if "rows in" in text), ""),
    )


def lost_rows(late: str, malformed: str) -> list[str]:
    """How places tell of lost rows. "": none."""
    of_late = f"{late} late row{'' if late.endswith('1') else 's'}"
    return [of_late] * bool(late) + [f"{malformed} malformed"] * bool(malformed)


def agree(told: Places, read: str, late: str, malformed: str) -> None:
    """Every place has the same figures under the same names. "": none."""

    def text(value: Any) -> str:
        return "" if value in (None, "", 0, "0") else str(value)

    facts = dict(told.why.rows)
    for place in (told.shown, told.described, facts):
        figures = text(place.get("rows in")), text(place.get("late rows")), text(place.get("malformed"))
        assert figures == (read, late, malformed)
    assert told.bar == (late, malformed)
    assert told.footer.startswith(" · ".join(lost_rows(late, malformed))) or not told.footer
    since = told.described.get("rows in since this start", read)
    for name, figure in (("rows in", since), ("late rows", late), ("malformed", malformed)):
        number = sum(int(str(row.get(name) or "0").split()[-1]) for row in told.progress)
        assert number == int((figure or "0").split()[-1]) or since != read
    assert told.metrics["streamsql_query_rows_total"] == int((read or "0").split()[-1])
    assert told.metrics["streamsql_query_late_rows_total"] == int((late or "0").split()[-1])
    assert told.metrics["streamsql_query_malformed_rows_total"] == int(malformed or "0")
    for shown in (told.why, told.stream):
        assert not (shown.verdict.startswith("nothing is wrong") and (late or malformed))


def stream_of_files(console: Console | Opened, name: str, folder: Path, columns: str, more: str = "") -> Path:
    folder.mkdir()
    console.run(f"CREATE STREAM {name} ({columns}) USING csv OPTIONS (path '{folder}') {more};")
    return folder


@pytest.mark.slow
def test_late_rows_of_an_updating_query(console: Console, tmp_path: Path) -> None:
    watermark = "WITH WATERMARK at DELAY OF INTERVAL 1 MINUTES"
    folder = stream_of_files(console, "s", tmp_path / "in", "k STRING, at TIMESTAMP", watermark)
    (folder / "1.csv").write_text("a,2024-05-01 12:00:00\nb,2024-05-01 15:00:00\n")
    console.run(
        """CREATE LIVE TABLE u OUTPUT MODE UPDATE AS
          SELECT window(at, '5 minutes').end AS until, count(*) AS n FROM s GROUP BY window(at, '5 minutes');
        AWAIT QUERY u IDLE;"""
    )
    late = "".join(f"x,2024-05-01 10:0{n}:00\n" for n in range(5))
    put_whole(folder / "2.csv", f"{late}d,2024-05-01 15:01:00\n")
    console.run("AWAIT QUERY u IDLE;")
    told = places(console, "u", "s")
    # Spark drops the five rows after it has combined those of a window: it counts one.
    agree(told, "8", "at least 1", "")
    assert told.why.code == "ROWS_LATE"
    assert told.why.verdict.startswith("at least 1 row came behind the watermark, by up to ")
    assert "and was dropped; 3 rows came out, the last " in told.why.verdict
    assert told.stream.verdict == f"u reads s: {told.stream.verdict.removeprefix('u reads s: ')}"
    assert told.why.proposal == "SELECT * FROM LATE ROWS OF QUERY u;"
    assert len(console.rows(told.why.proposal)) == 5
    assert "1 missing" in told.verified and "by 5 late rows" in told.verified
    assert [r[7] for r in console.rows("SHOW PROGRESS u;")].count("at least 1") == 1


@pytest.mark.slow
def test_malformed_rows_a_file_that_grew_and_a_file_of_the_future(console: Console, tmp_path: Path) -> None:
    folder = stream_of_files(console, "s", tmp_path / "in", "a INT, b INT", "ON MALFORMED SKIP")
    (folder / "1.csv").write_text("1,2\nx,3\n4,5\n")
    console.run("CREATE LIVE TABLE u AS SELECT a, b FROM s; AWAIT QUERY u IDLE;")
    told = places(console, "u", "s")
    agree(told, "3", "", "1")
    assert told.why.code == "ROWS_UNREADABLE"
    assert told.why.verdict.startswith(
        "1 row of s cannot be read as declared, and was skipped; 2 rows came out"
    )
    assert console.rows(told.why.proposal)[0][0] == "x,3"
    assert "1 row of s cannot be read as declared" in told.verified

    with open(folder / "1.csv", "a") as file:
        file.write("6,7\n" * 10)
    later = os.stat(folder / "1.csv").st_mtime + 5
    os.utime(folder / "1.csv", (later, later))
    told = places(console, "u", "s")
    agree(told, "3", "", "1")
    assert told.why.code == "FILES_CHANGED"
    assert told.why.verdict.startswith("1 file of s changed after u had read it: 1.csv; a file is read once")
    # Two situations hold: both are told.
    assert "1 row of s cannot be read as declared" in dict(told.why.rows)["also"]
    assert "10 missing" in told.verified and "1 file of s changed after u had read it" in told.verified
    console.run(f"{told.why.proposal} AWAIT QUERY u IDLE;")
    assert console.rows("SELECT count(*) FROM u;") == [(12,)]
    assert places(console, "u", "s").why.code == "ROWS_UNREADABLE"

    (tmp_path / "2.csv").write_text("8,9\n")
    future = dt.datetime(2031, 1, 1).timestamp()
    os.utime(tmp_path / "2.csv", (future, future))
    (tmp_path / "2.csv").rename(folder / "2.csv")
    console.run("AWAIT QUERY u IDLE;")
    put_whole(folder / "3.csv", "10,11\n")
    told = places(console, "u", "s")
    assert told.why.code == "FILES_TOO_OLD"
    assert told.why.verdict == (
        "1 file of s is never read: the newest file, 2.csv, is dated 2031-01-01 00:00:00, and maxFileAge, 7d, is "
        "counted from that date"
    )
    assert told.stream.verdict == f"u reads s: {told.why.verdict}" and told.why.verdict in told.verified
    console.run(f"{told.why.proposal} AWAIT QUERY u IDLE;")
    assert (10,) in console.rows("SELECT a FROM u;")


@pytest.mark.slow
def test_a_moved_folder_of_a_file_sink(console: Console, tmp_path: Path) -> None:
    folder = stream_of_files(console, "s", tmp_path / "in", "a INT")
    (folder / "1.csv").write_text("1\n2\n")
    console.run(
        f"""CREATE SINK o USING json OPTIONS (path '{tmp_path}/out'); INSERT INTO o TRIGGER AVAILABLE NOW SELECT a FROM s;
        AWAIT QUERY o;"""
    )
    shutil.move(tmp_path / "out", tmp_path / "moved")
    console.run(
        f"""CREATE STREAM m (a INT) USING json OPTIONS (path '{tmp_path}/moved');
        CREATE LIVE TABLE mm AS SELECT a FROM m;"""
    )
    for what in ("mm", "STREAM m"):
        shown = console.run(f"WHY {what};")[0]
        assert isinstance(shown, Why) and shown.code == "FILES_HIDDEN"
        assert "1 file of m is not read: a file sink has written " in shown.verdict
        assert "1 file of the log is not there: the folder was moved" in shown.verdict
    console.run("AWAIT QUERY mm IDLE;")
    console.run(f"{shown.proposal} AWAIT QUERY mm IDLE;")
    assert sorted(console.rows("SELECT a FROM mm;")) == [(1,), (2,)]


@pytest.mark.slow
def test_tomorrow(opened: Open, tmp_path: Path, eventually: Callable[..., None]) -> None:  # noqa: F811
    console = opened()
    watermark = "WITH WATERMARK at DELAY OF INTERVAL 1 MINUTES"
    folder = stream_of_files(console, "s", tmp_path / "in", "k STRING, at TIMESTAMP", watermark)
    (folder / "1.csv").write_text("a,2024-05-01 12:00:00\nb,2024-05-01 13:00:00\n")
    console.run(
        """CREATE LIVE TABLE u OUTPUT MODE APPEND AS SELECT session_window(at, '5 minutes').end AS until, k
          FROM s GROUP BY session_window(at, '5 minutes'), k;
        CREATE LIVE TABLE v AS SELECT k FROM s; CREATE LIVE TABLE w AS SELECT k FROM s;
        CREATE VIEW seen AS SELECT 1 AS x;
        AWAIT QUERY u IDLE; AWAIT QUERY v IDLE; AWAIT QUERY w IDLE; STOP QUERY w;"""
    )
    before = console.run("WHY u;")[0]
    assert isinstance(before, Why) and before.code == "SESSION_OPEN"
    console = opened()
    assert console.words[0].endswith("1 stream, 3 live tables, 1 view, 3 stopped queries")
    totals = {r[0]: (r[6], r[11]) for r in console.rows("SHOW QUERIES;")}
    assert totals == {"u": (2, 1), "v": (2, 0), "w": (2, 0)}
    (started,) = console.run("START QUERY ALL;")
    assert started.message == "started: u, v"  # type: ignore[attr-defined]
    assert "not started: w, stopped by STOP QUERY; START QUERY name; starts it" in notes_of(started)
    assert {r[0]: (r[6], r[11]) for r in console.rows("SHOW QUERIES;")} == totals
    told = places(console, "u", "s")
    agree(told, "2", "", "")
    assert told.why.code == "SESSION_OPEN" and "1 session is still open" in told.why.verdict
    # A healthy query gets no statement that drops it or starts it again.
    assert told.why.proposal == "SELECT * FROM STATE OF QUERY u LIMIT 10;"
    told = places(console, "v", "s")
    assert told.why.verdict.startswith(
        "nothing new: all that the source has was read before this start, 2 rows"
    )
    assert told.why.proposal == ""
    put_whole(folder / "2.csv", "c,2024-05-01 14:00:00\n")
    console.run("AWAIT QUERY v IDLE;")
    told = places(console, "v", "s")
    assert (told.shown["rows in"], told.shown["rows out"]) == (3, 3)
    assert (told.described["rows in"], told.described["rows in since this start"]) == ("3", "1")
    assert told.why.verdict.startswith("nothing is wrong: 3 rows came out, the last ")
