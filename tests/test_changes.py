"""INSERT INTO a sink of a SELECT over live tables: the sink is kept in step, or gets the changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import Broker
from conftest import Console, notes_of
from test_explain import program, run_program
from test_jdbc import Database, database, mariadb, postgresql  # noqa: F401  fixtures
from test_reopened import Open, opened  # noqa: F401  a fixture

from streamsql.errors import QueryFault, StreamsqlError
from streamsql.runtime.live.change_log import ChangeLog
from streamsql.runtime.session import Session

ROOMS = ("streamsql/connectors/", "streamsql/runtime/")

COUNTS = """
CREATE STREAM words (word STRING, n INT) USING values;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS c FROM words GROUP BY word;
"""


def batches(folder: Path) -> list[list[list[Any]]]:
    """The changes in a folder of JSON files as lists of values, by version."""
    by_version = {}
    for file in folder.glob("batch=*/*.json"):
        lines = file.read_text().splitlines()
        by_version[int(file.parent.name.rpartition("-")[2])] = [list(json.loads(x).values()) for x in lines]
    return [by_version[version] for version in sorted(by_version)]


def put(console: Console, *words: str) -> None:
    """One micro-batch, and all that follows from it."""
    values = ", ".join(f"('{w}', 1)" if w else "(NULL, 1)" for w in words)
    console.run(f"INSERT INTO words VALUES {values}; AWAIT QUERY ALL IDLE;")


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_database_table_has_the_rows_of_the_result(console: Console, database: Database) -> None:  # noqa: F811
    started = console.run(
        COUNTS
        + database.sink("best", "best", "word")
        + "INSERT INTO best SELECT word, c FROM counts WHERE word <=> NULL OR c < 3 ORDER BY c DESC, word LIMIT 2;"
    )[-1]
    assert notes_of(started) == (
        "rows of best are inserted, replaced and deleted after micro-batches of counts; "
        "TRIGGER ONCE writes the rows of now, once",
    )
    assert dict(console.rows("DESCRIBE QUERY best;"))["delivery"] == "exactly once"

    def shown() -> list[tuple[Any, ...]]:
        return sorted(database.query("SELECT coalesce(word, 'none'), c FROM best"))

    put(console, "a", "b", "b")
    assert shown() == [("a", 1), ("b", 2)]
    put(console, "", "", "", "b")
    assert shown() == [("a", 1), ("none", 3)]
    put(console, "", "c", "c")
    assert shown() == [("c", 2), ("none", 4)]
    console.run("STOP QUERY best;")
    put(console, "c", "d")
    assert shown() == [("c", 2), ("none", 4)]
    console.run("START QUERY best; AWAIT QUERY best IDLE;")
    assert shown() == [("a", 1), ("none", 4)]


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_write_that_was_cut_off_is_done_once(
    console: Console,
    database: Database,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    console.run(
        COUNTS + database.sink("t", "t", "word") + f"CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');"
        "INSERT INTO t SELECT word, c FROM counts; INSERT INTO f SELECT word, c FROM counts WHERE c = 1;"
    )
    put(console, "a", "b")

    def failing(*args: Any) -> None:
        raise OSError("cut off")

    with monkeypatch.context() as patch:
        patch.setattr(ChangeLog, "done", failing)
        with pytest.raises(QueryFault, match="cut off"):
            put(console, "a", "c")
        with pytest.raises(QueryFault, match="cut off"):
            console.run("AWAIT QUERY f IDLE;")
    console.run("INSERT INTO words VALUES ('c', 1), ('b', 1); AWAIT QUERY counts IDLE;")
    assert sorted(database.query("SELECT * FROM t")) == [("a", 2), ("b", 1), ("c", 1)]
    console.run("START QUERY ALL; AWAIT QUERY ALL IDLE;")
    assert sorted(database.query("SELECT * FROM t")) == [("a", 2), ("b", 2), ("c", 2)]
    # c came, then went: both are there, once.
    assert [sorted(batch) for batch in batches(tmp_path / "f")[-2:]] == [
        [["+I", "c", 1], ["-D", "a", 1]],
        [["-D", "b", 1], ["-D", "c", 1]],
    ]


@pytest.mark.slow
def test_files_get_the_changes_by_the_keys_of_groups(console: Console, tmp_path: Path) -> None:
    console.run(
        f"{COUNTS} CREATE SINK f (size INT, words BIGINT) USING json OPTIONS (path '{tmp_path}/f');"
        "CREATE SINK plain USING json OPTIONS (path '{0}/plain');".replace("{0}", str(tmp_path))
        + "INSERT INTO f (words, size) AS QUERY sizes SELECT count(*), c FROM counts GROUP BY c;"
        "INSERT INTO plain SELECT c FROM counts;"
    )
    put(console, "a", "b")
    put(console, "b", "c", "c", "c", "d")
    assert batches(tmp_path / "f") == [[["+I", 1, 2]], [["+I", 2, 1], ["+I", 3, 1]]]
    assert batches(tmp_path / "plain") == [[["+I", 1], ["+I", 1]], [["+I", 2], ["+I", 3]]]
    console.run("DROP QUERY sizes;")
    put(console, "a", "d")
    assert batches(tmp_path / "plain")[2:] == [[["-D", 1], ["-D", 1], ["+I", 2], ["+I", 2]]]


def test_a_live_table_gets_the_changes_and_another_reads_them(console: Console) -> None:
    console.run(
        f"""{COUNTS} CREATE SINK log USING memory;
        INSERT INTO log SELECT c, count(*) AS k FROM counts GROUP BY c;
        CREATE LIVE TABLE sums AS SELECT sum(if(_op IN ('+I', '+U'), k, -k)) AS words FROM log;"""
    )
    put(console, "a", "b")
    put(console, "a", "b", "c")
    put(console, "d")
    assert console.rows("SELECT * FROM log;") == [
        ("+I", 1, 2),
        ("-U", 1, 2),
        ("+U", 1, 1),
        ("+I", 2, 2),
        ("-U", 1, 1),
        ("+U", 1, 2),
    ]
    console.run("AWAIT QUERY sums IDLE;")
    assert console.rows("SELECT * FROM sums;") == [(4,)]
    described = dict(console.rows("DESCRIBE QUERY log;"))
    assert (described["inputs"], described["micro-batches behind"]) == ("counts", 0)
    with pytest.raises(StreamsqlError) as caught:
        console.run("DROP LIVE TABLE counts;")
    assert caught.value.hint == "DROP QUERY log; first"
    console.run(caught.value.hint.removesuffix("first"))
    console.run("DROP LIVE TABLE counts;")


@pytest.mark.slow
def test_messages_have_the_key_and_the_change(kafka: Broker, console: Console) -> None:
    topic = kafka.topic()
    console.run(
        f"{COUNTS} CREATE SINK o USING kafka KEY (word) OPTIONS (servers '{kafka.servers}', topic '{topic}');"
        "INSERT INTO o SELECT word, c FROM counts WHERE c < 3;"
    )
    assert dict(console.rows("DESCRIBE QUERY o;"))["delivery"].startswith("at least once")
    put(console, "a")
    put(console, "a", "b")
    put(console, "a")
    sent = [((m.key or b"").decode(), *json.loads(m.value or "").values()) for m in kafka.read(topic)]
    assert sent == [
        ("a", "+I", "a", 1),
        ("a", "-U", "a", 1),
        ("a", "+U", "a", 2),
        ("b", "+I", "b", 1),
        ("a", "-D", "a", 2),
    ]


@pytest.mark.slow
def test_only_once_and_from_now_and_from_the_beginning(console: Console, tmp_path: Path) -> None:
    console.run(
        f"{COUNTS} CREATE SINK once USING json OPTIONS (path '{tmp_path}/once');"
        f"CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');"
    )
    put(console, "a", "b")
    done = console.run("INSERT INTO once TRIGGER ONCE SELECT word, c FROM counts;")[0]
    assert done.message == "written into once"
    console.run("INSERT INTO f FROM NOW SELECT word, c FROM counts; AWAIT QUERY f IDLE;")
    put(console, "c")
    assert console.rows(f"SELECT word, c FROM json.`{tmp_path}/once` ORDER BY word;") == [("a", 1), ("b", 1)]
    assert batches(tmp_path / "f") == [[["+I", "c", 1]]]
    console.run("STOP QUERY f; START QUERY f FROM BEGINNING; AWAIT QUERY f IDLE;")
    assert console.rows(f"SELECT word FROM json.`{tmp_path}/f` ORDER BY word;") == [
        ("a",),
        ("b",),
        ("c",),
        ("c",),
    ]


@pytest.mark.slow
def test_another_console_goes_on_with_the_changes_since(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    first = opened()
    first.run(
        f"{COUNTS} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');"
        "INSERT INTO f SELECT c, count(*) AS k FROM counts GROUP BY c;"
        "INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY ALL IDLE;"
    )
    second = opened()
    assert second.warnings == []
    assert [row[:2] for row in second.rows("SHOW QUERIES;")] == [("counts", "stopped"), ("f", "stopped")]
    second.run("START QUERY f;")
    waits = "an input stands still: the query counts is not running; START QUERY counts; resumes it"
    assert dict(second.rows("DESCRIBE QUERY f;"))["remark"] == waits
    second.run("INSERT INTO words VALUES ('a', 1); START QUERY ALL; AWAIT QUERY ALL IDLE;")
    changes = [change for batch in batches(tmp_path / "f") for change in batch]
    assert changes == [["+I", 1, 2], ["-U", 1, 2], ["+U", 1, 1], ["+I", 2, 1]]


def test_rows_of_one_key_are_an_error(console: Console) -> None:
    console.run(f"{COUNTS} CREATE SINK log USING memory KEY (c); INSERT INTO log SELECT word, c FROM counts;")
    with pytest.raises(QueryFault, match=r"several rows with the same KEY \(c\)"):
        put(console, "a", "b")


@pytest.mark.slow
def test_a_row_is_known_by_the_key_of_the_sink_or_of_the_live_table(console: Console, tmp_path: Path) -> None:
    shown: list[Any] = []
    config = replace(console.session.parts.config, show_batch=lambda rows, batch: shown.extend(rows.rows))
    console.session = Session(config, console.session.spark)
    (tmp_path / "takers.py").write_text(
        "def take(batch, batch_id):\n"
        f"    with open('{tmp_path}/taken', 'a') as out:\n"
        "        print(batch_id, [tuple(r) for r in batch.collect()], file=out)\n"
    )
    console.run(
        f"""{COUNTS} CREATE SINK f USING json KEY (c) OPTIONS (path '{tmp_path}/f');
        CREATE SINK shown USING console KEY (w);
        CREATE SINK taken USING foreach_batch KEY (word)
          OPTIONS (function 'takers.take', folder '{tmp_path}');
        CREATE SINK plain USING json OPTIONS (path '{tmp_path}/plain');
        INSERT INTO f SELECT word, c FROM counts WHERE c > 1 AND word <> 'c';
        INSERT INTO shown SELECT upper(word) AS w, c FROM counts;
        INSERT INTO taken SELECT word, c FROM counts;
        INSERT INTO plain SELECT c * 10 AS tens, word AS w FROM counts WHERE c < 3 ORDER BY c LIMIT 9;"""
    )
    put(console, "a", "a")
    put(console, "a", "b", "b")
    assert batches(tmp_path / "f") == [[["+I", "a", 2]], [["-U", "a", 2], ["+U", "b", 2], ["+I", "a", 3]]]
    assert batches(tmp_path / "plain") == [[["+I", 20, "a"]], [["-D", 20, "a"], ["+I", 20, "b"]]]
    put(console, "c")
    put(console, "c")
    assert batches(tmp_path / "plain")[3:] == [[["-U", 10, "c"], ["+U", 20, "c"]]]
    taken = (tmp_path / "taken").read_text().splitlines()
    assert [line.partition(" ")[2] for line in taken[:2]] == [
        "[('+I', 'a', 2)]",
        "[('-U', 'a', 2), ('+U', 'a', 3), ('+I', 'b', 2)]",
    ]
    assert dict(console.rows("DESCRIBE QUERY taken;"))["delivery"].startswith("at least once")
    assert list(map(tuple, shown)) == [
        ("+I", "A", 2),
        ("-U", "A", 2),
        ("+U", "A", 3),
        ("+I", "B", 2),
        ("+I", "C", 1),
        ("-U", "C", 1),
        ("+U", "C", 2),
    ]


def test_each_sink_has_its_own_query(console: Console, tmp_path: Path) -> None:
    console.run(
        f"{COUNTS} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');"
        f"CREATE SINK g USING json OPTIONS (path '{tmp_path}/g');"
    )
    both = "EXECUTE STATEMENT SET BEGIN INSERT INTO f SELECT word FROM counts; INSERT INTO g SELECT c FROM counts; END;"
    for statement in (both, "INSERT INTO f, g SELECT c FROM counts;"):
        with pytest.raises(StreamsqlError) as caught:
            console.run(statement)
        console.run(caught.value.hint + "DROP QUERY f; DROP QUERY g;")
    assert caught.value.code == "CLAUSE_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        ("INSERT INTO f TRIGGER EVERY INTERVAL 1 SECOND SELECT word FROM counts;", "TRIGGER_NOT_SUPPORTED"),
        ("INSERT INTO f OUTPUT MODE UPDATE SELECT word FROM counts;", "OUTPUT_MODE_NOT_SUPPORTED"),
        ("INSERT INTO f CHECKPOINT 'x' SELECT word FROM counts;", "CLAUSE_NOT_SUPPORTED"),
        ("INSERT INTO f, g SELECT word FROM counts;", "CLAUSE_NOT_SUPPORTED"),
        ("INSERT INTO f SELECT word AS _op FROM counts;", "WRONG_COLUMNS"),
        ("INSERT INTO k SELECT c FROM counts;", "UNKNOWN_COLUMN"),
        ("INSERT INTO e SELECT c FROM counts;", "CONNECTOR_NOT_SUPPORTED"),
        ("INSERT INTO counts SELECT word FROM counts;", "ALREADY_EXISTS"),
    ],
)
def test_what_is_refused(console: Console, tmp_path: Path, clauses: str, code: str) -> None:
    console.run(
        f"{COUNTS} CREATE SINK f USING json OPTIONS (path '{tmp_path}'); CREATE SINK g USING console;"
        "CREATE SINK k USING memory KEY (word); CREATE SINK e USING foreach OPTIONS (function 'builtins.print');"
    )
    with pytest.raises(StreamsqlError) as caught:
        console.run(clauses)
    assert caught.value.code == code


def test_the_program_writes_the_same_changes(console: Console, tmp_path: Path) -> None:
    console.run(f"{COUNTS} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');")
    console.run("INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY ALL IDLE;")
    text = program(console, "INSERT INTO f SELECT c, count(*) AS k FROM counts GROUP BY c")
    console.run("STOP QUERY ALL;")
    for query in console.session.spark.streams.active:
        query.stop()
    run_program(text.replace(".start()", ".trigger(availableNow=True).start()"))
    assert batches(tmp_path / "f") == [[["+I", 1, 2]]]
