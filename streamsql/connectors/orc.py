"""orc: directories of ORC files. Options: Spark guide, "ORC Files"."""

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import FileConnector


class Orc(FileConnector):
    name = "orc"
    help = "directories of ORC files"
    own = (OptionSpec("mergeSchema", "columns of all files together", "boolean"),)
