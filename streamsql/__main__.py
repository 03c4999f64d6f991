"""Where the process begins: Ctrl-C is obeyed while the console is still being imported, too."""

import gc
import os
import sys


def main() -> int:
    """Run the command line. Returns the exit code."""
    if os.name == "nt":
        print("streamsql does not run on Windows itself; it runs in WSL (wsl --install)", file=sys.stderr)
        return 2
    collect_seldom()
    try:
        from streamsql.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return _interrupted()


def collect_seldom() -> None:
    """Collect garbage less often: modules and the trees of a script are many objects that stay. The first
    prompt is on the screen after some 60,000 of them, before the first collection, which takes 10 ms.
    """
    gc.set_threshold(100_000, 20, 50)


def _interrupted() -> int:
    """Nothing is running that would have to end first, but for a JVM that was started early."""
    if starting := sys.modules.get("streamsql.runtime.engine.jvm_process"):
        starting.end_starting()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
