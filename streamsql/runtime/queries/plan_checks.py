"""What Spark's analysis takes of a streaming query, and what is wrong, or fails, once the query runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from streamsql.errors import RuleFault
from streamsql.language.query import read_query
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Run
from streamsql.plan.streaming.collations import has_collations
from streamsql.runtime.engine.java_classes import elements, java_class, nodes
from streamsql.runtime.engine.spark_errors import translate

_VARIABLE = re.compile(r"variablereference\((?:\w+\.)*([^=()]+)=")
_IS_NULL_SAFE = ("string", "binary", "array", "map", "struct", "variant")
"""The types of the values of a map of which Spark's generated code tells NULL from a value."""

WITHOUT_MODE = "leave OUTPUT MODE out: then it runs in stages"


def check_runs(plan: Run, spark: Any, result: Any) -> None:
    """Raise RuleFault for a query that Spark starts, and that would have wrong rows or fail later. result:
    its streaming DataFrame.
    """
    _check_variables(plan, spark, result)
    texts = [plan.query.text, *(stream.query for stream in plan.reads.streams if stream.query)]
    words = frozenset[str]().union(*(read_query(text).words for text in texts))
    maps = any(c.type.upper().startswith("MAP") for stream in plan.reads.streams for c in stream.columns)
    if maps or any("map" in word for word in words):
        _check_maps(plan, result)
    if "recursive" in words:
        _check_recursion(plan, result)
    if has_collations(words, plan.reads.streams):
        _check_collations(plan, spark, result)


def _check_variables(plan: Run, spark: Any, result: Any) -> None:
    """Raise RuleFault for a query that is kept and reads a variable of the session."""
    variables = spark._jsparkSession.sessionState().catalogManager().tempVariableManager()
    if plan.transient or variables.isEmpty():
        return
    names = _VARIABLE.findall(result._jdf.queryExecution().analyzed().toString())
    if names:
        raise reads_variable(plan, names[0])


def reads_variable(plan: Run, name: str) -> RuleFault:
    """The error of a query that is kept and reads a variable of the session of that name."""
    return RuleFault(
        f"{plan.query.owner or plan.query.name} reads the session variable {name}",
        detail="a query is kept, and a variable is not: the query would go on with the value of its start,"
        " and could not be started in another session",
        hint=f"write the value; or DEFINE {name} = '…'; and ${{{name}}} in the statement",
        span=plan.body_span,
        code="SESSION_VARIABLE",
    )


def unresolved_variable(spark: Any, error: Exception) -> str:
    """The variable of a session that an error of another session takes for a column; "" for other errors."""
    if not (translate(error).condition or "").startswith("UNRESOLVED_COLUMN"):
        return ""
    parameters: dict[str, str] = getattr(error, "getMessageParameters", dict)() or {}
    name = parameters.get("objectName", "")
    try:
        spark.sql(f"SELECT {name}")
    except Exception:
        return ""
    return name.replace("`", "")


def _grouping_keys(result: Any) -> Iterator[Any]:
    """The expressions by which a streaming DataFrame groups, or takes rows for the same."""
    for node in streaming_nodes(result._jdf.queryExecution().analyzed()):
        name = node.nodeName()
        if name == "Aggregate":
            keys = node.groupingExpressions()
        elif name in ("Deduplicate", "DeduplicateWithinWatermark"):
            keys = node.keys()
        elif name == "Distinct":
            keys = node.output()
        else:
            continue
        yield from elements(keys)


def _check_maps(plan: Run, result: Any) -> None:
    """Raise RuleFault for groups by a map whose values may be NULL and are numbers or the like: Spark's
    generated code takes NULL there for 0, and puts the groups together.
    """
    for key in _grouping_keys(result):
        kind = key.dataType()
        if kind.typeName() != "map" or not kind.valueContainsNull():
            continue
        if kind.valueType().typeName() in _IS_NULL_SAFE:
            continue
        raise RuleFault(
            "groups by a map whose values may be NULL are not told apart",
            detail="Spark puts the groups of the values NULL and 0 together",
            hint="GROUP BY map_entries(m)",
            span=plan.body_span,
            code="WRONG_TYPE",
        )


def _check_recursion(plan: Run, result: Any) -> None:
    """Raise RuleFault for a recursive WITH query over a stream: Spark's checks accept it, and its first
    micro-batch fails, because each step of the recursion runs as a query of its own.
    """
    if any(n.nodeName() == "UnionLoop" for n in streaming_nodes(result._jdf.queryExecution().analyzed())):
        raise _not_on_streams(
            plan,
            "a recursive WITH query over a stream is not supported",
            "Spark runs each step of the recursion as a query of its own, over tables only",
        )


def _check_collations(plan: Run, spark: Any, result: Any) -> None:
    """Raise RuleFault for groups by a text with a collation: Spark's state stores compare bytes, and fail in
    the first micro-batch (STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY).
    """
    rows = java_class(spark, "org.apache.spark.sql.catalyst.util.UnsafeRowUtils")
    for key in _grouping_keys(result):
        if not rows.isBinaryStable(key.dataType()):
            fact = f"Spark does not group the rows of a stream by {key.sql()}, a text with a collation"
            raise _not_on_streams(plan, fact, "the state of a stream compares bytes")


def _not_on_streams(plan: Run, fact: str, detail: str) -> RuleFault:
    hint = _over_rows(plan)
    return RuleFault(fact, detail=detail, hint=hint, span=plan.body_span, code="NOT_ON_STREAMS")


def _over_rows(plan: Run) -> str:
    """The hint for what Spark does over tables, and not over streams."""
    if plan.mode_span:
        return WITHOUT_MODE
    stream = next((stream.name for stream in plan.reads.streams if stream.connector), "…")
    name = f"all_{stream}" if stream.isidentifier() else "all_rows"
    return f"CREATE LIVE TABLE {name} AS SELECT * FROM {quote_name(stream)}; and the query over {name}"


def streaming_nodes(plan: Any) -> Iterator[Any]:
    """The nodes of a plan of Spark whose rows are those of a stream."""
    return (node for node in nodes(plan) if node.isStreaming())


def has_streaming_subquery(plan: Any) -> bool:
    """Whether an expression of a plan of Spark has a query over a stream."""
    return any(query.isStreaming() for node in nodes(plan) for query in elements(node.subqueries()))
