"""SHOW CONNECTORS, DESCRIBE CONNECTOR and HELP, from the connectors, the grammar and the topics' pages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata

from streamsql.connectors.base import TRIGGERS, Connector, OptionSpec
from streamsql.connectors.packages import PACKAGES
from streamsql.connectors.registry import connector, connectors
from streamsql.definitions import PAYLOAD_FORMATS, Sink, Stream
from streamsql.error_codes import CODES, NOTES, VERDICTS
from streamsql.errors import NameFault, did_you_mean
from streamsql.language.grammar import load
from streamsql.language.statements import session as session_statements
from streamsql.language.statements.base import Trigger
from streamsql.language.statements.registry import STATEMENTS
from streamsql.language.synopsis import TERMS, rule_label, synopsis
from streamsql.language.topics import topic, topics
from streamsql.results import Result, Rows, Text
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import table
from streamsql.runtime.parts import SessionParts

_WIDTH = 100
"""The width of a page."""


def _show_connectors(parts: SessionParts, statement: session_statements.ShowConnectors) -> Result:
    if statement.connector is None:
        rows = [
            (c.name, "yes" if c.reads is not None else "", "yes" if c.writes is not None else "", c.help)
            for c in connectors().values()
        ]
        return table(("name", "reads", "writes", "description"), rows)
    return _describe_connector(parts, session_statements.DescribeConnector(connector=statement.connector))


def _describe_connector(parts: SessionParts, statement: session_statements.DescribeConnector) -> Result:
    described = connector(statement.connector)
    rows = [("connector", "", "", "", described.help), *_abilities(described)]
    reads, writes = described.reads or (), described.writes or ()
    for spec in (*reads, *(s for s in writes if s not in reads)):
        uses = [use for use, specs in (("read", reads), ("write", writes)) if spec in specs]
        rows.append((spec.name, ", ".join(uses), _kind(spec), spec.default, spec.help))
    if described.open_prefix:
        prefixed = f"{described.open_prefix}…"
        rows.append((prefixed, "", "", "", "other options with this prefix are passed on unchanged"))
    if described.open_options:
        rows.append(("…", "", "", "", "other options are passed on unchanged"))
    columns = ("property", "for", "kind", "default", "description")
    return table(columns, rows, matters=("property", "description", "kind", "default"))


def _abilities(described: Connector) -> Iterator[tuple[str, ...]]:
    """The rows of a connector's columns, formats, output modes and triggers."""
    if described.reads is not None:
        columns = ", ".join(f"{c.name} {c.type}" for c in described.fixed_columns)
        if described.needs_columns:
            columns = "declared"
        elif described.infers_columns:
            columns = "declared, or inferred when they are not"
        elif described.formats:
            payloads = ", ".join(f for f in described.formats if f in PAYLOAD_FORMATS)
            columns = f"declared with FORMAT {payloads}; else value"
        yield "columns", "read", "", "", columns or "by its options"
        fields = described.metadata(Stream("", described.name))
        if fields:
            listed = ", ".join(f"{f.name} {f.type}" for f in fields)
            whose = "file fields" if described.infers_columns else "message fields"
            yield whose, "read", "", "", f"{listed}; SELECT * leaves them out"
        yield "triggers", "read", "", "", _triggers(described.triggers)
    if described.formats or described.line_formats:
        yield "formats", "", "", "", ", ".join((*described.formats, *described.line_formats))
    if described.writes is not None:
        yield "output modes", "write", "", "", _modes(described)
        yield "triggers", "write", "", "", _triggers(described.sink_triggers)
    for name in described.packages or ((described.name,) if described.name in PACKAGES else ()):
        package = PACKAGES.get(name)
        names = package.releases(metadata.version("pyspark"))[0].coordinates if package else (name,)
        yield "package", "", "", "", f"{', '.join(names)}, fetched when it is first needed"
    for title, use, text in described.not_known:
        yield title, use, "", "", text
    if described.takes_key:
        yield "KEY", "write", "", "", "the columns that form the key of a row"


def _modes(described: Connector) -> str:
    """The output modes that a sink supports, and those that it supports only with a KEY."""
    plain, keyed = (described.modes_of(Sink("", described.name, key=key)) for key in ((), ("key",)))
    more = ", ".join(m for m in keyed if m not in plain) if described.takes_key else ""
    return ", ".join(plain) + (f", with KEY {more}" if more else "")


def _triggers(kinds: frozenset[str]) -> str:
    return ", ".join(Trigger(k).sql() if k != "default" else "default" for k in TRIGGERS if k in kinds)


def _kind(spec: OptionSpec) -> str:
    """The kind or choices of an option, and whether it is required or secret."""
    kind = " | ".join(spec.choices) if spec.choices else spec.kind
    return kind + (", required" if spec.required else "") + (", secret" if spec.secret else "")


