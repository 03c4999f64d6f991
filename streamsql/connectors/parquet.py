"""parquet: directories of Parquet files. Options: Spark guide, "Parquet Files"."""

from streamsql.connectors.base import option_table
from streamsql.connectors.files import FileConnector

REBASE_MODES = ("EXCEPTION", "CORRECTED", "LEGACY")


class Parquet(FileConnector):
    name = "parquet"
    file_format = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
    skips_rows = True
    help = "directories of Parquet files"
    codecs = ("none", "uncompressed", "snappy", "gzip", "zstd", "lz4", "lz4_raw", "brotli", "lzo")
    own = option_table("""
        mergeSchema: boolean -- merge the columns of all files
        datetimeRebaseMode: cased, EXCEPTION, CORRECTED, LEGACY -- EXCEPTION, CORRECTED or LEGACY for old
            dates
        int96RebaseMode: cased, EXCEPTION, CORRECTED, LEGACY -- the same for INT96 timestamps
    """)
