"""CREATE TABLE … WITH ('connector' = …) of Flink and CREATE STREAM … WITH (kafka_topic = …) of ksqlDB, as the
CREATE STREAM or CREATE SINK that does the same. What each option is here stands in the tables of HELP
SWITCHING FROM flink and ksqldb.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

from streamsql.errors import SyntaxFault, did_you_mean
from streamsql.language.dialects.statements import PREFIX
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.token_groups import closing, items_of
from streamsql.language.tokens import Token, quote, quote_name, unquote
from streamsql.language.topics import topics
from streamsql.secrets import is_secret_key

_OPTION = re.compile(
    r"^\| `'(?P<key>[^']+)'(?: = '(?P<value>[^']*)')?` \| `(?P<form>[^`]+)` \|$", re.MULTILINE
)
_KINDS = frozenset(("TABLE", "STREAM", "SOURCE", "SINK"))
_BEFORE_NAME = _KINDS | {"OR", "REPLACE", "TEMPORARY", "IF", "NOT", "EXISTS"}
_TYPES = {**OTHER_TYPES, "VARCHAR": "STRING", "CHARACTER": "STRING", "TIMESTAMP_LTZ": "TIMESTAMP"}
_FIELDS = frozenset(("METADATA", "HEADER", "HEADERS"))
"""Words of a column that is a field of the message."""
_NO_KEY = frozenset(("NOT", "ENFORCED"))
_SINKS = frozenset(("console", "noop", "jdbc"))
_MESSAGES = frozenset(("kafka", "socket"))


@dataclass
class _Definition:
    """The parts of a statement: columns as (name, type), options as written, the time and its delay; query:
    that of CREATE … AS, or of a sink; kind: what it creates; key: the columns of PRIMARY KEY; like: the table
    that it takes its columns from; message_fields: columns that are fields of the message, and these;
    message_key: the KEY column of ksqlDB.
    """

    name: str
    columns: list[tuple[str, str]] = field(default_factory=list)
    computed: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    time: str = ""
    delay: str = ""
    query: str = ""
    kind: str = ""
    key: tuple[str, ...] = ()
    like: str = ""
    message_fields: dict[str, str] = field(default_factory=dict)
    message_key: str = ""


def own_definition(text: str, tokens: Sequence[Token]) -> tuple[str, str]:
    """The console's own statement for a CREATE of another console, and a remark; "" for other statements."""
    if tokens[0].upper != "CREATE":
        return "", ""
    parts = _parts(text, list(tokens))
    if parts is None:
        return _with_own_watermark(text, list(tokens)), ""
    remarks = []
    if parts.message_fields:
        remarks.append(
            "_key, _topic, _partition, _offset, _timestamp and _headers are columns of each message"
        )
    if parts.message_key and "kafka_topic" in parts.options:
        remarks.append(f"{parts.message_key} is the key of a message, _key, and not in its value")
    if parts.like:
        remarks.append(f"SHOW CREATE STREAM {quote_name(parts.like)}; prints its columns")
    own = _own(parts)
    if parts.key and " KEY (" not in own and not parts.message_key:
        remarks.append(f"a stream has no key: ({', '.join(parts.key)}) is left out")
    left_out = [name for name, field in parts.message_fields.items() if not field]
    left_out += [key for key, value in parts.options.items() if not _is_taken(key, value)]
    if left_out:
        remarks.append(f"left out, for there is nothing like it here: {', '.join(left_out)}")
    return own, "; ".join(remarks)


_TAKEN = frozenset(("timestamp_format", "kafka_topic", "connector"))
"""Options that are read elsewhere than in the tables of options."""


def _is_taken(key: str, value: str) -> bool:
    """Whether an option is in the proposal."""
    generated = _FIELD.fullmatch(key)
    return bool(_form(key, value) or key in _TAKEN or generated and generated[2] != "end")


