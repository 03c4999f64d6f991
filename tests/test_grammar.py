"""Properties of the language, with statements made up from the grammar files themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from generated import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connectors
from streamsql.definitions import Sink, Stream
from streamsql.errors import Source, Span, StreamsqlError
from streamsql.language.grammar import TERMINALS, Grammar, load
from streamsql.language.origin import Origin
from streamsql.language.parser import STATEMENTS, parse, parse_text, split_script
from streamsql.language.query import read_query
from streamsql.language.statements.base import SIMPLE_TYPES, Statement
from streamsql.language.tokens import (
    NOT_A_NAME,
    Token,
    quote,
    quote_name,
    split,
    substitute,
    tokenize,
    unquote,
)
from streamsql.plan.planner import Context, plan
from streamsql.plan.plans import DefineSink, DefineStream

ROOMS = ("streamsql/language/", "grammars/")

# The grammar, and that of the queries that are made up here; sqlglot reads them.
SHAPES = Path(__file__).with_name("query_shapes.gram").read_text("utf-8")
GRAMMAR = Grammar([*(f"{name} <- {rule}" for name, rule in load().rules.items()), SHAPES])
GRAMMAR.help |= load().help
RULES = sorted(STATEMENTS)


# ---- statements from the grammar ----------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """What one literal or terminal of the grammar stands for in a text."""

    kind: str
    text: str


Tree = tuple[Any, ...]


@cache
def tree_of(rule: str) -> Tree:
    """The right side of a rule, read anew here: (kind, parts…)."""
    parts = re.findall(r"'[^']+'|List\(|[A-Za-z]\w*|[()/?*+~]", GRAMMAR.rules[rule])
    return _alternatives(parts)


def _alternatives(parts: list[str]) -> Tree:
    options = [_sequence(parts)]
    while parts and parts[0] == "/":
        parts.pop(0)
        options.append(_sequence(parts))
    return options[0] if len(options) == 1 else ("either", *options)


def _sequence(parts: list[str]) -> Tree:
    items: list[Tree] = []
    while parts and parts[0] not in "/)":
        part = parts.pop(0)
        if part == "~":
            continue
        if part in ("(", "List("):
            inner = _alternatives(parts)
            assert parts.pop(0) == ")"
            item: Tree = ("list", inner) if part == "List(" else inner
        else:
            item = ("word", part.strip("'")) if part.startswith("'") else ("rule", part)
        while parts and parts[0] in ("?", "*", "+"):
            item = (parts.pop(0), item)
        items.append(item)
    return items[0] if len(items) == 1 else ("all", *items)


PLAIN = ["clicks", "Per_User", "_x", "n1", "größe", "日本", "Orders2024"]
QUERIES = [
    "SELECT 1",
    "SELECT a, count(*) AS n FROM t GROUP BY a",
    "WITH x AS (SELECT ';' AS c) SELECT * FROM x",
    "FROM t |> WHERE a > 1",
    "VALUES (1, 'a'), (2, \"b\")",
    "(SELECT 1) UNION ALL (SELECT 2)",
    "TABLE t",
]
EXPRESSIONS = [
    "to_timestamp(t)",
    "CAST(x AS TIMESTAMP)",
    "ts + INTERVAL 1 HOUR",
    "a[0].b",
    "`my ts`",
    "x -> y",
]
SCALARS = [
    "*", "t.*", "a", "t.a", "`a`", "1", "(1)", "2", "'x'", "a b", "a DESC", "a = b", "count(*)", "count(*) n", "ts",
    "count(DISTINCT a)", "sum(a) OVER (ORDER BY ts)", "window(ts, '1 hour')", "window.start", "explode(m) k",
    "session_window(ts, '1 hour') w", "a IN (SELECT a FROM clicks)", "(SELECT max(a) FROM n1) m", "ALL", "a NULLS LAST",
    "first(a) IGNORE NULLS", "CASE WHEN a THEN b END e", "a LIKE ANY ('x')", "INTERVAL 1 DAY", "x -> x + 1",
]  # fmt: skip
NUMBERS = ["0", "1", "(2)", "3", "17", "²", "٣", "9" * 5000, "-1", "99999999999", "1 + 1", "ALL", "1.0"]
ODD_SCALARS = [
    *SCALARS, *EXPRESSIONS, "* EXCEPT (a)", "0", "²", "٣", "9" * 5000, "-1", "99999999999", "ROLLUP (a, b)", "offset",
    "b WITH CUBE", "b GROUPING SETS ((a), ())", "t.a = u.a AND t.ts < u.ts", "/*+ h */ a", "a AS b", "FROM", "",
]  # fmt: skip
RESTS = ["TABLE t (a INT)", "1 + 1", "'it\\'s; -- x'", "SELECT 1 FROM (SELECT 2)"]
TESTED = ["GIVEN s VALUES (1); EXPECT t EMPTY; END TEST", "KILL; SELECT CASE WHEN a THEN b END; END TEST"]
EXPLAINED = ["CREATE TABLE t (a INT)", "SHOW STREAMS", "SELECT 1 FROM (SELECT 2)", "DROP STREAM s"]
LENGTHS = ["10 minutes", "1 day 2 hours", "interval 5 seconds", "0.5 seconds", "2 weeks"]
# Heads of Spark's statements behind which the console always, or in these tests, reads its own.
OWN_HEADS = {"EXPLAIN", "INSERT", "SET", "RESET", "CLEAR", "MAP", "REDUCE"}


class Walk:
    """One walk through the grammar; draw decides at every fork."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.depth = 0
        self.count = 0
        self.words = 0
        self.made: set[str] = set()

    def one_of(self, options: list[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    @property
    def long(self) -> bool:
        """Whether the text is long enough: from here on all that may be left out is left out."""
        return self.words > 60

    def rule(self, name: str) -> list[Atom]:
        self.made.add(name)
        self.words += 1
        own = getattr(self, "of_" + name, None)
        if own is not None:
            return own()
        if name not in GRAMMAR.rules:
            return [Atom(name, self.terminal(name))]
        self.depth += 1
        atoms = self.tree(tree_of(name))
        self.depth -= 1
        return atoms

    def tree(self, tree: Tree) -> list[Atom]:
        kind, parts = tree[0], tree[1:]
        if kind == "word":
            word = parts[0]
            return [Atom("word", self.one_of([word, word.lower(), word.title()]))]
        if kind == "rule":
            return self.rule(parts[0])
        if kind == "all":
            return [atom for part in parts for atom in self.tree(part)]
        if kind == "either":
            return self.tree(self.one_of(list(parts)))
        if kind == "list":
            atoms = self.tree(parts[0])
            for _ in range(0 if self.long else self.draw(st.integers(0, 2))):
                atoms += [Atom("word", ","), *self.tree(parts[0])]
            return atoms
        return self.repeated(kind, parts[0])

    def repeated(self, sign: str, tree: Tree) -> list[Atom]:
        if sign == "?":
            excluded = self.long or (tree == ("rule", "IfNotExists") and "OrReplace" in self.made)
            return self.tree(tree) if not excluded and self.draw(st.booleans()) else []
        body = tree_of(tree[1]) if tree[0] == "rule" and tree[1] in GRAMMAR.rules else tree
        if body[0] == "either":  # clauses in any order, each at most once
            least = 1 if sign == "+" else 0
            chosen = self.draw(st.lists(st.sampled_from(body[1:]), unique=True, min_size=least, max_size=4))
            return [atom for clause in chosen for atom in self.tree(clause)]
        least = 1 if sign == "+" else 0
        count = least if self.long else self.draw(st.integers(least, 2))
        return [atom for _ in range(count) for atom in self.tree(tree)]

    # What keeps a made-up query from going deeper and deeper.

    def of_With(self) -> list[Atom]:
        return self.tree(tree_of("With")) if self.depth < 3 else []

    def of_SetTerm(self) -> list[Atom]:
        return self.rule(
            "SelectBlock" if self.depth > 6 or self.long else self.one_of(["SelectBlock", "Nested"])
        )

    def of_NamedTable(self) -> list[Atom]:
        tables = ["clicks", "t", "n1", "_x", "orders", "`my table`", "db.t", "`clicks`"]
        return [Atom("RelationName", self.one_of(tables))]

    def of_Relation(self) -> list[Atom]:
        kinds = ["NamedTable", "StreamTable", *([] if self.depth > 9 or self.long else ["Nested"])]
        atoms = self.rule(self.one_of(kinds))
        for clause in ("InWatermark", "TableAlias"):
            atoms += self.rule(clause) if self.draw(st.booleans()) else []
        return atoms

    # What makes most made-up queries ones that the lowering knows.

    def seldom(self, rule: str) -> list[Atom]:
        return self.rule(rule) if self.draw(st.integers(0, 9)) == 9 else []

    def of_SelectBlock(self) -> list[Atom]:
        atoms = [Atom("word", "SELECT")]
        atoms += self.seldom(self.one_of(["Distinct", "DistinctOn", "DistinctWithin"]))
        atoms += self.tree(("list", ("rule", "SelectItem"))) + self.rule("From")
        for clause in ("Where", "GroupBy", "Having"):
            atoms += self.tree(("?", ("rule", clause)))
        return atoms + self.seldom("Qualify")

    def of_Join(self) -> list[Atom]:
        kind = self.tree(("?", ("rule", "JoinKind")))
        return [*kind, Atom("word", "JOIN"), *self.rule("Relation"), *self.rule("JoinCondition")]

    def of_GeneratorCall(self) -> list[Atom]:
        call = self.one_of(["explode(xs)", "posexplode ( m )", "inline(ps)", "f(a)", "a.explode(*)"])
        return [Atom("GeneratorCall", call)]

    # Where numbers mean something, numbers of all kinds.

    def of_Limit(self) -> list[Atom]:
        return [Atom("word", "LIMIT"), Atom("Expression", self.one_of(NUMBERS))]

    def of_Offset(self) -> list[Atom]:
        return [Atom("word", "OFFSET"), Atom("Expression", self.one_of(NUMBERS))]

    def of_GroupBy(self) -> list[Atom]:
        by = [Atom("word", "GROUP"), Atom("word", "BY")]
        return [*by, Atom("Expression", self.one_of(NUMBERS + SCALARS)), *self.more()]

    def more(self) -> list[Atom]:
        return (
            [Atom("word", ","), Atom("Expression", self.one_of(SCALARS))] if self.draw(st.booleans()) else []
        )

    # What the grammar leaves open and the statement does not.

    def of_Type(self) -> list[Atom]:
        rules = ["SimpleType", "ArrayType", "MapType", "StructType", "IntervalType"]
        return self.rule("SimpleType" if self.depth > 6 else self.one_of(rules))

    def of_StructField(self) -> list[Atom]:
        colon = [Atom("word", ":")] if self.draw(st.booleans()) else []
        return [*self.of_ColumnDefName(), *colon, *self.rule("Type")]

    def of_ColumnDefName(self) -> list[Atom]:
        self.count += 1
        return [Atom("NewName", self.one_of([f"c{self.count}", f"`c {self.count}`"]))]

    def of_OptionKey(self) -> list[Atom]:
        self.count += 1
        n = self.count
        return [Atom("OptionKey", self.one_of([f"k{n}", f"'k {n}'", f"k.x-{n}", f"fields.`k {n}`"]))]

    def of_Option(self) -> list[Atom]:
        return [*self.rule("OptionKey"), Atom("word", "="), *self.rule("OptionValue")]

    def of_Unit(self) -> list[Atom]:
        return [
            Atom("word", self.one_of(["SECOND", "seconds", "Minutes", "HOUR", "days", "WEEK", "MILLISECOND"]))
        ]

    def of_IntervalPart(self) -> list[Atom]:
        return [Atom("Number", self.one_of(["1", "20", "'3'"])), *self.rule("Unit")]

    def of_Duration(self) -> list[Atom]:
        text = Atom("String", quote(self.one_of(LENGTHS)))
        interval = [Atom("word", "INTERVAL"), *self.rule("IntervalPart")]
        return self.one_of([[text], interval, [Atom("word", "interval"), text]])

    def of_Insert(self) -> list[Atom]:
        """INSERT INTO …; FROM … INSERT INTO is read by other tests: its SELECT has no FROM of its own."""
        return self.tree(tree_of("Insert")[1])

    def of_SparkHead(self) -> list[Atom]:
        return self.tree(self.one_of([o for o in tree_of("SparkHead")[1:] if o[1] not in OWN_HEADS]))

    def terminal(self, name: str) -> str:
        if name in ("String", "Path", "OptionValue"):
            return self.string()
        if name in ("Word", "SettingKey"):
            return self.one_of(["DAY", "abc", "Ünï"] if name == "Word" else ["spark.a.b", "x", "a-b", "'k'"])
        if name == "Number":
            return self.one_of(["1", "12", "1000000"])
        if name == "TypeName":
            return self.one_of(sorted(SIMPLE_TYPES))
        if name == "Expression" and "QueryBody" in self.made:
            return self.one_of(self.one_of([SCALARS] * 7 + [ODD_SCALARS]))
        rests = EXPLAINED if {"Explain", "ExpectError"} & set(self.made) else RESTS
        rests = TESTED if "Test" in self.made else rests
        pools = {"Query": QUERIES, "Expression": EXPRESSIONS, "Rest": rests}
        if name in pools:
            return self.one_of(pools[name])
        if name in ("ColumnName", "Target", "RelationName"):
            return self.one_of(["a.b", "a . `b c`", self.name()])
        if name == "Connector":
            return self.one_of(["rate-micro-batch", "json", "Kafka", self.name()])
        return self.name()

    def name(self) -> str:
        quoted = self.draw(st.text(min_size=1, max_size=6)).replace("`", "``")
        return self.one_of([*PLAIN, f"`{quoted}`"])

    def string(self) -> str:
        text = self.draw(st.text(max_size=8))
        double = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return self.one_of([quote(text), double, "r'a\\b'", "''"])


@st.composite
def statements(draw: Any, rules: list[str] = RULES) -> tuple[str, list[Atom]]:
    rule = draw(st.sampled_from(rules))
    return rule, Walk(draw).rule(rule)


GAPS = st.sampled_from([" ", "\n", "\t ", " /* x; ' */ ", " -- y; '\n", "  "])


@st.composite
def written(draw: Any) -> tuple[str, str]:
    """A rule and a statement of it, with all that may stand between words."""
    rule, atoms = draw(statements())
    return rule, "".join(atom.text + draw(GAPS) for atom in atoms)


def class_of(rule: str) -> tuple[type[Statement], ...]:
    """The statement classes that a rule may become."""
    rules = (rule, "InsertSet", "Spark") if rule == "Insert" else (rule,)
    return tuple(STATEMENTS[name] for name in rules)


@pytest.mark.parametrize("rule", RULES)
def test_every_statement_has_a_class_and_a_sentence_of_help(rule: str) -> None:
    assert class_of(rule)
    assert GRAMMAR.help[rule].endswith(".")


def test_no_rule_replaces_a_terminal() -> None:
    assert not set(load().rules) & set(TERMINALS)


def test_every_rule_is_used() -> None:
    used, todo = (
        set(),
        [
            *STATEMENTS,
            "QueryBody",
            "StatefulCall",
            "PivotTable",
            "StateTable",
            "LateTable",
            "WindowTable",
            "WithinWatermark",
        ],
    )
    while todo:
        rule = todo.pop()
        if rule in used:
            continue
        used.add(rule)
        names = re.findall(r"(?<!')\b[A-Z]\w*", re.sub(r"'[^']+'", " ", GRAMMAR.rules[rule]))
        for name in names:
            if name in GRAMMAR.rules:
                todo.append(name)
            else:
                assert name in TERMINALS or name == "List", f"{rule} names {name}"
    assert set(GRAMMAR.rules) == used


@examples(66)
@given(written())
def test_a_statement_of_the_grammar_is_read_as_that_statement(case: tuple[str, str]) -> None:
    rule, text = case
    # Outside of a test, KILL is a word of other consoles.
    statement = parse_text(Source("", text), in_test=True)
    assert isinstance(statement, class_of(rule))
    assert parse_text(Source("", text), in_test=True) == statement


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_read_as_its_statement(rule: str) -> None:
    @examples(2)
    @given(statements([rule]))
    def read(case: tuple[str, list[Atom]]) -> None:
        statement = parse_text(Source("", " ".join(atom.text for atom in case[1])), in_test=True)
        assert isinstance(statement, class_of(rule))

    read()


def takes(wanted: str, atom: Atom, tokens: list[Token], at: int) -> bool:
    """Whether what is expected at a place is what stands there."""
    if wanted.startswith("'"):
        return wanted.strip("'") == atom.text.upper()
    return wanted in TERMINALS and TERMINALS[wanted][0](tokens, at) is not None


@examples(50)
@given(statements())
def test_the_next_token_is_among_the_completions(case: tuple[str, list[Atom]]) -> None:
    rule, atoms = case
    before: list[Token] = []
    tokens = tokenize(" ".join(atom.text for atom in atoms))
    for atom in atoms:
        expected = GRAMMAR.expected(rule, before)
        assert any(takes(wanted, atom, tokens, len(before)) for wanted in expected), (before, atom, expected)
        before = tokens[: len(before) + len(tokenize(atom.text))]
    assert before == tokens
    assert ";" in GRAMMAR.expected(rule, tokens) or any(a.kind in ("Query", "Rest") for a in atoms)


@pytest.mark.parametrize("word", sorted(GRAMMAR.keywords))
def test_a_keyword_can_be_a_name(word: str) -> None:
    bare = word not in NOT_A_NAME
    for name in ([word, word.lower()] if bare else []) + [f"`{word}`", f"`{word.lower()}`"]:
        text = f"CREATE STREAM {name} ({name} INT) USING {name} OPTIONS ({name} 'x') COMMENT 'c'"
        statement = parse_text(Source("", text))
        assert statement.name.value == name.strip("`")  # type: ignore[attr-defined]
        assert statement.columns[0].name == name.strip("`")  # type: ignore[attr-defined]
        assert parse_text(Source("", f"DROP SINK {name}")).name.value == name.strip("`")  # type: ignore[attr-defined]


# ---- noise ----------------------------------------------------------------------------------------


def catalog() -> Catalog:
    """A catalog in which many of the made-up names mean something."""
    made = Catalog()
    for text in (
        "CREATE STREAM clicks (a INT, n1 STRING, ts TIMESTAMP) USING json OPTIONS (path 'p') "
        "WITH WATERMARK ts DELAY '1 hour'",
        "CREATE STREAM t AS SELECT a, ts FROM clicks",
        "CREATE STREAM _x (a INT) USING values",
        "CREATE SINK Per_User USING parquet OPTIONS (path 'q')",
        "CREATE SINK n1 USING memory",
    ):
        entry = plan(parse_text(Source("", text)), Context(made))
        if isinstance(entry, DefineStream):
            made = made.having(entry.stream)
        else:
            assert isinstance(entry, DefineSink)
            made = made.having(entry.sink)
    return made


CATALOG = catalog()


def read_and_plan(text: str) -> None:
    """Read and plan a script; whatever is wrong with it is said in our own words, placed in it."""
    try:
        pieces = split_script(Source("noise.sql", text))
    except StreamsqlError as error:
        assert error.span is not None
        assert within(error.span, text)
        return
    for piece in pieces:
        try:
            statement = parse(piece)
        except StreamsqlError as error:
            assert error.span is not None
            assert within(error.span, text)
            continue
        try:
            plan(statement, Context(CATALOG))
        except StreamsqlError as error:
            place = error.span or statement.span
            assert statement.span.start <= place.start < place.end <= statement.span.end, error.message


def within(span: Span, text: str) -> bool:
    return 0 <= span.start <= span.end <= len(text)


STRAY = st.one_of(
    st.sampled_from(sorted(GRAMMAR.keywords)),
    st.sampled_from(
        ["(", ")", ",", ".", ";", "=", "*", "'", '"', "`", "${", "${x}", "-", "/*", "*/", "--", "|>", "\\"]
    ),
    st.sampled_from(
        ["1", "-1", "²", "٣", "1e999", "'1 month'", "'-1 second'", "''", "x'4'", "99999999999999999999"]
    ),
    st.sampled_from([*PLAIN, "SELECT", "FROM", "/*+ h */", "count(*)", "GROUP BY", "ROLLUP", "LIMIT"]),
    st.text(min_size=1, max_size=3),
)


@st.composite
def noisy(draw: Any) -> str:
    """A statement in which tokens are dropped, doubled, replaced or moved."""
    _, atoms = draw(statements())
    tokens = [t.text for t in tokenize(" ".join(a.text for a in atoms))]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(tokens) - 1)))
        change = draw(st.sampled_from(["drop", "double", "replace", "insert", "cut"]))
        if change == "drop":
            del tokens[at : at + 1]
        elif change == "double":
            tokens[at:at] = tokens[at : at + 1]
        elif change == "replace":
            tokens[at : at + 1] = [draw(STRAY)]
        elif change == "insert":
            tokens.insert(at, draw(STRAY))
        else:
            del tokens[at:]
    return draw(st.sampled_from([" ", "", "\n"])).join(tokens) if draw(st.booleans()) else " ".join(tokens)


