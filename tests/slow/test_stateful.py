"""Stateful processors written in Python, called over a stream step by step."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Console, notes_of

from streamsql.errors import StreamsqlError

ROOMS = ("streamsql/plan/lowering/", "streamsql/runtime/")

FOLDER = Path(__file__).parents[1] / "python_functions"
WORDS = "CREATE STREAM words (word STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY '0 seconds';"


@pytest.fixture
def functions(console: Console) -> Console:
    """A console whose script lies beside the modules of the tests."""
    console.session.variables["here"] = str(FOLDER)
    return console


def create(name: str, target: str, columns: str = "word STRING, n BIGINT") -> str:
    return f"CREATE FUNCTION {name} AS 'counting.{target}' LANGUAGE PYTHON RETURNS TABLE ({columns});"


COUNTER = create("counter", "Counter")


def insert(console: Console, query: str, *words: str) -> None:
    """One micro-batch of words, each `word` or `word minutes`, and wait for the query."""
    rows = [w.split() for w in words]
    values = ", ".join(
        f"('{r[0]}', timestamp'2024-01-01 00:{r[1] if len(r) > 1 else '00'}:00')" for r in rows
    )
    console.run(f"INSERT INTO words VALUES {values}; AWAIT QUERY {query} IDLE;")


def test_value_state_is_kept_from_batch_to_batch(functions: Console) -> None:
    started = functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS SELECT * FROM counter(TABLE(words) PARTITION BY word);"""
    )[-1]
    assert "RocksDB" in notes_of(started)[-1]
    insert(functions, "t", "a", "b", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t ORDER BY word, n;") == [("a", 2), ("a", 3), ("b", 1)]
    assert "HDFSBacked" in functions.session.spark.conf.get("spark.sql.streaming.stateStore.providerClass")


def test_in_output_mode_update_a_live_table_keeps_the_newest_row_of_a_key(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS
        SELECT n, word AS w FROM counter(TABLE(words) PARTITION BY word, output_mode => 'update');"""
    )
    insert(functions, "t", "a", "b", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t ORDER BY w;") == [(3, "a"), (1, "b")]


def test_a_stopped_query_goes_on_with_its_state(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS SELECT * FROM counter(TABLE(words) PARTITION BY word);"""
    )
    insert(functions, "t", "a", "b", "a")
    functions.run("STOP QUERY t; INSERT INTO words VALUES ('a', NULL); START QUERY t; AWAIT QUERY t IDLE;")
    assert functions.rows("SELECT * FROM t ORDER BY word, n;") == [("a", 2), ("a", 3), ("b", 1)]


def test_pandas_frames(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {create("counter", "PandasCounter")}
        CREATE LIVE TABLE t AS SELECT * FROM counter(TABLE(words) PARTITION BY word);"""
    )
    insert(functions, "t", "a", "b", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t ORDER BY word, n;") == [("a", 2), ("a", 3), ("b", 1)]


def test_over_a_table_and_a_query(functions: Console) -> None:
    functions.run(COUNTER + "CREATE TEMPORARY VIEW v AS SELECT * FROM VALUES ('a'), ('b'), ('a') AS t(word);")
    assert functions.rows("SELECT * FROM counter(TABLE(v) PARTITION BY word) ORDER BY word;") == [
        ("a", 2),
        ("b", 1),
    ]
    query = (
        "SELECT c.n FROM counter(TABLE(SELECT upper(word) AS u FROM v) PARTITION BY u) c WHERE c.word = 'A';"
    )
    assert functions.rows(query) == [(2,)]


def test_list_state(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {create("pairs", "Pairs", "word STRING, minutes ARRAY<INT>")}
        CREATE LIVE TABLE t AS SELECT * FROM pairs(TABLE(words) PARTITION BY word);"""
    )
    insert(functions, "t", "a 01", "b 01", "a 02")
    assert functions.rows("SELECT * FROM t;") == []
    insert(functions, "t", "a 03")
    assert functions.rows("SELECT word, array_join(minutes, ' ') FROM t;") == [("a", "1 2 3")]


def test_map_state(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {create("places", "Places", "word STRING, minute INT, n INT")}
        CREATE LIVE TABLE t OUTPUT MODE UPDATE KEY (word, minute) AS
        SELECT * FROM places(TABLE(words) PARTITION BY (word), output_mode => 'update');"""
    )
    insert(functions, "t", "a 01", "b 01", "a 02")
    insert(functions, "t", "a 02")
    assert functions.rows("SELECT * FROM t ORDER BY word, minute;") == [("a", 1, 1), ("a", 2, 2), ("b", 1, 1)]


SESSIONS = create("sessions", "Sessions", "word STRING, n BIGINT, until TIMESTAMP")


def test_timers_on_event_time(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {SESSIONS}
        CREATE LIVE TABLE t AS SELECT word, n, minute(until) AS last
        FROM sessions(TABLE(words) PARTITION BY word, time_mode => 'eventTime');"""
    )
    insert(functions, "t", "a 01", "b 02", "a 03")
    assert functions.rows("SELECT * FROM t;") == []
    insert(functions, "t", "b 09")  # five minutes behind a's last row, but b has gone on
    assert functions.rows("SELECT * FROM t;") == [("a", 2, 3)]


def test_timers_wait_in_the_checkpoint_while_the_query_is_stopped(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {SESSIONS}
        CREATE LIVE TABLE t AS SELECT word, n
        FROM sessions(TABLE(words) PARTITION BY word, time_mode => 'eventTime');"""
    )
    insert(functions, "t", "a 01", "b 02", "a 03")
    functions.run("STOP QUERY t; START QUERY t;")
    insert(functions, "t", "b 20")
    assert functions.rows("SELECT * FROM t;") == [("a", 2)]


def test_a_window_behind_a_processor(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {create("stamped", "Stamped", "word STRING, n BIGINT, at TIMESTAMP")}
        CREATE STREAM numbered AS SELECT * FROM stamped(
            TABLE(words) PARTITION BY word, time_mode => 'eventTime', event_time_column => 'at');
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS
        SELECT minute(window.start) AS since, max(n) AS n FROM numbered GROUP BY window(at, '10 minutes');"""
    )
    insert(functions, "t", "a 01", "b 02", "a 03")
    assert functions.rows("SELECT * FROM t;") == []
    insert(functions, "t", "c 30")
    assert functions.rows("SELECT * FROM t;") == [(0, 2)]


def test_timers_on_processing_time(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {create("reminder", "Reminder")}
        CREATE LIVE TABLE t AS
        SELECT * FROM reminder(TABLE(words) PARTITION BY word, time_mode => 'processingtime');"""
    )
    insert(functions, "t", "a")
    insert(functions, "t", "b")
    assert ("a again", 0) in functions.rows("SELECT * FROM t ORDER BY word;")


def test_state_with_a_time_to_live(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {create("forgetful", "Forgetful", "word STRING, short BIGINT, long BIGINT")}
        CREATE LIVE TABLE t AS
        SELECT * FROM forgetful(TABLE(words) PARTITION BY word, time_mode => 'processingTime');"""
    )
    insert(functions, "t", "a", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t ORDER BY long;") == [("a", 2, 2), ("a", 1, 3)]


def test_initial_state(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE TEMPORARY VIEW before AS SELECT * FROM VALUES ('a', 10L), ('c', 5L) AS t(word, n);
        CREATE LIVE TABLE t AS
        SELECT * FROM counter(TABLE(words) PARTITION BY word, initial_state => TABLE(before));"""
    )
    insert(functions, "t", "a", "b")
    insert(functions, "t", "a", "c")
    assert functions.rows("SELECT * FROM t ORDER BY word, n;") == [("a", 11), ("a", 12), ("b", 1), ("c", 6)]


def test_a_processor_that_fails_fails_its_query_with_what_it_raised(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {create("failing", "Failing")}
        CREATE LIVE TABLE t AS SELECT * FROM failing(TABLE(words) PARTITION BY word);"""
    )
    with pytest.raises(StreamsqlError, match="^query t failed: ValueError: no a, please$") as caught:
        insert(functions, "t", "a")
    assert "counting.py, line" in caught.value.detail


def test_in_a_query_that_goes_to_spark_as_text(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS
        SELECT /*+ REPARTITION(1) */ word, n FROM counter(TABLE(words) PARTITION BY word) AS c WHERE c.n > 1;"""
    )
    insert(functions, "t", "a", "b", "a")
    assert functions.rows("SELECT * FROM t;") == [("a", 2)]


def test_in_text_for_spark_a_key_must_say_which_rows_replace_which(functions: Console) -> None:
    functions.run(WORDS + COUNTER)
    call = "counter(TABLE(words) PARTITION BY word, output_mode => 'update')"
    query = f"SELECT word, n FROM {call} |> WHERE n > 0;"
    with pytest.raises(StreamsqlError, match="is called in output mode update"):
        functions.run(f"CREATE LIVE TABLE t AS {query}")
    functions.run(f"CREATE LIVE TABLE t KEY (word) AS {query}")
    insert(functions, "t", "a", "b", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t ORDER BY word;") == [("a", 3), ("b", 1)]


def test_over_a_query_of_with(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS
        WITH a AS (SELECT * FROM words WHERE word <> 'x'), b AS (SELECT upper(word) AS word, at FROM a)
        SELECT * FROM counter(TABLE(b) PARTITION BY word) WHERE n > 1;"""
    )
    insert(functions, "t", "a", "x", "a", "x", "b")
    assert functions.rows("SELECT * FROM t;") == [("A", 2)]


def test_two_calls_in_one_query(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS
        SELECT 'one' AS call, word, n FROM counter(TABLE(words) PARTITION BY word)
        UNION ALL
        SELECT 'two', word, n FROM counter(TABLE(SELECT 'all' AS k, * FROM words) PARTITION BY k);"""
    )
    insert(functions, "t", "a", "b", "a")
    assert functions.rows("SELECT * FROM t ORDER BY call, word;") == [
        ("one", "a", 2),
        ("one", "b", 1),
        ("two", "all", 3),
    ]


def test_an_aggregation_of_what_a_processor_gives(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS SELECT max(n) AS most FROM counter(TABLE(words) PARTITION BY word);"""
    )
    insert(functions, "t", "a", "b", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t;") == [(3,)]


@pytest.mark.parametrize("time_mode", ["none", "processingTime"])
def test_a_select_over_a_stream_ends(functions: Console, time_mode: str) -> None:
    functions.run(WORDS + COUNTER + "INSERT INTO words VALUES ('a', NULL), ('b', NULL);")
    query = f"SELECT * FROM counter(TABLE(words) PARTITION BY word, time_mode => '{time_mode}');"
    assert sorted(functions.rows(query)) == [("a", 1), ("b", 1)]


def test_into_a_sink(functions: Console, tmp_path: Path) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');
        INSERT INTO words VALUES ('a', NULL), ('a', NULL);
        INSERT INTO out TRIGGER AVAILABLE NOW SELECT * FROM counter(TABLE(words) PARTITION BY word);
        AWAIT QUERY out;"""
    )
    assert functions.rows(f"SELECT word, n FROM json.`{tmp_path}/out`;") == [("a", 2)]


@pytest.mark.parametrize(
    ("call", "at", "message", "hint"),
    [
        ("counter(words)", "words", "expected TABLE, found words", "counter(TABLE(stream) PARTITION BY key)"),
        ("counter(TABLE(words))", ")", "expected PARTITION, found ')'", "counter(TABLE(stream)"),
        (
            "counter(TABLE(plain) PARTITION BY word, time_mode => 'eventTime')",
            "time_mode => 'eventTime'",
            "time_mode 'eventTime' needs a watermark",
            "WITH WATERMARK",
        ),
        (
            "counter(TABLE(plain) PARTITION BY word, time_mod => 'none')",
            "time_mod",
            "a stateful processor has no option time_mod",
            "did you mean time_mode?",
        ),
        (
            "counter(TABLE(plain) PARTITION BY word, time_mode => 'event')",
            "'event'",
            "time_mode is not event",
            "did you mean eventTime?",
        ),
        (
            "counter(TABLE(plain) PARTITION BY word, output_mode => 'complete')",
            "'complete'",
            "output_mode is not complete",
            "append, update",
        ),
        (
            "counter(TABLE(words) PARTITION BY word, time_mode => 'eventTime', event_time_column => 'att')",
            "event_time_column => 'att'",
            "counter returns no column att",
            "columns: word, n",
        ),
        (
            "counter(TABLE(plain) PARTITION BY word, initial_state => TABLE(words))",
            "initial_state => TABLE(words)",
            "the initial state is read once, so it cannot be a stream",
            "TABLE(a table",
        ),
        (
            "counter(TABLE(SELECT wrod FROM plain) PARTITION BY wrod)",
            "wrod",
            "there is no column wrod",
            "did you mean word?",
        ),
        (
            "counter(TABLE(wrds) PARTITION BY word)",
            "wrds",
            "there is no stream wrds",
            "did you mean words?",
        ),
        ("counter(TABLE(plain) PARTITION BY wrod)", "wrod", "there is no column wrod", "did you mean word?"),
    ],
)
def test_what_cannot_be_called_is_refused_before_the_start(
    functions: Console, call: str, at: str, message: str, hint: str
) -> None:
    functions.run(f"{WORDS} {COUNTER} CREATE STREAM plain (word STRING) USING values;")
    statement = f"CREATE LIVE TABLE t AS SELECT * FROM {call};"
    with pytest.raises(StreamsqlError) as caught:
        functions.run(statement)
    error = caught.value
    assert (error.message, hint in error.hint) == (message, True), error.hint
    assert error.span is not None
    assert statement[error.span.start : error.span.end] == at


def test_output_modes_are_those_of_the_call(functions: Console) -> None:
    functions.run(f"{WORDS} {COUNTER}")
    call = "SELECT * FROM counter(TABLE(words) PARTITION BY word, output_mode => 'update')"
    with pytest.raises(StreamsqlError, match="is called in output mode update"):
        functions.run(f"CREATE LIVE TABLE t OUTPUT MODE APPEND AS {call};")
    with pytest.raises(StreamsqlError, match="is called in output mode update") as caught:
        functions.run(f"CREATE SINK out USING json OPTIONS (path 'out'); INSERT INTO out {call};")
    assert "output_mode => 'append'" in caught.value.hint
    with pytest.raises(StreamsqlError, match="is called in output mode update"):
        functions.run(f"CREATE LIVE TABLE t OUTPUT MODE COMPLETE AS {call};")


def test_available_now_with_processing_time_would_never_end(functions: Console) -> None:
    functions.run(f"{WORDS} {COUNTER}")
    call = "SELECT * FROM counter(TABLE(words) PARTITION BY word, time_mode => 'processingTime')"
    with pytest.raises(StreamsqlError, match="TRIGGER AVAILABLE NOW never ends") as caught:
        functions.run(f"CREATE LIVE TABLE t TRIGGER AVAILABLE NOW AS {call};")
    assert "STOP QUERY" in caught.value.hint
