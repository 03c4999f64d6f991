"""A PySpark program as a small tree of Python calls, with two folds that cannot drift apart.

`run` evaluates it against real objects (a SparkSession, or a recorder in the tests); `render`
writes it as Python source. Nothing else in streamsql makes PySpark calls for a query.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

WIDTH = 96


class Node:
    """Base of the tree; `attr` and `call` build on a node."""

    def attr(self, name: str) -> Node:
        return Attr(self, name)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Node:
        """self.name(*args, **kwargs); plain values become literals."""
        return Call(Attr(self, name), tuple(map(lit, args)), tuple((k, lit(v)) for k, v in kwargs.items()))


@dataclass(frozen=True)
class Var(Node):
    name: str


@dataclass(frozen=True)
class Lit(Node):
    """A text, number, truth value, None, or a list of nodes (as a tuple).

    packages: of the name of a format, the Maven coordinates without which Spark does not know it.
    """

    value: Any
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attr(Node):
    target: Node
    name: str


@dataclass(frozen=True)
class Call(Node):
    function: Node
    args: tuple[Node, ...] = ()
    kwargs: tuple[tuple[str, Node], ...] = ()

    @property
    def method(self) -> str:
        """The name of the method that it calls; "" for a call of a function."""
        return self.function.name if isinstance(self.function, Attr) else ""


@dataclass(frozen=True)
class Function(Node):
    """def (parameters): body; return value. It stands as the node of an Assign, which names it."""

    parameters: tuple[str, ...]
    body: tuple[Assign, ...]
    value: Node


@dataclass(frozen=True)
class Assign:
    """name = node; an empty name is a statement whose value is dropped."""

    name: str
    node: Node


Program = tuple[Assign, ...]


def lit(value: Any) -> Node:
    if isinstance(value, Node):
        return value
    if isinstance(value, (list, tuple)):
        return Lit(tuple(lit(v) for v in value))
    return Lit(value)


def nodes_in(program: Program) -> Iterator[Node]:
    """Every node of a program, those inside of others too. A chain of calls may be of any length."""
    for step in program:
        inside = [step.node]
        while inside:
            node = inside.pop()
            yield node
            if isinstance(node, Function):
                yield from nodes_in((*node.body, Assign("", node.value)))
            inside += reversed(_parts(node))


def _parts(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node; none of a function, which is a program."""
    if isinstance(node, Attr):
        return (node.target,)
    if isinstance(node, Call):
        return (node.function, *node.args, *(value for _, value in node.kwargs))
    return node.value if isinstance(node, Lit) and isinstance(node.value, tuple) else ()


def calls_in(program: Program) -> Iterator[Call]:
    """Every call of a program."""
    return (node for node in nodes_in(program) if isinstance(node, Call))


def variables_in(program: Program) -> frozenset[str]:
    """The names that a program reads: its own variables, and those that its surroundings define."""
    return frozenset(node.name for node in nodes_in(program) if isinstance(node, Var))


def call(function: str, *args: Any, **kwargs: Any) -> Call:
    """function(*args, **kwargs) of a variable of the program; plain values become literals."""
    return Call(Var(function), tuple(map(lit, args)), tuple((k, lit(v)) for k, v in kwargs.items()))


def expr(text: str) -> Node:
    """F.expr("text"): a scalar expression, in the analyst's own words."""
    return Var("F").call("expr", text)


def evaluate(node: Node, env: Mapping[str, Any]) -> Any:
    """The value of a node; env gives the variables. A chain of calls may be of any length."""
    first, links = links_of(node)
    value = env[first.name] if isinstance(first, Var) else _plain(first, env)
    for link in links:
        if isinstance(link, Attr):
            value = getattr(value, link.name)
        else:
            value = value(
                # A list: Python would run a generator only after the keywords, unlike the rendered call.
                *[evaluate(a, env) for a in link.args],
                **{k: evaluate(v, env) for k, v in link.kwargs},
            )
    return value


