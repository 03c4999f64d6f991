"""Reads grammars/*.gram and matches statements with them.

A .gram file is a PEG:

    # One sentence for HELP.
    #> DROP STREAM clicks;
    DropStream <- 'DROP' 'STREAM' ~ IfExists? StreamName

`'WORD'` is a keyword or sign, `Rule` another rule, `( )` a group, `/` ordered choice, `?` `*` `+`
as usual, `List(Rule)` one or more with commas. `~` commits: a failure after it is an error of this
statement, and no other alternative is tried. Names without a rule are terminals; each is named after
its completion (StreamName, OptionKey, …) and is listed in TERMINALS.

One grammar serves parsing, HELP, completion and highlighting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from streamsql import feature_registry
from streamsql.errors import Source, Span, SyntaxFault
from streamsql.language.grammar_reader import Reader
from streamsql.language.misplaced_words import hint_at, meant_word
from streamsql.language.terminals import TERMINALS
from streamsql.language.tokens import Token


class Node(NamedTuple):
    """A matched rule or terminal: its name, its span and its named parts in order."""

    name: str
    span: Span
    parts: tuple[Node, ...] = ()
    value: str = ""

    def get(self, name: str) -> Node | None:
        """The first direct part with that name."""
        return next((p for p in self.parts if p.name == name), None)

    def all(self, name: str) -> list[Node]:
        """All direct parts with that name."""
        return [p for p in self.parts if p.name == name]

    def has(self, name: str) -> bool:
        return self.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """The value of the first direct part with that name."""
        part = self.get(name)
        return part.value if part else default

    def walk(self) -> Iterator[Node]:
        """It and all its parts, each before its own parts."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass
class State:
    """One match of a token list: the furthest position reached and the items expected there."""

    tokens: list[Token]
    length: int
    furthest: int = -1
    expected: dict[str, None] = field(default_factory=dict)
    committed: str = ""

    def fail(self, at: int, wanted: str) -> None:
        if at > self.furthest:
            self.furthest, self.expected = at, {wanted: None}
        elif at == self.furthest:
            self.expected[wanted] = None


# A matcher takes (state, position, parts so far) and returns the position after the match, or -1.
Matcher = Callable[[State, int, list[Node]], int]


class Grammar:
    """The rules of all .gram files, compiled.

    rules: name → source text of the right-hand side; help: name → sentence; examples: name → statements for
    HELP, the lines with `#>`; keywords: all literals.
    """

    def __init__(self, texts: list[str]) -> None:
        self.rules: dict[str, str] = {}
        self.help: dict[str, str] = {}
        self.examples: dict[str, str] = {}
        self.keywords: set[str] = set()
        self._compiled: dict[str, Matcher] = {}
        for text in texts:
            self._read(text)

    def first_example(self, rule: str) -> str:
        """The first example of a statement for HELP; "" where it takes several lines."""
        first, end, _ = self.examples.get(rule, "").partition(";")
        return first + end if "\n" not in first else ""

    def _read(self, text: str) -> None:
        comment: list[str] = []
        examples: list[str] = []
        name = ""
        for line in text.splitlines():
            rule = re.match(r"(\w+)\s*<-\s*(.*)", line)
            if line.startswith("#> "):
                examples.append(line[3:])
            elif line.startswith("#"):
                comment.append(line[1:].strip())
            elif rule:
                name = rule.group(1)
                if name in self.rules:
                    raise ValueError(f"rule {name} is defined twice")
                self.rules[name] = rule.group(2)
                self.help[name] = " ".join(comment)
                self.examples[name] = "\n".join(examples)
                comment, examples = [], []
            elif line.strip() and name:
                self.rules[name] += " " + line.strip()
            elif not line.strip():
                comment = []
        self.keywords = {
            word.upper() for right in self.rules.values() for word in re.findall(r"'([A-Za-z_]+)'", right)
        }

    def rule(self, name: str) -> Matcher:
        if name not in self._compiled:
            if name in self.rules:
                body = _Compiler(self, self.rules[name]).alternatives()
                self._compiled[name] = _node(name, body)
            elif name in TERMINALS:
                self._compiled[name] = _terminal(name)
            else:
                raise ValueError(f"grammar names {name}, which is neither a rule nor a terminal")
        return self._compiled[name]

    def match(self, rule: str, tokens: list[Token]) -> tuple[Node | None, State]:
        """Match all tokens against a rule: the node (None if they do not match) and the final state.

        Raises SyntaxFault for tokens that are nested too deeply.
        """
        state = State(tokens, len(tokens))
        parts: list[Node] = []
        try:
            end = self.rule(rule)(state, 0, parts)
        except RecursionError:
            place = tokens[max(state.furthest, 0)].span
            raise SyntaxFault(
                "the statement is nested too deeply", span=place, code="NESTED_TOO_DEEPLY"
            ) from None
        if end == len(tokens):
            return parts[0], state
        if end >= 0:
            state.fail(end, "")
        return None, state

    def expected(self, rule: str, tokens: list[Token]) -> list[str]:
        """The items that can follow a list of tokens: keywords in quotes, and terminals by name."""
        state = State(tokens, len(tokens))
        end = self.rule(rule)(state, 0, [])
        wanted = [w for w in state.expected if w] if state.furthest == len(tokens) else []
        return wanted + ([";"] if end == len(tokens) else [])


