"""The prompt in a true terminal against a true Spark: what a person types, and sees."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal

ROOMS = ("streamsql/shell/", "streamsql/output/", "streamsql/cli/", "streamsql/runtime/")

pytestmark = [pytest.mark.usefixtures("processes"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One console for the tests of this file, which are run in their order, as one session. A statement that
    waits for Spark is cancelled first.
    """
    made = Terminal(tmp_path_factory.mktemp("terminal"), cold=True)
    made.until(r"^sql>")
    made.type("SELECT 1;\r")
    made.until("waiting for Spark to start")
    made.type("\x03")
    made.until(r"cancelled after.*^sql>\s*$")
    made.prompt()
    made.run("SELECT 2 AS b;", r"\|   2 \|")
    yield made
    made.kill()


@pytest.fixture(autouse=True)
def at_an_empty_prompt(request: pytest.FixtureRequest) -> None:
    if "console" in request.fixturenames:
        console = request.getfixturevalue("console")
        console.prompt()
        console.clear()


def test_what_needs_no_spark_is_answered_while_it_starts(console: Terminal) -> None:
    console.run("CREATE STREAM r USING rate OPTIONS (rowsPerSecond 20);", "stream r created")
    console.run("SHOW STREAMS;", r"\| r +\| rate")


def test_a_select_over_a_stream_refreshes_in_its_place(console: Terminal) -> None:
    console.type("SELECT value % 2 AS k, count(*) AS n FROM r GROUP BY value % 2;\r")
    first = console.until(r"\|   0 \| +[1-9]\d* \|.*running · batch \d+.*q leave")
    seen = re.search(r"\|   0 \| +(\d+) \|", first)
    assert seen
    console.until(rf"\|   0 \| +(?!{seen[1]} )\d+ \|")
    assert console.shown.count("|   k |") == 1
    console.type("q")
    console.until(r"its query was stopped")
    # The last picture stays, without the keys.
    assert "|   k |" in console.shown
    assert "q leave" not in console.shown
    console.run("SHOW QUERIES;", "^no queries")


def test_lines_pasted_without_brackets_are_no_keys_of_the_view_before_them(console: Terminal) -> None:
    """The keys w, p, q and b of the view are in them."""
    console.type(
        "SELECT value % 2 AS k, count(*) AS n FROM r GROUP BY value % 2;\r"
        "SELECT 'what was pasted below' AS b;\rSHOW QUERIES;\r"
    )
    shown = console.until(r"^sql> SHOW QUERIES;\s+^no queries\s+^sql>")
    assert re.search(
        r"\|   k \|.*\| +\d+ \|\n.*its query was stopped.*\n\| what was pasted below \|", shown, re.DOTALL
    )
    assert "PAUSED" not in shown


def test_a_repeated_statement_refreshes_in_place(console: Terminal) -> None:
    console.run("SELECT unix_micros(now()) AS at;", "1 row")
    console.clear()
    console.type("\\watch 0.2\r")
    first = re.search(r"\| +(\d+) \|", console.until(r"^every 0.2 s · updated .* · q leave"))
    assert first
    console.until(rf"\| +(?!{first[1]} )\d+ \|")
    assert console.shown.count(" at |") == 1
    console.type("p")
    console.until("PAUSED")
    console.type("p+")
    console.until("^every 0.1 s · updated")
    console.type("q")
    console.until(r"^every 0.1 s, the last time at \S+\nsql>")
    assert console.shown.count(" at |") == 1
    assert "cancelled" not in console.shown
    console.clear()
    console.run("\\watch i=0.1 c=2", "^every 0.1 s, the last time at")
    console.clear()
    console.run("SELECT raise_error('a' || 'b');", "ab")
    console.clear()
    console.run("\\watch 0.1", r"error.*ab")
    console.prompt()


