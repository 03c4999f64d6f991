"""The graph of a catalog: its relations and queries, and what flows between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from streamsql.catalog import Catalog
from streamsql.definitions import Query, Sink
from streamsql.errors import Source, StreamsqlError
from streamsql.features.graph.column_origins import ColumnOrigins
from streamsql.language.parser import parse_text
from streamsql.language.query import read_query
from streamsql.language.spark_definitions import query_of_view
from streamsql.language.statements.insert import InsertSet
from streamsql.plan.resolver import Resolver


@dataclass(frozen=True)
class Node:
    """kind: stream, query, live table, sink or table; about: its connector; status: of a query, or of that of
    a live table, "" for none.
    """

    name: str
    kind: str
    about: str = ""
    status: str = ""


@dataclass(frozen=True)
class Edge:
    """Rows flow from a relation or query to another, by their names. columns: (of the source, of the target),
    as far as they are known.
    """

    source: str
    target: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Graph:
    """nodes: by folded name. A query has the name of its live table, and is one node with it."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    edges: tuple[Edge, ...] = ()

    def around(self, name: str) -> Graph:
        """The part from which a node comes, and that comes from it."""
        down = [(edge.source.casefold(), edge.target.casefold()) for edge in self.edges]
        up = [(target, source) for source, target in down]
        found = _reached(name.casefold(), down) | _reached(name.casefold(), up)
        edges = tuple(edge for edge, ends in zip(self.edges, down, strict=True) if found.issuperset(ends))
        return Graph({key: node for key, node in self.nodes.items() if key in found}, edges)


def _reached(start: str, steps: list[tuple[str, str]]) -> set[str]:
    """What can be reached in steps from one to another, the start too."""
    reached = {start}
    while more := {after for before, after in steps if before in reached} - reached:
        reached |= more
    return reached


def graph_of(catalog: Catalog, status: Callable[[str], str] = lambda query: "") -> Graph:
    """The graph. status: of a query by its name. What a query reads that nobody has defined is a table."""
    nodes: dict[str, Node] = {}
    edges: list[Edge] = []
    for stream in catalog.streams.values():
        nodes[stream.name.casefold()] = Node(stream.name, "stream", stream.connector)
        if stream.query:
            edges += _edges_into(stream.name, stream.query, catalog)
    for view in catalog.tables.values():
        place = query_of_view(view.text) if view.text else None
        if place is not None:
            nodes[view.name.casefold()] = Node(view.name, "view")
            edges += _edges_into(view.name, view.text[place.start : place.end], catalog)
    for sink in catalog.sinks.values():
        if not sink.owner:
            nodes[sink.name.casefold()] = _node_of(sink, catalog, status)
    for query in catalog.queries.values():
        if not query.owner:
            edges += _edges_of(query, catalog)
            if not query.live_table:
                nodes[query.name.casefold()] = Node(query.name, "query", "", status(query.name))
    for edge in edges:
        nodes.setdefault(edge.source.casefold(), Node(edge.source, "table"))
    return Graph(nodes, tuple(edges))


def _node_of(sink: Sink, catalog: Catalog, status: Callable[[str], str]) -> Node:
    if not sink.is_live:
        return Node(sink.name, "sink", sink.connector)
    query = catalog.queries.get(sink.name.casefold())
    return Node(sink.name, "live table", "", status(query.name) if query and query.live_table else "")


def _edges_of(query: Query, catalog: Catalog) -> list[Edge]:
    """From what a query reads to it, and from it to what it writes."""
    if query.live_table:
        return _edges_into(query.name, query.text, catalog)
    written: dict[str, list[tuple[str, str]]] = {sink: [] for sink in (*query.sinks, query.late) if sink}
    edges = []
    for sinks, text, columns in _inserts(query):
        into = _edges_into(query.name, text, catalog)
        edges += into
        results = list(dict.fromkeys(target for edge in into for _, target in edge.columns))
        for sink in sinks:
            written[sink] += zip(results, columns or results, strict=False)
    merged: dict[str, Edge] = {}
    for edge in edges:
        before = merged.get(edge.source.casefold(), replace(edge, columns=()))
        merged[edge.source.casefold()] = replace(
            before, columns=tuple(dict.fromkeys((*before.columns, *edge.columns)))
        )
    return [*merged.values(), *(Edge(query.name, sink, tuple(pairs)) for sink, pairs in written.items())]


