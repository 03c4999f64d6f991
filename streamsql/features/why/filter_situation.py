"""(d) A filter drops all rows: which of its conditions, and what the values are instead."""

from __future__ import annotations

from typing import Any

from streamsql.errors import did_you_mean
from streamsql.features.why import proposals
from streamsql.features.why.verdict import Fact, Verdict, some
from streamsql.language.conditions import comparisons_of
from streamsql.language.expression import Expression
from streamsql.language.tokens import quote, quote_name
from streamsql.results import counted as count
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.evidence.query_parts import Part, changed


def filtered_out(evidence: Evidence) -> Verdict | None:
    """(d) Of the rows that a SELECT reads, its WHERE keeps none, or of its groups its HAVING."""
    if not evidence.silent:
        return None
    for part in evidence.query_parts:
        if part.conditions and part.source:
            verdict = _of_part(evidence, part)
            if verdict:
                return verdict
        if part.block.having and not part.stream and not evidence.query.together:
            verdict = _of_groups(evidence, part)
            if verdict:
                return verdict
    return None


def _of_groups(evidence: Evidence, part: Part) -> Verdict | None:
    """A HAVING that keeps no group; for the SELECT that gives the rows of the query."""
    having = part.block.having
    assert having
    every = changed(part.text, [(having.span, "")]).rstrip()
    kept = evidence.probes.row(f"SELECT count(*) AS n FROM ({part.text})")
    groups = evidence.probes.row(f"SELECT count(*) AS n FROM ({every})")
    if kept is None or groups is None or kept["n"] or not groups["n"]:
        return None
    condition = having.expression.text
    return Verdict(
        situation="FILTERED_OUT",
        sentence=f"HAVING drops all rows: {count(groups['n'], 'group')}, none with {condition}",
        facts=(("groups", groups["n"]), ("groups with " + condition, 0)),
        proposal=proposals.requeried(evidence, every),
    )


def _of_part(evidence: Evidence, part: Part) -> Verdict | None:
    conditions = part.conditions
    counts = ", ".join(f"count_if({c.text}) AS c{n}" for n, c in enumerate(conditions))
    together = " AND ".join(f"({c.text})" for c in conditions)
    row = evidence.probes.row(part.select(f"count(*) AS n, count_if({together}) AS kept, {counts}"), True)
    if row is None or not row["n"] or row["kept"]:
        return None
    kept = [row[f"c{n}"] for n in range(len(conditions))]
    facts: list[Fact] = [("rows before the filter", row["n"]), ("rows after it", 0)]
    facts += [(f"kept by {c.text}", f"{k:,} of {row['n']:,}") for c, k in zip(conditions, kept, strict=True)]
    culprits = [c for c, k in zip(conditions, kept, strict=True) if not k] or [
        min(zip(conditions, kept, strict=True), key=lambda pair: pair[1])[0]
    ]
    values, better = _values_of(evidence, part, culprits[0])
    facts += values
    where = f" of stream {part.stream}" if part.stream else ""
    alone = f"{culprits[0].text} keeps none of them" if min(kept) == 0 else "no row meets all its conditions"
    return Verdict(
        situation="FILTERED_OUT",
        sentence=f"the filter{where} drops all rows: {count(row['n'], 'row')} in, 0 out; {alone}",
        facts=tuple(facts),
        proposal=_without(evidence, part, culprits, better),
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


def _without(evidence: Evidence, part: Part, culprits: list[Expression], better: str) -> str:
    """The query without the conditions that drop all, or with the values that were meant."""
    where = part.block.where
    assert where
    left = [c.text for c in part.conditions if c not in culprits]
    if better and len(culprits) == 1:
        left = [better if c == culprits[0] else c.text for c in part.conditions]
    edit = (where.expression.span, " AND ".join(left)) if left else (where.span, "")
    text = changed(part.text, [edit]).rstrip()
    if not part.stream:
        return proposals.requeried(evidence, text)
    stream = evidence.parts.catalog.streams[part.stream.casefold()]
    sql = proposals.join(f"CREATE OR REPLACE STREAM {quote_name(stream.name)} AS {text}")
    return "" if stream.watermark else proposals.join(sql, proposals.restart(evidence, "FROM BEGINNING"))