def _own(parts: _Definition) -> str:
    name = quote_name(parts.name)
    sink = parts.kind == "SINK" or "connector" in parts.options
    if parts.query and parts.kind == "TABLE" and not sink:
        return f"CREATE LIVE TABLE {name} AS {parts.query}"
    if parts.query and sink:
        parts.kind = "SINK"
        return f"{_statement(parts)}; INSERT INTO {name} {parts.query}"
    if parts.query:  # a stream of ksqlDB is written to a topic
        parts.options.setdefault("kafka_topic", parts.name)
        topic = quote_name(f"{parts.name}_topic")
        written = _statement(replace(parts, name=f"{parts.name}_topic", kind="SINK"))
        return f"CREATE STREAM {name} AS {parts.query}; {written}; INSERT INTO {topic} SELECT * FROM {name}"
    fields = {n: value for n, value in parts.message_fields.items() if value}
    computed = {n: value for n, value in (fields | parts.computed).items() if n != parts.time}
    if computed and not _is_sink(parts):
        source = f"{parts.name}_source"
        columns = ", ".join(f"{value} AS {quote_name(n)}" for n, value in computed.items())
        read = f"CREATE STREAM {name} AS SELECT *, {columns} FROM {quote_name(source)}"
        return f"{_statement(replace(parts, name=source))}; {read}"
    return _statement(parts)


def _is_sink(parts: _Definition) -> bool:
    form = _form("connector", parts.options.get("connector", ""))
    return parts.kind == "SINK" or form.removeprefix("USING ") in _SINKS


def _with_own_watermark(text: str, tokens: list[Token]) -> str:
    """A CREATE STREAM with its WATERMARK FOR, among its columns or behind them, as WITH WATERMARK; "" for any
    other statement.
    """
    words = [t.upper for t in tokens]
    if words[:1] != ["CREATE"] or "STREAM" not in words[1:4] or "WATERMARK" not in words:
        return ""
    opening = next((n for n, t in enumerate(tokens) if t.text == "("), len(tokens))
    close = closing(tokens, opening)
    if close == len(tokens):
        return ""
    parts = _Definition("")
    for item in items_of(tokens[opening + 1 : close], of_types=True):
        _column(parts, text, item)
    behind, before = text[tokens[close].end :].strip(), text[: tokens[opening].start]
    if not parts.time:
        first = next((n for n in range(close, len(tokens)) if words[n : n + 2] == ["WATERMARK", "FOR"]), None)
        if first is None:
            return ""
        last = next((n for n in range(first, len(tokens)) if words[n] in _CLAUSES), len(tokens))
        _column(parts, text, tokens[first:last])
        end = tokens[first - (words[first - 1] == "WITH")].start
        further = text[tokens[last].start :] if last < len(tokens) else ""
        behind = f"{text[tokens[close].end : end].strip()} {further}".strip()
    if not parts.time:
        return ""
    columns = ", ".join(f"{name} {kind}" for name, kind in parts.columns)
    watermark = f"WITH WATERMARK {_event_time(parts)} DELAY OF {parts.delay}"
    return f"{before}({columns}) {behind or 'USING …'} {watermark}"


_CLAUSES = frozenset(("USING", "FORMAT", "KEY", "OPTIONS", "COMMENT", "ON"))
"""Words that begin a clause of CREATE STREAM behind its columns."""


