"""rate-micro-batch: the same numbered rows in every run. Options: Spark guide."""

from streamsql.connectors.base import MICRO_BATCH, OptionSpec
from streamsql.connectors.rate import Rate


class RateMicroBatch(Rate):
    name = "rate-micro-batch"
    help = "a fixed number of numbered rows in each micro-batch, the same in every run"
    triggers = MICRO_BATCH
    reads = (
        OptionSpec("rowsPerBatch", "rows in each micro-batch", "positive number", required=True),
        OptionSpec("numPartitions", "number of partitions", "positive integer"),
        OptionSpec(
            "startTimestamp", "first event time, in milliseconds since 1970", "number from 0", default="0"
        ),
        OptionSpec(
            "advanceMillisPerBatch",
            "event time between two micro-batches",
            "number of milliseconds",
            default="1000",
        ),
    )
