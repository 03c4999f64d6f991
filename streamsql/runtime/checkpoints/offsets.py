"""Formats the offsets of a checkpoint's log as short text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

SHOWN = 6
"""The largest number of partitions or parts of an offset that are shown one by one."""
_CLOCKS = frozenset({"timestamp", "runTimeMs"})
_WORDS = {"logOffset": "file batch"}
"""What Spark's names of offsets stand for: a source of files numbers the sets of files that it has found."""


def kind_of(offset: str | None) -> str:
    """The kind of source that wrote an offset, guessed from its JSON; "" when it is unknown."""
    value = _value(offset)
    if isinstance(value, int):
        return "rate, socket or another with a counter"
    if not isinstance(value, dict) or not value:
        return ""
    if set(value) == {"logOffset"}:
        return "files"
    if set(value) == {"offset", "timestamp"}:
        return "rate-micro-batch"
    if "reservoirVersion" in value:
        return "delta"
    if "snapshot_id" in value:
        return "iceberg"
    if all(isinstance(v, dict) and "runTimeMs" in v for v in value.values()):
        return "rate, continuous"
    return "kafka" if _is_kafka(value) else ""


def _is_kafka(value: dict[str, Any]) -> bool:
    return all(
        isinstance(parts, dict)
        and parts
        and all(p.isdigit() and isinstance(n, int) for p, n in parts.items())
        for parts in value.values()
    )


def step(before: str | None, after: str | None) -> str:
    """The step from one offset to the next: `file batch 1 -> 2`, `clicks[0] 3 -> 12, clicks[1] 7`. before:
    None if it is not known.
    """
    if after is None:
        return "none yet"
    value = _value(after)
    if not isinstance(value, (dict, int)):
        return _cut(after)
    old, new = _leaves(_value(before)), _leaves(value)
    if len(new) <= SHOWN:
        return ", ".join(_one(path, old.get(path), end) for path, end in new.items())
    if isinstance(value, dict) and _is_kafka(value):
        topics = ((t, {p: n for p, n in new.items() if p.startswith(f"{t}[")}) for t in value)
        return ", ".join(_topic(topic, old, ends) for topic, ends in topics)
    return _cut(after)


def _value(offset: str | None) -> Any:
    try:
        return None if offset is None else json.loads(offset)
    except ValueError:
        return offset


def _leaves(value: Any) -> dict[str, Any]:
    """The numbers and texts of an offset by their paths: `clicks[0]`, `file batch`, or "" for the root."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        return {"": value}
    kafka = bool(value) and _is_kafka(value)
    leaves: dict[str, Any] = {}
    for key, inner in value.items():
        if key in _CLOCKS:
            continue
        for path, leaf in _leaves(inner).items():
            said = _WORDS.get(key) or key
            leaves[f"{key}[{path}]" if kafka else f"{key}.{path}" if path else said] = leaf
    # A continuous source has a value for each partition.
    return {re.sub(r"^(\d+)\.value$", r"partition \1", path): leaf for path, leaf in leaves.items()}


def _one(path: str, before: Any, after: Any) -> str:
    shown = f"{after}" if before == after else f"{'' if before is None else f'{before} '}-> {after}"
    return f"{path} {shown}".strip()


def _topic(topic: str, before: Mapping[str, Any], ends: Mapping[str, int]) -> str:
    said = f"{topic} {len(ends)} partitions"
    if not ends.keys() <= before.keys():
        return said
    return f"{said}, {sum(end - before[path] for path, end in ends.items()):+d} messages"


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
