"""What comes in as messages: a body may hold several."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from streamsql.connectors import debezium

JSON_FORMATS = frozenset({"json", debezium.FORMAT})
_LINES = frozenset({"csv", "text"})
_SPACE = re.compile(r"[ \t\r\n]*")


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refused)


def payloads_of(body: bytes, form: str) -> list[bytes]:
    """The messages in a body, as written there. form: the format of the stream. JSON: each value, and each
    element of an array; csv and text: each line; others: the body. Raises ValueError for what is no JSON
    or no UTF-8.
    """
    if form in JSON_FORMATS:
        return [text.encode() for text in _json_texts(body.decode("utf-8-sig"))]
    if form in _LINES:
        body.decode()
        return [line for line in body.splitlines() if line.strip()]
    return [body]


def _json_texts(text: str) -> list[str]:
    """The texts of the JSON values in a text, with those of an array's elements in place of the array."""
    texts, at = list[str](), _after_space(text, 0)
    while at < len(text):
        if text[at] == "[":
            at = _elements(text, at, texts)
        else:
            end = _end_of_value(text, at)
            texts.append(text[at:end])
            at = end
        at = _after_space(text, at)
    return texts


def _elements(text: str, at: int, texts: list[str]) -> int:
    """Add the elements of the array at a position. Returns the position behind it."""
    at = _after_space(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        end = _end_of_value(text, at)
        texts.append(text[at:end])
        at = _after_space(text, end)
        if text[at : at + 1] == "]":
            return at + 1
        if text[at : at + 1] != ",":
            raise ValueError(f"a comma or ] is missing at character {at + 1}")
        at = _after_space(text, at + 1)


def _end_of_value(text: str, at: int) -> int:
    try:
        return _DECODER.raw_decode(text, at)[1]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON at character {error.pos + 1}: {error.msg}") from None


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
