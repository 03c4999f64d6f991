"""parquet: directories of Parquet files. Options: Spark guide, "Parquet Files"."""

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import FileConnector

REBASE_MODES = ("EXCEPTION", "CORRECTED", "LEGACY")


class Parquet(FileConnector):
    name = "parquet"
    file_format = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
    skips_rows = True
    help = "directories of Parquet files"
    codecs = ("none", "uncompressed", "snappy", "gzip", "zstd", "lz4", "lz4_raw", "brotli", "lzo")
    own = (
        OptionSpec("mergeSchema", "merge the columns of all files", "boolean"),
        OptionSpec(
            "datetimeRebaseMode",
            "EXCEPTION, CORRECTED or LEGACY for old dates",
            choices=REBASE_MODES,
            cased=True,
        ),
        OptionSpec("int96RebaseMode", "the same for INT96 timestamps", choices=REBASE_MODES, cased=True),
    )