def test_watch_leaves_the_query_alone(console: Terminal) -> None:
    console.run(
        "CREATE LIVE TABLE per AS SELECT window(timestamp, '3 seconds') AS w, count(*) AS n FROM r "
        "GROUP BY window(timestamp, '3 seconds');",
        "live table per started",
    )
    console.type("WATCH per;\r")
    console.until(r"per: (\d+ rows|rows).*running · batch [1-9]")
    console.type("\x03")
    console.until("per keeps refreshing")
    assert "cancelled" not in console.shown
    console.clear()
    console.type("WATCH per AS CHART (w, n);\r")
    console.until(r"n over w.*┤.*└┬.*per: \d+ rows")
    console.type("q")
    console.until("per keeps refreshing")
    console.clear()
    console.type("WATCH per AS CHANGES;\r")
    console.until(r"\| \+U +\|.*changes? ")
    console.type("q")
    console.until("per keeps refreshing")
    console.run("SHOW QUERIES;", r"per +\| running")


def test_a_transient_query_can_be_kept(console: Terminal) -> None:
    console.type("SELECT count(*) AS n FROM r;\r")
    console.until(r"\| +[1-9]\d* \|.*SELECT: 1 row.*b keep it running")
    console.type("b")
    console.until("kept as the live table q1")
    console.clear()
    console.run("SELECT n > 0 AS some FROM q1;", r"\| true")
    console.run("STOP QUERY q1;", r"STOP QUERY q1;\n[^\n]*stopped[^\n]*\nsql>\s*$")
    console.clear()
    # Its checkpoint is known to be its own: nothing is to be noted.
    console.run("START QUERY q1;", r"START QUERY q1;\n[^\n]*started[^\n]*\nsql>\s*$")
    console.run("DROP LIVE TABLE q1;", "live table q1 dropped")


def test_what_a_preview_proposes_is_a_key_away(console: Terminal, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"user": "ann", "ts": "2024-05-01T12:00:00Z"}\n')
    console.run(f"PREVIEW USING json OPTIONS (path '{tmp_path}/a.json');", r"ann.*WITH WATERMARK ts.*press ↑")
    console.prompt()
    console.type("\x1b[A")
    console.until(r"^sql> CREATE STREAM a \(user STRING, ts TIMESTAMP\)\n.*USING json.*10 minutes';$")
    console.type("\r")
    console.until("stream a created")
    console.run("DROP STREAM a;", "stream a dropped")


def test_a_live_view_in_a_window_that_shrinks_and_full_screen(console: Terminal) -> None:
    console.type("SELECT timestamp, value, value * 2 AS twice, value * 3 AS thrice FROM r;\r")
    console.until(r"thrice.*rows .* of")
    console.resize(50, 20)
    console.until(r"\| ….*rows \d")
    assert all(len(line) <= 50 for line in console.shown.split("\n"))
    console.type("f")
    console.until(r"\A\+--")
    console.type("f")
    console.type("p")
    console.until("PAUSED")
    console.type("w")
    console.until("saved in SELECT-.*csv")
    console.type("q")
    console.until(r"rows saved in SELECT-\S*csv.*its query was stopped|its query was stopped.*rows saved in")
    console.resize(100, 30)


def test_completion_knows_live_tables_columns_and_options(console: Terminal) -> None:
    for typed, offered in [
        ("WATCH p", r"per +live table"),
        ("SELECT p.w FROM per p WHERE p.", r"n +BIGINT"),
        ("CREATE STREAM x USING rate OPTIONS (rowsP", r"rowsPerSecond"),
        ("SELECT date_form", r"date_format\( +date_format\("),
    ]:
        console.type(typed)
        console.until(rf"^sql> {re.escape(typed)}.*{offered}")
        console.type("\x03")
        console.prompt()


def test_ctrl_c_in_the_pager_is_the_pagers(console: Terminal) -> None:
    console.type("SELECT id, id * id AS square FROM range(200);\r")
    console.until(r"square.*\| +400 \|.*^:\s*$")
    console.type("\x03")
    console.type(" ")
    console.until(r"\| +2500 \|")
    console.type("q")
    console.until(r"\(200 rows.*^sql>")
    assert "cancelled" not in console.shown


