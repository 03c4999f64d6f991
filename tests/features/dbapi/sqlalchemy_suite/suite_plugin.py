"""SQLAlchemy's own tests of a dialect; test_sqlalchemy.py runs them in a process."""

import re

import pytest
from sqlalchemy.dialects import registry

for name in ("streamsql", "streamsql.streamsql"):
    registry.register(name, "streamsql.features.dbapi.sqlalchemy_dialect", "StreamsqlDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

NOT_OF_SPARK = {
    r"QuotedNameArgumentTest\b": "a table of Spark has only letters, digits and _ in its name",
    r"test_long_convention_name\[ix": "there are no indexes",
    "test_get_temp_view_names": "its view is made together with temporary tables",
    "test_nullable_reflection": "a table of files forgets NOT NULL: Spark says that all columns are nullable",
    r"test_get_multi_columns\[\w+-ObjectKind\.(TABLE|ANY).*-ObjectScope\.(DEFAULT|ANY)-": "the same",
    r"BizarroCharacterTest::.*\[(\(2\)|per % cent|\[brackets\])-": "the same",
}
"""Tests that no requirement describes, and why they cannot apply."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Behind SQLAlchemy's own, which makes items anew for each database."""
    for item in items:
        for pattern, reason in NOT_OF_SPARK.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=reason))
