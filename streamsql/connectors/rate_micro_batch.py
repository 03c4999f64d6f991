"""rate-micro-batch: the same numbered rows in every run. Options: Spark guide."""

from streamsql.connectors.base import MICRO_BATCH, option_table
from streamsql.connectors.rate import Rate


class RateMicroBatch(Rate):
    name = "rate-micro-batch"
    help = "a fixed number of numbered rows in each micro-batch, the same in every run"
    triggers = MICRO_BATCH
    reads = option_table("""
        rowsPerBatch: required, positive number -- rows in each micro-batch
        numPartitions: positive integer -- number of partitions
        startTimestamp: number from 0 = 0 -- first event time, in milliseconds since 1970
        advanceMillisPerBatch: number of milliseconds = 1000 -- event time between two micro-batches
    """)
