"""The command line where no Spark is needed: flags, checks, bad input, exit codes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from scripts import command, run_main, run_process

from streamsql.cli.command_line import CommandLine
from streamsql.cli.main import CONSOLE
from streamsql.config.preferences import FORMATS, Preferences
from streamsql.output.row_formats import FORMATS as WRITERS

ROOMS = ("streamsql/cli/", "streamsql/output/")

SCRIPT = """
CREATE STREAM words (word STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY '10 minutes';
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
INSERT INTO words VALUES ('cat', '2024-05-01 12:02:00');
AWAIT QUERY counts IDLE;
SELECT * FROM counts;
"""


@pytest.mark.usefixtures("processes")
def test_version_and_help() -> None:
    assert run_process("--version").out.startswith("streamsql ")
    help_text = run_process("--help")
    assert help_text.code == 0
    assert "exit codes: 0 " in " ".join(help_text.out.split())


def test_a_command_line_is_one_value_with_its_scripts_in_their_order() -> None:
    words = [
        "a.sql",
        "-e",
        "SELECT 1;",
        "-Dn=1",
        "--jars",
        "x.jar",
        "--conf",
        "k=v",
        "--no-config",
        "--",
        "-b",
    ]
    line = CommandLine.of(CONSOLE.read(words), Preferences())
    assert line.inputs == (("file", "a.sql"), ("text", "SELECT 1;"), ("file", "-b"))
    assert (line.variables, line.conf) == ({"n": "1"}, {"k": "v", "spark.jars": "x.jar"})
    with pytest.raises(FrozenInstanceError):
        line.check = True  # type: ignore[misc]


@pytest.mark.usefixtures("processes")
def test_info_is_json_and_says_which_java() -> None:
    facts = json.loads(run_process("--info").out)
    assert facts["versions"]["pyspark"].startswith("4.3")
    assert facts["java"]["from"] in ("bundled", "JAVA_HOME", "PATH")
    assert Path(facts["grammars"]).is_dir()


@pytest.mark.usefixtures("processes")
def test_check_needs_no_jvm_and_reads_everything() -> None:
    began = time.monotonic()
    outcome = run_process("--check", stdin=SCRIPT)
    assert (outcome.code, outcome.out) == (0, "")
    note, checked = outcome.err.splitlines()
    assert note.startswith(
        "<stdin>:3:1: note[WATERMARK_UNUSED]: the watermark of words closes no group, as at is not among"
    )
    assert checked == "5 statements checked"
    # A JVM alone takes longer than this.
    assert time.monotonic() - began < 10


@pytest.mark.usefixtures("processes")
def test_check_imports_no_pyspark() -> None:
    program = (
        "import sys; from streamsql.cli.main import main; code = main(['--check', '-e', 'SELECT 1;']);"
        "print(code, 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "0 False\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("CREATE STREAM a USING jsn;", "<stdin>:1:23: error[UNKNOWN_CONNECTOR]: there is no connector jsn"),
        (
            "SELECT 1;\n\nCREATE STRAEM a USING rate;",
            "<stdin>:3:8: error[UNKNOWN_STATEMENT]: expected STREAM, found STRAEM",
        ),
        (
            "CREATE STREAM a USING rate;\nSELECT value FORM a;",
            "<stdin>:2:14: error[PARSE_SYNTAX_ERROR]: Spark cannot read the statement at 'a'",
        ),
        ("CREATE STREAM a USING rate; INSERT INTO b OUTPUT MODE UPDATE SELECT 1;", "there is no sink b"),
        ("STOP QUERY q;", "there is no query q"),
        (
            "CREATE SINK s USING parquet OPTIONS (path 'x');\nINSERT INTO s SELECT * FROM (SELECT",
            "s SELECT * FROM",
        ),
    ],
)
def test_check_finds(script: str, said: str) -> None:
    outcome = run_main("--check", stdin=script)
    assert outcome.code == 1
    assert said in outcome.err


def test_check_leaves_to_spark_what_it_cannot_read() -> None:
    """Spark's grammar takes words that sqlglot does not know."""
    outcome = run_main("--check", stdin="CREATE STREAM a USING rate;\nFROM a |> EXTEND value + 1 AS b;")
    assert outcome.code == 0
    assert "note[LEFT_TO_SPARK]: not checked: names and columns of this query" in outcome.err


ALL_WRONG = """CREATE STREAM s (k INT, v STRING) USING values;
SELECT kk, vv FROM s;
CREATE STREAM t (k INT) USING nowhere;
SELECT k FROM t;
SELECT v FROM s WHRE k > 1;
SELECT 1 AS one
SELECT 2;
SELECT 'v FROM s;
SELECT X'zz'; SELECT kkk FROM s;
STOP QUERY q;
SELECT a FROM elsewhere;
"""
ALL_FOUND = [
    (2, 8, "error", "UNKNOWN_COLUMN"),
    (2, 12, "error", "UNKNOWN_COLUMN"),
    (3, 31, "error", "UNKNOWN_CONNECTOR"),
    (4, 1, "note", "NOT_CHECKED"),
    (5, 17, "error", "PARSE_SYNTAX_ERROR"),
    (6, 13, "error", "MISSING_SEMICOLON"),
    (8, 8, "error", "SYNTAX_ERROR"),
    (9, 8, "error", "SYNTAX_ERROR"),
    (9, 22, "error", "UNKNOWN_COLUMN"),
    (10, 12, "error", "UNKNOWN_QUERY"),
    (11, 15, "note", "ASSUMED_TABLE"),
]


def test_check_reports_all_errors_of_all_statements_and_files(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(ALL_WRONG)
    (tmp_path / "b.sql").write_text("SELECT nope FROM s;")
    outcome = run_main("--check", "a.sql", "b.sql", cwd=tmp_path)
    assert outcome.code == 1
    places = re.findall(r"^(\w+)\.sql:(\d+):(\d+): (\w+)\[(\w+)\]: ", outcome.err, re.MULTILINE)
    found = [(int(line), int(column), kind, code) for _, line, column, kind, code in places]
    assert found == [*ALL_FOUND, (1, 8, "error", "UNKNOWN_COLUMN")]
    assert places[-1][0] == "b"
    assert "hint: type ; after one" in outcome.err
    assert outcome.err.endswith("13 statements checked, 10 errors\n")


def test_check_writes_its_findings_as_json_and_sarif(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(ALL_WRONG)
    outcome = run_main("--check", "--format", "json", "a.sql", cwd=tmp_path)
    findings = json.loads(outcome.out)
    assert [(f["line"], f["column"], f["severity"], f["code"]) for f in findings] == ALL_FOUND
    assert {f["file"] for f in findings} == {"a.sql"}
    first = findings[0]
    assert (first["end_line"], first["end_column"]) == (2, 10)
    assert (first["message"], first["hint"]) == ("there is no column kk", "did you mean k?")
    assert outcome.code == 1 and "error" not in outcome.err.replace("9 errors", "")
    (run,) = json.loads(run_main("--check", "--format", "sarif", "a.sql", cwd=tmp_path).out)["runs"]
    results = run["results"]
    for result, (line, column, severity, code) in zip(results, ALL_FOUND, strict=True):
        place = result["locations"][0]["physicalLocation"]
        assert (place["region"]["startLine"], place["region"]["startColumn"]) == (line, column)
        assert place["artifactLocation"]["uri"] == "a.sql"
        assert (result["level"], result["ruleId"]) == (severity, code)
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == code


def test_findings_of_a_script_without_faults_are_none() -> None:
    outcome = run_main("--check", "--format", "json", "-e", "SELECT 1;")
    assert (outcome.code, json.loads(outcome.out), outcome.err) == (0, [], "1 statement checked\n")
    assert (
        json.loads(run_main("--check", "--format", "sarif", "-e", "SELECT 1;").out)["runs"][0]["results"]
        == []
    )
    outcome = run_main("--format", "sarif", "-e", "SHOW STREAMS;")
    assert (outcome.code, outcome.err) == (2, "error[USAGE]: --format sarif needs --check\n")


@pytest.mark.usefixtures("processes")
def test_a_statement_that_cannot_be_tokenized_stops_no_script_that_goes_on() -> None:
    script = "CREATE STREAM a USING rate;\nSHOW CREATE STREAM 'a;\nDROP STREAM a;"
    outcome = run_process("--on-error", "continue", "-e", script)
    assert outcome.code == 1
    assert "-e:2:20: error[SYNTAX_ERROR]: the quote is not closed" in outcome.err
    assert outcome.err.endswith("stream a dropped\n")
    stopped = run_process("-e", script)
    assert (stopped.code, "created" in stopped.err) == (1, False)


def test_a_definition_that_is_corrected_is_known_again() -> None:
    script = "CREATE STREAM s USING jsn;\nCREATE STREAM s (k INT) USING values;\nSELECT kk FROM s;"
    outcome = run_main("--check", stdin=script)
    assert "<stdin>:3:8: error[UNKNOWN_COLUMN]: there is no column kk" in outcome.err


STREAMS = """CREATE STREAM o (id INT, k STRING, at TIMESTAMP) USING kafka FORMAT json OPTIONS (servers 'h:9092', topic 'o') WITH WATERMARK at DELAY OF 1 MINUTE;
CREATE STREAM p AS SELECT id, upper(k) AS u FROM o;
CREATE LIVE TABLE n AS SELECT k, count(*) AS c FROM o GROUP BY k;
"""


@pytest.mark.parametrize(
    ("query", "column", "hint"),
    [
        ("SELECT idd FROM o", "idd", "did you mean id?"),
        ("SELECT x.kk FROM o AS x", "x.kk", "did you mean k?"),
        ("SELECT customer FROM o", "customer", "columns: id, k, at"),
        ("SELECT k FROM p", "k", "columns: id, u"),
        ("SELECT cc FROM n", "cc", "did you mean c?"),
        ("SELECT k FROM o WHERE upper(kk) = 'A'", "kk", "did you mean k?"),
        ("SELECT k, count(*) FROM o GROUP BY k, window(att, '1 minute')", "att", "did you mean at?"),
        ("SELECT o.id FROM o JOIN p ON o.id = p.idd", "p.idd", "did you mean id?"),
        ("WITH w AS (SELECT k AS name FROM o) SELECT k FROM w", "k", "columns: name"),
        ("SELECT u FROM (SELECT id FROM p)", "u", "columns: id"),
        (
            "SELECT window_endd, count(*) FROM TUMBLE(TABLE o, DESCRIPTOR(at), INTERVAL 1 MINUTE) GROUP BY window_start, window_end",
            "window_endd",
            "did you mean window_end?",
        ),
        ("EXPLAIN SELECT idd FROM o", "idd", "did you mean id?"),
        ("USE default; SELECT idd FROM o", "idd", "did you mean id?"),
    ],
)
def test_check_finds_columns_that_do_not_exist(query: str, column: str, hint: str) -> None:
    outcome = run_main("--check", stdin=f"{STREAMS}{query};")
    assert outcome.code == 1
    assert f"error[UNKNOWN_COLUMN]: there is no column {column}\n" in outcome.err
    place, _, rest = outcome.err[outcome.err.index("4 | ") :].partition("\n")
    assert place[rest.index("^") :].startswith(column)
    assert f"hint: {hint}\n" in outcome.err


def test_check_knows_what_is_a_column(tmp_path: Path) -> None:
    """Aliases, lambda parameters, fields, units, window columns, columns of messages, variables."""
    queries = """
        SELECT id + 1 AS a, a + 1 AS b, current_date, CURRENT_USER FROM o;
        SELECT transform(array(id, 1), (x, i) -> x + i + id), aggregate(array(1), 0, (s, x) -> s + x) FROM o;
        SELECT window, window.start, count(*) AS n FROM o GROUP BY window(at, '1 minute') HAVING n > 1;
        SELECT window_start, window_time, k FROM HOP(TABLE o, DESCRIPTOR(at), INTERVAL 1 MINUTE, INTERVAL 2 MINUTES);
        SELECT timestampadd(HOUR, 1, at), extract(YEAR FROM at), date_diff(DAY, at, at) FROM o;
        SELECT _key, _offset, o.k, struct(o.*) AS whole, count_if(o.id > 1) FROM o GROUP BY ALL;
        SELECT s.f, s FROM (SELECT struct(id AS f) AS s FROM o);
        SELECT x, o.k FROM o LATERAL VIEW explode(split(k, ',')) e AS x;
        SELECT k FROM o WHERE id IN (SELECT id FROM p WHERE u = k);
        SELECT `upper(k)` FROM (SELECT upper(k) FROM o);
        SELECT c, anything FROM n JOIN some_table USING (k);
        SELECT * FROM (SELECT k, id FROM o) PIVOT (sum(id) FOR k IN ('a', 'b'));
        DECLARE VARIABLE least INT DEFAULT 3;
        SELECT id FROM o WHERE id > least;"""
    outcome = run_main("--check", stdin=STREAMS + queries, cwd=tmp_path)
    assert outcome.code == 0, outcome.err


def test_check_follows_source_and_define(tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("CREATE STREAM ${name} USING rate;")
    (tmp_path / "outer.sql").write_text("DEFINE name = 'a';\nSOURCE 'inner.sql';\nSTOP QUERY q;")
    outcome = run_main("--check", "outer.sql", cwd=tmp_path)
    assert outcome.code == 1
    assert "outer.sql:3:12: error[UNKNOWN_QUERY]: there is no query q" in outcome.err


def test_a_name_that_the_script_does_not_make_is_a_note() -> None:
    outcome = run_main("--check", stdin="SELECT * FROM warehouse_table;")
    assert outcome.code == 0
    assert "table warehouse_table is not known to the script; Spark must have it" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing.sql"], 2, "cannot read missing.sql: no such file or directory"),
        (["-D", "x"], 2, "-D takes NAME=VALUE"),
        (["--conf", "x"], 2, "--conf takes NAME=VALUE"),
        (["--format", "xml"], 2, "invalid choice"),
        (["--timeout", "0"], 2, "a number of seconds, more than 0, not 0"),
        (["--nonsense"], 2, "unrecognized arguments"),
    ],
)
def test_usage_errors(arguments: list[str], code: int, said: str, tmp_path: Path) -> None:
    outcome = run_main(*arguments, cwd=tmp_path)
    assert outcome.code == code
    assert said in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.usefixtures("processes")
def test_a_script_that_is_not_utf8_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "latin.sql").write_bytes("SELECT 1;\nSELECT 'caf\xe9';".encode("latin-1"))
    outcome = run_process("latin.sql", cwd=tmp_path)
    assert outcome.code == 1
    assert "latin.sql:2:12: the script is not UTF-8 (byte 0xe9)" in outcome.err


def test_a_byte_order_mark_and_windows_lines_are_read() -> None:
    outcome = run_main("--check", stdin=b"\xef\xbb\xbfSELECT 1;\r\nSELECT 2;\r\n")
    assert (outcome.code, outcome.err) == (0, "2 statements checked\n")


@pytest.mark.usefixtures("processes")
def test_an_empty_script_does_nothing() -> None:
    assert run_process(stdin=" -- only words\n;;") == (0, "", "")


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_script_of_a_megabyte_is_read() -> None:
    line = "CREATE OR REPLACE STREAM a (id INT, name STRING) USING json OPTIONS (path 'some/where');"
    line += f"  -- {'why ' * 200}\n"
    count = 1_000_000 // len(line) + 1
    outcome = run_process("--check", stdin=line * count + "CREATE STREAM b USING jsn;", seconds=120)
    assert outcome.code == 1
    assert f"<stdin>:{count + 1}:23: error[UNKNOWN_CONNECTOR]: there is no connector jsn" in outcome.err


@pytest.mark.usefixtures("processes")
def test_what_needs_no_spark_starts_none() -> None:
    script = (
        "CREATE STREAM a USING rate; SHOW CREATE STREAM a; EXPLAIN PYSPARK SELECT * FROM a; HELP STOP QUERY;"
    )
    outcome = run_process("-q", "-e", script)
    assert outcome.code == 0
    assert "CREATE STREAM a\n  USING rate;" in outcome.out
    assert 'spark.readStream.format("rate").load()' in outcome.out
    assert "STOP QUERY {ALL | name}" in outcome.out


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_default_for_a_variable_of_the_command_line() -> None:
    script = (
        "DEFINE IF NOT EXISTS a = 'x'; DEFINE IF NOT EXISTS b = 'y'; DEFINE IF NOT EXISTS b = 'z'; DEFINE c = 'c';"
        "CREATE STREAM s_${a}_${b}_${c} USING rate; DROP STREAM s_1_y_c;"
    )
    given = ("-D", "a=1", "-D", "c=2", "-e", script)
    assert run_process("--check", *given) == (0, "", "6 statements checked\n")
    outcome = run_process(*given)
    assert (outcome.code, outcome.err.splitlines()[-1]) == (0, "stream s_1_y_c dropped")


@pytest.mark.usefixtures("processes")
def test_inputs_run_in_the_order_given(tmp_path: Path) -> None:
    (tmp_path / "b.sql").write_text("SHOW CREATE STREAM a;")
    outcome = run_process("-q", "-e", "CREATE STREAM a USING rate;", "-f", "b.sql", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (0, "CREATE STREAM a\n  USING rate;\n")


@pytest.mark.usefixtures("processes")
def test_colours_only_when_asked_for_where_there_is_no_terminal() -> None:
    script = "SHOW STREAMS; FOO;"
    assert "\x1b" not in "".join(map(str, run_process("-e", script)))
    outcome = run_process("--color", "always", "-e", script)
    assert "| \x1b[1mname\x1b[0m" in outcome.out
    assert "\x1b[1;31merror[UNKNOWN_STATEMENT]:\x1b[0m there is no statement FOO" in outcome.err
    outcome = run_process("--color", "always", "missing.sql")
    assert (outcome.code, outcome.err.startswith("\x1b[1;31merror[USAGE]:\x1b[0m cannot read")) == (2, True)


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_terminal_gets_what_a_file_gets() -> None:
    """Without colours, a script writes the same to both; a table that a terminal has no room for is vertical."""
    shown = {f: f"SET streamsql.format = {f}; SHOW CONNECTORS;" for f in FORMATS}
    file = run_process(
        "-q", "--color", "never", "-e", "".join({**shown, "table": shown["vertical"]}.values())
    )
    assert in_terminal("-q", "--color", "never", "-e", "".join(shown.values())) == file.out


def in_terminal(*arguments: str) -> str:
    """What stands on standard output when it is a terminal, narrower than the rows."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    child = subprocess.Popen(
        command(*arguments), stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the end of a terminal
            break
        if not part:
            break
        seen += part
    os.close(master)
    assert child.wait(60) == 0
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_terminal_gets_colours_unless_it_is_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1m" in in_terminal("-e", "SHOW STREAMS;")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in in_terminal("-e", "SHOW STREAMS;")


@pytest.mark.usefixtures("processes")
def test_a_character_that_standard_output_cannot_write_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    script = "CREATE STREAM a USING rate COMMENT 'été'; SHOW CREATE STREAM a; SHOW STREAMS;"
    outcome = run_process("-q", "--format", "csv", "-e", script)
    assert (outcome.code, outcome.err) == (0, "")
    assert "\\u00e9t\\u00e9" in outcome.out


def test_every_format_of_the_command_line_has_a_writer() -> None:
    assert set(FORMATS) == set(WRITERS)
