"""A module that another of the same folder imports."""


def rectangle(width: int, height: int) -> int:
    return width * height