def test_a_million_rows_are_fetched_as_the_pager_reads_them(console: Terminal) -> None:
    for columns in (60, 200, 100):
        console.resize(columns, 30)
        console.clear()
        console.type(f"SELECT id, id * 2 AS d{columns} FROM range(1000000);\r")
        console.until(r"\| +19 \| +38 \|.*^:\s*$")
        console.type("q")
        console.until(r"\(first [\d,]+ rows, .*the others were not fetched\)\s*^sql>")
    console.type("SELECT id, java_method('java.lang.Thread', 'sleep', 20L) FROM range(0, 1000000, 1, 1);\r")
    console.until(r"Ctrl-C cancels")  # 40 s until the first screen
    console.type("\x03")
    console.until(r"cancelling…|cancelled after", 1.0)
    console.until(r"cancelled after \d[^\n]*\s*^sql>\s*$")


def test_keys_typed_while_a_statement_runs_are_those_of_the_next_prompt(console: Terminal) -> None:
    console.type("SELECT java_method('java.lang.Thread', 'sleep', 2500L);\r")
    console.until("Ctrl-C cancels")
    console.type("SELECT 'typed ahead' AS \x1b[Dt;\r")
    shown = console.until(r"typed ahead +\|")
    assert shown.count("SELECT 'typed ahead'") == 1
    assert "^[" not in shown


def test_a_statement_of_two_lines_that_is_typed_ahead_is_one(console: Terminal) -> None:
    console.type("SELECT java_method('java.lang.Thread', 'sleep', 2500L);\r")
    console.until("Ctrl-C cancels")
    console.type("SELECT id AS typed FROM range(9)\rWHERE id = 7;\r")
    shown = console.until(r"\| +7 \|.*^sql>\s*$")
    assert "(1 row" in shown and "error" not in shown


def test_a_statement_that_is_typed_while_the_console_starts_is_one(tmp_path: Path) -> None:
    """Before the console has the terminal, this makes a line feed of each Enter."""
    starting = Terminal(tmp_path)
    os.write(starting.child.child_fd, b"SELECT id AS typed FROM range(9)\rWHERE id = 7;\r")  # at once
    shown = starting.until(r"\| +7 \|.*^sql>\s*$")
    assert "(1 row" in shown and "error" not in shown
    starting.type("\x04")
    assert starting.exit_code() == 0


def test_vi_keys_and_the_editor(console: Terminal) -> None:
    console.type("\x1bOS")  # F4
    console.until("vi · end with ;")
    console.type("SELECT 1 AS a;\x1bbbicount(*) - \x1b")
    console.until(r"SELECT 1 AS count\(\*\) - a;|SELECT 1 count")
    console.type("\x03")
    console.until(r"^sql>\s*$")  # what is typed between two prompts would be echoed by the terminal
    console.type("\x1bOS")
    console.until(r"running · (\d+ rows/s · )?end with ;")


def test_enter_runs_the_statement_that_ctrl_r_shows(console: Terminal) -> None:
    console.run("SELECT 8 AS eight;", r"\|       8 \|")
    console.prompt()
    console.clear()
    console.type("\x12")
    console.until("I-search")
    console.type("AS eig")
    console.until("sql> SELECT 8 AS eight;")
    console.type("\r")
    console.until(r"\|       8 \|.*^sql>\s*$")
    # What is not complete is left for editing.
    console.type("SELECT 9 AS nine\x1b\r")
    console.until(r"\|      9 \|.*^sql>\s*$")
    console.clear()
    console.type("\x12")
    console.until("I-search")
    console.type("AS nin")
    console.until("sql> SELECT 9 AS nine$")
    console.type("\r")
    console.until(r"(?<!search)sql> SELECT 9 AS nine\s*$(?!.*I-search)")
    console.type("\x03")


