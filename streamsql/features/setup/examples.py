"""`streamsql examples`: the scripts that are installed with the console."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

from streamsql.cli.command_line import Command, Parser
from streamsql.config.preferences import Preferences
from streamsql.errors import UsageFault, did_you_mean, reason_of
from streamsql.language.grammar import grammar_folder
from streamsql.output.printer import Printer
from streamsql.results import Rows

_TESTS = ".test.sql"


def examples_folder() -> Path:
    """The folder of the examples: beside that of the grammars, in a wheel and in a checkout."""
    return grammar_folder().parent / "examples"


def examples() -> dict[str, Path]:
    """The example scripts by name."""
    scripts = sorted(examples_folder().glob("*.sql"))
    return {path.stem: path for path in scripts if not path.name.endswith(_TESTS)}


def about(script: str) -> str:
    """The first sentence of the comment that a script begins with, up to its colon."""
    comment = re.match(r"(?:--.*\n)+", script)
    words = " ".join(re.sub(r"(?m)^--", "", comment[0]).split()) if comment else ""
    return re.split(r"[.:](?: |$)", words)[0]


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="streamsql examples",
        description="Lists the examples; with a name, prints the script.",
        epilog="exit codes: those of streamsql for --run, 0 success, 2 usage",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="the name of an example")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--run", action="store_true", help="run it; it may write to the current folder")
    what.add_argument("--copy", metavar="DIR", help="copy all examples with their data into a new folder")
    return parser


def _run(options: argparse.Namespace, preferences: Preferences) -> int:
    """Run `streamsql examples`. Returns the exit code; raises UsageFault."""
    found = examples()
    if options.copy:
        return _copy(Path(options.copy))
    if options.name is None:
        if options.run:
            raise UsageFault("--run needs the name of an example", hint="streamsql examples lists them")
        rows = [(name, about(path.read_text("utf-8"))) for name, path in found.items()]
        Printer("table", sys.stdout, sys.stderr).show(Rows((), ("example", "what it shows"), rows))
        return 0
    path = found.get(options.name.removesuffix(".sql"))
    if path is None:
        hint = did_you_mean(options.name, found) or "streamsql examples lists them"
        raise UsageFault(f"there is no example {options.name}", hint=hint)
    if not options.run:
        sys.stdout.write(path.read_text("utf-8"))
        return 0
    from streamsql.cli.main import CONSOLE

    return CONSOLE.run(CONSOLE.read([str(path)]), preferences)


def _copy(folder: Path) -> int:
    """Copy the folder of the examples. Raises UsageFault for a folder that is there or cannot be written."""
    try:
        shutil.copytree(examples_folder(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise UsageFault(f"cannot copy to {folder}: {reason_of(error)}", hint="name a new folder") from None
    print(f"copied; streamsql {folder / 'windowed_word_count.sql'} runs one")
    return 0


COMMAND = Command(_parser, _run)
