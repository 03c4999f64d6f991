"""xml: directories of XML files. Options: Spark guide, "XML Files"."""

from dataclasses import replace

from streamsql.connectors.base import OptionSpec, option_table
from streamsql.connectors.files import COLUMN_OPTIONS, FileConnector
from streamsql.connectors.option_kinds import CHARSET, SPARK_CHARSET

# Spark's XML reader takes no lineSep (an element ends where its tag does), and all character sets of Java.
_SHARED = tuple(
    replace(spec, kind=CHARSET) if spec.kind == SPARK_CHARSET else spec
    for spec in COLUMN_OPTIONS
    if spec.name not in ("lineSep", "multiLine")
)


class Xml(FileConnector):
    name = "xml"
    file_format = "org.apache.spark.sql.execution.datasources.xml.XmlFileFormat"
    not_written = "interval"
    column_name = r"[^\W\d][\w.-]*"
    help = "directories of XML files; each element of the name rowTag is a row"
    no_types = frozenset(("GEOMETRY", "GEOGRAPHY"))
    own = (
        OptionSpec("rowTag", "the element that is a row", required=True),
        *_SHARED,
        *option_table("""
            attributePrefix = _ -- prefix of the columns of attributes
            valueTag = _VALUE -- column of the text of an element that has attributes
            excludeAttribute: boolean = false -- skip attributes
            inferSchema: boolean = true -- infer column types, not only names
            preferDate: boolean = true -- infer dates before timestamps
            prefersDecimal: boolean = false -- infer decimals before doubles
            ignoreSurroundingSpaces: boolean = true -- remove blanks around a value
            ignoreNamespace: boolean = false -- ignore prefixes of names
            rowValidationXSDPath: path -- a schema (XSD) to validate each row with
            wildcardColName = xs_any -- column for elements that match a wildcard of the XSD
            useLegacyXMLParser: boolean -- the parser of Spark 4.0
            nullValue -- text that means NULL
            rootTag = ROWS -- the element around the written rows
            declaration -- the XML declaration of written files
            arrayElementName = item -- element of an array in an array
            indent -- indentation of written lines
            validateName: boolean = true -- refuse names that are not valid in XML
        """),
    )
    read_only = frozenset(
        "mode samplingRatio columnNameOfCorruptRecord excludeAttribute inferSchema preferDate prefersDecimal "
        "ignoreSurroundingSpaces ignoreNamespace rowValidationXSDPath wildcardColName useLegacyXMLParser "
        "singleVariantColumn".split()
    )
    write_only = frozenset("rootTag declaration arrayElementName indent validateName".split())

    def __init__(self) -> None:
        super().__init__()
        assert self.writes is not None
        row = OptionSpec("rowTag", "the element that each row becomes", default="ROW")
        self.writes = tuple(row if s.name == "rowTag" else s for s in self.writes)
