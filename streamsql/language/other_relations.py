"""Relations of other consoles in Spark's words: files, UNNEST, series and samples in FROM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from streamsql.language.file_formats import extension, read_by
from streamsql.language.other_edits import Edit
from streamsql.language.token_groups import closing, items_of
from streamsql.language.tokens import Token, unquote


def relation_edits(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """All edits of the relations of a statement, in any order."""
    for edits in (_series, _samples, _relations):
        yield from edits(text, tokens)


TAKE_PATHS = frozenset(("COPY", "GIVEN", "SHOW", "TEST", "PREVIEW"))
"""First words of statements in which FROM takes a path or an address."""


def _series(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """FROM generate_series(1, 5) AS i of PostgreSQL, whose last number is one of its rows, and which is the
    name of its column, too. In a SELECT list it is a function (other_functions.py).
    """
    for at in range(1, len(tokens) - 3):
        if tokens[at - 1].upper not in ("FROM", "JOIN", ",") or tokens[at].upper != "GENERATE_SERIES":
            continue
        close = closing(tokens, at + 1)
        items = list(items_of(list(tokens[at + 2 : close])))
        if tokens[at + 1].text != "(" or len(items) not in (2, 3) or not _in_from(tokens, at):
            continue
        first, last, *step = (text[i[0].start : i[-1].end] for i in items)
        numbers = all(t.kind == "number" or t.text == "-" for i in items for t in i)
        if step:
            by = step[0] if numbers or step[0][:1] not in ("'", '"') else f"INTERVAL {step[0]}"
            rows = f"explode(sequence({first}, {last}, {by}))"
        else:
            rows = f"range({first}, {last} + 1)"
        alias = close + 2 if tokens[close + 1 : close + 2] and tokens[close + 1].upper == "AS" else close + 1
        named = alias < len(tokens) and tokens[alias].kind in ("word", "quoted")
        named = named and tokens[alias].upper not in _AFTER_RELATION
        columns = alias + 1 < len(tokens) and tokens[alias + 1].text == "("
        if named and columns:
            yield tokens[at].start, tokens[close].end, rows
        else:
            name = f"{tokens[alias].text}({tokens[alias].text})" if named else "series(generate_series)"
            yield tokens[at].start, tokens[alias if named else close].end, f"{rows} AS {name}"


_AFTER_RELATION = frozenset(
    """WHERE GROUP ORDER LIMIT HAVING JOIN CROSS INNER LEFT RIGHT FULL ON UNION WINDOW WITH TABLESAMPLE USING
    QUALIFY EMIT LATERAL OFFSET EXCEPT INTERSECT NATURAL ANTI SEMI AS""".split()
)


def _in_from(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token behind FROM, JOIN or a comma is a relation."""
    depth = 0
    for n in range(at - 1, -1, -1):
        depth += (tokens[n].text == ")") - (tokens[n].text == "(")
        if depth < 0:
            return False
        if depth == 0 and tokens[n].upper in ("FROM", "JOIN", "SELECT", "WHERE", "BY"):
            return tokens[n].upper in ("FROM", "JOIN")
    return False


