"""The lines of a compound statement of Spark (SQL scripting, BEGIN … END), and its keywords."""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.features.fmt.keyword_places import PlaceReader
from streamsql.language.statements.base import SIMPLE_TYPES
from streamsql.language.tokens import Token

_CLOSED_BY_NAME = ("IF", "CASE", "WHILE", "FOR", "LOOP", "REPEAT")
_ENDS = frozenset(["END", "ELSE", "ELSEIF", "WHEN", "UNTIL"])
_OF_DECLARE = frozenset(["DEFAULT", "CONDITION", "FOR", "SQLSTATE", "VALUE"])
_NO_TOKEN = Token("sign", "", 0, 0, "")


class NotCompound(Exception):
    """The tokens are not a compound statement that can be read."""


def begins_compound(tokens: Sequence[Token]) -> bool:
    """Whether a statement is a compound one."""
    return bool(tokens) and tokens[0].upper == "BEGIN" and tokens[-1].text != "BEGIN"


class CompoundReader:
    """Reads the structure of a compound statement into the places of a PlaceReader."""

    def __init__(self, reader: PlaceReader) -> None:
        self.reader = reader
        self.places = reader.places
        self.tokens = reader.tokens
        self.at = 0

    def read(self) -> None:
        """Raises NotCompound."""
        self.places.compounds.add(self.tokens[0].start)
        self._statement(0)
        if self.at < len(self.tokens):
            raise NotCompound

    @property
    def _token(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _NO_TOKEN

    def _line(self, depth: int) -> None:
        self.places.lines[self._token.start] = depth

    def _keyword(self, *words: str) -> None:
        """Take one of these words; any without one."""
        token = self._token
        if token.kind != "word" or words and token.upper not in words:
            raise NotCompound
        self.places.keywords.add(token.start)
        self.at += 1

    def _statements(self, depth: int) -> None:
        while self._token.upper not in _ENDS:
            if self.at >= len(self.tokens):
                raise NotCompound
            self._statement(depth)

    def _statement(self, depth: int, *, on_line: bool = False) -> None:
        """on_line: it goes on a line that has begun."""
        if not on_line:
            self._line(depth)
        if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].text == ":":
            self.at += 2
        word = self._token.upper
        if word == "BEGIN":
            self._keyword()
            while self._token.upper in ("NOT", "ATOMIC"):
                self._keyword()
            self._statements(depth + 1)
            self._end("", depth)
        elif word in _CLOSED_BY_NAME:
            self._structure(word, depth)
        elif word == "DECLARE":
            self._declare(depth)
        else:
            self._plain()

    def _structure(self, word: str, depth: int) -> None:
        self._keyword()
        if word == "FOR":
            self._for()
        elif word == "WHILE":
            self._expression("DO")
        elif word == "IF":
            self._expression("THEN")
        elif word == "CASE" and self._token.upper != "WHEN":
            self._expression("WHEN", take=False)
        if word != "CASE":
            self._statements(depth + 1)
        depth += word == "CASE"
        while self._token.upper in ("ELSEIF", "WHEN"):
            self._line(depth)
            self._keyword()
            self._expression("THEN")
            self._statements(depth + 1)
        if self._token.upper in ("ELSE", "UNTIL"):
            self._line(depth)
            until = self._token.upper == "UNTIL"
            self._keyword()
            if until:
                self._expression("END", take=False)
            else:
                self._statements(depth + 1)
        self._end(word, depth - (word == "CASE"))

    def _for(self) -> None:
        if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].upper == "AS":
            self.at += 1
            self._keyword("AS")
        start, end = self.at, self._find("DO")
        query = self.tokens[start:end]
        if not query:
            raise NotCompound
        self.places.queries.append((query[0].start, query[-1].end))
        self.reader.query(query)
        self.at = end
        self._keyword("DO")

    def _expression(self, closing: str, *, take: bool = True) -> None:
        start, end = self.at, self._find(closing)
        if start == end:
            raise NotCompound
        self.reader.expression(self.tokens[start].start, self.tokens[end - 1].end)
        self.at = end
        if take:
            self._keyword(closing)

    def _find(self, closing: str) -> int:
        """The place of a word outside of parentheses and CASE expressions."""
        depth = 0
        for at in range(self.at, len(self.tokens)):
            token = self.tokens[at]
            named = at > 0 and self.tokens[at - 1].text == "."
            if not depth and token.upper == closing and not named:
                return at
            opens = token.text == "(" or token.upper == "CASE" and not named
            closes = token.text == ")" or token.upper == "END" and not named
            depth += opens - closes
            if token.text == ";" or depth < 0:
                break
        raise NotCompound

    def _end(self, word: str, depth: int) -> None:
        self._line(depth)
        self._keyword("END")
        if word:
            self._keyword(word)
        if self._token.kind in ("word", "quoted"):  # the label
            self.at += 1
        if self.at < len(self.tokens):
            if self._token.text != ";":
                raise NotCompound
            self.at += 1

    def _declare(self, depth: int) -> None:
        """A variable, a condition, or a handler with its statement."""
        ahead = [t.upper for t in self.tokens[self.at : self.at + 3]]
        self._keyword()
        if ahead[2:] != ["HANDLER"]:
            self._variable()
            return
        for _ in range(3):
            self._keyword("EXIT", "CONTINUE", "HANDLER", "FOR")
        while self._token.upper in ("SQLEXCEPTION", "NOT", "FOUND", "SQLSTATE", "VALUE"):
            self._keyword()
            self.at += self._token.kind == "string"
        while self._token.text == "," or self.tokens[self.at - 1].upper in (",", "FOR"):
            self.at += 1  # names of conditions
        block = self._token.upper == "BEGIN"
        self._statement(depth if block else depth + 1, on_line=block)

    def _variable(self) -> None:
        """What follows DECLARE of a variable or a condition."""
        end = self._end_of_statement()
        for at in range(self.at + 1, end):
            token = self.tokens[at]
            if token.upper not in _OF_DECLARE and token.upper not in SIMPLE_TYPES:
                continue
            if token.kind == "word" and self.tokens[at - 1].text != ",":
                self.places.keywords.add(token.start)
            if token.upper == "DEFAULT" and at + 1 < end:
                self.reader.expression(self.tokens[at + 1].start, self.tokens[end - 1].end)
                break
        self.at = end + 1

    def _plain(self) -> None:
        start, end = self.at, self._end_of_statement()
        if self._token.upper in ("LEAVE", "ITERATE") and end == start + 2:
            self._keyword()
            self.at = end + 1
            return
        if end > start:
            self.places.nested.append((self.tokens[start].start, self.tokens[end - 1].end))
        self.at = end + 1

    def _end_of_statement(self) -> int:
        for at in range(self.at, len(self.tokens)):
            if self.tokens[at].text == ";":
                return at
        raise NotCompound
