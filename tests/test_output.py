"""Formats as pure functions: nothing altered, NULL told from an empty text, numbers to the right."""

from __future__ import annotations

import csv as csv_module
import datetime as dt
import io
import json as json_module
import os
import pty
import re
import shutil
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from streamsql.config.preferences import Preferences
from streamsql.errors import NameFault, Note, Source, Span, cells
from streamsql.output.cells import cut, plain, text, texts
from streamsql.output.chart import chart
from streamsql.output.colors import unpainted, wants_color
from streamsql.output.control_characters import harmless, visible
from streamsql.output.cursor_places import placed
from streamsql.output.document import Style
from streamsql.output.drawn_tables import draw
from streamsql.output.error_text import format_error
from streamsql.output.info_tables import info_document
from streamsql.output.line_breaks import wrap
from streamsql.output.pager import page, pager_command
from streamsql.output.printer import Printer
from streamsql.output.row_formats import FORMATS
from streamsql.results import Done, InfoRows, Rows, Text

ROWS = Rows(
    (),
    ("name", "n", "note"),
    [("1e5", 1234567.891, ""), ("日本", None, None), ('a "b", c', 2, "two\nlines\tand a | bar")],
    (False, True, False),
)


def shown(format: str, rows: Rows = ROWS) -> str:
    return "\n".join(FORMATS[format](rows))


def test_table_alters_nothing_and_counts_wide_characters() -> None:
    assert shown("table") == (
        "+----------+-------------+-------------------------+\n"
        "| name     |           n | note                    |\n"
        "|----------+-------------+-------------------------|\n"
        "| 1e5      | 1234567.891 |                         |\n"
        "| 日本     |        NULL | NULL                    |\n"
        '| a "b", c |           2 | two\\nlines\\tand a | bar |\n'
        "+----------+-------------+-------------------------+"
    )


def test_csv_reads_back_and_tells_null_from_empty() -> None:
    written = shown("csv")
    assert written.splitlines()[1] == '1e5,1234567.891,""'
    assert written.splitlines()[2] == "日本,,"
    back = list(csv_module.reader(io.StringIO(written)))
    assert back[3] == ['a "b", c', "2", "two\nlines\tand a | bar"]


def test_tsv_keeps_one_line_a_row() -> None:
    lines = shown("tsv").split("\n")
    assert lines[0] == "name\tn\tnote"
    assert lines[2] == "日本\t\\N\t\\N"
    assert lines[3] == 'a "b", c\t2\ttwo\\nlines\\tand a | bar'


def test_json_and_jsonl_read_back() -> None:
    rows = json_module.loads(shown("json"))
    assert rows[1] == {"name": "日本", "n": None, "note": None}
    assert [json_module.loads(line) for line in shown("jsonl").splitlines()] == rows
    assert json_module.loads(shown("json", Rows((), ("a",), [], (True,)))) == []


def test_markdown_escapes_bars_and_aligns_numbers() -> None:
    lines = shown("markdown").splitlines()
    assert lines[1] == "|---|---:|---|"
    assert lines[4] == '| a "b", c | 2 | two\\nlines\\tand a \\| bar |'


def test_vertical_has_a_block_for_each_row() -> None:
    lines = shown("vertical").splitlines()
    assert lines[0].startswith("-[ row 1 ]")
    assert lines[1:4] == ["name | 1e5", "n    | 1234567.891", "note | "]


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_takes_no_rows(format: str) -> None:
    shown(format, Rows((), ("a", "b"), [], (False, True)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        ("", ""),
        (True, "true"),
        (1.0, "1.0"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (b"\x00\xff", "0x00ff"),
        ([1, None, "x", ""], "[1, NULL, x, '']"),
        ({"a": 1, "b": {"c": None}}, "{a: 1, b: {c: NULL}}"),
        (dt.datetime(2024, 1, 1, 12, 0, 0, 1), "2024-01-01 12:00:00.000001"),
        (dt.date(2024, 1, 1), "2024-01-01"),
    ],
)
def test_cells(value: object, expected: str) -> None:
    assert text(value) == expected


def test_json_numbers_are_exact_or_texts() -> None:
    assert plain(Decimal("1.5")) == 1.5
    assert plain(Decimal("0.1234567890123456789")) == "0.1234567890123456789"
    assert plain(float("nan")) == "nan"
    assert plain({1: Decimal(2)}) == {"1": 2.0}


# ---- what a terminal gets ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "width"),
    [
        ("abc", 3),
        ("日本", 4),
        ("e\u0301", 1),
        ("👍🏽", 2),
        ("👩\u200d👩\u200d👧", 2),
        ("🇩🇪", 2),
        ("\u200b", 0),
        ("a\x07b", 2),
    ],
)
def test_width_of_characters(value: str, width: int) -> None:
    assert cells(value) == width


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("C:\\new", "C:\\new"),
        ("a\tb\r\n", "a\\tb\\r\\n"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("back\\slash\n", "back\\\\slash\\n"),
        ("\x9b2J", "\\x9b2J"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("日本 é 👩\u200d👧", "日本 é 👩\u200d👧"),
    ],
)
def test_what_steers_a_terminal_is_made_visible(value: str, seen: str) -> None:
    assert visible(value) == seen
    rows = Rows((), ("a",), [(value,)], (False,))
    for format in ("table", "vertical", "markdown"):
        assert seen in shown(format, rows)


