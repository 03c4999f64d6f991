"""Writes one micro-batch to several sinks. EXPLAIN PYSPARK prints this code, so it is self-contained."""


class EachSink:
    """Writes every micro-batch to several sinks and reads its source once.

    pairs: for each sink, the function that selects its rows from the batch (or None), and the function
    (rows, batch_id) that writes them. The writers are idempotent: when a micro-batch is retried because
    one sink failed, the other sinks skip it.
    """

    def __init__(self, *pairs):
        self.pairs = pairs

    def write(self, batch, batch_id):
        batch.persist()
        try:
            for select, write in self.pairs:
                write(select(batch) if select else batch, batch_id)
        finally:
            batch.unpersist()


class BatchFiles:
    """Writes every micro-batch into its own sub-folder, batch=<query>-<batch_id>.

    A micro-batch that is retried overwrites its sub-folder, so that each row is written once. The
    query's id is that of its checkpoint: a new query never overwrites the files of another one.
    """

    def __init__(self, format, path, partition_by=()):
        self.format = format
        self.path = path
        self.partition_by = partition_by
        self.options = {}

    def option(self, key, value):
        self.options[key] = value
        return self

    def write(self, batch, batch_id):
        if batch.isEmpty():
            return
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        writer = batch.write.format(self.format).mode("overwrite").options(**self.options)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(f"{self.path}/batch={query[:8]}-{batch_id}")


def throw_away(batch, batch_id):
    """Computes a micro-batch and discards its rows."""
    batch.write.format("noop").mode("append").save()
