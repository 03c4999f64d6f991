"""(n) The live table has rows, and the WHERE of a SELECT hides them; (o) or the session time zone does."""

from __future__ import annotations

from streamsql.definitions import Sink
from streamsql.features.why import proposals
from streamsql.features.why.verdict import Fact, Verdict
from streamsql.language.conditions import comparisons_of
from streamsql.language.expression import Expression
from streamsql.language.tokens import quote
from streamsql.results import counted as count
from streamsql.runtime.evidence.probes import Probes
from streamsql.runtime.evidence.query_parts import Part, changed, parts_of
from streamsql.runtime.parts import SessionParts

ZONE = "spark.sql.session.timeZone"


def hidden_rows(parts: SessionParts, text: str, table: Sink | None = None) -> Verdict | None:
    """Why a SELECT over live tables gave no rows, though they have some. text: the SELECT; table: the one
    that it must read, None for any. Raises Cancelled.
    """
    blocks = parts_of(text, parts.catalog)
    if not blocks or (table and not _reads(blocks[-1], table)):
        return None
    part, probes = blocks[-1], Probes(parts)
    conditions = part.conditions
    if not conditions or not part.source:
        return None
    counts = ", ".join(f"count_if({c.text}) AS c{n}" for n, c in enumerate(conditions))
    row = probes.row(part.select(f"count(*) AS n, {counts}"))
    if row is None or not row["n"]:
        return None
    kept = [row[f"c{n}"] for n in range(len(conditions))]
    facts: list[Fact] = [("rows there", row["n"])]
    facts += [(f"kept by {c.text}", f"{k:,} of {row['n']:,}") for c, k in zip(conditions, kept, strict=True)]
    zone = str(parts.spark.conf.get(ZONE))
    shifted = _in_utc(part, probes, zone)
    if shifted:
        return _shifted(text, zone, shifted, facts)
    return Verdict(
        situation="ROWS_HIDDEN",
        sentence=f"{count(row['n'], 'row')} {'is' if row['n'] == 1 else 'are'} there, and the WHERE of the "
        "SELECT keeps none",
        facts=tuple(facts),
        proposal=_without(part, [c for c, k in zip(conditions, kept, strict=True) if not k]),
    )


def _reads(part: Part, table: Sink) -> bool:
    names = [j.relation.name for j in part.block.joins]
    names += [part.block.relation.name] if part.block.relation else []
    return table.name.casefold() in [n.casefold() for n in names]


def _shifted(text: str, zone: str, rows: int, facts: list[Fact]) -> Verdict:
    facts += [("session time zone", zone), ("rows that match in UTC", rows)]
    return Verdict(
        situation="TIME_ZONE",
        sentence=f"the SELECT finds no row for times in the session time zone {zone}; for times in UTC it "
        f"finds {count(rows, 'row')}",
        facts=tuple(facts),
        proposal=proposals.join(f"SET {ZONE} = 'UTC'", text),
    )


def _in_utc(part: Part, probes: Probes, zone: str) -> int:
    """How many rows the SELECT would find if its times were those of UTC."""
    edits = []
    for condition in part.conditions:
        for pair in comparisons_of(condition):
            for column, other in ((pair.small, pair.big), (pair.big, pair.small)):
                if column.bare_column() and not other.column_names() and _is_time(other):
                    shifted = f"to_utc_timestamp({column.text}, {quote(zone)})"
                    edits.append((column.span, shifted))
    if not edits or part.block.where is None or zone == "UTC":
        return 0
    start = part.block.where.expression.span.start
    where = changed(part.block.where.expression.text, [(span.shift(-start), w) for span, w in edits])
    row = probes.row(part.select("count(*)", where))
    return int(row[0]) if row else 0


def _is_time(literal: Expression) -> bool:
    """Whether a text is, or holds, a moment."""
    return any(c.isdigit() for c in literal.text) and ":" in literal.text


def _without(part: Part, culprits: list[Expression]) -> str:
    where = part.block.where
    assert where
    left = [c.text for c in part.conditions if c not in culprits] if culprits else []
    edit = (where.expression.span, " AND ".join(left)) if left else (where.span, "")
    return proposals.join(changed(part.text, [edit]).rstrip())
