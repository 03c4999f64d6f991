"""xml: directories of XML files. Options: Spark guide, "XML Files"."""

from dataclasses import replace

from streamsql.connectors.base import OptionSpec
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
        OptionSpec("attributePrefix", "prefix of the columns of attributes", default="_"),
        OptionSpec("valueTag", "column of the text of an element that has attributes", default="_VALUE"),
        OptionSpec("excludeAttribute", "skip attributes", "boolean", default="false"),
        OptionSpec("inferSchema", "infer column types, not only names", "boolean", default="true"),
        OptionSpec("preferDate", "infer dates before timestamps", "boolean", default="true"),
        OptionSpec("prefersDecimal", "infer decimals before doubles", "boolean", default="false"),
        OptionSpec("ignoreSurroundingSpaces", "remove blanks around a value", "boolean", default="true"),
        OptionSpec("ignoreNamespace", "ignore prefixes of names", "boolean", default="false"),
        OptionSpec("rowValidationXSDPath", "a schema (XSD) to validate each row with", "path"),
        OptionSpec(
            "wildcardColName", "column for elements that match a wildcard of the XSD", default="xs_any"
        ),
        OptionSpec("useLegacyXMLParser", "the parser of Spark 4.0", "boolean"),
        OptionSpec("nullValue", "text that means NULL"),
        OptionSpec("rootTag", "the element around the written rows", default="ROWS"),
        OptionSpec("declaration", "the XML declaration of written files"),
        OptionSpec("arrayElementName", "element of an array in an array", default="item"),
        OptionSpec("indent", "indentation of written lines"),
        OptionSpec("validateName", "refuse names that are not valid in XML", "boolean", default="true"),
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
