"""Records in a checkpoint the query that created it, and reports before a start what has changed since.

Beside Spark's own files a checkpoint folder contains the marker streamsql.json: the query's name and text,
and the result of `facts_of`. Spark ignores it. It is written once the query runs: Spark refuses to begin in a
folder that holds a file. The generation around the checkpoint holds a marker, too, which is written before.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from streamsql.definitions import promoted_name
from streamsql.errors import Note, RuleFault
from streamsql.language.redaction import redact
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Run
from streamsql.plan.streaming.query_changes import REFUSED, Change, changes, facts_of
from streamsql.runtime.checkpoints.checkpoint_files import MARKER, CheckpointFolder, LocalFiles
from streamsql.runtime.checkpoints.hadoop_files import HadoopFiles
from streamsql.runtime.engine.java_classes import elements
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.workspace.workspace_files import CHECKPOINT, check_version

_STATE_SETTINGS = {
    "spark.sql.shuffle.partitions": "partitions",
    "spark.sql.streaming.stateStore.providerClass": "state store",
}
"""The settings that a checkpoint with state keeps from its first micro-batch on, and their meaning."""

ANEW = (
    "FROM BEGINNING   reads all input again, with a new checkpoint",
    "FROM NOW         reads only new input, with a new checkpoint",
)
"""How a query starts with a new checkpoint."""


class Folder(CheckpointFolder):
    """The folder of a checkpoint, on any file system that Spark supports."""

    def __init__(self, spark: Any, folder: str) -> None:
        hadoop = HadoopFiles(spark)
        local = hadoop.local(folder)
        super().__init__(LocalFiles() if local else hadoop, (local or folder).rstrip("/"))
        self._spark, self._folder = spark, folder.rstrip("/")

    @property
    def above(self) -> Folder:
        """The folder that this one is in."""
        return Folder(self._spark, os.path.dirname(self.root))

    def write(self, name: str, text: str) -> None:
        """Create or replace a file at once, so that a crash leaves no part of it. Raises OSError."""
        self.files.write(f"{self.root}/{name}", text.encode())

    def add(self, name: str, text: str) -> None:
        """Write a new file at once, so that no reader sees a part of it. Raises OSError if it exists."""
        if self.has(name):
            raise OSError(f"{self._folder}/{name} exists")
        self.write(name, text)

    def remove_unfinished(self) -> None:
        """Remove what a killed process has left of the first entry of its logs, where there is none: the
        part of a file that was not yet renamed. Spark refuses to begin in a folder that holds any file
        (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY), although nothing was processed.
        """
        for log in ("offsets", "commits"):
            rests = self.names(log)
            if all(_is_unfinished(rest) for rest in rests):
                for rest in rests:
                    self.files.delete(f"{self.root}/{log}/{rest}")

    def set_aside(self) -> str:
        """Rename the folder, so that a new one can be created. Returns its new path; empty if there was no
        folder. Raises OSError.
        """
        if not self.has(""):
            return ""
        end = f"{_ASIDE}{datetime.now():%Y%m%d-%H%M%S}"
        self.files.rename(self.root, self.root + end)
        return self._folder + end

    def put_back(self, aside: str) -> None:
        """Rename the folder that `set_aside` has renamed back, unless a query has gone on in a new one.
        Raises OSError.
        """
        before = Folder(self._spark, aside)
        if self.newest("commits") > 0 or not before.has(""):
            return
        if self.has(""):
            self.files.delete(self.root)
        self.files.rename(before.root, self.root)

    def renamed(self, is_it: Callable[[Folder], bool]) -> str:
        """The path of a folder that `set_aside` has renamed, and for which a condition holds; "" if there is
        none.
        """
        begins = os.path.basename(self.root) + _ASIDE
        above = os.path.dirname(self._folder)
        found = (f"{above}/{name}" for name in self.above.names("") if name.startswith(begins))
        return next((path for path in found if is_it(Folder(self._spark, path))), "")


_ASIDE = ".before-"
"""What stands behind the name of a folder once it is renamed, before the time."""


def _is_unfinished(name: str) -> bool:
    """Whether a file of a log is a part that its writer has not renamed."""
    return name.startswith(".") and name.endswith(".tmp")


def write_marker(folder: Folder, plan: Run, facts: dict[str, Any], code: dict[str, str]) -> None:
    """Record in a checkpoint folder the query that owns it, and its Python code (digests by module). Raises
    OSError, exceptions of Java.
    """
    content = {
        "version": CHECKPOINT,
        "query": promoted_name(plan.query.name),
        "text": redact(plan.query.text),
        "facts": facts,
        "code": code,
    }
    folder.write(MARKER, json.dumps(content))


def facts_now(plan: Run, mode: str, frame: Any) -> dict[str, Any]:
    """The facts of a query, without the digest of its operators. frame: its result."""
    return facts_of(plan, mode, _state_of(frame))


def with_operators(facts: dict[str, Any], frame: Any, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a query, to be compared with those in its checkpoint. recorded: these; the digest of the
    operators takes Spark milliseconds, and is the recorded one where nothing else has changed.
    """
    if not facts["state"]:
        return facts
    same = all(recorded.get(name) == facts[name] for name in ("select", "streams", "state"))
    operators = (recorded.get("operators") if same else "") or _digest_of_operators(frame)
    return facts | {"operators": operators}