def test_text_of_several_lines_keeps_its_lines() -> None:
    assert harmless("a\n\tb\x1b[2J\r") == "a\n\tb\\x1b[2J\\r"


@pytest.mark.parametrize(
    ("value", "limit", "kept"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("abc", 1, "…"),
        ("abc", 0, "abc"),
        ("x" * 100_000, 10, "xxxxxxxxx…"),
    ],
)
def test_cutting(value: str, limit: int, kept: str) -> None:
    assert cut(value, limit) == kept
    assert not limit or cells(cut(value, limit)) <= limit


def test_blanks_of_a_value_stay() -> None:
    assert "\n|  a     |\n" in shown("table", Rows((), ("name",), [(" a ",)], (False,)))


WIDE = Rows(
    (),
    ("id", "first", "second", "third", "last"),
    [(1, "a" * 10, "b" * 10, "c" * 10, None)],
    (True,) + (False,) * 4,
)


def test_columns_that_do_not_fit_are_left_out_from_the_middle() -> None:
    drawn = draw(WIDE, Style(width=45))
    assert drawn.lines == [
        "+------+------------+---+--------+",
        "|   id | first      | … | last   |",
        "|------+------------+---+--------|",
        "|    1 | aaaaaaaaaa | … | NULL   |",
        "+------+------------+---+--------+",
    ]
    assert drawn.hidden == ("second", "third")
    assert draw(WIDE, Style(width=56)).hidden == ()


@pytest.mark.parametrize("width", range(1, 80))
def test_a_table_is_never_wider_than_the_window(width: int) -> None:
    drawn = draw(WIDE, Style(width=width))
    assert len({cells(line) for line in drawn.lines}) == 1
    if width > 9:
        assert drawn.width <= width
    assert drawn.lines[1].startswith("| ")


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printer(width: int = 40, height: int = 10, **chosen: str) -> Printer:
    """A printer on a terminal; no pager and no colours unless chosen."""
    chosen = {"pager": "off", "color": "never"} | chosen
    return Printer(Preferences(**chosen), Screen(), Screen(), width=lambda: width, height=lambda: height)


def written(made: Printer) -> tuple[str, str]:
    """What is in each stream, messages without the line ends that fit them to the window."""
    return made.out.getvalue(), made.words.getvalue().replace("\n  ", " ")  # type: ignore[attr-defined]


def test_a_long_value_is_cut_in_a_window_and_said_so() -> None:
    made = printer(width=80)
    made.show(Rows((), ("a", "b"), [("x" * 100, 1)], (False, True)))
    out, words = written(made)
    assert "| " + "x" * 59 + "… |   1 |" in out
    assert words == (
        "(1 row)\nnote: values longer than 60 cells are cut: SET streamsql.max_cell = 0; shows them in full\n"
    )
    made.preferences.set("max_cell", "0")
    made.show(Rows((), ("a", "b"), [("x" * 70, 1)], (False, True)))
    assert "| " + "x" * 70 + " " in written(made)[0]


def test_a_wide_table_without_a_pager_says_what_is_left_out() -> None:
    made = printer(width=45)
    made.show(WIDE)
    out, words = written(made)
    assert "| … |" in out
    assert max(map(cells, out.splitlines())) <= 45
    assert words == (
        "(1 row)\nnote: 2 of 5 columns do not fit (…): second, third; \\last shows all of them, "
        "SET streamsql.expanded = auto; row by row\n"
    )


