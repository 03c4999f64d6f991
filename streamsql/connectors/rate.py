"""rate: numbered rows at a constant rate. Options: Spark guide, "Rate source"."""

from streamsql.calls import Node
from streamsql.connectors.base import (
    MICRO_BATCH,
    Connector,
    OptionSpec,
    Places,
    option_table,
    read_stream,
    with_options,
)
from streamsql.definitions import Stream
from streamsql.language.statements.base import Column


class Rate(Connector):
    name = "rate"
    help = "numbered rows at a constant rate"
    fixed_columns = (Column("timestamp", "TIMESTAMP"), Column("value", "BIGINT"))
    triggers = MICRO_BATCH | {"continuous"}
    reads: tuple[OptionSpec, ...] | None = option_table("""
        rowsPerSecond: positive number = 1 -- rows per second
        rampUpTime: duration = 0s -- time until the full rate is reached
        numPartitions: positive integer -- number of partitions
    """)

    def source(self, stream: Stream, places: Places) -> Node:
        return with_options(read_stream(self.name), stream.options).call("load")
