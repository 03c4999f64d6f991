"""json: directories of JSON lines. Options: Spark guide, "JSON Files"."""

from dataclasses import replace

from streamsql.calls import Node
from streamsql.connectors import debezium
from streamsql.connectors.base import option_table
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
        *option_table("""
            primitivesAsString: boolean -- infer every simple value as a string
            inferTimestamp: boolean -- infer timestamps; by default only for the watermark column
            prefersDecimal: boolean -- infer decimals before doubles
            allowComments: boolean -- ignore Java and C++ comments
            allowUnquotedFieldNames: boolean -- allow field names without quotes
            allowSingleQuotes: boolean = true -- allow single quotes as well as double quotes
            allowNumericLeadingZeros: boolean -- allow numbers such as 007
            allowNonNumericNumbers: boolean = true -- allow NaN and infinities
            allowBackslashEscapingAnyCharacter: boolean -- allow a backslash before any character
            allowUnquotedControlChars: boolean -- allow unescaped control characters in strings
            dropFieldIfAllNull: boolean -- omit columns that are always NULL
            ignoreNullFields: boolean -- do not write NULL fields
        """),
    )

    def records(self, stream: Stream) -> Node | None:
        return self.lines(stream)

    def infer_times(self, stream: Stream) -> Node | None:
        return self.infer(replace(stream, options=(*stream.options, ("inferTimestamp", "true"))))
