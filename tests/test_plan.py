"""Planning without Spark: pure, pinned by golden files, its programs the same in both folds."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from conftest import notes_of
from generated import examples
from hypothesis import given
from hypothesis import strategies as st

from streamsql import calls
from streamsql.calls import Assign, Attr, Call, Function, Lit, Node, Program, Var, lit, render, run
from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.connectors.base import MICRO_BATCH, Connector, Places, read_stream
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.registry import connectors
from streamsql.definitions import Sink, Stream
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.query import read_expression
from streamsql.language.statements.base import Column, Statement
from streamsql.plan.lowering.lower import lower
from streamsql.plan.lowering.sources import variable
from streamsql.plan.planner import Context, plan
from streamsql.plan.plans import (
    Collect,
    DefineFunction,
    DefineSink,
    DefineStream,
    Direct,
    Drop,
    Explain,
    Plan,
    Refresh,
    Run,
    Write,
)
from streamsql.plan.stand_ins import stand_in_sink
from streamsql.plan.streaming import join_bounds

HERE = Path(__file__).parent
GOLDEN = [*sorted(HERE.glob("golden/plans/*.txt")), *sorted(HERE.glob("features/*/plans.txt"))]
"""Those of the kernel, and one of each feature that plans programs."""
LOWERING = Path(__file__).parent / "lowering"

SETUP = """
CREATE STREAM clicks (id INT, user STRING, page STRING, ts TIMESTAMP, value INT)
  USING json OPTIONS (path 'in/clicks', maxFilesPerTrigger 1);
CREATE STREAM events (id INT, user STRING, ts TIMESTAMP) USING parquet OPTIONS (path 'in/events')
  WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE STREAM views (id INT, user STRING, t STRING) USING csv OPTIONS (path 'in/views', header true)
  WITH WATERMARK to_timestamp(t) AS ts DELAY '5 minutes';
CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond 5);
CREATE STREAM `my orders` (id INT, amount DECIMAL(10,2)) USING json OPTIONS (path 'in/my orders');
CREATE STREAM pushed (id INT, note STRING) USING values;
CREATE STREAM made (id BIGINT, at TIMESTAMP) USING datagen OPTIONS (rowsPerBatch 10, seed 7);
CREATE STREAM anns AS SELECT id, ts FROM clicks WHERE user = 'ann';
CREATE SINK files USING parquet PARTITIONED BY (user) OPTIONS (path 'out/files');
CREATE SINK typed (id BIGINT, who STRING) USING csv OPTIONS (path 'out/typed', header true);
CREATE SINK joined USING parquet OPTIONS (path 'out/joined');
CREATE SINK screen USING console;
CREATE SINK nothing USING noop;
CREATE LIVE TABLE counts AS SELECT user, count(*) AS n FROM clicks GROUP BY user;
INSERT INTO nothing AS QUERY ticking SELECT * FROM ticks;
CREATE FUNCTION shout AS 'words.shout' LANGUAGE PYTHON RETURNS STRING;
CREATE FUNCTION median_of AS 'words.median_of' LANGUAGE PYTHON RETURNS DOUBLE;
CREATE FUNCTION letters AS 'words.Letters' LANGUAGE PYTHON RETURNS TABLE (letter STRING);
CREATE FUNCTION sessionize AS 'visits.Sessions' LANGUAGE PYTHON RETURNS TABLE (user STRING, n INT, until TIMESTAMP);
CREATE STREAM rates USING rate OPTIONS (rowsPerSecond 5) WITH WATERMARK timestamp DELAY OF INTERVAL 1 MINUTE;
CREATE STREAM batches USING `rate-micro-batch` OPTIONS (rowsPerBatch 5, startTimestamp 7) WITH WATERMARK timestamp DELAY OF INTERVAL 1 MINUTE;
CREATE STREAM messages (id INT, at TIMESTAMP) USING kafka OPTIONS (servers 'h:1', topic 't') WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;
CREATE STREAM changed (id INT, user STRING, value INT) USING json FORMAT debezium_json KEY (id) OPTIONS (path 'in/changed');
INSERT INTO nothing AS QUERY windows SELECT window, count(*) AS n FROM events WHERE id > 1 GROUP BY window(ts, '1 hour');
INSERT INTO nothing AS QUERY firsts SELECT DISTINCT ON (id) WITHIN WATERMARK id FROM events;
INSERT INTO nothing AS QUERY joined SELECT e.id FROM events e JOIN views v ON e.id = v.id AND v.ts BETWEEN e.ts AND e.ts + INTERVAL 1 HOUR;
INSERT INTO nothing AS QUERY processed SELECT user, n FROM sessionize(TABLE(events) PARTITION BY user);
INSERT INTO files AS QUERY grouped_files SELECT window.start AS w, user, count(*) AS n FROM (SELECT * FROM events WHERE id > 1) e GROUP BY user, window(ts, '1 hour');
INSERT INTO joined AS QUERY joined_files SELECT e.id, upper(v.user) AS user FROM events e JOIN views v ON e.id = v.id AND v.ts BETWEEN e.ts AND e.ts + INTERVAL 1 HOUR;
INSERT INTO nothing AS QUERY rates_by_minute SELECT window, count(*) AS n FROM rates GROUP BY window(timestamp, '1 minute');
INSERT INTO nothing AS QUERY batches_by_minute SELECT window, count(*) AS n FROM batches GROUP BY window(timestamp, '1 minute');
INSERT INTO nothing AS QUERY messages_by_hour SELECT window, count(*) AS n FROM messages GROUP BY window(at, '1 hour');
"""
# What looking at the modules would say.
KINDS = {"shout": "scalar", "median_of": "aggregate", "letters": "table", "sessionize": "processor"}


def taken_over(made: Plan, catalog: Catalog) -> Catalog:
    """A catalog with what a plan defines, as the session makes it."""
    if isinstance(made, DefineStream):
        return catalog.having(made.stream)
    if isinstance(made, DefineSink):
        return catalog.having(made.sink)
    if isinstance(made, DefineFunction):
        return catalog.having(replace(made.function, kind=KINDS[made.function.name]))
    if isinstance(made, Run):
        return catalog.having(made.query, made.sink)
    return catalog


def statements(script: str) -> list[Statement]:
    return [parse(written) for written in split_script(Source("test.sql", script))]


def catalog() -> Catalog:
    made = Catalog()
    for statement in statements(SETUP):
        made = taken_over(plan(statement, Context(made)), made)
    return made


CATALOG = catalog()


# ---- golden files -------------------------------------------------------------------------------


def describe(made: Plan) -> str:
    """A plan as text: description, what it needs, and its program."""
    if isinstance(made, Explain):
        return f"explain {made.mode or 'simple'}:\n{describe(made.plan)}"
    if isinstance(made, DefineStream):
        lines = [made.stream.sql()]
        lines += ["infer: " + render((Assign("", made.infer),)).rstrip()] if made.infer else []
        lines += [f"path: {made.path}"] if made.path else []
        return "define stream\n" + "\n".join(lines)
    if isinstance(made, DefineSink):
        return "define sink\n" + made.sink.sql()
    if isinstance(made, DefineFunction):
        return "define function\n" + made.function.sql()
    if isinstance(made, Drop):
        return f"drop {made.kind} {made.name}"
    if isinstance(made, Direct):
        return f"direct: {type(made.statement).__name__}"
    owner, _, feature = type(made).__module__.removeprefix("streamsql.").partition(".")
    if owner == "features":
        program = render(made.program)  # type: ignore[attr-defined]
        return f"{feature.partition('.')[0]} {made.sink.name}\n{program.rstrip()}"  # type: ignore[attr-defined]
    assert isinstance(made, (Collect, Write, Run))
    head = {Collect: "collect", Write: "write", Run: "run", Refresh: "refresh"}[type(made)]
    notes = [f"reads {sink.name}" for sink in made.reads.live]
    if isinstance(made, Write):
        return "\n".join([head, made.message, *notes, render(made.program).rstrip()])
    if isinstance(made, Refresh):
        notes += [f"stage {stage.query.name}: {stage.query.text}" for stage in made.stages]
    notes += [f"as text: {made.as_text}"] if made.as_text else []
    notes += [f"note: {note}" for note in notes_of(made)]
    program = made.program
    if isinstance(made, Run):
        notes += [f"{choice.mode}: {choice.reason}".rstrip(": ") for choice in made.choices]
        notes += [f"checkpoint {made.checkpoint}"]
        mode = made.choices[0].mode
        program += made.keeping(mode) + made.writer(mode)
    return "\n".join([head, *notes, render(program).rstrip()])


def golden_cases(file: Path) -> list[tuple[str, str, str]]:
    """(title, statement, plan) for each entry of a golden file."""
    entries = file.read_text("utf-8").split("=== ")[1:]
    cases = []
    for entry in entries:
        title, _, rest = entry.partition("\n")
        statement, _, text = rest.partition("\n--- plan\n")
        cases.append((title, statement, text.rstrip("\n")))
    return cases


def planned(text: str, known: Catalog = CATALOG) -> Plan:
    (statement,) = statements(text)
    return plan(statement, Context(known))


@pytest.mark.parametrize("file", GOLDEN, ids=lambda f: f"{f.parent.name} {f.stem}")
def test_plans_are_as_in_the_golden_file(file: Path) -> None:
    """UPDATE_GOLDEN=1 writes the files anew."""
    cases = golden_cases(file)
    assert cases
    results = [(title, statement, describe(planned(statement))) for title, statement, _ in cases]
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(
            "".join(f"=== {t}\n{s}\n--- plan\n{p}\n\n" for t, s, p in results).rstrip("\n") + "\n"
        )
        return
    for (title, _, expected), (_, _, actual) in zip(cases, results, strict=True):
        assert actual == expected, title


def corpus() -> list[tuple[str, str]]:
    """(title, statement) of all golden files, of the setup, and of the queries that the lowering is held to."""
    found = [(f"{f.stem}: {t}", s) for f in GOLDEN for t, s, _ in golden_cases(f)]
    for file in sorted(LOWERING.glob("*.sql")):
        source = Source(file.name, file.read_text("utf-8"))
        for number, written in enumerate(split_script(source)):
            found.append((f"{file.stem} {number}", written.text))
    return found


CORPUS = corpus()


def test_the_corpus_is_there() -> None:
    assert sum(title.partition(":")[1] == ":" for title, _ in CORPUS) >= 40
    assert len(CORPUS) >= 400


# ---- purity -----------------------------------------------------------------------------------------


def test_planning_is_pure() -> None:
    """Twice the same plan, and the catalog is as before."""
    kinds = [field.name for field in fields(CATALOG)]
    before = Catalog(**{kind: copy.deepcopy(dict(getattr(CATALOG, kind))) for kind in kinds})
    for title, text in CORPUS:
        (statement,) = statements(text)
        outcomes = []
        for _ in range(2):
            try:
                outcomes.append(plan(statement, Context(CATALOG)))
            except StreamsqlError as error:
                outcomes.append((error.message, error.span, error.hint))  # type: ignore[arg-type]
        assert outcomes[0] == outcomes[1], title
        assert before == CATALOG, title


@pytest.mark.usefixtures("processes")
def test_planning_loads_no_spark_and_touches_no_files(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import streamsql.plan.planner
assert not {{"pyspark", "py4j"}} & set(sys.modules)
from test_plan import CORPUS, CATALOG, statements, plan, Context, StreamsqlError
from streamsql.feature_registry import features
planners = [feature.module(feature.planners) for feature in features() if feature.planners]
sys.addaudithook(lambda event, args: touched.append((event, args)) if event in watched else None)
watched, touched = {{"open", "os.listdir", "os.mkdir", "os.scandir", "subprocess.Popen", "socket.connect"}}, []
for title, text in CORPUS:
    (statement,) = statements(text)
    touched.clear()
    try:
        plan(statement, Context(CATALOG))
    except StreamsqlError:
        pass
    assert not touched, (title, touched)
assert not {{"pyspark", "py4j"}} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_another_place_of_the_console_changes_only_paths() -> None:
    (statement,) = statements("INSERT INTO pushed VALUES (1, 'a')")
    here, there = (plan(statement, Context(CATALOG, Places(p))) for p in ("one", "two"))
    assert isinstance(here, Write)
    assert isinstance(there, Write)
    assert here != there
    assert render(here.program).replace("one/", "two/") == render(there.program)


# ---- programs in both folds ---------------------------------------------------------------------------


class Recorder:
    """Stands for any object of a program; notes what is done to it, as text."""

    def __init__(self, text: str, log: list[str]) -> None:
        self._text, self._log = text, log

    def __getattr__(self, name: str) -> Recorder:
        return Recorder(f"{self._text}.{name}", self._log)

    def __call__(self, *args: Any, **kwargs: Any) -> Recorder:
        listed = ", ".join([*map(self._shown, args), *(f"{k}={self._shown(v)}" for k, v in kwargs.items())])
        made = Recorder(f"{self._text}({listed})", self._log)
        self._log.append(made._text)
        return made

    @staticmethod
    def _shown(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(map(Recorder._shown, value)) + "]"
        if isinstance(value, (FunctionType, partial)):
            code = value.__code__ if isinstance(value, FunctionType) else None
            names = code.co_varnames[: code.co_argcount] if code else value.args[0].parameters
            return f"def {Recorder._shown(value(*(Recorder(name, []) for name in names)))}"
        return value._text if isinstance(value, Recorder) else f"{type(value).__name__} {value!r}"


def names_of(node: Node) -> set[str]:
    """The variables that a node reads."""
    found, todo = set(), [node]
    while todo:
        part = todo.pop()
        if isinstance(part, Var):
            found.add(part.name)
        elif isinstance(part, Attr):
            todo.append(part.target)
        elif isinstance(part, Call):
            todo += [part.function, *part.args, *(v for _, v in part.kwargs)]
        elif isinstance(part, Lit) and isinstance(part.value, tuple):
            todo += part.value
        elif isinstance(part, Function):
            todo += [*(step.node for step in part.body), part.value]
    return found


def recorded(program: Program, source: str = "") -> tuple[list[str], dict[str, str]]:
    """The calls of a program, and what its variables hold at the end; source: run this text instead."""
    log: list[str] = []
    names = {name for step in program for name in names_of(step.node)}
    env: dict[str, Any] = {name: Recorder(name, log) for name in names}
    if source:
        exec(compile(source, "program.py", "exec"), env)
    else:
        run(program, env)
    return log, {k: Recorder._shown(v) for k, v in env.items() if k != "__builtins__"}


def assert_one_meaning(program: Program) -> None:
    """Evaluated, and rendered and then executed, a program makes the same calls."""
    evaluated = recorded(program)
    source = render(program)
    assert recorded(program, source) == evaluated, source


def program_of(made: Plan) -> Program:
    if isinstance(made, Explain):
        return program_of(made.plan)
    if isinstance(made, Run):
        mode = made.choices[0].mode
        return made.program + made.keeping(mode) + made.writer(mode)
    if isinstance(made, DefineStream) and made.infer:
        return (Assign("", made.infer),)
    return made.program if isinstance(made, (Collect, Write)) else ()


def test_the_programs_of_the_corpus_mean_one_thing(width: int) -> None:
    checked = 0
    for _, text in CORPUS:
        try:
            program = program_of(planned(text))
        except StreamsqlError:
            continue
        if program:
            assert_one_meaning(program)
            checked += 1
    assert checked >= 400


LITERALS = st.recursive(
    st.one_of(
        st.text(),
        st.text(alphabet="'\"\\\n\r\t ${}%_nrtxuN0é\u2028\x00\x85", max_size=12),
        st.integers(),
        st.booleans(),
        st.none(),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
IDENTIFIERS = st.sampled_from(["select", "agg", "where", "orderBy", "x", "é", "expr"])
BASES = st.sampled_from(["spark", "F", "clicks", "größe"]).map(Var)
NODES: st.SearchStrategy[Node] = st.recursive(
    BASES,
    lambda inner: st.one_of(
        st.builds(Attr, inner, IDENTIFIERS),
        st.builds(
            lambda node, name, args, kwargs: node.call(name, *args, **kwargs),
            inner,
            IDENTIFIERS,
            st.lists(st.one_of(inner, LITERALS), max_size=4),
            st.dictionaries(IDENTIFIERS.filter(str.isascii), LITERALS, max_size=2),
        ),
        st.builds(
            lambda node, args: Call(node, tuple(map(lit, args))),
            inner,
            st.lists(st.one_of(inner, LITERALS), max_size=3),
        ),
    ),
    max_leaves=8,
)
PROGRAMS = st.lists(st.builds(Assign, st.sampled_from(["", "a", "result"]), NODES), min_size=1, max_size=4)


@pytest.fixture(params=[0, calls.WIDTH])
def width(request: pytest.FixtureRequest) -> Iterator[int]:
    """Lines of any length; with 0 every chain of calls goes over several lines."""
    before, calls.WIDTH = calls.WIDTH, request.param
    yield request.param
    calls.WIDTH = before


def test_any_program_means_one_thing(width: int) -> None:
    @examples(50)
    @given(PROGRAMS.map(tuple))
    def check(program: Program) -> None:
        assert_one_meaning(program)

    check()


@examples(100)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_is_written_as_it_is(text: str) -> None:
    long = Var("spark").call("sql", text).call("select", text, "x" * 100).call("where", [text])
    assert_one_meaning((Assign("result", long),))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "'",
        '"',
        "\\",
        "\\'",
        '\\"',
        "\n",
        '"\n',
        '\n"',
        '"""\n',
        "'''\n",
        "\\\n",
        "\r\n",
        "a\rb\n",
        "\x00",
        "\u2028",
    ],
)
def test_awkward_texts_are_written_as_they_are(text: str) -> None:
    assert_one_meaning((Assign("result", Var("spark").call("sql", text, comment=text)),))


