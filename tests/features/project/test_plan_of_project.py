"""`streamsql plan` compares a folder with a workspace, and changes nothing; `streamsql export` gives such a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scripts import Outcome, run_main

from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.folder import Workspace
from streamsql.runtime.workspace.reopen import reopen, take_up
from streamsql.runtime.workspace.store import Store

WORDS = """
CREATE STREAM words (word STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
CREATE STREAM lower_words AS SELECT lower(word) AS word, at FROM words;
CREATE LIVE TABLE counts RETAIN 500 ROWS AS SELECT word, count(*) AS n FROM words GROUP BY word;
CREATE LIVE TABLE totals AS SELECT sum(n) AS t FROM counts;
CREATE LIVE TABLE others AS SELECT at FROM words;
"""
ALL_KINDS = (
    WORDS
    + """
SET spark.sql.shuffle.partitions = 3;
SET `spark.with-minus` = 'it''s';
CREATE FUNCTION capwords AS 'string.capwords' LANGUAGE PYTHON RETURNS STRING;
CREATE FUNCTION pairs AS 'module.Pairs' LANGUAGE PYTHON RETURNS TABLE (a INT, `b c` STRING);
CREATE SINK bad USING json OPTIONS (path '/tmp/bad');
CREATE STREAM events (id INT COMMENT 'a number', tags ARRAY<STRING>, at TIMESTAMP)
  USING kafka FORMAT json OPTIONS (servers 'localhost:9092', topic 'events', `kafka.sasl.jaas.config` '${env:JAAS}')
  ON MALFORMED INTO bad WITH WATERMARK at DELAY OF INTERVAL '1' HOUR COMMENT 'from the shop';
CREATE SINK out USING parquet PARTITIONED BY (word) OPTIONS (path '/tmp/out', compression 'zstd') COMMENT 'rows';
CREATE SINK db (word STRING, n BIGINT) USING jdbc KEY (word)
  OPTIONS (url 'jdbc:postgresql://h/d', table 't', user 'u', password 'hunter2');
CREATE SINK kept USING memory RETAIN 7 ROWS;
CREATE OR REPLACE TEMPORARY VIEW brief AS SELECT word FROM counts WHERE length(word) < 4;
INSERT INTO out AS QUERY copied TRIGGER EVERY INTERVAL 1 SECOND RESTART 3 TIMES EVERY '10 s'
  SELECT word, at FROM lower_words;
INSERT INTO kept OUTPUT MODE append SELECT word FROM words;
INSERT INTO db SELECT word, n FROM counts;
EXECUTE STATEMENT SET AS QUERY both BEGIN
  INSERT INTO bad SELECT word FROM words WHERE word < 'm';
  INSERT INTO out SELECT word, at FROM words;
END;
"""
)


class Place:
    """A folder with a project p and a workspace w."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "p"
        self.project.mkdir()

    def write(self, text: str, file: str = "all.sql") -> None:
        (self.project / file).write_text(text)

    def run(self, *words: str) -> Outcome:
        return run_main(*words, "--no-config", "-w", "w", cwd=self.folder)

    def plan(self, *words: str) -> Outcome:
        return self.run("plan", "p", *words)

    def keep(self, text: str) -> None:
        """Let the workspace have definitions, as if their statements had been executed."""
        held = Workspace(self.folder / "w")
        settings = Settings.make("local[1]", {})
        store = Store(held.folder)
        session = Session(Config(settings, held.run, self.folder / "log", self.folder, store=store))
        reopen(session.parts)
        for written in split_script(Source("before.sql", text)):
            take_up(parse(written, {}), session.parts, store)
        session.parts.workspace.save()
        held.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in (folder, *folder.rglob("*"))
    }


def test_a_new_workspace_gets_all_in_the_order_of_the_graph(place: Place) -> None:
    statements = [f"{text.strip()};" for text in WORDS.split(";") if text.strip()]
    (place.project / "sub").mkdir()
    place.write("\n".join(reversed(statements[1:])), "1.sql")
    place.write(statements[0], "sub/2.sql")
    place.write("SELECT 1;", "sub/2.test.sql")
    outcome = place.plan()
    assert outcome == Outcome(
        3,
        "added    stream words    p/sub/2.sql:1\n"
        "added    stream lower_words    p/1.sql:4\n"
        "added    live table others    p/1.sql:1\n"
        "added    live table counts    p/1.sql:3\n"
        "added    live table totals    p/1.sql:2\n"
        "5 added; 0 definitions unchanged\n",
        "",
    )
    assert not (place.folder / "w").exists()


