"""What Spark has, and has not, of what SQLAlchemy's tests of a dialect ask for."""

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.provision import delete_from_all_tables, temp_table_keyword_args
from sqlalchemy.testing.requirements import SuiteRequirements

HAS = """
    boolean_col_expressions create_or_replace_view ctes except_ fetch_null_from_numeric infinity_floats intersect
    nullsordering order_by_col_from_union precision_numerics_retains_significant_digits schema_create_delete
    standalone_binds supports_is_distinct_from table_value_constructor temporary_views timestamp_microseconds
    unbounded_varchar views window_functions
""".split()
HAS_NOT = """
    autoincrement_insert autoincrement_without_sequence cross_schema_fk_reflection dbapi_lastrowid
    duplicate_key_raises_integrity_error empty_inserts foreign_key_constraint_reflection foreign_key_ddl
    implements_get_lastrowid implicitly_named_constraints index_reflection indexes_with_ascdesc named_constraints
    on_update_cascade primary_key_constraint_reflection recursive_fk_cascade reflect_indexes_with_ascdesc
    reflects_pk_names self_referential_foreign_keys supports_lastrowid temp_table_reflection temporary_tables
    unique_constraint_reflection unusual_column_name_characters update_where_target_in_subquery
""".split()


def of(rule: Any) -> property:
    return property(lambda self: rule)


class Requirements(SuiteRequirements):
    """The other properties are as SQLAlchemy has them."""


for names, rule in ((HAS, exclusions.open()), (HAS_NOT, exclusions.closed())):
    for name in names:
        assert hasattr(SuiteRequirements, name), name
        setattr(Requirements, name, of(rule))


@delete_from_all_tables.for_db("streamsql")
def truncate(connection: Any, config: Any, metadata: Any) -> None:
    """Tables of Spark's files have no DELETE."""
    for table in metadata.sorted_tables:
        connection.exec_driver_sql(
            f"TRUNCATE TABLE {connection.dialect.identifier_preparer.format_table(table)}"
        )


@temp_table_keyword_args.for_db("streamsql")
def no_temporary_tables(config: Any, engine: Any) -> dict[str, Any]:
    return {}
