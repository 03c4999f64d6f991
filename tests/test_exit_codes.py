"""Exit codes tell the truth: signals, closed streams, files that read themselves, numbers beyond sense."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import command

from streamsql.cli.main import main

DIGITS = "9" * 5_000

ROOMS = ("streamsql/cli/", "streamsql/runtime/")


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Check:
    """Runs the command line in this process, in a folder of its own; gives (exit code, words)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        try:
            code = main(["--no-config", *arguments])
        except SystemExit as end:  # argparse
            code = int(end.code or 0)
        shown = capfd.readouterr()
        return code, shown.out + shown.err

    return run


Check = Callable[..., tuple[int, str]]


def until_it_reads(fifo: Path) -> int:
    """Wait until a process has opened a fifo, which it then reads. Returns the other end."""
    return os.open(fifo, os.O_WRONLY)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("number", "before", "code"),
    [
        (signal.SIGTERM, "", 143),
        pytest.param(signal.SIGHUP, "", 129, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "", 130, marks=pytest.mark.slow),
        (signal.SIGTERM, "DROP STREAM nothing;", 1),
    ],
)
@pytest.mark.usefixtures("processes")
def test_a_signal_before_the_script_is_done(
    number: signal.Signals, before: str, code: int, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "rest.sql")
    script = f"{before} SOURCE 'rest.sql';"
    arguments = ("--no-config", "--java", "/nowhere", "--on-error", "continue", "-e", script)
    process = subprocess.Popen(command(*arguments), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    other_end = until_it_reads(tmp_path / "rest.sql")
    process.send_signal(number)
    _, words = process.communicate(timeout=60)
    os.close(other_end)
    assert process.returncode == code, words
    assert "Traceback" not in words
    assert ("was received before the script was done" in words) == (code in (129, 143))


@pytest.mark.usefixtures("processes")
def test_ctrl_c_during_a_check(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "all.sql")
    arguments = ("--no-config", "--check", "all.sql")
    process = subprocess.Popen(command(*arguments), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    other_end = until_it_reads(tmp_path / "all.sql")
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    os.close(other_end)
    assert (process.returncode, words) == (130, "")


@pytest.mark.usefixtures("processes")
def test_ctrl_c_while_the_console_is_being_imported() -> None:
    program = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "streamsql.output.printer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from streamsql.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program, "--check", "-e", "SELECT 1;"], capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"")


def without_codes(words: str) -> str:
    """Messages without the codes that --check prints."""
    return re.sub(r"error\[\w+\]", "error", words)


@pytest.mark.parametrize("flags", [(), ("--check",)])
@pytest.mark.usefixtures("processes")
def test_a_file_that_reads_itself_is_refused(check: Check, flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SHOW STREAMS;\nSOURCE 'b.sql';\n")
    (tmp_path / "b.sql").write_text("SOURCE './a.sql';\n")
    code, words = check(*flags, "a.sql")
    assert code == 1
    assert "b.sql:1:8: error: a.sql includes itself" in without_codes(words)
    assert words.count("0 rows") == (0 if flags else 1)


def test_a_file_may_be_read_twice(check: Check, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SHOW STREAMS;\n")
    assert check("--check", "-e", "SOURCE 'a.sql'; SOURCE 'a.sql';") == (0, "4 statements checked\n")


def test_check_reads_a_source_at_its_place(check: Check, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE STREAM s USING rate;\n")
    assert check("--check", "-e", "SOURCE 'a.sql'; SHOW CREATE STREAM s;")[0] == 0
    assert check("--check", "-e", "SOURCE 'a.sql'; CREATE STREAM s USING rate;")[0] == 1


@pytest.mark.parametrize("flags", [(), ("--check",)])
@pytest.mark.usefixtures("processes")
def test_an_unclosed_quote_keeps_no_other_file_from_being_read(
    check: Check, flags: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "open.sql").write_text("SHOW STREAMS;\nSELECT 'abc")
    (tmp_path / "bad.sql").write_text("DROP STREAM nothing;")
    code, words = check(*flags, "--on-error", "continue", "open.sql", "bad.sql")
    assert code == 1
    assert "open.sql:2:8: error: the quote is not closed" in without_codes(words)
    assert "bad.sql:1:13: error: there is no stream nothing" in without_codes(words)
    # A script stops at its first error; --check reports those of all files.
    assert ("bad.sql" in check(*flags, "open.sql", "bad.sql")[1]) == bool(flags)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("redirected", "code"),
    [
        ("-e 'SHOW STREAMS;' >&-", 0),
        ("-e 'NONSENSE;' 2>&-", 1),
        ("-e 'SHOW STREAMS;' <&- >&- 2>&-", 0),
        ("- <&-", 2),
        ("<&-", 2),
    ],
)
@pytest.mark.usefixtures("processes")
def test_closed_standard_streams(redirected: str, code: int, tmp_path: Path) -> None:
    line = f"{sys.executable} -m streamsql --no-config {redirected}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert ("standard input is closed" in done.stderr) == (code == 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--master", "local[x]", "-e", "HELP;"), "local[x] is not a master of Spark"),
        (("--master", "local[0]", "-e", "HELP;"), "local[0] is not a master of Spark"),
        (("--master", "localhost", "-e", "HELP;"), "localhost is not a master of Spark"),
        (("--timeout", "nan", "-e", "HELP;"), "a number of seconds, more than 0, not nan"),
        (("--timeout", "soon", "-e", "HELP;"), "a number of seconds, more than 0, not soon"),
    ],
)
def test_flags_that_make_no_sense(check: Check, arguments: tuple[str, ...], said: str) -> None:
    code, words = check(*arguments)
    assert code == 2
    assert said in words