def test_each_kind_of_definition_is_unchanged_once_it_is_kept(place: Place) -> None:
    place.keep(ALL_KINDS)
    before = contents(place.folder / "w")
    place.write(ALL_KINDS)
    assert place.plan() == Outcome(0, "nothing to do: 19 definitions unchanged\n", "")
    document = json.loads(place.plan("--format", "json").out)
    assert document == {
        "workspace": str(place.folder / "w"), "changes": [], "computed_anew": [], "written_again": [],
        "differences": [],
        "started_again": [], "promoted_as_one": [], "staged": [], "unchanged": 19,
    }  # fmt: skip
    assert contents(place.folder / "w") == before


def test_blanks_comments_and_or_replace_are_no_change(place: Place) -> None:
    place.keep(WORDS + "CREATE TEMPORARY VIEW v AS SELECT word FROM counts;")
    text = WORDS.replace(" FROM", " -- words\n\n  FROM").replace(
        "CREATE STREAM", "CREATE STREAM IF NOT EXISTS"
    )
    place.write(text.replace("CREATE LIVE", "CREATE OR REPLACE LIVE"))
    place.write("CREATE OR REPLACE TEMPORARY VIEW v AS\n  SELECT word FROM counts", "view.sql")
    assert place.plan().out == "nothing to do: 6 definitions unchanged\n"
    place.write("CREATE OR REPLACE TEMPORARY VIEW v AS\n  SELECT word AS w FROM counts", "view.sql")
    assert place.plan().out.startswith("changed  view v    p/view.sql:1\n")


CHANGED = """
-- renamed from: lower_words
CREATE STREAM low AS SELECT lower(word) AS word, at FROM words;
CREATE STREAM words (word STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
CREATE LIVE TABLE counts RETAIN 500 ROWS AS SELECT word, count(*) AS n FROM words WHERE word > '' GROUP BY word;
CREATE LIVE TABLE totals AS SELECT sum(n) AS t FROM counts;
CREATE LIVE TABLE more AS SELECT at FROM words;
"""


def test_changes_of_each_kind_in_text_and_json(place: Place) -> None:
    place.keep(WORDS)
    place.write(CHANGED)
    outcome = place.plan()
    assert outcome == Outcome(
        3,
        "renamed  stream low, formerly lower_words    p/all.sql:3\n"
        "    -CREATE STREAM lower_words AS SELECT lower(word) AS word, at FROM words\n"
        "    +CREATE STREAM low AS SELECT lower(word) AS word, at FROM words\n"
        "changed  live table counts    p/all.sql:5\n"
        "     CREATE LIVE TABLE counts\n"
        "       RETAIN 500 ROWS\n"
        "    -  AS SELECT word, count(*) AS n FROM words GROUP BY word\n"
        "    +  AS SELECT word, count(*) AS n FROM words WHERE word > '' GROUP BY word\n"
        "added    live table more    p/all.sql:7\n"
        "dropped  live table others\n"
        "computed anew: counts, totals\n"
        "1 renamed, 1 changed, 1 added, 1 dropped; 2 definitions unchanged\n",
        "",
    )
    document = json.loads(place.plan("--format", "json").out)
    assert [(c["change"], c["kind"], c["name"], c["file"], c["line"]) for c in document["changes"]] == [
        ("renamed", "stream", "low", "p/all.sql", 3),
        ("changed", "live table", "counts", "p/all.sql", 5),
        ("added", "live table", "more", "p/all.sql", 7),
        ("dropped", "live table", "others", None, None),
    ]
    assert document["changes"][3]["before"] == "CREATE LIVE TABLE others\n  AS SELECT at FROM words"
    assert document["changes"][3]["after"] is None
    assert (document["computed_anew"], document["unchanged"]) == (["counts", "totals"], 2)


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        ("DELAY OF INTERVAL 10 MINUTES", "DELAY OF INTERVAL 20 MINUTES", "counts, totals, others"),
        ("lower(word) AS word", "upper(word) AS word", ""),
        ("sum(n) AS t", "max(n) AS t", "totals"),
        ("count(*) AS n", "count(at) AS n", "counts, totals"),
    ],
)
def test_what_reads_something_changed_is_computed_anew(
    place: Place, before: str, after: str, anew: str
) -> None:
    place.keep(WORDS)
    place.write(WORDS.replace(before, after))
    outcome = place.plan()
    assert (outcome.code, outcome.out.count("changed  ")) == (3, 1)
    line = next((line for line in outcome.out.splitlines() if line.startswith("computed anew")), "")
    assert line.removeprefix("computed anew: ") == anew


def test_a_changed_function_and_a_changed_sink_reach_the_queries_that_name_them(place: Place) -> None:
    text = (
        WORDS
        + """CREATE FUNCTION f AS 'string.capwords' LANGUAGE PYTHON RETURNS STRING;
        CREATE SINK out USING json OPTIONS (path '/tmp/out');
        INSERT INTO out AS QUERY calls SELECT f(word) AS w FROM words;"""
    )
    place.keep(text)
    place.write(text.replace("string.capwords", "string.Formatter"))
    assert "computed anew: calls\n" in place.plan().out
    place.write(text.replace("/tmp/out", "/tmp/other"))
    assert "computed anew: calls\nrows are written again into: out\n" in place.plan().out


