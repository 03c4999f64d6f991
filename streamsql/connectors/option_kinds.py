"""The kinds of values that options take: a table from the name of a kind to what checks a value.

A value is refused only where Spark, Java or Kafka's client would certainly refuse it when the query starts.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass

from streamsql.language.durations import length
from streamsql.language.tokens import refers

PYTHON_NAME = "module.name"
"""The kind of an option that names a Python function or class."""
CHARSET, SPARK_CHARSET = "character set", "character set of Spark"
"""Kinds of options: for what Java knows, and for what Spark takes of it. CREATE asks Spark about them."""
OTHER_KINDS = (CHARSET, SPARK_CHARSET, "path")
"""Kinds of which each value is taken here."""
_WHOLE = re.compile(r"[+-]?0*\d{1,19}", re.ASCII)
_SERVER = re.compile(r"(\w+://)?[^\s:/]+:(\d+)|\[[0-9a-fA-F:]+\]:(\d+)")
_INT, _LONG = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True)
class Kind:
    """takes: whether a value is of this kind; hint: what to write instead of a value that is not, "" for
    nothing.
    """

    takes: Callable[[str], bool]
    hint: Callable[[str], str] = lambda value: ""


def _whole(least: int, most: int) -> Callable[[str], bool]:
    """Whether a value is a whole number between two others."""
    return lambda value: bool(_WHOLE.fullmatch(value)) and least <= int(value) <= most


def _is_fraction(value: str) -> bool:
    try:
        return float(value) > 0
    except ValueError:
        return False


def _is_json(value: str) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False


def _is_server(value: str) -> bool:
    written = _SERVER.fullmatch(value.strip())
    return written is not None and 0 < int(written[2] or written[3]) <= 65535


def _is_http_address(value: str) -> bool:
    place = urllib.parse.urlsplit(value.strip())
    try:
        return place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:
        return False


def _each(takes: Callable[[str], bool]) -> Callable[[str], bool]:
    """Whether each part between commas is of a kind, or a reference to a value elsewhere."""
    return lambda value: all(refers(part) or takes(part) for part in value.split(","))


def _in_units(per_second: int) -> Callable[[str], str]:
    """The number of units that a duration such as 5 minutes has, as a hint."""

    def hint(value: str) -> str:
        seconds = length(value)
        return "" if seconds is None else f"'{seconds * per_second:.0f}'"

    return hint


def _as_spark_writes(value: str) -> str:
    """A duration such as 7 days in the form that Spark's options have, as a hint."""
    milliseconds = round((length(value) or 0) * 1000)
    units = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
    found = (f"'{milliseconds // size}{unit}'" for unit, size in units if milliseconds % size == 0)
    return next(found) if milliseconds > 0 else "'30s', '5m', '2h', '7d'"


def _in_bytes(value: str) -> str:
    written = re.fullmatch(r"\s*(\d+)\s*([kmgt])i?b?\s*", value, re.IGNORECASE)
    return f"'{int(written[1]) << 10 * ('kmgt'.index(written[2].lower()) + 1)}'" if written else ""


KINDS = {
    "number": Kind(_whole(-_LONG - 1, _LONG)),
    "number from 0": Kind(_whole(0, _LONG)),
    "positive number": Kind(_whole(1, _LONG)),
    "positive integer": Kind(_whole(1, _INT)),
    "integer from 0": Kind(_whole(0, _INT)),
    "number from 1 to 65535": Kind(_whole(1, 65535)),
    "boolean": Kind(lambda value: value.casefold() in ("true", "false")),
    "fraction": Kind(_is_fraction, lambda value: "'0.1'"),
    "duration": Kind(
        lambda value: re.fullmatch(r"\s*\d{1,15}(us|ms|s|m|min|h|d)?\s*", value, re.I | re.A) is not None,
        _as_spark_writes,
    ),
    "number of seconds": Kind(_whole(0, _INT), _in_units(1)),
    "number of milliseconds": Kind(_whole(0, _LONG), _in_units(1000)),
    "number of bytes": Kind(_whole(0, _LONG), _in_bytes),
    "positive number of bytes": Kind(_whole(1, _LONG), _in_bytes),
    "single character": Kind(lambda value: len(value.encode("utf-16-le", "surrogatepass")) <= 2),
    "JSON object": Kind(_is_json, lambda value: '\'{"topic":{"0":23}}\''),
    "host:port": Kind(
        lambda value: "://" not in value and _is_server(value), lambda value: "'127.0.0.1:8090'"
    ),
    "list of host:port": Kind(_each(_is_server), lambda value: "'host:9092'"),
    "list of http://host:port": Kind(_each(_is_http_address), lambda value: "'http://host:8081'"),
    "list of group:artifact:version": Kind(
        lambda value: all(re.fullmatch(r"\s*[\w.-]+(:[\w.-]+){2}\s*", part) for part in value.split(","))
    ),
    "JDBC address": Kind(
        lambda value: value.startswith("jdbc:"), lambda value: "'jdbc:postgresql://host/database'"
    ),
    PYTHON_NAME: Kind(
        lambda value: "." in value and all(part.isidentifier() for part in value.split("."))
    ),
}  # fmt: skip
"""By the name that DESCRIBE CONNECTOR and errors show. A kind that is not here takes each value."""
