"""--web: a page with queries, WHY, the graph and live tables, for a browser."""

from streamsql.feature_registry import Feature

_HELP = "serve a page of queries and live tables for a browser (HOST default: 127.0.0.1)"
FEATURE = Feature(
    __name__,
    flags={"--web": {"metavar": "[HOST:]PORT", "help": _HELP}},
    extends={"session": "page_door:serve_page"},
)