def test_a_long_chain_is_run_and_written() -> None:
    node: Node = Var("spark")
    for number in range(3000):
        node = node.call("union", number)
    program = (Assign("result", node),)
    log, _ = recorded(program)
    assert len(log) == 3000
    assert render(program).count("\n    .union(") == 3000


@examples(33)
@given(st.text(min_size=1), st.text(min_size=1))
def test_two_names_have_two_variables(a: str, b: str) -> None:
    if a.casefold() != b.casefold():
        assert variable(a) != variable(b)
    assert variable(a).isidentifier()
    assert variable(a) == variable(a.upper()) or a.casefold() != a.upper().casefold()


def test_names_that_programs_use_are_not_taken() -> None:
    names = [
        "spark",
        "F",
        "result",
        "query",
        "checkpoint",
        "print",
        "class",
        "LiveRows",
        "pa",
        "x_rows",
        "len",
    ]
    assert not {variable(n) for n in names} & {*names, "f", "liverows"} - {"f", "liverows"}
    assert len({variable(n) for n in [*names, "a b", "a_b", "a.b", "a_b_", "class_"]}) == len(names) + 5


# ---- what the lowering keeps to itself ----------------------------------------------------------------


def test_a_query_left_to_spark_forgets_the_attempt() -> None:
    """The views that a failed lowering made are made anew, once, for the text."""
    sources = Context(CATALOG).sources()
    text = "SELECT id FROM clicks WHERE user IN (SELECT user FROM counts) LIMIT ALL"
    lowered = lower(text, sources)
    assert lowered.as_text
    assert [a.name for a in sources.program] == ["clicks", "", ""]
    program = render(tuple(sources.program))
    assert program.count("createOrReplaceTempView") == 2
    assert list(sources.live) == ["counts"]


