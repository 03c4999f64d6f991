"""Nexmark from JSON files to nowhere, process start to end: the console, the same queries written by hand in
PySpark with the console's settings, PySpark with its defaults, and Flink's SQL client where FLINK_HOME
names a folder with its `lib` and `opt` (`deps` of the package apache-flink-libraries, and the jar flink-sql-gateway). JAVA_HOME: the Java
of all but the console, best of the version that the console brings.

Usage: nexmark.py [--events 1000000,3000000] [--queries q0,q5] [--engines console,hand,plain,flink] [--rounds 1]
       [--files-per-trigger 10] [--set KEY=VALUE …] [--same]
Prints seconds, seconds of processor, and of two numbers of events the events/s of the difference. --same compares
the rows of the engines instead (windows that the input leaves open are left out).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from nexmark_events import TABLES, written

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from truth import nexmark

FLINK = Path(__file__).with_name("nexmark_flink.json")
QUERIES = ("q0", "q1", "q2", "q3", "q5", "q7", "q8", "q11", "q15", "q17", "q18", "q20", "q21", "q22")
BY_HAND = {"q15": "q15_alt", "q18": "q18_alt"}
"""Where Spark refuses the text of a query on a stream: the one that stands for it."""
UPDATES = {"q15", "q17", "q18"}
WINDOWED = {"q5", "q7", "q8", "q11"}
"""Their last windows are open at the end of the input in Spark; Flink closes them."""
SESSIONS = {"q11"}
HAND = """
import json, sys
from pyspark.sql import SparkSession
given = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[*]")
for key, value in given["conf"].items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
for table, columns in given["schema"].items():
    rows = spark.readStream.format("json").schema(columns)
    if given["files"]:
        rows = rows.option("maxFilesPerTrigger", given["files"])
    rows.load(f"{given['input']}/{table}").withWatermark("date_time", "4 seconds").createOrReplaceTempView(table)
result = spark.sql(given["sql"])
if given["sink"] == "memory":
    query = result.writeStream.format("memory").queryName("kept").outputMode("complete").trigger(availableNow=True).start()
    query.awaitTermination()
    spark.table("kept").write.json(f"{given['folder']}/out")
    sys.exit()
