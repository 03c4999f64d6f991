"""Sinks in Python: foreach and foreach_batch, found by name, exactly once by batch id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from test_explain import program, run_program

from streamsql.errors import InputFault, QueryFault, RuleFault, StreamsqlError, SyntaxFault
from streamsql.output.error_text import format_error

STREAM = "CREATE STREAM s (word STRING, n INT) USING values;\n"


@pytest.fixture
def here(console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the script; the current folder is another one."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    console.session.variables["here"] = str(folder)
    return folder


def written(folder: Path) -> list[Any]:
    return [json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))]


BATCHES = """
import json, pathlib

def keep(batch, batch_id):
    # One file for each batch id: what comes again is written over.
    rows = [r.asDict() for r in batch.collect()]
    pathlib.Path("{out}", f"{{batch_id}}.json").write_text(json.dumps(rows))
    if pathlib.Path("{out}", "fail").exists():
        raise RuntimeError("the network is down")
"""


def test_foreach_batch_is_exactly_once_over_a_failure_and_a_restart(console: Console, here: Path) -> None:
    out = here / "out"
    out.mkdir()
    (here / "sinks.py").write_text(BATCHES.format(out=out))
    console.run(
        STREAM + "CREATE SINK b USING foreach_batch OPTIONS (function 'sinks.keep');"
        "INSERT INTO b AS QUERY q SELECT word, n FROM s;"
        "INSERT INTO s VALUES ('a', 1), ('b', 2); AWAIT QUERY q IDLE;"
    )
    assert written(out) == [[{"word": "a", "n": 1}, {"word": "b", "n": 2}]]
    (out / "fail").touch()
    console.run("INSERT INTO s VALUES ('c', 3);")
    with pytest.raises(QueryFault, match="query q failed: RuntimeError: the network is down"):
        console.run("AWAIT QUERY q;")
    assert len(written(out)) == 2  # written, and then failed before Spark knew
    (out / "fail").unlink()
    console.run("START QUERY q; INSERT INTO s VALUES ('d', 4); AWAIT QUERY q IDLE;")
    assert [r["word"] for rows in written(out) for r in rows] == ["a", "b", "c", "d"]


ROWS = """
import pathlib
import beside

OUT = pathlib.Path("{out}")

def touch(row):
    (OUT / beside.name_of(row)).touch()

class Writer:
    def open(self, partition_id, epoch_id):
        self.file = open(OUT / f"part-{{epoch_id}}-{{partition_id}}", "w")
        return True

    def process(self, row):
        self.file.write(f"{{row.word}}\\n")

    def close(self, error):
        self.file.write(f"closed {{error}}\\n")
        self.file.close()
