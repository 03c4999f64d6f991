"""What Spark has, and has not, of what SQLAlchemy's tests of a dialect ask for."""

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.provision import temp_table_keyword_args
from sqlalchemy.testing.requirements import SuiteRequirements

HAS = """
    aggregate_order_by array_type boolean_col_expressions comment_reflection create_or_replace_view
    create_table_as ctes ctes_with_values date_historic
    datetime_historic datetime_interval datetime_literals except_ expression_server_defaults
    fetch_null_from_numeric infinity_floats intersect nullsordering order_by_col_from_union order_by_label_with_expression
    precision_numerics_enotation_small
    precision_numerics_many_significant_digits precision_numerics_retains_significant_digits regexp_match regexp_replace
    schema_create_delete server_defaults standalone_binds supports_bitwise_and supports_bitwise_not
    supports_bitwise_or supports_bitwise_shift supports_bitwise_xor table_ddl_if_exists
    table_value_constructor temporary_views timestamp_microseconds tuple_in unbounded_varchar
    views window_functions window_range window_range_numeric
""".split()
HAS_NOT = {
    "tables have no keys and no other constraints": """
        cross_schema_fk_reflection duplicate_key_raises_integrity_error foreign_key_constraint_reflection
        implicitly_named_constraints named_constraints on_update_cascade primary_key_constraint_reflection
        recursive_fk_cascade reflects_pk_names unique_constraint_reflection
    """,
    "tables have no indexes": "index_reflection indexes_with_ascdesc reflect_indexes_with_ascdesc",
    "no row has a number that Spark gives it": """
        autoincrement_insert autoincrement_without_sequence dbapi_lastrowid empty_inserts implements_get_lastrowid
        supports_lastrowid
    """,
    "there are temporary views, no temporary tables": "temp_table_reflection temporary_tables",
    "a DATE and a time are compared as times": "date_coerces_from_datetime",
    "there are no transactions": "autocommit isolation_level savepoints two_phase_transactions",
    "one connection, which threads share, is used for all": "independent_connections independent_readonly_connections",
    "a range of DATEs takes a number of days, none of an INTERVAL": "window_range_non_numeric",
    "tables of files have no UPDATE and DELETE": "update_where_target_in_subquery",
}


def _has(self: Any) -> Any:
    return exclusions.open()


def _has_not(reason: str) -> Any:
    return lambda self: exclusions.skip_if(exclusions.BooleanPredicate(True, reason))


class Requirements(SuiteRequirements):
    """The other properties are as SQLAlchemy has them."""


ALL = dict.fromkeys(HAS, _has) | {
    name: _has_not(reason) for reason, names in HAS_NOT.items() for name in names.split()
}
for name, rule in ALL.items():
    assert hasattr(SuiteRequirements, name), name
    setattr(Requirements, name, property(rule))  # a new rule for each test, as a test adds others to its own


@temp_table_keyword_args.for_db("streamsql")
def no_temporary_tables(config: Any, engine: Any) -> dict[str, Any]:
    return {}