@pytest.mark.slow
@examples(200)
@given(noisy())
def test_noise_raises_only_our_own_errors(text: str) -> None:
    read_and_plan(text)


CLAUSES = st.sampled_from(
    """SELECT|DISTINCT|DISTINCT ON (a)|a|t.a|count(*)|AS|b|,|FROM|clicks|t|JOIN|LEFT JOIN|ON|USING (a)|a = b|WHERE|
    GROUP BY|window(ts, '1 hour')|HAVING|ORDER BY|1|2 DESC|LIMIT|OFFSET|UNION ALL|(|)|WITH|x|LATERAL VIEW|
    explode(xs)|IN (SELECT a FROM clicks)|*|STREAM|WATERMARK|ts|DELAY OF INTERVAL 1 MINUTE|OVER ()|QUALIFY""".split(
        "|"
    )
).map(str.strip)


@examples(133)
@given(st.lists(CLAUSES, max_size=14).map(" ".join))
def test_clauses_in_any_order_raise_only_our_own_errors(text: str) -> None:
    read_and_plan("SELECT " + text)


def is_read(text: str) -> bool:
    try:
        return read_query(text).body is not None
    except StreamsqlError:
        return False


@st.composite
def queries(draw: Any) -> str:
    """A query of all clauses, whatever its expressions mean."""
    return " ".join(atom.text for atom in Walk(draw).rule("QueryBody"))


