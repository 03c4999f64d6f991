"""Expressions of other consoles in Spark's words: lists, structs and samples of DuckDB, ~ and intervals of
PostgreSQL, arguments of ksqlDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from streamsql.language.file_formats import extension, read_by
from streamsql.language.json_arrows import operand
from streamsql.language.other_definitions import closing, items_of
from streamsql.language.other_values import Edit, mixed_interval, value_edits
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.tokens import Token, quote, quote_name, unquote


def expression_edits(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """All edits of the expressions of a statement, in any order."""
    for edits in (*_EDITS, value_edits):
        yield from edits(text, tokens)


def _arrays(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """[1, 2] of DuckDB and ARRAY[1, 2] of PostgreSQL; a[1] is an element."""
    for at in range(1, len(tokens) - 1):
        before = tokens[at - 1]
        beside = before.end == tokens[at].start
        named = before.upper == "ARRAY" and beside
        element = beside and (before.kind in ("word", "quoted", "string") or before.text in (")", "]"))
        if tokens[at].text != "[" or (element and not named):
            continue
        last = _closing(tokens, at)
        if last is None:
            continue
        start = (before if named else tokens[at]).start
        comprehension = _comprehension(text, tokens[at + 1 : last])
        if comprehension:
            yield start, tokens[last].end, comprehension
        else:
            yield start, tokens[at].end, "array("
            yield tokens[last].start, tokens[last].end, ")"


def _closing(tokens: Sequence[Token], at: int) -> int | None:
    """The bracket or brace that closes the one at that token; None if there is none."""
    opening, close = tokens[at].text, {"[": "]", "{": "}"}[tokens[at].text]
    depth = 0
    for last in range(at, len(tokens)):
        depth += (tokens[last].text == opening) - (tokens[last].text == close)
        if depth == 0:
            return last
    return None


def _comprehension(text: str, tokens: Sequence[Token]) -> str:
    """The inside of `[x + 1 FOR x IN list IF x > 1]` as a call; "" for anything else."""
    words = [t.upper for t in tokens]
    if "FOR" not in words or words[words.index("FOR") + 2 : words.index("FOR") + 3] != ["IN"]:
        return ""
    at = words.index("FOR")
    given = words.index("IF") if "IF" in words else len(words)
    if not 0 < at < at + 3 < given:
        return ""
    name = tokens[at + 1].text
    value, source = (text[p[0].start : p[-1].end] for p in (tokens[:at], tokens[at + 3 : given]))
    if given + 1 < len(tokens):
        source = f"filter({source}, {name} -> {text[tokens[given + 1].start : tokens[-1].end]})"
    return f"transform({source}, {name} -> {value})"


def _structs(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """{'a': 1} and MAP {'a': 1} of DuckDB."""
    for at in range(1, len(tokens) - 1):
        last = _closing(tokens, at) if tokens[at].text == "{" else None
        if last is None or tokens[at - 1].text == "$":
            continue
        items = list(items_of(list(tokens[at + 1 : last])))
        if not items or not all(len(i) > 2 and i[1].text == ":" for i in items):
            continue
        named = tokens[at - 1].upper == "MAP"
        yield tokens[at - 1 if named else at].start, tokens[at].end, "map(" if named else "named_struct("
        for item in items:
            key = item[0].text if named or item[0].kind == "string" else quote(unquote(item[0]))
            yield item[0].start, item[1].end, f"{key},"
        yield tokens[last].start, tokens[last].end, ")"


_TAKE_NAMES = {"STRUCT": "named_struct", "STRUCT_PACK": "named_struct", "MAP": "map"}


def _named_arguments(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """STRUCT(a := 1) and MAP('a' := 1) of ksqlDB, struct_pack(a := 1) of DuckDB."""
    for at in range(len(tokens) - 3):
        function = _TAKE_NAMES.get(tokens[at].upper)
        if function is None or tokens[at + 1].text != "(" or tokens[at + 3].text != ":=":
            continue
        items = list(items_of(list(tokens[at + 2 : closing(tokens, at + 1)])))
        if all(len(i) > 2 and i[1].text == ":=" for i in items):
            yield tokens[at].start, tokens[at].end, function
            for item in items:
                key = item[0].text if item[0].kind == "string" or function == "map" else None
                yield item[0].start, item[1].end, f"{key or quote(unquote(item[0]))},"


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


def _any_of_list(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """a = ANY (ARRAY[1, 2]), a <> ALL ('{1,2}') and a ILIKE ANY (ARRAY['x']) of PostgreSQL."""
    for at in range(2, len(tokens) - 3):
        word, before = tokens[at].upper, tokens[at - 1]
        if word not in ("ANY", "SOME", "ALL") or tokens[at + 1].text != "(":
            continue
        close = closing(tokens, at + 1)
        inside = tokens[at + 2 : close]
        negated = before.text in ("<>", "!=")
        compared = (before.text == "=" and word != "ALL") or (negated and word == "ALL")
        values = _values_of_list(text, inside)
        if close == len(tokens) or not values or not (compared or before.upper in ("LIKE", "ILIKE")):
            continue
        start = before.start if compared else tokens[at].start
        own = f"{'NOT IN' if negated else 'IN'} ({values})" if compared else f"{word} ({values})"
        yield start, tokens[close].end, own


def _values_of_list(text: str, tokens: Sequence[Token]) -> str:
    """The values of ARRAY[a, b], array(a, b) or '{a,b}', with commas; "" for anything else."""
    words = [t.upper for t in tokens]
    if len(tokens) > 3 and words[0] == "ARRAY" and (words[1], words[-1]) in (("[", "]"), ("(", ")")):
        return text[tokens[2].start : tokens[-2].end]
    if len(tokens) == 1 and tokens[0].kind == "string":
        listed = unquote(tokens[0])
        if listed[:1] == "{" and listed[-1:] == "}" and '"' not in listed:
            values = [v.strip() for v in listed[1:-1].split(",")]
            return ", ".join(v if re.fullmatch(r"-?\d+(\.\d+)?", v) else quote(v) for v in values)
    return ""


_UNITS = {
    "us": "microsecond", "ms": "millisecond", "msec": "millisecond", "s": "second", "sec": "second",
    "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "mon": "month",
    "y": "year", "yr": "year",
}  # fmt: skip
"""Units of PostgreSQL's intervals that Spark does not know, without an s at their end."""
_SPARKS_UNITS = frozenset("second minute hour day week month year millisecond microsecond".split())
_AMOUNT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"\d+:\d\d(:\d\d(\.\d+)?)?")


