"""csv: directories of delimited text. Options: Spark guide, "CSV Files"."""

from streamsql.calls import Node
from streamsql.connectors.base import option_table
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
        *option_table(r"""
            header: boolean = false -- the first line holds the column names
            sep = , -- separator between fields
            delimiter -- same as sep
            quote: single character = " -- quote character
            escape: single character = \ -- escape character for quotes
            charToEscapeQuoteEscaping: single character -- escape character for the escape character
            comment: single character -- first character of comment lines, which are skipped
            inferSchema: boolean -- infer column types, not only names
            preferDate: boolean -- infer dates before timestamps
            enforceSchema: boolean = false -- take the columns by position, without comparing them with the
                header
            ignoreLeadingWhiteSpace: boolean -- remove blanks before a field
            ignoreTrailingWhiteSpace: boolean -- remove blanks after a field
            nullValue -- text that means NULL
            emptyValue -- text that means an empty string
            nanValue = NaN -- text that means not-a-number
            positiveInf = Inf -- text that means infinity
            negativeInf = -Inf -- text that means negative infinity
            maxColumns: positive integer -- maximum number of columns in a line
            maxCharsPerColumn: number -- maximum length of a field
            unescapedQuoteHandling: STOP_AT_CLOSING_QUOTE, BACK_TO_DELIMITER, STOP_AT_DELIMITER, SKIP_VALUE,
                RAISE_ERROR = STOP_AT_DELIMITER -- how unescaped quotes are handled
            quoteAll: boolean -- quote every written field
            escapeQuotes: boolean -- quote written fields that contain a quote
        """),
    )

    def records(self, stream: Stream) -> Node | None:
        return self.lines(stream)

    def inference(self, stream: Stream) -> tuple[tuple[str, str], ...]:
        # Without it Spark calls every column text, which no analyst means by "inferred".
        given = {k.casefold() for k, _ in stream.options}
        return stream.options if "inferschema" in given else (*stream.options, ("inferSchema", "true"))
