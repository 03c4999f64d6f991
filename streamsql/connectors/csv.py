"""csv: directories of delimited text. Options: Spark guide, "CSV Files"."""

from streamsql.calls import Node
from streamsql.catalog import Stream
from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import COLUMN_OPTIONS, FileConnector


class Csv(FileConnector):
    name = "csv"
    help = "directories of delimited text"
    own = (
        *COLUMN_OPTIONS,
        OptionSpec("header", "the first line holds the column names", "boolean", default="false"),
        OptionSpec("sep", "what stands between two fields", default=","),
        OptionSpec("delimiter", "another word for sep"),
        OptionSpec("quote", "what encloses a field", default='"'),
        OptionSpec("escape", "what takes a quote its meaning", default="\\"),
        OptionSpec("charToEscapeQuoteEscaping", "what escapes the escape"),
        OptionSpec("comment", "first character of lines to leave out"),
        OptionSpec("inferSchema", "infer types and not only names", "boolean"),
        OptionSpec("preferDate", "infer dates before timestamps", "boolean"),
        OptionSpec("enforceSchema", "do not compare the header with the columns", "boolean"),
        OptionSpec("ignoreLeadingWhiteSpace", "drop blanks before a field", "boolean"),
        OptionSpec("ignoreTrailingWhiteSpace", "drop blanks behind a field", "boolean"),
        OptionSpec("nullValue", "text that means NULL"),
        OptionSpec("emptyValue", "text that means an empty text"),
        OptionSpec("nanValue", "text that means not-a-number", default="NaN"),
        OptionSpec("positiveInf", "text that means infinity", default="Inf"),
        OptionSpec("negativeInf", "text that means negative infinity", default="-Inf"),
        OptionSpec("maxColumns", "most columns of a line", "number"),
        OptionSpec("maxCharsPerColumn", "longest field", "number"),
        OptionSpec(
            "unescapedQuoteHandling",
            "what a stray quote does",
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
        OptionSpec("escapeQuotes", "quote written fields that hold a quote", "boolean"),
    )

    def records(self, stream: Stream) -> Node | None:
        return self.lines(stream)

    def inference(self, stream: Stream) -> tuple[tuple[str, str], ...]:
        # Without it Spark calls every column text, which no analyst means by "inferred".
        given = {k.casefold() for k, _ in stream.options}
        return stream.options if "inferschema" in given else (*stream.options, ("inferSchema", "true"))
