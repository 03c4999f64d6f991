"""Takes away what only Linux has, of this process and of all that it starts: for PYTHONPATH.

A console that works so needs nothing of it. The names of the three systems are in Python's documentation
("Availability: Linux"); files below /proc are not there, as on macOS.
"""

import builtins
import errno
import fcntl
import io
import os
import select
import signal
import socket

ONLY_LINUX = {
    socket: ("SO_PEERCRED", "SO_PASSCRED", "AF_NETLINK", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "TCP_USER_TIMEOUT"),
    signal: ("sigwaitinfo", "sigtimedwait", "pidfd_send_signal", "SIGRTMIN", "SIGRTMAX", "SIGPWR"),
    fcntl: ("F_SETSIG", "F_GETSIG", "F_NOTIFY", "F_OFD_SETLK", "F_ADD_SEALS"),
    select: ("epoll",),
    os: (
        "sched_getaffinity", "sched_setaffinity", "process_cpu_count", "pidfd_open", "memfd_create", "eventfd",
        "posix_fadvise", "posix_fallocate", "copy_file_range", "splice", "fdatasync", "O_TMPFILE", "O_PATH",
        "O_DIRECT", "getrandom", "setresuid", "getresuid", "listxattr", "setxattr", "unshare", "statx",
    ),
}  # fmt: skip
for module, names in ONLY_LINUX.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
        if name in getattr(module, "__all__", ()):
            module.__all__.remove(name)


def without_proc(opens):
    """A function that opens a path, for a system without /proc."""

    def opened(path, *arguments, **named):
        if isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fsdecode(path))
        return opens(path, *arguments, **named)

    return opened


builtins.open = io.open = without_proc(io.open)
os.open = without_proc(os.open)
os.environ["STREAMSQL_OTHER_SYSTEM"] = "1"
