"""Whether a folder of this machine is on a file system that other machines share."""

from __future__ import annotations

import os
from pathlib import Path

_SHARED = (
    "nfs",
    "cifs",
    "smb",
    "ceph",
    "gluster",
    "lustre",
    "beegfs",
    "gpfs",
    "afs",
    "ocfs2",
    "gfs2",
    "fuse.",
)


def mount_of(folder: str) -> str:
    """The type of the file system that a folder is on, or will be; empty when it is not known."""
    path = os.path.realpath(folder)
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        _, place, type_, *_ = line.split()
        place = place.replace("\\040", " ")
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, kind = place, type_
    return kind


def is_shared(folder: str) -> bool:
    """Whether other machines can see a folder, as far as the type of its file system tells."""
    return mount_of(folder).startswith(_SHARED)
