"""`streamsql fmt`: a script with its clauses on lines and its keywords in upper case.

tokens and comments (atoms.py) → keywords (keyword_places.py) → documents (statement_layout.py,
trees.py) → lines (documents.py). format_script.py has the entry.
"""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    commands={"fmt": ("fmt_command:COMMAND", "format scripts")},
    extends={"formatter": "format_script:format_script"},
)
