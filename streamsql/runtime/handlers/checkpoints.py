"""SHOW BATCHES and DESCRIBE CHECKPOINT: read the metadata of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

from streamsql.errors import Note
from streamsql.guard import informing
from streamsql.language.statements.checkpoint import DescribeCheckpoint, Owner, ShowBatches
from streamsql.language.struct_types import in_capitals
from streamsql.plan.lowering.stateful_calls import STATE_FORMAT
from streamsql.results import InfoRows, Rows
from streamsql.runtime.checkpoints.checkpoint_log import (
    DETAILED,
    PROVIDER,
    RETAINED,
    Batch,
    Checkpoint,
    Operator,
)
from streamsql.runtime.checkpoints.hadoop_files import open_checkpoint
from streamsql.runtime.checkpoints.offsets import kind_of, step
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.moments import shown
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import session_zone, size_text
from streamsql.runtime.parts import SessionParts
from streamsql.secrets import redact_option

_COLUMNS = ("batch", "status", "planned at", "watermark", "offsets", "rows in", "ms")
_MATTERS = ("batch", "status", "rows in", "ms", "offsets", "watermark", "planned at")
_PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDERS = {
    "HDFSBackedStateStoreProvider": "HDFS-backed: memory and delta files",
    "RocksDBStateStoreProvider": "RocksDB",
}


def show_batches(parts: SessionParts, statement: ShowBatches) -> Rows:
    """The micro-batches of the log, oldest first. Values that neither the log nor the console has are
    empty.
    """
    checkpoint = open_checkpoint(parts, statement.owner)
    query = _query_of(statement.owner, checkpoint, parts)
    running = parts.queries.all.get(query.casefold())
    if running is not None:
        running.catch_up()
    counts = parts.histories.of(query).done if query else {}
    # One more than is shown: the first one starts where that ends.
    batches = checkpoint.batches(statement.last + 1 if statement.last else None)
    rows, zone = [], session_zone(parts)
    for at, batch in enumerate(batches):
        if statement.last and len(batches) > statement.last and at == 0:
            continue
        before = batches[at - 1] if at else None
        numbers = counts.get((checkpoint.id, batch.number), (None, None)) if batch.committed else (None, None)
        planned = batch.planned
        rows.append(
            (
                batch.number,
                batch.status,
                _time(planned.at, zone) if planned else "",
                _time(planned.watermark, zone) if planned else "",
                _steps(before, batch),
                *numbers,
            )
        )
    notes = (*_how_many(checkpoint, parts), *_damage(batches))
    right = (True, False, False, False, False, True, True)
    return InfoRows(notes, _COLUMNS, rows, right, matters=_MATTERS)


def _query_of(owner: Owner, checkpoint: Checkpoint, parts: SessionParts) -> str:
    """The name of the query of this console that owns a checkpoint; "" when none does."""
    if owner.query:
        return parts.catalog.query(owner.query).name
    name = str(checkpoint.marker().get("query", ""))
    query = parts.catalog.queries.get(name.casefold())
    return query.name if query else ""


def _how_many(checkpoint: Checkpoint, parts: SessionParts) -> Iterator[Note]:
    numbers = checkpoint.planned_numbers()
    if not numbers:
        yield Note("MICRO_BATCHES", "no micro-batch has been planned yet")
        return
    what = "1 micro-batch is" if len(numbers) == 1 else f"{len(numbers)} micro-batches are"
    said = f"{what} in the log: {_range(numbers)}"
    if numbers[0] > 0:
        retained = parts.settings.start_conf().get(RETAINED, "100")
        said += f"; Spark keeps the newest {retained} and has removed those before"
    yield Note("MICRO_BATCHES", said)
    if any(after - before > 1 for before, after in pairwise(numbers)):
        text = "some numbers are missing: asynchronous progress tracking records only some"
        yield Note("MICRO_BATCHES", text)


def _range(numbers: list[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _damage(batches: Iterable[Batch]) -> Iterator[Note]:
    damaged = (batch for batch in batches if batch.damage)
    return (Note("DAMAGED_MICRO_BATCH", f"micro-batch {b.number}: {b.damage}") for b in damaged)


def _time(milliseconds: int | None, zone: str) -> str:
    """A time of the log, to the second."""
    return "" if milliseconds is None else shown(milliseconds // 1_000 * 1_000, zone)


def _steps(before: Batch | None, batch: Batch) -> str:
    if batch.planned is None:
        return ""
    old = before.planned.offsets if before and before.planned else {}
    steps = {source: step(old.get(source), end) for source, end in batch.planned.offsets.items()}
    if list(steps) == ["0"]:
        return steps["0"]
    return "; ".join(f"{source}: {said}" for source, said in steps.items())


# ---- DESCRIBE CHECKPOINT ------------------------------------------------------------------------


def describe_checkpoint(parts: SessionParts, statement: DescribeCheckpoint) -> Rows:
    """The contents of a checkpoint as pairs of property and value."""
    checkpoint = open_checkpoint(parts, statement.owner)
    batches = checkpoint.batches(DETAILED)
    pairs: list[tuple[str, Any]] = [("folder", checkpoint.folder), *_whose(checkpoint)]
    pairs += _of_log(checkpoint, batches, session_zone(parts))
    newest = next((b for b in reversed(batches) if b.planned), None)
    conf = dict(newest.planned.conf) if newest and newest.planned else {}
    if newest:
        pairs += _sources(checkpoint, newest)
    pairs.append(("shuffle partitions", conf.pop(_PARTITIONS, "")))
    operators = checkpoint.operators()
    provider = conf.pop(PROVIDER, "").rpartition(".")[2]
    if operators:
        pairs.append(("state store", PROVIDERS.get(provider, provider)))
    columns = _StateColumns(parts, checkpoint.folder, batches)
    for operator in operators:
        pairs += _operator(operator, columns)
    size, files = checkpoint.size()
    pairs += [("versions", _versions(batches)), ("size", f"{size_text(size)} in {files} files")]
    pairs += [(key, redact_option(key, value)) for key, value in sorted(conf.items())]
    shown = [p for p in pairs if p[1] not in ("", None)]
    notes = tuple(_damage(batches))
    return InfoRows(notes, ("property", "value"), shown, (False, False))


def _whose(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    yield "query id", checkpoint.id or "not known: the file metadata is missing or damaged"
    marker = checkpoint.marker()
    if marker:
        yield "query", f"{marker.get('query', '')} (streamsql)"
        yield "statement", " ".join(str(marker.get("text", "")).split())


def _of_log(checkpoint: Checkpoint, batches: list[Batch], zone: str) -> Iterator[tuple[str, Any]]:
    if not batches:
        yield "micro-batches", "none has been planned yet"
        return
    committed = set(checkpoint.committed_numbers())
    numbers = sorted({*checkpoint.planned_numbers(), *committed, *(b.number for b in batches)})
    yield "micro-batches", f"{len(numbers)} in the log: {_range(numbers)}"
    done = [b.number for b in batches if b.committed]
    yield "last committed", done[-1] if done else max(committed, default="none")
    damaged = [b.number for b in batches if b.status == "damaged"]
    planned = [n for n in numbers if n not in committed and n not in damaged]
    yield "planned, not committed", _listed(planned)
    yield "damaged", _listed(damaged)
    marks = [b.planned.watermark for b in batches if b.planned]
    marks += [b.committed.watermark for b in batches if b.committed]
    yield "watermark", _time(max((m for m in marks if m is not None), default=None), zone)
    yield "unfinished files", ", ".join(checkpoint.unfinished())
    written = checkpoint.last_written()
    yield "last written", _time(None if written is None else int(written * 1000), zone)


def _listed(numbers: list[int]) -> str:
    more = ", …" if len(numbers) > DETAILED else ""
    return ", ".join(map(str, numbers[:DETAILED])) + more


def _sources(checkpoint: Checkpoint, newest: Batch) -> Iterator[tuple[str, str]]:
    assert newest.planned
    for source, offset in newest.planned.offsets.items():
        file = checkpoint.file_read(source)
        kind = f"files such as {file}" if file else kind_of(offset)
        up_to = "nothing read yet" if offset is None else f"up to {step(offset, offset)}"
        yield f"source {source}", ": ".join(filter(None, (kind, up_to)))


class _StateColumns:
    """The columns of states, as Spark's state reader has them. Starts Spark, if need be."""

    def __init__(self, parts: SessionParts, folder: str, batches: list[Batch]) -> None:
        self.parts = parts
        self.folder = folder
        self.format = max((b.committed.version for b in batches if b.committed), default=1)

    @cached_property
    def session(self) -> Any:
        session = own_session(self.parts.spark)
        session.conf.set(STATE_FORMAT, str(self.format))  # Spark reads no other format
        return session

    def of(self, operator: int, **state: str) -> str:
        """The columns of one state of an operator; empty where none was committed. state: the options of
        Spark's reader that choose it.
        """
        reader = self.session.read.format("statestore").options(operatorId=str(operator), **state)
        schema = informing(lambda: reader.load(self.folder).schema, None)
        parts = [field for field in schema or () if field.name != "partition_id"]
        return ", ".join(f"{field.name} {_type(field.dataType)}" for field in parts)


