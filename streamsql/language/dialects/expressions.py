"""What sqlglot reads in another dialect, as Spark writes it: a table of the nodes that sqlglot would write
otherwise than Spark means them. `fixed` applies the table to a tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from streamsql.language import sqlglot_nodes as exp
from streamsql.language.dialects.intervals import interval
from streamsql.language.file_formats import extension, read_by
from streamsql.language.tokens import quote


class Untranslatable(Exception):
    """Spark has no form of it that could be told from the text."""


def sql_of(node: Any) -> str:
    """A tree as Spark writes it."""
    text: str = node.sql("spark", normalize_functions=False)
    return text


def fixed(tree: Any, call: Callable[[Any], str | None]) -> Any:
    """The tree with the nodes of the table replaced, those inside of others first. call: the same for a call
    of a function that sqlglot does not know.
    """
    table = {**_table(), "Anonymous": call}
    for node in reversed(list(tree.walk())):
        for kind in type(node).__mro__:
            form = table.get(kind.__name__)
            if form is not None:
                text = form(node)
                if text is not None and node.parent is not None:
                    node.replace(_written(text))
                break
    return tree


def _written(text: str) -> Any:
    return exp.Var(this=text)


def _call(form: str) -> Callable[[Any], str]:
    """A form with {0} and {1} for the operands of a node."""
    return lambda node: form.format(sql_of(node.this), sql_of(node.expression))


def _comprehension(node: Any) -> str | None:
    inner = node.expressions[0] if len(node.expressions) == 1 else None
    if type(inner).__name__ == "Select":
        return f"(SELECT collect_list(value) RESPECT NULLS FROM ({sql_of(inner)}) AS list(value))"
    if type(inner).__name__ != "Comprehension":
        return None
    assert inner is not None
    name, source = sql_of(inner.expression), sql_of(inner.args["iterator"])
    if inner.args.get("condition") is not None:
        source = f"filter({source}, {name} -> {sql_of(inner.args['condition'])})"
    return f"transform({source}, {name} -> {sql_of(inner.this)})"


def _map(node: Any) -> str:
    """MAP {'a': 1}, and an element of it, which sqlglot reads as one of the struct inside."""
    struct, element = node.this, ""
    if type(struct).__name__ == "Bracket":
        struct, element = struct.this, f"[{', '.join(map(sql_of, struct.expressions))}]"
    pairs = [part for item in struct.expressions for part in (item.this, item.expression)]
    return f"map({', '.join(map(sql_of, pairs))}){element}"


def _bracket(node: Any) -> str | None:
    """An element counted from the end, a slice, a group of regexp_match(…), a map of Flink."""
    whole, key = node.this.unnest(), node.expressions[0]
    if isinstance(whole, exp.Column) and whole.name.upper() == "MAP" and len(node.expressions) > 1:
        return f"map({', '.join(map(sql_of, node.expressions))})"
    value = sql_of(node.this)
    if isinstance(whole, exp.Anonymous) and whole.name.casefold() == "regexp_match":
        group = str(int(key.name) + 1) if isinstance(key, exp.Literal) and key.is_int else ""
        given = ", ".join(map(sql_of, whole.expressions[:2]))
        return f"regexp_extract({given}, {group})" if group else None
    if isinstance(key, exp.Neg) and isinstance(key.this, exp.Literal):
        number = int(key.this.name) - 1  # sqlglot has counted it from 0
        return f"element_at({value}, -{number})" if number else f"{value}[0]"
    if isinstance(key, exp.Slice):
        begin, last = key.this, key.expression
        first = sql_of(begin) if begin is not None else "1"
        if last is None:
            return f"slice({value}, {first}, size({value}))"
        if isinstance(last, exp.Neg):
            return f"slice({value}, {first}, size({value}) + {int(last.this.name) * -1} - {first} + 2)"
        return f"slice({value}, {first}, {_size(first, sql_of(last))})"
    return None


def _size(first: str, last: str) -> str:
    counted = first.lstrip("-").isdigit() and last.isdigit()
    return str(max(int(last) - int(first) + 1, 0)) if counted else f"{last} - {first} + 1"


def _star(node: Any) -> str | None:
    """* REPLACE (a + 1 AS a) and * RENAME (a AS b): the columns without these, and these."""
    replaced, renamed = node.args.get("replace") or [], node.args.get("rename") or []
    if not replaced and not renamed:
        return None
    left_out = [sql_of(item.args["alias"]) for item in replaced] + [sql_of(item.this) for item in renamed]
    left_out += [sql_of(item) for item in node.args.get("except_") or node.args.get("except") or []]
    qualifier = f"{sql_of(node.parent.args['table'])}." if isinstance(node.parent, exp.Column) else ""
    whole = f"{qualifier}* EXCEPT ({', '.join(left_out)}), {', '.join(map(sql_of, [*replaced, *renamed]))}"
    if not qualifier:
        return whole
    node.parent.replace(_written(whole))
    return None


def _numbered(node: Any) -> str:
    """#2 of DuckDB is the second column of FROM, whose name is not in the text."""
    raise Untranslatable


