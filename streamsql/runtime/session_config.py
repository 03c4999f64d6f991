"""The configuration of a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from streamsql.config.preferences import Preferences
from streamsql.results import Result
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.workspace.store import Store


@dataclass
class Config:
    """The configuration of a session. folder: for checkpoints and other files; java: see find_java.

    interactive: the session has a prompt, so that a SELECT over a stream refreshes. show_batch: called with
    the rows of a micro-batch of the sink `console`, on Spark's callback thread. preferences: shared with the
    printer. store: the files of the workspace; None without one. read_only: the workspace is not
    changed; folder is then outside of it. trusted: settings of the workspace that can run code are applied.
    stand_ins: each stream and sink is replaced by one of a test (plan/stand_ins.py). arrow: rows go to a
    program, which takes them as record batches (results.ArrowRows).
    """

    settings: Settings
    folder: Path
    log: Path
    cache: Path
    java: str = "auto"
    interactive: bool = False
    show_batch: Callable[[Result, int], None] = lambda result, batch_id: None
    preferences: Preferences = field(default_factory=Preferences)
    store: Store | None = None
    read_only: bool = False
    trusted: bool = False
    stand_ins: bool = False
    arrow: bool = False