def test_a_column_named_like_a_stream_makes_no_stream() -> None:
    for text in (
        "SELECT clicks FROM orders QUALIFY row_number() OVER (ORDER BY clicks) = 1",
        "SELECT o.clicks, max(clicks) AS events FROM orders o GROUP BY GROUPING SETS ((clicks))",
    ):
        lowered = lower(text, Context(CATALOG).sources())
        assert lowered.as_text
        assert not lowered.shape.streaming
    for text in (
        "SELECT * FROM orders, clicks QUALIFY 1 = 1",
        "FROM clicks |> WHERE id > 1",
        "SELECT * FROM (SELECT * FROM STREAM(clicks)) GROUP BY ALL",
    ):
        assert lower(text, Context(CATALOG).sources()).shape.streaming, text


def test_spans_of_a_plan_lie_in_the_statement() -> None:
    text = "CREATE LIVE TABLE x AS SELECT user, count(*) AS n FROM clicks GROUP BY user ORDER BY n LIMIT 3"
    made = planned(text)
    assert isinstance(made, Run)
    shown = {op.kind: text[op.span.start : op.span.end] for op in made.shape.ops}
    assert shown == {"aggregate": "GROUP BY user", "order": "ORDER BY n", "limit": "LIMIT 3"}
    assert planned(text) == replace(made, mode_span=None)


