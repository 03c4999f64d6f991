"""Characters that are not those of SQL are named, with their place and what to type; strings keep theirs."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Console
from pyspark.errors import ParseException

from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse_script, split_script

# (a text; the character that is named; the hint)
WRONG = [
    ("SELECT ‘a‘ AS b", "U+2018 LEFT SINGLE QUOTATION MARK", "type '"),
    ("SELECT ’a’ AS b", "U+2019 RIGHT SINGLE QUOTATION MARK", "type '"),
    ("SELECT 'a’ AS b", "U+2019 RIGHT SINGLE QUOTATION MARK", "type '"),
    ("SELECT 1 AS “b”", "U+201C LEFT DOUBLE QUOTATION MARK", "type \" or '"),
    ("SELECT 3 – 1", "U+2013 EN DASH", "type -"),
    ("SELECT 3 − 1", "U+2212 MINUS SIGN", "type -"),
    ("SELECT a\u200bb FROM t", "U+200B ZERO WIDTH SPACE", "delete it: it is invisible"),
    ("SELECT \ufeffa FROM t", "U+FEFF ZERO WIDTH NO-BREAK SPACE", "delete it: it is invisible"),
    ("SELECT a\u00adb FROM t", "U+00AD SOFT HYPHEN", "delete it: it is invisible"),
    ("SELECT a\u202eb FROM t", "U+202E RIGHT-TO-LEFT OVERRIDE", "delete it: it is invisible"),
    ("SELECT count（a） FROM t", "U+FF08 FULLWIDTH LEFT PARENTHESIS", "type ("),
    ("SELECT a， b FROM t", "U+FF0C FULLWIDTH COMMA", "type ,"),
    ("SELECT a FROM t WHERE a ≥ 1", "U+2265 GREATER-THAN OR EQUAL TO", "type >="),
    ("SELECT a FROM t LIMIT １", "U+FF11 FULLWIDTH DIGIT ONE", "type 1"),
    ("CREATE SINK s\u200b USING noop", "U+200B ZERO WIDTH SPACE", "delete it: it is invisible"),
    ("SELECT … FROM t", "U+2026 HORIZONTAL ELLIPSIS", "write what is to stand there"),
]


def name_of(character: str) -> str:
    return character.partition(" ")[0].removeprefix("U+")


@pytest.mark.parametrize(("text", "name", "hint"), WRONG)
def test_a_wrong_character_is_named_with_its_place(text: str, name: str, hint: str) -> None:
    script = f"SELECT 'it–s’ “fine”' AS a;\n{text};"
    with pytest.raises(StreamsqlError) as caught:
        list(parse_script(Source("a.sql", script)))
    fault = caught.value
    assert (fault.code, fault.hint) == ("WRONG_CHARACTER", hint)
    assert fault.message == f"the character {name} is not one of SQL"
    assert fault.span and script[fault.span.start : fault.span.end] == chr(int(name_of(name), 16))


def test_an_open_quote_is_placed_where_it_opens_behind_a_wrong_character() -> None:
    script = "SELECT ‘x’;\nSELECT 'it"
    faults = [written.fault for written in split_script(Source("a.sql", script), recover=True)]
    assert faults[0] is None
    assert faults[1] and faults[1].message == "the quote is not closed"
    assert faults[1].span and faults[1].span.start == script.index("'it")


def test_strings_comments_and_quoted_names_keep_theirs() -> None:
    for text in (
        "SELECT 'it–s’ “fine”\u200b' AS a -- a – comment’\n/* “another” */",
        "SELECT 1 AS `a–b\u00a0c`",
        'SELECT "“a”" AS b',
        "SELECT naïve, 名前 FROM t",
    ):
        list(parse_script(Source("a.sql", f"{text};")))


def test_spark_fails_at_each_of_them(spark: Any) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    for text, _, _ in WRONG:
        if text.startswith("SELECT"):
            with pytest.raises(ParseException):
                parser.parsePlan(text)


def test_a_blank_that_spark_takes_is_one(console: Console) -> None:
    for blank in "\u00a0\u2003\u202f\u3000":
        assert console.rows(f"SELECT{blank}1{blank}+ 1 AS{blank}a;") == [(2,)]