def _samples(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """USING SAMPLE 10% of DuckDB, TABLESAMPLE BERNOULLI (10) of PostgreSQL."""
    for at in range(1, len(tokens) - 1):
        words = [t.upper for t in tokens[at : at + 2]]
        begin = at + 2 if words == ["USING", "SAMPLE"] else at + 1 if words[0] == "TABLESAMPLE" else None
        sample = _SAMPLE.match(text[tokens[begin].start :]) if begin and begin < len(tokens) else None
        if sample is None or begin is None:
            continue
        plain = words[0] == "TABLESAMPLE" and not sample["method"] and sample["open"]
        if plain and sample["unit"] and sample["unit"] != "%":
            continue  # it is Spark's
        method = (sample["method"] or sample["behind"] or "").upper()
        of_all = sample["unit"] in ("%", None) and (sample["unit"] or method in ("BERNOULLI", "SYSTEM"))
        unit = "PERCENT" if of_all or (sample["unit"] or "").upper().startswith("PER") else "ROWS"
        yield tokens[at].start, tokens[begin].start + sample.end(), f"TABLESAMPLE ({sample['n']} {unit})"


_SAMPLE = re.compile(
    r"(?P<method>[A-Za-z]+)?\s*(?P<open>\()?\s*(?P<n>[\d.]+)\s*(?P<unit>%|PERCENT|ROWS?)?\s*(?(open)\))"
    r"(\s*\((?P<behind>[A-Za-z]+)[^)]*\))?",
    re.IGNORECASE,
)


def _relations(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """FROM 'f.csv' and FROM read_csv('f.csv') of DuckDB, and UNNEST(t.list) AS e."""
    for at in range(1, len(tokens) if tokens[0].upper not in TAKE_PATHS else 0):
        if tokens[at - 1].upper not in ("FROM", "JOIN", ",", "LATERAL"):
            continue
        close = closing(tokens, at + 1) if [t.text for t in tokens[at + 1 : at + 2]] == ["("] else at
        if close == len(tokens):
            continue
        if tokens[at].upper == "UNNEST" and close > at and _in_from(tokens, at):
            yield from _unnest(text, tokens, at, close)
        elif tokens[at].kind == "string" or tokens[at].upper.startswith("READ_"):
            own = _file(text, tokens, at, close)
            if own and _in_from(tokens, at):
                yield tokens[at].start, tokens[close].end, own


def _file(text: str, tokens: Sequence[Token], at: int, close: int) -> str:
    """Spark's relation for a file, or for several in brackets; "" if what is written is none."""
    options: dict[str, str] = {}
    paths = [tokens[at]]
    if close > at:
        first, *further = [*items_of(list(tokens[at + 2 : close]))] or [[]]
        paths = [t for t in first if t.text not in ("[", "]", ",")]
        for item in further:
            key = _OF_READERS.get(item[0].text.casefold(), "") if len(item) == 3 else ""
            if not key or item[1].text != "=":
                return ""
            options[key] = item[2].text
    if not paths or not all(p.kind == "string" for p in paths):
        return ""
    names = [unquote(p) for p in paths]
    kind = extension(names[0])
    if not kind or (options and kind not in ("csv", "tsv")):
        return ""
    if kind in ("csv", "tsv"):
        tabs = {"sep": "'\\t'"} if kind == "tsv" else {}
        options = {"header": "true", "inferSchema": "true", **tabs, **options}
    listed = ", ".join(f"{key} = {value}" for key, value in options.items())
    quoted = [name.replace("`", "``") for name in names]
    files = [f"{read_by(names[0])}.`{name}`" + (f" WITH ({listed})" if listed else "") for name in quoted]
    return files[0] if len(files) == 1 else f"({' UNION ALL '.join(f'SELECT * FROM {f}' for f in files)})"


_OF_READERS = {"delim": "sep", "sep": "sep", "header": "header", "quote": "quote", "escape": "escape"}
"""Arguments of read_csv of DuckDB, and the options of Spark."""


def _unnest(text: str, tokens: Sequence[Token], at: int, close: int) -> Iterator[Edit]:
    """UNNEST(list) AS e as a relation, whose alias names its column, too. Behind another relation it is a
    LATERAL VIEW: a function behind LATERAL does not see a column that has the name of a function, as user.
    """
    value = text[tokens[at + 2].start : tokens[close - 1].end]
    words = [t.upper for t in tokens]
    last, alias = close, close + 1 + (words[close + 1 : close + 2] == ["AS"])
    name, columns = "unnest", "unnest"
    if (
        alias < len(tokens)
        and tokens[alias].kind in ("word", "quoted")
        and words[alias] not in _AFTER_RELATION
    ):
        name = columns = tokens[alias].text
        last = alias
        if words[alias + 1 : alias + 2] == ["("]:
            last = closing(tokens, alias + 1)
            columns = text[tokens[alias + 1].end : tokens[min(last, len(tokens) - 1)].start]
    if words[close + 1 : close + 3] == ["WITH", "ORDINALITY"] or last >= len(tokens):
        return
    if words[at - 1] == "FROM":
        yield tokens[at].start, tokens[last].end, f"explode({value}) AS {name}({columns})"
        return
    start = at - 1
    while words[start - 1] in ("CROSS", "LEFT", "OUTER", "INNER", "JOIN", ","):
        start -= 1
    outer = "OUTER " if "LEFT" in words[start:at] else ""
    if words[last + 1 : last + 3] == ["ON", "TRUE"]:
        last += 2
    if words[last + 1 : last + 2] in ([], [")"]) or (_AFTER_VIEWS & {*words[last + 1 : last + 2]}):
        gap = " " if tokens[start].text == "," else ""
        own = f"{gap}LATERAL VIEW {outer}explode({value}) {name} AS {columns}"
        yield tokens[start].start, tokens[last].end, own


_AFTER_VIEWS = frozenset(("WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "UNION", "QUALIFY", "EMIT", "WINDOW"))