@examples(33)
@given(st.text(min_size=1), st.text(min_size=1))
def test_two_live_tables_have_two_variables(a: str, b: str) -> None:
    if a.casefold() != b.casefold():
        assert rows_variable(a) != rows_variable(b)
    assert rows_variable(a).isidentifier()


def test_names_of_live_tables_that_look_alike() -> None:
    names = ["gr n", "gr-n", "grün", "gr_n", "1a", "_1a"]
    assert len({rows_variable(n) for n in names}) == len(names)
    assert all(rows_variable(n).isidentifier() for n in names)


def test_a_live_tables_statement_holds_all_that_was_written() -> None:
    text = (
        "CREATE LIVE TABLE x\n  KEY (user)\n  RETAIN 5 ROWS\n  COMMENT 'who'\nAS SELECT user, id FROM clicks"
    )
    made = planned(text)
    assert isinstance(made, Run)
    again = planned(made.query.sql(made.sink))
    assert isinstance(again, Run)
    assert again.sink.comment == "who"
    assert (again.query, again.sink) == (made.query, made.sink)


def test_a_long_union_is_planned_in_time_that_grows_with_its_length() -> None:
    """Its groups are looked at once for the whole, not once for each term."""
    term = "SELECT user, count(*) AS n FROM clicks GROUP BY user"
    made = planned("INSERT INTO nothing AS QUERY q " + " UNION ALL ".join([term] * 300))
    assert isinstance(made, Run)
    assert [op.under for op in made.shape.ops if op.kind == "union"] == [2 * n for n in range(1, 300)]
    assert made.shape.keys is None