writer = result.writeStream.format(given["sink"]).outputMode(given["mode"]).trigger(availableNow=True)
query = writer.option("checkpointLocation", f"{given['folder']}/ck").option("path", f"{given['folder']}/out").start()
query.awaitTermination()
"""


def queries() -> dict[str, str]:
    return {name: nexmark.queries()[BY_HAND.get(name, name)] for name in QUERIES}


def schema() -> dict[str, str]:
    return {table: nexmark.columns(table) for table in TABLES}


def console(given: argparse.Namespace, name: str, place: Path, folder: Path) -> list[str]:
    limit = f", maxFilesPerTrigger {given.files_per_trigger}" if given.files_per_trigger else ""
    script = "".join(f"SET {each.replace('=', ' = ', 1)};\n" for each in given.set)
    for table, columns in schema().items():
        script += f"CREATE STREAM {table} ({columns}) USING json OPTIONS (path '{place}/{table}'{limit})\n"
        script += "  WITH WATERMARK date_time DELAY OF INTERVAL 4 SECONDS;\n"
    sink = f"json OPTIONS (path '{folder}/out')" if given.same else "noop"
    if given.same and name in UPDATES:
        script += f"CREATE LIVE TABLE t AS {queries()[name]};\nAWAIT QUERY t IDLE;\n"
        script += f"CREATE SINK out USING {sink};\nCOPY (SELECT * FROM t) TO '{folder}/out.jsonl';\n"
    else:
        script += f"CREATE SINK out USING {sink};\n"
        script += f"INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW\n{queries()[name]};\nAWAIT QUERY q;\n"
    (folder / "run.sql").write_text(script)
    return [sys.executable, "-m", "streamsql", "-w", str(folder / "w"), "-f", str(folder / "run.sql")]


def by_hand(
    given: argparse.Namespace, name: str, place: Path, folder: Path, *, plain: bool = False
) -> list[str]:
    from streamsql.runtime.engine.java_command import default_memory
    from streamsql.runtime.engine.settings import Settings

    conf = {}
    if not plain:
        own = Settings.make("local[*]", dict(s.split("=", 1) for s in given.set)).start_conf()
        conf = {"spark.driver.memory": default_memory(), **own}
    told = {
        "conf": conf,
        "schema": schema(),
        "files": given.files_per_trigger,
        "input": str(place),
        "folder": str(folder),
        "sql": queries()[name],
        "sink": ("memory" if name in UPDATES else "json") if given.same else "noop",
        "mode": "update" if name in UPDATES else "append",
    }
    return [sys.executable, "-c", HAND, json.dumps(told)]


def plain(given: argparse.Namespace, name: str, place: Path, folder: Path) -> list[str]:
    return by_hand(given, name, place, folder, plain=True)


def flink(given: argparse.Namespace, name: str, place: Path, folder: Path) -> list[str]:
    home = Path(os.environ["FLINK_HOME"])
    told = json.loads(FLINK.read_text())
    lines = ["SET 'execution.target' = 'local';", "SET 'table.dml-sync' = 'true';"]
    # Flink reads files in any order: in streaming mode, windows miss rows that come late. Sessions need that mode.
    mode = "batch" if given.same and name not in SESSIONS else "streaming"
    settings = {
        "execution.runtime-mode": mode,
        "parallelism.default": "2",
        "pipeline.object-reuse": "true",
        "taskmanager.numberOfTaskSlots": "2",
        "table.local-time-zone": "UTC",
        "state.backend.type": "hashmap",
    }
    if mode == "streaming":
        settings |= {
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.allow-latency": "2 s",
            "table.exec.mini-batch.size": "50000",
        }
    lines += [f"SET '{key}' = '{value}';" for key, value in settings.items()]
    for table, columns in told["tables"].items():
        lines.append(
            f"CREATE TABLE {table} ({columns}, WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND) WITH ("
            f"'connector' = 'filesystem', 'path' = 'file://{place}/{table}', 'format' = 'json', "
            "'json.timestamp-format.standard' = 'SQL');"
        )
    text, columns = told["queries"][name]
    sink = (
        f"'connector' = 'filesystem', 'path' = 'file://{folder}/out', 'format' = 'json', 'json.timestamp-format.standard' = 'SQL'"
        if given.same
        else "'connector' = 'blackhole'"
    )
    lines += [f"CREATE TABLE sink ({columns}) WITH ({sink});", f"INSERT INTO sink {text};"]
    (folder / "run.sql").write_text("\n".join(lines))
    import pyspark

    hadoop = Path(pyspark.__file__).parent / "jars"
    folders = ((home / "lib", "*.jar"), (home / "opt", "*.jar"), (hadoop, "hadoop-client-*.jar"))
    jars = ":".join(str(jar) for place, names in folders for jar in sorted(place.glob(names)))
    opens = (
        "java.util",
        "java.lang",
        "java.net",
        "java.nio",
        "java.lang.reflect",
        "java.text",
        "java.time",
        "java.util.concurrent",
    )
    return [
        f"{os.environ['JAVA_HOME']}/bin/java", "-Xmx4g", *(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in opens),
        f"-Dlog4j.configurationFile={folder}/none", "-Dlog4j2.level=OFF",
        "-cp", jars, "org.apache.flink.table.client.SqlClient", "embedded", "-f", str(folder / "run.sql"),
    ]  # fmt: skip


ENGINES = {"console": console, "hand": by_hand, "plain": plain, "flink": flink}


def measure(given: argparse.Namespace, engine: str, name: str, place: Path) -> tuple[float, float]:
    """(seconds, seconds of processor) of a run; with --same the run's rows are kept in `out` of its folder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = ENGINES[engine](given, name, place, folder)
        (folder / "config.yaml").write_text("")
        mark = f"NEXMARK_RUN={folder.name}"
        env = os.environ | {"FLINK_CONF_DIR": str(folder), "TZ": "UTC"} | dict([mark.split("=")])
        began = time.perf_counter()
        with open(folder / "said", "w+") as said:
            process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=env, cwd=folder)
            used: dict[str, float] = {}
            while process.poll() is None:
                used |= processor(mark)
                time.sleep(0.05)
        seconds = time.perf_counter() - began
        words = (folder / "said").read_text()
        if process.returncode or "[ERROR]" in words:
            sys.exit(f"{engine} {name}: {words[-3000:]}")
        if given.same:
            given.rows[engine] = rows_of(folder)
    return seconds, sum(used.values())


