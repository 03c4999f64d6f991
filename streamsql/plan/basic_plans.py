"""What all plans are, and those without a program: a statement that is answered at once, entries removed."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsql.catalog import Catalog
from streamsql.errors import Note, StreamsqlError
from streamsql.language.statements.base import Statement


@dataclass(frozen=True)
class Plan:
    """notes: messages for the analyst in addition to the result, one line each."""

    notes: tuple[Note, ...] = field(default=(), kw_only=True)

    def applied(self, catalog: Catalog) -> Catalog:
        """The catalog after the plan was executed, as far as planning knows."""
        return catalog

    @property
    def changes_definitions(self) -> bool:
        """Whether what a workspace saves may be another afterwards, if the statement can change it."""
        return True

    @property
    def fault(self) -> StreamsqlError | None:
        """The error of a part of the plan that cannot be executed, although other parts can."""
        return None


@dataclass(frozen=True)
class Direct(Plan):
    """A statement that the session answers itself, without a program."""

    statement: Statement


@dataclass(frozen=True)
class OpenChange(Direct):
    """BEGIN CHANGE and END CHANGE. opens: the name of the set that is open afterwards, "" for none; after:
    the catalog with it, as far as planning knows.
    """

    opens: str = ""
    after: Catalog = field(default_factory=Catalog)

    def applied(self, catalog: Catalog) -> Catalog:
        return self.after


@dataclass(frozen=True)
class Drop(Plan):
    """kind and name: of the entry, or of all, for the message; entries: all that is removed, in this order,
    as (field of the catalog, name); none if IF EXISTS finds no such entry.
    """

    kind: str
    name: str
    entries: tuple[tuple[str, str], ...] = ()

    def applied(self, catalog: Catalog) -> Catalog:
        for kind, name in self.entries:
            catalog = catalog.without(kind, name)
        return catalog
