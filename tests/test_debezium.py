"""FORMAT debezium_json: the changes of a live table in Debezium's envelope, and back into a live table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broker import Broker
from conftest import Console, notes_of
from data_files import put_whole

from streamsql.errors import QueryFault, StreamsqlError

ROOMS = ("streamsql/connectors/", "streamsql/runtime/")

WORDS = """
CREATE STREAM words (word STRING, n INT, at TIMESTAMP) USING values;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS c, max(at) AS latest FROM words GROUP BY word;
"""
COLUMNS = "(word STRING, c BIGINT, latest TIMESTAMP)"
TIME = "TIMESTAMP '2024-05-01 12:00:00.123456'"


@pytest.mark.slow
def test_changes_are_written_into_files_and_read_back(console: Console, tmp_path: Path) -> None:
    folder = tmp_path / "changes"
    started = console.run(
        f"""{WORDS} CREATE SINK f USING json FORMAT debezium_json OPTIONS (path '{folder}');
        INSERT INTO f SELECT * FROM counts WHERE c < 3;
        INSERT INTO words VALUES ('a', 1, {TIME}), ('b', 1, NULL); AWAIT QUERY f IDLE;"""
    )
    assert notes_of(started[3])[0].startswith("f gets the changes (in Debezium's envelope)")
    [first] = folder.glob("batch=*/*.json")
    envelopes = [json.loads(line) for line in first.read_text().splitlines()]
    assert [(e["op"], e["before"]) for e in envelopes] == [("c", None), ("c", None)]
    assert {e["after"]["word"]: e["after"]["latest"] for e in envelopes} == {
        "a": "2024-05-01T12:00:00.123456Z",
        "b": None,
    }
    created = console.run(
        f"""CREATE STREAM s {COLUMNS} USING json FORMAT debezium_json KEY (word) OPTIONS (path '{folder}');
        CREATE LIVE TABLE copy AS SELECT * FROM s;
        CREATE LIVE TABLE some AS SELECT c * 10 AS tens FROM s WHERE c < 2;
        CREATE LIVE TABLE total AS SELECT sum(c) AS n FROM s;"""
    )
    assert created[0].notes[0].code == "FILE_BY_FILE"
    assert "total$1 keeps one row for each key" in str(created[3].notes)
    for values in ("('a', 1, NULL), ('c', 1, NULL)", "('a', 1, NULL), ('b', 1, NULL)"):
        console.run(f"INSERT INTO words VALUES {values}; AWAIT QUERY f IDLE;")
    console.run("AWAIT QUERY ALL IDLE;")
    copied = sorted(console.rows("SELECT * FROM copy;"))
    assert copied == sorted(console.rows("SELECT * FROM counts WHERE c < 3;"))
    assert [row[:2] for row in copied] == [("b", 2), ("c", 1)]
    assert console.rows("SELECT * FROM some;") == [(10,)]
    assert console.rows("SELECT * FROM total;") == [(3,)]
    assert "KEY (word)" in str(console.run("SHOW CREATE STREAM s;")[0])


@pytest.mark.slow
def test_changes_are_messages_and_a_table_of_them_follows(kafka: Broker, console: Console) -> None:
    at = f"OPTIONS (servers '{kafka.servers}', topic '{kafka.topic()}')"
    console.run(
        f"""{WORDS} CREATE SINK o USING kafka FORMAT debezium_json KEY (word) {at};
        CREATE STREAM s {COLUMNS} USING kafka FORMAT debezium_json KEY (word) {at};
        INSERT INTO o SELECT * FROM counts WHERE c < 3;
        INSERT INTO words VALUES ('a', 1, {TIME}), ('b', 1, NULL); AWAIT QUERY o IDLE;
        INSERT INTO words VALUES ('a', 1, NULL); AWAIT QUERY o IDLE;
        INSERT INTO words VALUES ('a', 1, NULL), ('c', 1, NULL); AWAIT QUERY o IDLE;
        CREATE LIVE TABLE copy AS SELECT * FROM s; AWAIT QUERY copy IDLE;"""
    )
    assert [row[:2] for row in sorted(console.rows("SELECT * FROM copy;"))] == [("b", 1), ("c", 1)]


@pytest.mark.slow
def test_what_is_no_change_of_a_row(console: Console, tmp_path: Path) -> None:
    def write(name: str, *lines: object) -> None:
        put_whole(tmp_path / name, "".join(json.dumps(line) + "\n" for line in lines))

    write(
        "1.json",
        {"schema": {}, "payload": {"before": None, "after": {"id": 1, "v": "x"}, "op": "r"}},
        {"before": None, "after": {"id": 2, "v": "y"}, "op": "c"},
        {"before": None, "after": {"id": 2, "v": "z"}, "op": "u"},
        {"before": {"id": 1, "v": None}, "after": {"id": 3, "v": "w"}, "op": "u"},
        {"op": "m", "message": {}},
    )
    stream = f"(id INT, v STRING) USING json FORMAT debezium_json KEY (id) OPTIONS (path '{tmp_path}')"
    console.run(f"CREATE STREAM s {stream}; CREATE STREAM skipping {stream} ON MALFORMED SKIP;")
    assert sorted(console.rows("SELECT * FROM s;")) == [(2, "z"), (3, "w")]
    assert console.rows("SELECT count(*) AS n FROM s WHERE v > 'w';") == [(1,)]
    write("2.json", {"id": 4, "v": "u"})
    with pytest.raises(QueryFault, match="malformed message in .*2.json"):
        console.run("SELECT * FROM s;")
    assert sorted(console.rows("SELECT id FROM skipping;")) == [(2,), (3,)]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE STREAM x (id INT) USING json FORMAT debezium_json OPTIONS (path 'p');", "MISSING_KEY"),
        ("CREATE STREAM x USING json FORMAT debezium_json KEY (id) OPTIONS (path 'p');", "MISSING_COLUMNS"),
        ("CREATE STREAM x (id INT) USING json KEY (id) OPTIONS (path 'p');", "CLAUSE_NOT_SUPPORTED"),
        ("CREATE LIVE TABLE x OUTPUT MODE APPEND AS SELECT * FROM s;", "OUTPUT_MODE_NOT_SUPPORTED"),
        ("PREVIEW USING json FORMAT debezium_json OPTIONS (path 'p');", "CLAUSE_NOT_SUPPORTED"),
    ],
)
def test_what_is_refused(console: Console, tmp_path: Path, statement: str, code: str) -> None:
    console.run(
        f"""CREATE STREAM s (id INT, v STRING) USING json FORMAT debezium_json KEY (id) OPTIONS (path '{tmp_path}');
        CREATE SINK f USING json FORMAT debezium_json OPTIONS (path '{tmp_path}/f');"""
    )
    with pytest.raises(StreamsqlError) as caught:
        console.run(statement)
    assert caught.value.code == code


@pytest.mark.slow
def test_an_insert_over_streams_writes_the_changes_of_its_result(console: Console, tmp_path: Path) -> None:
    """Of groups, and of a stream of changes, which Spark cannot append to a sink."""
    (source := tmp_path / "in").mkdir()
    (source / "1.json").write_text('{"before": null, "after": {"id": 1, "v": "x"}, "op": "c"}')
    sinks = "".join(
        f"CREATE SINK {name} USING json FORMAT debezium_json OPTIONS (path '{tmp_path}/{name}');"
        for name in ("groups", "copies")
    )
    console.run(
        "CREATE STREAM words (word STRING) USING values;"
        f"CREATE STREAM s (id INT, v STRING) USING json FORMAT debezium_json KEY (id) OPTIONS (path '{source}');"
        f"{sinks} INSERT INTO groups SELECT word, count(*) AS c FROM words GROUP BY word;"
        "INSERT INTO copies SELECT * FROM s;"
        "INSERT INTO words VALUES ('a'); AWAIT QUERY groups IDLE; INSERT INTO words VALUES ('a'), ('b');"
        "AWAIT QUERY groups IDLE; AWAIT QUERY copies IDLE;"
    )

    def written(name: str) -> list[tuple[str, str]]:
        files = sorted((tmp_path / name).glob("batch=*/*.json"))
        lines = (json.loads(line) for file in files for line in file.read_text().splitlines())
        return sorted((str(each.get("before")), str(each.get("after"))) for each in lines)

    a, more, b = "{'word': 'a', 'c': 1}", "{'word': 'a', 'c': 2}", "{'word': 'b', 'c': 1}"
    assert written("groups") == [("None", a), ("None", b), (a, more)]
    assert written("copies") == [("None", "{'id': 1, 'v': 'x'}")]
