"""What may come next at the cursor: a pure function of text, position and catalog.

The grammar that parses is the one that completes: its expectations at the cursor are keywords and
named terminals, and each terminal has one source of candidates (candidates.py). Inside a query, whose
text is Spark's, clauses.py knows what may follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamsql.catalog import Catalog
from streamsql.language.tokens import Token, quote_name, scan
from streamsql.shell.completion.candidates import in_statement
from streamsql.shell.completion.clauses import SELECT_WORDS, in_query, query_start
from streamsql.shell.completion.columns import Columns
from streamsql.shell.completion.options import in_quote
from streamsql.shell.completion.spot import KEYWORD, Offer, Spot, explained

__all__ = ["SELECT_WORDS", "Candidate", "Columns", "complete"]

# More than anybody reads: typing on finds the rest.
MOST = 500
# So many letters must be typed before the inside of a name is searched.
INSIDE = 3


@dataclass(frozen=True)
class Candidate:
    """text: what is put in the place of the last `length` characters before the cursor; kind: what it
    is, as the menu shows it: a column's type, a function's signature, an option's meaning.
    """

    text: str
    kind: str
    length: int


def complete(text: str, position: int, catalog: Catalog, columns: Columns | None = None) -> list[Candidate]:
    """Candidates at a position of a text that may hold several statements, best first.

    columns: the (name, type) pairs of a live table or table of Spark by its name, for those whose
    columns the catalog does not know; it is asked at each key and must not ask Spark itself.
    """
    try:
        if text[:position].lstrip().startswith("\\"):
            return _short(text[:position], catalog, columns)
        # A statement that runs meanwhile may change the catalog.
        return _complete(text, position, catalog.copy(), columns)
    except RecursionError:  # nested hundreds of levels deep
        return []


def _complete(text: str, position: int, catalog: Catalog, columns: Columns | None) -> list[Candidate]:
    tokens, opened, at, touching = _statement_before(text, position)
    if opened in ("--", "/*"):
        return []
    if opened in ("'", '"'):
        closing = "" if text.startswith(opened, position) else opened
        spot = Spot(explained(tokens), text[at + 1 : position], (), catalog, columns)
        found = ((o.text + (closing if o.closes else ""), o.kind, len(o.typed or "")) for o in in_quote(spot))
        return [Candidate(*offer) for offer in found][:MOST]
    typed = text[at:position] if opened else ""
    if tokens and not opened and tokens[-1].kind in ("word", "quoted") and touching:
        typed = tokens.pop().text
    tokens = explained(tokens)
    if not tokens and not typed:
        return []
    spot = Spot(tokens, typed, _statement_behind(text, position), catalog, columns)
    start = query_start(tokens)
    offers = in_statement(spot) if start is None else in_query(spot, tokens[start:])
    return _ranked(offers, spot, called=text.startswith("(", position))


class _Head:
    """The statements before the one that is being typed, as they were at the last key: read once."""

    text = ""


def _statement_before(text: str, position: int) -> tuple[list[Token], str, int, bool]:
    """The tokens of the cursor's statement up to the cursor, what is open there, where that begins, and
    whether the last token ends at the cursor.
    """
    head = _Head.text
    start = len(head) if len(head) <= position and text.startswith(head) else 0
    tokens, opened, at = scan(text[start:position])
    touching = bool(tokens) and start + tokens[-1].end == position
    first = next((i + 1 for i in range(len(tokens) - 1, -1, -1) if tokens[i].text == ";"), 0)
    if first:
        _Head.text = text[: start + tokens[first - 1].end]
    return _inside_block(tokens[first:]), opened, start + at, touching


def _inside_block(tokens: list[Token]) -> list[Token]:
    """Without the BEGIN or EXECUTE STATEMENT SET BEGIN that a statement stands behind."""
    words = [t.upper for t in tokens[:4]]
    for opening in (["BEGIN"], ["EXECUTE", "STATEMENT", "SET", "BEGIN"]):
        if words[: len(opening)] == opening:
            return tokens[len(opening) :]
    return tokens


def _statement_behind(text: str, position: int) -> tuple[Token, ...]:
    """The tokens of the cursor's statement behind the cursor and the word it stands in."""
    if position == len(text):
        return ()
    end, tries = position, 0
    while True:
        end = text.find(";", end)
        end = len(text) if end < 0 or tries > 5 else end  # a `;` in a quote may be passed a few times
        tokens, opened, _ = scan(text[position:end])
        if end == len(text) or opened not in ("'", '"', "`", "/*"):
            break
        end, tries = end + 1, tries + 1
    inside = tokens and tokens[0].start == 0 and tokens[0].kind == "word" and text[position - 1 : position]
    return tuple(tokens[1:] if inside and (inside.isalnum() or inside == "_") else tokens)


def _ranked(offers: Iterable[Offer], spot: Spot, called: bool) -> list[Candidate]:
    """The offers that fit what is typed, best first: names, functions, keywords; last what only has
    it inside.
    """
    groups: dict[tuple[bool, int], dict[str, Candidate]] = {}
    searched = len(spot.typed.strip("`")) >= INSIDE
    lower = spot.lower
    for offer in offers:
        typed = spot.typed if offer.typed is None else offer.typed
        folded = typed.casefold().strip("`")
        keys = offer.keys or (offer.text.casefold().strip("`'"),)
        inside = not any(k.startswith(folded) for k in keys)
        if inside and not (
            searched and offer.rank != KEYWORD and any(_within(folded, k, offer) for k in keys)
        ):
            continue
        text = offer.text.lower() if lower and offer.rank == KEYWORD else offer.text
        if called and text.endswith("("):
            text = text[:-1]
        if text.casefold() == typed.casefold() or quote_name(text) == typed:
            continue
        groups.setdefault((inside, offer.rank), {}).setdefault(text, Candidate(text, offer.kind, len(typed)))
    return [c for group in sorted(groups) for c in groups[group].values()][:MOST]


def _within(typed: str, key: str, offer: Offer) -> bool:
    """Whether what is typed stands inside a snake_case or dotted name, or begins a word of camelCase."""
    if "_" in key or "." in key or "-" in key:
        return typed in key
    at = key.find(typed)
    while at >= 0 and not offer.text[at : at + 1].isupper():
        at = key.find(typed, at + 1)
    return at >= 0 and not offer.text.isupper()


def _short(before: str, catalog: Catalog, columns: Columns | None) -> list[Candidate]:
    """Short forms (`\\stop q`): their names, then what completes the statement that each stands for."""
    from streamsql.preferences import Preferences
    from streamsql.shell.short import SHORT

    line = before.lstrip()[1:]
    name, space, given = line.partition(" ")
    if not space:
        names = [(n, s) for s in SHORT for n in s.names if n.startswith(name) and n != name]
        return [Candidate(n, s.help, len(name)) for n, s in names]
    short = next((s for s in SHORT if name in s.names and s.takes), None)
    if short is None:
        return []
    mark = "\uffff"
    statement = short.make(given.lstrip() + mark, Preferences()).partition(mark)[0]
    candidates = []
    for found in complete(statement, len(statement), catalog, columns):
        # The statement may say more than was typed: `SET streamsql.` for `\set`.
        surplus = max(0, found.length - len(given.lstrip()))
        text = found.text[surplus:] if surplus < len(found.text) else found.text
        candidates.append(Candidate(text.removesuffix("'"), found.kind, found.length - surplus))
    return candidates