def test_any_query_is_lowered_or_refused_in_our_own_words() -> None:
    known = []

    @examples(41)
    @given(queries())
    def check(text: str) -> None:
        known.append(is_read(text))
        read_and_plan(text)
        read_and_plan(f"CREATE LIVE TABLE lt OUTPUT MODE UPDATE KEY (a) AS {text}")

    check()
    assert sum(known) > len(known) / 5  # the rest has expressions that end too early


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n[:12])
def test_any_number_is_lowered_or_refused_in_our_own_words(number: str) -> None:
    for table in ("clicks", "orders"):
        read_and_plan(f"SELECT a, b FROM {table} LIMIT {number}")
        read_and_plan(f"SELECT a, b FROM {table} ORDER BY a LIMIT {number} OFFSET {number}")
        read_and_plan(f"SELECT a, count(*) FROM {table} GROUP BY {number} ORDER BY {number}")
        read_and_plan(f"SELECT count(*) FROM {table} GROUP BY a ORDER BY {number}")


@examples(50)
@given(st.text(max_size=60))
def test_any_text_raises_only_our_own_errors(text: str) -> None:
    read_and_plan(text)


@pytest.mark.parametrize("depth", [50, 600])
def test_deep_nesting_raises_only_our_own_errors(depth: int) -> None:
    select = "SELECT a FROM (" * (depth // 4) + "t" + ")" * (depth // 4)
    read_and_plan(select)
    read_and_plan("SELECT " + "(" * depth + "1" + ")" * depth + " FROM t")
    read_and_plan("SELECT a FROM t" + " UNION ALL SELECT a FROM t" * depth)
    read_and_plan("CREATE STREAM s (a " + "ARRAY<" * depth + "INT" + ">" * depth + ") USING rate")
    read_and_plan("/*" * depth + "*/" * depth + "SELECT 1")


# ---- tokens -----------------------------------------------------------------------------------------

SNIPPETS = st.one_of(
    st.text(max_size=5),
    st.sampled_from(
        [
            "SELECT ",
            "BEGIN ",
            "END ",
            "CASE ",
            "END IF; ",
            "EXECUTE ",
            ";",
            "'a;b'",
            "'it\\'s'",
            '"x',
            "-- c;'\n",
        ]
    ),
    st.sampled_from(
        ["/* ; ' */", "/* /* */ */", "/*+ h */", "`a;``b`", "r'\\'", "1.5e3", "a1", "<=>", "|>", "\\", "$"]
    ),
)
TEXTS = st.lists(SNIPPETS, max_size=12).map("".join)


@examples(100)
@given(TEXTS)
def test_tokens_and_gaps_make_the_text(text: str) -> None:
    tokens = tokenize(text, strict=False)
    at = 0
    for token in tokens:
        assert token.start >= at
        assert token.text == text[token.start : token.end] != ""
        assert tokenize(text[at : token.start]) == []
        at = token.end
    try:
        assert tokenize(text) == tokens
        assert tokenize(text[at:]) == []
    except StreamsqlError as error:
        assert error.span is not None
        assert within(error.span, text)


@examples(66)
@given(TEXTS)
def test_splitting_loses_nothing_but_semicolons(text: str) -> None:
    tokens = tokenize(text, strict=False)
    kept = [token for piece in split(tokens) for token in piece.tokens]
    assert [t for t in tokens if t.text != ";"] == [t for t in kept if t.text != ";"]
    assert all(piece.tokens for piece in split(tokens))
    assert all(a.start < b.start for a, b in zip(kept, kept[1:], strict=False))


@examples(33)
@given(st.lists(written().map(lambda case: case[1]), min_size=1, max_size=4))
def test_statements_are_split_where_they_end(texts: list[str]) -> None:
    texts = [t for t in texts if not re.match(r"(?i)\s*(begin|execute)\b", t)]
    pieces = split_script(Source("", ";".join(texts)))
    assert [tokens_of(p.text) for p in pieces] == [tokens_of(t) for t in texts]


def tokens_of(text: str) -> list[tuple[str, str]]:
    return [(t.kind, t.text) for t in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT ';'; SELECT 2", 2),
        ("SELECT 'it\\'s; fine'", 1),
        ('SELECT "a;b" -- it\'s; a comment\n; SELECT 2;', 2),
        ("SELECT 1 /* ; ' */; -- ;\nSELECT 2", 2),
        ("SELECT /* a /* b; */ c; */ 1; SELECT `x;y`", 2),
        ("SELECT r'\\'; SELECT 2", 2),
        (";;; SELECT 1 ;;", 1),
        ("BEGIN SELECT 1; SELECT 2; END; SELECT 3", 2),
        ("BEGIN IF true THEN SELECT 1; END IF; SELECT CASE WHEN a THEN 1 END; END; SELECT 3", 2),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END;", 1),
        ("SELECT 1 AS begin; SELECT 2 AS end; SELECT CASE WHEN 1 = 1 THEN 2 END;", 3),
        ("", 0),
        ("-- nothing\n/* at all; */", 0),
    ],
)
def test_where_a_script_is_split(text: str, count: int) -> None:
    assert len(split_script(Source("", text))) == count


