"""The DB-API 2.0 of streamsql (PEP 249): streamsql.dbapi.connect(). HELP python api."""

from streamsql.features.dbapi.pep249 import *  # noqa: F403
from streamsql.features.dbapi.pep249 import __all__ as __all__