"""


def test_foreach_takes_a_function_or_a_class_and_what_stands_beside_it(console: Console, here: Path) -> None:
    out = here / "out"
    out.mkdir()
    (here / "rows.py").write_text(ROWS.format(out=out))
    (here / "beside.py").write_text("def name_of(row):\n    return f'{row.word}.{row.n}'\n")
    console.run(
        STREAM + "INSERT INTO s VALUES ('a', 1), ('b', 2);"
        "CREATE SINK f USING foreach OPTIONS (function 'rows.touch');"
        "CREATE SINK c USING foreach OPTIONS (function 'rows.Writer');"
        "INSERT INTO f SELECT * FROM s; INSERT INTO c SELECT * FROM s; AWAIT QUERY ALL IDLE;"
    )
    assert {"a.1", "b.2"} <= {p.name for p in out.iterdir()}
    assert [p.read_text() for p in sorted(out.glob("part-0-*"))] == ["a\nb\nclosed None\n"]


def test_a_changed_module_is_read_anew(console: Console, here: Path) -> None:
    def write(word: str) -> None:
        (here / "changing.py").write_text(
            f"def f(batch, batch_id):\n    open('{here}/said', 'a').write('{word} ')\n"
        )

    write("first")
    console.run(
        STREAM + "CREATE SINK b USING foreach_batch OPTIONS (function 'changing.f');"
        "INSERT INTO b SELECT * FROM s; INSERT INTO s VALUES ('a', 1); AWAIT QUERY b IDLE; STOP QUERY b;"
    )
    write("another")
    console.run("START QUERY b; INSERT INTO s VALUES ('b', 1); AWAIT QUERY b IDLE;")
    assert (here / "said").read_text() == "first another "


def test_the_scripts_folder_comes_before_the_current_folder(console: Console, here: Path) -> None:
    for folder in (here, Path.cwd()):
        (folder / "same.py").write_text(
            f"def f(batch, batch_id):\n    open('{here}/said', 'a').write('{folder.name}')\n"
        )
    console.run(
        STREAM + "CREATE SINK b USING foreach_batch OPTIONS (function 'same.f');"
        "INSERT INTO b SELECT * FROM s; INSERT INTO s VALUES ('a', 1); AWAIT QUERY b IDLE;"
    )
    assert (here / "said").read_text() == "scripts"
    shown = console.run("SHOW CREATE SINK b;")[0]
    assert f"folder '{here}'" in shown.text  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("using", "fault", "says"),
    [
        (
            "foreach_batch OPTIONS (function 'sinkz.keep')",
            InputFault,
            "there is no Python module sinkz\n1 | CREATE SINK b USING foreach_batch OPTIONS (function 'sinkz.keep');\n  | "
            "                                                    ^^^^^^^^^^^^\ndetail: searched in {here}, the "
            "current folder and sys.path\nhint: did you mean sinks?",
        ),
        ("foreach OPTIONS (function 'sinks.kep')", InputFault, "the module sinks has no kep"),
        ("foreach OPTIONS (function 'sinks.kep')", InputFault, "hint: did you mean keep?"),
        ("foreach OPTIONS (function 'sinks.NUMBER')", InputFault, "it is a value (int), not a function or class"),
        ("foreach OPTIONS (function 'sinks.Empty')", InputFault, "it has no method process(row)"),
        (
            "foreach_batch OPTIONS (function 'sinks.one')",
            InputFault,
            "it cannot be called with (batch, batch_id): too many positional arguments\n"
            "hint: def function(batch, batch_id): …",
        ),
        ("foreach OPTIONS (function 'broken.f')", InputFault, "the module broken fails while it is imported: "),
        ("foreach OPTIONS (function 'broken.f')", InputFault, "ZeroDivisionError: division by zero"),
        ("foreach OPTIONS (function 'broken.f')", InputFault, "{here}/broken.py, line 2: y = 1 / 0"),
        ("foreach OPTIONS (function 'needs.f')", InputFault, "the module needs needs the package nowhere, which is not installed"),
        ("foreach OPTIONS (function 'needs.f')", InputFault, "hint: pip install nowhere"),
        ("foreach OPTIONS (function 'sinks')", SyntaxFault, "option function takes a module.name, not 'sinks'"),
        ("foreach", RuleFault, "foreach needs the option function"),
        ("foreach OPTIONS (functoin 'sinks.one')", StreamsqlError, "hint: did you mean function?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_starts(
    console: Console, here: Path, using: str, fault: type[StreamsqlError], says: str
) -> None:
    (here / "sinks.py").write_text(
        "NUMBER = 5\nclass Empty: pass\ndef keep(b, i): pass\ndef one(row): pass\n"
    )
    (here / "broken.py").write_text("x = 1\ny = 1 / 0\n")
    (here / "needs.py").write_text("import nowhere\n")
    with pytest.raises(fault) as caught:
        console.run(f"CREATE SINK b USING {using};")
    assert says.format(here=here) in format_error(caught.value)
    assert console.rows("SHOW SINKS;") == []


def test_the_program_runs_by_itself(console: Console, here: Path) -> None:
    out = here / "out"
    out.mkdir()
    (here / "sinks.py").write_text(BATCHES.format(out=out))
    console.run(
        STREAM + "INSERT INTO s VALUES ('a', 1);"
        "CREATE SINK b USING foreach_batch OPTIONS (function 'sinks.keep');"
    )
    text = program(console, "INSERT INTO b TRIGGER AVAILABLE NOW SELECT word FROM s")
    assert f'.foreachBatch(load("sinks.keep", "{here}"))' in text
    assert "streamsql" not in "\n".join(line for line in text.splitlines() if "import" in line)
    run_program(text)
    assert written(out) == [[{"word": "a"}]]


def test_the_result_can_be_updated_groups(console: Console, here: Path) -> None:
    out = here / "out"
    out.mkdir()
    (here / "sinks.py").write_text(BATCHES.format(out=out))
    started = console.run(
        STREAM + "CREATE SINK b USING foreach_batch OPTIONS (function 'sinks.keep');"
        "INSERT INTO b SELECT word, count(*) AS c FROM s GROUP BY word;"
    )[-1]
    assert notes_of(started) == ("output mode update: updated groups are emitted",)
    console.run("INSERT INTO s VALUES ('a', 1); AWAIT QUERY b IDLE; INSERT INTO s VALUES ('a', 1), ('b', 1);")
    console.run("AWAIT QUERY b IDLE;")
    assert [{r["word"]: r["c"] for r in rows} for rows in written(out)] == [{"a": 1}, {"a": 2, "b": 1}]


def test_what_the_code_raises_is_said_with_its_place(console: Console, here: Path) -> None:
    (here / "bad.py").write_text(
        "def rows(row):\n    return {}['x']\n\ndef batches(batch, batch_id):\n    return 1 / 0\n"
    )
    console.run(
        STREAM + "INSERT INTO s VALUES ('a', 1);"
        "CREATE SINK r USING foreach OPTIONS (function 'bad.rows');"
        "CREATE SINK b USING foreach_batch OPTIONS (function 'bad.batches');"
        "INSERT INTO r SELECT * FROM s; INSERT INTO b SELECT * FROM s;"
    )
    for name, raised, line in (("r", "KeyError: 'x'", 2), ("b", "ZeroDivisionError: division by zero", 5)):
        with pytest.raises(QueryFault) as caught:
            console.run(f"AWAIT QUERY {name};")
        assert caught.value.message == f"query {name} failed: {raised}"
        assert caught.value.detail == f"{here}/bad.py, line {line}"


def test_changed_code_over_an_old_checkpoint_is_said(console: Console, here: Path) -> None:
    def write(word: str) -> None:
        (here / "beside.py").write_text(f"WORD = '{word}'\n")

    write("first")
    (here / "kept.py").write_text(
        "import beside\n\ndef f(batch, batch_id):\n    pass\n\ndef g(x):\n    return beside.WORD\n"
    )
    console.run(
        STREAM + "CREATE SINK b USING foreach_batch OPTIONS (function 'kept.f');"
        "CREATE SINK n USING noop;"
        "CREATE FUNCTION g AS 'kept.g' LANGUAGE PYTHON RETURNS STRING;"
        f"INSERT INTO b CHECKPOINT '{here}/one' SELECT * FROM s;"
        f"INSERT INTO n CHECKPOINT '{here}/two' SELECT g(n) AS w FROM s; STOP QUERY ALL;"
    )
    assert notes_of(console.run("START QUERY ALL; STOP QUERY ALL;")[0]) == ()
    write("another")
    (here / "kept.py").rename(here / "away.py")
    with pytest.raises(InputFault, match="Python code cannot be loaded: No module named 'kept'"):
        console.run("START QUERY b;")
    (here / "away.py").rename(here / "kept.py")
    (note,) = notes_of(console.run("START QUERY b;")[0])
    assert note.startswith("the Python code of kept has changed since this checkpoint was written")
    assert notes_of(console.run("STOP QUERY b; START QUERY b;")[1]) == ()
    # A function is as it was when it was created.
    assert notes_of(console.run("START QUERY n; STOP QUERY n;")[0]) == ()
    console.run("DROP QUERY n; CREATE OR REPLACE FUNCTION g AS 'kept.g' LANGUAGE PYTHON RETURNS STRING;")
    started = console.run(f"INSERT INTO n CHECKPOINT '{here}/two' SELECT g(n) AS w FROM s;")[0]
    assert "the Python code of kept has changed" in notes_of(started)[-1]