def _parts(text: str, tokens: list[Token]) -> _Definition | None:
    words = [t.upper for t in tokens]
    if words[:1] != ["CREATE"] or _KINDS.isdisjoint(words[1:6]) or "WITH" not in words:
        return None
    at = next((n for n in range(1, len(tokens)) if words[n] not in _BEFORE_NAME), len(tokens))
    if at >= len(tokens) or tokens[at].kind not in ("word", "quoted"):
        return None
    kind = next(w for w in words[1:at] if w in _KINDS) if not _KINDS.isdisjoint(words[1:at]) else ""
    if words[at] == "CONNECTOR" and tokens[at + 1 : at + 2] and tokens[at + 1].kind in ("word", "quoted"):
        return None  # a connector of Kafka Connect
    parts = _Definition(unquote(tokens[at]), kind=kind)
    at += 1
    if at < len(tokens) and tokens[at].text == "(":
        close = closing(tokens, at)
        for item in items_of(tokens[at + 1 : close], of_types=True):
            _column(parts, text, item)
        at = close + 1
    own = {"USING", "OPTIONS"} if kind == "SINK" or "INCLUDE" in words[at:] else {"USING", "AS"}
    level = next((n for n in range(at, len(tokens) - 1) if words[n] == "WITH"), len(tokens))
    if level == len(tokens) or tokens[level + 1].text != "(" or not own.isdisjoint(words[at:level]):
        return None  # a statement of Spark, or of the console
    _included(parts, tokens[at:level])
    close = closing(tokens, level + 1)
    for item in items_of(tokens[level + 2 : close]):
        _option(parts, item)
    if kind == "SINK":
        parts.query = _of_sink(text, tokens[at:level])
    elif words[close + 1 : close + 2] == ["AS"]:
        last = -2 if words[-2:] == ["EMIT", "CHANGES"] else len(tokens)
        query = tokens[close + 2 : last]
        parts.query = text[query[0].start : query[-1].end] if query else ""
    if words[close + 1 : close + 2] == ["LIKE"] and close + 2 < len(tokens):
        parts.like = unquote(tokens[close + 2])
    if "ENCODE" in words[close:-1]:  # FORMAT PLAIN ENCODE JSON of RisingWave
        parts.options["format"] = words[words.index("ENCODE", close) + 1].lower()
    return parts if kind != "SINK" or parts.query else None


def _included(parts: _Definition, tokens: list[Token]) -> None:
    """INCLUDE timestamp AS ts of RisingWave, fields of the message."""
    starts = [n for n, t in enumerate(tokens) if t.upper == "INCLUDE"]
    for first, last in pairwise([*starts, len(tokens)]):
        item = tokens[first + 1 : last]
        named = len(item) > 2 and item[-2].upper == "AS"
        if item:
            name = unquote(item[-1]) if named else f"_rw_kafka_{item[0].text.casefold()}"
            parts.message_fields[name] = _message_field(item, [item[0].upper])


def _of_sink(text: str, tokens: list[Token]) -> str:
    """The query of CREATE SINK s FROM t, or AS SELECT …; "" if it has none."""
    if len(tokens) < 2 or tokens[0].upper not in ("FROM", "AS"):
        return ""
    written = text[tokens[1].start : tokens[-1].end]
    return f"SELECT * FROM {written}" if tokens[0].upper == "FROM" else written


def _column(parts: _Definition, text: str, item: list[Token]) -> None:
    words = [t.upper for t in item]
    written = lambda start, end: text[item[start].start : item[end - 1].end]  # noqa: E731
    if words[:2] == ["WATERMARK", "FOR"] and len(item) > 4:
        parts.time = unquote(item[2])
        late = next((n for n in range(4, len(item)) if item[n].text == "-"), None)
        parts.delay = written(late + 1, len(item)) if late else "INTERVAL 0 SECONDS"
    elif words[:2] == ["PRIMARY", "KEY"]:
        parts.key = tuple(
            unquote(t) for t in item[3:] if t.kind in ("word", "quoted") and t.upper not in _NO_KEY
        )
    elif words[:1] == ["CONSTRAINT"] or len(item) < 2 or words[1:] == ["AS"]:
        return
    elif words[1] == "AS":
        parts.computed[unquote(item[0])] = written(2, len(item))
    elif not _FIELDS.isdisjoint(words):
        parts.message_fields[unquote(item[0])] = _message_field(item, words)
    else:
        if "KEY" in words[1:]:
            parts.message_key = unquote(item[0])
        parts.columns.append((quote_name(unquote(item[0])), _type(text, item[1:])))


_MESSAGE_FIELDS = frozenset(("key", "topic", "partition", "offset", "timestamp", "headers"))


