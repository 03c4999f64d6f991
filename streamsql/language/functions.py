"""Which of Spark's functions aggregate, and which make rows: what the shape of a query turns on.

Spark guide, "Built-in Functions": aggregate and generator functions of Spark 4.3.
"""

from __future__ import annotations

from functools import lru_cache

from streamsql.language.tokens import Token, unquote
from streamsql.language.tokens import tokenize as _tokenize


@lru_cache(maxsize=4096)
def tokenize(text: str) -> list[Token]:
    """The tokens of an expression; kept, since one expression is asked many questions."""
    return _tokenize(text)


AGGREGATES = frozenset(
    """any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg
    bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count
    count_if count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg hll_union_agg kll_sketch_agg_bigint kll_sketch_agg_double
    kll_sketch_agg_float kurtosis last last_value listagg max max_by mean median min min_by mode
    percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness
    some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg
    theta_sketch_agg theta_union_agg try_avg try_sum tuple_sketch_agg_double
    tuple_sketch_agg_integer var_pop var_samp variance""".split()
)
GENERATORS = frozenset(
    """explode explode_outer posexplode posexplode_outer inline inline_outer json_tuple stack
    variant_explode variant_explode_outer""".split()
)
WINDOWS = frozenset({"window", "session_window"})


def calls(tokens: list[Token]) -> list[tuple[str, int]]:
    """The function calls in an expression: (name in lower case, index of the name's token).

    `LIKE ANY (…)` calls nothing.
    """
    return [
        (t.text.strip("`").lower(), i)
        for i, t in enumerate(tokens[:-1])
        if t.kind in ("word", "quoted")
        and tokens[i + 1].text == "("
        and (i == 0 or (tokens[i - 1].text != "." and tokens[i - 1].upper not in ("LIKE", "ILIKE")))
    ]


def without_subqueries(text: str) -> list[Token]:
    """The tokens of an expression; what stands in a sub-query is not the expression's own."""
    tokens = tokenize(text)
    kept: list[Token] = []
    at = 0
    while at < len(tokens):
        if tokens[at].text == "(" and at + 1 < len(tokens) and tokens[at + 1].upper in ("SELECT", "WITH"):
            at = closing(tokens, at)
        else:
            kept.append(tokens[at])
        at += 1
    return kept


def closing(tokens: list[Token], opening: int) -> int:
    """Index of the parenthesis that closes the one at index opening."""
    depth = 0
    for i in range(opening, len(tokens)):
        depth += (tokens[i].text == "(") - (tokens[i].text == ")")
        if depth == 0:
            return i
    return len(tokens) - 1


def is_windowed(tokens: list[Token], call: int) -> bool:
    """Whether the call at that index is followed by OVER (FILTER (…), WITHIN GROUP (…) or IGNORE NULLS
    may stand between).
    """
    after = closing(tokens, call + 1) + 1
    while after + 1 < len(tokens) and tokens[after].upper in ("FILTER", "WITHIN", "IGNORE", "RESPECT"):
        opening = after + (2 if tokens[after].upper == "WITHIN" else 1)
        after = (closing(tokens, opening) if opening < len(tokens) else opening) + 1
    return after < len(tokens) and tokens[after].upper == "OVER"


def has_aggregate(text: str) -> bool:
    """Whether an expression aggregates (a call with OVER does not)."""
    tokens = without_subqueries(text)
    return any(name in AGGREGATES and not is_windowed(tokens, i) for name, i in calls(tokens))


def has_distinct(text: str) -> bool:
    """Whether an expression aggregates distinct values: `count(DISTINCT x)`."""
    tokens = without_subqueries(text)
    return any(a.text == "(" and b.upper == "DISTINCT" for a, b in zip(tokens, tokens[1:], strict=False))


def has_window_function(text: str) -> bool:
    tokens = without_subqueries(text)
    return any(is_windowed(tokens, i) for _, i in calls(tokens))


def has_generator(text: str) -> bool:
    return any(name in GENERATORS for name, _ in calls(without_subqueries(text)))


NOW = frozenset(
    "current_timestamp now current_date curdate localtimestamp current_time unix_timestamp".split()
)


def has_now(text: str) -> bool:
    """Whether an expression asks for the time at which it is computed."""
    tokens = without_subqueries(text)
    called = any(name in NOW for name, _ in calls(tokens))
    return called or any(t.upper in ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP") for t in tokens)


def has_subquery(text: str) -> bool:
    tokens = tokenize(text)
    return any(
        t.upper in ("SELECT", "WITH") and i and tokens[i - 1].text == "(" for i, t in enumerate(tokens)
    )


# Behind one of these the next word is an operand, not an alias.
_OPERATORS = frozenset(
    """AND OR NOT IS IN LIKE ILIKE RLIKE REGEXP BETWEEN CASE WHEN THEN ELSE DISTINCT DIV INTERVAL TO
    ESCAPE OVER COLLATE ALL""".split()
)
_ENDS = frozenset("END NULL TRUE FALSE NULLS".split())
_UNITS = frozenset(
    unit + plural
    for unit in "YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND".split()
    for plural in ("", "S")
)


def implicit_alias(text: str) -> tuple[str, str]:
    """`count(*) n` → ("count(*)", "n"); an expression without alias → (text, "").

    In doubt the text stays whole: Spark then reads the alias.
    """
    tokens = tokenize(text)
    if len(tokens) < 2:
        return text, ""
    before, last = tokens[-2], tokens[-1]
    if before.kind == "word":
        ends_operand = before.upper not in _OPERATORS
    else:
        ends_operand = before.kind in ("string", "number", "quoted") or before.text in (")", "]")
    interval = any(t.upper == "INTERVAL" for t in tokens[:-2])
    of_interval = interval and before.kind in ("number", "string") and last.upper in _UNITS
    is_name = last.kind == "quoted" or (last.kind == "word" and last.upper not in _ENDS | _OPERATORS)
    if not ends_operand or not is_name or of_interval:
        return text, ""
    return text[: before.end], unquote(last)


def same(a: str, b: str) -> bool:
    """Whether two expressions are the same tokens (case of words ignored)."""
    return normal(a) == normal(b)


def normal(text: str) -> tuple[str, ...]:
    return tuple(t.text if t.kind == "string" else t.text.casefold().strip("`") for t in tokenize(text))
