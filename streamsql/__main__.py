"""Where the process begins: Ctrl-C is obeyed while the console is still being imported, too."""

import gc
import os
import sys


def main() -> int:
    """Run the command line. Returns the exit code."""
    collect_seldom()
    try:
        from streamsql.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return _interrupted()


def collect_seldom() -> None:
    """Collect garbage less often: modules and the trees of a script are many objects that stay."""
    gc.set_threshold(50_000, 20, 50)


def _interrupted() -> int:
    """Nothing is running that would have to end first."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
