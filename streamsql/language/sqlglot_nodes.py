"""The classes of sqlglot's nodes (sqlglot.exp), imported on first use: sqlglot would delay the prompt."""

from __future__ import annotations

import typing  # the name Any is that of a node


def __getattr__(name: str) -> typing.Any:
    from sqlglot import exp

    node = globals()[name] = getattr(exp, name)
    return node