class _Compiler(Reader):
    def __init__(self, grammar: Grammar, text: str) -> None:
        super().__init__(text)
        self.grammar = grammar

    def alternatives(self) -> Matcher:
        options = [self.sequence()]
        while self.peek() == "/":
            self.take()
            options.append(self.sequence())
        return options[0] if len(options) == 1 else _choice(options)

    def sequence(self) -> Matcher:
        items: list[Matcher] = []
        while self.peek() not in ("", "/", ")"):
            items.append(self.item())
        return items[0] if len(items) == 1 else _sequence(items)

    def item(self) -> Matcher:
        part = self.take()
        literal, is_list, name, sign = part.groups()
        if literal:
            matcher = _literal(literal)
        elif is_list:
            matcher = _list(self.alternatives())
            self.take()
        elif name:
            matcher = _lazy(self.grammar, name)
        elif sign == "(":
            matcher = self.alternatives()
            self.take()
        else:
            return _commit()
        while self.peek() in ("?", "*", "+"):
            matcher = _repeat(matcher, self.take().group())
        return matcher


def _lazy(grammar: Grammar, name: str) -> Matcher:
    rule: Matcher | None = None

    def match(state: State, at: int, out: list[Node]) -> int:
        nonlocal rule
        if rule is None:  # a rule can contain itself
            rule = grammar.rule(name)
        return rule(state, at, out)

    return match


def _literal(word: str) -> Matcher:
    upper = word.upper()
    wanted = f"'{upper}'"

    def match(state: State, at: int, out: list[Node]) -> int:
        if at < state.length:
            token = state.tokens[at]
            if token.kind in ("word", "sign") and token.text.upper() == upper:
                out.append(Node(upper, token.span))
                return at + 1
        state.fail(at, wanted)
        return -1

    return match


def _terminal(name: str) -> Matcher:
    read = TERMINALS[name][0]

    def match(state: State, at: int, out: list[Node]) -> int:
        matched = read(state.tokens, at) if at < state.length else None
        if matched is None:
            state.fail(at, name)
            return -1
        end, value = matched
        out.append(Node(name, Span(state.tokens[at].start, state.tokens[end - 1].end), (), value))
        return end

    return match


def _node(name: str, body: Matcher) -> Matcher:
    def match(state: State, at: int, out: list[Node]) -> int:
        parts: list[Node] = []
        end = body(state, at, parts)
        if end < 0:
            return -1
        place = state.tokens[at].start if at < state.length else 0
        stop = state.tokens[end - 1].end if end > at else place
        out.append(Node(name, Span(place, stop), tuple(parts)))
        return end

    return match


def _sequence(items: list[Matcher]) -> Matcher:
    def match(state: State, at: int, out: list[Node]) -> int:
        length = len(out)
        for item in items:
            at = item(state, at, out)
            if at < 0:
                del out[length:]
                return -1
        return at

    return match


def _choice(options: list[Matcher]) -> Matcher:
    def match(state: State, at: int, out: list[Node]) -> int:
        for option in options:
            committed = state.committed
            end = option(state, at, out)
            if end >= 0:
                return end
            if state.committed != committed:
                return -1
        return -1

    return match


def _repeat(item: Matcher, sign: str) -> Matcher:
    def match(state: State, at: int, out: list[Node]) -> int:
        count = 0
        while True:
            end = item(state, at, out)
            if end < 0 or end == at:
                break
            at, count = end, count + 1
            if sign == "?":
                break
        return -1 if sign == "+" and not count else at

    return match


