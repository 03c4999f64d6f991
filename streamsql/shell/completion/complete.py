"""Completion at the cursor: a pure function of text, position and catalog.

The language returns the keywords and terminals that are possible at the cursor; each terminal has one source
of candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamsql.catalog import Catalog
from streamsql.language.tokens import quote_name
from streamsql.language.unfinished.cursor import statement_at
from streamsql.shell.completion import catalog_candidates, option_candidates, query_candidates
from streamsql.shell.completion.column_resolver import Tables
from streamsql.shell.completion.offers import KEYWORD, Context, Offer, States, keyword_offer
from streamsql.shell.completion.option_candidates import in_quote

__all__ = ["Candidate", "Tables", "complete"]

SOURCES = catalog_candidates.SOURCES | option_candidates.SOURCES | query_candidates.SOURCES

# The largest number of candidates; typing more narrows them down.
MOST = 500
# The number of letters to type before candidates may also contain them in the middle.
INSIDE = 3


class Candidate(NamedTuple):
    """text: replaces the last `length` characters before the cursor; kind: its description in the menu, such
    as a column's type, a function's signature or an option's meaning.
    """

    text: str
    kind: str
    length: int


def complete(
    text: str,
    position: int,
    catalog: Catalog,
    columns: Tables | None = None,
    states: States | None = None,
) -> list[Candidate]:
    """Candidates at a position of a text with one or more statements, best first.

    columns: returns the (name, type) pairs of a live table or table of Spark whose columns the catalog does
    not know; states: see offers. They are called at each key, and must not call Spark.
    """
    try:
        if text[:position].lstrip().startswith("\\"):
            return _short(text[:position], catalog, columns, states)
        return _complete(text, position, catalog, columns, states)
    except RecursionError:  # nested hundreds of levels deep
        return []


def _complete(
    text: str, position: int, catalog: Catalog, columns: Tables | None, states: States | None
) -> list[Candidate]:
    statement = statement_at(text, position)
    context = Context(statement, catalog, columns, states)
    if statement.inside == "comment":
        return []
    if statement.inside:
        closing = "" if text.startswith(statement.inside, position) else statement.inside
        offers = (
            (o.text + (closing if o.closes else ""), o.kind, len(o.typed or "")) for o in in_quote(context)
        )
        return [Candidate(*offer) for offer in offers][:MOST]
    if not statement.head and not statement.typed:
        return []
    return _ranked(_offers(context), context, called=text.startswith("(", position))


def _offers(context: Context) -> Iterator[Offer]:
    """The offers at the cursor, not yet filtered by the typed text."""
    statement = context.statement
    of_several_parts = statement.query is None and statement.typed_key != statement.typed
    for name in statement.expected:
        yield from keyword_offer(name)
        offers = SOURCES[name](context) if name in SOURCES else ()
        if of_several_parts:
            offers = (offer._replace(typed=statement.typed_key) for offer in offers)
        yield from offers


def _ranked(offers: Iterable[Offer], context: Context, called: bool) -> list[Candidate]:
    """The offers that match the typed text, best first: names, functions, keywords; last those that only
    contain it in the middle.
    """
    groups: dict[tuple[bool, int], dict[str, Candidate]] = {}
    searched = len(context.typed.strip("`")) >= INSIDE
    lower = context.lower
    folds = dict[str, str]()
    for offer in offers:
        typed = context.typed if offer.typed is None else offer.typed
        if (whole := folds.get(typed)) is None:
            whole = folds[typed] = typed.casefold()
        folded = whole.strip("`")
        inside = not _begins(folded, offer)
        if inside and not (searched and offer.rank != KEYWORD and _within(folded, offer)):
            continue
        text = offer.text.lower() if lower and offer.rank == KEYWORD else offer.text
        if called and text.endswith("("):
            text = text[:-1]
        if text.casefold() == whole or (typed.startswith("`") and quote_name(text) == typed):
            continue
        groups.setdefault((inside, offer.rank), {}).setdefault(text, Candidate(text, offer.kind, len(typed)))
    return [c for group in sorted(groups) for c in groups[group].values()][:MOST]


def _begins(folded: str, offer: Offer) -> bool:
    """Whether a key of an offer begins with the typed text, which is folded."""
    if not offer.keys:
        return offer.text.casefold().strip("`'").startswith(folded)
    return any(key.startswith(folded) for key in offer.keys)


def _within(folded: str, offer: Offer) -> bool:
    """Whether a key of an offer contains the typed text, which is folded."""
    return any(_within_key(folded, k, offer) for k in offer.keys or (offer.text.casefold().strip("`'"),))


def _within_key(typed: str, key: str, offer: Offer) -> bool:
    """Whether a snake_case or dotted name contains the typed text, or a word of a camelCase name begins
    with it.
    """
    if "_" in key or "." in key or "-" in key:
        return typed in key
    at = key.find(typed)
    while at >= 0 and not offer.text[at : at + 1].isupper():
        at = key.find(typed, at + 1)
    return at >= 0 and not offer.text.isupper()


def _short(before: str, catalog: Catalog, columns: Tables | None, states: States | None) -> list[Candidate]:
    """Candidates for short forms (`\\stop q`): their names, then those of the statements they stand for."""
    from streamsql.config.preferences import Preferences
    from streamsql.language.short_forms import SHORT

    line = before.lstrip()[1:]
    name, space, given = line.partition(" ")
    if not space:
        names = [(n, s) for s in SHORT for n in s.names if n.startswith(name) and n != name]
        return [Candidate(n, s.help, len(name)) for n, s in names]
    short = next((s for s in SHORT if name in s.names and s.takes), None)
    if short is None or not short.make:
        return []
    cursor = "\uffff"
    statement = short.statement(given.lstrip() + cursor, Preferences()).partition(cursor)[0]
    candidates = []
    for candidate in complete(statement, len(statement), catalog, columns, states):
        # The statement may have more text than was typed: `SET streamsql.` for `\set`.
        surplus = max(0, candidate.length - len(given.lstrip()))
        text = candidate.text[surplus:] if surplus < len(candidate.text) else candidate.text
        candidates.append(Candidate(text.removesuffix("'"), candidate.kind, candidate.length - surplus))
    return candidates
