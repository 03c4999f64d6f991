"""`streamsql apply` gives a workspace what a folder defines: alone, in a server, at a terminal."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import Outcome, run_process
from terminal import Terminal

ROOMS = ("streamsql/features/project/", "streamsql/features/change/")

pytestmark = pytest.mark.usefixtures("processes")

DEFINED = """
CREATE LIVE TABLE totals AS SELECT sum(n) AS t FROM counts;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
CREATE LIVE TABLE shouted AS SELECT word FROM loud;
CREATE STREAM loud AS SELECT upper(word) AS word FROM words;
CREATE STREAM words (word STRING) USING values;
CREATE STREAM files USING csv OPTIONS (path '${here}/../in', header 'true') ON MALFORMED INTO bad;
CREATE LIVE TABLE from_files AS SELECT * FROM files;
CREATE SINK bad USING json OPTIONS (path 'bad');
CREATE SINK out USING json OPTIONS (path 'out');
CREATE SINK other USING noop;
CREATE TEMPORARY VIEW brief AS SELECT word FROM counts WHERE length(word) < 4;
CREATE FUNCTION capwords AS 'string.capwords' LANGUAGE PYTHON RETURNS STRING;
SET spark.sql.shuffle.partitions = 2;
INSERT INTO out AS QUERY copied SELECT word FROM words;
EXECUTE STATEMENT SET AS QUERY both TRIGGER EVERY INTERVAL 1 SECOND BEGIN
  INSERT INTO other SELECT word FROM words;
END;
"""
ROWS = "INSERT INTO words VALUES ('a'), ('a'), ('bb'); AWAIT QUERY ALL IDLE;"
TEST = """TEST 'words are counted' BEGIN
  GIVEN words VALUES ('cat'), ('cat');
  EXPECT counts (word, n) VALUES ('cat', {});
