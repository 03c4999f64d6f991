"""The differential test of the console's rules over Spark's plans: seeded random streaming queries over JSON.

A case runs in three legs over one checkpoint. In the first, files land while the query runs; then it is
restarted; then plain Spark, whose JVM has no class of the console, resumes the checkpoint. The rules are on in
one of the first two legs, and off in the other. What the query has written is compared with the answer of plain
Spark's batch query over the same files.

    python tests/rules_difference.py [first seed [number of seeds]]

runs many cases, 300 from seed 0 unless said otherwise. `--plain` is for the process with plain Spark: it reads
one case in a line of JSON, and answers with a line.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

SWITCH = "spark.streamsql.rules"
COLUMNS = (
    "k STRING, v INT, big BIGINT, d DECIMAL(9, 2), x DOUBLE, ok BOOLEAN, day DATE, at TIMESTAMP, txt STRING,"
    " a ARRAY<INT>, m MAP<STRING, STRING>, st STRUCT<p: INT, q: STRING>"
)
FIRST = datetime(2024, 1, 1, 12)
KEYS = [f"k{number:02}" for number in range(30)]
LEGS = (4, 2, 2)
"""The files of each leg; the last file of the last one closes all windows before it."""
CLOSED = f"TIMESTAMP '{FIRST + timedelta(hours=12)}'"
"""The time before which all windows are closed at the end."""
EVERY = 0.03
"""The seconds between two files that land while a query runs."""


@dataclass(frozen=True)
class Case:
    """folder: of its files, checkpoint and rows; text: its query over the views s and dim; mode: the output
    mode; closing: a condition for the rows that the end of the input lets out; messages: whether from_json
    reads the lines; conf: settings of Spark; rules: whether the rules are on in the first leg and the second.
    """

    seed: int
    folder: str
    text: str
    mode: str
    closing: str
    messages: bool
    conf: dict[str, str]
    rules: tuple[str, str]

    @property
    def name(self) -> str:
        return f"difference_{self.seed}"


# ---- what a case reads ------------------------------------------------------------------------------


def line(rng: random.Random, number: int) -> str:
    """A line of file `number`: most are plain JSON, and none has an event time that would be late."""
    at = FIRST + timedelta(seconds=number * 20 + rng.randrange(30), milliseconds=rng.choice([0, 0, 120]))
    row: dict[str, Any] = {
        "k": rng.choice(KEYS),
        "v": rng.choice([rng.randrange(-5, 9), "seven", 2**40, None])
        if rng.random() < 0.2
        else rng.randrange(9),
        "big": rng.choice([rng.randrange(-(2**62), 2**62), 2**70, 1.5]),
        "d": rng.choice([rng.randrange(99999) / 100, "12.345", 123456789.1]),
        "x": rng.choice([rng.random(), 1e300, "NaN", -0.0, 7]),
        "ok": rng.choice([True, False, "true", None]),
        "day": rng.choice(["2024-02-29", "2024-02-30", "0001-01-01"]),
        "at": at.isoformat() + rng.choice(["Z", "+00:00", ""]),
        "txt": rng.choice(["", "plain", "é ü", 'a "quote"', "tab\tline\n", "\\", "\u2028", "🙂", "zz" * 30]),
        "a": rng.choice([[], [1, None, 3], "no array", [2**40]]),
        "m": rng.choice([{}, {"a": "1", "b": None}, {"a": 1}, [1]]),
        "st": rng.choice([{"p": 1, "q": "x"}, {"q": None, "r": [1]}, {}, "no struct"]),
        "more": {"un": ["known", {}]},
    }
    for name in rng.sample(sorted(row), rng.randrange(5)):
        row.pop(name)
    columns = list(row.items())
    rng.shuffle(columns)
    text = json.dumps(
        dict(columns), ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", " : ")])
    )
    damaged = [
        "",
        "  ",
        "nothing",
        "[]",
        "{}",
        text[:-1],
        text + " ",
        text + text,
        "\ufeff" + text,
        f"[{text}]",
    ]
    return rng.choice(damaged) if rng.random() < 0.08 else text


def write_file(case: Case, number: int) -> Callable[[], None]:
    """Write file `number` of a case beside its folder. Returns the function that lets it land."""
    rng = random.Random(f"{case.seed} {number}")
    lines = [line(rng, number) for _ in range(rng.randrange(150, 250))]
    if number + 1 == sum(LEGS):
        lines.append(json.dumps({"k": "last", "v": 5, "at": (FIRST + timedelta(days=1)).isoformat() + "Z"}))
    text = rng.choice(["\n", "\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])
    part, file = Path(case.folder) / f"{number}.part", Path(case.folder) / "in" / f"{number:02}.json"
    part.write_bytes(text.encode())
    return lambda: part.replace(file) and None


def write_static(case: Case) -> None:
    """The table dim: more keys than the stream has, some twice."""
    rng = random.Random(f"{case.seed} dim")
    rows = [{"k": rng.choice(KEYS[5:] + ["none"]), "name": f"name {number}"} for number in range(60)]
    (Path(case.folder) / "dim").mkdir()
    (Path(case.folder) / "dim" / "1.json").write_text("\n".join(map(json.dumps, rows)))


# ---- what a case asks -------------------------------------------------------------------------------

ALL_OF_A_GROUP = (
    "count(*) AS n, count(v) FILTER (WHERE v > 3) AS c, sum(v) AS s, min(txt) AS least, max(txt) AS most,"
    " sum(d) AS ds, max(x) AS mx, bool_or(ok) AS any_ok, max(big) AS mb, max(day) AS newest,"
    " sort_array(collect_set(get(a, 0))) AS a, max(m['a']) AS ma, max(st.p) AS p"
)
LENGTHS = (
    "'10 seconds'",
    "'20 seconds', '10 seconds'",
    "'30 seconds', '12 seconds'",
    "'20 seconds', '5 seconds', '3 seconds'",
)
SHIFTED = ("at - INTERVAL 1 HOUR", "at + INTERVAL 7 SECONDS", "from_utc_timestamp(at, 'Asia/Kolkata')")
UNTIL = f"until <= {CLOSED}"


def windows(rng: random.Random) -> tuple[str, str, str]:
    lengths = rng.choice(LENGTHS)
    return (
        f"SELECT k, window.end AS until, {ALL_OF_A_GROUP} FROM s GROUP BY k, window(at, {lengths})",
        "append",
        UNTIL,
    )


def windows_over_expressions(rng: random.Random) -> tuple[str, str, str]:
    time, lengths = rng.choice(SHIFTED), rng.choice(LENGTHS)
    return (
        f"SELECT k, window.start AS since, {ALL_OF_A_GROUP} FROM s GROUP BY k, window({time}, {lengths})",
        "complete",
        "",
    )


def static_join(rng: random.Random) -> tuple[str, str, str]:
    how = rng.choice(["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    columns = "s.*" if how.startswith(("LEFT S", "LEFT A")) else "s.*, name"
    return f"SELECT {columns} FROM s {how} dim ON s.k = dim.k WHERE v IS NULL OR v > 2", "append", ""


def static_join_of_groups(rng: random.Random) -> tuple[str, str, str]:
    if rng.random() < 0.5:
        groups = "SELECT k, max(txt) AS most, count(*) AS n FROM s GROUP BY k"
        return f"SELECT g.*, name FROM ({groups}) g JOIN dim ON g.k = dim.k", "complete", ""
    groups = "SELECT k, at AS until, max(txt) AS most, count(*) AS n FROM s GROUP BY k, at"
    return f"SELECT g.*, name FROM ({groups}) g JOIN dim ON g.k = dim.k", "append", UNTIL


def deduplication(rng: random.Random) -> tuple[str, str, str]:
    return "SELECT DISTINCT k, at AS until, ok FROM s", "append", UNTIL


COUNTS = "(SELECT k, window AS w, count(*) AS n FROM s WHERE v >= 0 GROUP BY k, window(at, {}))"


def self_join(rng: random.Random) -> tuple[str, str, str]:
    counts = COUNTS.format(rng.choice(LENGTHS))
    text = f"SELECT a.k, a.w.end AS until, a.n, b.n AS m FROM {counts} a JOIN {counts} b ON a.k = b.k AND a.w = b.w"
    return text, "append", UNTIL


def most_of_a_window(rng: random.Random) -> tuple[str, str, str]:
    counts = COUNTS.format(rng.choice(LENGTHS))
    most = f"(SELECT w, max(n) AS most FROM {counts} GROUP BY w)"
    return (
        f"SELECT c.k, c.w.end AS until, c.n FROM {counts} c JOIN {most} m ON c.w = m.w AND c.n >= m.most",
        "append",
        UNTIL,
    )


SHAPES = (
    windows, windows_over_expressions, static_join, static_join_of_groups, deduplication, self_join, most_of_a_window
)  # fmt: skip


def case_of(seed: int, folder: Path) -> Case:
    """The case of a seed, in a folder that is made for it. Ten seeds in a row have all shapes."""
    rng = random.Random(seed)
    text, mode, closing = SHAPES[seed % len(SHAPES)](rng)
    conf = {
        "spark.sql.shuffle.partitions": rng.choice(["1", "1", "4"]),
        "spark.sql.autoBroadcastJoinThreshold": rng.choice(["-1", "10485760"]),
        "spark.sql.adaptive.enabled": rng.choice(["true", "false"]),
        "spark.sql.codegen.wholeStage": rng.choice(["true", "false"]),
        "spark.sql.exchange.reuse": "false",  # the console's own setting: Spark loses a watermark else
        "spark.sql.session.timeZone": "UTC",
    }
    rules = ("on", "off") if rng.random() < 0.7 else ("off", "on")
    case = Case(seed, str(folder), text, mode, closing, rng.random() < 0.4, conf, rules)
    (folder / "in").mkdir(parents=True)
    write_static(case)
    return case


# ---- how a case runs, in the console's Spark or in plain Spark ------------------------------------------


def define_views(session: Any, case: Case, reader: Any) -> None:
    """The views s and dim. reader: session.read or session.readStream."""
    for key, value in case.conf.items():
        session.conf.set(key, value)
    place = f"{case.folder}/in"
    if case.messages:
        lines = reader.schema("value STRING").text(place)
        rows = lines.selectExpr(f"from_json(value, '{COLUMNS}') AS p").select("p.*")
    else:
        rows = reader.schema(COLUMNS).json(place)
    rows.withWatermark("at", "60 seconds").createOrReplaceTempView("s")
    session.read.schema("k STRING, name STRING").json(f"{case.folder}/dim").createOrReplaceTempView("dim")


def run(session: Any, case: Case, land: Callable[[], None] | None = None) -> None:
    """Run the query from its checkpoint over the files that are there; land lets further ones land meanwhile."""
    define_views(session, case, session.readStream)
    rows = session.sql(case.text)
    writer = rows.writeStream.outputMode(case.mode).option("checkpointLocation", f"{case.folder}/checkpoint")
    if case.mode == "complete":
        writer = writer.format("memory").queryName(case.name)
    else:
        writer = writer.format("parquet").option("path", f"{case.folder}/out")
    if land is None:
        writer.trigger(availableNow=True).start().awaitTermination()
        return
    query = writer.start()
    landing = threading.Thread(target=land)
    landing.start()
    landing.join()
    query.processAllAvailable()
    query.stop()


def result(session: Any, case: Case) -> list[str]:
    """What the query has written, in this Spark for the complete mode."""
    rows = session.table(case.name) if case.mode == "complete" else session.read.parquet(f"{case.folder}/out")
    return texts(rows, case)


def answer(session: Any, case: Case) -> list[str]:
    """The answer of a batch query over the same files."""
    define_views(session, case, session.read)
    return texts(session.sql(case.text), case)


def texts(rows: Any, case: Case) -> list[str]:
    return sorted(map(repr, rows.where(case.closing or "true").collect()))


def landing(case: Case, numbers: range) -> Callable[[], None]:
    """Lets files land one after the other."""
    files = [write_file(case, number) for number in numbers]

    def land() -> None:
        pause = threading.Event()
        for file in files:
            file()
            pause.wait(EVERY)

    return land


def run_with_rules(session: Any, case: Case) -> None:
    """The first leg and the second. session: one of the case's own, with the console's classes."""
    session.conf.set(SWITCH, case.rules[0])
    run(session, case, landing(case, range(LEGS[0])))
    session.conf.set(SWITCH, case.rules[1])
    landing(case, range(LEGS[0], sum(LEGS[:2])))()
    run(session, case)


# ---- plain Spark ----------------------------------------------------------------------------------------


def plain() -> None:
    """Resume the checkpoint of each case on standard input, and compare what it has written with the answer."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for text in sys.stdin:
        case = Case(**json.loads(text))
        try:
            found = compared(spark.newSession(), case)
        except Exception as error:
            found = {"failed": f"plain Spark: {error}"[:2_000]}
        print(json.dumps(found), flush=True)


