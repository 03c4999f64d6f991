"""The dialect that the analyst has chosen with SET streamsql.dialect, with what the catalog knows."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from streamsql.catalog import Catalog
from streamsql.language.dialects.translation import Translation, translated


def event_time(catalog: Catalog, name: str) -> str:
    """The event-time column of a stream; "" if it has none."""
    stream = catalog.streams.get(name.casefold())
    return stream.watermark.column.value if stream and stream.watermark else ""


def translation_of(dialect: str, catalog: Catalog, functions: Collection[str] = ()) -> Translation | None:
    """The translation from a dialect into Spark's words; None for Spark's. functions: those of the user,
    folded, that are not in the catalog.
    """
    if dialect == "spark":
        return None
    own = frozenset((*catalog.functions, *functions))
    return lambda text: translated(text, dialect, own, time_of=partial(event_time, catalog))