@examples(66)
@given(st.text())
def test_what_is_quoted_is_read_back(text: str) -> None:
    (string,) = tokenize(quote(text))
    assert (string.kind, unquote(string)) == ("string", text)
    if text:
        (name,) = tokenize(quote_name(text))
        assert unquote(name) == text
        assert name.kind == "quoted" or (text.isascii() and text.upper() not in NOT_A_NAME)


# ---- variables ----------------------------------------------------------------------------------------

VALUES = {"a": "", "b": "x", "long.name": "several words; 'quoted'", "c-d": "ünï\n"}
AROUND = st.text(alphabet="ab (),=\n\té1", max_size=6)


@st.composite
def templates(draw: Any) -> list[tuple[str, str]]:
    """(text as written, text it stands for), alternating plain pieces and variables."""
    pieces: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(0, 4))):
        plain, name = draw(AROUND), draw(st.sampled_from(sorted(VALUES)))
        spaced = draw(st.sampled_from([name, f" {name} "]))
        pieces += [(plain, plain), ("${" + spaced + "}", VALUES[name])]
    last = draw(AROUND)
    return [*pieces, (last, last)]


@examples(66)
@given(templates())
def test_places_in_a_text_with_variables_lead_back(pieces: list[tuple[str, str]]) -> None:
    text = "".join(old for old, _ in pieces)
    made, points = substitute(Source("", text), VALUES)
    origin = Origin(tuple(points))
    assert made == "".join(new for _, new in pieces)
    old_at = new_at = 0
    for index, (old, new) in enumerate(pieces):
        for offset in range(len(new)):
            found = origin.span(Span(new_at + offset, new_at + offset + 1))
            is_variable = index % 2 == 1
            assert found.start == old_at + (0 if is_variable else offset)
            assert found.start < found.end <= old_at + len(old)
        if new:
            assert origin.span(Span(new_at, new_at + len(new))) == Span(old_at, old_at + len(old))
        old_at, new_at = old_at + len(old), new_at + len(new)