def _help(parts: SessionParts, statement: session_statements.Help) -> Result:
    grammar = load()
    entries = [(synopsis(grammar, r), grammar.help[r], r) for r in STATEMENTS if r not in ("Spark", "Select")]
    entries.append(("SELECT …", grammar.help["Select"], "Select"))
    if not statement.words:
        return _contents({rule: text for _, text, rule in entries})
    asked = " ".join(statement.words)
    page = topic(asked)
    if page:
        return Text(text=page.page(), prose=True)
    code = asked.upper()
    if meaning := next((codes[code] for codes in (CODES, NOTES, VERDICTS) if code in codes), ""):
        return Text(text=f"{code}: {meaning}", prose=True)
    wanted = [(s, h, r) for s, h, r in entries if f" {asked}" in f" {_plain(s)}"]
    if not wanted:
        names = [*(_head(s) for s, _, _ in entries), *(name.upper() for name in topics())]
        hint = did_you_mean(asked, names) or "HELP; lists the statements and topics"
        raise NameFault(f"there is no help for {asked}", hint=hint, code="UNKNOWN_TOPIC")
    text = "\n\n".join(_page(written, said, rule) for written, said, rule in wanted)
    return Text(text=text, prose=True)


def _contents(texts: dict[str, str]) -> Rows:
    """The list of all statements, by what they are for, and of the topics. texts: the description of each
    statement, by its rule.
    """
    pages = [(f"HELP {t.name}", t.summary) for t in topics().values()]
    first = [page for page in pages if page[0] == "HELP usage"]
    heads: dict[str, list[tuple[str, str]]] = {group: [] for group in (*_GROUPS, "operate", "test")}
    for rule, text in texts.items():
        sentence = text.partition(". ")[0].removesuffix(".")
        name = _NAME.match(sentence)
        assert name is not None, rule
        heads[_group(rule, name[0])].append((name[0], sentence[name.end() + 1 :]))
    parts = {"begin with": first} | {group: sorted(rows) for group, rows in heads.items()}
    parts["topics"] = [page for page in pages if page not in first]
    rows, titles = list[tuple[str, str]](), list[tuple[int, str]]()
    for title, entries in parts.items():
        if not entries:  # of a feature that is not there
            continue
        titles.append((len(rows), title))
        rows += entries
    return replace(table(("statement or topic", "description"), rows), sections=tuple(titles))


_GROUPS = {
    "read": ("STREAM", "PREVIEW", "SELECT", "FUNCTION", "CONNECTOR", "CONNECTORS", "TOPICS"),
    "keep": ("LIVE",),
    "look": ("SHOW", "DESCRIBE", "WATCH", "WHY", "VERIFY", "EXPLAIN", "SUMMARIZE"),
    "write": ("SINK", "INSERT", "EXECUTE", "COPY"),
}
"""What statements are for → words of their names; the others operate queries and the console."""


def _group(rule: str, name: str) -> str:
    """The group of a statement: that of the first word of its name that is a word of a group."""
    if STATEMENTS[rule].topic == "testing":
        return "test"
    words = name.split()
    found = (group for word in words for group, group_words in _GROUPS.items() if word in group_words)
    return next(found, "operate")


_NAME = re.compile(r"[A-Z]+( ([A-Z]+|…))*(?= )")
"""The name of a statement, which its description begins with."""


def _page(written: str, text: str, rule: str) -> str:
    """The page of a statement: examples, its synopsis, what it does, and the clauses that both name."""
    paragraphs = [text, *_where(rule), _see_also(rule, _head(written))]
    below = "\n".join(f"    {' '.join(p.split())}" for p in paragraphs)
    examples = load().examples[rule]
    above = "" if examples == f"{written};" else f"{examples}\n\n"
    head = textwrap.fill(
        written, _WIDTH, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
    )
    return f"{above}{head}\n{below}"


def _plain(written: str) -> str:
    """A synopsis without its optional parts, to be searched by its first words."""
    depth, out = 0, []
    for word in written.replace("[", " [ ").replace("]", " ] ").split():
        depth += (word == "[") - (word == "]")
        if depth == 0 and word != "]":
            out.append(word)
    return " ".join(out).replace("{DESCRIBE | DESC}", "DESCRIBE").replace("{EXIT | QUIT}", "EXIT")


def _head(written: str) -> str:
    words = []
    for word in _plain(written).split():
        if not word.isupper() or not word.isalpha():
            break
        words.append(word)
    return " ".join(words)


def _see_also(rule: str, head: str) -> str:
    """The topic of a statement, and the topics that refer to it."""
    names = {STATEMENTS[rule].topic: None} | {
        t.name: None for t in topics().values() if f"HELP {head};" in t.text
    }
    return f"see also: {' '.join(f'HELP {name};' for name in names)}"


def _where(rule: str) -> list[str]:
    """The definitions of the clauses, in <…>, and terms that a statement's synopsis and description name."""
    grammar = load()
    shown, lines, queue = set(), [], [synopsis(grammar, rule) + grammar.help[rule]]
    while queue:
        text = queue.pop(0)
        for name in grammar.rules:
            label = rule_label(name)
            if label in text and name not in shown:
                shown.add(name)
                written = synopsis(grammar, name)
                lines.append(f"{label} is {written}")
                queue.append(written)
    texts = " ".join((synopsis(grammar, rule), *lines))
    named = (name for name in TERMS if re.search(rf"\b{name.lower()}\b", texts))
    return [*lines, *(f"{name.lower()}: {TERMS[name]}" for name in named)]


DIRECT: Answers = {
    session_statements.ShowConnectors: _show_connectors,
    session_statements.DescribeConnector: _describe_connector,
    session_statements.Help: _help,
}
