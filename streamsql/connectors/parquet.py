"""parquet: directories of Parquet files. Options: Spark guide, "Parquet Files"."""

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import FileConnector


class Parquet(FileConnector):
    name = "parquet"
    help = "directories of Parquet files"
    own = (
        OptionSpec("mergeSchema", "columns of all files together", "boolean"),
        OptionSpec("datetimeRebaseMode", "EXCEPTION, CORRECTED or LEGACY for old dates"),
        OptionSpec("int96RebaseMode", "the same for INT96 timestamps"),
    )
