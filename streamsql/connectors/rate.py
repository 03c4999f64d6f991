"""rate: numbered rows at a steady speed. Options: Spark guide, "Rate source"."""

from streamsql.calls import Node
from streamsql.catalog import Stream
from streamsql.connectors.base import MICRO_BATCH, Connector, OptionSpec, Places, read_stream, with_options
from streamsql.language.statements.base import Column


class Rate(Connector):
    name = "rate"
    help = "numbered rows at a steady speed"
    fixed_columns = (Column("timestamp", "TIMESTAMP"), Column("value", "BIGINT"))
    triggers = MICRO_BATCH | {"continuous"}
    reads: tuple[OptionSpec, ...] | None = (
        OptionSpec("rowsPerSecond", "rows made each second", "number", default="1"),
        OptionSpec("rampUpTime", "how long until full speed", "duration", default="0s"),
        OptionSpec("numPartitions", "partitions of the rows", "number"),
    )

    def source(self, stream: Stream, places: Places) -> Node:
        return with_options(read_stream(self.name), stream.options).call("load")
