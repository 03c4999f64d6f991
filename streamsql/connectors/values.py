"""values: rows given by INSERT INTO stream VALUES; each INSERT is one micro-batch."""

from streamsql.calls import Node
from streamsql.catalog import Stream
from streamsql.connectors.base import Connector, Places, read, read_stream, schema_text


class Values(Connector):
    name = "values"
    help = "rows given by INSERT INTO stream VALUES (…); each INSERT is one micro-batch"
    needs_columns = True
    reads = ()

    def source(self, stream: Stream, places: Places) -> Node:
        # A file for each INSERT, taken one at a time in the order written; no age limit, so that
        # what was inserted is read whenever the query starts.
        return (
            read_stream("parquet")
            .call("schema", schema_text(stream.columns))
            .call("option", "maxFilesPerTrigger", "1")
            .call("option", "maxFileAge", "36500d")
            .call("load", places.values(stream.name))
        )

    def at_rest(self, stream: Stream, places: Places) -> Node:
        return (
            read("parquet")
            .call("schema", schema_text(stream.columns))
            .call("load", places.values(stream.name))
        )
