"""Finds features: the folders of streamsql/features, and packages that other distributions bring.

A feature adds statements with their planners and handlers, commands of the command line, and functions at
the extension points of the kernel. The kernel finds all of it here and imports no feature; a feature
imports the kernel and no other feature. Its modules are imported when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from streamsql.guard import log

FEATURES = "streamsql.features"
"""The package of the console's own features. Entry points of that group name further packages."""


@dataclass(frozen=True)
class Feature:
    """What a feature adds; its package has it as FEATURE.

    package: its full name. statements, planners, handlers: modules of the package, "" for none. The first
    has the classes of statements; the second PLANNERS, a table from these to functions; the third PLANS or
    DIRECT, tables from plans and from statements to functions. commands: from the first word of a command
    line to a cli.command_line.Command, written `module:name`, and to what the command does. flags: flags of
    the command line, with the arguments of argparse. checks: from the name of such a flag in argparse to
    what runs in place of --check. extends: from an extension point of the kernel to a function.
    """

    package: str
    statements: str = ""
    planners: str = ""
    handlers: str = ""
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    flags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)
    extends: Mapping[str, str] = field(default_factory=dict)

    def module(self, name: str) -> ModuleType:
        """A module of its package."""
        return import_module(f"{self.package}.{name}")

    def named(self, reference: str) -> Any:
        """What `module:name` names in its package."""
        module, _, name = reference.partition(":")
        return getattr(self.module(module), name)


@cache
def own_features() -> tuple[Feature, ...]:
    """The features of the console itself, in the order of their names."""
    names = sorted(module.name for module in iter_modules(import_module(FEATURES).__path__))
    return tuple(import_module(f"{FEATURES}.{name}").FEATURE for name in names)


@cache
def features() -> tuple[Feature, ...]:
    """All features. A plug-in that cannot be imported is logged and omitted."""
    from importlib.metadata import entry_points

    found = list(own_features())
    for point in entry_points(group=FEATURES):
        try:
            feature = point.load().FEATURE
            if feature.statements:
                feature.module(feature.statements)
            found.append(feature)
        except Exception as error:  # of one package that is installed: the console works without it
            log(error, f"the feature {point.name} is not there")
    return tuple(found)


def plug_in_folders() -> list[Path]:
    """The folders of plug-ins, with their grammar and HELP topics. Others have these in grammars/."""
    plug_ins = features()[len(own_features()) :]
    return [Path(import_module(plug_in.package).__file__ or "").parent for plug_in in plug_ins]


def statement_modules() -> Iterator[ModuleType]:
    """The modules of all features that define statements."""
    return (feature.module(feature.statements) for feature in features() if feature.statements)


def planners(statement: type) -> Mapping[type, Any]:
    """The planners of the feature that defines a class of statements; none for a class of the kernel."""
    feature = _feature_of(statement)
    return feature.module(feature.planners).PLANNERS if feature and feature.planners else {}


def handlers(kind: type, table: str) -> Mapping[type, Any]:
    """The table, PLANS or DIRECT, of the feature that defines a class of plans or statements."""
    feature = _feature_of(kind)
    return getattr(feature.module(feature.handlers), table, {}) if feature and feature.handlers else {}


def commands() -> dict[str, tuple[str, str]]:
    """The commands of the console's own features, by the first word of a command line: `module:name` of a
    cli.command_line.Command, with the full name of the module, and what the command does.
    """
    return {
        word: (f"{feature.package}.{place}", about)
        for feature in own_features()
        for word, (place, about) in feature.commands.items()
    }


def flags() -> dict[str, Mapping[str, Any]]:
    """The flags of the console's own features, with the arguments of argparse."""
    return {flag: arguments for feature in own_features() for flag, arguments in feature.flags.items()}


def chosen_check(flags: Mapping[str, Any]) -> Any:
    """The function that runs in place of --check; None without a flag that asks for it. flags: by the names
    of argparse.
    """
    chosen = ((f, name) for f in own_features() for name in f.checks if flags[name])
    feature, name = next(chosen, (None, ""))
    return feature.named(feature.checks[name]) if feature else None


def extensions(point: str) -> Iterator[Any]:
    """What the console's own features add at an extension point, in the order of their names."""
    return (f.named(f.extends[point]) for f in own_features() if point in f.extends)


def _feature_of(kind: type) -> Feature | None:
    """The feature whose package defines a class."""
    return next((f for f in features() if kind.__module__.startswith(f"{f.package}.")), None)
