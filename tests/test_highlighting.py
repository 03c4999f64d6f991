"""Colours at the prompt while a text is typed."""

from __future__ import annotations

import pytest
from prompt_toolkit.document import Document

from streamsql.shell.highlighting import MOST_AT_ONCE, SqlLexer

SCRIPT = "SELECT 'a' AS x, 12 -- why\nFROM t; /* two\nlines */ SHOW STREAMS;\nSELECT `from`, 'open"


@pytest.fixture
def lexer() -> SqlLexer:
    lexer = SqlLexer()
    lexer.load()
    return lexer


def colored(lexer: SqlLexer, text: str) -> list[tuple[str, str]]:
    """(style, text) of what is seen, line by line."""
    line_of = lexer.lex_document(Document(text))
    return [(p[0], p[1]) for n in range(text.count("\n") + 1) for p in line_of(n) if p[1].strip()]


def lines(lexer: SqlLexer, text: str) -> list[str]:
    line_of = lexer.lex_document(Document(text))
    return ["".join(piece[1] for piece in line_of(n)) for n in range(text.count("\n") + 1)]


def test_words_texts_numbers_and_comments_have_colours(lexer: SqlLexer) -> None:
    assert colored(lexer, SCRIPT) == [
        ("class:keyword", "SELECT"),
        ("class:string", "'a'"),
        ("class:keyword", "AS"),
        ("", "x"),
        ("", ","),
        ("class:number", "12"),
        ("class:comment", " -- why"),
        ("class:keyword", "FROM"),
        ("", "t"),
        ("", ";"),
        ("class:comment", " /* two"),
        ("class:comment", "lines */ "),
        ("class:keyword", "SHOW"),
        ("class:keyword", "STREAMS"),
        ("", ";"),
        ("class:keyword", "SELECT"),
        ("", "`from`"),
        ("", ","),
        ("class:comment", " 'open"),
    ]


def test_the_text_is_shown_as_it_is_key_by_key(lexer: SqlLexer) -> None:
    for end in range(len(SCRIPT) + 1):
        assert lines(lexer, SCRIPT[:end]) == SCRIPT[:end].split("\n")


def test_a_finished_statement_that_changes_is_read_again(lexer: SqlLexer) -> None:
    assert colored(lexer, "SELECT 1; SELECT 2")[0] == ("class:keyword", "SELECT")
    assert colored(lexer, "'ELECT 1; SELECT 2") == [("class:comment", "'ELECT 1; SELECT 2")]
    assert colored(lexer, "x; SELECT 2")[0] == ("", "x")


def test_a_long_script_is_colored_bit_by_bit(lexer: SqlLexer) -> None:
    script = "SELECT 1;\n" * (MOST_AT_ONCE // 5)
    assert lines(lexer, script) == script.split("\n")
    styles = [piece[0] for piece in lexer.lex_document(Document(script))(script.count("\n") - 1)]
    assert "class:keyword" in styles


def test_text_is_plain_until_the_reader_is_loaded() -> None:
    lexer = SqlLexer()
    assert colored(lexer, "SELECT 1") == [("", "SELECT 1")]
    before = lexer.invalidation_hash()
    lexer.load()
    assert lexer.invalidation_hash() != before
    assert colored(lexer, "SELECT 1")[0] == ("class:keyword", "SELECT")