def _type(kind: Any) -> str:
    """The type of a part of a state; of a struct, the columns in it."""
    fields = [f for f in getattr(kind, "fields", ()) if f.name != "__dummy__"]
    columns = (f"{f.name} {in_capitals(f.dataType.simpleString())}" for f in fields)
    return f"({', '.join(columns)})" if fields else in_capitals(kind.simpleString())


def _operator(operator: Operator, columns: _StateColumns) -> Iterator[tuple[str, str]]:
    name = f"state {operator.number}"
    yield name, operator.name or "an operator without metadata (written before Spark 4.0)"
    kinds = operator.variables
    for store in operator.stores:
        parts = f"{store.partitions} partition{'' if store.partitions == 1 else 's'}"
        yield f"{name} store", ", ".join(filter(None, (store.name, parts)))
        if not kinds and store.name:
            yield f"{name} {store.name}", columns.of(operator.number, storeName=store.name)
    for variable, kind in kinds.items():
        yield f"{name} {variable}", f"{kind}, {columns.of(operator.number, stateVarName=variable)}"


def _versions(batches: list[Batch]) -> str:
    """The format versions of the log and of the state; the state's is that of the commits."""
    offsets = {b.planned.version for b in batches if b.planned}
    commits = {b.committed.version for b in batches if b.committed}
    formats = (("offset log", offsets), ("commit log", commits), ("state checkpoint", commits))
    return ", ".join(f"{name} {max(versions)}" for name, versions in formats if versions)


DIRECT: Answers = {ShowBatches: show_batches, DescribeCheckpoint: describe_checkpoint}
