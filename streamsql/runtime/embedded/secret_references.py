"""Secrets that stand elsewhere. EXPLAIN PYSPARK prints this into its programs, so it stands alone."""

import os
import re


def filled(text):
    """A text with ${env:NAME} and ${file:PATH} replaced by what they hold.

    Raises ValueError when there is no such variable, or the file cannot be read.
    """

    def value(found):
        kind, name = found.groups()
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
