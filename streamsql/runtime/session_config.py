"""How a session runs."""

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
    """How a session runs. folder: where it keeps checkpoints and the like; java: see find_java.

    interactive: somebody sits at a prompt, so a SELECT over a stream is shown live.
    preferences: shared with the printer. store: what a workspace keeps of the session; None: nothing.
    read_only: the workspace is looked at and not changed; folder then lies outside of it. trusted: settings
    of the workspace that can run code are applied.
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
