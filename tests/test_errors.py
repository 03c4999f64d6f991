"""Errors as a person reads them: golden files that hold the whole block, caret and hint included.

A golden file holds cases: a title, the script, and what is shown. `UPDATE_GOLDEN=1 pytest` writes
what is shown now; look at the difference before you commit it.
"""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Console

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker, read_all
from streamsql.cli.findings import Reporter
from streamsql.config.preferences import Preferences
from streamsql.connectors.base import Places
from streamsql.errors import Source, StreamsqlError
from streamsql.language.spark_syntax import missing_comma
from streamsql.output.error_text import format_error
from streamsql.output.printer import Printer
from streamsql.plan.context import Context

GOLDEN = Path(__file__).parent / "golden" / "errors"
CASE = re.compile(r"^=== (.+)\n((?:.|\n)*?)\n--- shown\n((?:.|\n)*?)\n?(?=^=== |\Z)", re.M)


def read(name: str) -> list[tuple[str, str, str]]:
    return CASE.findall((GOLDEN / name).read_text())


def shown(console: Console, script: str, folder: Path) -> str:
    """Run a script up to its first error, and give that error's text."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "a.json").write_text('{"user": "ann", "n": 1, "ts": "2024-01-01T00:00:00"}\n')
    (folder / "empty").mkdir(exist_ok=True)
    (folder / "words").mkdir(exist_ok=True)
    (folder / "words" / "a.txt").write_text("to be or not\n")
    try:
        console.run(script.replace("{tmp}", str(folder)))
    except StreamsqlError as error:
        text = format_error(error)
    else:
        text = "no error"
    return text.replace(str(folder), "{tmp}")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is always as long (carets stand under it), and of this process only."""
    made = Path(f"/tmp/g{os.getpid() % 100_000:05}")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    yield made
    shutil.rmtree(made, ignore_errors=True)


SPANS = [  # a script, what is at fault in it
    ("DEFINE longer = 'x';\n\nDROP STREAM ${longer}_${longer} nonsense", "nonsense"),
    ("DEFINE e = '';\nCREATE STREAM e${e} (n INT, n INT) USING kafka", "n"),
    ("DEFINE kind = 'kafkaa';\nCREATE STREAM s (n INT) USING ${kind}", "${kind}"),
    ("DEFINE kind = 'kafka';\nCREATE STREAM s (n INT) USING ${kind} OPTIONS (topik 't')", "topik"),
    (
        "DEFINE t = 'events';\nCREATE LIVE TABLE x OUTPUT MODE APPEND AS SELECT '${t}', id FROM ${t} ORDER BY id",
        "ORDER BY id",
    ),
    (
        "DEFINE t = 'events';\nEXPLAIN CREATE LIVE TABLE x OUTPUT MODE APPEND AS SELECT '${t}', id FROM ${t} ORDER BY id",
        "ORDER BY id",
    ),
    (
        "DEFINE t = 'events';\nCREATE LIVE TABLE x OUTPUT MODE APPEND AS SELECT '${t}', id FROM (SELECT * FROM ${t} ORDER BY id)",
        "ORDER BY id",
    ),
    ("DEFINE t = 'events';\nINSERT INTO out${t} SELECT '${t}', id FROM ${t}", "out${t}"),
    ("DEFINE t = 'events';\nSELECT * FROM ${nope}", "${nope}"),
    ("SET a=b;\r\rDROP STREAM nope", "nope"),
    ("-- one\r\nSET a=b; /* two\r\n */ DROP STREAM nope", "nope"),
    ("DEFINE x = '1';\nSTART QUERY ${x}nope", "${x}nope"),
]
LEAD = "CREATE STREAM events (id INT) USING values;"


@pytest.mark.parametrize(("script", "fault"), SPANS, ids=range(len(SPANS)))
def test_a_caret_is_under_what_is_at_fault(script: str, fault: str, tmp_path: Path) -> None:
    source = Source("a.sql", f"{LEAD}\n{script}")
    printed = io.StringIO()
    printer = Printer(Preferences(), io.StringIO(), printed)
    context = Context(Catalog(), Places(str(tmp_path)))
    assert read_all([source], {}, Reporter(printer), Checker(context)) == 1
    place, _, shown = printed.getvalue().partition(": error")
    _, line, column = place.rsplit(":", 2)
    lines = re.split("\r\n|\r|\n", source.text)
    assert lines[int(line) - 1][int(column) - 1 :].startswith(fault), printed.getvalue()
    _, code, marks, *_ = shown.split("\n")
    assert code.endswith(lines[int(line) - 1])
    assert marks.count("^") == len(fault), printed.getvalue()


