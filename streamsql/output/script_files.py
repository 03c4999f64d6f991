"""The texts of scripts. A light module: it is imported before Spark's JVM starts."""

from __future__ import annotations

from pathlib import Path

from streamsql.errors import InputFault, Source, StreamsqlError, UsageFault, reason_of


def read_file(path: str, *, missing: type[StreamsqlError] = UsageFault) -> Source:
    """A script file as a Source. Raises `missing` when it does not exist, InputFault when not UTF-8."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise missing(f"cannot read {path}: {reason_of(error)}") from None
    return decode(path, data)


def decode(name: str, data: bytes) -> Source:
    """Bytes of a script as a Source. Raises InputFault with line and column of the first bad byte."""
    try:
        return Source(name, data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        raise bad_encoding(name, data, error) from None


def bad_encoding(name: str, data: bytes, error: UnicodeDecodeError) -> InputFault:
    """The fault for a script that is not UTF-8, with line and column of the first bad byte."""
    line = data.count(b"\n", 0, error.start) + 1
    column = error.start - data.rfind(b"\n", 0, error.start)
    return InputFault(
        f"{name}:{line}:{column}: the script is not UTF-8 (byte 0x{data[error.start]:02x})",
        hint=f"iconv -f latin1 -t utf-8 {name} > new.sql",
        code="BAD_ENCODING",
    )