def test_what_a_lasting_query_is_warned_of() -> None:
    """A SELECT that ends is not warned of state that grows."""
    query = "SELECT DISTINCT ON (id) * FROM clicks"
    warning = "DISTINCT ON (id) keeps every key in state: the state is unbounded. "
    assert notes_of(planned(f"INSERT INTO nothing AS QUERY q {query}")) == (
        warning + "A watermark and WITHIN WATERMARK would bound the state",
    )
    assert notes_of(planned(query)) == ()
    for forever, words in (
        (
            "SELECT DISTINCT id FROM events",
            "SELECT DISTINCT groups by all columns and keeps every row in state",
        ),
        ("SELECT id FROM events UNION SELECT id FROM clicks", "UNION without ALL groups by all columns"),
    ):
        (note,) = notes_of(planned(f"CREATE LIVE TABLE t AS {forever}"))
        assert note.startswith(words)
        assert "SELECT DISTINCT ON (…) WITHIN WATERMARK" in note
    for bounded in ("DISTINCT ON (id, ts) *", "DISTINCT ON (id) WITHIN WATERMARK *", "DISTINCT id, ts"):
        assert notes_of(planned(f"INSERT INTO nothing AS QUERY q SELECT {bounded} FROM events")) == ()


@pytest.mark.parametrize(
    ("condition", "timed"),
    [
        ("a.id = b.id", False),
        ("a.id = b.id AND a.ts >= b.ts", True),
        ("a.id = b.id AND b.ts - INTERVAL 1 HOUR < a.ts", True),
        ("a.id = b.id AND (a.ts > b.ts - INTERVAL '1' HOUR)", True),
        ("a.id = b.id AND a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 HOUR", True),
        ("a.id = b.id AND b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts", True),
        ("a.id = b.id AND b.ts >= a.ts", False),
        ("a.id = b.id AND a.id >= b.id", False),
        ("a.id = b.id AND a.ts = b.ts", True),
        ("a.id = b.id AND a.ts >= date_trunc('hour', b.ts)", None),
        ("a.id = b.id AND unknown.x >= b.ts", None),
    ],
)
def test_when_a_row_has_seen_its_last_match(condition: str, timed: bool | None) -> None:
    """The left row of an outer join; None: Spark decides."""
    names = frozenset({"id", "ts"})
    sides = [join_bounds.Side(frozenset({n}), names, frozenset({"ts"})) for n in "ab"]
    found = join_bounds.of_condition(read_expression(condition), *sides)
    assert found.timed("left") is timed
    assert found.equi is True


