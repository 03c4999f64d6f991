"""The prompt: completion and editing as pure functions, keys through a pipe, and a true terminal."""

from __future__ import annotations

import gzip
import re
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pyte
import pytest
from conftest import Console
from prompt_toolkit import PromptSession
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.output.vt100 import Vt100_Output

from streamsql.catalog import Catalog
from streamsql.definitions import Query, Sink, Stream
from streamsql.language import lexical
from streamsql.language.statements.base import Column
from streamsql.output.printer import Printer
from streamsql.results import Live
from streamsql.shell.bare_terminal import Interrupt
from streamsql.shell.completion.complete import complete
from streamsql.shell.editing import History, is_complete, open_sign
from streamsql.shell.progress_line import in_one_line
from streamsql.shell.prompt import Prompt
from streamsql.shell.statement_runner import Desk
from streamsql.shell.word_wrap import HIDDEN, WordWrap, gaps

CATALOG = Catalog(
    streams={
        "clicks": Stream("clicks", "json", columns=(Column("user", "STRING"), Column("ts", "TIMESTAMP")))
    },
    sinks={"out": Sink("out", "parquet"), "counts": Sink("counts", "memory")},
    queries={"q1": Query("q1", ("out",), "SELECT 1")},
)


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("CREATE ST", ["STREAM"], ["SINK", "TABLE"]),
        ("CREATE STREAM a USING js", ["json"], ["csv", "console"]),
        ("CREATE SINK a USING ", ["parquet", "memory"], ["socket", "rate"]),
        ("CREATE STREAM a USING json OPTIONS (max", ["maxFilesPerTrigger"], ["path"]),
        ("CREATE STREAM a USING rate WITH WATERMARK timestamp ", ["DELAY"], []),
        ("CREATE STREAM a (id BIG", ["BIGINT"], ["INT"]),
        ("SELECT * FROM ", ["clicks", "counts"], ["out", "SELECT"]),
        ("SELECT c.user FROM clicks c WHERE c.", ["user", "ts"], ["FROM"]),
        ("SELECT * FROM clicks WHERE us", ["user"], ["ts"]),
        ("SELECT cou", ["count(", "count_if("], ["sum("]),
        ("STOP QUERY ", ["q1", "ALL"], ["clicks"]),
        ("DROP STREAM cl", ["clicks"], ["counts"]),
        ("INSERT INTO ", ["out", "clicks"], ["q1"]),
        ("INSERT INTO out OUTPUT MODE ", ["APPEND", "UPDATE", "COMPLETE"], ["TRIGGER"]),
        ("SHOW STREAMS; STOP QUERY ", ["q1"], ["STREAMS"]),
        ("", [], ["SELECT"]),
    ],
)
def test_completion(text: str, wanted: list[str], unwanted: list[str]) -> None:
    found = {c.text for c in complete(text, len(text), CATALOG)}
    assert set(wanted) <= found
    assert not set(unwanted) & found


