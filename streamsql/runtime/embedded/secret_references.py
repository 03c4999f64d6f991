"""Resolves references to secrets. EXPLAIN PYSPARK prints this code, so it is self-contained."""

import os
import re


def filled(text):
    """A text with ${env:NAME} and ${file:PATH} replaced by their contents.

    Raises ValueError when the variable does not exist, or the file cannot be read.
    """

    def value(match):
        kind, name = match.groups()
        if kind == "env":
            if name not in os.environ:
                raise ValueError(f"the environment has no variable {name}, which an option names")
            return os.environ[name]
        try:
            with open(os.path.expanduser(name), encoding="utf-8") as file:
                return file.read().rstrip("\n")
        except OSError as error:
            raise ValueError(f"cannot read {name}, which an option names: {error.strerror}") from None

    return re.sub(r"\$\{(env|file):([^}]*)\}", value, text)
