"""The Python Data Source behind the connector. Spark's workers import this module."""

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader


class Reader(SimpleDataSourceStreamReader):
    def __init__(self, start):
        self.start = start

    def initialOffset(self):
        return {"left": self.start}

    def read(self, start):
        end = {"left": 0}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start, end):
        return iter([(n,) for n in range(start["left"], end["left"], -1)])


class Numbers(DataSource):
    def schema(self):
        return "n INT"

    def simpleStreamReader(self, schema):
        return Reader(int(self.options.get("start", 10)))
