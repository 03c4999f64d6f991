"""What is known of one query: its progress, its checkpoint, its sources, and what probes find.

Each part is collected when a situation asks for it, once. What cannot be had is None.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from streamsql.connectors.registry import connector
from streamsql.definitions import Query, Stream
from streamsql.errors import StreamsqlError
from streamsql.language.durations import seconds
from streamsql.language.statements.base import Name, Watermark
from streamsql.language.statements.checkpoint import Owner
from streamsql.language.tokens import quote_name
from streamsql.plan.planner import start_plan
from streamsql.plan.plans import Run
from streamsql.plan.streaming.query_changes import Change, changes
from streamsql.plan.streaming.query_changes import facts_of as compared_facts
from streamsql.query_facts import Account
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.checkpoints.hadoop_files import open_checkpoint
from streamsql.runtime.checkpoints.query_marker import Folder
from streamsql.runtime.engine.moments import millis
from streamsql.runtime.engine.package_loader import can_load
from streamsql.runtime.evidence.probes import Probes
from streamsql.runtime.evidence.selects import Part, parts_of
from streamsql.runtime.evidence.source_files import Listing, files_read, listing
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.kafka_topics import offsets_now
from streamsql.runtime.queries.facts import facts_of
from streamsql.runtime.queries.run import GOING_ON, Running


@dataclass(frozen=True)
class EventTime:
    """A watermark that a query reads. relation: the stream, or what stands in FROM; delay: in seconds;
    newest: the newest event time that its data hold now, in milliseconds, None when that is not known.
    """

    relation: str
    column: str
    delay: float
    stream: Stream | None
    newest: int | None = None

    @property
    def watermark(self) -> int | None:
        """Where this input alone would have the watermark."""
        return None if self.newest is None else self.newest - int(self.delay * 1_000)


class Evidence:
    """plan: the query as it was planned; running: its newest run here, None when it has none."""

    def __init__(self, parts: SessionParts, plan: Run, running: Running | None) -> None:
        self.parts = parts
        self.plan = plan
        self.running = running
        self.probes = Probes(parts)
        self.asked_at = time.time()
        if running is not None:
            running.catch_up()

    # ---- the query ------------------------------------------------------------------------

    @property
    def query(self) -> Query:
        return self.plan.query

    @property
    def name(self) -> str:
        return self.plan.query.name

    @property
    def title(self) -> str:
        """What a person calls it."""
        return "the query" if self.plan.transient else self.plan.query.name

    @cached_property
    def zone(self) -> str:
        return str(self.parts.spark.conf.get("spark.sql.session.timeZone"))

    @cached_property
    def status(self) -> str:
        return self.running.status() if self.running else self.parts.workspace.past(self.name).status

    @property
    def goes_on(self) -> bool:
        return self.running is not None and (self.status in GOING_ON or self.plan.transient)

    @cached_property
    def changed(self) -> list[Change]:
        """What has changed in the query since its checkpoint was created, apart from its state operators."""
        if self.plan.transient or not self.plan.checkpoint:  # live tables over live tables have none
            return []
        then = Folder(self.parts.spark, self.plan.checkpoint).marker().get("facts")
        if not then:
            return []
        try:
            plan = start_plan(self.query, self.parts.context())
        except StreamsqlError:  # START QUERY tells
            return []
        return changes(then, compared_facts(plan, then["mode"], then["state"], then.get("operators", "")))

    @property
    def mode(self) -> str:
        return self.running.mode if self.running else self.plan.choices[0].mode

    @cached_property
    def query_parts(self) -> list[Part]:
        return parts_of(self.query.text, self.parts.catalog)

    @property
    def streams(self) -> list[Stream]:
        """The streams of a connector that it reads."""
        return [s for s in self.plan.reads.streams if s.connector]

    # ---- progress -------------------------------------------------------------------------

    @cached_property
    def reports(self) -> list[dict[str, Any]]:
        """The progress reports of this run that are kept, oldest first."""
        return self.running.reports.newest() if self.running else []

    @property
    def last(self) -> dict[str, Any]:
        """The newest of them; {} before the first."""
        return self.reports[-1] if self.reports else {}

    @property
    def last_with_rows(self) -> dict[str, Any]:
        """The newest report of a micro-batch that read rows; {} before the first."""
        return next((report for report in reversed(self.reports) if report.get("numInputRows")), {})

    @cached_property
    def account(self) -> Account:
        """What became of the rows that it has read since its checkpoint began."""
        return (facts_of(self.running) if self.running else self.parts.facts(self.name)).account

    @property
    def rows_in(self) -> int:
        return self.account.read.number

    @property
    def took_input(self) -> bool:
        """Whether this run has taken any input, even if a filter dropped it while it was read."""
        return bool(self.running and self.running.reports.took_input)

    @property
    def rows_out(self) -> int | None:
        """The rows that it has given to its sinks; None when they do not tell."""
        return self.account.out.number if self.account.out is not None else None

    @property
    def silent(self) -> bool:
        """Whether rows were read that no output has followed, as far as the sinks tell: in this run, or in
        all runs since the checkpoint began.
        """
        if self.running is None:
            return False
        if not self.took_input:
            return self.goes_on and bool(self.account.streams) and self.rows_out == 0
        return self.rows_out is None or self.running.reports.waiting is not None

    @property
    def state(self) -> list[dict[str, Any]]:
        """The stateful operators of the last report, or as they were when the last run ended."""
        if self.last:
            return list(self.last.get("stateOperators", []))
        return [{"operatorName": name, "numRowsTotal": rows} for name, rows in self.account.state]

    @property
    def state_rows(self) -> int:
        return self.account.held

    @property
    def watermark(self) -> int | None:
        return millis(self.account.watermark) or None

    @cached_property
    def newest(self) -> int | None:
        """The newest event time that the kept reports tell."""
        times = [millis(r.get("eventTime", {}).get("max")) for r in self.reports]
        return max((t for t in times if t is not None), default=None)

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        parts = self.parts
        owner = Owner(folder=Name(self.plan.checkpoint))
        try:
            return open_checkpoint(parts, owner)
        except StreamsqlError:
            return None

    # ---- sources --------------------------------------------------------------------------

    def files(self, stream: Stream) -> Listing | None:
        """The folder of a file stream, or of a values stream; None for others, and folders not listed."""
        if stream.connector == "values":
            return listing(stream, self.parts.places.values(stream.name))
        source = connector(Name(stream.connector))
        return listing(stream) if source.keeps_log and source.path_option else None

    @cached_property
    def read(self) -> dict[str, int]:
        """The files that it has read, with the time of their last change then, in milliseconds."""
        return files_read(self.checkpoint) if self.checkpoint else {}

    def offsets(self, stream: Stream) -> dict[tuple[str, int], tuple[int, int]] | None:
        """What Kafka has of the topics of a stream: (first, end) of each (topic, partition); None when the
        stream does not read Kafka, or the brokers do not answer.
        """
        asked = connector(Name(stream.connector)).brokers(stream)
        kafka = "org.apache.kafka.clients.admin.Admin"
        if not asked or not asked[1] or not can_load(self.parts.spark, kafka):
            return None
        return self.probes.tried(lambda: offsets_now(self.parts.spark, *asked, self.parts.cancel))

    # ---- event time -----------------------------------------------------------------------

    @cached_property
    def event_times(self) -> list[EventTime]:
        """The watermarks that it reads, without what their data hold."""
        times: list[tuple[str, Watermark | None, Stream | None]]
        times = [(stream.name, stream.watermark, stream) for stream in self.plan.reads.streams]
        times += [(r.name, r.watermark, None) for part in self.query_parts for r in part.block.relations]
        return [
            EventTime(name, watermark.column.value, seconds(watermark.delay), stream)
            for name, watermark, stream in times
            if name and watermark
        ]

    @cached_property
    def measured_times(self) -> list[EventTime]:
        """The same with the newest event time in the data of each, as far as probes can tell."""
        return [replace(time, newest=self._newest_of(time)) for time in self.event_times]

    def _newest_of(self, time: EventTime) -> int | None:
        if len(self.event_times) == 1 and self.newest is not None:
            return self.newest
        newest = f"max(unix_millis(CAST({quote_name(time.column)} AS TIMESTAMP)))"
        row = self.probes.row(f"SELECT {newest} FROM {quote_name(time.relation)}")
        return None if row is None or row[0] is None else int(row[0])


class StreamEvidence(Evidence):
    """What is known of a stream by itself, whoever reads it: its source and the data in it."""

    @property
    def goes_on(self) -> bool:
        return True

    @property
    def silent(self) -> bool:
        return True