@pytest.mark.usefixtures("processes")
def test_a_current_folder_that_is_gone(tmp_path: Path) -> None:
    line = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m streamsql -e 'SHOW STREAMS;'"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error[USAGE]: the current folder no longer exists\n")


def test_files_and_statements_may_be_mixed(check: Check, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE STREAM s USING rate;")
    (tmp_path / "-b.sql").write_text("DROP STREAM t;")
    script = "CREATE STREAM t AS SELECT value FROM s;"
    assert check("a.sql", "--check", "-qe", script, "--on-error=stop", "--", "-b.sql") == (0, "")
    code, words = check("--check", "-e", script, "a.sql")
    assert code == 1 and words.startswith("-e:1:")


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE SINK x USING memory RETAIN {DIGITS} ROWS;",
        f"SHOW PROGRESS q LAST {DIGITS};",
        f"SHOW BATCHES OF QUERY q LAST {DIGITS};",
        f"PREVIEW USING rate LIMIT {DIGITS};",
        f"SET streamsql.max_rows = {DIGITS};",
        f"INSERT INTO x RESTART {DIGITS} TIMES EVERY INTERVAL 1 SECOND SELECT 1;",
        f"CREATE SINK x USING jdbc OPTIONS (url 'jdbc:sqlite:x', table 't', batchsize '{DIGITS}');",
        "CREATE SINK x USING noop RETAIN 5 ROWS;",
    ],
)
def test_a_number_beyond_sense_has_a_place(check: Check, statement: str) -> None:
    code, words = check("--check", "-e", statement)
    assert code == 1
    assert words.startswith("-e:1:") and "^" in words and "Error" not in words


def test_retain_belongs_to_live_tables(check: Check) -> None:
    code, words = check("--check", "-e", "CREATE SINK x USING noop RETAIN 5 ROWS;")
    assert "-e:1:26: error[CLAUSE_NOT_SUPPORTED]: noop takes no RETAIN" in words
    assert check("--check", "-e", "CREATE SINK x USING memory RETAIN 5 ROWS;")[0] == 0
