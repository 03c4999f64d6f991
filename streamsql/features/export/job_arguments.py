"""The arguments of an exported program: what differs from cluster to cluster, in the place of its values.

Folders, servers and checkpoints become arguments; secrets become environment variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from streamsql.calls import Attr, Call, Lit, Node, Program, Var, with_parts
from streamsql.connectors.base import OptionSpec, Places
from streamsql.connectors.option_values import in_full
from streamsql.connectors.registry import connector
from streamsql.definitions import Sink, Stream
from streamsql.language.redaction import secret_places
from streamsql.language.statements.base import Name
from streamsql.secrets import Range, is_secret_key, ranges, redact_option, refers

CHECKPOINT = "checkpoint"
_ADDRESSES = ("servers", "kafka.bootstrap.servers", "url")
_CODE = ("find", "load", "data_source")
"""The helpers whose last argument is the folder of Python code."""
_PLACES = ("load", "save", "start", "option", "parquet")
"""The methods that take a path."""
_REFERENCE = re.compile(r"\$\{env:([^}]*)\}")


@dataclass(frozen=True)
class Argument:
    """An argument of a program. flag: without its dashes; default None: it is required, unless optional."""

    flag: str
    help: str
    default: str | None = None
    optional: bool = False

    @property
    def node(self) -> Node:
        """Its value in the program."""
        return Var("arguments").attr(self.flag.replace("-", "_"))

    @property
    def source(self) -> str:
        """The line of the program that declares it."""
        rest = ""
        if self.default is not None:
            rest = f", default={_text(self.default)}"
        elif not self.optional:
            rest = ", required=True"
        text = _text(self.help.replace("%", "%%"))
        return f'parser.add_argument("--{self.flag}"{rest}, help={text})\n'


@dataclass
class JobArguments:
    """The arguments that a program needs, collected while it is rewritten. places: the console's folders;
    queries: those that have a checkpoint, with the folder that the statement names, if it does.

    secrets: the environment variables with secrets, by key and secret; environment: all that it reads; code:
    the folders of the Python modules that its sources and sinks name.
    """

    places: Places
    queries: dict[str, str] = field(default_factory=dict)
    all: dict[str, Argument] = field(default_factory=dict)
    secrets: dict[tuple[str, str], str] = field(default_factory=dict)
    environment: dict[str, None] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    _by_value: dict[str, Argument] = field(default_factory=dict)

    def begin(self, entries: Iterable[Stream | Sink], queries: dict[str, str]) -> None:
        """Set the streams and sinks of the program, and its queries."""
        self.queries = queries
        self._by_value = _arguments_by_value(entries, self.places)

    def rewrite(self, program: Program) -> Program:
        """A program with arguments and environment variables in the place of values."""
        return tuple(replace(step, node=self._node(step.node)) for step in program)

    def checkpoint(self, query: str) -> Argument:
        """The argument of a query's checkpoint."""
        own = self.queries[query]
        alone = len(self.queries) == 1
        flag = CHECKPOINT if alone else f"{CHECKPOINT}-of-{_slug(query)}"
        text = f"the folder of the checkpoint of {query}; one that exists is resumed"
        return self._add(Argument(flag, text, in_full(own) if own else None))

    def rows_of(self, table: str) -> Argument:
        """The argument of the folder that keeps a live table's rows."""
        text = f"the folder that keeps the rows of {table}; in memory only if it is not given"
        return self._add(Argument(f"rows-of-{_slug(table)}", text, optional=True))

    def ordered(self) -> list[Argument]:
        """All arguments, the checkpoints first."""
        return sorted(self.all.values(), key=lambda a: not a.flag.startswith(CHECKPOINT))

    def path_in(self, text: str, place: Range, flag: str) -> Node:
        """A SQL text whose characters at place are the argument of that flag."""
        start, end = place
        before, after = (part.replace("{", "{{").replace("}", "}}") for part in (text[:start], text[end:]))
        argument = self._add(Argument(flag, f"the {flag.replace('-', ' ')}", in_full(text[start:end])))
        return Lit(f"{before}{{path}}{after}").call("format", path=argument.node)

    def _add(self, argument: Argument) -> Argument:
        """The same argument, with another flag if one with other values has it."""
        flag, number = argument.flag, 1
        while self.all.get(argument.flag, argument) != argument:
            number += 1
            argument = replace(argument, flag=f"{flag}-{number}")
        self.all[argument.flag] = argument
        return argument

    def _node(self, node: Node) -> Node:
        if isinstance(node, Lit) and isinstance(node.value, str):
            return self._text(node)
        return self._call(node) if isinstance(node, Call) else with_parts(node, self._node)

    def _call(self, node: Call) -> Node:
        name = node.function.name if isinstance(node.function, (Attr, Var)) else ""
        first = node.args[0] if node.args else None
        if node.function == Var("checkpoint") and isinstance(first, Lit):
            return self.checkpoint(str(first.value)).node
        if isinstance(node.function, Attr) and name in ("option", "config") and len(node.args) == 2:
            key, value = node.args
            target = self._node(node.function)
            return replace(node, function=target, args=(key, self._option(key, value)))
        if isinstance(node.function, Var) and name in _CODE:
            *_, code, folder = node.args
            assert isinstance(code, Lit) and isinstance(folder, Lit)
            self.code[str(code.value).rpartition(".")[0]] = str(folder.value)
            return replace(node, args=(*node.args[:-1], Var("modules")))
        args = tuple(map(self._node, node.args))
        if isinstance(node.function, Var) or name in _PLACES:
            args = tuple(map(self._place, args))
        kwargs = tuple((key, self._option(Lit(key), value)) for key, value in node.kwargs)
        return replace(node, function=self._node(node.function), args=args, kwargs=kwargs)

    def _option(self, key: Node, value: Node) -> Node:
        if not (isinstance(key, Lit) and isinstance(value, Lit) and isinstance(value.value, str)):
            return self._node(value)
        name, text = str(key.value), value.value
        if name == "checkpointLocation":
            return self.checkpoint(next(name for name, own in self.queries.items() if own == text)).node
        if redact_option(name, text) == text:
            return self._place(self._text(value))
        places = [(0, len(text))] if is_secret_key(name) else ranges(text, prose=False)
        return self._filled(text, places, name)

    def _place(self, node: Node) -> Node:
        if isinstance(node, Lit) and isinstance(node.value, str) and node.value in self._by_value:
            return self._add(self._by_value[node.value]).node
        return node

    def _text(self, node: Lit) -> Node:
        self.environment |= dict.fromkeys(_REFERENCE.findall(node.value))
        return self._filled(node.value, secret_places(node.value), "secret")

    def _filled(self, text: str, places: Iterable[Range], key: str) -> Node:
        """A text with environment variables in the place of the secrets in it."""
        parts, at = [], 0
        for start, end in places:
            parts += [text[at:start], "${env:" + self._variable(key, text[start:end]) + "}"]
            at = end
        if not parts:
            return Lit(text)
        return Call(Var("filled"), (Lit("".join(parts) + text[at:]),))

    def _variable(self, key: str, secret: str) -> str:
        base = re.sub(r"\W+", "_", key.upper()).strip("_")
        taken = set(self.secrets.values())
        names = (base if n == 1 else f"{base}_{n}" for n in range(1, len(taken) + 2))
        name = self.secrets.get((key, secret)) or next(n for n in names if n not in taken)
        self.secrets[key, secret] = name
        self.environment[name] = None
        return name


