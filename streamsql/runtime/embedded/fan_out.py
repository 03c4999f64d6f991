"""One micro-batch to several sinks. EXPLAIN PYSPARK prints these into its programs, so they stand alone."""


class EachSink:
    """Writes every micro-batch to several sinks, while its source is read once.

    pairs: [the function that selects a sink's rows from the batch, or None; the function
    (rows, batch_id) that writes them]. Each of the latter takes a batch_id once, so a micro-batch
    that is repeated because one sink failed changes nothing in the others.
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
    """Writes every micro-batch into a sub-folder of its own, batch=<query>-<batch_id>.

    A micro-batch that comes again overwrites its sub-folder, so each row is there once. The
    query's id is that of its checkpoint: a new query never overwrites what another one wrote.
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
    """Computes a micro-batch and keeps nothing."""
    batch.write.format("noop").mode("append").save()