def test_completion_looks_only_at_the_statement_under_the_cursor() -> None:
    text = "STOP QUERY ; SELECT 1;"
    assert "q1" in {c.text for c in complete(text, len("STOP QUERY "), CATALOG)}


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1; -- done;", True),
        ("SELECT 1 -- ;", False),
        ("SELECT 1 /* ;", False),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", False),
        ("BEGIN STATEMENT SET; INSERT INTO a SELECT 1;", False),
        ("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;", True),
        ("BEGIN;", True),
        ("SELECT $$it's$$;", True),
        ("SELECT $$it's;", False),
        ("", True),
        ("  help ", True),
        ("exit", True),
        ("exit now", False),
    ],
)
def test_enter_runs_only_a_finished_statement(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_history_is_private_and_keeps_no_secrets(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"
    history = History(path)
    for text in ("SELECT 1;", " SELECT 2;", "SET fs.secret.key = hush;"):
        history.append_string(text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(History(path).load_history_strings()) == ["SELECT 1;"]


def test_without_a_folder_for_it_the_history_is_that_of_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    history = History(tmp_path / "state" / "streamsql" / "history")
    history.append_string("SELECT 1;")
    assert history.get_strings() == ["SELECT 1;"]
    assert list(history.load_history_strings()) == []


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("SELECT 'a", "'"),
        ('SELECT "a', '"'),
        ("SELECT /* a", "*"),
        ("SELECT 1 -- 'a", ""),
        ("SELECT 'a'", ""),
    ],
)
def test_an_open_quote_or_comment_is_told(line: str, sign: str) -> None:
    assert open_sign([line]) == sign


def test_the_lines_of_a_long_statement_are_scanned_once_for_all_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scanned, lines = list[str](), [f"SELECT 'a{n}' AS a{n}, -- it's" for n in range(200)]

    def opened(text: str) -> str:
        scanned.append(text)
        return ""

    monkeypatch.setattr(lexical, "opened", opened)
    for number in (*range(200), *range(200)):
        open_sign(lines[:number])
    assert len(scanned) == 199


def test_a_quote_continues_in_further_lines() -> None:
    texts = (["SELECT 'a", "b"], ["/* x", "y"], ["a 'b'", "c"], ["`x", "y` + 1"], ["SELECT 'it\\'s", "x'"])
    assert [open_sign(lines) for lines in texts] == ["'", "*", "", "", ""]


def test_drop_query_all_asks(console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console.run(
        "CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE a AS SELECT n FROM s;"
        "CREATE LIVE TABLE b AS SELECT n FROM s;"
    )
    with typing(console, "DROP QUERY ALL;\rn\r\x04y\r", tmp_path, monkeypatch) as printed:
        assert "dropped" not in printed
    assert len(console.rows("SHOW QUERIES;")) == 2
    with typing(console, "DROP QUERY ALL;\ry\r\x04", tmp_path, monkeypatch) as printed:
        assert "queries a, b dropped" in printed
    assert console.rows("SHOW QUERIES;") == []


@contextmanager
def typing(console: Console, keys: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What is printed when somebody types keys and then leaves."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    out = StringIO()
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        printer = Printer("table", out, out)
        shell = Prompt(lambda: (console.session, printer), printer, input=pipe, output=DummyOutput())
        assert shell.run() == 0
    yield out.getvalue()


def test_statements_over_several_lines_and_errors_in_between(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = "SELECT 1\rAS x;\rSELEC 2;\rSELECT 3 AS y;\rexit\r"
    with typing(console, keys, tmp_path, monkeypatch) as shown:
        assert "|   1 |" in shown
        assert "there is no statement SELEC" in shown
        assert "|   3 |" in shown


def test_ctrl_j_and_esc_enter_run_what_has_no_semicolon(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with typing(console, "SELECT 8 AS d\nSELECT 9\rAS e\x1b\rexit\r", tmp_path, monkeypatch) as shown:
        assert "|   8 |" in shown
        assert "|   9 |" in shown


def test_ctrl_c_on_text_throws_it_away(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with typing(console, "SELECT nonsense\x03SELECT 4 AS z;\r\x04", tmp_path, monkeypatch) as shown:
        assert "|   4 |" in shown
        assert "error" not in shown


def test_a_pasted_script_waits_for_enter(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paste = "\x1b[200~SELECT 5 AS a;\nSELECT 6 AS b;\n\x1b[201~"
    with typing(console, paste + "\x03SELECT 7 AS c;\rexit\r", tmp_path, monkeypatch) as shown:
        assert "|   5 |" not in shown
        assert "|   7 |" in shown
    with typing(console, paste + "\rexit\r", tmp_path, monkeypatch) as shown:
        assert "|   5 |" in shown
        assert "|   6 |" in shown


def test_a_paste_without_brackets_keeps_its_own_indentation(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = "SELECT length('a\r  b\r  c') AS n;\rexit\r"
    with typing(console, keys, tmp_path, monkeypatch) as shown:
        assert f"| {len('a') + 1 + len('  b') + 1 + len('  c'):3} |" in shown


def desk_of(console: Console, shown: StringIO) -> Desk:
    return Desk(console.session, Printer("csv", shown, shown), Interrupt(), {})


@pytest.mark.usefixtures("processes")
def test_commands_of_psql_that_are_no_statements(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = StringIO()
    desk = desk_of(console, shown)
    for typed in (rf"\o {tmp_path}/rows.csv", "SELECT 1 AS a, NULL AS b;", r"\o", "SELECT 2 AS c;"):
        assert desk.execute(typed)
    assert (tmp_path / "rows.csv").read_text() == "a,b\n1,\n"
    assert "c\n2\n" in shown.getvalue()
    assert desk.execute(rf"SELECT 3 AS d \g {tmp_path}/again.csv")
    assert desk.execute("SELECT 4 AS e;")
    assert (tmp_path / "again.csv").read_text() == "d\n3\n"
    assert "e\n4\n" in shown.getvalue()
    for command, left in ((r"\p", "SELECT 5"), (r"\timing", "SELECT 5"), (r"\r", "")):
        desk.next_text = ""
        assert desk.execute(f"SELECT 5 {command}")
        assert desk.next_text == left
    assert "SELECT 5\n" in shown.getvalue()
    assert desk.execute(rf"\! echo there > {tmp_path}/said")
    assert (tmp_path / "said").read_text() == "there\n"
    desk.execute(rf"\o {tmp_path}/none/rows.csv")
    assert f"cannot write {tmp_path}/none/rows.csv: no such file or directory" in shown.getvalue()
    desk.execute("SELECT nothing FROM range(1);")
    shown.truncate(0)
    desk.execute(r"\errverbose")
    assert re.search(r"there is no column nothing.*code: UNRESOLVED_COLUMN.*SQLSTATE: 42703.*cause: ", shown.getvalue(), re.DOTALL)  # fmt: skip


def test_the_ending_of_a_file_says_its_format(console: Console, tmp_path: Path) -> None:
    shown = StringIO()
    desk = Desk(console.session, Printer("table", shown, shown), Interrupt(), {})
    written = {
        "csv": "a,b\n1,\n",
        "tsv": "a\tb\n1\t\\N\n",
        "json": '[\n  {"a": 1, "b": null}\n]\n',
        "jsonl": '{"a": 1, "b": null}\n',
        "ndjson": '{"a": 1, "b": null}\n',
    }
    for ending, text in written.items():
        desk.execute(rf"\o '{tmp_path}/out.{ending}'")
        desk.execute("SELECT 1 AS a, NULL AS b;")
        desk.execute(r"\o")
        desk.execute(rf"SELECT 1 AS a, NULL AS b \g {tmp_path}/g.{ending}")
        assert (tmp_path / f"out.{ending}").read_text() == (tmp_path / f"g.{ending}").read_text() == text
    desk.execute(rf"SELECT 1 AS a \g {tmp_path}/packed.csv.gz")
    with gzip.open(tmp_path / "packed.csv.gz", "rt") as file:
        assert file.read() == "a\n1\n"
    desk.execute(rf"SELECT 1 AS a \g {tmp_path}/rows.txt")
    assert "|   1 |" in (tmp_path / "rows.txt").read_text()
    assert "a,b" not in shown.getvalue()
    desk.execute("SELECT 2 AS c;")
    assert "|   2 |" in shown.getvalue()


def test_echo_prints_a_text_with_its_variables(console: Console) -> None:
    shown = StringIO()
    desk = desk_of(console, shown)
    desk.execute(r"\set day 2026-01-01")
    shown.truncate(0)
    for typed in (
        r"\echo hi",
        r"\qecho 'two  blanks' :day",
        r".print ${day}, it's 12:30",
        r"\warn :'day' :no",
    ):
        desk.execute(typed)
    assert shown.getvalue().strip("\0").splitlines() == [
        "hi",
        "two  blanks 2026-01-01",
        "2026-01-01, it's 12:30",
        "2026-01-01 :no",
    ]
    desk.execute(r"\echo ${nosuch}")
    assert "variable nosuch is not defined" in shown.getvalue()


def test_a_file_that_is_no_text_is_answered_with_the_copy_that_writes_it(
    console: Console, tmp_path: Path
) -> None:
    shown = StringIO()
    desk = desk_of(console, shown)
    for typed, name, query in (
        ([r"\o {}"], "a.parquet", "SELECT …"),
        ([r"SELECT 1 AS a, 'x' AS b \g {}"], "b.parquet", "SELECT 1 AS a, 'x' AS b"),
        (["FROM range(3);", r"\once {}"], "c.pq", "FROM range(3)"),
        (["SELECT 1; SELECT 2;", r"\o {}"], "d.parquet", "SELECT …"),
        (["SELECT 1 AS a;", r"\o {}"], "e.xlsx", "SELECT 1 AS a"),
    ):
        path = tmp_path / name
        for line in typed:
            desk.execute(line.format(path))
        own = path.with_suffix(".csv") if path.suffix == ".xlsx" else path
        assert desk.offered == f"COPY ({query}) TO '{own}';"
        assert not path.exists()
        if "…" not in query:
            desk.execute(desk.offered)
            assert own.exists()
    assert "rows go into a file as text, not as parquet" in shown.getvalue()


def test_the_last_view_of_a_stream_goes_into_the_file(
    console: Console, tmp_path: Path, eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    console.run("CREATE STREAM w (a INT) USING values; INSERT INTO w VALUES (1), (2), (2);")
    desk = desk_of(console, StringIO())

    def left(live: Live) -> threading.Event:
        """What is set when the reader has left the view: once it shows all groups."""
        ended = threading.Event()
        eventually(lambda: live.take(9, 0, None).total == 2)
        ended.set()
        return ended

    monkeypatch.setattr(desk.views, "ask", left)
    query = "SELECT a, count(*) AS n FROM w GROUP BY a"
    desk.execute(rf"\o {tmp_path}/o.jsonl")
    desk.execute(f"{query};")
    desk.execute(r"\o")
    assert sorted((tmp_path / "o.jsonl").read_text().splitlines()) == ['{"a": 1, "n": 1}', '{"a": 2, "n": 2}']
    desk.execute(rf"{query} \g {tmp_path}/g.csv")
    header, *rows = (tmp_path / "g.csv").read_text().splitlines()
    assert (header, sorted(rows)) == ("a,n", ["1,1", "2,2"])


def test_rows_in_a_file_leave_the_terminal_as_it_is(console: Console, tmp_path: Path) -> None:
    shown = StringIO()
    desk = desk_of(console, shown)
    desk.execute(rf"\o {tmp_path}/rows.csv")
    desk.printer.terminal.status("running… 3 s", moving=True)
    desk.execute("SELECT 1 AS a;")
    assert re.search(r"running… 3 s\x1b\[K\r\x1b\[K\(1 row, \d+\.\d\d s\)\n$", shown.getvalue())
    desk.execute("SELECT nothing FROM range(1);")
    shown.truncate(0)
    desk.execute(r"\errverbose")
    assert "there is no column nothing" in shown.getvalue()


@pytest.mark.usefixtures("processes")
def test_commands_of_psql_behind_a_statement(console: Console, tmp_path: Path) -> None:
    class Shown(StringIO):
        def write(self, text: str) -> int:
            if self.getvalue().count("\n7\n") > 2:
                desk.interrupted.set()
            return super().write(text)

    shown = Shown()
    desk = desk_of(console, shown)
    desk.execute("SELECT 7 AS a;")
    desk.execute(r"\watch 0.01")
    assert shown.getvalue().count("\n7\n") >= 3
    assert "cancelled after" in shown.getvalue()
    shown.truncate(0)
    desk.interrupted.clear()  # as the next prompt does
    file = tmp_path / "rows"
    desk.execute(f"SELECT 8 AS a \\g | cat > {file}")
    assert file.read_text().split()[:2] == ["a", "8"]
    for statement, typed, said, times in (
        ("SELECT 9 AS a;", r"\watch i=0.01 c=2", "\n9\n", 3),
        ("SELECT 9 AS a;", r"\watch i=0.01 c=2", " (every 0.01 s)\n", 2),
        ("ADD JAR '/no.jar';", r"\watch i=0.01 c=2", "there is no file /no.jar", 2),  # an error ends it
        ("CREATE STREAM one (a INT) USING values;", r"\dt o*", "one,stream", 1),
        ("CREATE TEMP TABLE two AS SELECT 1 AS a;", "DELETE FROM two;", "a view cannot be changed", 1),
    ):
        shown.truncate(0)
        desk.execute(statement)
        desk.execute(typed)
        assert shown.getvalue().count(said) == times


def test_a_note_is_shown_once(console: Console) -> None:
    shown = StringIO()
    console.run("CREATE STREAM s (n INT, m INT) USING values; CREATE LIVE TABLE t AS SELECT * FROM s;")
    desk = desk_of(console, shown)
    for name in ("n", "n", "m"):
        desk.execute(f'SELECT upper("{name}") AS u FROM t;')
    assert re.findall(r'note: "(\w)" is a string', shown.getvalue()) == ["n", "m"]


def test_what_follows_an_error_is_kept_for_the_next_prompt(console: Console) -> None:
    shown = StringIO()
    desk = desk_of(console, shown)
    desk.execute("SELECT 11 AS a;\n\\timing off\nSELECT 12 AS a; SELECT x; SELECT 13 AS a;\n\\x\nSELECT 14;")
    assert re.findall(r"^1\d$", shown.getvalue(), re.MULTILINE) == ["11", "12"]
    assert "what follows was not run; press ↑ to edit and run it" in shown.getvalue()
    assert desk.not_run == "SELECT 13 AS a;\n\\x\nSELECT 14;"
    shown.truncate(0)
    desk.execute(desk.not_run)
    assert "13" in shown.getvalue() and "14" in shown.getvalue() and not desk.not_run
    desk.execute("\\x off")
    desk.execute("SELECT 15 AS a; \\conninfo")
    assert shown.getvalue().index("\n15\n") < shown.getvalue().index("Spark 4")


def rows_of(line: str, room: int) -> list[str]:
    """The rows that a typed line takes in a window with so much room."""
    blanks = gaps(line, room)
    shown = "".join(
        "" if blanks.get(at) == HIDDEN else " " * blanks.get(at, 0) + c for at, c in enumerate(line)
    )
    return [shown[start : start + room].rstrip() for start in range(0, len(shown), room)]


def test_a_typed_line_wraps_between_words() -> None:
    typed = "SELECT window.start AS since, user, count(*) AS n FROM clicks,views"
    assert rows_of(typed, 35) == ["SELECT window.start AS since, user,", "count(*) AS n FROM clicks,views"]
    assert rows_of(typed, len(typed)) == [typed]
    for room in range(13, 70):
        rows = rows_of(typed, room)
        assert " ".join(rows).replace("clicks, views", "clicks,views") == typed
    assert rows_of("a" * 20 + " bb ccc", 8) == ["aaaaaaaa", "aaaaaaaa", "aaaa bb", "ccc"]


def test_the_cursor_moves_by_characters_in_a_line_that_wraps() -> None:
    written, screen = StringIO(), pyte.Screen(40, 10)
    output = Vt100_Output(written, lambda: Size(rows=10, columns=40), term="xterm", enable_cpr=False)
    with create_pipe_input() as keys:
        keys.send_text("SELECT 'a text that is longer than', 'the', 'line', 1 + 1 AS b;")
        keys.send_text("\x1b[D" * len(", 'line', 1 + 1 AS b;") + " AS c\r")
        session: PromptSession[str] = PromptSession(
            input=keys,
            output=output,
            input_processors=[WordWrap(5)],
            multiline=False,
            prompt_continuation=".... ",
        )
        typed = session.prompt("sql> ")
    assert typed == "SELECT 'a text that is longer than', 'the' AS c, 'line', 1 + 1 AS b;"
    pyte.Stream(screen).feed(written.getvalue())
    assert [line.rstrip() for line in screen.display][:3] == [
        "sql> SELECT 'a text that is longer",
        ".... than', 'the' AS c, 'line', 1 + 1 AS",
        ".... b;",
    ]


def test_a_progress_line_fits_the_window() -> None:
    text = "stage 1 of 12, 300 of 2000 tasks, 10 s; Ctrl-C cancels"
    assert in_one_line(text, 80) == text
    assert in_one_line(text, 39) == "stage 1 of 12, 30… 10 s; Ctrl-C cancels"
    assert in_one_line("cancelling…", 5) == "canc…"
