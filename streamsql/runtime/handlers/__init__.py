"""The handlers of statements: a function for each type of plan or statement."""

from collections.abc import Callable

from streamsql.results import Result

Answers = dict[type, Callable[..., Result]]
"""From a type to its handler: of a plan, called with (parts, plan, statement); of a statement, with
(parts, statement).
"""