def test_variables_in_comments_are_left_alone() -> None:
    text = "SELECT /*+ H(${b}) */ '--${b}', ${b} -- ${nope}\n /* ${nope} /* '${nope} */ */ FROM `${b}`"
    made, _ = substitute(Source("", text), VALUES)
    assert made == "SELECT /*+ H(x) */ '--x', x -- ${nope}\n /* ${nope} /* '${nope} */ */ FROM `x`"


def test_an_error_behind_a_variable_is_placed_in_the_text_as_written() -> None:
    text = "SHOW STREAMS;\nCREATE STREAM ${long} USING rate OPTIONS (x y z);"
    second = split_script(Source("a.sql", text))[1]
    with pytest.raises(StreamsqlError) as caught:
        parse(second, {"long": "a_very_long_name_for_a_stream"})
    span = caught.value.span
    assert span is not None
    assert text[span.start : span.end] == "z"


# ---- SHOW CREATE ----------------------------------------------------------------------------------------

ANY_NAME = st.one_of(
    st.sampled_from([*PLAIN, "select", "a`b", "x.y", "1st"]), st.text(min_size=1, max_size=5)
)
ANY_TEXT = st.one_of(
    st.text(max_size=8), st.sampled_from(["it's", 'a"b', "back\\slash", "\\%", "two\nlines", "`"])
)
TYPES = st.builds(lambda draw: " ".join(a.text for a in draw), st.deferred(lambda: types()))