def _inserts(query: Query) -> Iterator[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """(sinks, SELECT, columns that are named) of each INSERT of a query."""
    if not query.together:
        yield query.sinks, query.text, query.columns
        return
    statement = parse_text(Source("", f"EXECUTE STATEMENT SET BEGIN {query.text} END"))
    assert isinstance(statement, InsertSet)
    names = {sink.casefold(): sink for sink in query.sinks}
    for insert in statement.inserts:
        sinks = tuple(names.get(target.value.casefold(), target.value) for target in insert.targets)
        yield sinks, insert.query.text, tuple(column.value for column in insert.columns)


def _edges_into(target: str, text: str, catalog: Catalog) -> list[Edge]:
    """The edges of a SELECT. A relation that is only asked for, as by EXISTS, has an edge without columns."""
    try:
        query = read_query(text)
        origins = Resolver(catalog).query_columns(query, ColumnOrigins).origins()
    except StreamsqlError:  # it cannot be read here
        return []
    edges = []
    for key, name in {r.name.casefold(): r.name for r in query.relations if r.name}.items():
        entry = catalog.relation(name)
        columns = (
            (column, result)
            for result, of in origins
            for relation, column in sorted(of)
            if relation.casefold() == key
        )
        edges.append(Edge(entry.name if entry else name, target, tuple(columns)))
    return edges


# ---- how it is shown


def as_json(graph: Graph) -> str:
    """{"nodes": [{name, kind, about, status}], "edges": [{source, target, columns}]}; columns: pairs, of the
    source and of the target.
    """
    nodes = [vars(node) for node in graph.nodes.values()]
    return json.dumps(
        {"nodes": nodes, "edges": [vars(edge) for edge in graph.edges]}, indent=1, ensure_ascii=False
    )


_SHAPES = {
    "stream": ("([", "])"),
    "live table": ("[(", ")]"),
    "sink": ("[[", "]]"),
}
"""The marks of Mermaid around the label of a node; of others, brackets."""


def as_mermaid(graph: Graph) -> str:
    """A flow chart of Mermaid, as Markdown on many sites shows it."""
    names = {key: f"n{number}" for number, key in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for key, node in graph.nodes.items():
        before, after = _SHAPES.get(node.kind, ("[", "]"))
        label = f"{node.kind} {node.name}".replace('"', "#quot;")
        lines.append(f'  {names[key]}{before}"{label}"{after}')
    lines += [f"  {names[e.source.casefold()]} --> {names[e.target.casefold()]}" for e in graph.edges]
    return "\n".join(lines)


def as_text(graph: Graph, *, columns: bool = False) -> str:
    """A tree below each node that nothing flows into; what was shown before is not shown again. columns:
    whether each edge has its columns.
    """
    targets = {edge.target.casefold() for edge in graph.edges}
    roots = sorted(graph.nodes, key=lambda key: key in targets)
    shown: set[str] = set()
    lines: list[str] = []
    for root in roots:
        if root not in targets or root not in shown:  # one of a circle comes from nothing else
            lines += _branch(graph, root, "", "", shown, columns, "")
    return "\n".join(lines)


def _branch(
    graph: Graph, key: str, head: str, indent: str, shown: set[str], columns: bool, flows: str
) -> Iterator[str]:
    node = graph.nodes[key]
    about = ", ".join(filter(None, (node.about, node.status)))
    below = _unique(edge for edge in graph.edges if edge.source.casefold() == key)
    again = key in shown and bool(below)
    yield (
        f"{head}{node.kind} {node.name}"
        + (f" ({about})" if about else "")
        + (", see above" if again else "")
        + flows
    )
    shown.add(key)
    for edge in () if again else below:
        last = edge is below[-1]
        pairs = ", ".join(f"{a} → {b}" if a != b.casefold() else b for a, b in edge.columns)
        yield from _branch(
            graph, edge.target.casefold(), f"{indent}{'└─' if last else '├─'} ",
            f"{indent}{'   ' if last else '│  '}", shown, columns, f": {pairs}" if columns and pairs else "",
        )  # fmt: skip


def _unique(edges: Iterable[Edge]) -> list[Edge]:
    """The first edge to each target."""
    return list({edge.target.casefold(): edge for edge in reversed(list(edges))}.values())[::-1]
