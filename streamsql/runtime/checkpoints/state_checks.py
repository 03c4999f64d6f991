"""Checks that the checkpoint of a query has the state that a statement reads: Spark itself only reports that
it cannot read a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamsql.errors import InputFault, NameFault, RuleFault, StreamsqlError, did_you_mean
from streamsql.language.statements.checkpoint import Owner
from streamsql.plan.lowering.late_rows import late_tables
from streamsql.plan.lowering.state_tables import StateTable, state_tables
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint, Operator

CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def check_states(text: str, checkpoint: Callable[[Owner], Checkpoint]) -> None:
    """Raise a fault, with a span in the text of a statement, for a state that it reads and does not exist.

    checkpoint: opens the checkpoint that the statement names.
    """
    words = text.upper()
    if "STATE" not in words and "LATE" not in words:  # most statements: they need no second reading
        return
    for table in state_tables(text):
        _check(table, checkpoint(table.owner))
    for owner, batch in late_tables(text):
        done = checkpoint(owner).committed_numbers()
        if batch is not None and batch not in done:
            detail = f"there are {done[0]} to {done[-1]}" if done else "none has been committed yet"
            raise InputFault(
                f"the {owner} has no micro-batch {batch} in its log",
                detail=detail,
                hint=f"SHOW BATCHES OF {owner};",
                span=owner.span,
                code="UNKNOWN_BATCH",
            )


def _check(table: StateTable, checkpoint: Checkpoint) -> None:
    operators = checkpoint.operators()
    if table.metadata:
        return
    done = checkpoint.committed_numbers()
    if not done:
        raise InputFault(
            f"the {table.owner} has no state yet: no micro-batch has been committed",
            hint="AWAIT QUERY … IDLE; waits until the available input is processed",
            span=table.span,
            code="NO_STATE",
        )
    if not operators:
        raise RuleFault(
            f"the {table.owner} keeps no state",
            detail="groups, DISTINCT ON, joins of streams and stateful processors keep state",
            span=table.span,
            code="NO_STATE",
        )
    _check_batches(table, done)
    operator = _operator(table, operators)
    refusals = (*_of_processor(table, operator), *_of_join(table, operator), *_of_store(table, operator))
    for refusal in refusals:
        raise refusal
    if table.changes:
        _check_changes(table, operator, checkpoint)


def _check_batches(table: StateTable, done: list[int]) -> None:
    part = "changes" if table.changes else "batch"
    for number in (table.batch, *(table.changes or ())):
        if number is not None and number not in done:
            fact = f"the micro-batch {number} does not exist, or is not committed"
            there = f"committed micro-batches: {done[0]} to {done[-1]}"
            raise _unknown(table, part, fact, there, code="UNKNOWN_BATCH")
    first, last = table.changes or (0, None)
    if last is not None and last < first:
        fact = f"CHANGES FROM BATCH {first} TO BATCH {last} is in the wrong order"
        raise _refusal(table, part, fact, code="BAD_NUMBER")


def _operator(table: StateTable, operators: list[Operator]) -> Operator:
    listed = ", ".join(f"OPERATOR {o.number} ({o.name})" for o in operators)
    if table.operator is None:
        if len(operators) > 1:
            fact = f"the {table.owner} has {len(operators)} stateful operators"
            raise _refusal(table, "", fact, listed, code="AMBIGUOUS_STATE")
        return operators[0]
    operator = next((o for o in operators if o.number == table.operator), None)
    if operator is None:
        fact = f"the {table.owner} has no stateful operator {table.operator}"
        raise _unknown(table, "operator", fact, f"there is {listed}")
    return operator


def _of_processor(table: StateTable, operator: Operator) -> Iterator[StreamsqlError]:
    """What is wrong with the words for stateful processors."""
    if not operator.is_processor:
        for part in ("variable", "timers"):
            if part in dict(table.places):
                fact = f"{part.upper()} is for stateful processors; this operator is {operator.name}"
                yield _refusal(table, part, fact)
        return
    timed = str(operator.properties.get("timeMode", "None")) not in ("None", "NoTime")
    names = list(operator.variables)
    offered = " or ".join([f"VARIABLE {n}" for n in names] + (["TIMERS"] if timed else []))
    if table.timers and not timed:
        yield _refusal(table, "timers", "this stateful processor has no timers")
    if table.store or table.side:
        part = "store" if table.store else "side"
        fact = f"a state of a stateful processor is selected by VARIABLE, not by {part.upper()}"
        yield _refusal(table, part, fact, offered)
    if not table.variable and not table.timers:
        fact = "a stateful processor has several state variables: name one"
        yield _refusal(table, "", fact, offered, code="AMBIGUOUS_STATE")
    if table.variable and table.variable not in names:
        fact = f"this stateful processor has no state {table.variable}"
        yield _unknown(table, "variable", fact, did_you_mean(table.variable, names) or offered)


def _of_join(table: StateTable, operator: Operator) -> Iterator[StreamsqlError]:
    """What is wrong with the words for joins of streams."""
    if table.side and not operator.is_join:
        fact = f"SIDE is for joins of two streams; this operator is {operator.name}"
        yield _refusal(table, "side", fact)
    if operator.is_join and not table.side and not table.store:
        fact = "a stream-stream join keeps the rows of both sides: name one"
        yield _refusal(table, "", fact, "SIDE LEFT or SIDE RIGHT", code="AMBIGUOUS_STATE")
    if operator.is_join and table.side and table.changes:
        yield RuleFault(
            "the changes of a join's side cannot be read",
            detail="Spark reads the changes of one state store, and a side of a join uses two",
            hint="STORE 'left-keyWithIndexToValue' CHANGES …",
            span=table.place("changes"),
            code="NO_STATE",
        )


def _of_store(table: StateTable, operator: Operator) -> Iterator[StreamsqlError]:
    stores = [s.name for s in operator.stores]
    if table.store and table.store not in stores:
        fact = f"the operator {operator.number} ({operator.name}) has no store {table.store}"
        hint = did_you_mean(table.store, stores) or f"stores: {', '.join(stores)}"
        yield _unknown(table, "store", fact, hint)


def _refusal(table: StateTable, part: str, fact: str, hint: str = "", *, code: str = "") -> RuleFault:
    """part: of the statement, that the error is about; "" for the whole state."""
    return RuleFault(fact, hint=hint, span=table.place(part), code=code or "UNKNOWN_STATE")


def _unknown(table: StateTable, part: str, fact: str, hint: str, *, code: str = "") -> NameFault:
    return NameFault(fact, hint=hint, span=table.place(part), code=code or "UNKNOWN_STATE")


def _check_changes(table: StateTable, operator: Operator, checkpoint: Checkpoint) -> None:
    """Raise RuleFault when changes were not recorded. The HDFS-backed store records them in its delta files,
    RocksDB only in its changelog, if that is enabled.
    """
    folder = f"state/{operator.number}/0" + (f"/{table.store}" if table.store not in ("", "default") else "")
    if checkpoint.has_files(folder, ".zip") and not checkpoint.has_files(folder, ".changelog"):
        raise RuleFault(
            "the changes of this state were not recorded",
            detail="RocksDB writes only the whole state, unless it is configured otherwise",
            hint=f"SET {CHANGELOG} = true; before the query's first start",
            span=table.place("changes"),
            code="NO_STATE",
        )
