"""Local folders looked at before Spark would stumble over them."""

from __future__ import annotations

import glob
import os

from streamsql.errors import InputFault, did_you_mean
from streamsql.language.statements.base import Name


def check_path(path: Name) -> None:
    """Raise InputFault when a local folder (or glob) is not there; Spark would say so much later."""
    text = path.value.removeprefix("file://").removeprefix("file:")
    if "://" in text:
        return
    if any(c in text for c in "*?[{"):
        return
    if os.path.isfile(text):
        folder, name = os.path.split(text)
        raise InputFault(
            f"{path} is a file; a stream reads a directory",
            hint=f"path '{folder or '.'}' with pathGlobFilter '{name}'",
            span=path.span,
        )
    if not os.path.isdir(text):
        parent = os.path.dirname(text.rstrip("/")) or "."
        near = did_you_mean(
            os.path.basename(text.rstrip("/")), map(os.path.basename, glob.glob(f"{parent}/*"))
        )
        raise InputFault(f"there is no directory {path}", hint=near or f"mkdir -p {text}", span=path.span)
