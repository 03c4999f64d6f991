"""All tests of the suite; requirements.py says which do not apply."""

from sqlalchemy.testing.suite import *  # noqa: F403
