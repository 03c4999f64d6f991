"""SQLAlchemy's own tests of a dialect; test_sqlalchemy.py runs them in a process."""

import pytest
from sqlalchemy.dialects import registry

for name in ("streamsql", "streamsql.streamsql"):
    registry.register(name, "streamsql.features.dbapi.sqlalchemy_dialect", "StreamsqlDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