@st.composite
def types(draw: Any) -> list[Atom]:
    return Walk(draw).rule("Type")


@st.composite
def column_lists(draw: Any, *needed: str) -> str:
    names = draw(st.lists(ANY_NAME, max_size=3, unique_by=str.casefold))
    columns = [f"{quote_name(n)} {draw(TYPES)}" for n in names if n.casefold() not in needed]
    extra = st.sampled_from(["", " NOT NULL"]), ANY_TEXT.map(lambda t: f" COMMENT {quote(t)}" if t else "")
    columns = [c + draw(extra[0]) + draw(extra[1]) for c in columns + [f"{n} TIMESTAMP" for n in needed]]
    return f"({', '.join(columns)})"


def option_list(draw: Any, known: dict[str, Any]) -> str:
    chosen = draw(st.lists(st.sampled_from(sorted(known)), unique=True)) if known else []
    given = {"path": ANY_TEXT} | {key: known[key] for key in chosen}
    return ", ".join(f"{key} {quote(draw(values))}" for key, values in given.items())


@st.composite
def streams(draw: Any) -> str:
    known = {
        "latestFirst": st.just("true"),
        "dateFormat": ANY_TEXT,
        "lineSep": ANY_TEXT,
        "timeZone": ANY_TEXT,
    }
    mark = draw(st.sampled_from(["", "ts", "to_timestamp(ts) AS at"]))
    clauses = [f"OPTIONS ({option_list(draw, known)})"]
    clauses += [f"WITH WATERMARK {mark} DELAY {draw(st.sampled_from(LENGTHS).map(quote))}"] if mark else []
    clauses += [f"COMMENT {quote(draw(ANY_TEXT))}"] if draw(st.booleans()) else []
    columns = draw(column_lists("ts"))
    connector = draw(st.sampled_from(["json", "JSON", "csv"]))
    assume(not any(kind in columns.upper() for kind in connectors()[connector.lower()].no_types))
    listed = " ".join(draw(st.permutations(clauses)))
    return f"CREATE STREAM {quote_name(draw(ANY_NAME))} {columns} USING {connector} {listed}"


