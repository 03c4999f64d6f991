"""The tests of the suite; requirements.py and suite_plugin.py say which do not apply."""

from sqlalchemy.testing.suite import *  # noqa: F403
