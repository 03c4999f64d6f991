"""Expressions of other consoles in Spark's words: lists, structs and samples of DuckDB, ~ and intervals of
PostgreSQL, arguments of ksqlDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from streamsql.language.operands import operand
from streamsql.language.other_edits import Edit
from streamsql.language.other_intervals import interval_edits
from streamsql.language.other_operators import operator_edits
from streamsql.language.other_relations import TAKE_PATHS, relation_edits
from streamsql.language.other_values import value_edits
from streamsql.language.prefix_aliases import prefix_aliases
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.token_groups import closing, items_of, select_lists
from streamsql.language.tokens import Token, quote, quote_name, unquote


def expression_edits(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """All edits of the expressions of a statement, in any order."""
    for edits in (*_EDITS, interval_edits, operator_edits, relation_edits, value_edits, prefix_aliases):
        yield from edits(text, tokens)


def _arrays(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """[1, 2] of DuckDB and ARRAY[1, 2] of PostgreSQL; a[1] is an element."""
    for at in range(1, len(tokens) - 1):
        before = tokens[at - 1]
        beside = before.end == tokens[at].start
        named = before.upper == "ARRAY" and beside
        element = beside and (before.kind in ("word", "quoted", "string") or before.text in (")", "]", "}"))
        if tokens[at].text != "[" or (element and not named) or _is_variant_path(tokens, at):
            continue
        last = closing(tokens, at)
        if last == len(tokens):
            continue
        start = (before if named else tokens[at]).start
        comprehension = _comprehension(text, tokens[at + 1 : last])
        if comprehension:
            yield start, tokens[last].end, comprehension
        else:
            yield start, tokens[at].end, "array("
            yield tokens[last].start, tokens[last].end, ")"


def _is_variant_path(tokens: Sequence[Token], at: int) -> bool:
    """Whether a bracket is that of `v:[0]`, a value of a VARIANT; `{v:[0]}` is a struct of DuckDB."""
    sides = tokens[max(at - 2, 0) : at + 1]
    beside = [t.text for t in sides[1:]] == [":", "["] and sides[0].kind in ("word", "quoted")
    opened = sum((t.text == "{") - (t.text == "}") for t in tokens[:at])
    return beside and sides[0].end == sides[1].start and sides[1].end == sides[2].start and not opened


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
        last = closing(tokens, at) if tokens[at].text == "{" else len(tokens)
        if last == len(tokens) or tokens[at - 1].text == "$":
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


def _places(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """ORDER BY #2 of DuckDB, a place of the SELECT list; elsewhere column_patterns.py refuses #2."""
    for at in range(2, len(tokens) - 1):
        beside = tokens[at].text == "#" and tokens[at].end == tokens[at + 1].start
        if beside and tokens[at + 1].kind == "number" and tokens[at - 1].upper in ("BY", ","):
            clause = next((n for n in range(at - 1, 0, -1) if tokens[n].upper in ("BY", "SELECT", "FROM")), 0)
            if [t.upper for t in tokens[clause - 1 : clause + 1]] == ["ORDER", "BY"]:
                yield tokens[at].start, tokens[at].end, ""


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
    """SELECT COLUMNS(*), COLUMNS(t.*), COLUMNS(* EXCLUDE (a)) and COLUMNS(['a', 'b']) of DuckDB; others are
    refused by column_patterns.py.
    """
    for items in select_lists(tokens):
        for item in items:
            words = [t.text for t in item]
            if item[0].upper != "COLUMNS" or words[1:2] != ["("] or closing(item, 1) != len(item) - 1:
                continue
            names = [t for t in item if t.kind == "string"]
            if words[2] == "[" and words[-2] == "]" and len(names) == (len(item) - 4) // 2:
                yield item[0].start, item[-1].end, ", ".join(quote_name(unquote(t)) for t in names)
            elif "*" in words[2:5] and "->" not in words:
                yield item[0].start, item[1].end, ""
                yield item[-1].start, item[-1].end, ""