@st.composite
def sinks(draw: Any) -> str:
    columns = ", ".join(map(quote_name, draw(st.lists(ANY_NAME, min_size=1, max_size=2, unique=True))))
    files = [f"OPTIONS ({option_list(draw, {})})", f"PARTITIONED BY ({columns})"]
    memory = [f"KEY ({columns})", f"RETAIN {draw(st.integers(1, 10**9))} ROWS"]
    connector, clauses = draw(st.sampled_from([("parquet", files), ("csv", files[:1]), ("memory", memory)]))
    clauses = [*clauses, f"COMMENT {quote(draw(ANY_TEXT))}"]
    listed = " ".join(draw(st.permutations(clauses)))
    return f"CREATE SINK {quote_name(draw(ANY_NAME))} {draw(column_lists('x'))} USING {connector} {listed}"


def entry(text: str) -> Stream | Sink:
    made = plan(parse_text(Source("", text)), Context(Catalog()))
    if isinstance(made, DefineStream):
        return made.stream
    assert isinstance(made, DefineSink)
    return made.sink


@examples(41)
@given(streams())
def test_show_create_stream_makes_the_same_stream(text: str) -> None:
    made = entry(text)
    assert entry(made.sql()) == made


@examples(25)
@given(sinks())
def test_show_create_sink_makes_the_same_sink(text: str) -> None:
    made = entry(text)
    assert entry(made.sql()) == made


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM s AS SELECT a, ';' FROM clicks -- end",
        "CREATE STREAM s WITH WATERMARK to_timestamp(a) AS ts DELAY OF INTERVAL 1 HOUR AS SELECT a FROM clicks",
        "CREATE STREAM s USING rate OPTIONS (rowsPerSecond 5) WITH WATERMARK timestamp DELAY '1 minute'",
        "CREATE STREAM s USING rate-micro-batch OPTIONS (rowsPerBatch 5)",
        "CREATE STREAM s (a INT) USING socket FORMAT json OPTIONS (host 'h', port 1)",
        "CREATE STREAM s (a INT, ts TIMESTAMP) USING datagen OPTIONS (fields.a 'random 1 to 5', seed 3)",
        "CREATE STREAM s (a INT) USING values",
    ],
)
def test_show_create_stream_of_each_kind(text: str) -> None:
    def made(sql: str) -> Stream:
        planned = plan(parse_text(Source("", sql)), Context(CATALOG))
        assert isinstance(planned, DefineStream)
        return planned.stream

    assert made(made(text).sql()) == made(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM s (`my ts` TIMESTAMP) USING json OPTIONS (path 'x') "
        "WITH WATERMARK `my ts` DELAY '1 hour'",
        "CREATE STREAM s (a ARRAY< -- why\n INT>) USING json OPTIONS (path 'x')",
        "CREATE STREAM s (a INT) USING json OPTIONS (path 'x') "
        "WITH WATERMARK timestamp_millis(a -- c\n) AS t DELAY '1 hour'",
    ],
)
def test_show_create_stream_of_awkward_texts(text: str) -> None:
    made = entry(text)
    assert entry(made.sql()) == made


