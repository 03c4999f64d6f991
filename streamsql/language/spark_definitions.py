"""The table, view or function in SQL that a Spark statement creates, drops or changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from streamsql.errors import Span
from streamsql.language.edits import Edit, with_points
from streamsql.language.reference import keywords
from streamsql.language.token_groups import items_of
from streamsql.language.tokens import Token, quote_name, tokenize, unquote

_BEFORE_KIND = frozenset(("OR", "REPLACE", "GLOBAL", "TEMP", "TEMPORARY", "EXTERNAL"))
_BEFORE_NAME = frozenset(("IF", "NOT", "EXISTS"))
GLOBAL = "global_temp."
"""The schema of global temporary views, in front of their names."""


@dataclass(frozen=True)
class Definition:
    """creates, drops: the (dotted) name of a table, view or function, "" for none; temporary: whether the
    created view or function exists only within its Spark session; view_query, table_query: the query of a
    view that is not temporary, or of a table, as written; written: the name of what is created or dropped, as
    SQL; alters: whether it is ALTER TABLE or VIEW, which name neither; kind: table, view or function;
    if_possible: whether it is created only if it does not exist, or dropped only if it does; renames,
    renamed: the old and the new name of ALTER … RENAME TO; staged: whether STAGED, a word of the console,
    stands behind the name of a view or function; replaces: whether that is created OR REPLACE; text: the
    statement that creates it.
    """

    creates: str = ""
    drops: str = ""
    written: str = field(default="", compare=False)
    temporary: bool = False
    view_query: str = ""
    table_query: str = ""
    alters: bool = False
    kind: str = field(default="", compare=False)
    if_possible: bool = field(default=False, compare=False)
    renames: str = ""
    renamed: str = ""
    staged: bool = False
    replaces: bool = field(default=False, compare=False)
    text: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """What is created or dropped, folded; a function, which may have the name of a view, is `name()`."""
        name = (self.creates or self.drops).casefold()
        return f"{name}()" if self.kind == "function" else name

    def outcome(self, existed: bool) -> str:
        """What the statement has done, in words. existed: whether that existed before."""
        if self.creates:
            unchanged = existed and self.if_possible
            return f"{self.kind} {self.creates} {'already exists' if unchanged else 'created'}"
        dropped = existed or not self.if_possible
        return f"{self.kind} {self.drops} dropped" if dropped else f"there is no {self.kind} {self.drops}"


def definition_of(text: str) -> Definition:
    """The table, view or function in SQL that a statement creates or drops; empty for other statements."""
    tokens = tokenize(text, strict=False)
    words = [t.upper for t in tokens[:8]]
    if words[:2] in (["ALTER", "TABLE"], ["ALTER", "VIEW"]):
        renamed = renamed_to(text)
        renames = in_default(".".join(name_of_table(tokens[2:]))) if renamed else ""
        return Definition(alters=True, renames=renames, renamed=renamed)
    if words[:1] not in (["CREATE"], ["DROP"]):
        return Definition()
    kind = next((i for i in range(1, len(words)) if words[i] not in _BEFORE_KIND), len(words))
    if words[kind : kind + 1] not in (["TABLE"], ["VIEW"], ["FUNCTION"]):
        return Definition()
    parts = name_of_table(tokens[kind + 1 :])
    if not parts:
        return Definition()  # the name is an expression, which Spark evaluates
    if "GLOBAL" in words[1:kind]:
        parts = [GLOBAL.rstrip("."), *parts]
    name = ".".join(parts)
    if_possible = words[kind + 1 : kind + 2] == ["IF"]
    if words[0] == "DROP":
        written = ".".join(map(quote_name, parts))
        return Definition(drops=name, written=written, kind=words[kind].lower(), if_possible=if_possible)
    temporary = words[kind] != "TABLE" and not {"TEMP", "TEMPORARY"}.isdisjoint(words[1:kind])
    has_query = not temporary and words[kind] != "FUNCTION"
    defining = next((t for t in tokens[kind:] if t.upper == "AS"), None) if has_query else None
    query = text[defining.end :].strip() if defining else ""
    written = ".".join(map(quote_name, parts))
    what = words[kind].lower()
    created = Definition(name, written=written, temporary=temporary, kind=what, if_possible=if_possible)
    if words[kind] == "TABLE":
        return replace(created, table_query=query)
    behind = kind + 1 + 3 * if_possible + 2 * len(name_of_table(tokens[kind + 1 :])) - 1
    staged = [t.upper for t in tokens[behind : behind + 1]] == ["STAGED"]
    if words[kind] == "FUNCTION" and [t.text for t in tokens[behind + staged :][:1]] != ["("]:
        return Definition()  # a class of Java
    replaces = words[1:3] == ["OR", "REPLACE"]
    return replace(created, view_query=query, staged=staged, replaces=replaces, text=text)


def has_query(text: str) -> bool:
    """Whether a statement of Spark may hold a query: CREATE TABLE or VIEW … AS, or INSERT."""
    return text.lstrip()[:6].upper() == "INSERT" or bool(definition_of(text).creates)


_OF_SESSION = frozenset(
    ("USE", "CACHE", "UNCACHE", "CLEAR", "REFRESH", "ADD", "DROP", "ALTER", "DECLARE", "SET", "RESET")
)
_OF_SESSION_WHEN_CREATED = frozenset(("FUNCTION", "VARIABLE"))


def changes_session(text: str) -> bool:
    """Whether a statement changes something of the Spark session itself: its current schema, caches,
    functions, variables or resources.
    """
    words = [t.upper for t in tokenize(text, strict=False)[:6]]
    if words[:1] == ["CREATE"]:
        kind = next((w for w in words[1:] if w not in _BEFORE_KIND), "")
        return kind in _OF_SESSION_WHEN_CREATED
    return not _OF_SESSION.isdisjoint(words[:1])


_TARGETS = (
    ("DROP", "TABLE"), ("DROP", "VIEW"), ("DELETE", "FROM"), ("UPDATE",), ("MERGE", "INTO"),
    ("ALTER", "TABLE"), ("ALTER", "VIEW"), ("ALTER", "STREAM"), ("ALTER", "SOURCE"), ("ALTER", "SINK"),
    ("ALTER", "LIVE", "TABLE"), ("ALTER", "MATERIALIZED", "VIEW"), ("ALTER", "MATERIALIZED", "TABLE"),
    ("TRUNCATE", "TABLE"), ("ANALYZE", "TABLE"),
    ("INSERT", "OVERWRITE", "TABLE"),
    ("INSERT", "OVERWRITE"), ("SHOW", "CREATE", "TABLE"), ("REPAIR", "TABLE"), ("COMMENT", "ON", "TABLE"),
    ("SHOW", "CREATE", "VIEW"), ("SHOW", "PARTITIONS"), ("MSCK", "REPAIR", "TABLE"), ("CACHE", "TABLE"),
    ("CACHE", "LAZY", "TABLE"),
)  # fmt: skip


_OF_ROWS = {
    "DELETE FROM": "a query leaves rows out: CREATE STREAM … AS SELECT * FROM {name} WHERE …",
    "UPDATE": "a query computes other values: CREATE STREAM … AS SELECT … FROM {name}",
    "MERGE INTO": "a query joins other rows: CREATE STREAM … AS SELECT … FROM {name} JOIN …",
    "TRUNCATE TABLE": "DROP STREAM {name}; and CREATE STREAM begin it anew",
    "ANALYZE TABLE": "SUMMARIZE {name};",
    "CACHE TABLE": "CREATE LIVE TABLE … AS SELECT * FROM {name}; keeps its rows",
    "CACHE LAZY TABLE": "CREATE LIVE TABLE … AS SELECT * FROM {name}; keeps its rows",
}
"""A statement of Spark that changes rows, and what a stream has instead."""


@dataclass(frozen=True)
class Target:
    """verb: the words before the name, in capitals; name: of the table or view; span: of the name."""

    verb: str
    name: str
    span: Span

    def of_stream(self, name: str) -> str:
        """What a stream has instead of a statement that changes rows; "" for any other statement."""
        return _OF_ROWS.get(self.verb, "").format(name=name)


def target_of(text: str) -> Target | None:
    """The table or view that a statement drops, changes or prints; None for other statements, and for names
    of more than one part.
    """
    tokens = tokenize(text, strict=False)
    words = tuple(t.upper for t in tokens[:8])
    verb = next((v for v in _TARGETS if words[: len(v)] == v), None)
    if words[:1] == ("SHOW",) and len(tokens) == 2 and words[1] not in keywords():
        verb = ("SHOW",)  # SHOW t of DuckDB
    if verb is None:
        return None
    rest = tokens[len(verb) :]
    at = next((n for n, t in enumerate(rest) if t.upper not in _BEFORE_NAME), len(rest))
    if at == len(rest) or len(name_of_table(rest)) != 1:
        return None
    return Target(" ".join(verb), unquote(rest[at]), rest[at].span)


def described(text: str) -> Target | None:
    """What DESCRIBE name describes; None for other statements."""
    tokens = tokenize(text, strict=False)
    if len(tokens) != 2 or tokens[0].upper not in ("DESCRIBE", "DESC"):
        return None
    return Target("DESCRIBE", unquote(tokens[1]), tokens[1].span)


def inserted_into(text: str) -> str:
    """The (dotted) name of the table of INSERT INTO; "" for another statement."""
    tokens = tokenize(text, strict=False)
    words = [t.upper for t in tokens[:3]]
    rest = tokens[2 + (words[2:] == ["TABLE"]) :]
    return ".".join(name_of_table(rest)) if words[:2] == ["INSERT", "INTO"] else ""


def added_file(text: str) -> str:
    """The path of ADD JAR path and ADD FILE path; "" for another statement."""
    tokens = tokenize(text, strict=False)
    if len(tokens) < 3 or tokens[0].upper != "ADD" or tokens[1].upper not in ("JAR", "FILE", "ARCHIVE"):
        return ""
    return unquote(tokens[2]) if len(tokens) == 3 else text[tokens[2].start : tokens[-1].end]


def renamed_to(text: str) -> str:
    """The new name of ALTER TABLE or VIEW … RENAME TO b; "" for other texts, such as RENAME TO PARTITION
    (…), or a name of another schema.
    """
    tokens = tokenize(text, strict=False)
    at = next((n for n, t in enumerate(tokens[:-2]) if t.upper == "RENAME"), None)
    if at is None or tokens[at + 1].upper != "TO":
        return ""
    parts = name_of_table(tokens[at + 2 :])
    whole = len(tokens) == at + 2 + 2 * len(parts) - 1
    name = in_default(".".join(parts))
    return name if whole and "." not in name else ""


def in_default(name: str) -> str:
    """The name of a table without the default schema in front of it."""
    return name.removeprefix("spark_catalog.").removeprefix("default.")


def changes_schema(text: str) -> bool:
    """Whether a statement makes names without a schema mean those of another one: USE, SET CATALOG."""
    words = [t.upper for t in tokenize(text, strict=False)[:2]]
    return words[:1] == ["USE"] or words == ["SET", "CATALOG"]


def cached_as(text: str) -> str:
    """The view that CACHE [LAZY] TABLE name AS query makes; "" for another statement."""
    tokens = tokenize(text, strict=False)
    words = [t.upper for t in tokens]
    at = next((n for n, word in enumerate(words[:3]) if word == "TABLE"), 0)
    makes = words[:1] == ["CACHE"] and not {"AS", "SELECT", "WITH"}.isdisjoint(words[at:])
    return ".".join(name_of_table(tokens[at + 1 :])) if makes else ""


def added_columns(text: str) -> str:
    """What ALTER … ADD adds, as the columns of a CREATE are written: `ADD COLUMN a INT, ADD b INT` and
    `ADD (a INT, b INT)`; "" for other texts.
    """
    parts = []
    for item in _changes(text, "ADD"):
        inside = item[1:-1] if item[0].text == "(" and item[-1].text == ")" else item
        parts.append(text[inside[0].start : inside[-1].end] if inside else "")
    return ", ".join(parts)


def dropped_columns(text: str) -> frozenset[str]:
    """The columns, case-folded, that ALTER … DROP drops; none for other texts."""
    named = (t for item in _changes(text, "DROP") for t in item if t.kind in ("word", "quoted"))
    return frozenset(unquote(t).casefold() for t in named)


_OF_COLUMNS = frozenset(("ADD", "DROP", "COLUMN", "COLUMNS", "IF", "NOT", "EXISTS"))


def _changes(text: str, verb: str) -> Iterator[list[Token]]:
    """What stands behind ADD or DROP of an ALTER, without COLUMN, at each comma."""
    tokens = tokenize(text, strict=False)
    first = next((n for n, t in enumerate(tokens) if t.upper == verb), len(tokens))
    if tokens[0].upper != "ALTER":
        return
    for item in items_of(tokens[first:], of_types=True):
        begin = next((n for n, t in enumerate(item) if t.upper not in _OF_COLUMNS), len(item))
        if item[begin:]:
            yield item[begin:]


def altered_view(created: str, statement: str) -> str:
    """The CREATE VIEW after an ALTER VIEW … RENAME TO or … AS; as it is after another one."""
    tokens, change = tokenize(created, strict=False), tokenize(statement, strict=False)
    at = next(n for n, t in enumerate(tokens) if t.upper == "VIEW") + 1
    while tokens[at].upper in _BEFORE_NAME:
        at += 1
    if new := renamed_to(statement):
        return created[: tokens[at].start] + quote_name(new) + created[tokens[at].end :]
    if len(change) > 4 and change[3].upper == "AS":
        return f"{created[: tokens[at].end]} {statement[change[3].start :]}"
    return created


def head_of_definition(created: str, name: str, *, temporary: bool) -> Edit:
    """The edit of a CREATE VIEW or FUNCTION that makes it CREATE OR REPLACE, of another name, and without
    STAGED.
    """
    tokens = tokenize(created, strict=False)
    kind = next(n for n, t in enumerate(tokens) if t.upper in ("VIEW", "FUNCTION"))
    at = next(n for n in range(kind + 1, len(tokens)) if tokens[n].upper not in _BEFORE_NAME)
    staged = [t.upper for t in tokens[at + 1 : at + 2]] == ["STAGED"]
    words = f"{'TEMPORARY ' if temporary else ''}{tokens[kind].upper}"
    return 0, tokens[at + staged].end, f"CREATE OR REPLACE {words} {quote_name(name)}"


def definition_named(created: str, name: str, *, temporary: bool) -> str:
    """The CREATE OR REPLACE VIEW or FUNCTION of another name, without STAGED."""
    return with_points(created, [head_of_definition(created, name, temporary=temporary)])[0]


def without_staged(text: str) -> str:
    """A statement with spaces in place of STAGED, the word of the console behind a view or function."""
    if not definition_of(text).staged:
        return text
    tokens = tokenize(text, strict=False)
    kinds = ("VIEW", "FUNCTION")
    word = next(t for before, t in pairwise(tokens) if t.upper == "STAGED" and before.upper not in kinds)
    return text[: word.start] + " " * len(word.text) + text[word.end :]


def query_of_view(created: str) -> Span | None:
    """The place of the query in CREATE VIEW … AS; None without one."""
    tokens = tokenize(created, strict=False)
    at = next((n for n, t in enumerate(tokens) if t.upper == "AS"), None)
    return None if at is None else Span(tokens[at].end, len(created))


def columns_of_view(created: str) -> tuple[str, ...]:
    """The names that CREATE VIEW gives to its columns, as they are written; none without a list of them."""
    tokens = tokenize(created, strict=False)
    at = next(n for n, t in enumerate(tokens) if t.upper == "VIEW") + 1
    while tokens[at].upper in _BEFORE_NAME:
        at += 1
    while tokens[at + 1].text == ".":
        at += 2
    if tokens[at + 1].text != "(":
        return ()
    end = next(n for n, t in enumerate(tokens) if n > at and t.text == ")")
    return tuple(item[0].text for item in items_of(tokens[at + 2 : end]))


def path_in_options(text: str) -> Span | None:
    """The place of the path in the OPTIONS of a statement, without its quotes; None if it has none."""
    tokens = tokenize(text, strict=False)
    begin = next((i for i, t in enumerate(tokens) if t.upper == "OPTIONS"), len(tokens))
    for at, token in enumerate(tokens[begin:], begin):
        if token.text.strip("'\"`").casefold() == "path":
            value = next((t for t in tokens[at + 1 : at + 3] if t.kind == "string"), None)
            return Span(value.start + 1, value.end - 1) if value else None
    return None


def name_of_table(tokens: list[Token]) -> list[str]:
    """The parts of the name that the tokens begin with; none if it is missing, or IDENTIFIER(…) gives it and
    is no constant.
    """
    at = next((i for i, t in enumerate(tokens) if t.upper not in _BEFORE_NAME), len(tokens))
    if [t.upper for t in tokens[at : at + 2]] == ["IDENTIFIER", "("]:
        return _constant_name(tokens[at + 2 :])
    parts = [unquote(tokens[at])] if at < len(tokens) and tokens[at].kind in ("word", "quoted") else []
    while parts and at + 2 < len(tokens) and tokens[at + 1].text == ".":
        at += 2
        parts.append(unquote(tokens[at]))
    return parts


def _constant_name(tokens: list[Token]) -> list[str]:
    """The parts of the name that IDENTIFIER('db.' || 't') gives, from the tokens behind its parenthesis; none
    if it is not a concatenation of texts.
    """
    name = ""
    for at, token in enumerate(tokens):
        if token.text == ")" and at % 2:
            return name_of_table(tokenize(name, strict=False))
        if token.kind != "string" if at % 2 == 0 else token.text != "||":
            break
        name += unquote(token) if at % 2 == 0 else ""
    return []
