"""datagen: generated rows; the same seed gives the same rows in every run.

Each column is a function of the row's number `n` (Spark's rate sources count rows from 0), so a
restart resumes where it stopped, with the same rows.
"""

import re
from collections.abc import Callable

from streamsql.calls import Node, expr
from streamsql.connectors.base import Connector, OptionSpec, Places, conflict, option_table, read_stream
from streamsql.definitions import Stream
from streamsql.errors import NameFault, did_you_mean
from streamsql.language.statements.base import Column, Name, Option
from streamsql.language.tokens import quote, quote_name

KINDS = {
    "sequence": "sequence [from 5]",
    "random": "random 1 to 100",
    "skew": "skew 1 to 100",
    "choice": "choice click, view, buy",
    "event_time": "event_time [every 100 milliseconds] [late up to 10 seconds]",
    "expression": "expression concat('user_', n % 7)",
}
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_RANGE = re.compile(rf"\s*{_NUMBER}\s*(?:to|\.\.|,)\s*{_NUMBER}\s*\Z", re.IGNORECASE)
_TIME = re.compile(r"\s*(?:every\s+(\d+)\s*(\w+))?\s*(?:late\s+up\s+to\s+(\d+)\s*(\w+))?\s*\Z", re.IGNORECASE)
_INTEGERS = frozenset("""TINYINT BYTE SMALLINT SHORT INT INTEGER BIGINT LONG""".split())
_UNITS = {"millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}


class Datagen(Connector):
    name = "datagen"
    help = "generated rows; the same seed gives the same rows in every run"
    needs_columns = True
    reads: tuple[OptionSpec, ...] = option_table("""
        rowsPerSecond: positive number = 10 -- rows per second of clock time
        rowsPerBatch: positive number -- rows per micro-batch, as fast as possible, instead of rowsPerSecond
        seed: number = 0 -- seed of the generated values
        start = 2024-01-01 00:00:00 -- event time of the first row, with rowsPerBatch
        numPartitions: positive integer -- number of partitions
    """)

    def stream_options(self, columns: tuple[Column, ...]) -> tuple[OptionSpec, ...]:
        kinds = "; ".join(KINDS.values())
        return self.reads + tuple(OptionSpec(f"fields.{c.name}", f"one of: {kinds}") for c in columns)

    def source(self, stream: Stream, places: Places) -> Node:
        batch = stream.option("rowsPerBatch")
        if batch:
            reader = read_stream("rate-micro-batch").call("option", "rowsPerBatch", batch)
        else:
            reader = read_stream("rate").call("option", "rowsPerSecond", stream.option("rowsPerSecond", "10"))
        if stream.option("numPartitions"):
            reader = reader.call("option", "numPartitions", stream.option("numPartitions"))
        fields = [
            expr(f"CAST({self.expression(stream, c)} AS {c.type}) AS {quote_name(c.name)}")
            for c in stream.columns
        ]
        numbered = reader.call("load").call("select", expr("value AS n"), expr("timestamp AS arrived"))
        return numbered.call("select", *fields)

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        if stream.option("rowsPerBatch") and stream.option("rowsPerSecond"):
            raise conflict(options["rowsperbatch"], "rowsPerBatch and rowsPerSecond exclude each other")
        for column in stream.columns:
            option = options.get(f"fields.{column.name}".casefold())
            try:
                self.expression(stream, column)
            except ValueError as problem:
                raise NameFault(
                    f"datagen cannot fill {column.name}: {problem}",
                    hint="a field is one of: " + "; ".join(KINDS.values()),
                    span=option.value.span if option else column.span,
                    code="BAD_OPTION_VALUE",
                ) from None

    def expression(self, stream: Stream, column: Column) -> str:
        """The SQL expression over n that fills a column. Raises ValueError with the reason."""
        text = stream.option(f"fields.{column.name}").strip() or _default(column)
        kind, _, rest = text.partition(" ")
        make = _MAKERS.get(kind.casefold())
        if make is None:
            like = did_you_mean(kind, KINDS)
            raise ValueError(f"unknown field kind {kind}" + (f", {like}" if like else ""))
        return make(stream, column, rest.strip())


def _default(column: Column) -> str:
    """The default generator of a column, by its type."""
    base = re.split(r"\W", column.type.upper())[0]
    if base in ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
        return "event_time"
    if base in _INTEGERS:
        return "sequence" if column.name.casefold() == "id" else "random 1 to 100"
    defaults = {
        "STRING": f"expression concat({quote(column.name + '_')}, n % 10)",
        "BOOLEAN": "expression n % 2 = 0",
        "DOUBLE": "random 0 to 1",
        "FLOAT": "random 0 to 1",
        "DECIMAL": "random 0 to 100",
        "DATE": "expression date_add(DATE '2024-01-01', CAST(n % 365 AS INT))",
    }
    if base not in defaults:
        raise ValueError(f"add an option 'fields.{column.name}' for a column of type {column.type}")
    return defaults[base]


def _hash(stream: Stream, column: Column) -> str:
    return f"xxhash64(n, {stream.option('seed', '0')}, {quote(column.name)})"


def _unit(stream: Stream, column: Column) -> str:
    """A number in [0, 1) that is a function of the row."""
    return f"(pmod({_hash(stream, column)}, 1000003) / 1000003D)"


def _bounds(text: str) -> tuple[str, str]:
    match = _RANGE.match(text)
    if not match or float(match.group(1)) > float(match.group(2)):
        raise ValueError(f"'{text}' is not a range such as 1 to 100")
    return match.group(1), match.group(2)


def _random(stream: Stream, column: Column, text: str) -> str:
    low, high = _bounds(text)
    if re.split(r"\W", column.type.upper())[0] in _INTEGERS:
        return f"{low} + pmod({_hash(stream, column)}, {int(float(high)) - int(float(low)) + 1})"
    return f"{low} + ({high} - {low}) * {_unit(stream, column)}"


def _skew(stream: Stream, column: Column, text: str) -> str:
    low, high = _bounds(text)
    # The cube of a uniform number: a tenth of the values gets almost half of the rows.
    return f"{low} + floor(({high} - {low} + 1) * pow({_unit(stream, column)}, 3))"


def _choice(stream: Stream, column: Column, text: str) -> str:
    values = [v.strip() for v in re.split(r"[,|]", text) if v.strip()]
    if not values:
        raise ValueError("choice needs values")
    listed = ", ".join(map(quote, values))
    return f"element_at(array({listed}), CAST(1 + pmod({_hash(stream, column)}, {len(values)}) AS INT))"


def _sequence(stream: Stream, column: Column, text: str) -> str:
    match = re.match(r"(?:from\s+)?(-?\d+)?\Z", text, re.IGNORECASE)
    if not match:
        raise ValueError(f"'{text}' is not a start value")
    return f"n + {match.group(1) or 0}"


def _micros(number: str | None, unit: str | None, default: int) -> int:
    if number is None or unit is None:
        return default
    if unit.casefold().rstrip("s") not in _UNITS:
        raise ValueError(f"there is no unit of time {unit}")
    return int(number) * _UNITS[unit.casefold().rstrip("s")]


def _event_time(stream: Stream, column: Column, text: str) -> str:
    match = _TIME.match(text)
    if not match:
        raise ValueError(f"'{text}' is not understood")
    step = _micros(match.group(1), match.group(2), 1_000_000)
    late = _micros(match.group(3), match.group(4), 0)
    if stream.option("rowsPerBatch"):
        start = quote(stream.option("start", "2024-01-01 00:00:00"))
        base = f"unix_micros(to_timestamp({start})) + n * {step}"
    else:
        base = "unix_micros(arrived)"
    back = f" - pmod({_hash(stream, column)}, {late + 1})" if late else ""
    return f"timestamp_micros({base}{back})"


def _expression(stream: Stream, column: Column, text: str) -> str:
    if not text:
        raise ValueError("the expression is missing")
    return f"({text})"


_MAKERS: dict[str, Callable[[Stream, Column, str], str]] = {
    "sequence": _sequence,
    "random": _random,
    "skew": _skew,
    "choice": _choice,
    "event_time": _event_time,
    "expression": _expression,
}
