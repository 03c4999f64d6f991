"""The note in a checkpoint folder that says which query it belongs to."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from streamsql.language.tokens import tokenize
from streamsql.plan.plans import Run
from streamsql.runtime.checkpoint import MARKER


def fingerprint(plan: Run) -> str:
    """What a checkpoint remembers of its query: the SELECT, its sources and its sink, as a digest."""
    from streamsql.calls import render_node

    steps = " ".join(render_node(step.node) for step in plan.program)
    words = " ".join(t.text for t in tokenize(plan.query.text))
    sinks = " ".join(f"{t.sink.connector} {t.sink.options}" for t in plan.targets)
    whole = f"{words} | {steps} | {sinks}"
    # Options may hold secrets, and a checkpoint is no place for them.
    return hashlib.sha256(whole.encode()).hexdigest()


def _path(spark: Any, folder: str) -> tuple[Any, Any]:
    path = spark._jvm.org.apache.hadoop.fs.Path(folder, MARKER)
    return path, path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())


def read_marker(spark: Any, folder: str) -> dict[str, Any]:
    """Which query a checkpoint folder belongs to; empty when nothing says so."""
    try:
        path, files = _path(spark, folder)
        if not files.exists(path):
            return {}
        stream = files.open(path)
        try:
            text = spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        found = json.loads(text)
        return found if isinstance(found, dict) else {}
    except Exception:
        return {}


def write_marker(spark: Any, plan: Run, code: dict[str, str]) -> None:
    """Say in the checkpoint folder whose it is, with which Python code. Nothing is lost when that cannot
    be written.
    """
    known = {
        "query": plan.query.name,
        "text": plan.query.text,
        "fingerprint": fingerprint(plan),
        "code": code,
    }
    try:
        path, files = _path(spark, plan.checkpoint)
        stream = files.create(path, True)
        try:
            stream.write(bytearray(json.dumps(known).encode()))
        finally:
            stream.close()
    except Exception:
        pass