def test_ctrl_c_in_a_command_of_the_shell(console: Terminal) -> None:
    console.type("\\! echo begun; sleep 100\r")
    console.until("^begun")
    console.type("\x03")
    console.until(r"^begun.*^sql>\s*$")  # not ^Csql>


def test_ctrl_c_at_the_prompt(console: Terminal) -> None:
    console.type("SELECT nonsense")
    console.until("SELECT nonsense")
    console.type("\x03")
    console.prompt()
    console.type("\x03")
    console.until("Ctrl-D or EXIT; leaves")


def test_ctrl_c_cancels_a_long_statement_and_nothing_else(console: Terminal) -> None:
    console.type("SELECT sum(a.id * 1.5D * b.id) FROM range(1000000) a CROSS JOIN range(100000000) b;\r")
    console.until(r"stage \d of \d.*tasks.*Ctrl-C cancels")
    console.type("\x03")
    console.until(r"cancelled after \d")
    assert "Traceback" not in console.shown
    console.clear()
    # Read together with Enter, as over a slow line.
    console.type("SELECT java_method('java.lang.Thread', 'sleep', 60000L);\rSELECT 'lost\x03")
    console.until(r"cancelled after 0\.\d s\s+^sql>\s*$")
    console.clear()
    console.type("AWAIT QUERY per;\r")
    console.until(r"waiting for per to end: batch \d+ done, [\d,]+ rows in… \d+ s; Ctrl-C cancels")
    console.type("\x03")
    console.until(r"cancelled after \d")
    console.clear()
    console.run("SHOW QUERIES;", r"per +\| running")


def test_a_query_that_fails_is_told_above_what_is_being_typed(console: Terminal) -> None:
    console.run("CREATE LIVE TABLE bad AS SELECT 1 / (value - 40) AS x FROM r;", "live table bad started")
    console.type("SELECT 'half a state")
    console.until(r"query bad failed: division by zero.*DESCRIBE QUERY bad")
    console.until(r"^sql> SELECT 'half a state\s*$.*1 running.*1 FAILED")
    console.type("\x03")
    console.prompt()
    console.run("DROP LIVE TABLE bad;", "live table bad dropped")


def test_a_select_that_fails_says_so_once(console: Terminal) -> None:
    console.type("SELECT 1 / (value - 5) AS x FROM r;\r")
    shown = console.until(r"^error\[DIVIDE_BY_ZERO\]: the query failed: division by zero.*^sql>\s*$")
    assert shown.count("division by zero") == 1
    assert re.search(r"^SELECT: \d+ rows? · FAILED", shown, re.MULTILINE)
    console.clear()
    console.type("CREATE LIVE TABLE bad AS SELECT 1 / (value - 5) AS x FROM r; AWAIT QUERY bad;\r")
    shown = console.until(r"^error|error\[DIVIDE_BY_ZERO\]: query bad failed.*^sql>\s*$")
    console.clear()
    shown += console.run("DROP LIVE TABLE bad;", "live table bad dropped")
    assert shown.count("bad failed") == 1  # AWAIT tells it, and no line above the prompt


def test_batches_of_a_console_sink_come_above_what_is_being_typed(console: Terminal) -> None:
    console.run("CREATE STREAM slow USING rate OPTIONS (rowsPerSecond 1);", "stream slow created")
    console.run("CREATE SINK screen USING console;", "sink screen created")
    console.type(
        "INSERT INTO screen AS QUERY shown TRIGGER EVERY '1 second' SELECT value AS nth FROM slow;\r"
    )
    console.until("query shown started")
    console.type("SELECT 'half a state")
    console.until(r"nth.*note: batch [3-9].*^sql> SELECT 'half a state\s*$")
    console.type("\x03")
    console.run("DROP QUERY shown;", "query shown dropped")


