"""`streamsql completion` and `streamsql man`: what shtab and argparse-manpage make of the parsers."""

from __future__ import annotations

import argparse
from importlib import import_module
from types import ModuleType
from typing import Any

from streamsql.cli.command_line import Command, Parser, command_parser, commands
from streamsql.config.preferences import Preferences
from streamsql.errors import UsageFault

SHELLS = ("bash", "zsh", "tcsh")


def _library(name: str, what: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise UsageFault(
            f"{what} needs the package {name.partition('.')[0].replace('_', '-')}",
            hint="pip install 'streamsql-console[shell]'",
        ) from None


def whole_parser() -> argparse.ArgumentParser:
    """One parser of the whole command line: that of the console, with the commands as its subcommands."""
    parser = command_parser()
    parser.epilog = None
    files = next(action for action in parser._actions if action.dest == "files")
    below = parser.add_subparsers(metavar="COMMAND", title="commands")
    for word, (place, about) in commands().items():
        module, _, name = place.partition(":")
        command: Command = getattr(import_module(module), name)
        own = command.parser()
        below.add_parser(word, parents=[own], add_help=False, help=about, description=own.description)
    parser._actions.remove(files)  # last: a FILE may stand where a command may
    parser._actions.append(files)
    return parser


def _completion_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="streamsql completion",
        description="Prints a script for a shell, with which Tab completes commands, flags and files.",
        epilog='bash: eval "$(streamsql completion bash)" in ~/.bashrc. '
        "zsh: streamsql completion zsh > _streamsql, in a folder of $fpath",
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    return parser


def _print_completion(options: argparse.Namespace, preferences: Preferences) -> int:
    shtab = _library("shtab", "completion")
    parser = whole_parser()
    for place in _parsers(parser):
        for action in place._actions:
            if action.metavar in ("FILE", "FILE,…"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.metavar == "DIR":
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
    return 0


def _parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    below: list[Any] = [action for action in parser._actions if isinstance(action.choices, dict)]
    return [parser, *(choice for action in below for choice in action.choices.values())]


def _manual_parser() -> argparse.ArgumentParser:
    return Parser(
        prog="streamsql man",
        description="Prints the manual page: streamsql man > ~/.local/share/man/man1/streamsql.1",
    )


def _print_manual(options: argparse.Namespace, preferences: Preferences) -> int:
    manual = _library("argparse_manpage.manpage", "the manual page")
    data = {"project_name": "streamsql", "prog": "streamsql", "format": "pretty"}
    print(manual.Manpage(whole_parser(), data))
    return 0


COMMAND = Command(_completion_parser, _print_completion)
MANUAL = Command(_manual_parser, _print_manual)