def with_parts(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node with its direct parts changed."""
    if isinstance(node, Attr):
        return Attr(change(node.target), node.name)
    if isinstance(node, Call):
        kwargs = tuple((key, change(value)) for key, value in node.kwargs)
        return Call(change(node.function), tuple(map(change, node.args)), kwargs)
    if isinstance(node, Lit) and isinstance(node.value, tuple):
        return Lit(tuple(map(change, node.value)))
    if isinstance(node, Function):
        body = tuple(Assign(step.name, change(step.node)) for step in node.body)
        return Function(node.parameters, body, change(node.value))
    return node


def links_of(node: Node) -> tuple[Node, list[Attr | Call]]:
    """The variable or literal that a node begins with, and what is done to it, first to last."""
    links: list[Attr | Call] = []
    while isinstance(node, (Attr, Call)):
        links.append(node)
        node = node.target if isinstance(node, Attr) else node.function
    return node, links[::-1]


def _plain(node: Node, env: Mapping[str, Any]) -> Any:
    if isinstance(node, Function):
        return partial(_called, node, env)
    assert isinstance(node, Lit)
    return [evaluate(v, env) for v in node.value] if isinstance(node.value, tuple) else node.value


def _called(function: Function, env: Mapping[str, Any], *arguments: Any) -> Any:
    inner = {**env, **dict(zip(function.parameters, arguments, strict=True))}
    run(function.body, inner)
    return evaluate(function.value, inner)


def run(program: Program, env: dict[str, Any]) -> Any:
    """Evaluate a program; env gets its variables. Returns the last value."""
    value = None
    for step in program:
        value = evaluate(step.node, env)
        if step.name:
            env[step.name] = value
    return value


def text_of(program: Program) -> str:
    """The text that the last step of a program hands to spark.sql; "" for another step."""
    node = program[-1].node
    if (
        isinstance(node, Call)
        and node.function == Attr(Var("spark"), "sql")
        and isinstance(node.args[0], Lit)
    ):
        return str(node.args[0].value)
    return ""


def render(program: Program) -> str:
    """A program as Python source, one step a paragraph."""
    parts: list[str] = []
    for step in program:
        if isinstance(step.node, Function) and not (parts and parts[-1].endswith("\n\n\n")):
            parts.append("\n\n")
        parts.append(_step(step))
    return "".join(parts)


def _step(step: Assign) -> str:
    if isinstance(step.node, Function):
        return f"def {step.name}{_definition(step.node)}\n\n"
    lead = f"{step.name} = " if step.name else ""
    lead = "return " if step.name == "return" else lead
    flat = render_node(step.node)
    if len(lead + flat) <= WIDTH:
        return lead + flat + "\n"
    head, links = _chain(step.node)
    if len(links) < 2:
        return lead + flat + "\n"
    body = "\n".join("    " + link for link in links)
    return f"{lead}(\n    {head}\n{body}\n)\n"


def _definition(node: Function) -> str:
    body = render((*node.body, Assign("return", node.value)))
    return f"({', '.join(node.parameters)}):\n{indented(body)}"


def indented(source: str) -> str:
    """Python source as the body of a function; the lines inside texts stay as they are."""
    inside: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    return "".join(
        line if number in inside or not line.strip() else "    " + line
        for number, line in enumerate(source.splitlines(keepends=True), 1)
    )


def _chain(node: Node) -> tuple[str, list[str]]:
    """A method chain as its head and its links; an attribute stays with the link after it."""
    links: list[str] = []
    tail = ""
    while True:
        if isinstance(node, Call) and isinstance(node.function, Attr):
            links.append(f".{node.function.name}({_arguments(node)}){tail}")
            node, tail = node.function.target, ""
        elif isinstance(node, Attr):
            tail = f".{node.name}{tail}"
            node = node.target
        else:
            return render_node(node) + tail, links[::-1]


def _arguments(node: Call) -> str:
    return ", ".join([render_node(a) for a in node.args] + [f"{k}={render_node(v)}" for k, v in node.kwargs])


def render_node(node: Node) -> str:
    first, links = links_of(node)
    if isinstance(first, Function):
        return _definition(first)
    text = first.name if isinstance(first, Var) else _literal(first)
    return text + "".join(
        f".{link.name}" if isinstance(link, Attr) else f"({_arguments(link)})" for link in links
    )


def _literal(node: Node) -> str:
    assert isinstance(node, Lit)
    if isinstance(node.value, tuple):
        return "[" + ", ".join(render_node(v) for v in node.value) + "]"
    return _text(node.value) if isinstance(node.value, str) else repr(node.value)


def _text(value: str) -> str:
    """A Python literal, with double quotes where that needs no escapes."""
    # Python reads \r as a line's end and stops at \0, so only plain text goes over several lines.
    plain_lines = all(c.isprintable() or c in "\n\t" for c in value)
    if "\n" in value and plain_lines and '"""' not in value and "\\" not in value and value[-1] != '"':
        return f'"""{value}"""'
    plain = repr(value)
    if plain.startswith("'") and '"' not in value:
        return '"' + plain[1:-1].replace("\\'", "'") + '"'
    return plain
