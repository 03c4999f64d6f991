"""Which columns relations and queries have, as far as the catalog and a query's text tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from streamsql.catalog import Catalog, Sink, Stream
from streamsql.connectors.registry import connectors
from streamsql.language.tokens import Token, tokenize, unquote
from streamsql.shell.completion.scope import Block, Relation, read_query

# A column: its name and its type, "" when that is not plain.
Pair = tuple[str, str]
# The columns of a live table or a table of Spark, asked by name; () when they are not known.
Columns = Callable[[str], Sequence[Pair]]

WINDOW_TYPE = "STRUCT<start: TIMESTAMP, end: TIMESTAMP>"


@lru_cache(maxsize=256)
def _read_text(text: str) -> Block:
    return read_query(tokenize(text, strict=False), -1)[0]


def _cte(name: str, block: Block) -> Block | None:
    """The query of that name in a WITH around a block; inside its own query it means what is outside."""
    around = list(block.outward())
    for outer in around:
        found = outer.ctes.get(name.casefold())
        if found is not None and not any(found is b for b in around):
            return found
    return None


class Resolver:
    """Columns of relations and blocks, by what the catalog and `columns` know."""

    def __init__(self, catalog: Catalog, columns: Columns | None) -> None:
        self.catalog = catalog
        self.columns = columns
        self.depth = 0

    def relation(self, relation: Relation, block: Block) -> list[Pair]:
        """The columns of a relation that a block reads."""
        found: list[Pair] = []
        if relation.block is not None:
            found = self.output(relation.block)
        elif relation.name:
            cte = _cte(relation.name, block)
            found = self.output(cte) if cte is not None else self.named(relation.name)
        if relation.given:
            types = [t for _, t in found] if len(found) == len(relation.given) else [""] * len(relation.given)
            found = list(zip(relation.given, types, strict=True))
        return found

    def named(self, name: str) -> list[Pair]:
        """The columns of a stream, live table or table of that name."""
        entry = self.catalog.relation(name)
        if isinstance(entry, Stream):
            return self.stream(entry)
        if isinstance(entry, Sink) and entry.columns:
            return [(c.name, c.type) for c in entry.columns]
        known = self.columns(name) if self.columns else ()
        found = [(n, t if "<" in t else t.upper()) for n, t in known]
        if not found and entry is not None:
            feeding = self.catalog.queries_into(name)
            found = self.text(feeding[0].text) if feeding else []
        return found

    def stream(self, stream: Stream) -> list[Pair]:
        """The columns of a stream; the text of its query tells those of CREATE STREAM … AS."""
        declared = stream.columns
        made = connectors().get(stream.connector)
        if not declared and made is not None:
            declared = made.columns(stream)
        found = [(c.name, c.type) for c in declared] if declared else self.text(stream.query)
        if stream.watermark and stream.watermark.computed:
            found = [*found, (stream.watermark.column.value, "TIMESTAMP")]
        return found

    def text(self, query: str) -> list[Pair]:
        """The columns of a query's result."""
        if not query or self.depth > 20:  # a stream may have come to read itself
            return []
        self.depth += 1
        found = self.output(_read_text(query))
        self.depth -= 1
        return found

    def output(self, block: Block) -> list[Pair]:
        """The columns of a block's result, as far as they are plain."""
        if self.depth > 20:
            return []
        self.depth += 1
        found = [pair for item in block.items for pair in self._item(item, block)]
        if not block.items and block.relations:  # FROM t |> WHERE …
            found = self.relation(block.relations[0], block)
        self.depth -= 1
        return found

    def _item(self, item: list[Token], block: Block) -> list[Pair]:
        item = _without_distinct(item)
        words = [t.upper for t in item]
        if not item:
            return []
        if words[0] == "*":
            left_out = {unquote(t).casefold() for t in item[2:]}  # * EXCEPT (a, b)
            every = [pair for r in block.relations for pair in self.relation(r, block)]
            return [pair for pair in every if pair[0].casefold() not in left_out]
        if words[-2:] == [".", "*"]:
            return self.qualified(unquote(item[-3]), block) if len(item) > 2 else []
        expression, name = item, ""
        last, before = item[-1], words[-2] if len(words) > 1 else ""
        if last.kind in ("word", "quoted") and (before == "AS" or _ends_operand(item[:-1])):
            expression, name = item[: -2 if before == "AS" else -1], unquote(last)
        elif last.kind in ("word", "quoted") and (len(item) == 1 or before == "."):
            name = unquote(last)
        elif words[0] in ("WINDOW", "SESSION_WINDOW"):
            name = words[0].lower()
        return [(name, self._type(expression, block))] if name and name.upper() != "END" else []

    def _type(self, expression: list[Token], block: Block) -> str:
        words = [t.upper for t in expression]
        if len(words) == 1 and expression[0].kind in ("word", "quoted"):
            found = self.type_of(unquote(expression[0]), block)
            return found or (WINDOW_TYPE if words[0] in ("WINDOW", "SESSION_WINDOW") else "")
        if len(words) == 3 and words[1] == ".":
            pairs = self.qualified(unquote(expression[0]), block)
            return {n.casefold(): t for n, t in pairs}.get(unquote(expression[2]).casefold(), "")
        if words[1:2] == ["("] and words[-1] == ")":
            if words[0] in ("WINDOW", "SESSION_WINDOW"):
                return WINDOW_TYPE
            if words[0] in ("COUNT", "COUNT_IF", "APPROX_COUNT_DISTINCT") and words.count("(") == 1:
                return "BIGINT"
            if words[0] in ("CAST", "TRY_CAST") and "AS" in words:
                return "".join(words[len(words) - words[::-1].index("AS") : -1])
        return ""

    def type_of(self, name: str, block: Block) -> str:
        """The type of a column that a block reads, by its bare name."""
        for relation in block.relations:
            for column, kind in self.relation(relation, block):
                if column.casefold() == name.casefold():
                    return kind
        return ""

    def qualified(self, name: str, block: Block) -> list[Pair]:
        """What may stand behind `name.`: columns of a relation, or fields of a STRUCT column."""
        folded = name.casefold()
        for around in block.outward():
            for relation in around.relations:
                if relation.called.casefold() == folded or relation.name.casefold() == folded:
                    return self.relation(relation, around)
        if folded in ("window", "session_window"):
            return fields(WINDOW_TYPE)
        return fields(self.type_of(name, block))


