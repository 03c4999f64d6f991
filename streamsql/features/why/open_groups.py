"""What a query keeps in its state: the groups that are open, read from its checkpoint without touching it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.runtime.embedded.state_reader import read_state
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.queries.facts import GROUPS


@dataclass(frozen=True)
class OpenGroups:
    """rows: how many groups append mode holds back; first, last: when the first and the last of them end, in
    milliseconds, None when that is not known; session: whether they are sessions.
    """

    rows: int
    first: int | None = None
    last: int | None = None
    session: bool = False


def open_groups(evidence: Evidence) -> OpenGroups | None:
    """The groups of an append-mode aggregation that wait for the watermark; None when there are none."""
    if evidence.mode != "append":
        return None
    for number, op in enumerate(evidence.state):
        if op.get("operatorName") in GROUPS and op.get("numRowsTotal", 0):
            session = op["operatorName"] != GROUPS[0]
            first, last = _ends(evidence, number)
            return OpenGroups(op["numRowsTotal"], first, last, session)
    return None


def gave_none(evidence: Evidence) -> bool:
    """Whether a query has given no rows, as its sinks say; where they do not, whether append mode holds some
    back.
    """
    if evidence.rows_out is not None:
        return evidence.rows_out == 0
    if evidence.mode == "append" and any(map(_removed, evidence.reports)):
        return False
    held = (op.get("numRowsTotal", 0) for op in evidence.state if op.get("operatorName") in GROUPS)
    return evidence.mode == "append" and any(held)


def _removed(report: dict[str, Any]) -> int:
    """The groups of a progress report that may have come out in append mode: those that the last stateful
    operator has emitted, or if it is a join, those of the operators before it.
    """
    operators = report.get("stateOperators", [])
    if operators and operators[0].get("operatorName") in GROUPS:
        operators = operators[:1]
    return sum(int(op.get("numRowsRemoved", 0)) for op in operators if op.get("operatorName") in GROUPS)


def _ends(evidence: Evidence, number: int) -> tuple[int | None, int | None]:
    """When the first and the last group of a stateful operator ends. number: its place in the report and its
    number: Spark numbers and reports the operators from the last to the first.
    """
    from pyspark.sql import functions as F

    spark = evidence.parts.spark

    def ends() -> Any:
        state = read_state(spark, evidence.plan.checkpoint, raw=True, operatorId=str(number))
        columns = _end_columns(state.schema, evidence)
        if not columns:
            return None
        moments = F.expr(f"unix_millis(CAST({columns[0]} AS TIMESTAMP))")
        return state.select(F.min(moments), F.max(moments))

    rows = evidence.probes.collected(ends)
    return (rows[0][0], rows[0][1]) if rows else (None, None)


def _end_columns(schema: Any, evidence: Evidence) -> list[str]:
    """The expressions of the ends of windows in a state's key or value; else of an event time among the
    keys.
    """
    from pyspark.sql.types import StructType

    times = {e.column.casefold() for e in evidence.event_times}
    windows, plain = [], []
    for side in ("key", "value"):
        kind = schema[side].dataType
        for field in kind.fields if isinstance(kind, StructType) else ():
            place = f"`{side}`.`{field.name}`"
            if isinstance(field.dataType, StructType) and field.dataType.names == ["start", "end"]:
                windows.append(f"{place}.`end`")
            elif side == "key" and field.name.casefold() in times:
                plain.append(place)
    return windows or plain