def test_queries_go_on_with_a_comment_or_another_pace(place: Place) -> None:
    text = """CREATE STREAM s (n INT) USING csv OPTIONS (path '/tmp/in', maxFilesPerTrigger '5') COMMENT 'old';
    CREATE STREAM t AS SELECT n FROM s;
    CREATE SINK out USING json OPTIONS (path '/tmp/out', compression 'gzip');
    INSERT INTO out AS QUERY copied SELECT n FROM t;
    CREATE LIVE TABLE counts AS SELECT count(*) AS n FROM s;"""
    place.keep(text)
    for before, after, queries in (
        ("Trigger '5'", "Trigger '6'", "copied, counts"),
        ("'old'", "'new'", "copied, counts"),
        ("'gzip'", "'bzip2'", "copied"),
    ):
        place.write(text.replace(before, after))
        outcome = place.plan()
        assert outcome.code == 3 and "anew" not in outcome.out
        assert f"started again: {queries}\n" in outcome.out


@pytest.mark.parametrize("name", ["counts", "words"])
def test_a_rename_changes_nothing_else(place: Place, name: str) -> None:
    place.keep(WORDS)
    text = re.sub(rf"\b{name}\b", "fresh", WORDS)
    place.write(text.replace("CREATE", f"-- renamed from: {name}\nCREATE"))
    outcome = place.plan()
    assert outcome.code == 3, outcome.err
    first, *_, last = outcome.out.splitlines()
    assert first.startswith("renamed  ") and f" fresh, formerly {name}" in first
    assert last.startswith("1 renamed; ") and "changed  " not in outcome.out
    assert "computed anew" not in outcome.out
    place.write(WORDS.replace(name, "fresh"))
    outcome = place.plan()
    assert "added    " in outcome.out and f" {name}\n" in outcome.out


def test_a_comment_about_an_earlier_rename_may_stay(place: Place) -> None:
    first, *others = CHANGED.split(";\n")
    place.keep(";\n".join((others[0], first, *others[1:])))
    place.write(CHANGED)
    assert place.plan().out == "nothing to do: 5 definitions unchanged\n"


