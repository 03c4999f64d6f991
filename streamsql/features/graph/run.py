"""SHOW GRAPH, as a text, Mermaid or JSON."""

from __future__ import annotations

from streamsql.catalog import unknown
from streamsql.features.graph.graph import as_json, as_mermaid, as_text, graph_of
from streamsql.features.graph.statement import ShowGraph
from streamsql.results import Result, Text
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts


def _show_graph(parts: SessionParts, statement: ShowGraph) -> Result:
    """Raises NameFault for a relation that is not in the graph."""
    graph = graph_of(parts.catalog, lambda query: parts.facts(query).status)
    if (name := statement.name) is not None:
        if name.value.casefold() not in graph.nodes:
            raise unknown("relation", name, (node.name for node in graph.nodes.values()))
        graph = graph.around(name.value)
    if statement.form == "JSON":
        return Text(text=as_json(graph))
    if statement.form == "MERMAID":
        return Text(text=as_mermaid(graph))
    return Text(text=as_text(graph, columns=name is not None) or "nothing is defined", prose=True)


DIRECT: Answers = {ShowGraph: _show_graph}
