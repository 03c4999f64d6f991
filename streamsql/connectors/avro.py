"""avro: directories of Avro files. Options: Spark guide, "Apache Avro Data Source Guide"."""

from streamsql.connectors.base import option_table
from streamsql.connectors.files import FileConnector


class Avro(FileConnector):
    name = "avro"
    file_format = "org.apache.spark.sql.avro.AvroFileFormat"
    not_written = "collate"
    skips_rows = True
    help = "directories of Avro files"
    codecs = ("uncompressed", "deflate", "snappy", "bzip2", "xz", "zstandard")
    own = option_table("""
        avroSchema -- an Avro schema (JSON) to use instead of the schema in the files
        avroSchemaUrl: path -- a file with this schema
        positionalFieldMatching: boolean -- match fields by position, not by name
        datetimeRebaseMode: cased, EXCEPTION, CORRECTED, LEGACY -- EXCEPTION, CORRECTED or LEGACY for old
            dates
        ignoreExtension: boolean = true -- files of any name, not *.avro only
        enableStableIdentifiersForUnionType: boolean -- name the fields of a union after their types
        stableIdentifierPrefixForUnionType = member_ -- prefix of these names
        recursiveFieldMaxDepth: number -- how deep a recursive field is read (-1: not)
        recordName = topLevelRecord -- name of the written record
        recordNamespace -- its namespace
    """)
    read_only = frozenset(
        "datetimeRebaseMode ignoreExtension enableStableIdentifiersForUnionType "
        "stableIdentifierPrefixForUnionType recursiveFieldMaxDepth".split()
    )
    write_only = frozenset({"recordName", "recordNamespace"})
