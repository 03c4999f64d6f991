"""text: directories of lines, one column `value`. Options: Spark guide, "Text Files"."""

from streamsql.connectors.base import option_table
from streamsql.connectors.files import FileConnector
from streamsql.language.statements.base import Column


class Text(FileConnector):
    name = "text"
    file_format = "org.apache.spark.sql.execution.datasources.text.TextFileFormat"
    help = "directories of lines, as one column value"
    infers_columns = False
    fixed_columns = (Column("value", "STRING"),)
    own = option_table("""
        wholetext: boolean = false -- a file is one row
        lineSep -- line separator
        encoding: character set = UTF-8 -- character set
    """)
