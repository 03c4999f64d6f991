"""An unfinished statement with the cursor in it: the items expected there, and the text before it.

Expected items have the form of the grammar: keywords in quotes, and terminals by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile

from streamsql.language.grammar import load
from streamsql.language.statements.registry import STATEMENTS, first_words
from streamsql.language.terminals import TERMINALS
from streamsql.language.token_groups import closing, items_of
from streamsql.language.tokens import Token, unquote
from streamsql.language.unfinished.query_cursor import QueryCursor, query_cursor, query_start
from streamsql.language.unfinished.spark_words import expected_by_spark

# Spark's statements come after the console's own.
_SPARK_INSERT = frozenset(("'PARTITION'", "'BY'"))
# Terminals of more than one token.
_OF_SEVERAL_TOKENS = frozenset(("OptionKey", "SettingKey", "Connector"))


@dataclass(frozen=True)
class UnfinishedStatement:
    """The statement at the cursor.

    before, behind: its tokens on both sides; typed: the unfinished word between them. inside: "" in plain
    SQL, the quote sign in a string, `comment` in a comment.
    """

    before: list[Token]
    typed: str = ""
    behind: tuple[Token, ...] = ()
    inside: str = ""

    # ---- items expected at the cursor -----------------------------------------------------

    @cached_property
    def query(self) -> QueryCursor | None:
        """The cursor in the statement's query; None if the cursor is not in a query."""
        start = query_start(self.before)
        return None if start is None else query_cursor(self.before[start:], list(self.behind), self.typed)

    @cached_property
    def expected(self) -> tuple[str, ...]:
        """The keywords (in quotes) and terminals expected at the cursor."""
        if self.query is not None and not self.inside:
            return self.query.expected
        return tuple(_in_order_of_use(dict.fromkeys(self._expected()), self._before_key))

    def _expected(self) -> Iterator[str]:
        wanted = _expected_by_grammar(self._before_key)
        for name in sorted(wanted, key=_SPARK_INSERT.__contains__):
            if name == "Query":
                yield from (
                    ("'SELECT'", "'WITH'", "'VALUES'") if self.head == "INSERT" else ("'SELECT'", "'WITH'")
                )
            elif name == "Word" and self.head == "HELP":
                yield from (*_keywords(self.before[1:]), name)
            else:
                yield name
        if self.head == "EXPLAIN" and self.typed:
            yield from _keywords([])
        yield from expected_by_spark(self._before_key, self.typed_key)

    @cached_property
    def _key(self) -> tuple[list[Token], str]:
        before, key = (self.before, self.typed) if self.inside else _split_key(self.before, self.typed)
        several = len(before) < len(self.before) and _expected_by_grammar(before).keys() & _OF_SEVERAL_TOKENS
        return (before, key) if several else (self.before, self.typed)

    @property
    def _before_key(self) -> list[Token]:
        """The tokens before the typed word or, if it ends a key of several parts, before the key."""
        return self._key[0]

    @property
    def typed_key(self) -> str:
        """The typed word, with the previous parts of its key: `spark.sql.shu`."""
        return self._key[1]

    @property
    def expects_path(self) -> bool:
        """Whether the quote at the cursor is always a path."""
        behind = self.last in ("LOCATION", "INPATH", "CHECKPOINT")
        return behind or "Path" in _expected_by_grammar(self.before)

    # ---- kind of statement ----------------------------------------------------------------

    @property
    def head(self) -> str:
        """Its first word, upper case; "" if there is none before the cursor."""
        return self.before[0].upper if self.before else ""

    @property
    def first_written(self) -> str:
        """Its first word as written."""
        return self.before[0].text if self.before else self.typed

    @property
    def last(self) -> str:
        """The last word before the cursor, upper case; "" if there is none."""
        return self.before[-1].upper if self.before else ""

    def has(self, *words: str, within: int | None = None) -> bool:
        """Whether one of these words is among the (first) tokens before the cursor."""
        return any(t.upper in words for t in self.before[:within])

    @property
    def target(self) -> str:
        """The name after INSERT INTO or WATCH; "" if there is none."""
        word = "INTO" if self.head == "INSERT" else self.head
        at = next((i for i, t in enumerate(self.before[:-1]) if t.upper == word), None)
        return "" if at is None else unquote(self.before[at + 1])

    @property
    def declared_columns(self) -> list[tuple[str, str]]:
        """The columns declared before the cursor, in a CREATE: (name, type)."""
        return _declared(self.before)

    def following_query(self) -> str:
        """The text of the query after the cursor; "" for none."""
        heads = ("SELECT", "WITH")
        start = next((i for i, t in enumerate(self.behind) if t.upper in heads), len(self.behind))
        return " ".join(token.text for token in self.behind[start:])

    # ---- connector, options and settings --------------------------------------------------

    @property
    def connector(self) -> str:
        """The connector after USING, case-folded; "" if there is none."""
        using = next((i for i, t in enumerate(self.before) if t.upper == "USING"), len(self.before))
        name = ""
        for token in self.before[using + 1 :]:
            if name and token.text != "-" and not name.endswith("-"):
                break
            name += unquote(token).casefold()
        return name

    @property
    def option_keys(self) -> set[str]:
        """The keys of its options before the cursor, case-folded."""
        options = next((i for i, t in enumerate(self._before_key) if t.upper == "OPTIONS"), 0)
        keys = _given_keys(self._before_key[options + 2 :])
        return {"".join(unquote(t) for t in key).casefold() for key in keys}

    @property
    def option_key(self) -> str:
        """The key of the option whose value is expected, case-folded."""
        tokens = self._before_key
        tokens = tokens[:-1] if tokens[-1:] and tokens[-1].text == "=" else tokens
        return _split_key(tokens[:-1], unquote(tokens[-1]))[1].casefold() if tokens else ""

    @property
    def setting(self) -> str:
        """The key of a SET whose value is expected, case-folded; "" for none."""
        if self.head != "SET" or self.last != "=":
            return ""
        return "".join(unquote(t) for t in self.before[1:-1]).casefold()


