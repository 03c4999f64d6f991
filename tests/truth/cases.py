"""The cases of the collections guide, learn_spark and spark_suites (data/README.md has their format), and the
statements that they are in the language.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from truth.packed import unpacked

from streamsql.language.tokens import quote

Case = dict[str, Any]
COLLECTIONS = ("learn_spark", "guide", "spark_suites")

# Keys that ask for nothing of their own: words about the case, and supported (a query that is expected to give
# nothing only has to start).
_WORDS = frozenset(
    """name words origin provenance notes version_drift cells figure guide_expected guide_missing guide_elided
    guide_error guide_result_tables supported""".split()
)
_READ = frozenset(
    """streams statics watermark dedup query_sql output_mode conf restart_before expected ordered
    expected_watermark expected_error expected_schema expected_batches file_source existing after_define
    steps""".split()
)


@cache
def groups() -> dict[str, dict[str, Case]]:
    """The cases by name, by the file that they come from. Raises ValueError for a key of a case that nothing
    reads, so that none is passed over in silence.
    """
    files = [file for collection in COLLECTIONS for file in sorted(unpacked(collection).glob("*.json"))]
    found = {file.stem: json.loads(file.read_text("utf-8"))["cases"] for file in files}
    for case in (case for cases in found.values() for case in cases):
        if unread := case.keys() - _WORDS - _READ:
            raise ValueError(f"{case['name']}: nothing reads {sorted(unread)}")
    return {group: {case["name"]: case for case in cases} for group, cases in found.items()}


def is_test(case: Case) -> bool:
    """Whether a TEST asserts all of a case. It does not read files in folders, and knows errors by their codes,
    not by their words.
    """
    error = case.get("expected_error")
    return "file_source" not in case and (error is None or "error_class" in error)


# ---- as statements ------------------------------------------------------------------------------


def sql_test(case: Case) -> str:
    """A case as a TEST."""
    *before, insert = definitions(case)
    if "expected_error" in case:
        lines = [*before, f"EXPECT ERROR {quote(case['expected_error']['error_class'])} FROM {insert}"]
    else:
        lines = [*before, insert]
        for number in range(max((len(s["batches"]) for s in case["streams"].values()), default=0)):
            lines += _step(case, number)
    body = "".join(f"  {line};\n" for line in lines)
    return f"TEST {quote(case['name'])} BEGIN\n{body}END TEST;\n"


def definitions(case: Case, sink: str = "noop", path: str = "") -> Iterator[str]:
    """The statements up to the INSERT INTO out, which is the last of them. sink: the connector of out; path: that
    of a stream of files.
    """
    for key, value in case.get("conf", {}).items():
        yield f"SET {key} = {value}"
    for name, table in case.get("statics", {}).items():
        casts = ", ".join(f"CAST(`{c}` AS {t}) AS `{c}`" for c, t in table["columns"])
        names = ", ".join(f"`{c}`" for c, _ in table["columns"])
        yield f"CREATE TEMPORARY VIEW {name} AS SELECT {casts} FROM {values(table['rows'])} AS t({names})"
    for name, stream in case.get("streams", {}).items():
        yield from _stream(case, name, stream)
    if "file_source" in case:
        yield _stream_of_files(case["file_source"], path)
    yield f"CREATE SINK out USING {sink}"
    yield f"INSERT INTO out OUTPUT MODE {case['output_mode'].upper()} {case['query_sql']}"


def _stream(case: Case, name: str, stream: dict[str, Any]) -> Iterator[str]:
    """A stream of values; with dedup, the named queries over it, of which the last has its name."""
    dedup = case.get("dedup", {}).get(name, [])
    chain = [*(f"{name}_{number}" for number in range(len(dedup))), name]
    mark = case.get("watermark", {}).get(name)
    watermark = f" WITH WATERMARK {mark['column']} DELAY {quote(mark['delay'])}" if mark else ""
    yield f"CREATE STREAM {chain[0]} ({_column_list(stream['columns'])}) USING values{watermark}"
    for step, source, target in zip(dedup, chain, chain[1:], strict=False):
        keys = ", ".join(f"`{key}`" for key in step.get("columns") or [c for c, _ in stream["columns"]])
        within = "WITHIN WATERMARK" if step.get("within_watermark") else ""
        yield f"CREATE STREAM {target} AS SELECT DISTINCT ON ({keys}) {within} * FROM {source}"


def _stream_of_files(source: dict[str, Any], path: str) -> str:
    options = {"path": f"{path}/{source['glob']}" if "glob" in source else path, **source.get("options", {})}
    listed = ", ".join(f"{key} {quote(value)}" for key, value in options.items())
    columns = f" ({_column_list(source['schema'])})" if "schema" in source else ""
    return f"CREATE STREAM input{columns} USING {source['format']} OPTIONS ({listed})"


def _step(case: Case, number: int) -> Iterator[str]:
    if number in case.get("restart_before", []):
        yield "RESTART QUERY out"
    for name, stream in case["streams"].items():
        rows = stream["batches"][number] if number < len(stream["batches"]) else []
        if rows:
            yield f"GIVEN {name}{'_0' if name in case.get('dedup', {}) else ''} {values(rows)}"
    rows = _at(case.get("expected", []), number)
    ordered = "ORDERED " if case.get("ordered") else ""
    if rows is not None and case["output_mode"] == "complete":
        yield f"EXPECT out {ordered}{values(rows)}" if rows else "EXPECT out EMPTY"
    elif rows is not None:
        changes = values([["+I", *row] for row in rows])
        yield f"EXPECT CHANGES IN out {changes}" if rows else "EXPECT NO CHANGES IN out"
    mark = _at(case.get("expected_watermark", []), number)
    if mark is not None:
        mark = mark.replace("T", " ").removesuffix("Z").removesuffix(".000")
        yield f"EXPECT WATERMARK OF out = {'NULL' if mark == '1970-01-01 00:00:00' else quote(mark)}"


def _at(values: list[Any], number: int) -> Any:
    return values[number] if number < len(values) else None


def _literal(value: Any) -> str:
    """A value of a case as Spark SQL; INSERT, GIVEN and EXPECT cast it to the type of the column."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"array({', '.join(map(_literal, value))})"
    return quote(value) if isinstance(value, str) else json.dumps(value)


def values(rows: list[list[Any]]) -> str:
    """Rows as VALUES."""
    return "VALUES " + ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)


def _column_list(columns: list[list[str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)
