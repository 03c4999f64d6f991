"""Tables of many rows: fetched as they are read, written as they come."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Console

from streamsql.config.preferences import Preferences
from streamsql.errors import Cancelled, EngineFault
from streamsql.output.printer import Printer
from streamsql.output.row_formats import FORMATS
from streamsql.results import Rows, RowStream
from streamsql.runtime.engine.cancel import CancelToken

ROOMS = ("streamsql/runtime/",)

ROWS = [(n, None if n % 7 == 0 else "x" * (n % 5), n / 4) for n in range(5_000)]
COLUMNS, NUMERIC = ("id", "s", "quarter"), (True, False, True)


class Source:
    """The rows behind the first 2,000, in blocks of 1,000; counts the blocks that were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def stream(self) -> RowStream:
        return RowStream((), COLUMNS, NUMERIC, ROWS[:2000], self._rest())

    def _rest(self) -> Iterator[list[tuple[Any, ...]]]:
        for start in range(2000, len(ROWS), 1000):
            self.asked += 1
            yield ROWS[start : start + 1000]


def printer(*, window: bool, **preferences: object) -> Printer:
    size = (lambda: 80), (lambda: 24)
    given = {key: str(value) for key, value in preferences.items()}
    made = Printer(Preferences(**given), io.StringIO(), io.StringIO(), width=size[0] if window else lambda: 0)
    made.height = size[1]
    return made


def written(to: Printer) -> tuple[str, str]:
    assert isinstance(to.out, io.StringIO)
    assert isinstance(to.words, io.StringIO)
    return to.out.getvalue(), to.words.getvalue()


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_file_gets_what_it_gets_of_a_table_in_memory(format: str) -> None:
    streamed, whole = printer(window=False, format=format), printer(window=False, format=format)
    streamed.show(Source().stream())
    whole.show(Rows((), COLUMNS, ROWS, NUMERIC, 0.0))
    assert written(streamed)[0] == written(whole)[0]
    assert written(streamed)[1].startswith("(5,000 rows, ")


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamsql.output.printer.is_terminal", lambda stream: True)


@pytest.mark.usefixtures("processes")
def test_the_pager_gets_all_rows_and_a_wider_header_where_a_value_is_wider(
    on_a_terminal: None, tmp_path: Path
) -> None:
    shown = printer(window=True, pager=f"cat > {tmp_path}/paged", color="never")
    source = Source()
    shown.show(RowStream((), ("id", "s"), (True, False), [(1, "a")], iter([[(2, "a long word")], [(3, "")]])))
    assert (tmp_path / "paged").read_text().splitlines() == [
        "+------+-----+",
        "|   id | s   |",
        "|------+-----|",
        "|    1 | a   |",
        "+------+-------------+",
        "|   id | s           |",
        "|------+-------------|",
        "|    2 | a long word |",
        "|    3 |             |",
        "+------+-------------+",
    ]
    shown.show(source.stream())
    paged = (tmp_path / "paged").read_text()
    assert "| 4999 |" in paged.replace("  ", " ").replace("  ", " ")
    assert written(shown)[1].splitlines()[-1].startswith("(5,000 rows, ")


@pytest.mark.usefixtures("processes")
def test_a_pager_that_is_left_ends_the_fetching(on_a_terminal: None) -> None:
    shown, asked = printer(window=True, pager="head -1 > /dev/null", color="never"), 0

    def endless() -> Iterator[list[tuple[Any, ...]]]:
        nonlocal asked
        while True:
            asked += 1
            yield ROWS[:1000]

    stream = RowStream((), COLUMNS, NUMERIC, ROWS[:2000], endless())
    shown.show(stream)
    assert asked < 1000
    assert next(stream.rest, None) is None  # it is closed
    assert "the others were not fetched)" in written(shown)[1]


def test_a_window_without_a_pager_fetches_what_it_shows(on_a_terminal: None) -> None:
    shown, source = printer(window=True, pager="off", max_rows=20), Source()
    shown.show(source.stream())
    assert source.asked == 0
    out, words = written(shown)
    assert "19 |" in out
    assert "20 |" not in out
    assert words.startswith("(first 20 rows, ")
    assert "max_rows = 0; shows all rows" in words


