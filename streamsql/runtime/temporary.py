"""Temporary views: they end with their Spark, and a new Spark gets them again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from streamsql.catalog import Catalog
from streamsql.errors import EngineFault, StreamsqlError
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import tokenize, unquote
from streamsql.runtime.faults import translate

_CREATES = re.compile(r"CREATE\b.*?\bTEMP(ORARY)?\s+VIEW\b", re.IGNORECASE | re.DOTALL)
_DROPS = re.compile(r"DROP\s+(?:TABLE|VIEW)\s+(?:IF\s+EXISTS\s+)?([\w.`]+)", re.IGNORECASE)

Make = Callable[[Statement, Any], None]


class TemporaryViews:
    """The statements that made the session's temporary views, by folded name of the view.

    make: carries such a statement out on a Spark session.
    """

    def __init__(self, catalog: Catalog, make: Make) -> None:
        self.catalog = catalog
        self._make = make
        self._made: dict[str, Statement] = {}
        self._missing: set[str] = set()
        self._untold: dict[str, str] = {}

    def remember(self, statement: Statement, creates: str) -> None:
        """Take notice of a statement that was carried out. creates: the view or table that it makes."""
        if creates and _CREATES.match(statement.text):
            self._made[creates.casefold()] = statement
            self._missing.discard(creates.casefold())
        dropped = _DROPS.match(statement.text)
        if dropped:
            self.forget(dropped.group(1).replace("`", ""))

    def forget(self, name: str) -> None:
        """A view that is dropped."""
        self._made.pop(name.casefold(), None)
        self._missing.discard(name.casefold())
        self.catalog.tables.pop(name.casefold(), None)

    def restore(self, spark: Any) -> None:
        """Make them all again on a new Spark; what cannot be made is told by `news`."""
        self._missing.clear()
        for name in self._made:
            fault = self._try(name, spark)
            if fault:
                self._missing.add(name)
                self._untold[name] = (
                    f"the temporary view {name} could not be made again: {fault.message}; the next statement "
                    "that names it tries again"
                )

    def news(self) -> tuple[str, ...]:
        """What `restore` has to tell, once."""
        lines = tuple(self._untold.values())
        self._untold.clear()
        return lines

    def check(self, statement: Statement, spark: Callable[[], Any]) -> None:
        """Try again to make those missing views that a statement names. spark: gives the Spark session.

        Raises EngineFault for one that cannot be made, unless the statement drops or replaces it.
        """
        tokens = tokenize(statement.text, strict=False) if self._made else []
        named = {unquote(t).casefold(): t for t in tokens if t.kind in ("word", "quoted")}
        views = [name for name in self._made if name in named]
        session = spark() if views else None  # one that starts now makes the views
        for name in [name for name in views if name in self._missing]:
            self._untold.pop(name, None)
            fault = self._try(name, session)
            dropped = _DROPS.match(statement.text)
            if fault is None:
                self._missing.discard(name)
            elif dropped and dropped.group(1).replace("`", "").casefold() == name:
                self.forget(name)
            elif not _CREATES.match(statement.text):
                raise EngineFault(
                    f"the temporary view {name} cannot be made again: {fault.message}",
                    detail="it ended with the Spark that it was made in",
                    hint=f"CREATE OR REPLACE TEMPORARY VIEW {name} AS …, or DROP VIEW IF EXISTS {name};",
                    span=named[name].span,
                )

    def _try(self, name: str, spark: Any) -> StreamsqlError | None:
        try:
            self._make(self._made[name], spark)
        except Exception as error:
            return translate(error)
        return None
