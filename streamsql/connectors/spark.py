"""spark: any format that Spark knows, or that a package of Maven brings. Spark decides about its options."""

from __future__ import annotations

from streamsql.calls import Lit, Node, Var
from streamsql.connectors.base import (
    MICRO_BATCH,
    Connector,
    OptionSpec,
    Places,
    option_table,
    schema_text,
    with_options,
)
from streamsql.definitions import Sink, Stream


class SparkFormat(Connector):
    """A format of Spark's. spark_name: its name in Spark, or its class; packages: the Maven coordinates that
    it is in; options: those that it has, which are checked and described; own: those that are the console's
    and that it does not receive; uses: "read", "write" or both.
    """

    not_read_back = "only its format knows what it has written"
    spark_name = ""
    uses: tuple[str, ...] = ("read", "write")
    options: tuple[OptionSpec, ...] = ()
    own: tuple[OptionSpec, ...] = ()
    triggers = MICRO_BATCH | {"continuous", "real_time"}
    sink_triggers = MICRO_BATCH | {"continuous", "real_time"}
    infers_columns = True
    open_options = True
    not_known: tuple[tuple[str, str, str], ...] = (
        ("replay", "read", "not known: only the format tells whether rows can be read again after a failure"),
        ("read input", "read", "not known: only the format tells whether it deletes what was read"),
        ("delivery", "write", "not known: a micro-batch may be written again after a failure"),
    )

    def __init__(self) -> None:
        specs = (*self.own, *self.options)
        self.reads = specs if "read" in self.uses else None
        self.writes = specs if "write" in self.uses else None

    def format(self, entry: Stream | Sink) -> Node:
        """The name of the format, with the packages that it is in."""
        return Lit(self.spark_name, self.packages)

    def _with_options(self, node: Node, entry: Stream | Sink) -> Node:
        return with_options(node, entry.options, skip=(spec.name for spec in self.own))

    def source(self, stream: Stream, places: Places) -> Node:
        reader = Var("spark").attr("readStream").call("format", self.format(stream))
        if stream.columns and not stream.inferred:
            reader = reader.call("schema", schema_text(stream.columns))
        return self._with_options(reader, stream).call("load")

    def infer(self, stream: Stream) -> Node:
        return self.source(stream, Places(""))

    def delivery(self, sink: Sink) -> str:
        return next((text for name, _, text in self.not_known if name == "delivery"), super().delivery(sink))

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return self._with_options(writer.call("format", self.format(sink)), sink)

    def write_batch(self, sink: Sink, frame: Node) -> Node:
        writer = frame.attr("write").call("format", self.format(sink)).call("mode", "append")
        return self._with_options(writer, sink).call("save")


class Spark(SparkFormat):
    """The format that an option names."""

    name = "spark"
    help = "any format of Spark, also of a package; it receives all other options unchanged"
    own = option_table("""
        format: required -- the name of the format, as Spark knows it, or its class
        packages: list of group:artifact:version -- what Maven has it in: group:artifact:version, …; fetched
            when first needed
    """)

    def format(self, entry: Stream | Sink) -> Node:
        listed = entry.option("packages")
        return Lit(entry.option("format"), tuple(c.strip() for c in listed.split(",")) if listed else ())