def test_a_check_knows_which_views_stream() -> None:
    """UNION of a stream and a view of a stream is one of two streams, without Spark too."""
    checker = Checker(Context(catalog()))
    for text in (
        "CREATE TEMPORARY VIEW of_clicks AS SELECT id, user FROM clicks",
        "CREATE TEMPORARY VIEW of_view AS SELECT * FROM of_clicks",
        "INSERT INTO nothing AS QUERY u SELECT id, user FROM events UNION ALL SELECT * FROM of_view",
        "INSERT INTO nothing AS QUERY j SELECT e.id FROM of_clicks c RIGHT JOIN events e ON c.id = e.id",
    ):
        (statement,) = statements(text)
        checker.check(statement)
    (statement,) = statements("CREATE TEMPORARY VIEW fixed AS SELECT 1 AS id, 'x' AS user")
    checker.check(statement)
    (statement,) = statements(
        "INSERT INTO nothing AS QUERY x OUTPUT MODE APPEND SELECT id FROM events UNION ALL SELECT id FROM fixed"
    )
    with pytest.raises(StreamsqlError, match="UNION of a stream and a static table"):
        checker.check(statement)


def test_values_of_options_are_taken_as_spark_takes_them() -> None:
    """In small letters too, where Spark does not tell; and the class of a codec."""
    for made in (
        "CREATE STREAM s (a INT) USING json OPTIONS (path 'x', mode 'failfast', cleanSource 'OFF')",
        "CREATE SINK t USING text OPTIONS (path 'x', compression 'org.apache.hadoop.io.compress.GzipCodec')",
        "CREATE STREAM s (a INT) USING parquet OPTIONS (path 'x', datetimeRebaseMode 'LEGACY')",
    ):
        assert isinstance(planned(made), (DefineStream, DefineSink))


# ---- real-time mode --------------------------------------------------------------------------------


class RealTime(Connector):
    """A connector as a package could bring it: its sets of triggers are all that says what it can do."""

    name = "quick"
    reads = writes = ()
    triggers = sink_triggers = MICRO_BATCH | {"real_time"}
    fixed_columns = (Column("id", "INT"), Column("user", "STRING"), Column("at", "TIMESTAMP"))

    def source(self, stream: Stream, places: Places) -> Node:
        return read_stream(self.name).call("load")

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return writer.call("format", self.name)


REAL_TIME = """
CREATE STREAM fast USING quick WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
CREATE STREAM other USING quick WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
CREATE SINK out USING quick;
CREATE SINK nothing USING noop;
CREATE STREAM ticks USING rate;
CREATE FUNCTION shout AS 'words.shout' LANGUAGE PYTHON RETURNS STRING;
"""