def _arguments_by_value(entries: Iterable[Stream | Sink], places: Places) -> dict[str, Argument]:
    """The argument of each path and address of the entries, by its value."""
    users: dict[str, list[tuple[str, str, bool]]] = {}
    for entry in entries:
        for option, value, is_path in _options(entry, places):
            users.setdefault(value, []).append((entry.name, option, is_path))
    arguments = {}
    for value, used in users.items():
        names = list(dict.fromkeys(name for name, _, _ in used))
        _, option, is_path = used[0]
        flag = _slug(option if len(names) > 1 else f"{names[0]}-{option}")
        default = in_full(value) if is_path else value
        arguments[value] = Argument(flag, f"the {option} of {', '.join(names)}", default)
    return arguments


def _options(entry: Stream | Sink, places: Places) -> Iterable[tuple[str, str, bool]]:
    """(option, value, whether it is a path) of each place that an entry reads or writes."""
    if not entry.connector or entry.connector == "table":
        return
    if isinstance(entry, Stream) and entry.connector == "values":
        yield "path", places.values(entry.name), True
    using = connector(Name(entry.connector))
    specs: tuple[OptionSpec, ...] = (*(using.reads or ()), *(using.writes or ()))
    paths = {s.name.casefold() for s in specs if s.kind == "path"} - {"folder"}
    for key, value in entry.options:
        is_path = key.casefold() in paths
        if (is_path or key.casefold() in _ADDRESSES) and not refers(value):
            yield key, value, is_path


def _text(value: str) -> str:
    """A Python literal in double quotes."""
    return json.dumps(value, ensure_ascii=False)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-") or "it"