def _list(item: Matcher) -> Matcher:
    comma = _literal(",")

    def match(state: State, at: int, out: list[Node]) -> int:
        at = item(state, at, out)
        while at >= 0:
            after = comma(state, at, [])
            if after < 0:
                break
            end = item(state, after, out)
            if end < 0:
                break
            at = end
        return at

    return match


def _commit() -> Matcher:
    def match(state: State, at: int, out: list[Node]) -> int:
        state.committed = state.committed or str(at)
        return at

    return match


def grammar_folder() -> Path:
    """The folder of the .gram files: inside an installed wheel, or next to the package in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "grammars"
    return inside if inside.is_dir() else package.parent / "grammars"


@cache
def load() -> Grammar:
    """The grammar of the language, read once. A plug-in whose rules cannot be read is omitted."""
    folder = grammar_folder()
    texts = [*texts_in(folder), *texts_in(folder / "statements")]
    grammar = Grammar(texts)
    for plug_in in tuple(feature_registry.plug_ins()):
        try:
            own = texts_in(feature_registry.folder(plug_in))
            extended = Grammar([*texts, *own])
            for rule in extended.rules.keys() - grammar.rules.keys():
                extended.expected(rule, [])
        except Exception as error:
            feature_registry.omit(plug_in, error)
        else:
            grammar, texts = extended, [*texts, *own]
    return grammar


def texts_in(folder: Path) -> list[str]:
    """The texts of the .gram files of a folder."""
    return [file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.gram"))]


def _words(expected: dict[str, None]) -> Iterator[str]:
    for wanted in expected:
        if wanted.startswith("'"):
            yield wanted.strip("'")
        elif wanted:
            yield TERMINALS[wanted][1]


def syntax_fault(state: State, tokens: list[Token], example: str = "") -> SyntaxFault:
    """The error for a failed match: the items expected at the furthest position, and the token there.
    example: a statement of that kind, for one that ends too early.
    """
    words = list(dict.fromkeys(_words(state.expected)))
    wanted = [f"'{w}'" for w in (")", ",") if w in words]
    wanted += [w if w[0].isalnum() else f"'{w}'" for w in words if w not in (")", ",")]
    listed = ", ".join(wanted[:-1]) + (" or " if len(wanted) > 1 else "") + wanted[-1] if wanted else ""
    if len(wanted) > 8:
        listed = ", ".join(wanted[:8]) + ", …"
    if state.furthest < len(tokens):
        token = tokens[state.furthest]
        literals = [w.strip("'") for w in state.expected if w.startswith("'")]
        like = meant_word(token, literals, query="Query" in state.expected)
        if like:
            return SyntaxFault(
                f"expected {like}, found {token.text}", hint=f"did you mean {like}?", span=token.span
            )
        found = token.text if token.kind != "sign" else f"'{token.text}'"
        fact = f"expected {listed}, found {found}" if listed else f"did not expect {found} here"
        whole = [t.text for t in tokens]
        # STOP counts; and the like: only the kind of the name is missing.
        named = state.furthest == 1 and "'QUERY'" in state.expected and token.kind in ("word", "quoted")
        proposal = " ".join([whole[0], "QUERY", *whole[1:]]) + ";" if named else ""
        if wants_name(state, tokens):
            hint = f"Spark writes names in backticks: `{token.text[1:-1]}`"
            return SyntaxFault(fact, hint=hint, span=token.span, code="DOUBLE_QUOTED_NAME")
        hint = hint_at(tokens, state.furthest)
        return SyntaxFault(fact, proposal=proposal, hint=hint, span=token.span)
    end = tokens[-1].end if tokens else 0
    return SyntaxFault(
        f"the statement ends too early: expected {listed}",
        hint=f"for example: {example}" if example else "",
        span=Span(max(0, end - 1), end),
    )


def wants_name(state: State, tokens: list[Token]) -> bool:
    """Whether a match failed at a name in double quotes, which make a string."""
    text = tokens[state.furthest].text if state.furthest < len(tokens) else ""
    return text.startswith('"') and any("name" in w or "column" in w for w in _words(state.expected))


def text_of(source: Source, node: Node) -> str:
    """The text of a node as the analyst wrote it."""
    return source.text[node.span.start : node.span.end]