def test_expanded_auto_shows_a_wide_table_row_by_row_and_on_every_table() -> None:
    made = printer(width=40, expanded="auto")
    made.show(WIDE)
    assert written(made)[0].splitlines()[1:3] == ["id     | 1", "first  | aaaaaaaaaa"]
    narrow = Rows((), ("a",), [(1,)], (True,))
    made = printer(width=40, expanded="auto")
    made.show(narrow)
    assert written(made)[0].startswith("+--")
    made.preferences.set("expanded", "on")
    made.show(narrow)
    assert written(made)[0].endswith("-[ row 1 ]-\na | 1\n")


def test_many_rows_without_a_pager_end_with_how_many_there_are() -> None:
    made = printer(max_rows="40", format="csv")
    made.show(Rows((), ("a",), [(n,) for n in range(100_000)], (True,), 1.5))
    out, words = written(made)
    assert out.splitlines()[-1] == "39"
    assert words == "(40 of 100,000 rows, 1.50 s)\nnote: SET streamsql.max_rows = 0; shows all rows\n"


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_gets_everything(format: str) -> None:
    out, words = io.StringIO(), io.StringIO()
    rows = Rows((), ("a" * 200, "b"), [("x" * 300, n) for n in range(2000)], (False, True))
    Printer(Preferences(format=format, max_rows="5", max_cell="5"), out, words).show(rows)
    assert out.getvalue() == "".join(f"{line}\n" for line in FORMATS[format](rows))
    assert words.getvalue() == "(2,000 rows)\n"


def test_raw_formats_do_not_steer_a_terminal_but_reach_a_file_unaltered() -> None:
    rows = Rows((), ("a",), [("\x1b[2Jx\x9b",)], (False,))
    made = printer(format="csv")
    made.show(rows)
    assert written(made)[0] == "a\n\\x1b[2Jx\\x9b\n"
    out = io.StringIO()
    Printer("csv", out, io.StringIO()).show(rows)
    assert out.getvalue() == "a\n\x1b[2Jx\x9b\n"


def test_words_and_errors_with_data_in_them_do_not_steer_a_terminal() -> None:
    made = printer()
    made.show(Done(message="\x1b[2J done"))
    made.error(NameFault("there is no \x1b]0;x\x07"))
    assert written(made)[1] == "\\x1b[2J done\nerror[UNKNOWN_NAME]: there is no \\x1b]0;x\\x07\n"


def test_a_change_of_preferences_is_obeyed_at_the_next_result() -> None:
    chosen = Preferences()
    out, words = io.StringIO(), io.StringIO()
    made = Printer(chosen, out, words)
    rows = Rows((), ("a",), [(None,)], (False,), 0.5)
    chosen.set("format", "csv")
    made.show(rows)
    chosen.set("format", "vertical")
    chosen.set("null", "-")
    chosen.set("timing", "off")
    made.show(rows)
    assert out.getvalue() == "a\n\n-[ row 1 ]-\na | -\n"
    assert words.getvalue() == "(1 row, 0.50 s)\n(1 row)\n"


