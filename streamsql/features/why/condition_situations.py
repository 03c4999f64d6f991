"""(d) A filter drops all rows: which of its conditions, and what the values are instead. (e) A join finds no
partner: no key is on both sides, or the keys meet and the time range does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.definitions import Stream
from streamsql.errors import Span, did_you_mean
from streamsql.features.why import proposals
from streamsql.features.why.verdict import Fact, Verdict, silent, situation, some
from streamsql.language.conditions import comparisons_of, conditions_of
from streamsql.language.expression import Expression
from streamsql.language.query import Join
from streamsql.language.tokens import quote, quote_name
from streamsql.plan.lowering.sources import columns_of
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import interval, length
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.evidence.selects import Part, changed


def _parts(evidence: Evidence) -> list[Part]:
    return evidence.query_parts


@situation("FILTERED_OUT", silent, of=_parts)
def filtered_out(evidence: Evidence, part: Part) -> Verdict | None:
    """(d) Of the rows that a SELECT reads, its WHERE keeps none, or of its groups its HAVING."""
    verdict = _of_part(evidence, part) if part.conditions and part.source else None
    groups = part.block.having and not part.stream and not evidence.query.together
    return verdict or (_of_groups(evidence, part) if groups else None)


def _of_groups(evidence: Evidence, part: Part) -> Verdict | None:
    """A HAVING that keeps no group; for the SELECT that gives the rows of the query."""
    having = part.block.having
    assert having
    every = changed(part.text, [(having.span, "")]).rstrip()
    passed = evidence.probes.row(f"SELECT count(*) AS n FROM ({part.text})")
    groups = evidence.probes.row(f"SELECT count(*) AS n FROM ({every})")
    if passed is None or groups is None or passed["n"] or not groups["n"]:
        return None
    condition = having.expression.text
    return Verdict(
        sentence=f"HAVING drops all rows: {count(groups['n'], 'group')}, none with {condition}",
        facts=(("groups", groups["n"]), ("groups with " + condition, 0)),
        proposal=proposals.requeried(evidence, every),
    )


def _of_part(evidence: Evidence, part: Part) -> Verdict | None:
    together = " AND ".join(f"({c.text})" for c in part.conditions)
    row = evidence.probes.row(part.select(f"{part.counts}, count_if({together}) AS kept"), True)
    if row is None or not row["n"] or row["kept"]:
        return None
    rows_by_condition = part.kept_by(row)
    facts: list[Fact] = [("rows before the filter", row["n"]), ("rows after it", 0)]
    facts += [(f"kept by {c.text}", f"{rows:,} of {row['n']:,}") for c, rows in rows_by_condition]
    least, fewest = min(rows_by_condition, key=lambda pair: pair[1])
    culprits = [c for c, rows in rows_by_condition if not rows] or [least]
    values, better = _values_of(evidence, part, culprits[0])
    facts += values
    where = f" of stream {part.stream}" if part.stream else ""
    alone = f"{culprits[0].text} keeps none of them" if not fewest else "no row meets all its conditions"
    return Verdict(
        sentence=f"the filter{where} drops all rows: {count(row['n'], 'row')} in, 0 out; {alone}",
        facts=tuple(facts),
        proposal=_resolving(evidence, part, without(part, culprits, better)),
    )


def _values_of(evidence: Evidence, part: Part, culprit: Expression) -> tuple[list[Fact], str]:
    """The values that a column of a condition has, and the condition with the nearest of them in the place
    of what it is compared with, "" when none is near.
    """
    pairs = comparisons_of(culprit)
    if len(pairs) != 1:
        return [], ""
    one, other = pairs[0].small, pairs[0].big
    column, literal = (one, other) if one.bare_column() else (other, one)
    if not column.bare_column() or literal.column_names() or literal.is_call:
        return [], ""
    name = column.text
    if not pairs[0].equal:
        row = evidence.probes.row(part.select(f"min({name}) AS low, max({name}) AS high"), True)
        return ([(f"values of {name}", f"{row[0]} to {row[1]}")] if row else []), ""
    rows = evidence.probes.rows(
        part.select(f"{name} AS v, count(*) AS n") + f" GROUP BY {name} ORDER BY n DESC, v LIMIT 6", True
    )
    values = [r[0] for r in rows or ()]
    facts: list[Fact] = [(f"values of {name}", some(values))] if values else []
    near = _nearest(literal.text.strip("'\""), values)
    return facts, changed(culprit.text, [_placed(literal, culprit, quote(near))]) if near else ""


def _placed(inner: Expression, outer: Expression, words: str) -> tuple[Any, str]:
    return inner.span.shift(-outer.span.start), words


def _nearest(wanted: str, values: list[Any]) -> str:
    """The value that was probably meant."""
    texts = [v for v in values if isinstance(v, str)]
    same = [v for v in texts if v.strip().casefold() == wanted.strip().casefold()]
    if same:
        return same[0]
    hint = did_you_mean(wanted, texts)
    return next((v for v in texts if hint and v in hint), "")


def without(part: Part, culprits: list[Expression], better: str = "") -> str:
    """The SELECT without some conditions, or with a better one in the place of one; without any if the
    conditions are met one by one.
    """
    where = part.block.where
    assert where
    left = [c.text for c in part.conditions if c not in culprits] if culprits else []
    if better and len(culprits) == 1:
        left = [better if c == culprits[0] else c.text for c in part.conditions]
    edit = (where.expression.span, " AND ".join(left)) if left else (where.span, "")
    return changed(part.text, [edit]).rstrip()


def _resolving(evidence: Evidence, part: Part, text: str) -> str:
    """What runs the query with another text of one of its SELECTs."""
    if not part.stream:
        return proposals.requeried(evidence, text)
    stream = evidence.parts.catalog.streams[part.stream.casefold()]
    sql = proposals.join(f"CREATE OR REPLACE STREAM {quote_name(stream.name)} AS {text}")
    return "" if stream.watermark else proposals.join(sql, proposals.restart(evidence, "FROM BEGINNING"))


@dataclass(frozen=True)
class _Sides:
    """A join that is examined. left, right: FROM texts of both sides; equal: the pairs that an equality
    compares, (left, right); ranges: (smaller, larger) of each comparison of the rest.
    """

    left: str
    right: str
    equal: list[tuple[Expression, Expression]]
    ranges: list[tuple[Expression, Expression]]


@situation("NO_JOIN_PARTNER", silent, of=_parts)
def no_partner(evidence: Evidence, part: Part) -> Verdict | None:
    """(e) The first join of a SELECT has rows on both sides and no pair of them."""
    join = next(iter(part.block.joins), None)
    if join is None or join.kind not in ("inner", "left_semi"):
        return None
    sides = _sides(evidence, part, join)
    return _of_sides(evidence, part, sides) if sides and sides.equal else None


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
    name = part.block.relations[counts.index(0)].name
    stream = evidence.parts.catalog.streams.get(name.casefold())
    return Verdict(
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
        sentence=f"the join finds no partner: no value of {a.text} is one of {b.text}",
        facts=tuple(facts),
        proposal=proposal,
    )


def _keys_shown(evidence: Evidence, part: Part, sides: _Sides) -> str:
    """A SELECT of the keys of both sides; of a static side alone, which has no UNION with a stream."""
    key = "CAST({} AS STRING) AS key FROM {}"
    a, b = sides.equal[0]
    left, right = key.format(a.text, sides.left), key.format(b.text, sides.right)
    names = [r.name.casefold() for r in part.block.relations[:2]]
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
        sentence="the join finds no partner: rows have equal keys, but "
        f"{low.text} <= {high.text} is true for none of them; the closest pair of rows misses the range by "
        f"{length(seconds)}",
        facts=tuple(facts),
        proposal=proposal,
    )
