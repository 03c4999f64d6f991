"""Rows to Arrow and back, with the values that PySpark's Arrow does not take: NULL in a VARIANT, intervals of
months, and NULL as a GEOMETRY or GEOGRAPHY. EXPLAIN PYSPARK prints this code, so it is self-contained.
"""

from collections.abc import Callable
from typing import Any


def touched(kind: Any, replace: Callable[[Any], Any]) -> bool:
    """Whether a Spark type is, or has inside, one for which replace gives a function."""
    if replace(kind) is not None:
        return True
    parts = [field.dataType for field in getattr(kind, "fields", ())]
    parts += [getattr(kind, name) for name in ("elementType", "keyType", "valueType") if hasattr(kind, name)]
    return any(touched(part, replace) for part in parts)


def rebuilt(
    kind: Any, value: Any, replace: Callable[[Any], Any], entries: bool = False, maps: bool = False
) -> Any:
    """A Column like value, of a Spark type, in which the values of some types are replaced, also inside
    structs, arrays and maps. A map becomes an array of its entries, since replaced keys may be equal.

    replace: gives, for a type, the function that replaces a Column of it, or None. entries: whether value has
    arrays of entries in place of maps, which become maps again. maps: whether maps stay maps, as no replaced
    keys are equal.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    if not touched(kind, replace):
        return value
    if replace(kind) is not None:
        return replace(kind)(value)
    if isinstance(kind, t.ArrayType):
        return F.transform(value, lambda item: rebuilt(kind.elementType, item, replace, entries, maps))
    if isinstance(kind, t.MapType):

        def entry(pair: Any) -> Any:
            key = rebuilt(kind.keyType, pair["key"], replace, entries, maps)
            item = rebuilt(kind.valueType, pair["value"], replace, entries, maps)
            return F.struct(key.alias("key"), item.alias("value"))

        pairs = F.transform(value if entries else F.map_entries(value), entry)
        return F.map_from_entries(pairs) if entries or maps else pairs
    # By their numbers: a name may occur twice.
    fields = [(f"_{number}", field) for number, field in enumerate(kind.fields)]
    inside = t.StructType(
        [t.StructField(n, carried_type(f.dataType) if entries else f.dataType) for n, f in fields]
    )
    apart = value.cast(inside)
    parts = [rebuilt(f.dataType, apart.getField(n), replace, entries, maps).alias(f.name) for n, f in fields]
    return F.when(value.isNotNull(), F.struct(*parts))


def columns_rebuilt(
    frame: Any, schema: Any, replace: Callable[[Any], Any], entries: bool = False, maps: bool = False
) -> Any:
    """A DataFrame with the columns of frame rebuilt. schema: of the rows with maps, see `rebuilt`."""
    apart = frame.toDF(*(f"c{number}" for number in range(len(schema.fields))))  # a name may occur twice
    parts = [
        rebuilt(field.dataType, apart[name], replace, entries, maps).alias(name)
        for name, field in zip(apart.columns, schema.fields, strict=True)
    ]
    return apart.select(*parts).toDF(*schema.names)


def carried(kind: Any) -> Any:
    """The function that makes of a Column one whose values Arrow carries; None for a type that stays as it
    is. A VARIANT becomes an array of at most one value, beside its JSON text; an interval becomes a text, and
    a GEOMETRY its bytes, beside its reference system.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    if isinstance(kind, t.VariantType):
        return lambda value: F.struct(
            F.array_compact(F.array(value)).alias("variant"), F.to_json(value).alias("json")
        )
    if isinstance(kind, (t.YearMonthIntervalType, t.CalendarIntervalType)):
        return lambda value: value.cast("string")
    if isinstance(kind, (t.GeometryType, t.GeographyType)):
        return lambda value: F.struct(
            F.call_function("st_asbinary", value).alias("wkb"),
            F.call_function("st_srid", value).alias("srid"),
        )
    return None


