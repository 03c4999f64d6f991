"""Python Data Sources as streams and as sinks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Console, notes_of
from test_explain import program, run_program

from streamsql.errors import StreamsqlError
from streamsql.output.error_text import format_error

ROOMS = ("streamsql/connectors/", "streamsql/runtime/embedded/")

SOURCE = '''
import json, pathlib
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, SimpleDataSourceStreamReader, WriterCommitMessage


class Reader(SimpleDataSourceStreamReader):
    """Two rows in each of three micro-batches."""

    def __init__(self, options):
        self.city = options["city"]

    def initialOffset(self):
        return {"n": 0}

    def read(self, start):
        rows = [(start["n"] + i, f"{self.city} {start['n'] + i}") for i in range(2)] if start["n"] < 6 else []
        return iter(rows), {"n": start["n"] + len(rows)}

    def readBetweenOffsets(self, start, end):
        return iter([(i, f"{self.city} {i}") for i in range(start["n"], end["n"])])


class Cities(DataSource):
    @classmethod
    def name(cls):
        return "cities"

    def schema(self):
        return "n INT, city STRING"

    def simpleStreamReader(self, schema):
        return Reader(self.options)


class Writer(DataSourceStreamWriter):
    def __init__(self, options):
        self.folder = options["folder_out"]

    def write(self, rows):
        message = WriterCommitMessage()
        message.rows = [r.asDict() for r in rows]
        return message

    def commit(self, messages, batch_id):
        rows = [r for m in messages if m for r in m.rows]
        pathlib.Path(self.folder, f"{batch_id}.json").write_text(json.dumps(rows))

    def abort(self, messages, batch_id):
        pass


class Folder(DataSource):
    @classmethod
    def name(cls):
        return "folder_of_batches"

    def streamWriter(self, schema, overwrite):
        return Writer(self.options)


class NoSchema(DataSource):
    def simpleStreamReader(self, schema):
        return Reader(self.options)


NOT_ONE = 5
'''
STREAM = "CREATE STREAM c USING python OPTIONS (class 'cities.Cities', city 'Oslo');\n"


@pytest.fixture
def here(console: Console, tmp_path: Path) -> Path:
    (tmp_path / "cities.py").write_text(SOURCE)
    console.session.variables["here"] = str(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_stream_has_the_columns_of_its_class(console: Console, here: Path) -> None:
    created = console.run(STREAM)[0]
    assert notes_of(created) == ("columns of c, as inferred and recorded: n int, city string",)
    console.run("CREATE LIVE TABLE t AS SELECT city FROM c WHERE n > 3; AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t ORDER BY city;") == [("Oslo 4",), ("Oslo 5",)]
    assert ("column n", "INT") in console.rows("DESCRIBE STREAM c;")
    assert ("option city", "Oslo") in console.rows("DESCRIBE STREAM c;")


def test_a_sink_writes_what_the_class_writes(console: Console, here: Path) -> None:
    (here / "out").mkdir()
    console.run(
        STREAM + f"CREATE SINK f USING python OPTIONS (class 'cities.Folder', folder_out '{here}/out');"
        "INSERT INTO f SELECT n FROM c; AWAIT QUERY f IDLE;"
    )
    written = "".join(p.read_text() for p in sorted((here / "out").iterdir()))
    assert [f'"n": {i}' in written for i in range(7)] == [True] * 6 + [False]


@pytest.mark.slow
def test_the_program_runs_by_itself(console: Console, here: Path) -> None:
    console.run(STREAM + f"CREATE SINK j USING json OPTIONS (path '{here}/j');")
    text = program(console, "INSERT INTO j TRIGGER AVAILABLE NOW SELECT n FROM c")
    assert f'.format(data_source(spark, "cities.Cities", "{here}"))' in text
    assert "streamsql" not in "\n".join(line for line in text.splitlines() if "import" in line)
    run_program(text)
    assert sorted(console.rows(f"SELECT n FROM json.`{here}/j`;"))[0] == (0,)


@pytest.mark.slow
def test_a_sink_is_found_on_any_thread(console: Console, here: Path) -> None:
    """The prompt carries statements out on a thread of its own, which Spark has not seen."""
    (here / "out").mkdir()
    console.run(
        STREAM + f"CREATE SINK f USING python OPTIONS (class 'cities.Folder', folder_out '{here}/out');"
    )
    with ThreadPoolExecutor(1) as threads:
        threads.submit(console.run, "INSERT INTO f SELECT n FROM c; AWAIT QUERY f IDLE;").result()
    assert any((here / "out").iterdir())


def test_what_a_class_cannot_do_is_said(console: Console, here: Path) -> None:
    for statement, says in (
        ("CREATE STREAM x USING python OPTIONS (class 'cities.Folder');", "it reads no stream"),
        ("CREATE SINK x USING python OPTIONS (class 'cities.Cities');", "it writes nothing"),
        ("CREATE STREAM x USING python OPTIONS (class 'cities.NoSchema');", "schema is not implemented"),
    ):
        with pytest.raises(StreamsqlError) as caught:
            console.run(statement)
        shown = format_error(caught.value)
        assert says in shown
        assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("class 'cities.Citeis'", "the module cities has no Citeis"),
        ("class 'cities.NOT_ONE'", "it is not a subclass of pyspark.sql.datasource.DataSource"),
        ("city 'Oslo'", "python needs the option class"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(console: Console, here: Path, options: str, says: str) -> None:
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"CREATE STREAM c USING python OPTIONS ({options});")
    assert says in format_error(caught.value)
    assert "^" in format_error(caught.value)
