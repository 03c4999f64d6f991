"""VERIFY: the rows of a query against the same SELECT as a batch over the input that it has read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.calls import Assign, evaluate, run
from streamsql.connectors.registry import ENDLESS
from streamsql.errors import Cancelled, InputFault, RuleFault
from streamsql.features.verify.plan import Verification
from streamsql.features.verify.statement import Verify
from streamsql.language.tokens import quote_name
from streamsql.output.cells import text
from streamsql.plan.planner import start_plan
from streamsql.results import Done
from streamsql.results import counted as count
from streamsql.runtime.checkpoints.query_marker import Folder
from streamsql.runtime.engine.row_differences import differences, with_counts
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.explanations import explanations
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.connectivity import check_servers
from streamsql.runtime.queries.run import BUSY
from streamsql.runtime.queries.start_checks import check_drivers
from streamsql.secrets import redact_option

SHOWN = 5
"""How many of the rows that are missing, or too many, an error lists."""
COMPARED = 10_000
"""Among up to so many rows that differ, floating-point numbers are compared to a tolerance."""


@dataclass(frozen=True)
class Difference:
    """total: the rows of the sink; lacks, extra: how many are missing and too many; rows: of these."""

    total: int
    lacks: int
    extra: int
    missing: list[tuple[Any, ...]]
    surplus: list[tuple[Any, ...]]

    @property
    def size(self) -> int:
        return self.lacks + self.extra


def _verify(parts: SessionParts, plan: Verification, statement: Verify) -> Done:
    """Compare the rows. A query that runs is awaited until it is idle. Raises InputFault when they differ."""
    name = plan.query.name.casefold()
    running = parts.queries.all.get(name)
    if running is not None and running.status() in BUSY:
        _check_idle(plan, statement)
        parts.queries.wait([name], parts.cancel, idle=True, timeout=None)
    check_servers((plan.sink,))
    env = parts.env(plan.program, plan.reads)
    if plan.sink_rows is not None:
        parts.packages.provide(parts.spark, (Assign("sink_rows", plan.sink_rows),), parts.cancel)
    check_drivers(parts, (plan.sink,))
    run(plan.program, env)
    reader = env["reader"]
    batches = reader.log.numbers("commits")
    if not batches:
        raise InputFault(
            f"{plan.query.name} has read nothing yet",
            hint=f"WHY QUERY {quote_name(plan.query.name)};",
            span=statement.name.span,
            code="NO_RECORDS",
        )
    mode = _mode(parts, plan, statement)
    rows = [reader.all_rows(at) for at in range(plan.streams)]
    settings = _other_settings(parts, plan)
    try:
        expected = env["expected"](*rows)
        sink_rows = _sink_rows(parts, plan, expected.schema, mode, env)
        difference = _difference(_as_written(plan, expected, env), sink_rows, plan, mode)
    except Exception as error:
        if not settings or isinstance(error, Cancelled):
            raise
        fault = translate(error)
        fault.detail = "\n".join(filter(None, (fault.detail, *settings)))
        raise fault from error
    of = count(difference.total, "row")
    if not difference.size:
        number = count(len(batches), "micro-batch")
        verified = f"{plan.query.name} is verified: {of}, those of its SELECT as a batch ({number})"
        return Done(message="; ".join([verified, *_lost(parts, plan)]))
    because = [*settings, *_because(parts, plan, difference, rows, sink_rows, env, mode), *_lost(parts, plan)]
    raise InputFault(
        f"{plan.query.name} has {of}, {difference.lacks} missing and {difference.extra} too many against its "
        "SELECT as a batch",
        detail="\n".join((*_listed("missing", difference.missing), *_listed("too many", difference.surplus),
                          *because)),
        hint=f"WHY QUERY {quote_name(plan.query.name)};",
        span=statement.name.span,
        code="VERIFY_DIFFERS",
    )  # fmt: skip


def _other_settings(parts: SessionParts, plan: Verification) -> list[str]:
    """The settings of Spark with which the query was started in this session, where they are others now: the
    batch has those of now.
    """
    running, now = parts.queries.all.get(plan.query.name.casefold()), parts.settings.changed
    then = running.settings if running is not None and not running.is_refresh else now
    default, texts = parts.settings.start_conf(), []
    for key in sorted(key for key in {*then, *now} if key.startswith("spark.sql.")):
        one, other = (
            redact_option(key, settings.get(key) or default.get(key) or "its default")
            for settings in (then, now)
        )
        if then.get(key) != now.get(key):
            texts.append(f"the query was started with {key} = {one}, and the batch has {other}")
    return texts


def _check_idle(plan: Verification, statement: Verify) -> None:
    """Raise RuleFault for a query that runs and is never idle."""
    endless = next((s for s in plan.reads.streams if s.connector in ENDLESS), None)
    if endless is not None:
        raise RuleFault(
            f"{plan.query.name} is never idle: {endless.name} always has new rows",
            hint=f"STOP QUERY {quote_name(plan.query.name)}; VERIFY QUERY {quote_name(plan.query.name)};",
            span=statement.name.span,
            code="QUERY_RUNNING",
        )


def _mode(parts: SessionParts, plan: Verification, statement: Verify) -> str:
    """The output mode of the query. Raises RuleFault for one whose messages cannot be compared."""
    running = parts.queries.all.get(plan.query.name.casefold())
    folder = Folder(parts.spark, plan.query.checkpoint or parts.places.checkpoint(plan.query.name))
    mode = running.mode if running else str(folder.marker().get("facts", {}).get("mode", ""))
    if plan.messages and (mode == "complete" or mode == "update" and not plan.sink.key):
        raise RuleFault(
            f"the rows of {plan.query.name} cannot be verified: in output mode {mode} the topic has each "
            "version of a row",
            detail="with a KEY, the newest message of each key is compared",
            hint=f"CREATE SINK {quote_name(plan.sink.name)} … KEY (column, …)",
            span=statement.name.span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    return mode


def _as_written(plan: Verification, rows: Any, env: dict[str, Any]) -> Any:
    """Rows as the sink has them."""
    if not plan.messages:
        return rows
    messages = env["messages"](rows)
    return messages.selectExpr(*_message(plan, messages.columns))


def _message(plan: Verification, columns: list[str]) -> list[str]:
    """The columns of messages that are compared."""
    as_text = plan.sink.format in ("", "json", "csv", "text") and not plan.sink.option("schemaRegistry")
    value = "CAST(value AS STRING) AS value" if as_text else "CAST(value AS BINARY) AS value"
    key = ["CAST(key AS STRING) AS key"] if "key" in columns else []
    return [*key, value, *(["headers"] if "headers" in columns else [])]


def _sink_rows(parts: SessionParts, plan: Verification, schema: Any, mode: str, env: dict[str, Any]) -> Any:
    """The rows that the sink has."""
    if plan.sink.is_live:
        rows = parts.live.get(plan.sink.name.casefold())
        assert rows is not None
        return rows.frame(parts.spark)
    from pyspark.sql import functions as F

    if plan.sink_rows is None:
        options = {k: v for k, v in plan.sink.options if k.casefold() not in ("path", "retention")}
        reader = parts.spark.read.format(plan.sink.connector).schema(schema).options(**options)
        try:
            return reader.load(plan.sink.option("path")).select(*schema.names)
        except Exception:  # nothing was written
            return parts.spark.createDataFrame([], schema)
    frame = evaluate(plan.sink_rows, env)
    if not plan.messages:
        return frame.select(*(F.col(quote_name(f.name)).cast(f.dataType) for f in schema.fields))
    columns = env["messages"](parts.spark.createDataFrame([], schema)).columns
    if plan.sink.key and mode == "update":
        newest = F.max_by(F.struct("key", "value", "headers"), F.struct("timestamp", "offset"))
        frame = frame.groupBy("key").agg(newest.alias("newest")).select("newest.*")
    return frame.selectExpr(*_message(plan, columns))


def _difference(expected: Any, sink_rows: Any, plan: Verification, mode: str) -> Difference:
    """The rows that differ."""
    from pyspark.sql import functions as F

    # sign: how often less than the batch the sink has a row
    different = with_counts(expected, sink_rows).withColumn("sign", F.expr("in_first - in_second"))
    keyed = [n for n, name in enumerate(expected.columns) if name.casefold() in _keys(plan, mode)]
    if keyed:
        different = _one_of_key(different, [f"c{n}" for n in keyed])
    total, lacks, extra = different.selectExpr(
        "coalesce(sum(in_second), 0)",
        "coalesce(sum(greatest(sign, 0)), 0)",
        "coalesce(sum(greatest(-sign, 0)), 0)",
    ).first()
    if not lacks and not extra:
        return Difference(total, 0, 0, [], [])
    rows = collect(
        different.where("sign <> 0")
        .drop("in_first", "in_second")
        .orderBy(F.desc("sign"), "c0")
        .limit(COMPARED)
    ).rows
    missing = [row[:-1] for row in rows for _ in range(max(0, row[-1]))]
    surplus = [row[:-1] for row in rows for _ in range(max(0, -row[-1]))]
    if len(missing) == lacks and len(surplus) == extra:  # all of them
        missing, surplus = differences(missing, surplus)
        lacks, extra = len(missing), len(surplus)
    return Difference(total, lacks, extra, missing, surplus)


def _keys(plan: Verification, mode: str) -> set[str]:
    """The columns by which the sink keeps one row each."""
    if plan.sink.is_live or not plan.sink.key:
        return set()
    if plan.messages:
        return {"key"} if mode == "update" else set()
    return {k.casefold() for k in plan.sink.key}


def _one_of_key(different: Any, keys: list[str]) -> Any:
    """For a sink with one row of each key: the batch may have several, of which the sink has one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_key = Window.partitionBy(*keys)
    matched = F.max(F.expr("in_first > 0 AND in_second > 0")).over(of_key)
    place = F.row_number().over(Window.partitionBy(*keys, F.expr("sign > 0")).orderBy(F.lit(1)))
    sign = F.expr("CASE WHEN sign > 0 THEN IF(matched OR place > 1, 0, 1) ELSE sign END")
    return (
        different.select("*", matched.alias("matched"), place.alias("place"))
        .withColumn("sign", sign)
        .drop("matched", "place")
    )


