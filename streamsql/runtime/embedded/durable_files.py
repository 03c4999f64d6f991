"""Writes files so that a crash or a loss of power leaves each of them whole: the old one or the new one.

Exported programs contain this code, so it is self-contained. All that must survive a crash is written here:
rows of live tables, the log of changes, markers of checkpoints, the catalog.
"""

import errno
import os


def only_owner(path, flags):
    """An opener for files that only their owner may read."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def write_file(path, write):
    """Create or replace a file. write: called with the new file, open for bytes. Raises OSError; the old file
    is then as it was, unless only the last step has failed.
    """
    part = f"{path}.part"
    try:
        with open(part, "wb", opener=only_owner) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        remove_file(part)
        raise
    sync_folder(os.path.dirname(path))


def move(old, new):
    """Rename a file or folder, in place of a file or an empty folder of that name. Raises OSError."""
    os.replace(old, new)
    sync_folder(os.path.dirname(new))
    if os.path.dirname(old) != os.path.dirname(new):
        sync_folder(os.path.dirname(old))


def point(link, target):
    """Let a symbolic link lead to a target, in place of the link of that name. Raises OSError."""
    part = f"{link}.part"
    remove_file(part)
    os.symlink(target, part)
    os.replace(part, link)
    sync_folder(os.path.dirname(link))


def make_folder(path):
    """Create a folder that only its owner can read, and those above it, unless they exist. Raises OSError."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    make_folder(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    sync_folder(above)


def remove_file(path):
    """Remove a file if it exists and can be removed. A file that comes back after a loss of power must do no
    harm; where it would, `sync_folder` follows.
    """
    try:
        os.unlink(path)
    except OSError:
        pass


def sync_folder(path):
    """Let the names in a folder survive a loss of power. Raises OSError."""
    opened = os.open(path or ".", os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot sync folders
            raise
    finally:
        os.close(opened)