def rows_of(folder: Path) -> Counter[str]:
    """The rows in the JSON files that a run has written, with times and numbers in one form."""
    rows = Counter[str]()
    for file in (each for each in folder.rglob("out*") if each.is_file() or each.is_dir()):
        parts = (
            [file] if file.is_file() else [f for f in file.rglob("*part-*") if not f.name.endswith(".crc")]
        )
        for part in parts:
            for line in part.read_text().splitlines():
                row = {name: _plain(value) for name, value in json.loads(line).items() if value is not None}
                rows[json.dumps(row, sort_keys=True)] += 1
    return rows


def _plain(value: object) -> object:
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", value):
        return datetime.fromisoformat(value.replace("Z", "")).replace(tzinfo=None).isoformat()
    return round(float(value), 3) if isinstance(value, int | float) else value


def compare(given: argparse.Namespace, name: str) -> None:
    """Print whether the engines have the same rows. Exits with 1 if they have not."""
    first, *others = given.rows.items()
    for engine, rows in others:
        missing, more = first[1] - rows, rows - first[1]
        open_windows = name in WINDOWED and (not missing or not more)
        print(f"{name:5} {first[0]} {first[1].total():,} rows, {engine} {rows.total():,}: ", end="")
        if not missing and not more:
            print("equal")
        elif open_windows:
            print(f"equal but for {(missing + more).total()} rows of open windows")
        else:
            sys.exit(f"different: {list(missing)[:3]} {list(more)[:3]}")


def processor(mark: str) -> dict[str, float]:
    """Seconds of processor of each process with a mark in its environment: a JVM may not be a child."""
    seconds = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                seconds[process.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass  # it has ended
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", default="1000000,3000000")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument(
        "--engines", default="console,hand" + (",flink" if "FLINK_HOME" in os.environ else "")
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--files-per-trigger", type=int, default=0)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--same", action="store_true")
    given = parser.parse_args()
    given.rows = {}
    numbers = [int(n) for n in given.events.split(",")]
    places = [written(Path(given.folder), n) for n in numbers]
    engines = given.engines.split(",")
    print(
        "query engine   "
        + "".join(f"{n:>12,} events (cpu)" for n in numbers)
        + "   events/s (per cpu second)"
    )
    for name in given.queries.split(","):
        for engine in engines:
            runs = []
            for place in places:
                each = [measure(given, engine, name, place) for _ in range(given.rounds)]
                runs.append(tuple(statistics.median(column) for column in zip(*each, strict=True)))
            shown = "".join(f"{wall:12.1f} s {cpu:8.1f} s" for wall, cpu in runs)
            if len(runs) > 1:
                more = numbers[-1] - numbers[0]
                wall, cpu = (last - first for first, last in zip(runs[0], runs[-1], strict=True))
                shown += f"{more / max(wall, 0.1):14,.0f} {more / max(cpu, 0.1):12,.0f}"
            print(f"{name:5} {engine:8} {shown}", flush=True)
        if given.same:
            compare(given, name)


if __name__ == "__main__":
    main()