def real_time(insert: str, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setitem(connectors(), "quick", RealTime())
    checker = Checker(Context(Catalog()))
    for statement in statements(REAL_TIME):
        checker.check(statement)
    (statement,) = statements(insert)
    return plan(statement, checker.context)


NOW = "TRIGGER REAL TIME EVERY INTERVAL 5 SECONDS"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, upper(user) AS user FROM fast WHERE id > 1",
        "SELECT explode(split(user, ' ')) AS word FROM fast",
        "SELECT user, count(*) AS n FROM fast GROUP BY user",
        "SELECT window.start AS since, count(*) AS n FROM fast GROUP BY window(at, '1 minute')",
        "SELECT DISTINCT ON (id) * FROM fast",
        "SELECT f.id, t.name FROM fast f LEFT JOIN a_table t ON f.id = t.id",
        "SELECT id FROM fast UNION ALL SELECT id FROM other",
        "SELECT id, count(*) AS n FROM (SELECT id FROM fast UNION ALL SELECT id FROM other) GROUP BY id",
    ],
)
def test_what_real_time_mode_has(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = real_time(f"INSERT INTO out AS QUERY q {NOW} {query}", monkeypatch)
    assert isinstance(made, Run)
    assert [c.mode for c in made.choices] == ["update"]
    program = render((*made.program, *made.writer("update")))
    assert '.trigger(realTime="5 seconds")' in program
    assert "RocksDBStateStoreProvider" in program


@pytest.mark.parametrize(
    ("insert", "at", "why"),
    [
        (f"INSERT INTO nothing AS QUERY q {NOW} SELECT id FROM fast", NOW, "a noop sink does not support"),
        (f"INSERT INTO out AS QUERY q {NOW} SELECT value FROM ticks", NOW, "rate, which ticks reads from,"),
        (f"INSERT INTO out AS QUERY q {NOW} SELECT value FROM ticks", NOW, "supported sources: kafka, spark, quick; supported sinks: kafka, spark, quick"),
        (f"INSERT INTO out AS QUERY q OUTPUT MODE APPEND {NOW} SELECT id FROM fast", "OUTPUT MODE APPEND", "only output mode update"),
        (f"INSERT INTO out AS QUERY q {NOW} SELECT f.id FROM fast f JOIN other o ON f.id = o.id",
         "JOIN other o ON f.id = o.id", "real-time mode joins a stream only with static tables"),
        (f"INSERT INTO out AS QUERY q {NOW} SELECT f.id FROM fast f JOIN a_table t ON f.id < t.id",
         "JOIN a_table t ON f.id < t.id", "by equality (broadcast joins)"),
        (f"INSERT INTO out AS QUERY q {NOW} SELECT DISTINCT ON (id) WITHIN WATERMARK * FROM fast",
         "DISTINCT ON (id) WITHIN WATERMARK", "TRIGGER REAL TIME does not support WITHIN WATERMARK"),
        (f"INSERT INTO out AS QUERY q {NOW} SELECT id, n FROM (SELECT id, count(*) AS n FROM fast GROUP BY id) "
         "UNION ALL SELECT id, 1 FROM other", "UNION ALL SELECT id, 1 FROM other", "a UNION must come before stateful operations"),
        (f"INSERT INTO out AS QUERY q {NOW} SELECT shout(user) AS s FROM fast", NOW, "shout, which is written in Python"),
    ],
)  # fmt: skip
def test_what_real_time_mode_has_not(insert: str, at: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StreamsqlError) as caught:
        real_time(insert, monkeypatch)
    error = caught.value
    assert why in f"{error.message}\n{error.detail}"
    assert error.hint
    assert error.span
    assert insert[error.span.start : error.span.end] == at


@pytest.mark.parametrize("function", ["window", "session_window"])
def test_the_start_of_a_window_call_is_the_key_that_its_group_has(function: str) -> None:
    written = [
        f"CREATE LIVE TABLE t AS SELECT {start} AS since, user, count(*) AS n FROM times "
        f"GROUP BY {function}(at, '5 minutes'), user"
        for start in (f"{function}.start", f"{function}(at,  '5 minutes').start", f"{function}( AT, '5 minutes' ).START")
    ]  # fmt: skip
    for text in written:
        checker = Checker(Context(Catalog()))
        for statement in statements("CREATE STREAM times (user STRING, at TIMESTAMP) USING values;"):
            checker.check(statement)
        (statement,) = statements(text)
        made = plan(statement, checker.context)
        assert isinstance(made, Run)
        assert made.targets[0].keys("update") == ("since", "user"), text


@pytest.mark.parametrize(
    "sink",
    [
        Sink("f", "foreach", options=(("function", "m.f"),)),
        Sink("f", "json", options=(("path", "out"),)),
        Sink("f", "json", "debezium_json", options=(("path", "out"),)),
        Sink("f", "jdbc", key=("user",), options=(("url", "jdbc:sqlite:db"), ("table", "t"))),
    ],
    ids=["foreach", "files", "envelopes", "database"],
)
def test_a_sink_of_a_test_takes_what_the_one_in_its_place_takes(sink: Sink) -> None:
    """Whether an INSERT runs as Spark's own query, in stages, or not at all is the same in a test."""

    def verdict(query: str, known: Sink) -> str:
        try:
            return type(planned(f"INSERT INTO f {query};", CATALOG.having(known))).__name__
        except StreamsqlError as fault:
            return fault.message

    for query in (
        "SELECT user FROM clicks",
        "SELECT user, count(*) AS c FROM clicks GROUP BY user",
        "SELECT user, c FROM (SELECT user, count(*) AS c FROM clicks GROUP BY user) ORDER BY c LIMIT 1",
    ):
        assert verdict(query, stand_in_sink(sink)) == verdict(query, sink)


@pytest.mark.parametrize("name", ("", " AS n"))
def test_the_names_that_a_sink_declares_stand_for_the_groups_of_a_query(name: str) -> None:
    """A column of an aggregate that only Spark can name does not hide the others."""
    sink = Sink("by_user", "console", columns=(Column("who", "STRING"), Column("c", "BIGINT")))
    query = f"INSERT INTO by_user SELECT user, count(*){name} FROM clicks GROUP BY user;"
    made = planned(query, CATALOG.having(sink))
    assert isinstance(made, Run)
    assert made.choices[0].mode == "update"