# ---- colours -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preference", "terminal", "env", "colours"),
    [
        ("auto", True, {"TERM": "xterm"}, True),
        ("auto", False, {"TERM": "xterm"}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {}, False),
        ("auto", True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        ("auto", True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        ("always", False, {"TERM": "dumb", "NO_COLOR": "1"}, True),
        ("never", True, {"TERM": "xterm"}, False),
    ],
)
def test_whether_there_are_colours(
    preference: str, terminal: bool, env: dict[str, str], colours: bool
) -> None:
    assert wants_color(preference, terminal, env) is colours


@pytest.mark.parametrize("format", FORMATS)
def test_colours_change_no_character(format: str) -> None:
    painted = list(FORMATS[format](ROWS, Style(color=True)))
    assert [unpainted(line) for line in painted] == list(FORMATS[format](ROWS))


def test_null_is_dim_and_an_empty_text_is_not() -> None:
    lines = list(FORMATS["table"](Rows((), ("a",), [(None,), ("",), ("NULL",)], (False,)), Style(color=True)))
    assert lines[1] == "| \x1b[1ma\x1b[0m    |"
    assert lines[3:6] == ["| \x1b[2mNULL\x1b[0m |", "|      |", "| NULL |"]


def test_an_error_in_colours_is_the_same_text() -> None:
    error = NameFault("there is no stream error: x", hint="SHOW STREAMS;", detail="one\ntwo")
    error.at(Source("a.sql", "SELECT 1"), Span(7, 8))
    made = printer(width=80, color="always")
    made.error(error)
    shown = made.words.getvalue()  # type: ignore[attr-defined]
    assert shown.startswith("a.sql:1:8: \x1b[1;31merror[UNKNOWN_NAME]:\x1b[0m there is no stream error: x\n")
    assert "\n  |        \x1b[1;31m^\x1b[0m\n\x1b[36mdetail:\x1b[0m one\n" in shown
    assert "\x1b[36mhint:\x1b[0m SHOW STREAMS;" in shown
    assert unpainted(shown) == format_error(error) + "\n"


def test_each_stream_is_judged_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out, words = io.StringIO(), Screen()
    made = Printer("table", out, words)
    made.show(Rows((Note("NO_ROWS", "careful"),), ("a",), [(None,)], (False,)))
    assert "\x1b" not in out.getvalue()
    assert "\x1b[36mnote:\x1b[0m careful" in words.getvalue()


# ---- the pager -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preference", "env", "command"),
    [
        ("auto", {"STREAMSQL_PAGER": "a -b", "PAGER": "c"}, "a -b"),
        ("auto", {"PAGER": "c"}, "c"),
        ("off", {"PAGER": "c"}, ""),
        ("d", {"STREAMSQL_PAGER": "a"}, "d"),
    ],
)
@pytest.mark.usefixtures("processes")
def test_which_pager(preference: str, env: dict[str, str], command: str) -> None:
    assert pager_command(preference, env) == command


