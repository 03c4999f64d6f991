"""SQLAlchemy's own tests of a dialect; test_sqlalchemy.py runs them in a process."""

import pytest
from sqlalchemy.dialects import registry

for name in ("streamsql", "streamsql.streamsql"):
    registry.register(name, "streamsql.features.dbapi.sqlalchemy_dialect", "StreamsqlDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

NOT_OF_SPARK = {}
OLD = {
    "QuotedNameArgumentTest": "a table of Spark has only letters, digits and _ in its name",
    **dict.fromkeys(("test_truediv_divisor", "test_enotation_decimal_large"), "a DECIMAL has 38 digits"),
    "test_long_convention_name": "it names constraints and indexes",
    "test_autocommit_isolation": "there are no transactions",
    "test_nullable_reflection": "DESCRIBE does not show NOT NULL",
    **dict.fromkeys(
        (
            "test_enotation_decimal",
            "test_float_as_decimal",
            "test_float_as_float",
            "test_float_custom_scale",
            "test_numeric_as_decimal",
            "test_numeric_as_float",
            "test_precision_decimal",
        ),
        "it uses DELETE, which Spark's tables of files do not have",
    ),
}
"""Classes and tests that no requirement describes, and why they do not apply."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Behind SQLAlchemy's own, which makes items anew for each database."""
    for item in items:
        names = {item.originalname, item.cls.__name__.partition("_streamsql")[0] if item.cls else ""}
        for name in names & set(NOT_OF_SPARK):
            item.add_marker(pytest.mark.skip(reason=NOT_OF_SPARK[name]))
