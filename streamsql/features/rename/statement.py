"""ALTER LIVE TABLE, STREAM, SINK and QUERY … RENAME TO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from streamsql.errors import Source
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, name_of, new_name_of


@dataclass(frozen=True, kw_only=True)
class Rename:
    """What the statements have in common. new_name: that of the entry afterwards."""

    topic: ClassVar[str] = "change"
    not_on_connect: ClassVar[str] = "restarts"
    needs_spark: ClassVar[bool] = True
    changes_workspace: ClassVar[bool] = True

    name: Name
    new_name: Name

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        old = next(part for part in node.parts if part.name.endswith("Name"))
        return {"name": name_of(old), "new_name": new_name_of(node.get("NewName"))}


@dataclass(frozen=True, kw_only=True)
class RenameLiveTable(Rename, Statement, refers="live_table"):
    pass


@dataclass(frozen=True, kw_only=True)
class RenameStream(Rename, Statement, refers="stream"):
    pass


@dataclass(frozen=True, kw_only=True)
class RenameSink(Rename, Statement, refers="sink"):
    pass


@dataclass(frozen=True, kw_only=True)
class RenameQuery(Rename, Statement, refers="query"):
    pass
