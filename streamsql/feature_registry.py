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
from typing import TYPE_CHECKING, Any

from streamsql import plug_in_loader
from streamsql.plug_in_loader import FEATURES, loaded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True, eq=False)
class Feature:
    """What a feature adds; its package has it as FEATURE.

    package: its full name. statements, planners, handlers: modules of the package, "" for none. The first
    has the classes of statements; the second PLANNERS, a table from these to functions; the third PLANS or
    DIRECT, tables from plans and from statements to functions. commands: from the first word of a command
    line to a cli.command_line.Command, written `module:name`, and to what the command does. flags: flags of
    the command line, with the arguments of argparse. checks: from the name of such a flag in argparse to
    what runs in place of --check. connectors: the module with CONNECTORS, classes of connectors, "" for none.
    extends: from an extension point of the kernel to a function.
    """

    package: str
    statements: str = ""
    planners: str = ""
    handlers: str = ""
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    flags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)
    connectors: str = ""
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
def plug_ins() -> dict[Feature, EntryPoint]:
    """The features of other distributions, with their entry points. One that cannot be used is omitted."""
    return {feature: point for point, feature in loaded(FEATURES, _feature)}


def _feature(package: Any) -> Feature:
    feature = package.FEATURE
    if not isinstance(feature, Feature):
        raise TypeError(f"{package.__name__}.FEATURE is no Feature")
    if feature.statements:
        feature.module(feature.statements)
    return feature


def omit(feature: Feature, error: Exception) -> None:
    """Do without a plug-in that turns out to be wrong."""
    plug_in_loader.omit(plug_ins().pop(feature), error)


def features() -> tuple[Feature, ...]:
    """All features: those of the console, then those of plug-ins."""
    return (*own_features(), *plug_ins())


def folder(feature: Feature) -> Path:
    """The folder of a plug-in, with its grammar and HELP topics. Others have these in grammars/."""
    return Path(import_module(feature.package).__file__ or "").parent


def statement_modules() -> Iterator[ModuleType]:
    """The modules of all features that define statements."""
    return (feature.module(feature.statements) for feature in features() if feature.statements)


def connector_classes() -> Iterator[Any]:
    """The classes of connectors that the console's own features add."""
    for feature in own_features():
        if feature.connectors:
            yield from feature.module(feature.connectors).CONNECTORS


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
