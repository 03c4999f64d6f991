"""json: directories of JSON lines. Options: Spark guide, "JSON Files"."""

from dataclasses import replace

from streamsql.calls import Node
from streamsql.catalog import Stream
from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import COLUMN_OPTIONS, FileConnector


class Json(FileConnector):
    name = "json"
    help = "directories of JSON lines"
    own = (
        *COLUMN_OPTIONS,
        OptionSpec("primitivesAsString", "infer every simple value as text", "boolean"),
        OptionSpec("inferTimestamp", "infer timestamps; else the watermark's column only", "boolean"),
        OptionSpec("prefersDecimal", "infer decimals before doubles", "boolean"),
        OptionSpec("allowComments", "Java and C++ comments are left out", "boolean"),
        OptionSpec("allowUnquotedFieldNames", "names without quotes", "boolean"),
        OptionSpec("allowSingleQuotes", "single quotes beside double ones", "boolean", default="true"),
        OptionSpec("allowNumericLeadingZeros", "numbers such as 007", "boolean"),
        OptionSpec("allowNonNumericNumbers", "NaN and infinities", "boolean", default="true"),
        OptionSpec("allowBackslashEscapingAnyCharacter", "a backslash before anything", "boolean"),
        OptionSpec("allowUnquotedControlChars", "control characters in texts", "boolean"),
        OptionSpec("dropFieldIfAllNull", "leave columns out that are NULL all over", "boolean"),
        OptionSpec("ignoreNullFields", "do not write fields that are NULL", "boolean"),
    )

    def records(self, stream: Stream) -> Node | None:
        return self.lines(stream)

    def infer_times(self, stream: Stream) -> Node:
        return self.infer(replace(stream, options=(*stream.options, ("inferTimestamp", "true"))))
