"""The state of a query as a relation: FROM STATE OF QUERY q OPERATOR 0 AT BATCH 3.

Spark SQL has no relations with options, so each state is read by Spark's state reader (Spark guide, "State
Data Source") into a variable, and a name replaces it in the query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from streamsql.calls import Node, Program, Var, call, calls_in
from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import RuleFault, Span, SyntaxFault
from streamsql.language.grammar import Node as Parsed
from streamsql.language.query import ConsoleRelation, read_query
from streamsql.language.statements.base import count_of
from streamsql.language.statements.checkpoint import Owner, owner_of
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import Sources

READER = "read_state"
"""The helper that reads a state store."""


@dataclass(frozen=True)
class StateTable:
    """A state relation. owner: the query or checkpoint; metadata: whether it reads the state's metadata
    instead of the state. Parts that are not written are None or ""; side: left or right; changes: the first
    and the last micro-batch, None for the newest. places: the span of each part.
    """

    span: Span
    owner: Owner
    metadata: bool = False
    operator: int | None = None
    store: str = ""
    side: str = ""
    variable: str = ""
    timers: bool = False
    batch: int | None = None
    changes: tuple[int, int | None] | None = None
    raw: bool = False
    places: tuple[tuple[str, Span], ...] = ()

    def place(self, part: str) -> Span:
        """The span of a part (operator, store, side, …), or of the whole relation if it is not written."""
        return dict(self.places).get(part, self.span)

    @property
    def options(self) -> dict[str, str]:
        """The options for Spark's state reader."""
        first, last = self.changes or (None, None)
        options = {
            "batchId": self.batch,
            "operatorId": self.operator,
            "storeName": self.store or None,
            "joinSide": self.side or None,
            "stateVarName": self.variable or None,
            "readRegisteredTimers": "true" if self.timers else None,
            "readChangeFeed": "true" if self.changes else None,
            "changeStartBatchId": first,
            "changeEndBatchId": last,
        }
        return {key: str(value) for key, value in options.items() if value is not None}


def state_tables(text: str) -> list[StateTable]:
    """The states that a query reads, from left to right. Raises SyntaxFault or RuleFault, with its span."""
    return [state_table(own) for own in read_query(text).own if own.kind == "StateTable"]


def state_table(own: ConsoleRelation) -> StateTable:
    """Read a state relation. Raises SyntaxFault or RuleFault, with its span in the query."""
    node = own.node
    metadata = node.get("StateMetadata")
    if metadata:
        return StateTable(node.span, owner_of(metadata), metadata=True)
    table = StateTable(node.span, owner_of(node), raw=node.has("RAW"))
    places: dict[str, Span] = {}
    for part in node.all("StatePart"):
        [inner] = part.parts
        name = inner.name.removeprefix("State").lower()
        if name in places:
            raise SyntaxFault(f"{name.upper()} is written twice", span=inner.span, code="DUPLICATE_CLAUSE")
        places[name] = inner.span
        table = replace(table, **{name: _value(inner)})
    for one, other in _APART:
        if one in places and other in places:
            raise RuleFault(
                f"{one.upper()} and {other.upper()} cannot be combined",
                span=places[other],
                code="CLAUSE_CONFLICT",
            )
    return replace(table, places=tuple(places.items()))


# Parts that mean the same or contradict each other.
_APART = (("store", "side"), ("variable", "timers"), ("batch", "changes"), ("store", "variable"),
          ("store", "timers"), ("side", "variable"), ("side", "timers"), ("timers", "changes"))  # fmt: skip


def _value(part: Parsed) -> Any:
    """The value of a part of the relation."""
    numbers = [_number(n) for n in part.all("Number")]
    if part.name == "StateChanges":
        return (numbers[0], numbers[1] if len(numbers) > 1 else None)
    if numbers:
        return numbers[0]
    if part.name == "StateSide":
        return part.parts[-1].name.lower()
    return part.text("String") or part.text("NewName") or part.name == "TIMERS"


def _number(node: Parsed) -> int:
    return count_of(node, "this takes a whole number", least=0)


def lower_state(own: ConsoleRelation, sources: Sources) -> str:
    """Define a state as a variable of the program. Returns its name in sources."""
    table = state_table(own)
    base = f"{table.owner.query}_state" if table.owner.query else "checkpoint_state"
    sources.states.append(table.span)
    return sources.define(base, _read(table, sources), Shape())


def _read(table: StateTable, sources: Sources) -> Node:
    folder = checkpoint_of(table.owner, sources.catalog, sources.places)
    if table.metadata:
        return Var("spark").attr("read").call("format", "state-metadata").call("load", folder)
    raw = {"raw": True} if table.raw else {}
    return call(READER, Var("spark"), folder, **raw, **table.options)


def reads_state(program: Program) -> bool:
    """Whether a program reads the state of a query."""
    return any(c.function == Var(READER) for c in calls_in(program))


def checkpoint_of(owner: Owner, catalog: Catalog, places: Places) -> str:
    """The checkpoint folder of an owner. Raises NameFault for an unknown query."""
    if owner.folder:
        return owner.folder.value
    assert owner.query
    query = catalog.query(owner.query)
    return query.checkpoint or places.checkpoint(query.name)
