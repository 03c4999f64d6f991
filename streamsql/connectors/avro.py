"""avro: directories of Avro files. Options: Spark guide, "Apache Avro Data Source Guide"."""

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.files import FileConnector
from streamsql.connectors.parquet import REBASE_MODES


class Avro(FileConnector):
    name = "avro"
    file_format = "org.apache.spark.sql.avro.AvroFileFormat"
    not_written = "collate"
    skips_rows = True
    help = "directories of Avro files"
    codecs = ("uncompressed", "deflate", "snappy", "bzip2", "xz", "zstandard")
    own = (
        OptionSpec("avroSchema", "an Avro schema (JSON) to use instead of the schema in the files"),
        OptionSpec("avroSchemaUrl", "a file with this schema", "path"),
        OptionSpec("positionalFieldMatching", "match fields by position, not by name", "boolean"),
        OptionSpec(
            "datetimeRebaseMode",
            "EXCEPTION, CORRECTED or LEGACY for old dates",
            choices=REBASE_MODES,
            cased=True,
        ),
        OptionSpec("ignoreExtension", "files of any name, not *.avro only", "boolean", default="true"),
        OptionSpec(
            "enableStableIdentifiersForUnionType", "name the fields of a union after their types", "boolean"
        ),
        OptionSpec("stableIdentifierPrefixForUnionType", "prefix of these names", default="member_"),
        OptionSpec("recursiveFieldMaxDepth", "how deep a recursive field is read (-1: not)", "number"),
        OptionSpec("recordName", "name of the written record", default="topLevelRecord"),
        OptionSpec("recordNamespace", "its namespace"),
    )
    read_only = frozenset(
        "datetimeRebaseMode ignoreExtension enableStableIdentifiersForUnionType "
        "stableIdentifierPrefixForUnionType recursiveFieldMaxDepth".split()
    )
    write_only = frozenset({"recordName", "recordNamespace"})
