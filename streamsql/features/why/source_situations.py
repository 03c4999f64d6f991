"""Situations at the source: no data, data that is not read yet, everything read before."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

from streamsql.definitions import Stream
from streamsql.errors import did_you_mean
from streamsql.features.why import proposals
from streamsql.features.why.verdict import Fact, Verdict, are, goes_on, situation, streams, unfed, were
from streamsql.language.durations import seconds
from streamsql.language.tokens import quote_name
from streamsql.results import counted as count
from streamsql.runtime.checkpoints.checkpoint_files import batch_under_way
from streamsql.runtime.checkpoints.checkpoint_log import DETAILED
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.evidence.source_files import NESTED, OTHER, UNMATCHED, Listing
from streamsql.runtime.source_states import source_state

_OVER_TIME = ("rate", "socket")


@situation("NOT_RECEIVED", of=streams)
def not_received(evidence: Evidence, stream: Stream) -> Verdict | None:
    """(n) The console itself receives what a stream reads, and cannot at the moment."""
    state = source_state(evidence.parts, stream)
    if state is None or not state.fault:
        return None
    place = f" from {state.url}" if state.url else ""
    return Verdict(
        sentence=f"{stream.name} receives nothing{place}: {state.fault}",
        facts=(*state.facts, ("to resolve it", "the console tries again until it can")),
        proposal=f"DESCRIBE STREAM {quote_name(stream.name)};",
    )


@situation("NO_DATA", unfed)
def no_data(evidence: Evidence) -> Verdict | None:
    """(a) A source has no data that the query could read, and nothing was read."""
    verdicts = [_empty(evidence, stream) for stream in evidence.streams]
    if not verdicts or not all(verdicts) or verdicts[0] is None:
        return None
    rows, _ = _under_older_checkpoint(evidence)
    older: tuple[Fact, ...] = (("rows read under an older checkpoint", rows),) if rows else ()
    return replace(verdicts[0], facts=(*verdicts[0].facts, *older))


def _empty(evidence: Evidence, stream: Stream) -> Verdict | None:
    """That a source has no data at all; None when it has some, or cannot be asked."""
    files = evidence.files(stream)
    if files is not None:
        return None if files.matching else _of_folder(evidence, stream, files)
    offsets = evidence.offsets(stream)
    if offsets is not None:
        return _of_topic(evidence, stream, offsets)
    if evidence.plan.transient and stream.connector in _OVER_TIME and not evidence.parts.config.interactive:
        return Verdict(
            sentence=f"no data: {stream.name} had no rows at this moment, and {stream.connector} gives rows "
            "over time",
            proposal=proposals.join(
                f"CREATE LIVE TABLE {quote_name(f'{stream.name}_rows')} AS {evidence.query.text}"
            ),
        )
    state = source_state(evidence.parts, stream)
    if state is not None and state.empty:
        return Verdict(
            sentence=f"no data: {stream.name} has received no message yet ({state.url})",
            facts=(*state.facts, *_since(evidence)),
            proposal=f"DESCRIBE STREAM {quote_name(stream.name)};",
        )
    if stream.connector == "socket":
        place = f"{stream.option('host')}:{stream.option('port')}"
        return Verdict(
            sentence=f"no data: {place} is connected and has sent no line since the query started",
            facts=(("source", f"socket {place}"), *_since(evidence), ("to resolve it", _LINE)),
            proposal=proposals.previewed(stream),
        )
    return None


_FILE = "a file in that folder, or the folder that has the files: OPTIONS (path …)"
_NAME = "a complete file needs a name without _ or . in front: mv {} {}"
_LINE = "the server has to send a line, with a line feed at its end; nc -lk PORT sends what is typed"


def _since(evidence: Evidence) -> tuple[Fact, ...]:
    if evidence.running is None:
        return ()
    return (("query started", evidence.running.started.isoformat(" ", "seconds")),)


def _of_folder(evidence: Evidence, stream: Stream, listed: Listing) -> Verdict:
    if stream.connector == "values":
        return Verdict(
            sentence=f"no data: nothing was inserted into {stream.name} yet",
            facts=_since(evidence),
            proposal=proposals.inserted(evidence, stream),
        )
    facts: list[Fact] = [("folder", listed.folder)]
    for option in ("pathGlobFilter", "maxFileAge"):
        if stream.option(option):
            facts.append((option, stream.option(option)))
    passed_over = [(why, files) for why, files in listed.passed_over.items() if files]
    if not listed.exists or not passed_over:
        what = "is empty" if listed.exists else "does not exist"
        near = _near(listed.folder)
        change = proposals.with_options(stream, {"path": near}) if near else None
        if near:
            facts.append(("similar folder with files", near))
        return Verdict(
            sentence=f"no data: the folder {listed.folder} of {stream.name} {what}",
            facts=(*facts, ("to resolve it", _FILE)),
            proposal=proposals.replaced(evidence, change) if change else proposals.previewed(stream),
        )
    for why, files in passed_over:
        example = os.path.basename(sorted(files)[0])
        facts.append((f"files not read: {why}", f"{len(files)}, such as {example}"))
    why, files = max(passed_over, key=lambda kind: len(kind[1]))
    change = _reading(stream, listed)
    if change is None:
        example = os.path.basename(sorted(files)[0])
        facts.append(("to resolve it", _NAME.format(example, example.lstrip("._"))))
    return Verdict(
        sentence=f"no data: the folder {listed.folder} has no file that {stream.name} reads; "
        f"{count(len(files), 'file')} there {are(len(files))} {why}",
        facts=tuple(facts),
        proposal=proposals.replaced(evidence, change) if change else proposals.previewed(stream),
    )


def _reading(stream: Stream, listed: Listing) -> Stream | None:
    """The stream with the options under which it reads files that are there."""
    if unmatched := listed.passed_over[UNMATCHED]:
        ending = os.path.splitext(min(unmatched))[1]
        return proposals.with_options(stream, {"pathGlobFilter": f"*{ending}" if ending else None})
    if other := listed.passed_over[OTHER]:
        ending = os.path.splitext(min(other))[1]
        return proposals.with_options(stream, {"path": os.path.join(listed.folder, f"*{ending}")})
    if listed.passed_over[NESTED]:
        return proposals.with_options(stream, {"recursiveFileLookup": "true"})
    return None


def _near(folder: str) -> str:
    """A folder beside, of a similar name, that has files."""
    parent, name = os.path.split(folder.rstrip("/"))
    try:
        folders = [e.name for e in os.scandir(parent or ".") if e.is_dir() and any(os.scandir(e.path))]
    except OSError:
        return ""
    hint = did_you_mean(name, folders)
    near = next((n for n in folders if n in hint and n != name), "") if hint else ""
    return os.path.join(parent, near) if near else ""


def _of_topic(
    evidence: Evidence, stream: Stream, offsets: dict[tuple[str, int], tuple[int, int]]
) -> Verdict | None:
    messages = sum(end - first for first, end in offsets.values())
    topics = ", ".join(sorted({topic for topic, _ in offsets}))
    begins = stream.option("startingOffsets", "earliest").casefold()
    facts: list[Fact] = [("topic", topics), ("partitions", len(offsets)), ("messages there", messages)]
    facts += [("startingOffsets", begins), *_since(evidence)]
    if not messages:
        return Verdict(
            sentence=f"no data: the topic {topics} has no messages",
            facts=(*facts, ("to resolve it", "a message, or the topic that has them: see the list")),
            proposal=f"SHOW TOPICS FROM {quote_name(stream.name)};",
        )
    began = _kafka_end(evidence)
    if begins != "latest" or any(end > began.get(part, end) for part, (_, end) in offsets.items()):
        return None
    change = proposals.with_options(stream, {"startingOffsets": "earliest"})
    return Verdict(
        sentence=f"no data: {stream.name} begins with the latest message of {topics}, and none has come "
        f"since; {count(messages, 'older message')} there {are(messages)} not read",
        facts=tuple(facts),
        proposal=proposals.replaced(evidence, change),
    )


def _kafka_end(evidence: Evidence) -> dict[tuple[str, int], int]:
    """The offsets up to which the query has planned to read, by its last report or its checkpoint."""
    ends = [s.get("endOffset") for s in evidence.last.get("sources", [])]
    if not ends and evidence.checkpoint:
        newest = next((b.planned for b in reversed(evidence.checkpoint.batches(1)) if b.planned), None)
        ends = list(newest.offsets.values()) if newest else []
    offsets: dict[tuple[str, int], int] = {}
    for end in ends:
        try:
            value: Any = json.loads(end) if isinstance(end, str) else end
            for topic, parts in value.items():
                offsets.update({(topic, int(p)): int(n) for p, n in parts.items()})
        except (ValueError, AttributeError, TypeError):
            continue
    return offsets


LONG = 5.0
"""Seconds that a micro-batch of a query that gives rows may take without a word."""


# ---- data that is there and not read ------------------------------------------------------------


@situation("NOT_READ_YET", goes_on)
def not_read_yet(evidence: Evidence) -> Verdict | None:
    """(b) Data is there that the query has not read."""
    for stream in evidence.streams:
        waiting = _unread(evidence, stream)
        if waiting:
            return _backlog(evidence, stream, *waiting)
    return _first_runs(evidence)


def _first_runs(evidence: Evidence) -> Verdict | None:
    """The first micro-batch has read all that is there, and has not ended."""
    begun = None if evidence.took_input or not evidence.streams else _batch_under_way(evidence)
    if begun is None:
        return None
    batch = batch_under_way(evidence.plan.checkpoint).replace(": ", " of ") or "a micro-batch"
    return Verdict(
        sentence=f"{batch} has run for {brief(begun)} and has not ended yet",
        facts=(*_since(evidence), ("micro-batch under way for", brief(begun))),
        proposal="" if evidence.plan.transient else f"AWAIT QUERY {quote_name(evidence.name)} IDLE;",
    )


def _unread(evidence: Evidence, stream: Stream) -> tuple[int, str] | None:
    """(how many files or messages were not read, the word for them)."""
    files = evidence.files(stream)
    if files is not None:
        left = files.matching.keys() - evidence.read.keys()
        what = "INSERT" if stream.connector == "values" else "file"
        return (len(left), what) if left else None
    offsets = evidence.offsets(stream)
    if offsets is None:
        return None
    ends = _kafka_end(evidence)
    left_behind = sum(end - ends[part] for part, (_, end) in offsets.items() if part in ends)
    return (left_behind, "message") if left_behind > 0 else None


def _backlog(evidence: Evidence, stream: Stream, number: int, what: str) -> Verdict | None:
    trigger, begun = evidence.query.trigger, _batch_under_way(evidence)
    if begun is not None and begun < LONG and evidence.rows_out:
        return None
    every = seconds(trigger.interval) if trigger and trigger.kind == "every" else 0.0
    limits = [k for k, _ in stream.options if k.casefold().startswith("max") and "trigger" in k.casefold()]
    facts: list[Fact] = [(f"{what}s not read yet", number)]
    facts += [(limit, stream.option(limit)) for limit in limits]
    if begun is not None:
        facts.append(("micro-batch under way for", brief(begun)))
    took = [report.get("durationMs", {}).get("triggerExecution", 0) for report in evidence.reports]
    if limits and sum(took):
        most = stream.option(limits[0])
        per_batch = int(most) if most.isdigit() else 1
        from_one_to_next = max(sum(took) / 1_000 / len(took), every)
        facts.append(("done in about", brief(number / per_batch * from_one_to_next)))
    if trigger and every and begun is None:
        left = every - time.time() % every  # triggers fall on multiples of the interval
        facts += [("trigger", f"EVERY {trigger.interval}"), ("next micro-batch in", brief(left))]
        why = f"the next micro-batch begins in {brief(left)}"
    elif limits and evidence.reports:
        why = f"a micro-batch reads as much as {limits[0]}, {stream.option(limits[0])}, allows"
    elif begun is not None:
        why = f"a micro-batch has run for {brief(begun)} and has not ended yet"
    else:
        return None
    name = quote_name(evidence.name)
    drain = proposals.join(f"STOP QUERY {name} WITH DRAIN", f"START QUERY {name}")
    return Verdict(
        sentence=f"{count(number, what)} of {stream.name} {are(number)} not read yet: {why}",
        facts=tuple(facts),
        proposal="" if evidence.plan.transient else drain,
    )


def _batch_under_way(evidence: Evidence) -> float | None:
    """Seconds since the micro-batch that runs was planned; None when none runs."""
    checkpoint = evidence.checkpoint
    planned = checkpoint.batches(1) if checkpoint else []
    if not planned or planned[-1].committed or not planned[-1].planned or not planned[-1].planned.at:
        return None
    return max(0.0, time.time() - planned[-1].planned.at / 1_000)


def _rests(evidence: Evidence) -> bool:
    """Whether the newest run of a query with a checkpoint has read nothing."""
    started = evidence.running is not None and not evidence.plan.transient
    return started and not evidence.took_input and evidence.checkpoint is not None


@situation("ALL_READ_BEFORE", _rests)
def all_read_before(evidence: Evidence) -> Verdict | None:
    """(m) Nothing was read in this run, for all that is there was read before it started."""
    running, checkpoint = evidence.running, evidence.checkpoint
    assert running is not None and checkpoint is not None
    if running.plan.begins == "now":
        return Verdict(
            sentence=f"nothing was read: {evidence.name} was started FROM NOW, and nothing has come since",
            facts=_since(evidence),
            proposal=proposals.restart(evidence, "FROM BEGINNING"),
        )
    began = running.started.timestamp() * 1_000
    newest = checkpoint.batches(DETAILED)
    before = [b for b in newest if b.committed and b.planned and (b.planned.at or 0) < began]
    listings = [evidence.files(s) for s in evidence.streams]
    if not before or any(_unread(evidence, s) for s in evidence.streams) or not evidence.streams:
        return None
    if any(listings) and not any(files_of.matching for files_of in listings if files_of):
        return None
    done = evidence.parts.histories.of(evidence.name).done
    rows = sum(n[0] for key, n in done.items() if key[0] == checkpoint.id)
    last = before[-1].planned
    assert last is not None
    number = sum(n <= before[-1].number for n in checkpoint.committed_numbers())
    facts: list[Fact] = [*_since(evidence), ("micro-batches before", number), ("rows read before", rows)]
    if last.at:
        when = datetime.fromtimestamp(last.at / 1_000).isoformat(" ", "seconds")
        facts.append(("last micro-batch before", when))
    return Verdict(
        sentence=f"nothing new: all that the source has was read before this start, {count(rows, 'row')} in "
        f"{count(len(before), 'micro-batch')}",
        facts=tuple(facts),
        proposal=proposals.restart(evidence, "FROM BEGINNING") if evidence.rows_out == 0 else "",
    )


def _under_older_checkpoint(evidence: Evidence) -> tuple[int, int]:
    """The rows that the query has read under the checkpoint which it had before, and the micro-batches."""
    checkpoint = evidence.checkpoint
    if evidence.plan.transient or checkpoint is None:
        return 0, 0
    done = list(evidence.parts.histories.of(evidence.name).done.items())
    before = next((id for (id, _), _ in reversed(done) if id != checkpoint.id), None)
    read = [rows for (id, _), (rows, _) in done if id == before and rows]
    return sum(read), len(read)


@situation("OLDER_CHECKPOINT", _rests)
def older_checkpoint(evidence: Evidence) -> Verdict | None:
    """(l) Its checkpoint is new, and the rows went into an older one."""
    rows, batches = _under_older_checkpoint(evidence)
    if not rows or any(_unread(evidence, s) for s in evidence.streams):
        return None
    how = ", FROM NOW" if evidence.plan.begins == "now" else ""
    return Verdict(
        sentence=f"the checkpoint of {evidence.name} is new{how}, and no input has come since it began: "
        f"{count(rows, 'row')} {were(rows)} read under the checkpoint before it",
        facts=(
            *_since(evidence),
            ("rows read under the checkpoint before", rows),
            ("micro-batches under the checkpoint before", batches),
        ),
        proposal=proposals.restart(evidence, "FROM BEGINNING"),
    )
