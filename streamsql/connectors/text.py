"""text: directories of lines, one column `value`. Options: Spark guide, "Text Files"."""

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import FileConnector
from streamsql.connectors.option_kinds import CHARSET
from streamsql.language.statements.base import Column


class Text(FileConnector):
    name = "text"
    file_format = "org.apache.spark.sql.execution.datasources.text.TextFileFormat"
    help = "directories of lines, as one column value"
    infers_columns = False
    fixed_columns = (Column("value", "STRING"),)
    own = (
        OptionSpec("wholetext", "a file is one row", "boolean", default="false"),
        OptionSpec("lineSep", "line separator"),
        OptionSpec("encoding", "character set", CHARSET, default="UTF-8"),
    )
