"""Law 1 of the architecture: SQL text is read behind language/ and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamsql.language import reference
from streamsql.language.statements.base import SIMPLE_TYPES

PACKAGE = Path(__file__).resolve().parents[1] / "streamsql"

CALLED = frozenset(("tokenize", "scan"))
IMPORTED = CALLED | {"Token", "unquote", "split"}
SHORTEST_LIST = 4


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if name_of(p).split("/")[0] != "language")


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def tokenizers_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each tokenizer, or part of one, that a module imports or calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("streamsql.language"):
            yield from ((node.lineno, a.name) for a in node.names if a.name in IMPORTED)
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in CALLED:
                yield node.lineno, name


def keyword_lists_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, first words) of each list of SQL keywords that is written in a module."""
    for node in ast.walk(tree):
        words = list(_words(node))
        if len(words) >= SHORTEST_LIST and all(map(_is_keyword, words)):
            yield node.lineno, " ".join(words[:SHORTEST_LIST])  # type: ignore[attr-defined]


def _words(node: ast.AST) -> Iterator[str]:
    """The members of a literal that are texts, "" for other members."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        if not node.args and isinstance(node.func.value, ast.Constant):
            yield from str(node.func.value.value).split()
        return
    members: list[ast.expr] = []
    if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
        members = node.elts
    elif isinstance(node, ast.Dict):
        members = [key for key in node.keys if key is not None]
    for member in members:
        yield str(member.value) if isinstance(member, ast.Constant) else ""


def _is_keyword(text: str) -> bool:
    """Names of types are left out: connectors hold tables of them."""
    return bool(text) and all(word in reference.keywords() - SIMPLE_TYPES for word in text.split())


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_text_is_tokenized_behind_language_only(module: Path) -> None:
    uses = list(tokenizers_of(ast.parse(module.read_text("utf-8"))))
    assert uses == []


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_keywords_are_listed_behind_language_only(module: Path) -> None:
    lists = list(keyword_lists_of(ast.parse(module.read_text("utf-8"))))
    assert lists == []


@pytest.mark.parametrize(
    "code",
    [
        'WORDS = {"SELECT", "FROM", "WHERE", "GROUP BY"}',
        'WORDS = ("SELECT", "FROM", "WHERE", "LIMIT")',
        'WORDS = frozenset("""SELECT FROM WHERE LIMIT""".split())',
        'WORDS = {"SELECT": 1, "FROM": 2, "WHERE": 3, "LIMIT": 4}',
    ],
)
def test_a_keyword_list_is_seen(code: str) -> None:
    assert len(list(keyword_lists_of(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    "code",
    [
        'WORDS = ("select", "from", "where", "limit")',
        'WORDS = ("SELECT", "FROM")',
        'X = ("A", "B", "C", "D")',
    ],
)
def test_other_texts_are_no_keyword_list(code: str) -> None:
    assert list(keyword_lists_of(ast.parse(code))) == []


@pytest.mark.parametrize(
    "code",
    ["from streamsql.language.tokens import Token", "tokens.tokenize(text)", "scan(text)"],
)
def test_a_tokenizer_is_seen(code: str) -> None:
    assert len(list(tokenizers_of(ast.parse(code)))) == 1