OF_READERS = {
    "delim": "sep", "sep": "sep", "header": "header", "quote": "quote", "escape": "escape",
    "comment": "comment", "encoding": "encoding", "nullstr": "nullValue",
}  # fmt: skip
"""Arguments of read_csv of DuckDB, and the options of Spark."""


def _table_of_files(node: Any) -> str | None:
    """FROM 'f.csv' and FROM read_csv('f.csv'): the relation of the files, and its alias."""
    source, options, names = node.this, dict[str, str](), list[str]()
    if isinstance(source, exp.Identifier) and source.quoted and not node.args.get("db"):
        names = [source.name]
    elif type(source).__name__ in ("ReadCSV", "ReadParquet") or (
        isinstance(source, exp.Anonymous) and source.name.casefold().startswith("read_")
    ):
        given = list[Any](source.expressions)
        is_named = isinstance(source.this, exp.Expr)
        first, *further = [source.this, *given] if is_named else given
        names = [p.name for p in (first.expressions if isinstance(first, exp.Array) else [first])]
        for option in further:
            key = OF_READERS.get(option.this.name.casefold()) if isinstance(option, exp.EQ) else None
            if key is None:
                raise Untranslatable
            options[key] = sql_of(option.expression)
    kind = extension(names[0]) if names else ""
    if not kind and any("/" in name for name in names):
        raise Untranslatable  # a folder: its format is not in its name
    if not kind:
        return None
    if kind in ("csv", "tsv"):
        tabs = {"sep": "'\\t'"} if kind == "tsv" else {}
        options = {"header": "true", "inferSchema": "true", **tabs, **options}
    listed = ", ".join(f"{key} = {value}" for key, value in options.items())
    files = [
        f"{read_by(names[0])}.`{name.replace('`', '``')}`" + (f" WITH ({listed})" if listed else "")
        for name in names
    ]
    own = files[0] if len(files) == 1 else f"({' UNION ALL '.join(f'SELECT * FROM {f}' for f in files)})"
    return own + _alias(node)


def _alias(node: Any) -> str:
    alias = node.args.get("alias")
    return f" AS {sql_of(alias)}" if alias is not None else ""


def _relation(node: Any) -> str | None:
    """A series or a list in FROM: its alias names its column, too."""
    source = node.this if type(node).__name__ == "Table" else node
    kind = type(source).__name__
    if kind in ("ExplodingGenerateSeries", "GenerateSeries"):
        first, last, step = (source.args.get(key) for key in ("start", "end", "step"))
        number = all(part.unnest().is_number for part in (first, last))
        if step is None and number:
            rows = f"range({sql_of(first)}, {sql_of(last)} + 1)"
        else:
            written = sql_of(step) if step is not None else "INTERVAL 1 DAY"
            written = f"INTERVAL {written}" if step is not None and step.is_string else written
            by = f", {written}" if step is not None else ""
            rows = f"explode(sequence({sql_of(first)}, {sql_of(last)}{by}))"
        return rows + _named_rows(node, "series", "generate_series")
    if kind == "Unnest" and type(node.parent).__name__ == "From":
        return f"{_exploded(node)}{_named_rows(node, 'unnest', 'unnest')}"
    if kind == "Anonymous" and source.name.upper() == "TABLE":
        return None
    return _table_of_files(node) if type(node).__name__ == "Table" else None


def _exploded(node: Any) -> str:
    """UNNEST(list), also WITH ORDINALITY, which counts from 1."""
    values = sql_of(node.expressions[0])
    if not node.args.get("offset"):
        return f"explode({values})"
    return f"inline(transform({values}, (value, place) -> struct(value, place + 1)))"