def _without_distinct(item: list[Token]) -> list[Token]:
    """A select item without DISTINCT, DISTINCT ON (…) and WITHIN WATERMARK before it."""
    words = [t.upper for t in item]
    at = 1 if words[:1] in (["DISTINCT"], ["ALL"]) else 0
    if words[1:3] == ["ON", "("]:
        at = words.index(")") + 1 if ")" in words else len(words)
    if words[at : at + 2] == ["WITHIN", "WATERMARK"]:
        at += 2
    return item[at:]


def _ends_operand(tokens: list[Token]) -> bool:
    """Whether a name behind these tokens is an alias."""
    if not tokens:
        return False
    last = tokens[-1]
    return (
        last.kind in ("string", "number", "quoted")
        or last.text in (")", "]")
        or (last.kind == "word" and last.upper not in _OPERATORS)
    )


_OPERATORS = frozenset("AND OR NOT IS IN LIKE BETWEEN CASE WHEN THEN ELSE DISTINCT DIV INTERVAL ALL".split())


def fields(type_text: str) -> list[Pair]:
    """The fields of a STRUCT type, by its text: `STRUCT<a: INT, b: STRING>`."""
    text = type_text.strip()
    if not text.upper().startswith("STRUCT<"):
        return []
    found: list[Pair] = []
    depth, start = 0, 7
    for at in range(7, len(text)):
        depth += (text[at] in "<(") - (text[at] in ">)")
        if (text[at] == "," and depth == 0) or depth < 0:
            name, _, kind = text[start:at].strip().replace(":", " ", 1).partition(" ")
            found.append((name.strip("`"), kind.strip()))
            start = at + 1
        if depth < 0:
            break
    return [(n, t) for n, t in found if n]
