"""The plan of a query that keeps a sink in step with a result over live tables."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.calls import Assign, Node, Program, Var, call
from streamsql.catalog import Catalog
from streamsql.connectors import debezium
from streamsql.connectors.registry import connector
from streamsql.language.statements.base import Name
from streamsql.plan.plans import Refresh, live_rows

OF_CHANGES = ("__row", "__key")
"""The columns behind those of a result, by which its rows are compared."""


@dataclass(frozen=True)
class Changes(Refresh):
    """The result is computed again after micro-batches of its live tables, and what has changed is written.

    keys: the columns that tell its rows apart; empty if that is not known.
    """

    keys: tuple[str, ...] = ()

    def applied(self, catalog: Catalog) -> Catalog:
        return self.with_stages(catalog).having(self.query)

    @property
    def write(self) -> Node:
        """The function that writes changes into the sink."""
        write = connector(Name(self.sink.connector)).changes_writer(self.sink)
        assert write is not None
        return write

    def changes(self, schema: Node, **more: object) -> Node:
        """The call that makes the writer of changes. schema: of `result`; more: arguments of it."""
        named: dict[str, object] = {"unique": True} if self.sink.key else {}
        if self.sink.format == debezium.FORMAT:
            named["envelope"] = True
        return call("Changes", Var("spark"), schema, self.write, self.keys, **(named | more))

    def rows(self, schema: Node) -> Program:
        """The rows of a live table that takes the changes."""
        if not self.sink.is_live:
            return ()
        return (live_rows(self.sink, call("columns_of_changes", schema), "append"),)

    def keeping(self, mode: str) -> Program:
        return self.rows(Var("result").attr("schema"))

    def writer(self, mode: str) -> Program:
        """The part of the program that writes all rows of the result as new ones, once."""
        whole = call("to_arrow", Var("result"))
        return (Assign("", self.changes(Var("result").attr("schema")).call("take", whole, 0)),)