def recorded_facts(folder: Folder, plan: Run) -> dict[str, Any]:
    """The facts that the checkpoint of a query records; {} without any, or where they cannot be read."""
    content = folder.marker() or ({} if plan.query.checkpoint else folder.above.marker())
    return content.get("facts") or {}


def check_unchanged(
    plan: Run,
    folder: Folder,
    facts: dict[str, Any],
    settings: Any,
    *,
    defined: bool,
) -> tuple[Note, ...]:
    """Raise RuleFault when the query of a checkpoint has changed, unless the plan accepts that and Spark can
    resume. settings: Spark's; defined: whether START QUERY can start the query. Returns notes.
    """
    if folder.newest("offsets") < 0:
        return ()
    try:
        owner = folder.record() or ({} if plan.query.checkpoint else folder.above.record())
    except Exception as error:
        if plan.begins == "accept":
            return (
                Note("CHANGE_ACCEPTED", "the record of the query in its checkpoint is damaged; accepted"),
            )
        raise _damaged(plan, error, defined=defined) from error
    check_version(owner, CHECKPOINT, f"the checkpoint {plan.checkpoint}")
    then = owner.get("facts")
    if then is None:
        text = f"{plan.checkpoint} was created by another program, which may have run another query"
        return (Note("FOREIGN_CHECKPOINT", text),)
    changed = changes(then, facts)
    if not changed:
        return tuple(_state_setting_notes(folder, facts, settings))
    refused = any(c.effect == REFUSED for c in changed)
    if plan.begins != "accept" or refused:
        raise _changed(plan, str(owner.get("query")), changed, refused=refused, defined=defined)
    accepted = "changed since the checkpoint was created, and accepted"
    said = (Note("CHANGE_ACCEPTED", f"{accepted}: {c.what}") for c in changed)
    return (*said, *_state_setting_notes(folder, facts, settings))


def _changed(plan: Run, owner: str, changed: list[Change], *, refused: bool, defined: bool) -> RuleFault:
    name, same = (
        plan.query.owner or plan.query.name,
        owner.casefold() == promoted_name(plan.query.name).casefold(),
    )
    whose = f"the query {name}" if same else f"{name}, formerly {owner},"
    means = (
        "Spark cannot resume from this checkpoint: its state or sources do not match"
        if refused
        else "Spark would resume without a warning, and mix old results with those of the changed query"
    )
    where = "" if defined else "the unchanged statement, or "
    return RuleFault(
        f"{whose} has changed since its checkpoint was created",
        detail="\n".join([*(c.what for c in changed), means]),
        hint=where + _ways(plan, defined=defined, resumes=not refused),
        span=plan.body_span,
        code="CHECKPOINT_CHANGED",
    )


def _damaged(plan: Run, error: Exception, *, defined: bool) -> RuleFault:
    """The fault of a marker that cannot be read."""
    reason = str(error) if isinstance(error, ValueError) else translate(error).message
    return RuleFault(
        f"the checkpoint of {plan.query.owner or plan.query.name} has a damaged record of its query",
        detail=f"{plan.checkpoint}/{MARKER} cannot be read: {reason}\n"
        "so it is not known whether the query has changed since its checkpoint was created",
        hint=_ways(plan, defined=defined, resumes=True),
        span=plan.body_span,
        code="DAMAGED_CHECKPOINT",
    )


def _ways(plan: Run, *, defined: bool, resumes: bool) -> str:
    """What can be typed where the query of a checkpoint is not the one that is to be started."""
    name = plan.query.owner or plan.query.name
    where = f"START QUERY {quote_name(name)} with" if defined else "add before its SELECT"
    ways = (*ANEW, "ACCEPT CHANGES   resumes from the old checkpoint") if resumes else ANEW
    return "\n".join([f"{where} one of", *ways])


