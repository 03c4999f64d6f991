"""Where the process begins: Ctrl-C is obeyed while the console is still being imported, too."""

import os
import sys


def main() -> int:
    """Run the command line. Returns the exit code."""
    try:
        from streamsql.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return _interrupted()


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
