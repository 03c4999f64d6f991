"""Fields of files that are new, missing, moved or of another type while a query runs, and nobody alters the stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from data_files import put_whole

from streamsql.errors import StreamsqlError
from streamsql.runtime.queries.null_columns import MANY

ROOMS = ("streamsql/features/alter_stream/", "streamsql/connectors/", "streamsql/runtime/queries/")

ONE = {"json": '{"a": 1, "b": "x"}', "csv": "a,b\n1,x"}
FAILS = None
LATER: dict[str, tuple[str, str, Any, int]] = {
    "json, new": ("json", '{"a": 2, "b": "y", "c": 5}', (2, "y"), 0),
    "json, missing": ("json", '{"a": 2}', (2, None), 0),
    "json, moved": ("json", '{"b": "y", "a": 2}', (2, "y"), 0),
    "json, retyped": ("json", '{"a": "two", "b": "y"}', (None, "y"), 1),
    "json, too large": ("json", '{"a": 3000000000, "b": "y"}', (None, "y"), 1),
    "csv, new": ("csv", "a,b,c\n2,y,5", FAILS, 0),
    "csv, missing": ("csv", "a\n2", FAILS, 0),
    "csv, moved": ("csv", "b,a\n7,2", FAILS, 0),
    "csv, renamed": ("csv", "a,x\n2,y", FAILS, 0),
    "csv, retyped": ("csv", "a,b\ntwo,y", (None, "y"), 1),
}
"""Format, the second file, and its row; how many rows are counted as malformed."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("case", sorted(LATER, key=lambda case: ("moved" not in case, case)))
def test_a_second_file(console: Console, folder: Path, case: str) -> None:
    form, text, row, malformed = LATER[case]
    (folder / f"1.{form}").write_text(f"{ONE[form]}\n")
    header = ", header 'true'" if form == "csv" else ""
    console.run(
        f"""CREATE STREAM s (a INT, b STRING) USING {form} OPTIONS (path '{folder}'{header});
        CREATE LIVE TABLE t AS SELECT * FROM s; CREATE LIVE TABLE one AS SELECT b FROM s; AWAIT QUERY ALL IDLE;"""
    )
    put_whole(folder / f"2.{form}", f"{text}\n")
    if row is FAILS:
        for query in ("t", "one"):
            with pytest.raises(StreamsqlError) as caught:
                console.run(f"AWAIT QUERY {query} IDLE;")
            assert caught.value.code == "HEADER_MISMATCH"
        assert console.rows("SELECT * FROM t;") == [(1, "x")]
        return
    console.run("AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM t;") == [(1, "x"), row]
    assert console.rows("SELECT count(*) FROM s$malformed;") == [(malformed,)]


def test_by_position_columns_are_taken_as_they_come(console: Console, folder: Path) -> None:
    (folder / "1.csv").write_text("a,b\n1,2\n")
    put_whole(folder / "2.csv", "b,a\n2,1\n")
    options = f"path '{folder}', header 'true', enforceSchema 'true'"
    console.run(f"CREATE STREAM s (a INT, b INT) USING csv OPTIONS ({options});")
    assert console.rows("SELECT * FROM s ORDER BY a;") == [(1, 2), (2, 1)]


def test_a_column_without_values_is_told_once(
    console: Console, folder: Path, eventually: Callable[..., None]
) -> None:
    news: list[str] = []
    console.session.on_news(news.append)

    def put(number: int, rows: int, **values: Any) -> None:
        line = json.dumps(values)
        put_whole(folder / f"{number}.json", f"{line}\n" * rows)
        console.run("AWAIT QUERY t IDLE;")

    console.run(
        f"""CREATE STREAM s (a INT, b STRING, c INT) USING json OPTIONS (path '{folder}');
        CREATE LIVE TABLE t AS SELECT * FROM s;"""
    )
    put(1, 1, a=1, b="x")
    first = "c of s is NULL in every row of the first micro-batch; PREVIEW USING … shows how it is named and typed"
    eventually(lambda: len(news) == 1)
    assert first in news[0]
    put(2, MANY - 1, a=2)  # few rows may have no value
    put(3, MANY, a=3, B="renamed")
    eventually(lambda: len(news) == 2)
    assert "b of s is NULL in every row of micro-batch 2, but not in earlier ones" in news[1]
    put(4, MANY, a=4)
    put(5, 1, a=5, b="y")
    eventually(lambda: console.session.parts.queries.all["t"].reports.latest["batchId"] == 4)
    assert len(news) == 2
