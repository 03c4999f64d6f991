"""SET, RESET, DEFINE, SOURCE, HELP, SHOW CONNECTORS, EMPTY TRASH, UNDROP, CLEAR and EXIT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.errors import Source
from streamsql.language.grammar import Node, text_of
from streamsql.language.statements.base import Name, Statement, name_of, new_name_of
from streamsql.language.tokens import tokenize, unquote


@dataclass(frozen=True, kw_only=True)
class Set(Statement, topic="settings", changes_workspace=True, read_only=True):
    """key None lists all settings; value None shows one."""

    key: Name | None = None
    value: str | None = None

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        key, value = node.get("SettingKey"), node.get("SettingValue")
        text = text_of(source, value).strip() if value else None
        tokens = tokenize(text) if text else ()
        own = unquote(tokens[0]) if len(tokens) == 1 else text
        return {"key": name_of(key) if key else None, "value": own}


@dataclass(frozen=True, kw_only=True)
class Reset(Statement, topic="settings", changes_workspace=True, read_only=True):
    key: Name | None = None

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        key = node.get("SettingKey")
        return {"key": name_of(key) if key else None}


@dataclass(frozen=True, kw_only=True)
class Define(Statement, topic="scripts", of_pipeline=True):
    """if_not_exists: an existing value is kept."""

    name: Name
    value: str
    if_not_exists: bool = False

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        value = node.get("SettingValue")
        return {
            "name": new_name_of(node.get("Variable")),
            "value": text_of(source, value).strip() if value else node.parts[-1].value,
        }


@dataclass(frozen=True, kw_only=True)
class SourceFile(Statement, topic="scripts", of_pipeline=True, needs_spark=True):
    path: Name


@dataclass(frozen=True, kw_only=True)
class Help(Statement, topic="usage"):
    """words: a topic, or the beginning of a statement, upper case; none lists all."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShowConnectors(Statement, topic="streams"):
    connector: Name | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeConnector(Statement, topic="streams"):
    connector: Name


@dataclass(frozen=True, kw_only=True)
class ShowTables(Statement, topic="usage", needs_spark=True):
    """pattern: of the names, "" for all."""

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowViews(Statement, topic="usage", needs_spark=True):
    """pattern: as in ShowTables."""

    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowCreateTables(Statement, topic="usage", needs_spark=True):
    pass


@dataclass(frozen=True, kw_only=True)
class EmptyTrash(Statement, topic="workspace", of_pipeline=False, changes_workspace=True):
    pass


@dataclass(frozen=True, kw_only=True)
class Undrop(Statement, topic="workspace", of_pipeline=False, changes_workspace=True):
    pass


@dataclass(frozen=True, kw_only=True)
class Clear(Statement, topic="prompt"):
    pass


@dataclass(frozen=True, kw_only=True)
class Exit(Statement, topic="prompt", of_pipeline=True):
    pass