def given_back(kind: Any) -> Any:
    """The function that makes a Column again of one that `carried` has made; None for the other types."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    if isinstance(kind, t.VariantType):
        return lambda value: F.get(value.getField("variant"), F.lit(0))
    if isinstance(kind, (t.GeometryType, t.GeographyType)):
        made = "st_geomfromwkb" if isinstance(kind, t.GeometryType) else "st_geogfromwkb"
        fixed = None if kind.srid < 0 else F.lit(kind.srid)

        def shape(value: Any) -> Any:
            srid = value.getField("srid") if fixed is None else fixed
            return F.call_function("st_setsrid", F.call_function(made, value.getField("wkb")), srid)

        return shape
    return None if carried(kind) is None else lambda value: value.cast(kind)


def carried_type(kind: Any) -> Any:
    """The type of a Column that `to_arrow` makes of one. Its parts may all be NULL: Arrow takes no NULL in
    place of a struct whose fields are NOT NULL.
    """
    from pyspark.sql import types as t

    if isinstance(kind, t.VariantType):
        return t.StructType().add("variant", t.ArrayType(kind)).add("json", "string")
    if isinstance(kind, (t.GeometryType, t.GeographyType)):
        return t.StructType().add("wkb", "binary").add("srid", "integer")
    if isinstance(kind, t.StructType):
        return t.StructType([t.StructField(f.name, carried_type(f.dataType)) for f in kind.fields])
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(carried_type(kind.elementType))
    if isinstance(kind, t.MapType) and not touched(kind, carried):
        return t.MapType(carried_type(kind.keyType), carried_type(kind.valueType))
    if isinstance(kind, t.MapType):
        entry = t.StructType().add("key", carried_type(kind.keyType))
        return t.ArrayType(entry.add("value", carried_type(kind.valueType)))
    return kind if carried(kind) is None else t.StringType()


def carried_schema(schema: Any) -> Any:
    """The schema of rows with the columns of another one as `to_arrow` makes them."""
    from pyspark.sql import types as t

    return t.StructType([t.StructField(f.name, carried_type(f.dataType), f.nullable) for f in schema.fields])


def in_carried_form(frame: Any) -> Any:
    """A DataFrame of the rows whose values Arrow carries, with the types of `carried_schema`."""
    schema, types = frame.schema, [carried_type(field.dataType) for field in frame.schema.fields]
    if types == [field.dataType for field in schema.fields]:
        return frame
    apart = frame.toDF(*(f"c{number}" for number in range(len(types))))  # a name may occur twice
    parts = [
        apart[name] if kind == field.dataType else rebuilt(field.dataType, apart[name], carried).cast(kind)
        for name, field, kind in zip(apart.columns, schema.fields, types, strict=True)
    ]
    return apart.select(*parts).toDF(*schema.names)


def to_arrow(frame: Any) -> Any:
    """The rows of a DataFrame as an Arrow table."""
    return in_carried_form(frame).toArrow()


def to_frame(spark: Any, table: Any, schema: Any) -> Any:
    """A DataFrame of an Arrow table that `to_arrow` gave, or of None for no rows. schema: its columns."""
    rows = table if table is not None and table.num_rows else []
    frame = spark.createDataFrame(rows, carried_schema(schema))
    return columns_rebuilt(frame, schema, given_back, True) if touched(schema, carried) else frame


def key_text(schema: Any, names: Any = None) -> str:
    """SQL of a text that is equal for equal values of columns, of any types, and different for others. names:
    of these columns, None for all. Times in it are in UTC: a time zone may have an hour twice.
    """
    kinds = {field.name.casefold(): field.dataType.simpleString() for field in schema.fields}
    parts, bytes_of = [], []
    for number, name in enumerate(schema.names if names is None else names):
        column, kind = "`" + name.replace("`", "``") + "`", kinds.get(name.casefold(), "")
        if kind in ("double", "float"):  # 0.0 and -0.0 are one key
            parts.append(f"IF({column} = 0, CAST(0 AS {kind}), {column}) AS {column}")
        else:
            parts.append(column)
        once = [n.casefold() for n in schema.names].count(name.casefold()) == 1
        if once and kind.startswith(("string", "char", "varchar")):
            # JSON has one sign for all bytes that are no UTF-8.
            bytes_of.append(f"IF(is_valid_utf8({column}), NULL, hex({column})) AS __bytes_{number}")
    micros = "yyyy-MM-dd HH:mm:ss.SSSSSS"
    options = f"'timestampFormat', '{micros}', 'timestampNTZFormat', '{micros}', 'ignoreNullFields', 'true'"
    options = f"'timeZone', 'UTC', {options}"
    return f"to_json(struct({', '.join([*(['*'] if names is None else parts), *bytes_of])}), map({options}))"