_KINDS = frozenset(("TABLE", "STREAM", "VIEW", "SINK", "QUERY"))
_NAMED = _KINDS | frozenset("AS FROM JOIN INTO DESCRIBE DESC SUMMARIZE WATCH EXISTS .".split())


def _quoted_names(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """Names in double quotes where Spark reads no text: behind AS, FROM, JOIN and INTO, and beside a dot."""
    takes_path = tokens[0].upper in TAKE_PATHS
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


def _slices(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """list[2:3], list[:3] and list[2:] of PostgreSQL and DuckDB, and list[-1] of DuckDB."""
    for at in range(1, len(tokens) - 2):
        close = closing(tokens, at) if tokens[at].text == "[" else len(tokens)
        if close == len(tokens) or tokens[at - 1].end < tokens[at].start:
            continue
        colon = next((n for n in range(at, close) if tokens[n].text == ":"), close)
        first, last = _bound(tokens[at + 1 : colon]), _bound(tokens[colon + 1 : close])
        start = operand(tokens, at)
        if first is None or start == at or (last is None and colon < close):
            continue
        whole = text[tokens[start].start : tokens[at - 1].end]
        if colon == close:
            own = f"element_at({whole}, {first})" if first.startswith("-") else ""
        elif last and (first or "1").lstrip("-").isdigit() and last.lstrip("-").isdigit():
            begin = int(first or "1")
            alike = (begin < 0) == (int(last) < 0)
            size = max(int(last) - begin + 1, 0) if alike else f"size({whole}) + {int(last) - begin + 2}"
            own = f"slice({whole}, {begin}, {size})"
        else:
            size = f"{last} - {first or 1} + 1" if last else f"size({whole})"
            own = f"slice({whole}, {first or 1}, {size})"
        if own:
            yield tokens[start].start, tokens[close].end, own


def _bound(tokens: Sequence[Token]) -> str | None:
    """A number or a name before or behind the colon of a slice, "" for nothing; None for anything else."""
    if not tokens:
        return ""
    signed = tokens[1:] if tokens[0].text == "-" else tokens
    if len(signed) != 1 or signed[0].kind not in ("number", "word"):
        return None
    return "".join(t.text for t in tokens)


def _words_alone(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """AS MATERIALIZED, FOR UPDATE, LOCALTIMESTAMP and CURRENT_SCHEMA of PostgreSQL, FILTER without WHERE,
    lambda x: x + 1 and COLLATE NOCASE of DuckDB.
    """
    for at in range(1, len(tokens)):
        word, before = tokens[at].upper, tokens[at - 1].upper
        behind = [t.upper for t in tokens[at + 1 : at + 3]]
        if word == "MATERIALIZED" and before in ("AS", "NOT") and behind[:1] == ["("]:
            start = at - 1 if before == "NOT" else at
            yield tokens[start].start, tokens[at + 1].start, ""
        locks = word == "FOR" and behind[:1] in (["UPDATE"], ["SHARE"])
        if locks and [t.upper for t in tokens[at + 2 :]] in ([], ["NOWAIT"], ["SKIP", "LOCKED"]):
            yield tokens[at - 1].end, tokens[-1].end, ""
        alone = before != "." and behind[:1] not in (["("], ["."]) and tokens[0].upper != "CREATE"
        if alone and word in ("LOCALTIMESTAMP", "CURRENT_SCHEMA", "CURRENT_CATALOG"):
            yield tokens[at].start, tokens[at].end, f"{word.lower()}()"
        if word == "FILTER" and before == ")" and behind[:1] == ["("] and behind[1:] not in ([], ["WHERE"]):
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
    _any_of_list,
    _signs,
    _all_columns,
    _places,
    _quoted_names,
    _likes,
    _similar,
    _matches,
    _casts,
    _slices,
    _words_alone,
)
