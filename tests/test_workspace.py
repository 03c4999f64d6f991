"""One console holds a workspace; the next one is told which."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from terminal import Terminal

from streamsql.runtime.engine.file_lock import Lock, Locked
from streamsql.runtime.workspace.folder import Held, Workspace


def test_a_workspace_is_held_until_it_is_closed(tmp_path: Path) -> None:
    first = Workspace(tmp_path / "w")
    with pytest.raises(
        Held, match=rf"{tmp_path}/w is held by another console \(process {os.getpid()}.* since 20"
    ):
        Workspace(tmp_path / "w")
    first.close()
    Workspace(tmp_path / "w").close()


def test_a_lock_that_is_removed_while_another_console_waits_is_held_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, lock_file = tmp_path / "lock", fcntl.flock
    first = [Lock(file, 0)]

    def late(opened: int, how: int) -> None:
        while first:
            first.pop().release()
        lock_file(opened, how)

    monkeypatch.setattr(fcntl, "flock", late)
    second = Lock(file, 10)
    with pytest.raises(Locked):
        Lock(file, 0)
    second.release()
    assert not file.exists()


@pytest.mark.usefixtures("processes")
def test_a_second_prompt_is_told_and_works_in_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second, third = Terminal(tmp_path), None, None
    try:
        first.until(r"^sql>")
        second = Terminal(tmp_path)
        held = r"warning: the workspace .* is held by another console \(process \d+ on"
        second.until(held.replace(" ", r"\s+"))  # its lines end where the window does
        second.until(r"^sql>")
        third = Terminal(tmp_path, "-w", str(tmp_path / "data" / "streamsql" / "workspace"))
        third.until(r"error\[\w+\]: the workspace\s.*\sis\s+held\s+by.*hint: another folder: -w DIR")
        assert third.exit_code() == 2
    finally:
        for terminal in (first, second, third):
            if terminal is not None:
                terminal.kill()
