"""WHY: why a query, a live table or a stream gives no rows."""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    statements="statement",
    planners="plan",
    handlers="run",
    extends={"explainer": "explainer:Explainer"},
)
