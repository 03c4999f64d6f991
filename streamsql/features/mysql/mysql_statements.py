"""Which statements are MySQL's own: about its variables and metadata. All others are the console's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mysql_mimic.constants import INFO_SCHEMA
from mysql_mimic.schema import show_statement_to_info_schema_query
from mysql_mimic.variables import SYSTEM_VARIABLES
from sqlglot import errors, exp
from sqlglot.dialects import MySQL

from streamsql import __version__
from streamsql.errors import NameFault

IGNORED = """auto_increment_offset foreign_key_checks group_concat_max_len have_ssl init_file
    innodb_lock_wait_timeout net_read_timeout query_cache_size query_cache_type session_track_schema
    session_track_system_variables session_track_transaction_info sql_notes sql_quote_show_create
    sql_safe_updates tx_isolation tx_read_only unique_checks version_compile_os""".split()
"""Variables that clients set or ask for, and that mean nothing here."""
VARIABLES = SYSTEM_VARIABLES | {
    **dict.fromkeys(IGNORED, (str, "0", True)),
    "version": (str, f"8.0.29-streamsql-{__version__}", False),
    "version_comment": (str, "streamsql: HELP mysql", False),
    "lower_case_table_names": (int, 2, False),
    "sql_mode": (str, "", True),
    "default_storage_engine": (str, "Spark", True),
    "default_tmp_storage_engine": (str, "Spark", True),
}
_SHOWN = frozenset(
    "COLUMNS|CREATE TABLE|DATABASES|ERRORS|STATUS|TABLES|VARIABLES|WARNINGS|COLLATION|CHARACTER SET".split(
        "|"
    )
)
"""The SHOW statements that are answered as MySQL does."""
EMPTY = {
    "INDEX": "Table|Non_unique|Key_name|Seq_in_index|Column_name|Collation|Cardinality|Sub_part|Packed|Null|"
    "Index_type|Comment|Index_comment",
    "ENGINES": "Engine|Support|Comment|Transactions|XA|Savepoints",
    "PLUGINS": "Name|Status|Type|Library|License",
    "TRIGGERS": "Trigger|Event|Table|Statement|Timing|Created|sql_mode|Definer",
    "PROCEDURE STATUS": "Db|Name|Type|Definer|Modified|Created|Security_type|Comment",
    "FUNCTION STATUS": "Db|Name|Type|Definer|Modified|Created|Security_type|Comment",
    "EVENTS": "Db|Name|Definer|Time zone|Type",
}
"""What MySQL shows and there is nothing of here, with the columns."""
_OF_VIEWS = {
    "COLLATION": "SELECT collation_name AS `Collation`, character_set_name AS `Charset`, id AS `Id`,"
    " is_default AS `Default`, is_compiled AS `Compiled`, 1 AS `Sortlen` FROM information_schema.collations",
    "CHARACTER SET": "SELECT character_set_name AS `Charset`, description AS `Description`,"
    " default_collate_name AS `Default collation`, maxlen AS `Maxlen` FROM information_schema.character_sets",
}
_ASKED = (exp.CurrentSchema, exp.CurrentVersion, exp.CurrentUser)
_ASKED_BY_NAME = frozenset("CONNECTION_ID DATABASE SCHEMA SESSION_USER SYSTEM_USER USER VERSION".split())
_SET_KINDS = ("NAMES", "CHARACTER SET", "TRANSACTION", "GLOBAL", "PERSIST", "SESSION", "LOCAL")
_MODES = ("READ ONLY", "READ WRITE", "WITH CONSISTENT SNAPSHOT", "ISOLATION LEVEL")


def own_statement(sql: str, database: str | None) -> exp.Expression | None:
    """The tree of a statement of MySQL's own: also a SELECT with tables of metadata only, or that asks only
    what MySQL knows of itself and the connection. None for one of the console. database: the current one.
    """
    try:
        parsed = [tree for tree in MySQL().parse(sql) if tree]
    except errors.SqlglotError:
        words = sql.upper().split()[:3]
        if words[:1] == ["SET"] and "TRANSACTION" in words:  # sqlglot does not know all isolation levels
            return exp.Commit()
        return None
    if not parsed:
        return exp.Commit()  # a comment: nothing is done
    tree: Any = parsed[0]
    return tree if len(parsed) == 1 and _is_own(tree, database or "") else None


def _is_own(tree: Any, database: str) -> bool:
    if isinstance(tree, exp.Set):
        return all(map(_sets_variable, tree.expressions))
    if isinstance(tree, exp.Show):
        return tree.name in _SHOWN or tree.name in EMPTY
    if isinstance(tree, exp.Describe):
        others = set(tree.args) - {"this", "as_json"}
        return isinstance(tree.this, exp.Table) and not any(map(tree.args.get, others))
    if isinstance(tree, exp.Use):
        return not tree.args.get("kind")
    if isinstance(tree, exp.Transaction):
        return all(mode.startswith(_MODES) for mode in tree.args.get("modes") or ())
    if isinstance(tree, exp.Query):
        tables = list(tree.find_all(exp.Table))
        return all(_is_metadata(table, database) for table in tables) if tables else _asks(tree)
    return isinstance(tree, (exp.Kill, exp.Commit, exp.Rollback))


def _sets_variable(item: Any) -> bool:
    """Whether a part of SET is about a variable of MySQL, not a setting of Spark or the console."""
    kind = str(item.args.get("kind") or "").upper()
    if kind:
        return kind in _SET_KINDS
    assigned = item.this.this if isinstance(item.this, exp.Binary) else None
    if isinstance(assigned, exp.Column):
        return not assigned.table and assigned.name.lower() in VARIABLES
    return isinstance(assigned, (exp.SessionParameter, exp.Parameter))


def _is_metadata(table: exp.Table, database: str) -> bool:
    is_dual = not table.db and table.name.upper() == "DUAL"
    return is_dual or (table.db or database).lower() in INFO_SCHEMA


def _asks(query: Any) -> bool:
    def own(part: Any) -> bool:
        by_name = isinstance(part, exp.Anonymous) and part.name.upper() in _ASKED_BY_NAME
        return isinstance(part, _ASKED) or by_name

    if query.find(exp.SessionParameter):
        return True  # no statement of Spark has @@
    parts = [part.unalias() for part in query.expressions]
    asked = [part for part in parts if not isinstance(part, exp.Literal)]
    others = set(query.args) - {"expressions", "limit", "hint", "kind"}
    return bool(asked) and all(map(own, asked)) and not any(map(query.args.get, others))


def query_of_show(show: exp.Show, database: str | None) -> Any:
    """The query of information_schema that answers SHOW; SHOW CREATE TABLE is made of SHOW COLUMNS."""
    if show.name in _OF_VIEWS:
        return MySQL().parse(_OF_VIEWS[show.name])[0]
    if show.name == "CREATE TABLE":
        show = exp.Show(this="COLUMNS", target=show.args["target"], db=show.args.get("db"))
    return show_statement_to_info_schema_query(show, database).transform(_whole_type)


def _whole_type(node: Any) -> Any:
    """decimal(10,2), where mysql-mimic shows decimal."""
    is_type = isinstance(node, exp.Column) and node.name == "data_type"
    return exp.column("column_type") if is_type else node


def shown(show: exp.Show, rows: Sequence[Any], names: Sequence[str]) -> tuple[Sequence[Any], Sequence[str]]:
    """The answer to SHOW. rows, names: of its query. Raises NameFault for a table that does not exist."""
    table = show.text("target")
    if table and not rows and not show.args.get("like"):
        raise NameFault(
            f"there is no table or view {table}", hint="SHOW TABLES", condition="TABLE_OR_VIEW_NOT_FOUND"
        )
    if show.name != "CREATE TABLE":
        return rows, names
    listed = ",\n".join(f"  {_quoted(row[0])} {row[1]}{' NOT NULL' * (row[2] == 'NO')}" for row in rows)
    return [(table, f"CREATE TABLE {_quoted(table)} (\n{listed}\n) ENGINE=Spark")], ("Table", "Create Table")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
