"""csv: directories of delimited text. Options: Spark guide, "CSV Files"."""

from streamsql.calls import Node
from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import COLUMN_OPTIONS, FileConnector
from streamsql.definitions import Stream


class Csv(FileConnector):
    name = "csv"
    file_format = "org.apache.spark.sql.execution.datasources.csv.CSVFileFormat"
    help = "directories of delimited text"
    same_names = True
    no_types = frozenset(("ARRAY", "MAP", "STRUCT", "VOID", "GEOMETRY", "GEOGRAPHY"))
    own = (
        *COLUMN_OPTIONS,
        OptionSpec("header", "the first line holds the column names", "boolean", default="false"),
        OptionSpec("sep", "separator between fields", default=","),
        OptionSpec("delimiter", "same as sep"),
        OptionSpec("quote", "quote character", "single character", default='"'),
        OptionSpec("escape", "escape character for quotes", "single character", default="\\"),
        OptionSpec(
            "charToEscapeQuoteEscaping", "escape character for the escape character", "single character"
        ),
        OptionSpec("comment", "first character of comment lines, which are skipped", "single character"),
        OptionSpec("inferSchema", "infer column types, not only names", "boolean"),
        OptionSpec("preferDate", "infer dates before timestamps", "boolean"),
        OptionSpec(
            "enforceSchema",
            "take the columns by position, without comparing them with the header",
            "boolean",
            default="false",
        ),
        OptionSpec("ignoreLeadingWhiteSpace", "remove blanks before a field", "boolean"),
        OptionSpec("ignoreTrailingWhiteSpace", "remove blanks after a field", "boolean"),
        OptionSpec("nullValue", "text that means NULL"),
        OptionSpec("emptyValue", "text that means an empty string"),
        OptionSpec("nanValue", "text that means not-a-number", default="NaN"),
        OptionSpec("positiveInf", "text that means infinity", default="Inf"),
        OptionSpec("negativeInf", "text that means negative infinity", default="-Inf"),
        OptionSpec("maxColumns", "maximum number of columns in a line", "positive integer"),
        OptionSpec("maxCharsPerColumn", "maximum length of a field", "number"),
        OptionSpec(
            "unescapedQuoteHandling",
            "how unescaped quotes are handled",
            default="STOP_AT_DELIMITER",
            choices=(
                "STOP_AT_CLOSING_QUOTE",
                "BACK_TO_DELIMITER",
                "STOP_AT_DELIMITER",
                "SKIP_VALUE",
                "RAISE_ERROR",
            ),
        ),
        OptionSpec("quoteAll", "quote every written field", "boolean"),
        OptionSpec("escapeQuotes", "quote written fields that contain a quote", "boolean"),
    )

    def records(self, stream: Stream) -> Node | None:
        return self.lines(stream)

    def inference(self, stream: Stream) -> tuple[tuple[str, str], ...]:
        # Without it Spark calls every column text, which no analyst means by "inferred".
        given = {k.casefold() for k, _ in stream.options}
        return stream.options if "inferschema" in given else (*stream.options, ("inferSchema", "true"))
