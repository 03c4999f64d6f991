"""--metrics: progress reports of queries for Prometheus."""

from streamsql.feature_registry import Feature

_HELP = "serve metrics for Prometheus (HOST default: 127.0.0.1)"
FEATURE = Feature(
    __name__,
    flags={"--metrics": {"metavar": "[HOST:]PORT", "help": _HELP}},
    extends={"session": "endpoint:serve_metrics"},
)
