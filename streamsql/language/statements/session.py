"""SET, RESET, DEFINE, SOURCE, HELP, SHOW CONNECTORS, CLEAR and EXIT."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source
from streamsql.language.grammar import Node, text_of
from streamsql.language.statements.base import Name, Statement, name_of
from streamsql.language.tokens import tokenize, unquote


@dataclass(frozen=True, kw_only=True)
class Set(Statement):
    """key None lists all settings; value None shows one."""

    key: Name | None = None
    value: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reset(Statement):
    key: Name | None = None


@dataclass(frozen=True, kw_only=True)
class Define(Statement):
    name: Name
    value: str


@dataclass(frozen=True, kw_only=True)
class SourceFile(Statement):
    path: Name


@dataclass(frozen=True, kw_only=True)
class Help(Statement):
    """words: the beginning of a statement, upper case; none lists all."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShowConnectors(Statement):
    name: Name | None = None


@dataclass(frozen=True, kw_only=True)
class Clear(Statement):
    pass


@dataclass(frozen=True, kw_only=True)
class Exit(Statement):
    pass


def _set(node: Node, source: Source) -> Set:
    key, value = node.get("SettingKey"), node.get("SettingValue")
    text = None
    if value:
        text = text_of(source, value).strip()
        tokens = tokenize(text)
        if len(tokens) == 1:
            text = unquote(tokens[0])
    return Set(key=name_of(key) if key else None, value=text)


def _optional(node: Node, rule: str) -> Name | None:
    part = node.get(rule)
    return name_of(part) if part else None


BUILDERS = {
    "Set": _set,
    "Reset": lambda node, source: Reset(key=_optional(node, "SettingKey")),
    "Define": lambda node, source: Define(name=name_of(node.get("Variable")), value=node.parts[-1].value),
    "SourceFile": lambda node, source: SourceFile(path=name_of(node.get("Path"))),
    "Help": lambda node, source: Help(words=tuple(w.value.upper() for w in node.all("Word"))),
    "ShowConnectors": lambda node, source: ShowConnectors(name=_optional(node, "Connector")),
    "Clear": lambda node, source: Clear(),
    "Exit": lambda node, source: Exit(),
}