def test_spaces_in_the_names_of_a_type_are_kept() -> None:
    made = entry("CREATE STREAM s (a STRUCT<`two  spaces`: INT>) USING json OPTIONS (path 'x')")
    assert isinstance(made, Stream)
    assert made.columns[0].type == "STRUCT<`two  spaces`: INT>"


@pytest.mark.parametrize(
    ("statement", "duration"),
    [
        ("INSERT INTO a TRIGGER EVERY 5 SECONDS SELECT * FROM b", "5 seconds"),
        ("CREATE LIVE TABLE t TRIGGER EVERY 1 HOUR AS SELECT * FROM b", "1 hour"),
        (
            "CREATE STREAM s USING rate WITH WATERMARK timestamp DELAY OF 1 MINUTE 30 SECONDS",
            "1 minute 30 seconds",
        ),
    ],
)
def test_durations_need_no_interval(statement: str, duration: str) -> None:
    read: Any = parse_text(Source("t", statement))
    assert duration == (read.watermark.delay if "WATERMARK" in statement else read.trigger.interval)


def test_show_progress_of_query() -> None:
    for form in ("SHOW PROGRESS q", "SHOW PROGRESS OF q", "SHOW PROGRESS OF QUERY q"):
        read: Any = parse_text(Source("t", f"{form} LAST 5"))
        assert read.name.value == "q"