def _join(node: Any) -> str | None:
    """A join with UNNEST(list), as a view behind the relations: a function behind LATERAL does not see a
    column that has the name of a function, such as user.
    """
    if type(node.this).__name__ != "Unnest":
        return None
    alias = node.this.args.get("alias")
    columns = [*(alias.args.get("columns") or [])] if alias is not None else []
    offset = node.this.args.get("offset")
    if hasattr(offset, "sql"):
        columns.append(offset)
    named = [alias.this] if alias is not None and alias.this else columns[:1]
    name = sql_of(named[0]) if named else "unnest"
    outer = "OUTER " if node.side == "LEFT" else ""
    listed = ", ".join(map(sql_of, columns)) or name
    return f" LATERAL VIEW {outer}{_exploded(node.this)} {name} AS {listed}"


def _named_rows(node: Any, name: str, column: str) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return f" AS {name}({column})"
    columns = ", ".join(map(sql_of, alias.args.get("columns") or [])) or sql_of(alias.this)
    return f" AS {sql_of(alias.this) if alias.this else name}({columns})"


def _lateral(node: Any) -> str | None:
    """LATERAL TABLE(f(x)) of Flink."""
    call = node.this
    if type(call).__name__ == "Anonymous" and call.name.upper() == "TABLE":
        return f"LATERAL {sql_of(call.expressions[0])}{_alias(node)}"
    return None


_REGULAR = re.compile(r"\\|\.[*+?{]|^\^|\$$")
"""What only the patterns of DuckDB have."""
_STANDARD = re.compile(r"\[[^]]*\]|[%_.$]")


def _similar(node: Any) -> str | None:
    """SIMILAR TO compares the whole text with a pattern that has % and _, or with a regular expression."""
    if not node.expression.is_string:
        return None

    def own(match: re.Match[str]) -> str:
        patterns = {"%": ".*", "_": "."}
        return patterns.get(match[0], match[0] if match[0].startswith("[") else f"[{match[0]}]")

    written = node.expression.name
    whole = written if _REGULAR.search(written) else _STANDARD.sub(own, written)
    return f"{sql_of(node.this)} RLIKE {quote(f'^(?:{whole})$')}"


def _ignoring_case(node: Any) -> str | None:
    if not node.expression.is_string:
        return None
    return f"{sql_of(node.this)} RLIKE {quote('(?i)' + node.expression.name)}"


_MOST = {"GT": "max", "GTE": "max", "LT": "min", "LTE": "min"}
_SIGNS = {"GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}


def _compared(node: Any) -> str | None:
    """A comparison with ANY or ALL of a list, or of a query."""
    right = node.expression
    word = type(right).__name__.upper()
    if isinstance(right, exp.Anonymous) and right.name.upper() in ("ANY", "ALL", "SOME"):
        word, inner = right.name.upper(), right.expressions[0]
    elif isinstance(right, (exp.Any, exp.All)):
        inner = right.this.unnest()
    else:
        return None
    left, sign = sql_of(node.this), type(node).__name__
    is_any = word in ("ANY", "SOME")
    values = _values(inner)
    if isinstance(inner, exp.Subquery):
        inner = inner.this
    rows = f"FROM ({sql_of(inner)}) AS rows(value)" if isinstance(inner, exp.Select) else ""
    if sign in _MOST and rows:
        most = _MOST[sign] if not is_any else "min" if _MOST[sign] == "max" else "max"
        return f"{left} {_SIGNS[sign]} (SELECT {most}(value) {rows})"
    if sign in ("EQ", "NEQ") and (sign == "EQ") == is_any:
        inside = values or (sql_of(inner) if rows else "")
        return f"{left} {'IN' if is_any else 'NOT IN'} ({inside})" if inside else _contained(node, inner)
    return None


def _contained(node: Any, inner: Any) -> str | None:
    """= ANY of a list that is a column."""
    if type(node).__name__ != "EQ" or type(inner).__name__ != "Column":
        return None
    return f"array_contains({sql_of(inner)}, {sql_of(node.this)})"


def _values(node: Any) -> str:
    """The values of ARRAY[a, b] or '{a,b}', with commas; "" for anything else."""
    if type(node).__name__ == "Array":
        return ", ".join(map(sql_of, node.expressions))
    listed = list_of(node.name) if node.is_string else None
    return ", ".join(listed) if listed else ""


def _like(node: Any) -> str | None:
    """LIKE ANY (ARRAY['a%'])."""
    kind = type(node.expression).__name__
    values = _values(node.expression.this.unnest()) if kind in ("Any", "All") else ""
    word = "ILIKE" if type(node).__name__ == "ILike" else "LIKE"
    return f"{sql_of(node.this)} {word} {kind.upper()} ({values})" if values else None


_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^",{}]*))\s*(?:,|$)')
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def list_of(written: str) -> list[str] | None:
    """The elements of `{1,2}` of PostgreSQL as SQL; None for a text that is no list, or one of lists."""
    inside = written.strip()
    if inside[:1] != "{" or inside[-1:] != "}" or "{" in inside[1:] or ":" in inside:
        return None
    values, at, inside = list[tuple[str, bool]](), 0, inside[1:-1]
    while at < len(inside):
        match = _ELEMENT.match(inside, at)
        if match is None or match.end() == at:
            return None
        text = re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2].strip()
        values.append((text, match[1] is None))
        at = match.end()
    bare = all(plain and (_NUMBER.fullmatch(v) or v.upper() == "NULL") for v, plain in values)
    return [v if bare or (plain and v.upper() == "NULL") else quote(v) for v, plain in values]