def check(name: str, console: Console, folder: Path) -> None:
    cases = read(name)
    assert cases, name
    results = []
    for title, script, _ in cases:
        results.append((title, script, shown(console, script, folder)))
        console.reset()
    if os.environ.get("UPDATE_GOLDEN"):
        text = "".join(f"=== {t}\n{s}\n--- shown\n{e}\n" for t, s, e in results)
        (GOLDEN / name).write_text(text)
        return
    for (title, _, expected), (_, _, actual) in zip(cases, results, strict=True):
        assert actual == expected, title


@pytest.mark.parametrize("name", sorted(p.name for p in GOLDEN.glob("*.txt")))
def test_errors_are_shown_as_in_the_golden_file(name: str, console: Console, folder: Path) -> None:
    check(name, console, folder)


TOLD_WHEN_IT_RUNS = {
    "streaming.txt": [
        "continuous that Spark refuses",
    ],
    "rules.txt": [
        "rows of a static SELECT beside those of a query",
        "a query with several sinks beside one of a single sink",
        "a query of one sink beside one of several",
    ],
}
"""The errors of streaming queries that need Spark, or what has been written. All others are told by planning."""


@pytest.mark.parametrize("name", TOLD_WHEN_IT_RUNS)
def test_a_check_without_spark_shows_the_same_errors(name: str, folder: Path) -> None:
    others = []
    for title, script, expected in read(name):
        printed = io.StringIO()
        printer = Printer(Preferences(), io.StringIO(), printed)
        context = Context(Catalog(), Places(str(folder / "run")))
        source = Source("test.sql", script.replace("{tmp}", str(folder)))
        read_all([source], {}, Reporter(printer), Checker(context))
        errors = re.sub(r".*: note\[.*\n|\d+ statements? checked.*\n", "", printed.getvalue())
        shown = re.sub(r"error\[[\w.]+\]", "error", errors.replace(str(folder), "{tmp}")).strip()
        if shown != re.sub(r"error\[[\w.]+\]", "error", expected).strip():
            others.append(title)
    assert others == TOLD_WHEN_IT_RUNS[name]


@pytest.mark.parametrize("name", sorted(p.name for p in GOLDEN.glob("*.txt")))
def test_no_error_shows_a_stack(name: str) -> None:
    for title, _, text in read(name):
        assert text != "no error", title
        assert not re.search(r"Traceback|\bat (org|java|scala)\.|py4j|File \"", text), title
        assert len(text.splitlines()) <= 12, title


@pytest.mark.parametrize(
    ("query", "behind", "corrected"),
    [
        ("SELECT user count(*) FROM clicks GROUP BY user", "count", "SELECT user, count(*) FROM clicks GROUP BY user;"),
        ("SELECT count(*) sum(n) FROM clicks", "sum", "SELECT count(*), sum(n) FROM clicks;"),
        ("SELECT user AS u n FROM clicks", "n", "SELECT user AS u, n FROM clicks;"),
        ("SELECT 'x' AS x 3 AS y", "3", "SELECT 'x' AS x, 3 AS y;"),
    ],
)  # fmt: skip
def test_a_missing_comma_is_proposed_and_the_proposal_runs(
    console: Console, query: str, behind: str, corrected: str
) -> None:
    console.run("CREATE TEMPORARY VIEW clicks AS SELECT 'ann' AS user, 1 AS n;")
    with pytest.raises(StreamsqlError) as raised:
        console.run(f"{query};")
    fault = raised.value
    assert (fault.message, fault.proposal) == (f"a comma is missing before {behind}", corrected)
    assert fault.span and query[fault.span.start : fault.span.end] == behind
    assert console.rows(corrected)


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM a b c", "SELECT sum(n m) FROM a", "SELECT a AS FROM b", "SELECT a FROM b WHERE c d"],
)
def test_no_comma_is_missing_elsewhere(query: str) -> None:
    for offset in range(len(query)):
        assert missing_comma(query, offset) is None