ERRORS: dict[str, tuple[str, str, str]] = {
    "a circle": (
        "CREATE LIVE TABLE a AS SELECT * FROM b; CREATE LIVE TABLE b AS SELECT * FROM c;\n"
        "CREATE LIVE TABLE c AS SELECT * FROM a;",
        "p/all.sql:1:1: error[CIRCULAR_DEFINITION]: a is computed from itself",
        "detail: a reads b reads c reads a",
    ),
    "a missing name": (
        "CREATE STREAM s (n INT) USING values;\nCREATE LIVE TABLE a AS\n  SELECT * FROM nowhere;\n"
        "CREATE LIVE TABLE b AS SELECT * FROM a;",
        "p/all.sql:3:17: error[UNKNOWN_STREAM]: there is no stream nowhere",
        "",
    ),
    "a missing column": (
        "CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE a AS SELECT k FROM s;",
        "p/all.sql:1:69: error[UNKNOWN_COLUMN]: there is no column k",
        "",
    ),
    "twice": (
        "CREATE STREAM s (n INT) USING values;\nCREATE STREAM S (n INT) USING values;",
        "p/all.sql:2:1: error[DUPLICATE_NAME]: S is defined twice",
        "detail: the first time at p/all.sql:1",
    ),
    "a statement": ("SELECT 1;", "p/all.sql:1:1: error[NOT_A_DEFINITION]: a project has only", ""),
    "a table": ("CREATE TABLE t (a INT);", "p/all.sql:1:1: error[NOT_A_DEFINITION]", ""),
    "a staged change": (
        "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT 1;",
        "p/all.sql:1:1: error[NOT_A_DEFINITION]: a project says what is in use",
        "hint: omit STAGED",
    ),
    "a preference": ("SET streamsql.format = csv;", "p/all.sql:1:1: error[NOT_A_DEFINITION]", ""),
    "rows": (
        "CREATE STREAM s (n INT) USING values;\nINSERT INTO s VALUES (1);",
        "p/all.sql:2:1: error[NOT_A_DEFINITION]: this INSERT writes rows once",
        "",
    ),
    "a query of the console": (
        "CREATE STREAM s (n INT) USING csv OPTIONS (path '/tmp') ON MALFORMED INTO k; CREATE SINK k USING noop;\n"
        "INSERT INTO k AS QUERY s_malformed SELECT * FROM `s$malformed`;",
        "p/all.sql:2:1: error[NOT_A_DEFINITION]: the console starts the query s_malformed by itself",
        "",
    ),
    "a secret setting": (
        "SET spark.ssl.keyPassword = 'hunter2';",
        "error[SECRET_LOST]: the workspace does not keep the setting spark.ssl.keyPassword",
        "",
    ),
    "no SQL": ("CREATE STREAM (", "p/all.sql:1:15: error[SYNTAX_ERROR]", ""),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_is_wrong_is_told_with_its_place(place: Place, case: str) -> None:
    text, first, second = ERRORS[case]
    place.write(text)
    outcome = place.plan()
    assert (outcome.code, outcome.out, outcome.err.count("error[")) == (1, "", 1), outcome.err
    assert first in outcome.err and second in outcome.err
    assert "hunter2" not in outcome.err


def test_a_folder_without_files_and_one_that_is_not_there(place: Place) -> None:
    assert (place.plan().code, place.plan().err) == (1, "error[FILE_NOT_READ]: there is no file *.sql in p\n")
    assert "there is no folder q" in place.run("plan", "q").err


def test_secrets_are_neither_shown_nor_compared(place: Place) -> None:
    sink = "CREATE SINK k USING jdbc OPTIONS (url 'jdbc:postgresql://h/d', table '{}', password '{}');"
    place.keep(sink.format("t", "hunter2"))
    place.write(sink.format("t", "hunter3"))
    assert place.plan().out == "nothing to do: 1 definition unchanged\n"
    place.write(sink.format("u", "hunter3"))
    for outcome in (place.plan(), place.plan("--format", "json")):
        assert outcome.code == 3 and "table" in outcome.out
        assert "hunter" not in outcome.out + outcome.err


def test_inferred_columns_are_no_change(place: Place) -> None:
    (place.folder / "in").mkdir()
    path = f"OPTIONS (path '{place.folder}/in'"
    place.keep(f"CREATE STREAM s (a INT, b STRING) USING csv {path}, header 'true', escape '\"');")
    place.write(f"CREATE STREAM s USING csv {path}, header 'true');")
    assert place.plan().code == 0
    place.write(f"CREATE STREAM s USING csv {path}, header 'false');")
    assert place.plan().code == 3
    place.write(f"CREATE STREAM s (a INT) USING csv {path}, header 'true', escape '\"');")
    assert place.plan().code == 3


def test_variables_and_the_folder_of_a_file_are_filled_in(place: Place) -> None:
    place.keep(f"CREATE SINK k USING json OPTIONS (path '{place.folder}/p/out', dateFormat 'yyyy');")
    place.write("CREATE SINK k USING json OPTIONS (path '${here}/out', dateFormat '${format}');")
    assert "variable format is not defined" in place.plan().err
    assert place.plan("-D", "format=yyyy").code == 0


def test_a_workspace_that_another_console_holds_is_compared(place: Place) -> None:
    place.keep(WORDS)
    held = Workspace(place.folder / "w")
    try:
        before = contents(place.folder / "w")
        place.write(CHANGED)
        assert place.plan().code == 3
        assert contents(place.folder / "w") == before
        assert place.run("apply", "p").code == 3
        assert contents(place.folder / "w") == before
    finally:
        held.close()


def test_an_export_is_a_project_of_what_is_there(place: Place) -> None:
    place.keep(ALL_KINDS)
    outcome = place.run("export", "e")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "note: secrets are not written: db\n19 definitions written to e\n"
    files = {str(file.relative_to(place.folder / "e")) for file in (place.folder / "e").rglob("*.sql")}
    assert {"settings.sql", "live_tables/counts.sql", "queries/both.sql", "streams/events.sql"} <= files
    assert place.run("plan", "e").out == "nothing to do: 19 definitions unchanged\n"
    assert "error[FOLDER_IN_USE]: e exists" in place.run("export", "e").err
    assert "error[NOT_A_WORKSPACE]" in run_main("export", "x", "-w", "nothing", cwd=place.folder).err


def test_the_query_of_malformed_messages_belongs_to_its_stream(place: Place) -> None:
    text = """CREATE SINK bad USING json OPTIONS (path '/tmp/bad');
    CREATE STREAM s (n INT) USING csv OPTIONS (path '/tmp') ON MALFORMED INTO bad;
    CREATE LIVE TABLE t AS SELECT n FROM s;"""
    place.keep(text + "INSERT INTO bad AS QUERY s_malformed SELECT * FROM `s$malformed`;")
    place.write(text)
    assert place.plan().code == 0
    place.write(text.replace("path '/tmp')", "path '/tmp/other')"))
    assert "computed anew: t, s_malformed" in place.plan().out
    place.write(text.replace("ON MALFORMED INTO bad", "ON MALFORMED SKIP"))
    assert "dropped  query s_malformed" in place.plan().out
    place.run("export", "e")
    assert place.run("plan", "e").code == 0