def _listed(what: str, rows: list[tuple[Any, ...]]) -> list[str]:
    more = [f"{what}: …"] if len(rows) > SHOWN else []
    return [f"{what}: {', '.join(map(text, row))}" for row in rows[:SHOWN]] + more


def _because(
    parts: SessionParts,
    plan: Verification,
    difference: Difference,
    rows: list[Any],
    sink_rows: Any,
    env: dict[str, Any],
    mode: str,
) -> list[str]:
    """How many of the rows that differ late rows explain, and groups that append mode holds back."""
    if not plan.inputs:
        return []
    reader, name = env["reader"], quote_name(plan.query.name)
    late = reader.frame().count()
    sizes = [difference.size]
    for closed in (False, True)[: 2 if mode == "append" and not plan.sessions else 1]:
        try:
            inputs = [reader.in_time(at, closed) for at in range(plan.inputs)]
            if any(i is None for i in inputs):
                return _unexplained(parts, plan, late)
            sizes.append(
                _difference(_as_written(plan, env["rest"](*rows, *inputs), env), sink_rows, plan, mode).size
            )
        except Exception:  # the SELECT cannot be computed from these inputs
            return _unexplained(parts, plan, late)
    if sizes != sorted(sizes, reverse=True):  # the inputs are not those that the query has computed with
        return _unexplained(parts, plan, late)
    because = []
    of_late, of_open = sizes[0] - sizes[1], sizes[1] - sizes[-1]
    if late and of_late > 0:
        because.append(
            f"{of_late} of these by {count(late, 'late row')}: SELECT * FROM LATE ROWS OF QUERY {name};"
        )
    if of_open > 0:
        because.append(f"{of_open} of these in groups that are still open: FLUSH QUERY {name}; emits them")
    if because and sizes[-1]:
        because.append(f"{sizes[-1]} of these for neither reason")
    return because or _unexplained(parts, plan, late)


def _lost(parts: SessionParts, plan: Verification) -> list[str]:
    """What is known of rows that the query has not read, or could not read: the batch reads them as they are
    now, or leaves them out, too.
    """
    running = parts.queries.all.get(plan.query.name.casefold())
    run_plan = running.plan if running else start_plan(plan.query, parts.context())
    return explanations().losses(parts, run_plan, running)


def _unexplained(parts: SessionParts, plan: Verification, late: int) -> list[str]:
    """What may explain a difference, where it cannot be computed."""
    because, name = [], quote_name(plan.query.name)
    running = parts.queries.all.get(plan.query.name.casefold())
    if late:
        because.append(f"{count(late, 'row')} came late: SELECT * FROM LATE ROWS OF QUERY {name};")
    state = running.reports.latest.get("stateOperators", []) if running else []
    held = sum(op.get("numRowsTotal", 0) for op in state)
    if held and running and running.mode == "append":
        because.append(f"{count(held, 'row')} wait in state: FLUSH QUERY {name}; emits them")
    return because


PLANS: Answers = {Verification: _verify}
