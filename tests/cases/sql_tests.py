"""Writes the cases of shared/cases as TESTs: python tests/cases/sql_tests.py FOLDER > FOLDER/cases.test.sql

FOLDER gets the files that GIVEN … FROM reads. Those cases are left out that a TEST cannot express: a stream that is
read twice in one micro-batch, files that are listed in folders (partitions, patterns, limits), and errors that are
known by their words only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

from conftest import SHARED_CASES  # noqa: E402

from streamsql.language.tokens import quote  # noqa: E402

CASE_FILES = (
    "learn_spark/learn_spark.json",
    "guide/guide.json",
    "spark_suites/aggregation.json",
    "spark_suites/dedup.json",
    "spark_suites/event_time.json",
    "spark_suites/unsupported.json",
    "spark_suites/file_source.json",
)


def all_cases() -> list[dict[str, Any]]:
    """The cases that a TEST can express."""
    from harness import load

    cases = [case.data for file in CASE_FILES for case in load(SHARED_CASES / file)]
    return [data for data in cases if expressible(data)]


def expressible(data: dict[str, Any]) -> bool:
    if "expected_error" in data:
        return "error_class" in data["expected_error"] and data["expected_error"]["phase"] == "start"
    if data.get("align") or "expected_last_value_per_key" in data:
        return False
    if "file_source" in data:
        listed = data.keys() & {"existing", "after_define"} or data["file_source"].keys() & {
            "glob",
            "options",
        }
        return (
            not listed
            and bool(data["steps"])
            and all(len(step) == 1 and "/" not in next(iter(step)) for step in data["steps"])
        )
    # The changes of a step whose rows are not told end with the watermark that is.
    marks = data.get("expected_watermark", [])
    untold = [n for n, rows in enumerate(data.get("expected", [])[:-1]) if rows is None]
    return all(marks[n : n + 1] not in ([], [None]) for n in untold)


def sql_tests(cases: list[dict[str, Any]], folder: Path) -> str:
    """A file of tests. folder: where it is, and its files."""
    for data in cases:
        for name, text in (file for step in data.get("steps", []) for file in step.items()):
            (folder / data["name"]).mkdir(exist_ok=True)
            (folder / data["name"] / name).write_text(text, "utf-8")
    tests = (f"TEST {quote(data['name'])} BEGIN\n{statements(data)}END TEST;\n" for data in cases)
    return "SET spark.sql.session.timeZone = UTC;\n\n" + "\n".join(tests)


def statements(data: dict[str, Any]) -> str:
    return "".join(f"  {statement};\n" for statement in _statements(data))


def _statements(data: dict[str, Any]) -> Iterator[str]:
    from harness import column_list, values

    for key, value in data.get("conf", {}).items():
        yield f"SET {key} = {value}"
    for name, table in data.get("statics", {}).items():
        casts = ", ".join(f"CAST(`{c}` AS {t}) AS `{c}`" for c, t in table["columns"])
        names = ", ".join(f"`{c}`" for c, _ in table["columns"])
        yield f"CREATE TEMPORARY VIEW {name} AS SELECT {casts} FROM {values(table['rows'])} AS t({names})"
    inputs = {}
    for name, stream in data.get("streams", {}).items():
        dedup = data.get("dedup", {}).get(name, [])
        chain = [*(f"{name}_{i}" for i in range(len(dedup))), name]
        inputs[name] = chain[0]
        mark = data.get("watermark", {}).get(name)
        watermark = f" WITH WATERMARK {mark['column']} DELAY {quote(mark['delay'])}" if mark else ""
        yield f"CREATE STREAM {chain[0]} ({column_list(stream['columns'])}) USING values{watermark}"
        for step, source, target in zip(dedup, chain, chain[1:], strict=False):
            keys = ", ".join(f"`{k}`" for k in step.get("columns") or [c for c, _ in stream["columns"]])
            within = "WITHIN WATERMARK" if step.get("within_watermark") else ""
            yield f"CREATE STREAM {target} AS SELECT DISTINCT ON ({keys}) {within} * FROM {source}"
    if "file_source" in data:
        source = data["file_source"]
        columns = f" ({column_list(source['schema'])})" if "schema" in source else ""
        yield f"CREATE STREAM input{columns} USING {source['format']} OPTIONS (path '/nowhere')"
    yield "CREATE SINK out USING noop"
    insert = f"INSERT INTO out OUTPUT MODE {data['output_mode'].upper()} {data['query_sql']}"
    if "expected_error" in data:
        yield f"EXPECT ERROR {quote(data['expected_error']['error_class'])} FROM {insert}"
        return
    yield insert
    steps = [s["batches"] for s in data.get("streams", {}).values()] + [data.get("steps", [])]
    for number in range(max(map(len, steps))):
        yield from _step(data, number, inputs)
    if "expected_total" in data:
        yield f"EXPECT out {values(data['expected_total'])}" if data["expected_total"] else "EXPECT out EMPTY"


def _step(data: dict[str, Any], number: int, inputs: dict[str, str]) -> Iterator[str]:
    from harness import values

    if number in data.get("restart_before", []):
        yield "RESTART QUERY out"
    for file in data["steps"][number] if "steps" in data else ():
        yield f"GIVEN input FROM {quote(data['name'] + '/' + file)}"
    for name, stream in data.get("streams", {}).items():
        rows = stream["batches"][number] if number < len(stream["batches"]) else []
        if rows:
            yield f"GIVEN {inputs[name]} {values(rows)}"
    expected = data.get("expected", [])
    rows = expected[number] if number < len(expected) else None
    ordered = "ORDERED " if data.get("ordered") else ""
    if rows is not None and data["output_mode"] == "complete":
        yield f"EXPECT out {ordered}{values(rows)}" if rows else "EXPECT out EMPTY"
    elif rows is not None:
        changes = values([["+I", *row] for row in rows])
        yield f"EXPECT CHANGES IN out {changes}" if rows else "EXPECT NO CHANGES IN out"
    marks = data.get("expected_watermark", [])
    if number < len(marks) and marks[number] is not None:
        mark = marks[number].replace("T", " ").removesuffix("Z").removesuffix(".000")
        yield f"EXPECT WATERMARK OF out = {'NULL' if mark == '1970-01-01 00:00:00' else quote(mark)}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    print(sql_tests(all_cases(), Path(sys.argv[1])), end="")