def compared(session: Any, case: Case) -> dict[str, Any]:
    """Run the last leg. Returns the number of rows of the answer, and some that are missing or wrong."""
    run(session, case)
    written, right = Counter(result(session, case)), Counter(answer(session, case))
    missing, wrong = right - written, written - right
    return {
        "rows": right.total(),
        "missing": list(missing.elements())[:5],
        "wrong": list(wrong.elements())[:5],
    }


@contextmanager
def plain_spark() -> Iterator[Callable[[Case], dict[str, Any]]]:
    """A process with plain Spark. Yields the function that lets it resume and judge a case. Raises StartFault
    without a full Java, which PySpark's own start needs.
    """
    from streamsql.runtime.engine.java import find_java

    java = find_java("system").path.resolve().parent.parent
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_", "_PYSPARK"))}
    variables["JAVA_HOME"] = str(java)
    command = [sys.executable, __file__, "--plain"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=variables,
    ) as process:
        assert process.stdin and process.stdout
        given, told = process.stdin, process.stdout

        def judge(case: Case) -> dict[str, Any]:
            given.write(json.dumps(asdict(case)) + "\n")
            given.flush()
            found: dict[str, Any] = json.loads(told.readline() or "{}")
            return found

        yield judge
        given.close()


def verdicts(spark: Any, seeds: Iterable[int], place: Path) -> Iterator[tuple[Case, dict[str, Any]]]:
    """All legs of the case of each seed, below a folder, with what `compared` finds, or the failure of a query.
    spark: the session of a console. Plain Spark resumes a case while the next one runs.
    """
    with plain_spark() as judge, ThreadPoolExecutor(1) as last_legs:
        begun = list[tuple[Case, Future[dict[str, Any]]]]()
        for seed in seeds:
            case = case_of(seed, place / str(seed))
            try:
                run_with_rules(type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession()), case)
            except Exception as error:
                yield case, {"failed": str(error)[:2_000]}
                continue
            landing(case, range(sum(LEGS[:2]), sum(LEGS)))()
            begun.append((case, last_legs.submit(judge, case)))
            if len(begun) > 1:
                case, found = begun.pop(0)
                yield case, found.result() or {"failed": "plain Spark has ended"}
        for case, found in begun:
            yield case, found.result() or {"failed": "plain Spark has ended"}


def main(arguments: list[str]) -> int:
    """Run many cases."""
    from streamsql.config.folders import cache_folder
    from streamsql.runtime.engine import jvm
    from streamsql.runtime.engine.java import find_java
    from streamsql.runtime.engine.settings import Settings

    first, number = (*map(int, arguments), *(0, 300)[len(arguments) :])
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        conf = Settings.make("local[2]", {}).start_conf()
        spark = jvm.start_session(conf, Path(place) / "log", cache_folder(), find_java())
        for case, found in verdicts(spark, range(first, first + number), Path(place)):
            if not found.get("rows") or found["missing"] or found["wrong"]:
                failed += 1
                print(f"seed {case.seed}: {found}\n  {case}", flush=True)
        print(f"{number} cases, {failed} failed")
        spark.stop()
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--plain"]:
        plain()
    else:
        sys.exit(main(sys.argv[1:]))
