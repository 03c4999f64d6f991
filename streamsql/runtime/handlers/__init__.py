"""How statements are carried out: a function for each kind, by the plan or the statement itself."""

from collections.abc import Callable

from streamsql.results import Result

Answers = dict[type, Callable[..., Result]]
"""From a type to what answers it: a function of the session and the plan or statement."""
