"""Functions that tests call from SQL: values, series, a table."""

from collections.abc import Iterator

import shapes


def shout(word: str) -> str:
    return word.upper() + "!"


def area(width: int, height: int) -> int:
    return shapes.rectangle(width, height)


def total(values: list) -> int:
    return sum(values)


def bad(n: int) -> int:
    return 1 // n


class Letters:
    """Each letter of a word, with its place."""

    def eval(self, word: str) -> Iterator[tuple[str, int]]:
        for place, letter in enumerate(word, 1):
            yield letter, place


LIMIT = 3


class NoMethods:
    pass
