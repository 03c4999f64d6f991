"""(e) A join finds no partner: no key is on both sides, or the keys meet and the time range does not."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.definitions import Stream
from streamsql.errors import Span
from streamsql.features.why import proposals
from streamsql.features.why.verdict import Fact, Verdict, some
from streamsql.language.conditions import comparisons_of, conditions_of
from streamsql.language.expression import Expression
from streamsql.language.query import Join
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.sources import columns_of
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import interval, length
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.evidence.query_parts import Part, changed, relations_of


@dataclass(frozen=True)
class _Sides:
    """A join that is examined. left, right: FROM texts of both sides; equal: the pairs that an equality
    compares, (left, right); ranges: (smaller, larger) of each comparison of the rest.
    """

    left: str
    right: str
    equal: list[tuple[Expression, Expression]]
    ranges: list[tuple[Expression, Expression]]


def no_partner(evidence: Evidence) -> Verdict | None:
    """(e) The first join of a SELECT has rows on both sides and no pair of them."""
    if not evidence.silent:
        return None
    for part in evidence.query_parts:
        joins = part.block.joins
        if joins and joins[0].kind in ("inner", "left_semi") and joins[0].condition is not None:
            sides = _sides(evidence, part, joins[0])
            verdict = _of_sides(evidence, part, sides) if sides and sides.equal else None
            if verdict:
                return verdict
    return None


def _sides(evidence: Evidence, part: Part, join: Join) -> _Sides | None:
    relation = part.block.relation
    if relation is None or join.condition is None:
        return None
    left, right = _written(part, relation.span), _written(part, join.relation.span)
    name = (join.relation.alias or join.relation.name).casefold()
    only = _columns(evidence, join.relation.name) - _columns(evidence, relation.name)
    equal, ranges = [], []
    for pair in (p for c in conditions_of(join.condition) for p in comparisons_of(c)):
        a, b = pair.small, pair.big
        if not pair.equal:
            ranges.append((a, b))
            continue
        of_right = [
            any(q == name or not q and c.casefold() in only for q, c in side.references()) for side in (a, b)
        ]
        if of_right == [False, True]:
            equal.append((a, b))
        elif of_right == [True, False]:
            equal.append((b, a))
    return _Sides(left, right, equal, ranges)


def _columns(evidence: Evidence, relation: str) -> set[str]:
    """The columns of a stream; none of other relations, which are not known here."""
    entry = evidence.parts.catalog.relation(relation)
    return {c.casefold() for c in (isinstance(entry, Stream) and columns_of(entry)) or ()}


def _written(part: Part, span: Span) -> str:
    return part.text[span.start : span.end]


def _of_sides(evidence: Evidence, part: Part, sides: _Sides) -> Verdict | None:
    probes = evidence.probes
    keys = " AND ".join(f"{a.text} = {b.text}" for a, b in sides.equal)
    counts = [
        probes.row(f"{part.head}SELECT count(*) FROM {side}", True) for side in (sides.left, sides.right)
    ]
    joined = f"{part.head}SELECT {{}} FROM {sides.left} JOIN {sides.right} ON {keys}"
    if None in counts:
        return None
    facts: list[Fact] = [
        (f"rows of {s}", c[0]) for s, c in zip((sides.left, sides.right), counts, strict=True)
    ]
    if not all(c[0] for c in counts):
        return _empty_side(evidence, part, [c[0] for c in counts], facts)
    pairs = probes.row(joined.format("count(*)"), True)
    if pairs is None:
        return None
    facts.append(("pairs with equal keys", pairs[0]))
    if not pairs[0]:
        return _no_key(evidence, part, sides, facts)
    return _no_range(evidence, part, sides, facts, joined)


def _empty_side(evidence: Evidence, part: Part, counts: list[int], facts: list[Fact]) -> Verdict | None:
    """One side has no rows at all."""
    if not any(counts):
        return None
    name = relations_of(part.block)[counts.index(0)].name
    stream = evidence.parts.catalog.streams.get(name.casefold())
    return Verdict(
        situation="NO_JOIN_PARTNER",
        sentence=f"the join finds no partner: {name} has no rows",
        facts=tuple(facts),
        proposal=f"WHY STREAM {quote_name(stream.name)};" if stream else "",
    )


def _no_key(evidence: Evidence, part: Part, sides: _Sides, facts: list[Fact]) -> Verdict:
    """No key is on both sides: perhaps they are written differently."""
    a, b = sides.equal[0]
    for side, key in ((sides.left, a), (sides.right, b)):
        grouped = f"SELECT {key.text} AS k, count(*) FROM {side} GROUP BY {key.text} ORDER BY k LIMIT 6"
        rows = evidence.probes.rows(part.head + grouped, True)
        facts.append((f"keys {key.text}", some([r[0] for r in rows or ()])))
    proposal = _keys_shown(evidence, part, sides)
    forms = "lower(trim(CAST({} AS STRING)))"
    alike = f"{forms.format(a.text)} = {forms.format(b.text)}"
    row = evidence.probes.row(
        f"{part.head}SELECT count(*) FROM {sides.left} JOIN {sides.right} ON {alike}", True
    )
    if row and row[0] and len(sides.equal) == 1:
        facts.append(("equal but for case and blanks", count(row[0], "pair")))
        edits = [(key.span, forms.format(key.text)) for key in (a, b)]
        proposal = proposals.requeried(evidence, changed(part.text, edits)) if not part.stream else proposal
    return Verdict(
        situation="NO_JOIN_PARTNER",
        sentence=f"the join finds no partner: no value of {a.text} is one of {b.text}",
        facts=tuple(facts),
        proposal=proposal,
    )


def _keys_shown(evidence: Evidence, part: Part, sides: _Sides) -> str:
    """A SELECT of the keys of both sides; of a static side alone, which has no UNION with a stream."""
    key = "CAST({} AS STRING) AS key FROM {}"
    a, b = sides.equal[0]
    left, right = key.format(a.text, sides.left), key.format(b.text, sides.right)
    names = [r.name.casefold() for r in relations_of(part.block)[:2]]
    streams = [name in evidence.parts.catalog.streams for name in names]
    if all(streams):
        return proposals.join(
            f"{part.head}SELECT 'left' AS side, {left} UNION ALL SELECT 'right' AS side, {right}"
        )
    return proposals.join(f"{part.head}SELECT {left if streams[1] else right} LIMIT 10")


def _no_range(
    evidence: Evidence, part: Part, sides: _Sides, facts: list[Fact], joined: str
) -> Verdict | None:
    """Keys meet, but a comparison of times is never true: by how much it is missed."""
    if not sides.ranges:
        return None
    gaps = [
        f"unix_micros(CAST({b.text} AS TIMESTAMP)) - unix_micros(CAST({a.text} AS TIMESTAMP))"
        for a, b in sides.ranges
    ]
    miss = ", ".join(f"least(0, {g})" for g in gaps)
    worst = f"least({miss}, 0)"
    best = ", ".join(f"max_by({g}, {worst}) AS g{n}" for n, g in enumerate(gaps))
    row = evidence.probes.row(joined.format(f"max({worst}) AS nearest, {best}"), True)
    if row is None or row["nearest"] is None or row["nearest"] >= 0:
        return None
    missed = next(n for n in range(len(gaps)) if row[f"g{n}"] < 0)
    low, high = sides.ranges[missed]
    seconds = -row[f"g{missed}"] / 1e6
    facts += [("never true", f"{low.text} <= {high.text}"), ("nearest miss", length(seconds))]
    proposal = ""
    if not part.stream:
        wider = interval(seconds)
        keep_high = high.bare_column() and not low.bare_column()
        edit = (low.span, f"{low.text} - {wider}") if keep_high else (high.span, f"{high.text} + {wider}")
        proposal = proposals.requeried(evidence, changed(part.text, [edit]))
    return Verdict(
        situation="NO_JOIN_PARTNER",
        sentence="the join finds no partner: rows have equal keys, but "
        f"{low.text} <= {high.text} is true for none of them; the closest pair of rows misses the range by "
        f"{length(seconds)}",
        facts=tuple(facts),
        proposal=proposal,
    )