def _keywords(tokens: list[Token]) -> Iterator[str]:
    """The keywords that the grammar expects after the tokens of a statement."""
    return (name for name in _expected_by_grammar(tokens) if name.startswith("'"))


def _expected_by_grammar(tokens: list[Token]) -> dict[str, None]:
    """The keywords (in quotes) and terminals that the grammar expects after the tokens of a statement."""
    grammar = load()
    wanted: dict[str, None] = {}
    for rule in _rules_of(tokens[0].upper) if tokens else STATEMENTS:
        wanted.update(dict.fromkeys(grammar.expected(rule, tokens)))
    return wanted


@lru_cache(maxsize=256)
def _rules_of(first: str) -> tuple[str, ...]:
    """The rules of statements that may begin with a word, without that of Spark's own statements."""
    beginning = {
        rule for word, rules in first_words().items() if word == first or word in TERMINALS for rule in rules
    }
    return tuple(rule for rule in STATEMENTS if rule in beginning and rule != "Spark")


def _split_key(tokens: list[Token], typed: str) -> tuple[list[Token], str]:
    """The tokens and the typed word, with a key of several parts (`spark.sql.shu`) as one word."""
    end, at = len(tokens), len(tokens)
    while (
        at
        and tokens[at - 1].text not in ("(", ")", ",", "=", ";")
        and (at == end or tokens[at - 1].end == tokens[at].start)
    ):
        joined = tokens[at - 1].kind in ("word", "quoted", "number") or tokens[at - 1].text in (".", "-")
        if not joined or (at == end and tokens[at - 1].text not in (".", "-")):
            break
        at -= 1
    return tokens[:at], "".join(t.text for t in tokens[at:]) + typed


def _given_keys(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each key of an option list, up to its value."""
    key: list[Token] = []
    for token in tokens:
        if token.text == ",":
            key = []
        elif not key:
            key = [token]
            yield key
        elif token.text in (".", "-") or key[-1].text in (".", "-"):
            key.append(token)


def _declared(tokens: list[Token]) -> list[tuple[str, str]]:
    opening = next((i for i, t in enumerate(tokens) if t.text == "(" or t.upper == "USING"), None)
    if opening is None or tokens[opening].text != "(":
        return []
    columns = []
    for item in items_of(tokens[opening + 1 : closing(tokens, opening)], of_types=True):
        kind = takewhile(lambda token: token.upper not in ("COMMENT", "NOT"), item[1:])
        if item and item[0].kind in ("word", "quoted"):
            columns.append((unquote(item[0]), " ".join(token.text for token in kind)))
    return columns


_USED_MOST = {
    "": "SELECT CREATE SHOW INSERT DESCRIBE WATCH WHY STOP START DROP PREVIEW EXPLAIN SET HELP COPY",
    "SHOW": "QUERIES TABLES STREAMS LIVE SINKS PROGRESS CONNECTORS CREATE VIEWS FUNCTIONS BATCHES LATENESS",
    "SHOW CREATE": "STREAM LIVE SINK TABLE FUNCTION TABLES",
    "DESCRIBE": "QUERY STREAM LIVE SINK CONNECTOR",
    "DESC": "QUERY STREAM LIVE SINK CONNECTOR",
    "CREATE": "STREAM LIVE SINK TABLE TEMPORARY FUNCTION VIEW OR",
    "CREATE OR REPLACE": "STREAM LIVE SINK TEMPORARY FUNCTION",
    "DROP": "QUERY STREAM LIVE SINK TABLE VIEW FUNCTION",
}
"""The keywords that are offered first, by the words before the cursor; the others follow in the order of the
grammar.
"""


def _in_order_of_use(expected: Iterable[str], before: list[Token]) -> list[str]:
    """Expected items, keywords in quotes and terminals, with the keywords that are used most first."""
    first = _USED_MOST.get(" ".join(t.upper for t in before[:4]), "").split()
    place = {word: number for number, word in enumerate(first)}
    return sorted(expected, key=lambda item: place.get(item.strip("'").partition(" ")[0], len(place)))