def _intervals(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """'5 min'::interval, interval '5 min' and now() - '5 minutes' of PostgreSQL."""
    for at in range(len(tokens) - 1):
        token = tokens[at]
        behind = [t.upper for t in tokens[at + 1 : at + 3]]
        cast = token.kind == "string" and behind == ["::", "INTERVAL"]
        written = token.upper == "INTERVAL" and tokens[at + 1].kind == "string"
        signed = token.text in ("+", "-") and tokens[at + 1].kind == "string" and at > 0
        signed = signed and behind[1:] != ["::"] and not mixed_interval(unquote(tokens[at + 1]))
        if signed and _is_interval(unquote(tokens[at + 1])):
            yield tokens[at + 1].start, tokens[at + 1].start, "INTERVAL "
        if not cast and not written:
            continue
        value = unquote(token if cast else tokens[at + 1])
        own = "" if mixed_interval(value) else _interval(value)
        clock = bool(_CLOCK.fullmatch(own))
        if own and (cast or (own != value and not clock)):
            unit = " HOUR TO SECOND" if clock else ""
            yield token.start, tokens[at + 2 if cast else at + 1].end, f"INTERVAL {quote(own)}{unit}"


def _is_interval(value: str) -> bool:
    """Whether a text beside a sign is an interval, with units that Spark has."""
    units = [m[2].casefold().removesuffix("s") for m in _AMOUNT.finditer(value)]
    return bool(units) and not _AMOUNT.sub("", value).strip() and set(units) <= _SPARKS_UNITS


def _interval(value: str) -> str:
    """The text of an interval with Spark's units; "" for one that Spark does not have."""
    if _CLOCK.fullmatch(value.strip()):
        return value.strip() if value.count(":") == 2 else f"{value.strip()}:00"
    if not value.strip() or _AMOUNT.sub("", value).strip():
        return ""

    def own(match: re.Match[str]) -> str:
        unit = match[2].casefold()
        short = unit if unit in _UNITS else unit.removesuffix("s")
        return f"{match[1]} {_UNITS[short]}s" if short in _UNITS else match[0]

    return _AMOUNT.sub(own, value)


_DIGITS = re.compile(r"\d+(_\d+)+")


def _signs(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """7 // 2, 2 ** 3, 1_000 and count() of DuckDB; E'a' of PostgreSQL, whose escapes any text has here."""
    for at in range(1, len(tokens) - 2):
        before, sign, behind, last = tokens[at - 1 : at + 3]
        power = sign.text == behind.text == "*" and sign.end == behind.start
        if power and {before.kind, last.kind} <= {"number", "word"}:
            yield before.start, last.end, f"power({before.text}, {last.text})"
        if before.upper == "COUNT" and sign.text == "(" and behind.text == ")":
            yield sign.start, behind.end, "(*)"
    for token in tokens:
        if _DIGITS.fullmatch(token.text):
            yield token.start, token.end, token.text.replace("_", "")
    for token, after in zip(tokens, tokens[1:], strict=False):
        if token.text == after.text == "/" and token.end == after.start:
            blanks = [" " * bool(text[n : n + 1].strip()) for n in (token.start - 1, after.end)]
            yield token.start, after.end, "div".join(blanks)
        if token.upper == "E" and after.kind == "string" and token.end == after.start:
            yield token.start, token.end, ""


def _all_columns(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """SELECT COLUMNS(*) of DuckDB; COLUMNS('a.*') is refused by other_words."""
    for at in range(1, len(tokens) - 3):
        item = tokens[at - 1].upper in ("SELECT", ",") and tokens[at].upper == "COLUMNS"
        if item and [t.text for t in tokens[at + 1 : at + 4]] == ["(", "*", ")"]:
            yield tokens[at].start, tokens[at + 3].end, "*"


_TAKE_PATHS = frozenset(("COPY", "GIVEN", "SHOW", "TEST", "PREVIEW"))
"""First words of statements in which FROM takes a path or an address."""
_KINDS = frozenset(("TABLE", "STREAM", "VIEW", "SINK", "QUERY"))
_NAMED = _KINDS | frozenset("AS FROM JOIN INTO DESCRIBE DESC SUMMARIZE WATCH EXISTS .".split())


def _quoted_names(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """Names in double quotes where Spark reads no text: behind AS, FROM, JOIN and INTO, and beside a dot."""
    takes_path = tokens[0].upper in _TAKE_PATHS
    for at in range(1, len(tokens)):
        token = tokens[at]
        dotted = tokens[at + 1 : at + 2] and tokens[at + 1].text == "."
        named = tokens[at - 1].upper in (_KINDS if takes_path else _NAMED) or dotted
        path = tokens[at - 1].upper in ("FROM", "INTO") and ("." in token.text or "/" in token.text)
        of_function = tokens[at - 1].upper == "AS" and tokens[0].upper == "CREATE" and at + 1 < len(tokens)
        of_function = of_function and tokens[at + 1].upper == "LANGUAGE"
        quoted = token.kind == "string" and token.text[:1] == '"' and len(token.text) > 2
        if named and quoted and not path and not of_function:
            yield token.start, token.end, quote_name(unquote(token))


_LIKES = {"~": "RLIKE", "~*": "RLIKE", "!~": "NOT RLIKE", "!~*": "NOT RLIKE"}


def _likes(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """name ~ 'pattern' of PostgreSQL, and ~*, which ignores case."""
    for at in range(1, len(tokens) - 1):
        pattern = next((n for n in range(at + 1, min(at + 4, len(tokens))) if tokens[n].kind == "string"), at)
        sign = text[tokens[at].start : tokens[pattern].start].strip()
        before = tokens[at - 1]
        if sign in _LIKES and (before.kind in ("word", "quoted", "string") or before.text in (")", "]")):
            written = tokens[pattern].text
            own = f"{written[0]}(?i){written[1:]}" if sign.endswith("*") else written
            yield tokens[at].start, tokens[pattern].end, f"{_LIKES[sign]} {own}"


def _similar(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """name SIMILAR TO 'a%', which is about the whole text: a pattern of PostgreSQL, with % and _ as LIKE has
    them, or one of DuckDB, which is a regular expression.
    """
    for at in range(1, len(tokens) - 2):
        pattern = tokens[at + 2]
        if tokens[at].upper == "SIMILAR" and tokens[at + 1].upper == "TO" and pattern.kind == "string":
            written = pattern.text[1:-1]
            whole = written if _REGULAR.search(written) else _STANDARD.sub(_of_standard, written)
            yield tokens[at].start, pattern.end, f"RLIKE '^(?:{whole})$'"


_REGULAR = re.compile(r"\\|\.[*+?{]|^\^|\$$")
"""What only the patterns of DuckDB have."""
_STANDARD = re.compile(r"\[[^]]*\]|[%_.$]")


def _of_standard(match: re.Match[str]) -> str:
    known = {"%": ".*", "_": "."}
    return known.get(match[0], match[0] if match[0].startswith("[") else f"[{match[0]}]")


def _matches(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """regexp_match(text, pattern)[n] of PostgreSQL, which counts from 1 as regexp_extract does."""
    for at in range(len(tokens) - 2):
        if tokens[at].upper != "REGEXP_MATCH" or tokens[at + 1].text != "(":
            continue
        close = first_behind = closing(tokens, at + 1)
        opened = at > 0 and tokens[at - 1].text == "(" and tokens[close + 1 : close + 2]
        if opened and tokens[close + 1].text == ")":
            first_behind += 1
        index = tokens[first_behind + 1 : first_behind + 4]
        if [t.text for t in index[::2]] == ["[", "]"] and index[1].kind == "number":
            start = tokens[at - 1].start if first_behind > close else tokens[at].start
            yield start, tokens[at].end, "regexp_extract"
            yield tokens[close].start, index[2].end, f", {index[1].text})"


def _relations(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """FROM 'f.csv' and FROM read_csv('f.csv') of DuckDB, and UNNEST(t.list) AS e."""
    for at in range(1, len(tokens) if tokens[0].upper not in _TAKE_PATHS else 0):
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
        first, *further = items_of(list(tokens[at + 2 : close])) or [[]]
        paths = [t for t in first if t.text not in ("[", "]", ",")]
        for item in further:
            key = _OF_READERS.get(item[0].text.casefold(), "")
            if not key or len(item) != 3 or item[1].text != "=":
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


def _slices(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """list[2:3] of PostgreSQL and DuckDB, with both numbers."""
    for at in range(1, len(tokens) - 4):
        signs = [tokens[at].text, tokens[at + 2].text, tokens[at + 4].text] == ["[", ":", "]"]
        first, last = tokens[at + 1], tokens[at + 3]
        start = operand(tokens, at) if signs else at
        if start < at and first.kind == last.kind == "number" and tokens[at - 1].end == tokens[at].start:
            count = int(last.text) - int(first.text) + 1
            own = f"slice({text[tokens[start].start : tokens[at - 1].end]}, {first.text}, {max(count, 0)})"
            yield tokens[start].start, tokens[at + 4].end, own


def _words_alone(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """AS MATERIALIZED, FOR UPDATE and LOCALTIMESTAMP of PostgreSQL, FILTER without WHERE, lambda x: x + 1 and
    COLLATE NOCASE of DuckDB.
    """
    for at in range(1, len(tokens)):
        word, before = tokens[at].upper, tokens[at - 1].upper
        behind = [t.upper for t in tokens[at + 1 : at + 3]]
        if word == "MATERIALIZED" and before in ("AS", "NOT") and behind[:1] == ["("]:
            start = at - 1 if before == "NOT" else at
            yield tokens[start].start, tokens[at + 1].start, ""
        if word == "FOR" and behind in (["UPDATE"], ["SHARE"]):
            yield tokens[at - 1].end, tokens[at + 1].end, ""
        if word == "LOCALTIMESTAMP" and before != "." and behind[:1] != ["("] and tokens[0].upper != "CREATE":
            yield tokens[at].start, tokens[at].end, "localtimestamp()"
        if word == "FILTER" and before == ")" and behind[:1] == ["("] and behind[1:] != ["WHERE"]:
            yield tokens[at + 2].start, tokens[at + 2].start, "WHERE "
        if word == "NOCASE" and before == "COLLATE":
            yield tokens[at].start, tokens[at].end, "UTF8_LCASE"
        if word == "LAMBDA" and before in (",", "("):
            colon = next((n for n in range(at, len(tokens)) if tokens[n].text == ":"), at)
            names = text[tokens[at].end : tokens[colon].start].strip()
            if colon > at + 1:
                yield tokens[at].start, tokens[colon].end, f"({names}) ->" if "," in names else f"{names} ->"


_ZONED = {"WITH": "TIMESTAMP", "WITHOUT": "TIMESTAMP_NTZ"}


def _casts(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """a::text and CAST(a AS text)."""
    for at in range(1, len(tokens)):
        name, before = tokens[at], tokens[at - 1]
        cast = before.text == "::" or (
            before.upper == "AS" and tokens[at + 1 : at + 2] and tokens[at + 1].text == ")"
        )
        if cast and name.kind == "word" and name.upper in OTHER_TYPES and _in_query(tokens, at):
            yield name.start, name.end, OTHER_TYPES[name.upper]
        unsized = name.upper in ("VARCHAR", "CHAR") and not (
            tokens[at + 1 : at + 2] and tokens[at + 1].text == "("
        )
        if cast and unsized and _in_query(tokens, at):
            yield name.start, name.end, "STRING"
        zoned = [t.upper for t in tokens[at : at + 4]]
        if (
            zoned[:1] == ["TIMESTAMP"]
            and zoned[1:2] in (["WITH"], ["WITHOUT"])
            and zoned[2:] == ["TIME", "ZONE"]
        ):
            own = "TIMESTAMP" if zoned[1] == "WITH" else "TIMESTAMP_NTZ"
            yield name.start, tokens[at + 3].end, own
        precise = [t.text for t in tokens[at + 1 : at + 4]]
        if _is_cast_to_time(tokens, at) and precise[::2] == ["(", ")"] and precise[1] in "0123456":
            yield name.start, tokens[at + 3].end, "TIMESTAMP"


def _is_cast_to_time(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is the type TIMESTAMP of a cast, which may have a precision there."""
    if tokens[at].upper not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return False
    return tokens[at - 1].text == "::" or (tokens[at - 1].upper == "AS" and _in_query(tokens, at))


def _in_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name before a parenthesis is a type: of a CAST that is open there."""
    if tokens[at - 1].text == "::":
        return True
    depth = 0
    for n in range(at - 1, 0, -1):
        depth += (tokens[n].text == ")") - (tokens[n].text == "(")
        if depth < 0:
            return tokens[n - 1].upper in ("CAST", "TRY_CAST")
    return False


_EDITS: tuple[Callable[[str, Sequence[Token]], Iterator[Edit]], ...] = (
    _arrays,
    _structs,
    _named_arguments,
    _series,
    _samples,
    _any_of_list,
    _intervals,
    _signs,
    _all_columns,
    _quoted_names,
    _likes,
    _similar,
    _matches,
    _casts,
    _relations,
    _slices,
    _words_alone,
)