def _message_field(item: list[Token], words: list[str]) -> str:
    """A column that is a field of the message: METADATA FROM 'timestamp' of Flink, HEADER('a') and HEADERS of
    ksqlDB; "" for one that the messages here do not have.
    """
    source = next((unquote(t) for t in item[1:] if t.kind == "string"), unquote(item[0]))
    if "HEADER" in words:
        return f"get(filter(_headers, h -> h.key = {quote(source)}), 0).value"
    source = "headers" if "HEADERS" in words else source.casefold()
    return f"_{source}" if source in _MESSAGE_FIELDS else ""


def _type(text: str, tokens: list[Token]) -> str:
    """A type in Spark's words, without what follows it (NOT NULL, KEY, a comment)."""
    first = tokens[0]
    name = _TYPES.get(first.upper, first.text)
    depth, last = 0, 0
    for n, token in enumerate(tokens):
        depth += token.text.count("<") + token.text.count("(") - token.text.count(">") - token.text.count(")")
        if n and depth == 0 and token.text not in (")", ">", ">>"):
            break
        last = n
    plain = name == "STRING" or name.upper().startswith("TIMESTAMP")
    rest = "" if plain or last == 0 else text[tokens[1].start : tokens[last].end]
    return name + rest


def _option(parts: _Definition, item: list[Token]) -> None:
    sign = next((n for n, t in enumerate(item) if t.text == "="), None)
    if sign and sign + 1 < len(item):
        parts.options["".join(unquote(t) for t in item[:sign]).casefold()] = unquote(item[sign + 1])


def _statement(parts: _Definition) -> str:
    connector, fmt, options = "", "", []
    for key, value in parts.options.items():
        form = _form(key, value)
        if form.startswith("USING "):
            connector = form.removeprefix("USING ")
        elif key == "connector":
            raise SyntaxFault(
                f"there is no connector {value}",
                hint=did_you_mean(value, [v for k, v, _ in _options() if k == "connector" and v])
                or "SHOW CONNECTORS; lists them",
                code="OTHER_CONSOLE",
            )
        elif form.startswith("FORMAT "):
            fmt = value.casefold() if form == "FORMAT <format>" else form.removeprefix("FORMAT ")
        elif form.startswith("KEY "):
            parts.key = tuple(part.strip() for part in value.split(","))
        elif form.startswith("WITH WATERMARK"):
            parts.time, parts.delay = value, "INTERVAL 0 SECONDS"
        elif form and "'" in form:
            options.append(form)
        elif form:
            secret = is_secret_key(form)
            options.append(f"{form} '{'${env:' + form.upper() + '}' if secret else value}'")
    connector = connector or "kafka"
    if connector == "datagen":
        options += _generated(parts)
    if connector == "kafka" and not any(o.startswith("servers ") for o in options):
        options.insert(0, "servers 'localhost:9092'")
    if connector == "<format>":
        connector, fmt = fmt or "json", ""
    options = list({o.partition(" ")[0]: o for o in options}.values())
    sink = connector in _SINKS or parts.kind == "SINK"
    if sink:
        options = [o for o in options if not o.startswith("startingOffsets ")]
    fmt = fmt if connector in _MESSAGES else ""
    columns = ", ".join(f"{n} {t}" for n, t in parts.columns) or ("…" if parts.like else "")
    lines = [f"CREATE {'SINK' if sink else 'STREAM'} {quote_name(parts.name)}"]
    lines += [f"({columns})"] * bool(columns) + [f"USING {connector}"] + [f"FORMAT {fmt}"] * bool(fmt)
    if sink and connector == "jdbc" and parts.key:
        lines.append(f"KEY ({', '.join(map(quote_name, parts.key))})")
    lines += [f"OPTIONS ({', '.join(options)})"] * bool(options)
    if parts.time and not sink:
        lines.append(f"WITH WATERMARK {_event_time(parts)} DELAY OF {parts.delay}")
    return " ".join(lines)


_FIELD = re.compile(r"fields\.(?P<name>.+)\.(kind|start|end|min|max)")


