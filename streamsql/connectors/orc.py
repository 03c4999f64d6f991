"""orc: directories of ORC files. Options: Spark guide, "ORC Files"."""

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import FileConnector


class Orc(FileConnector):
    name = "orc"
    file_format = "org.apache.spark.sql.execution.datasources.orc.OrcFileFormat"
    skips_rows = True
    help = "directories of ORC files"
    codecs = ("none", "uncompressed", "zstd", "snappy", "zlib", "lz4", "lzo", "brotli")
    own = (OptionSpec("mergeSchema", "merge the columns of all files", "boolean"),)
