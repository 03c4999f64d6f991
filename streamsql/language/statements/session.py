"""SET, RESET, DEFINE, SOURCE, HELP, SHOW CONNECTORS, EMPTY TRASH, UNDROP, CLEAR and EXIT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node, text_of
from streamsql.language.statements.base import Name, Statement, name_of, new_name_of
from streamsql.language.tokens import tokenize, unquote


@dataclass(frozen=True, kw_only=True)
class Set(Statement):
    """key None lists all settings; value None shows one."""

    topic: ClassVar[str] = "settings"
    changes_workspace: ClassVar[bool] = True
    read_only: ClassVar[bool] = True

    key: Name | None = None
    value: str | None = None

    @classmethod
    def read(cls, node: Node, source: Source) -> Set:
        key, value = node.get("SettingKey"), node.get("SettingValue")
        text = None
        if value:
            text = text_of(source, value).strip()
            tokens = tokenize(text)
            if len(tokens) == 1:
                text = unquote(tokens[0])
        return cls(key=name_of(key) if key else None, value=text)


@dataclass(frozen=True, kw_only=True)
class Reset(Statement):
    topic: ClassVar[str] = "settings"
    changes_workspace: ClassVar[bool] = True
    read_only: ClassVar[bool] = True

    key: Name | None = None

    @classmethod
    def read(cls, node: Node, source: Source) -> Reset:
        return cls(key=_optional(node, "SettingKey"))


@dataclass(frozen=True, kw_only=True)
class Define(Statement):
    """if_not_exists: an existing value is kept."""

    topic: ClassVar[str] = "scripts"
    of_pipeline: ClassVar[bool] = True

    name: Name
    value: str
    if_not_exists: bool = False

    @classmethod
    def read(cls, node: Node, source: Source) -> Define:
        value = node.get("SettingValue")
        return cls(
            name=new_name_of(node.get("Variable")),
            value=text_of(source, value).strip() if value else node.parts[-1].value,
            if_not_exists=node.has("IfNotExists"),
        )


@dataclass(frozen=True, kw_only=True)
class SourceFile(Statement):
    topic: ClassVar[str] = "scripts"
    of_pipeline: ClassVar[bool] = True
    needs_spark: ClassVar[bool] = True

    path: Name


@dataclass(frozen=True, kw_only=True)
class Help(Statement):
    """words: a topic, or the beginning of a statement, upper case; none lists all."""

    topic: ClassVar[str] = "usage"

    words: tuple[str, ...] = ()

    @classmethod
    def read(cls, node: Node, source: Source) -> Help:
        return cls(words=tuple(w.value.upper() for w in node.all("Word")))


@dataclass(frozen=True, kw_only=True)
class ShowConnectors(Statement):
    topic: ClassVar[str] = "streams"

    name: Name | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeConnector(Statement):
    topic: ClassVar[str] = "streams"

    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowTables(Statement):
    """pattern: of the names, "" for all."""

    topic: ClassVar[str] = "usage"
    needs_spark: ClassVar[bool] = True

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowViews(Statement):
    """pattern: as in ShowTables."""

    topic: ClassVar[str] = "usage"
    needs_spark: ClassVar[bool] = True

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowCreateTables(Statement):
    topic: ClassVar[str] = "usage"
    needs_spark: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class EmptyTrash(Statement):
    topic: ClassVar[str] = "workspace"
    of_pipeline: ClassVar[bool] = False
    changes_workspace: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Undrop(Statement):
    topic: ClassVar[str] = "workspace"
    of_pipeline: ClassVar[bool] = False
    changes_workspace: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Clear(Statement):
    topic: ClassVar[str] = "prompt"


@dataclass(frozen=True, kw_only=True)
class Exit(Statement):
    topic: ClassVar[str] = "prompt"
    of_pipeline: ClassVar[bool] = True


def _optional(node: Node, rule: str) -> Name | None:
    part = node.get(rule)
    return name_of(part) if part else None