_TYPES = {"INT128": "DECIMAL(38)", "UINT128": "DECIMAL(38)", "UBIGINT": "DECIMAL(20)", "UINT": "BIGINT",
          "USMALLINT": "INT", "UTINYINT": "SMALLINT", "JSON": "STRING", "JSONB": "STRING", "UUID": "STRING",
          "MONEY": "DECIMAL(19, 2)", "NAME": "STRING", "TIME": "STRING"}  # fmt: skip
"""Types of others, by their names in sqlglot, that Spark does not have."""


def _type(node: Any) -> str | None:
    return _TYPES.get(node.this.name if hasattr(node.this, "name") else "")


def _cast(node: Any) -> str | None:
    """'5 min'::interval and '{1,2}'::int[]."""
    kind = node.to.sql("spark")
    value = node.this
    if kind.startswith("INTERVAL") and value.is_string:
        return interval(value.name, signed=type(node.parent).__name__ in ("Add", "Sub"))
    listed = list_of(value.name) if kind.startswith("ARRAY<") and value.is_string else None
    return None if listed is None else f"CAST(array({', '.join(listed)}) AS {kind})"


_WINDOWS = frozenset(("window", "session_window"))


def _interval(node: Any) -> str | None:
    """INTERVAL '5 min', INTERVAL (3) DAYS."""
    unit, value = node.args.get("unit"), node.this.unnest() if node.this is not None else None
    if value is None or not (value.is_string or value.is_number):
        return None
    written = f"{value.name} {unit.name}" if unit is not None else value.name
    if type(node.parent).__name__ == "Anonymous" and node.parent.name.casefold() in _WINDOWS:
        return quote(written.lower())  # Spark takes a text there
    return interval(written, signed=type(node.parent).__name__ in ("Add", "Sub"))


def _with_interval(node: Any) -> str | None:
    """now() - '5 minutes'."""
    right = node.expression
    if not right.is_string or not re.search(r"[a-z]", right.name):
        return None
    own = interval(right.name, signed=True)
    return f"{sql_of(node.this)} {'+' if type(node).__name__ == 'Add' else '-'} {own}" if own else None


def _steps(node: Any) -> str | None:
    """json #>> '{a,b}', json -> 'a' ->> 'b' and, of ksqlDB, struct->field."""
    key, path = node.expression, "$"
    if type(key).__name__ == "Column" and type(node).__name__ == "JSONExtract" and not key.table:
        return f"{sql_of(node.this)}.{sql_of(key)}"
    if type(node).__name__.startswith("JSONB") and key.is_string:
        steps = [k.strip() for k in key.name.strip("{} ").split(",")]
        path += "".join(f"[{k}]" if k.isdecimal() else f".{k}" for k in steps)
        return f"get_json_object({sql_of(node.this)}, {quote(path)})"
    return None


def _contains_all(node: Any) -> str:
    """a @> b of lists, and of JSON with the keys of an object."""
    swapped = type(node).__name__ == "ArrayContainedBy"
    whole, part = (node.expression, node.this) if swapped else (node.this, node.expression)
    written = part.this if type(part).__name__ == "Cast" else part
    try:
        keys = json.loads(written.name) if written.is_string else None
    except ValueError:
        keys = None
    if isinstance(keys, dict) and keys:
        return " AND ".join(_key_is(sql_of(whole), key, value) for key, value in keys.items())
    return f"(size(array_except({_list(part)}, {_list(whole)})) = 0)"