def test_a_limit_that_no_row_reaches_is_not_told(on_a_terminal: None) -> None:
    shown = printer(window=True, pager="off", max_rows=10_000)
    shown.show(Source().stream())
    assert "4999 |" in written(shown)[0]
    words = written(shown)[1]
    assert words.startswith("(5,000 rows, ")
    assert "max_rows" not in words


def test_a_cancelled_statement_writes_nothing_more() -> None:
    cancel, to = CancelToken(), printer(window=False, format="csv")

    def rest() -> Iterator[list[tuple[Any, ...]]]:
        yield [(1, "last", 0.5)]
        cancel.cancel()
        yield [(2, "after Ctrl-C", 0.5)]

    with pytest.raises(Cancelled):
        to.show(RowStream((), COLUMNS, NUMERIC, [], rest()), check=cancel.check)
    assert "last" in written(to)[0]
    assert "(" not in written(to)[1]


VALUES = (
    "id, id * 1.5D AS d, CAST(id AS STRING) AS s, timestamp_seconds(id * 100) AS t, struct(id AS a) AS st, "
    "map('k', timestamp_seconds(id)) AS m, CAST(id AS DECIMAL(20, 3)) AS de, array(NULL, id) AS ar"
)


@pytest.mark.slow
def test_rows_that_are_fetched_in_parts_are_those_of_a_collect(console: Console) -> None:
    console.run("SET spark.sql.session.timeZone = 'Asia/Tokyo';")
    query = f"SELECT {VALUES} FROM range(0, 11000, 1, 3)"
    (result,) = console.run(f"{query};")
    assert isinstance(result, RowStream)
    assert len(result.first) < 11_000
    few = console.run(f"{query} LIMIT 10000;")[0]
    assert isinstance(few, Rows)
    whole = result.whole().rows
    assert list(whole[:10_000]) == list(few.rows)
    assert [row[0] for row in whole] == list(range(11_000))
    shuffled = console.rows("SELECT id % 10007 AS k, count(*) FROM range(20000) GROUP BY 1;")
    assert sorted(shuffled) == [(k, 2 if k < 20000 - 10007 else 1) for k in range(10007)]


def test_rows_wait_in_files_until_they_are_read(console: Console, spark: Any) -> None:
    """Partitions are not held in memory, and nothing of them is left behind."""
    local = Path(spark._jvm.org.apache.spark.util.Utils.getLocalDir(spark._jsc.sc().conf()))

    def waiting() -> list[Path]:
        return sorted(local.glob("rows*/*"))

    for leave in (False, True):
        (result,) = console.run("SELECT id FROM range(0, 60000, 1, 4);")
        assert isinstance(result, RowStream)
        assert waiting() == []
        seen = len(result.first) + len(next(result.rest))
        (file,) = waiting()  # the first partition of 15,000 rows
        assert file.parent.stat().st_mode & 0o077 == 0 or local.stat().st_mode & 0o077 == 0
        if leave:
            result.rest.close()
        else:
            assert seen + sum(map(len, result.rest)) == 60_000
        assert list(local.glob("rows*")) == []


def test_intervals_of_months_are_shown(console: Console) -> None:
    query = "SELECT INTERVAL -15 MONTH AS a, make_interval(1, 1, 0, 2) AS b, array(INTERVAL 2 YEAR) AS c"
    wanted = ("-1 year -3 months", "1 year 1 month 2 days", ["2 years"])
    assert console.rows(f"{query};") == [wanted]
    assert console.rows(f"{query}, INTERVAL 0 MONTH AS a;") == [(*wanted, "0 months")]
    (many,) = console.run(f"{query} FROM range(0, 11000, 1, 3);")
    assert set(map(str, many.whole().rows)) == {str(wanted)}


def test_an_error_in_a_later_row_is_told_as_one_of_the_statement(console: Console) -> None:
    (result,) = console.run("SELECT 1 / (id - 10500) AS x FROM range(0, 11000, 1, 3);")
    assert isinstance(result, RowStream)
    with pytest.raises(EngineFault, match="(?i)division by zero") as caught:
        result.whole()
    assert caught.value.code == "DIVIDE_BY_ZERO"
