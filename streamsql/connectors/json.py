"""json: directories of JSON lines. Options: Spark guide, "JSON Files"."""

from dataclasses import replace

from streamsql.calls import Node
from streamsql.connectors import debezium
from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import COLUMN_OPTIONS, FileConnector
from streamsql.definitions import Stream


class Json(FileConnector):
    name = "json"
    file_format = "org.apache.spark.sql.execution.datasources.json.JsonFileFormat"
    help = "directories of JSON lines"
    no_types = frozenset(("GEOMETRY", "GEOGRAPHY"))
    line_formats = (debezium.FORMAT,)
    own = (
        *COLUMN_OPTIONS,
        OptionSpec("primitivesAsString", "infer every simple value as a string", "boolean"),
        OptionSpec("inferTimestamp", "infer timestamps; by default only for the watermark column", "boolean"),
        OptionSpec("prefersDecimal", "infer decimals before doubles", "boolean"),
        OptionSpec("allowComments", "ignore Java and C++ comments", "boolean"),
        OptionSpec("allowUnquotedFieldNames", "allow field names without quotes", "boolean"),
        OptionSpec(
            "allowSingleQuotes", "allow single quotes as well as double quotes", "boolean", default="true"
        ),
        OptionSpec("allowNumericLeadingZeros", "allow numbers such as 007", "boolean"),
        OptionSpec("allowNonNumericNumbers", "allow NaN and infinities", "boolean", default="true"),
        OptionSpec("allowBackslashEscapingAnyCharacter", "allow a backslash before any character", "boolean"),
        OptionSpec("allowUnquotedControlChars", "allow unescaped control characters in strings", "boolean"),
        OptionSpec("dropFieldIfAllNull", "omit columns that are always NULL", "boolean"),
        OptionSpec("ignoreNullFields", "do not write NULL fields", "boolean"),
    )

    def records(self, stream: Stream) -> Node | None:
        return self.lines(stream)

    def infer_times(self, stream: Stream) -> Node | None:
        return self.infer(replace(stream, options=(*stream.options, ("inferTimestamp", "true"))))