def _key_is(json_text: str, key: str, value: object) -> str:
    written = value if isinstance(value, str) else json.dumps(value)
    return f"get_json_object({json_text}, {quote(f'$.{key}')}) = {quote(written)}"


def _list(node: Any) -> str:
    """A list, or '{1,2}' as one."""
    listed = list_of(node.name) if node.is_string else None
    return sql_of(node) if listed is None else f"array({', '.join(listed)})"


def _object(node: Any) -> str:
    pairs = [part for item in node.expressions for part in (item.this, item.expression)]
    return f"to_json(named_struct({', '.join(map(sql_of, pairs))}))"


def _is_json(node: Any) -> str | None:
    """IS JSON."""
    return (
        f"(try_parse_json({sql_of(node.this)}) IS NOT NULL)"
        if type(node.expression).__name__ == "JSON"
        else None
    )


def _is_list(node: Any) -> bool:
    return type(node).__name__ == "Array"


def _no_case(node: Any) -> str | None:
    return f"{sql_of(node.this)} COLLATE UTF8_LCASE" if node.expression.name.upper() == "NOCASE" else None


def _lambda(node: Any) -> str | None:
    """struct -> field, or json -> 'key', as an argument of a function that takes no lambda."""
    body, parent = node.this, node.parent
    name = parent.name if type(parent).__name__ == "Anonymous" else getattr(parent, "sql_name", str)()
    if name.casefold() in TAKE_LAMBDAS or len(node.expressions) != 1:
        return None
    value = sql_of(node.expressions[0])
    if type(body).__name__ == "Column":
        return f"{value}.{sql_of(body)}"
    further = ""
    if type(body).__name__ in ("JSONExtract", "JSONExtractScalar"):
        body, further = body.this, body.expression.sql("spark").strip("'").removeprefix("$")
    if not (body.is_string or body.is_number):
        return None
    step = f"[{body.name}]" if body.is_number else f".{body.name}"
    return f"get_json_object({value}, {quote('$' + step + further)})"


TAKE_LAMBDAS = frozenset(
    """aggregate array_sort exists filter array_filter forall map_filter map_zip_with reduce transform
    transform_keys transform_values zip_with""".split()
)
"""Functions that take a lambda, folded."""


def _table() -> dict[str, Callable[[Any], str | None]]:
    """The form of each node, by the name of its class."""
    return {
        "Array": _comprehension,
        "ToMap": _map,
        "Bracket": _bracket,
        "Star": _star,
        "Table": _relation,
        "Unnest": _relation,
        "Join": _join,
        "Lateral": _lateral,
        "SimilarTo": _similar,
        "RegexpILike": _ignoring_case,
        "EQ": _compared,
        "NEQ": _compared,
        "GT": _compared,
        "GTE": _compared,
        "LT": _compared,
        "LTE": _compared,
        "Like": _like,
        "ILike": _like,
        "Cast": _cast,
        "DataType": _type,
        "Interval": _interval,
        "Add": _with_interval,
        "Sub": _with_interval,
        "JSONExtract": _steps,
        "JSONBExtract": _steps,
        "JSONBExtractScalar": _steps,
        "ArrayContainsAll": _contains_all,
        "ArrayContainedBy": _contains_all,
        "ArrayOverlaps": lambda node: f"arrays_overlap({_list(node.this)}, {_list(node.expression)})",
        "JSONBContainsTopKey": _call("array_contains(json_object_keys({0}), {1})"),
        "JSONBContainsAnyTopKeys": _call("arrays_overlap(json_object_keys({0}), {1})"),
        "JSONBContainsAllTopKeys": _call("(size(array_except({1}, json_object_keys({0}))) = 0)"),
        "JSONObject": _object,
        "Is": _is_json,
        "Length": lambda node: f"array_size({sql_of(node.this)})" if _is_list(node.this) else None,
        "Collate": _no_case,
        "Lambda": _lambda,
        "AtTimeZone": lambda node: f"convert_timezone({sql_of(node.args['zone'])}, {sql_of(node.this)})",
        "Count": lambda node: "count(*)" if node.this is None and not node.expressions else None,
        "PositionalColumn": _numbered,
        "Localtimestamp": lambda node: "localtimestamp()",
        "StartsWith": _call("startswith({0}, {1})"),
    }