def _generated(parts: _Definition) -> list[str]:
    """The options fields.name of datagen, for those of Flink: a sequence, or random values of a range."""
    names = {found["name"] for key in parts.options if (found := _FIELD.fullmatch(key))}
    types = {name.strip("`").casefold(): kind for name, kind in parts.columns}
    options = []
    for name in sorted(names):
        of = lambda what, default: parts.options.get(f"fields.{name}.{what}", default)  # noqa: B023, E731
        if of("kind", "") == "sequence":
            options.append(f"fields.{quote_name(name)} 'sequence from {of('start', '0')}'")
        elif types.get(name) not in (None, "STRING") and (of("min", "") or of("max", "")):
            options.append(f"fields.{quote_name(name)} 'random {of('min', '0')} to {of('max', '1000000')}'")
    return options


_MILLIS = re.compile(r"TO_TIMESTAMP_LTZ\((.+), *3\)", re.IGNORECASE)


def _event_time(parts: _Definition) -> str:
    """The column of the watermark, with the expression that computes it if the source does not have it."""
    name = quote_name(parts.time)
    if parts.message_fields.get(parts.time):
        return f"{parts.message_fields[parts.time]} AS {name}"
    types = {n.casefold(): t.upper() for n, t in parts.columns}
    if parts.time in parts.computed:
        computed = _MILLIS.sub(r"timestamp_millis(\1)", parts.computed[parts.time])
        return f"{computed} AS {name}"
    kind = types.get(name.casefold(), "TIMESTAMP")
    if kind in ("BIGINT", "STRING"):
        call = "timestamp_millis" if kind == "BIGINT" else "to_timestamp"
        pattern = parts.options.get("timestamp_format", "") if kind == "STRING" else ""
        if pattern:
            return f"{call}({name}, {quote(pattern)}) AS {quote_name(parts.time + '_time')}"
        return f"{call}({name}) AS {quote_name(parts.time + '_time')}"
    return name


def own_options(text: str) -> str:
    """Options of Flink, as they are written between the parentheses of OPTIONS here."""
    pairs = re.findall(r"'([^']+)'\s*=\s*'([^']*)'", text)
    forms = [(_form(key.casefold(), value), value) for key, value in pairs]
    return ", ".join(form if "'" in form else f"{form} '{value}'" for form, value in forms if form)


def _form(key: str, value: str) -> str:
    """What an option is here; "" if nothing is."""
    for option, only, form in _options():
        if key == option and (only is None or only.casefold() == value.casefold()):
            return form
    return ""


@cache
def _options() -> tuple[tuple[str, str | None, str], ...]:
    """The rows of the tables: the option, its value if the row is for one value only, what it is here."""
    pages = (topic.text for name, topic in topics().items() if name.startswith(PREFIX))
    return tuple((r["key"], r["value"], r["form"]) for page in pages for r in _OPTION.finditer(page))


def sql_function(text: str, tokens: Sequence[Token]) -> str:
    """CREATE FUNCTION … LANGUAGE SQL AS $$ SELECT x + 1 $$ as Spark writes it; "" for any other statement."""
    words = [t.upper for t in tokens[:4]]
    if words[:1] != ["CREATE"] or "FUNCTION" not in words:
        return ""
    words = [t.upper for t in tokens]
    if "AS" not in words or "SQL" not in words:
        return ""
    language = next((n for n in range(len(words)) if words[n : n + 2] == ["LANGUAGE", "SQL"]), None)
    at = words.index("AS")
    if language is None or at + 1 >= len(tokens) or tokens[at + 1].kind != "string":
        return ""
    body = unquote(tokens[at + 1])
    head = text[: min(tokens[at].start, tokens[language].start)].rstrip()
    return f"{head} RETURN {_returned(body.strip().rstrip(';').strip())}"


def _returned(body: str) -> str:
    """The expression that a body of PostgreSQL returns."""
    select, _, value = body.partition(" ")
    if select.upper() != "SELECT":
        return body
    return f"({body})" if re.search(r"\bFROM\b", value, re.IGNORECASE) else value.strip()