def test_a_paste_of_ten_lines_waits_for_enter(console: Terminal) -> None:
    lines = [f"SELECT {n} AS a{n};" for n in range(10)]
    console.type("\x1b[200~" + "\n".join(lines) + "\x1b[201~")
    console.until(r"SELECT 9 AS a9;")
    assert "(1 row" not in console.shown
    console.type("\r")
    console.until_above(r"a0 .*a5 .*a9 .*\(1 row")


def test_mistakes_are_told_in_a_few_lines(console: Terminal) -> None:
    console.run("SELECT * FROM rr;", r"there is no stream, table or view rr.*did you mean r\?")
    console.prompt()
    console.run("SHWO STREAMS;", r"there is no statement SHWO.*did you mean SHOW")
    console.prompt()
    console.type("SELECT 1\r")
    console.until(r"^\.+ *$")
    console.type(";\r")
    console.until(r"\|   1 \|")
    assert "Traceback" not in console.scrollback
    assert "at org.apache" not in console.scrollback


def test_a_jvm_that_is_killed(console: Terminal) -> None:
    console.run("CREATE TEMPORARY VIEW three AS SELECT 3 AS n;", "view three created")
    console.prompt()
    console.type("SELECT 'not lost")
    console.until("not lost")
    os.kill(console.jvm(), signal.SIGKILL)
    console.until(r"Spark has ended.*signal 9.*START QUERY ALL; resumes")
    console.until(r"^sql> SELECT 'not lost\s*$.*Spark not started")
    console.type("\x03")
    console.until(r"^sql>\s*$")
    console.clear()
    console.run("SHOW STREAMS;", r"\| r +\| rate")
    console.run("SHOW QUERIES;", r"per +\| FAILED")
    console.run("START QUERY ALL;", "started: per")
    console.prompt()
    console.clear()
    console.run("SELECT n FROM three;", r"\|   3 \|")
    console.run("SELECT count(*) > 2 AS kept FROM per;", r"\| true")


def test_nothing_but_the_console_writes_on_the_screen(console: Terminal) -> None:
    at = console.raw.find(b"Traceback")
    assert at < 0, console.raw[at - 300 : at + 2000].decode()
    assert b"WARN" not in console.raw
    assert b"incubator" not in console.raw
    assert b"SLF4J" not in console.raw


def test_ctrl_c_at_the_question_stays(console: Terminal) -> None:
    console.type("\x04")
    console.until(r"stop and leave, detach, or stay\? \[y/d/N\]")
    console.type("\x03")
    console.prompt()


def test_leaving_asks_when_queries_run(console: Terminal) -> None:
    console.type("EXIT;\r")
    console.until(r"1 query running; stop and leave, detach, or stay\? \[y/d/N\]")
    console.type("n\r")
    console.prompt()
    console.type("\x04")
    console.until(
        r"1 query running; stop and leave, detach, or stay\? \[y/d/N\].*1 query running; stop and leave, detach, or stay\? \[y/d/N\]"
    )
    console.type("y\r")
    assert console.exit_code() == 0


WAITING_IMPORT = """
import os, sys, time
class Waiting:
    def find_spec(self, name, path=None, target=None):
        if name == "prompt_toolkit":
            while not os.path.exists(os.environ["IMPORT_WHEN"]):
                time.sleep(0.01)
sys.meta_path.insert(0, Waiting())
"""


@pytest.mark.slow
def test_the_prompt_is_shown_before_its_editor_is_imported(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WAITING_IMPORT)
    signal_file = tmp_path / "now"
    made = Terminal(tmp_path, env={"PYTHONPATH": str(tmp_path), "IMPORT_WHEN": str(signal_file)})
    try:
        made.until(r"^sql>")
        made.type("SHOW STREAMS;")
        signal_file.touch()
        made.until(r"^sql> SHOW STREAMS;")
        made.type("\r")
        made.until(r"^no streams.*^sql>")
        assert made.scrollback.count("sql>") == 2
        made.type("\x04")
        assert made.exit_code() == 0
    finally:
        made.kill()
