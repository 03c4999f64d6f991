"""What reads a live table that gets other columns: it is planned anew, or says why it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from test_reopened import Open, opened  # noqa: F401  a fixture

from streamsql.errors import StreamsqlError
from streamsql.results import Live

ROOMS = ("streamsql/runtime/queries/", "streamsql/runtime/live/", "streamsql/runtime/embedded/snapshots.py")

A = """CREATE STREAM s (k STRING, n INT) USING values;
    CREATE LIVE TABLE a AS SELECT k, n FROM s; INSERT INTO s VALUES ('a', 1), ('b', 2), ('a', 3);"""
IDLE = "AWAIT QUERY ALL IDLE;"


def runs(console: Any) -> dict[str, object]:
    """The newest run of each query."""
    return {name: running.handle for name, running in console.session.parts.queries.all.items()}


def rows(console: Any, table: str) -> list[tuple[Any, ...]]:
    return sorted(console.rows(f"SELECT * FROM {table};"))


def failures(console: Any) -> dict[str, Any]:
    return {name: found for name, found in console.session.parts.queries.failures.items() if found}


@pytest.mark.parametrize("changed", ["n * 2 AS n, n AS more", "CAST(n AS STRING) AS n", "n + 1 AS more"])
def test_a_chain_of_readers_takes_the_columns_up(opened: Open, changed: str) -> None:  # noqa: F811
    console = opened()
    console.run(
        f"""{A} CREATE LIVE TABLE b AS SELECT * FROM a; CREATE LIVE TABLE c AS SELECT * FROM b;
        CREATE LIVE TABLE d AS SELECT * FROM c WHERE k = 'a'; {IDLE}"""
    )
    select = f"SELECT k, {changed} FROM s"
    (replaced,) = console.run(f"CREATE OR REPLACE LIVE TABLE a AS {select};")
    assert not [note for note in notes_of(replaced) if "does not run" in note]
    names = [field.name for field in console.session.parts.live["a"].schema.fields]
    for table in "bcd":
        assert [field.name for field in console.session.parts.live[table].schema.fields] == names, "at once"
    for insert in ("", "INSERT INTO s VALUES ('a', 5), ('c', 6);"):
        console.run(insert + IDLE)
        expected = sorted(console.rows(select + ";"))
        assert rows(console, "b") == rows(console, "c") == expected
        assert rows(console, "d") == [row for row in expected if row[0] == "a"]
        console.run("VERIFY LIVE TABLE a;")
    assert failures(console) == {}
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL;" + IDLE)
    assert rows(again, "d") == [row for row in expected if row[0] == "a"]


def test_only_what_has_other_columns_is_started_again(console: Console) -> None:
    console.run(
        f"""{A} CREATE LIVE TABLE whole AS SELECT * FROM a; CREATE LIVE TABLE named AS SELECT k FROM a;
        CREATE LIVE TABLE over_named AS SELECT * FROM named; {IDLE}"""
    )
    before = runs(console)
    console.run("CREATE OR REPLACE LIVE TABLE a AS SELECT k, n FROM s WHERE n > 1;" + IDLE)
    assert {name for name, run in runs(console).items() if run is not before[name]} == {"a"}
    console.run("CREATE OR REPLACE LIVE TABLE a AS SELECT k, n, n AS m FROM s WHERE n > 1;" + IDLE)
    assert {name for name, run in runs(console).items() if run is not before[name]} == {"a", "whole"}
    assert rows(console, "over_named") == [("a",), ("b",)]
    assert rows(console, "whole") == [("a", 3, 3), ("b", 2, 2)]


def test_a_column_that_goes_ends_its_reader_until_it_comes_back(console: Console) -> None:
    console.run(
        f"""{A} CREATE LIVE TABLE named AS SELECT n FROM a; CREATE LIVE TABLE top AS SELECT max(n) AS n FROM named;
        {IDLE}"""
    )
    result = console.run("CREATE OR REPLACE LIVE TABLE a AS SELECT k FROM s;")[-1]
    (note,) = [note for note in notes_of(result) if note.startswith("named does not run any more")]
    assert note.startswith(
        "named does not run any more: named cannot be computed any more: there is no column n; columns: k\n"
        "CREATE OR REPLACE LIVE TABLE named AS …; its last rows can be read until then"
    )
    with pytest.raises(StreamsqlError) as caught:
        console.run("AWAIT QUERY named IDLE;")
    assert caught.value.message == "query named failed: there is no column n"
    assert "CREATE OR REPLACE LIVE TABLE named AS …" in caught.value.hint
    assert rows(console, "named") == [(1,), (2,), (3,)] and rows(console, "top") == [(3,)]
    console.run("CREATE OR REPLACE LIVE TABLE a AS SELECT k, n + 10 AS n FROM s;" + IDLE)
    assert rows(console, "named") == [(11,), (12,), (13,)] and rows(console, "top") == [(13,)]
    console.run("CREATE OR REPLACE LIVE TABLE a AS SELECT k FROM s;")
    console.run("CREATE OR REPLACE LIVE TABLE named AS SELECT length(k) AS n FROM a;" + IDLE)
    assert rows(console, "named") == [(1,), (1,), (1,)] and rows(console, "top") == [(1,)]


@pytest.mark.parametrize("way", ["FROM BEGINNING", "FROM NOW", "ACCEPT CHANGES"])
def test_a_sink_of_changes_waits_for_the_word_of_its_owner(
    console: Console, tmp_path: Path, way: str
) -> None:
    console.run(
        f"""{A} CREATE SINK log USING json OPTIONS (path '{tmp_path}/log');
        INSERT INTO log AS QUERY q SELECT * FROM a; {IDLE}
        CREATE SINK keys USING json OPTIONS (path '{tmp_path}/keys'); INSERT INTO keys AS QUERY named SELECT k FROM a;
        {IDLE}"""
    )
    result = console.run("CREATE OR REPLACE LIVE TABLE a AS SELECT k, n, n * 2 AS m FROM s;")[-1]
    notes = [note for note in notes_of(result) if "does not run" in note]
    assert [note.partition(":")[0] for note in notes] == ["q does not run any more"]
    assert "q has written rows with other columns" in notes[0] and f"\n{way}  " in notes[0] + "\n"
    with pytest.raises(StreamsqlError) as caught:
        console.run("AWAIT QUERY q IDLE;")
    assert caught.value.code == "WRONG_COLUMNS" and way in caught.value.hint
    console.run(f"START QUERY q {way}; INSERT INTO s VALUES ('z', 7);" + IDLE)
    read = f"SELECT _op, k, n, m FROM json.`{tmp_path}/log` ORDER BY n;"
    if way == "FROM NOW":
        assert console.rows(read)[3:] == [("+I", "z", 7, 14)]
    else:
        assert [r for r in console.rows(read) if r[3] is not None][-4:] == [
            ("+I", "a", 1, 2), ("+I", "b", 2, 4), ("+I", "a", 3, 6), ("+I", "z", 7, 14)
        ]  # fmt: skip
    whole = console.rows(f"SELECT k, sum(if(_op = '+I', 1, -1)) FROM json.`{tmp_path}/keys` GROUP BY k;")
    assert sorted(whole) == [("a", 2), ("b", 1), ("z", 1)]


def test_without_rows_and_twice_in_a_row(console: Console) -> None:
    console.run(
        """CREATE STREAM s (k STRING, n INT) USING values; CREATE LIVE TABLE a AS SELECT k FROM s;
        CREATE LIVE TABLE b AS SELECT * FROM a; CREATE LIVE TABLE c AS SELECT * FROM b, b AS again;"""
    )
    for n in range(4):
        console.run(f"CREATE OR REPLACE LIVE TABLE a AS SELECT k, n AS n{n} FROM s;")
        assert console.rows(f"SELECT n{n} FROM b;") == []
    console.run("INSERT INTO s VALUES ('a', 1);" + IDLE)
    assert rows(console, "b") == [("a", 1)]
    assert failures(console) == {}


def test_both_ways_to_a_table_take_its_columns_up(console: Console) -> None:
    console.run(
        f"""{A} CREATE LIVE TABLE one AS SELECT * FROM a; CREATE LIVE TABLE other AS SELECT k, count(*) AS c FROM a
        GROUP BY k; CREATE LIVE TABLE both AS SELECT * FROM one JOIN other USING (k); {IDLE}
        CREATE OR REPLACE LIVE TABLE a AS SELECT k, n, n * 2 AS m FROM s; {IDLE}"""
    )
    assert rows(console, "both") == [("a", 1, 2, 2), ("a", 3, 6, 2), ("b", 2, 4, 1)]
    assert failures(console) == {}


@pytest.mark.parametrize("n", ["n, n AS more", "CAST(n AS STRING) AS n"])
def test_what_is_watched_has_the_columns_of_now(console: Console, n: str) -> None:
    console.run(f"{A} CREATE LIVE TABLE b AS SELECT * FROM a; {IDLE}")
    live = console.run("WATCH b;")[-1]
    assert isinstance(live, Live)
    assert (live.take(9, None, None).columns, live.take(9, None, None).total) == (("k", "n"), 3)
    console.run(f"CREATE OR REPLACE LIVE TABLE a AS SELECT k, {n} FROM s WHERE n > 1; {IDLE}")
    taken = live.take(9, None, None)
    assert taken.columns == tuple(field.name for field in console.session.parts.live["b"].schema.fields)
    assert sorted(taken.rows) == rows(console, "b") and len(taken.rows) == 2
    live.close()
