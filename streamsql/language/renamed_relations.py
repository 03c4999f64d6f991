"""Gives the relations that a query reads other names, so that the query means the same as before."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from streamsql.errors import RuleFault, Span
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.edits import Edit, apart, with_points
from streamsql.language.query import read_query
from streamsql.language.query_tree import Query
from streamsql.language.tokens import quote_name, unquote
from streamsql.language.tree_nodes import name_of, span_of, widened


def with_names(text: str, relations: Mapping[str, str], queries: Mapping[str, str]) -> str:
    """The text of a query that reads relations by other names. relations, queries: new names by folded old
    ones; a query is named by STATE and LATE ROWS OF QUERY.

    The names before the columns of a relation become the new one, too. Where they would mean something else
    then, they stay, and the relation gets its old name as an alias. Raises RuleFault where that is not
    possible.
    """
    query = read_query(text)
    read = {n.span.start: n for n in query.relations if n.name.casefold() in relations}
    edits: list[Edit] = []
    if read:
        edits = _relation_edits(query, read, relations)
    for own in query.own:
        for part in own.node.walk():
            if part.name == "QueryName" and part.value.casefold() in queries:
                edits.append((part.span.start, part.span.end, quote_name(queries[part.value.casefold()])))
    return with_points(text, apart(edits))[0] if edits else text


def with_aliases(
    text: str, relations: Mapping[str, str], functions: Mapping[str, str]
) -> tuple[str, list[tuple[int, int]]]:
    """(the text of a query that reads and calls by other names, the points of an Origin of it). relations,
    functions: new names by folded old ones. A relation keeps its old name as an alias.

    Raises RuleFault where that is not possible, at the name.
    """
    query = read_query(text)
    read = {n.span.start: n for n in query.relations if n.name.casefold() in relations}
    unread = [] if query.tree is not None else [n for n in query.names if n.name.casefold() in relations]
    calls = [call for call in query.calls if call.name in functions]
    for span in (*(n.span for n in unread), *(call.span for call in calls if query.tree is None)):
        raise RuleFault(
            f"it is not clear what {text[span.start : span.end]} means in a query that is not taken apart",
            detail=f"{query.reason}: what is staged has another name in Spark until PROMOTE",
            hint="another form of the query; or PROMOTE what is staged first",
            span=span,
            code="NOT_STAGEABLE",
        )
    edits = _aliased(_new_names(read, relations), query, read) if read else []
    edits += [(c.span.start, c.span.end, quote_name(functions[c.name])) for c in calls]
    return with_points(text, apart(edits)) if edits else (text, [(0, 0)])


def unnamed_calls(query: Query, functions: Container[str]) -> Iterator[Span]:
    """The places of the columns without AS that calls of functions, by their folded names, are in."""
    for select in query.nodes_of(exp.Select):
        for column in select.expressions:
            named = isinstance(column, (exp.Alias, exp.Aliases))
            if not named and any(name_of(node, query.text) in functions for node in column.walk()):
                yield widened(query.text, span_of(column))


def _relation_edits(query: Query, read: Mapping[int, Any], relations: Mapping[str, str]) -> list[Edit]:
    edits, aliases = _new_names(read, relations), _aliases(query)
    if all(aliases.get(start) for start in read):
        return edits
    new = {relations[n.name.casefold()].casefold() for n in read.values()}
    words = [(at, t) for at, t in enumerate(query.tokens) if t.kind in ("word", "quoted")]
    others = [
        (at, t) for at, t in words if t.start not in read and unquote(t).casefold() in relations
    ]  # what is named as a relation was
    clear = all(_is_qualifier(query, at) for at, _ in others) and (query.tree is not None or not others)
    if clear and not any(unquote(t).casefold() in new for _, t in words):
        return edits + [(t.start, t.end, quote_name(relations[unquote(t).casefold()])) for _, t in others]
    return _aliased(edits, query, read)


def _new_names(read: Mapping[int, Any], relations: Mapping[str, str]) -> list[Edit]:
    return [(n.span.start, n.span.end, quote_name(relations[n.name.casefold()])) for n in read.values()]


def _aliased(edits: list[Edit], query: Query, read: Mapping[int, Any]) -> list[Edit]:
    """The edits of names, with the old name as the alias of each relation that has none."""
    aliases, edits = _aliases(query), list(edits)
    for start, named in read.items():
        if aliases.get(start):
            continue
        if start not in aliases:
            raise RuleFault(
                f"it is not clear what {named.name} means in a query that reads it: {_line(query.text)}",
                hint="give the relation an alias in that query, and use that before its columns",
                code="RENAME_NOT_SUPPORTED",
            )
        edits.append((named.span.end, named.span.end, f" AS {quote_name(named.name)}"))
    return [_joined(edit, edits) for edit in edits if edit[0] != edit[1]]


def _joined(edit: Edit, edits: list[Edit]) -> Edit:
    """An edit of a name, with the alias that is put behind it."""
    alias = "".join(text for start, end, text in edits if start == end == edit[1])
    return edit[0], edit[1], edit[2] + alias


def _aliases(query: Query) -> dict[int, str]:
    """The alias of each relation that sqlglot has read, "" for none, by its place."""
    if query.tree is None:
        return {}
    tables = [node for node in query.nodes if isinstance(node, exp.Table)]
    named = [(t.parts[0], t.alias) for t in tables if t.parts and isinstance(t.parts[0], exp.Identifier)]
    return {name.meta["start"]: alias for name, alias in named if name._meta}


def _is_qualifier(query: Query, at: int) -> bool:
    """Whether a token is a name before a dot, and behind none."""
    tokens = query.tokens
    behind = at > 0 and tokens[at - 1].text == "."
    return not behind and at + 1 < len(tokens) and tokens[at + 1].text == "."


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:59] + "…"