def _state_setting_notes(folder: Folder, facts: dict[str, Any], settings: Any) -> Iterator[Note]:
    """Notes about settings that a checkpoint with state keeps, although they have been changed."""
    if not facts["state"]:
        return
    try:
        conf = json.loads(folder.read(f"offsets/{folder.newest('offsets')}").split("\n")[1])["conf"]
    except Exception:  # incomplete, or of another version, which Spark itself reports
        return
    for key, what in _STATE_SETTINGS.items():
        now, then = settings.get(key), conf.get(key)
        if then and then != now:
            now, then = (v.rpartition(".")[2] for v in (now, then))
            begun = f"{what} of the state: {then}, as when its checkpoint was created"
            yield Note("SETTING_OF_CHECKPOINT", f"{begun}; {key} = {now} applies to new checkpoints only")


def _state_of(frame: Any) -> list[dict[str, Any]] | None:
    """The stateful operators of a streaming DataFrame; None when they cannot be determined."""
    try:
        return list(_operators(frame._jdf.queryExecution().analyzed()))
    except Exception:  # an unknown kind of plan
        return None


def _digest_of_operators(frame: Any) -> str:
    """A digest of what the stateful operators and joins of a streaming DataFrame compute, and of which
    columns, once Spark has left out those that are not needed; "" when that cannot be determined. Their texts
    may hold secrets.
    """
    try:
        optimizer = frame._jdf.sparkSession().sessionState().optimizer()
        texts = "\n".join(_written(optimizer.execute(frame._jdf.queryExecution().analyzed())))
        return hashlib.sha256(texts.encode()).hexdigest()
    except Exception:  # an unknown kind of plan
        return ""


_NUMBER_OF_COLUMN = re.compile(r"#\d+L?")


def _from_below(plan: Any) -> Iterator[tuple[str, Any, list[Any]]]:
    """The nodes of a plan whose rows are those of a stream, each after those below it: (the kind of a node,
    the node, its children).
    """
    if plan.isStreaming():
        children = elements(plan.children())
        for child in children:
            yield from _from_below(child)
        yield plan.getClass().getSimpleName(), plan, children


def _written(plan: Any) -> Iterator[str]:
    for kind, node, children in _from_below(plan):
        if kind == "Join" or _OPERATORS.get(kind) == "processor":
            # Its state may have all columns of its input.
            columns = (
                f"{c.name()} {c.dataType().simpleString()}" for n in children for c in elements(n.output())
            )
            yield f"{_text(node)} of {', '.join(columns)}"
        elif kind == "Aggregate" or kind in _OPERATORS:
            yield _text(node)


def _text(plan: Any) -> str:
    """A node of a plan, without the numbers that Spark gives to columns anew in each plan."""
    return _NUMBER_OF_COLUMN.sub("", plan.simpleString(2**31 - 1))


_OPERATORS = {
    "Deduplicate": "deduplication",
    "DeduplicateWithinWatermark": "deduplication within the watermark",
    "GlobalLimit": "limit",
    "TransformWithState": "processor",
    "TransformWithStateInPySpark": "processor",
    "FlatMapGroupsWithState": "processor",
    "FlatMapGroupsInPandasWithState": "processor",
}


def _operators(plan: Any) -> Iterator[dict[str, Any]]:
    for kind, node, children in _from_below(plan):
        if kind == "Aggregate":
            values = [v for e in elements(node.aggregateExpressions()) for v in _buffers(e)]
            yield {"kind": "aggregation", "keys": _types(node.groupingExpressions()), "values": values}
        elif kind == "Join" and all(c.isStreaming() for c in children):
            yield {"kind": "join", "keys": [], "values": []}
        elif kind == "Distinct":
            yield {"kind": "aggregation", "keys": _types(node.output()), "values": []}
        elif kind in _OPERATORS:
            keys = _types(node.keys()) if kind.startswith("Deduplicate") else []
            yield {"kind": _OPERATORS[kind], "keys": keys, "values": []}


def _types(expressions: Any) -> list[str]:
    return [expression.dataType().simpleString() for expression in elements(expressions)]


def _buffers(expression: Any) -> Iterator[str]:
    """The types of the aggregation buffers of an expression."""
    if expression.getClass().getSimpleName() == "AggregateExpression":
        yield from (
            f.dataType().simpleString() for f in expression.aggregateFunction().aggBufferSchema().fields()
        )
        return
    for child in elements(expression.children()):
        yield from _buffers(child)
