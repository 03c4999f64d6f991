"""What other distributions add to the console, by their entry points. What fails is omitted, and told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from streamsql.guard import log
from streamsql.secrets import redact_text

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

CONNECTORS, FEATURES = "streamsql.connectors", "streamsql.features"
"""The groups of entry points: a connector is a class, a feature a package that has a FEATURE."""
_WHAT = {CONNECTORS: "connector", FEATURES: "feature"}


@cache
def _points(group: str) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # 20 ms, and the first prompt needs none

    return tuple(entry_points(group=group))


_failed: dict[EntryPoint, BaseException] = {}
"""The entry points that could not be used, with the reason."""
_logged: set[EntryPoint] = set()


def are_there() -> bool:
    """Whether any distribution adds a connector or feature."""
    return any(map(_points, _WHAT))


def loaded(group: str, use: Callable[[Any], Any]) -> Iterator[tuple[EntryPoint, Any]]:
    """Each entry point of a group with what `use` makes of the object that it names. One that raises is
    omitted.
    """
    for point in _points(group):
        try:
            made = use(point.load())
        except (Exception, SystemExit) as error:  # of one distribution: the console works without it
            omit(point, error)
        else:
            yield point, made


def omit(point: EntryPoint, error: BaseException) -> None:
    """Note that an entry point is not used, and log why."""
    _failed[point] = error
    write_log()


def write_log() -> None:
    """Write into the log what could not be used, once; nothing while there is no log."""
    if logging.getLogger().handlers:
        for point in _failed.keys() - _logged:
            _logged.add(point)
            log(_failed[point], warning(point))


def _reason(point: EntryPoint) -> str:
    error = _failed[point]
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def warning(point: EntryPoint) -> str:
    """The sentence about an entry point that is not used."""
    distribution = point.dist.name if point.dist else point.value.partition(":")[0]
    what = f"its {_WHAT[point.group]} {point.name} cannot be loaded"
    return redact_text(f"the plug-in {distribution}: {what}: {_reason(point)}")


def warnings() -> list[str]:
    """The sentences about all that are not used up to now."""
    return [warning(point) for point in _failed]


def reason(group: str, name: str) -> str:
    """Why the entry point of that name, in any case, is not used; "" if there is no such one."""
    named = (p for p in _failed if p.group == group and p.name.casefold() == name.casefold())
    return next(map(_reason, named), "")
