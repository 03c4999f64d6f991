"""Rows that are kept while the columns of their query change: a column that came is NULL in them, one that is
gone is left out, and a number takes the wider type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class Misfit(Exception):
    """Rows that do not fit; says which column does not."""


def fitted(table: Any, schema: Any, keys: Sequence[str] = (), own: Sequence[str | None] = ()) -> Any:
    """An Arrow table with the columns of a Spark schema, and its own ones behind them. keys: columns whose
    types must be as they were. Raises Misfit.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    from streamsql.runtime.embedded.carried_values import carried_schema

    wanted = list(to_arrow_schema(carried_schema(schema), timezone="UTC"))
    places = {n: table.field(n) for n in range(table.num_columns)}
    others = [n for n, field in places.items() if field.name in own]
    rows = [field for n, field in places.items() if n not in others]
    if [(f.name, f.type) for f in wanted] == [(f.name, f.type) for f in rows]:
        return table
    place_by_name: dict[str, int] = {}
    for n, field in places.items():
        if n not in others and place_by_name.setdefault(field.name.casefold(), n) != n:
            raise Misfit(field.name)  # of two columns of a name, it is not known which is which
    columns = []
    for field in wanted:
        place = place_by_name.get(field.name.casefold())
        if place is None and field.name not in keys:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            continue
        column = None if place is None else _cast(table.column(place), field.type)
        if column is None or (field.name in keys and not _alike(column.type, table.column(place).type)):
            raise Misfit(field.name)
        columns.append(column)
    fields = [*wanted, *(places[n] for n in others)]
    return pa.table([*columns, *(table.column(n) for n in others)], schema=pa.schema(fields))


def _cast(column: Any, wanted: pa.DataType) -> Any:
    """The column in another type that holds its values as they are; None where there are others."""
    import pyarrow as pa

    if _is_variant(column.type) and pa.types.is_struct(wanted):
        return _carried_variants(column, wanted)
    if not _holds(column.type, wanted):
        return None
    try:
        return column.cast(wanted)
    except pa.ArrowException:
        return None


def _is_variant(kind: pa.DataType) -> bool:
    """Whether a column has VARIANT values in PySpark's Arrow type, which earlier versions wrote to files."""
    from pyarrow import types

    return types.is_struct(kind) and [kind.field(n).name for n in range(kind.num_fields)] == [
        "value",
        "metadata",
    ]


def _carried_variants(column: Any, wanted: Any) -> Any:
    """The values of a column of VARIANT as `to_arrow` gives them. wanted: the Arrow type of the result."""
    import pyarrow as pa
    from pyspark.sql.types import VariantVal

    parts = []
    for chunk in column.chunks:
        texts = [str(VariantVal(v["value"], v["metadata"])) for v in chunk.to_pylist()]
        places = pa.array(range(len(chunk) + 1), pa.int32())
        single_values = pa.ListArray.from_arrays(places, chunk, type=wanted.field("variant").type)
        parts.append(
            pa.StructArray.from_arrays([single_values, pa.array(texts, pa.string())], fields=list(wanted))
        )
    return pa.chunked_array(parts, wanted)


def _holds(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether values of a type can be those of another: numbers, and what is made of them."""
    from pyarrow import types

    if types.is_struct(old) and types.is_struct(new):
        common = {old.field(n).name for n in range(old.num_fields)} & {
            new.field(n).name for n in range(new.num_fields)
        }
        return all(_holds(old.field(name).type, new.field(name).type) for name in common)
    if types.is_list(old) and types.is_list(new):
        return _holds(old.value_type, new.value_type)
    if types.is_map(old) and types.is_map(new):
        return _alike(old.key_type, new.key_type) and _holds(old.item_type, new.item_type)
    return _alike(old, new) or (_is_number(old) and _is_number(new))


def _alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether they are one type of Spark, whose offsets are longer with …arrow.useLargeVarTypes."""
    return str(old).replace("large_", "") == str(new).replace("large_", "")


def _is_number(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