def test_without_settings_the_pager_is_less_when_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pager_command("auto", {}) == ""
    (tmp_path / "less").touch(mode=0o755)
    assert pager_command("auto", {}).startswith("less -SRX")


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that adds what it gets to the file `paged`."""
    return f"tee -a {tmp_path}/paged"


def paged(folder: Path) -> str:
    file = folder / "paged"
    return file.read_text() if file.exists() else ""


@pytest.mark.usefixtures("processes")
def test_only_what_the_window_cannot_hold_is_paged(pager: str, tmp_path: Path) -> None:
    made = printer(width=40, height=10, pager=pager)
    made.show(Rows((), ("a",), [(n,) for n in range(4)], (True,)))
    assert paged(tmp_path) == ""
    assert "|   3 |" in written(made)[0]
    made.show(Rows((), ("a",), [(n,) for n in range(2000)], (True,)))
    assert paged(tmp_path).count("\n") == 2004
    assert "1999" not in written(made)[0]
    assert written(made)[1].endswith("(2,000 rows)\n")
    made.show(WIDE)
    assert "bbbbbbbbbb" in paged(tmp_path)
    made.show(Text(text="\n".join(["line"] * 30)))
    assert paged(tmp_path).endswith("line\n" * 30)
    assert not made.paging.is_set()


def test_what_comes_by_itself_is_never_paged_nor_the_last(pager: str, tmp_path: Path) -> None:
    made = printer(pager=pager)
    made.show(Rows((), ("mine",), [(1,)], (True,)))
    made.show(Rows((), ("a",), [(n,) for n in range(50)], (True,)), background=True)
    assert paged(tmp_path) == ""
    assert made.last is not None and made.last.columns == ("mine",)  # type: ignore[union-attr]


def test_no_window_no_pager(pager: str, tmp_path: Path) -> None:
    out = io.StringIO()
    Printer(Preferences(pager=pager), out, io.StringIO(), width=lambda: 40, height=lambda: 5).show(
        Rows((), ("a",), [(n,) for n in range(50)], (True,))
    )
    assert paged(tmp_path) == ""
    assert "|  49 |" in out.getvalue()


def test_a_pager_that_is_not_there_is_no_error() -> None:
    made = printer(width=45, pager="no-such-pager -x")
    made.show(WIDE)
    out, words = written(made)
    assert "| … |" in out
    assert words.startswith("note: the pager could not start: no-such-pager -x\n(1 row)\n")
    assert page(["x"], "no-such-pager") is False
    assert page(["x"], "unclosed 'quote") is False
    assert page(["x"], "") is False


@pytest.mark.usefixtures("processes")
def test_leaving_a_pager_early_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert page(["line\n" * 1_000_000], "head -1") is True
    assert capfd.readouterr() == ("line\n", "")
    assert page(["x"], "false") is True


@pytest.mark.usefixtures("processes")
def test_ctrl_c_is_the_pagers(capfd: pytest.CaptureFixture[str]) -> None:
    assert page(["still here\n"], "test $PPID -gt 1 && kill -INT $PPID && cat") is True
    assert capfd.readouterr() == ("still here\n", "")


@pytest.mark.usefixtures("processes")
def test_the_last_result_once_more_is_whole(pager: str, tmp_path: Path) -> None:
    made = printer(width=80, height=10, pager=pager)
    made.show_last()
    assert written(made)[1] == "there is no result yet\n"
    made.show(Rows((), ("a",), [("x" * 100,)], (False,), 0.5))
    assert paged(tmp_path) == ""
    made.show(Done(message="done"))
    made.show_last()
    assert "x" * 100 in paged(tmp_path)
    assert written(made)[1].endswith("done\n(1 row, 0.50 s)\n")
    made.preferences.set("pager", "off")
    made.show_last()
    assert "x" * 100 in written(made)[0]


def test_a_table_wider_than_the_window_is_cut_only_on_a_screen() -> None:
    rows = Rows((), ("a" * 30, "b" * 30), [(1, 2)], (True, True))
    narrow = printer(width=40)
    assert cells(narrow.lines(rows)[0]) <= 40
    assert "…" in narrow.lines(rows)[1]
    assert "…" not in printer(width=80).lines(rows)[1]


AT_A_TERMINAL = """
import shutil, signal, sys, threading
from streamsql.output.printer import Printer
from streamsql.config.preferences import Preferences
from streamsql.results import Rows
signal.signal(signal.SIGINT, lambda number, frame: None)
size = shutil.get_terminal_size
printer = Printer(Preferences(), sys.stdout, sys.stderr, width=lambda: size().columns, height=lambda: size().lines)
wide = Rows((), tuple(f"column {n}" for n in range(20)), [tuple(range(20))], (True,) * 20)
work = threading.Thread(target=printer.show, args=(wide,))
work.start()
work.join()
print("going on")
"""


@pytest.mark.skipif(not shutil.which("less"), reason="needs less")
@pytest.mark.usefixtures("processes")
def test_ctrl_c_in_less_leaves_the_console_alone() -> None:
    pexpect = pytest.importorskip("pexpect")
    child = pexpect.spawn(
        sys.executable,
        ["-c", AT_A_TERMINAL],
        env=os.environ | {"TERM": "xterm"},
        dimensions=(10, 60),
        timeout=30,
    )
    child.expect("column 1.*END")  # one row, but wider than the window: less must not leave by itself
    child.send("\x03")
    child.expect("column 1.*END")
    child.send("q")
    child.expect(r"\(1 row\)\s+going on\s")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


# ---- names that come again, characters that steer ----------------------------------------------

TWICE = Rows((), ("counter", "counter", "counter_2"), [(1, 2, 3)], (True, True, True))


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_every_column_of_a_repeated_name_is_kept(format: str) -> None:
    out, words = io.StringIO(), io.StringIO()
    Printer(format, out, words).show(TWICE)
    shown = out.getvalue()
    assert "counter_3" in shown and "counter_2" in shown
    assert "note: counter_3 is a second column named counter; AS gives it another name" in words.getvalue()
    if format == "jsonl":
        assert json_module.loads(shown) == {"counter": 1, "counter_3": 2, "counter_2": 3}


def test_fields_of_a_struct_with_one_name_are_kept() -> None:
    from pyspark.sql import Row

    row = Row("a", "a")(1, 2)
    assert plain(row) == {"a": 1, "a_2": 2}
    assert text(row) == "{a: 1, a_2: 2}"


STEERING = "a\x1b[2J\x9b31m\x07\u202eb\rc\x00d"


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_nothing_in_data_steers_a_terminal(format: str) -> None:
    main, other = pty.openpty()
    rows = Rows((), ("x", STEERING), [(STEERING, {STEERING: STEERING})], (False, False))
    with os.fdopen(other, "w") as terminal:
        printer = Printer(Preferences(format=format, color="never"), terminal, terminal)
        printer.show(rows)
        printer.show(Text((Note("NO_ROWS", f"note {STEERING}"),), f"text {STEERING}"))
        printer.error(NameFault(f"no {STEERING}", hint=STEERING))
        terminal.flush()
        shown = os.read(main, 100_000).decode()
    os.close(main)
    assert not re.search("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202e]", shown.replace("\r\n", "\n"))


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_only_formats_for_programs_write_data_as_it_is(format: str) -> None:
    out, words = io.StringIO(), io.StringIO()
    printer = Printer(format, out, words)
    printer.show(Rows((), ("x",), [(STEERING,)], (False,)))
    assert ("\x1b" in out.getvalue()) == (format in ("csv", "tsv"))
    if format == "csv":
        assert list(csv_module.reader(io.StringIO(out.getvalue(), newline="")))[1] == [STEERING]
    if format == "jsonl":
        assert json_module.loads(out.getvalue()) == {"x": STEERING}
    printer.show(Text((Note("NO_ROWS", f"note {STEERING}"),), f"text {STEERING}"))
    printer.error(NameFault(f"no {STEERING}"))
    assert "\x1b" not in words.getvalue()


def test_a_chart_writes_names_so_that_they_steer_nothing() -> None:
    drawn = chart([("a\x1b[2J", 1, None), ("b", 2, "c\x9b")], 60, 12, "t\x07")
    assert not re.search("[\x00-\x09\x0b-\x1a\x9b]", "\n".join(drawn))


def test_floats_and_times_have_the_digits_that_their_column_needs() -> None:
    at = dt.datetime(2024, 5, 1, 12)
    rows = [(0.1 + 0.2, at, 100 / 3), (2.0, at.replace(microsecond=500_000), 1.5), (None, None, None)]
    assert texts(rows) == [
        ["0.3", "2024-05-01 12:00:00.0", "33.333333"],
        ["2.0", "2024-05-01 12:00:00.5", "1.500000"],
        ["NULL", "NULL", "NULL"],
    ]
    assert texts([(1e22,), (float("nan"),)]) == [["1e+22"], ["nan"]]
    for value, written in (
        (2 / 3, "0.666667"), (-1 / 3, "-0.333333"), (1e10 / 3, "3333333333.33333"), (1 / 300, "0.00333333"),
        (59.9138681, "59.9138681"), (12345678.91, "12345678.91"), (0.1 + 0.2, "0.3"), (1e14 + 0.5, "100000000000000.5"),
    ):  # fmt: skip
        assert texts([(value,)]) == [[written]]
        assert f"| {written}\n" in shown("vertical", Rows(columns=("n",), rows=[(value,)])) + "\n"
        assert repr(value) in shown("csv", Rows(columns=("n",), rows=[(value,)]))


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - {"table"}))
def test_a_time_outside_of_a_table_has_the_digits_that_it_needs(format: str) -> None:
    times = [(dt.datetime(2024, 1, 1, 10, 0, 0, us),) for us in (123_000, 0, 5, 100_000)]
    lines = shown(format, Rows(columns=("t",), rows=times))
    assert re.findall(r"10:00:00[.\d]*", lines) == [
        "10:00:00.123", "10:00:00", "10:00:00.000005", "10:00:00.1"
    ]  # fmt: skip


@pytest.mark.parametrize("width", range(20, 130, 7))
def test_tables_about_the_console_break_no_word(width: int) -> None:
    words = "the value is too large for the column of this table".split()
    rows = [("first", "running", 17, None, " ".join(words)), ("second", "FAILED", 4, None, " ".join(words))]
    columns = ("name", "status", "rows", "empty", "last error")
    about = InfoRows((), columns, rows, matters=("name", "status"))
    shown = info_document(about, width, Style())
    assert max(map(cells, shown.lines)) <= width
    seen = set(re.findall(r"\w+", " ".join(shown.lines)))
    assert seen <= {
        *words,
        "name",
        "status",
        "rows",
        "last",
        "error",
        "first",
        "second",
        "running",
        "FAILED",
        "17",
        "4",
    }
    if "error" not in shown.lines[1]:  # it is told below
        assert [note.text for note in shown.notes][:1] == [f"first: {' '.join(words)}"]
        assert "error" not in shown.hidden
    pairs = InfoRows((), ("property", "value"), [("a long name", " ".join(words)), ("b", "1,234 rows")])
    lines = info_document(pairs, width, Style()).lines
    assert max(map(cells, lines)) <= width
    assert " ".join(" ".join(lines).split()) == f"a long name {' '.join(words)} b 1,234 rows"


def test_messages_break_between_words_in_a_window() -> None:
    made = printer(width=40)
    made.warn("the workspace /home/someone/a/rather/long/folder/name is held by another console")
    made.error(NameFault("there is no stream words-and-times", hint="SHOW STREAMS; lists the streams"))
    words = made.words.getvalue()  # type: ignore[attr-defined]
    assert words == (
        "warning: the workspace\n  /home/someone/a/rather/long/folder/name\n  is held by another console\n"
        "error[UNKNOWN_NAME]: there is no stream\n  words-and-times\nhint: SHOW STREAMS; lists the streams\n"
    )
    made.warn(
        "a proposal has INTERVAL 1 DAY and then '10 minutes' or '2024-05-01 12:00:00'; it's the query's"
    )
    assert made.words.getvalue()[len(words) :] == (  # type: ignore[attr-defined]
        "warning: a proposal has INTERVAL 1 DAY\n  and then '10 minutes' or\n  '2024-05-01 12:00:00'; it's the\n"
        "  query's\n"
    )


@pytest.mark.parametrize(
    ("interval", "shown"),
    [
        (dt.timedelta(2), "2 days"),
        (dt.timedelta(1, 3723), "1 day 01:02:03"),
        (dt.timedelta(0), "00:00:00"),
        (dt.timedelta(0, 1, 500_000), "00:00:01.5"),
        (-dt.timedelta(1, 3600), "-1 day -01:00:00"),
    ],
)
def test_an_interval_is_no_value_of_python(interval: dt.timedelta, shown: str) -> None:
    assert text(interval) == shown


def test_a_long_name_is_broken_between_its_words() -> None:
    name = "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    assert wrap(name, 31)[1:] == ["streaming.", "FileSystemBasedCheckpointFile", "Manager"]
    assert wrap("password|passphrase|passcode", 20) == ["password|passphrase|", "passcode"]
    aligned = "FROM BEGINNING   reads all input again"
    assert wrap(aligned, 30) == ["FROM BEGINNING   reads all", "input again"]


def test_rows_stand_one_under_another_where_columns_that_matter_have_no_room() -> None:
    columns = ("name", "status", "rows in", "query")
    rows = [("counts", "running", 2000, f"SELECT {'word, ' * 9}n FROM words"), ("other", "stopped", None, "")]
    about = InfoRows((), columns, rows, (False, False, True, False), in_full=True)
    assert info_document(about, 40, Style()).lines == [
        "counts",
        "  status   running",
        "  rows in  2,000",
        "  query",
        "    SELECT word, word, word, word, word,",
        "    word, word, word, word, n FROM words",
        "other",
        "  status   stopped",
    ]
    assert info_document(about, 200, Style()).lines[1].startswith("| name   | status  | rows in | query ")
    least = InfoRows((), columns, rows, (False, False, True, False), matters=("name", "query"))
    assert info_document(least, 20, Style()).lines[0] == "counts"


def test_a_plan_is_broken_between_words() -> None:
    out = io.StringIO()
    plan = Text(
        text="== Plan ==\n   +- *(5) HashAggregate(keys=[page], functions=[merge_count(1)])", outline=True
    )
    Printer("table", out, out, width=lambda: 40, height=lambda: 1_000).show(plan)
    assert out.getvalue().split("\n")[1:3] == [
        "   +- *(5) HashAggregate(keys=[page],",
        "     functions=[merge_count(1)])",
    ]


def test_the_cursor_is_told_its_column_behind_emoji_of_unsure_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    family, heart, thumb = (
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u2764\ufe0f",
        "\U0001f44d\U0001f3fd",
    )
    lines = [f"| {family} a |", f"| {heart}{thumb} |", "| \u65e5\u672c |"]
    assert list(placed(lines, 40)) == [
        f"| {family}\x1b[5G a |",
        f"| {heart}\x1b[5G{thumb}\x1b[7G |",
        lines[2],
    ]
    assert list(placed(lines, 5)) == lines  # the terminal breaks them
    monkeypatch.setenv("TERM", "dumb")
    assert list(placed(lines, 40)) == lines