END TEST;
"""


class Place:
    """A folder with a project p and a workspace w."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = ""
        (folder / "p").mkdir()
        (folder / "in").mkdir()
        (folder / "in" / "1.csv").write_text('id,name\n1,"say ""x"""\n')

    def write(self, text: str) -> None:
        self.text = text
        (self.folder / "p" / "all.sql").write_text(text)

    def change(self, before: str, after: str) -> None:
        assert before in self.text
        self.write(self.text.replace(before, after))

    def run(self, *words: str) -> Outcome:
        return run_process(*words, "--no-config", "-w", "w", cwd=self.folder)

    def apply(self, *words: str) -> Outcome:
        return self.run("apply", "p", "--yes", *words)

    def plan(self) -> str:
        return self.run("plan", "p").out

    def answers(self, script: str) -> str:
        outcome = self.run("--format", "csv", "-e", script)
        assert outcome.code == 0, outcome.err
        return outcome.out


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def applied(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err
    return outcome


def test_plan_has_nothing_to_do_after_apply(place: Place) -> None:
    place.write(DEFINED)
    outcome = place.run("apply", "p")
    assert (outcome.code, outcome.out.count("added")) == (3, 16)
    assert "nothing is applied: --yes applies the changes" in outcome.err
    assert not (place.folder / "w").exists()
    outcome = applied(place.apply())
    assert "the queries are stopped; streamsql serve -w" in outcome.err
    assert place.plan() == "nothing to do: 15 definitions unchanged\n"
    assert place.apply() == Outcome(0, "nothing to do: 15 definitions unchanged\n", "")
    place.run("export", "e")
    assert place.run("plan", "e").out == "nothing to do: 15 definitions unchanged\n"


OVER_A_STREAM = """
CREATE STREAM words (word STRING) USING values;
CREATE STREAM short AS SELECT word FROM words WHERE length(word) < 3;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM short GROUP BY word;
CREATE LIVE TABLE totals AS SELECT sum(n) AS t FROM counts;
CREATE FUNCTION size_of(word STRING) RETURNS INT RETURN length(word);
CREATE LIVE TABLE lengths AS SELECT size_of(word) AS chars, count(*) AS n FROM words GROUP BY 1;
CREATE TEMPORARY VIEW names AS SELECT * FROM VALUES ('a', 'A'), ('bb', 'B') AS n(word, name);
CREATE LIVE TABLE named AS SELECT name FROM words JOIN names ON words.word = names.word;
CREATE SINK nowhere USING noop;
INSERT INTO nowhere AS QUERY copied SELECT size_of(word) AS chars, count(*) AS n FROM words GROUP BY size_of(word);
"""


@pytest.mark.slow
def test_a_changed_stream_view_and_function_are_promoted_with_all_that_reads_them(place: Place) -> None:
    place.write(OVER_A_STREAM)
    applied(place.apply())
    place.answers(f"START QUERY ALL; {ROWS} STOP QUERY ALL;")
    place.change("RETURN length(word)", "RETURN 10 * length(word)")
    place.change("('bb', 'B')", "('bb', 'X')")
    place.change("FROM words WHERE length(word) < 3", "FROM longer WHERE length(word) < 2")
    place.change("n FROM words GROUP BY 1", "n FROM words GROUP BY size_of(word)")
    place.write(place.text + "CREATE STREAM longer AS SELECT word FROM words;")
    planned = place.plan().splitlines()
    [as_one] = [line for line in planned if line.startswith("staged, compared and promoted as one: ")]
    members = {"short", "size_of", "names", "counts", "totals", "lengths", "named"}
    assert set(as_one.partition(": ")[2].split(", ")) == members
    assert "rows are written again into: nowhere" in planned
    outcome = place.apply("--max-changed-rows", "1")
    assert outcome.code == 3, outcome.err
    [left] = [line for line in outcome.err.splitlines() if "left staged" in line]
    assert left.endswith(" are left staged: 9 rows changed, more than --max-changed-rows 1")
    assert set(re.findall(r"\w+", left)) >= members
    assert "PROMOTE CHANGE applied; puts it in use, DROP CHANGE applied; removes it" in outcome.err
    assert "counts,2,1,1,0,0" in place.answers("START QUERY ALL; COMPARE CHANGE applied; STOP QUERY ALL;")
    in_use = place.answers("SELECT * FROM counts ORDER BY word; SELECT size_of('bb') AS s, name FROM names;")
    assert "word,n\na,2\nbb,1\n" in in_use and "s,name\n2,A\n2,B\n" in in_use
    assert set(re.findall(r"staged: (\w+)", place.plan())) >= members - {"size_of", "names"}
    outcome = applied(place.apply("--max-changed-rows", "9"))
    assert "started: copied" in outcome.err
    assert place.plan() == "nothing to do: 11 definitions unchanged\n"
    verify = " ".join(f"VERIFY LIVE TABLE {table};" for table in ("counts", "lengths", "named"))
    script = f"START QUERY ALL; INSERT INTO words VALUES ('a'), ('bb'); AWAIT QUERY ALL IDLE; {verify}"
    answers = place.answers(
        f"{script} SELECT * FROM counts; SELECT t FROM totals; SELECT * FROM lengths ORDER BY 1;"
        "SELECT DISTINCT name FROM named ORDER BY 1; STOP QUERY ALL;"
    )
    assert "word,n\na,3\n" in answers and "t\n3\n" in answers and "name\nA\nX\n" in answers
    assert "chars,n\n10,3\n20,2\n" in answers
    answers = place.answers(
        "ROLLBACK CHANGE applied; START QUERY totals; START QUERY counts; START QUERY lengths; AWAIT QUERY ALL IDLE; SELECT t FROM totals;"
        "SELECT size_of('bb') AS s; SELECT * FROM lengths ORDER BY 1;"
    )
    assert "t\n5\n" in answers and "s\n2\n" in answers and "chars,n\n1,3\n2,2\n" in answers


@pytest.mark.slow
def test_changes_of_each_kind_are_applied(place: Place) -> None:
    place.write(DEFINED)
    applied(place.apply())
    place.answers(f"START QUERY ALL; {ROWS} STOP QUERY ALL;")
    place.change("upper(word)", "concat(word, '!')")  # a stream that a live table reads
    place.change("CREATE TEMPORARY VIEW brief AS", "-- renamed from: brief\nCREATE TEMPORARY VIEW short AS")
    place.change("CREATE LIVE TABLE totals AS SELECT sum(n) AS t FROM counts;", "")
    place.change("INSERT INTO other SELECT word", "INSERT INTO other SELECT lower(word) AS word")
    place.change("path 'out'", "path 'out', compression 'gzip'")  # copied goes on from its checkpoint
    place.change("shuffle.partitions = 2", "shuffle.partitions = 3")
    place.change("GROUP BY word", "WHERE word <> 'bb' GROUP BY word")
    place.write(f"{place.text}CREATE LIVE TABLE lengths AS SELECT max(length(word)) AS most FROM counts;")
    planned = place.plan().splitlines()
    anew = next(line for line in planned if line.startswith("computed anew: "))
    assert set(anew.removeprefix("computed anew: ").split(", ")) == {"shouted", "counts", "both"}
    assert "rows are written again into: other" in planned and "started again: copied" in planned
    applied(place.apply())
    assert place.plan() == "nothing to do: 15 definitions unchanged\n"
    answers = place.answers(
        "START QUERY ALL; INSERT INTO words VALUES ('bb'); AWAIT QUERY ALL IDLE; SELECT * FROM counts;"
        "SELECT word FROM json.`out` ORDER BY 1; SELECT * FROM lengths;"
        "SELECT word FROM shouted ORDER BY 1; SELECT * FROM short; SET spark.sql.shuffle.partitions; STOP QUERY ALL;"
    )
    assert "word,n\na,2\n" in answers and "most\n1\n" in answers and "word\na!\na!\nbb!\nbb!\n" in answers
    assert "word\na\na\nbb\nbb\n" in answers
    assert "spark.sql.shuffle.partitions,3" in answers
    assert "error[UNKNOWN_LIVE_TABLE]" in place.run("-e", "DESCRIBE LIVE TABLE totals;").err


COUNTS = """
CREATE STREAM words (word STRING) USING values;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
CREATE LIVE TABLE totals AS SELECT sum(n) AS t FROM counts;
"""


@pytest.mark.slow
def test_a_change_of_more_rows_than_allowed_is_left_staged(place: Place) -> None:
    place.write(COUNTS)
    applied(place.apply())
    place.answers(f"START QUERY ALL; {ROWS}")
    place.change("GROUP BY word", "WHERE word <> 'bb' GROUP BY word")
    outcome = place.apply("--max-changed-rows", "0")
    assert outcome.code == 3, outcome.err
    assert "counts is left staged: 1 row changed, more than --max-changed-rows 0\n" in outcome.err
    planned = place.plan()
    assert "changed  live table counts" in planned and "\nstaged: counts\n" in planned
    assert place.answers("SELECT n FROM counts WHERE word = 'bb';") == "n\n1\n"
    assert "counts is promoted" in applied(place.apply("--max-changed-rows", "1")).err
    assert place.plan() == "nothing to do: 3 definitions unchanged\n"
    assert place.answers("START QUERY ALL; AWAIT QUERY ALL IDLE; SELECT * FROM totals;") == "t\n2\n"


@pytest.mark.slow
def test_a_failed_test_stops_everything(place: Place) -> None:
    (place.folder / "p" / "sub").mkdir()
    (place.folder / "p" / "sub" / "some.test.sql").write_text(TEST.format(3))
    place.write(COUNTS)
    outcome = place.apply()
    assert outcome.code == 1
    assert "nothing is applied: streamsql test has ended with exit code 1" in outcome.err
    assert not (place.folder / "w").exists()
    (place.folder / "p" / "sub" / "some.test.sql").write_text(TEST.format(2))
    assert "1 passed" in applied(place.apply()).out
    assert place.plan() == "nothing to do: 3 definitions unchanged\n"


@pytest.mark.slow
def test_in_a_server_its_queries_go_on_and_a_query_that_cannot_start_is_brought_back(place: Place) -> None:
    started = place.run("serve", "--detach")
    assert started.code == 0, started.err
    try:
        place.write(COUNTS + "CREATE SINK out USING json OPTIONS (path 'out');\n")
        applied(place.apply())
        place.answers(ROWS)
        place.write(place.text + "INSERT INTO out AS QUERY copied SELECT word FROM words;")
        place.change("GROUP BY word", "WHERE word <> 'bb' GROUP BY word")
        outcome = applied(place.apply("--max-changed-rows", "1"))
        assert "counts is promoted" in outcome.err and "the queries are stopped" not in outcome.err
        assert place.answers("AWAIT QUERY ALL IDLE; SELECT * FROM counts; SELECT t FROM totals;") == (
            "word,n\na,2\nt\n2\n"
        )
        place.change("QUERY copied SELECT word", "QUERY copied SELECT upper(word) AS word")
        outcome = place.apply()
        assert outcome.code == 1, outcome.err
        assert "error[FOLDER_IN_USE]" in outcome.err and "copied restored" in outcome.err
        shown = place.answers("AWAIT QUERY copied IDLE; DESCRIBE QUERY copied;")
        assert "\nstatus,running\n" in shown
        assert "changed  query copied" in place.plan()
        place.write(COUNTS + "SET spark.sql.shuffle.partitions = 3;")
        outcome = place.apply()
        assert outcome.code == 2 and "cannot change the settings of a server" in outcome.err
        assert "changed  query copied" not in place.plan() and "dropped  query copied" in place.plan()
    finally:
        place.run("-e", "STOP SERVER;")


@pytest.mark.slow
def test_at_a_terminal_it_asks(place: Place) -> None:
    place.write(COUNTS)
    for answer, said, code in (("n", "nothing is applied", 3), ("y", "applied", 0)):
        terminal = Terminal(place.folder, "apply", str(place.folder / "p"), "-w", str(place.folder / "w"))
        try:
            terminal.until(r"apply these changes\? \(y/n\)")
            terminal.type(f"{answer}\r")
            terminal.until(said)
            assert terminal.exit_code() == code
        finally:
            terminal.kill()
    assert place.plan() == "nothing to do: 3 definitions unchanged\n"


@pytest.mark.slow
def test_a_workspace_that_another_console_holds_is_not_changed(place: Place) -> None:
    place.write(COUNTS)
    terminal = Terminal(place.folder, "-w", str(place.folder / "w"))
    try:
        terminal.until(r"^sql>")
        outcome = place.apply()
        assert (outcome.code, "error[WORKSPACE_IN_USE]" in outcome.err) == (2, True), outcome.err
    finally:
        terminal.kill()


@pytest.mark.slow
def test_apply_renames_and_then_changes(place: Place) -> None:
    place.write(COUNTS)
    applied(place.apply())
    place.answers(f"START QUERY ALL; {ROWS} STOP QUERY ALL;")
    place.change("CREATE LIVE TABLE counts", "-- renamed from: counts\nCREATE LIVE TABLE amounts")
    place.change("FROM counts", "FROM amounts")
    planned = place.plan()
    assert (
        planned.startswith("renamed  live table amounts, formerly counts") and "1 renamed; 2 def" in planned
    )
    applied(place.apply())
    assert place.plan() == "nothing to do: 3 definitions unchanged\n"
    batches = "SHOW PROGRESS OF QUERY amounts; SELECT * FROM amounts ORDER BY 1; SELECT * FROM totals; STOP QUERY ALL;"
    rows = place.answers(f"START QUERY ALL; INSERT INTO words VALUES ('bb'); AWAIT QUERY ALL IDLE; {batches}")
    assert "word,n\na,2\nbb,2\n" in rows and "t\n4\n" in rows
    place.change("CREATE STREAM words", "-- renamed from: words\nCREATE STREAM lines")
    place.change("FROM words GROUP", "FROM lines WHERE word > 'a' GROUP")
    planned = place.plan()
    assert "1 renamed, 1 changed; " in planned and "computed anew: amounts" in planned
    applied(place.apply())
    assert place.plan() == "nothing to do: 3 definitions unchanged\n"
    assert "word,n\nbb,2\n" in place.answers("START QUERY ALL; AWAIT QUERY ALL IDLE; SELECT * FROM amounts;")


@pytest.mark.slow
def test_a_changed_query_gives_a_keyed_sink_the_difference(
    place: Place, packages: Callable[[str], None], cold_start: None
) -> None:
    packages("sqlite")

    def table() -> list[tuple[str, int]]:
        with sqlite3.connect(place.folder / "x.db") as connection:
            return connection.execute("SELECT word, n FROM t ORDER BY word").fetchall()

    place.write(f"""
CREATE STREAM words (word STRING) USING values;
CREATE SINK db USING jdbc KEY (word) OPTIONS (url 'jdbc:sqlite:{place.folder}/x.db', table 't');
INSERT INTO db AS QUERY counted SELECT word, count(*) AS n FROM words GROUP BY word;
""")
    assert place.apply().code == 0
    place.answers(
        "START QUERY counted; INSERT INTO words VALUES ('a'), ('a'), ('bb'); AWAIT QUERY ALL IDLE; STOP QUERY ALL;"
    )
    assert table() == [("a", 2), ("bb", 1)]
    place.change("FROM words GROUP", "FROM words WHERE length(word) < 2 GROUP")
    planned = place.plan()
    assert "computed anew: counted\nthe sink gets the difference: counted\n" in planned
    assert "written again" not in planned
    left = place.apply("--max-changed-rows", "0")
    assert left.code == 3 and "counted is left staged: 1 row changed" in left.err
    assert table() == [("a", 2), ("bb", 1)] and "staged: counted" in place.plan()
    applied = place.apply("--max-changed-rows", "1")
    assert applied.code == 0, applied.err
    assert table() == [("a", 2)]
    assert place.plan().startswith("nothing to do")
    place.change("CREATE STREAM words (word STRING)", "CREATE STREAM words (word STRING, other INT)")
    place.change("count(*) AS n FROM", "count(*) + 1 AS n FROM")
    planned = place.plan()  # its input changes, too
    assert (
        "the sink gets the difference: counted\nstaged, compared and promoted as one: words, counted\n"
        in planned
    )
    assert "written again" not in planned and "trash" not in planned
    assert "words, counted are left staged: 1 row changed" in place.apply("--max-changed-rows", "0").err
    assert table() == [("a", 2)]
    assert place.apply("--max-changed-rows", "1").code == 0
    assert table() == [("a", 3)]
    assert place.plan().startswith("nothing to do")
