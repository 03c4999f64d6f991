"""Laws of the architecture: SQL text is read in language/ and nowhere else, and planning is pure.

What may import what is in pyproject.toml; `lint-imports` checks it.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from source_trees import trees

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import Source, StreamsqlError
from streamsql.language import reference
from streamsql.language.parser import parse_script
from streamsql.language.statements.base import SIMPLE_TYPES
from streamsql.plan.context import Context
from streamsql.plan.planner import plan

CALLED = frozenset(("tokenize", "scan"))
IMPORTED = CALLED | {"Token", "unquote", "split"}
SHORTEST_LIST = 4
LANGUAGE = ("language/", "features/fmt/")
"""Where text is read: the formatter keeps each token, comments too, which a tree has not."""


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


def heavy_imports_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, package) of the imports of Spark that run when a module is loaded."""
    for node in ast.iter_child_nodes(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        yield from ((node.lineno, n) for n in names if n.split(".")[0] in ("pyspark", "py4j"))


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


def found_by(search: Callable[[ast.AST], Iterator[tuple[int, str]]]) -> list[str]:
    """`module:line: what` of all that a search finds outside language/ and the formatter."""
    return [
        f"{name}:{line}: {what}"
        for name, tree in trees().items()
        if not name.startswith(LANGUAGE)
        for line, what in search(tree)
    ]


_BEFORE_A_NAME = re.compile(r"\b(QUERY|LIVE TABLE|STREAM|SINK|FUNCTION|VIEW|PROMOTE|ROLLBACK) \Z")


def unquoted_names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, statement) of each name in a statement that a text proposes which would need quote_name."""
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for before, part in pairwise(parts):
            words = str(before.value) if isinstance(before, ast.Constant) else ""
            name = part.value if isinstance(part, ast.FormattedValue) else None
            if _BEFORE_A_NAME.search(words) and isinstance(name, ast.Attribute):
                yield node.lineno, words


def test_names_in_proposed_statements_are_quoted() -> None:
    """`my count` in a hint would be a syntax error for who types it."""
    assert found_by(unquoted_names_of) == []
    assert list(unquoted_names_of(ast.parse("f'STOP QUERY {running.name};'"))) == [(1, "STOP QUERY ")]


def test_text_is_tokenized_in_language_only() -> None:
    assert found_by(tokenizers_of) == []


def test_keywords_are_listed_in_language_only() -> None:
    assert found_by(keyword_lists_of) == []


def test_pyspark_is_imported_when_it_is_needed() -> None:
    """Inside functions only, so that what needs no Spark does not wait for it."""
    loaded_by_spark = "features/receivers/spool_source.py"  # when a query starts
    assert [f for f in found_by(heavy_imports_of) if not f.startswith(loaded_by_spark)] == []


def test_an_import_of_pyspark_on_top_is_seen() -> None:
    code = "import pyspark.sql\ndef f():\n    from py4j.java_gateway import JavaObject\n"
    assert list(heavy_imports_of(ast.parse(code))) == [(1, "pyspark.sql")]


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


# ---- planning is pure

SCRIPT = """
CREATE STREAM clicks (id INT, ts TIMESTAMP) USING json OPTIONS (path '{folder}')
  WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE STREAM inferred USING csv OPTIONS (path '{folder}', header 'true');
CREATE STREAM avro USING kafka FORMAT avro OPTIONS (servers 'h:1', topic 't', avroSchemaFile '{folder}/a.avsc');
CREATE STREAM proto (id INT) USING kafka FORMAT protobuf
  OPTIONS (servers 'h:1', topic 't', descriptorFile '{folder}/a.desc', message 'M');
CREATE STREAM gone USING kafka FORMAT avro OPTIONS (servers 'h:1', topic 't', avroSchemaFile '{folder}/none');
CREATE SINK files USING parquet OPTIONS (path '{folder}/out');
CREATE SINK messages USING kafka FORMAT avro
  OPTIONS (servers 'h:1', topic 't', avroSchemaFile '{folder}/a.avsc');
CREATE SINK each USING foreach_batch OPTIONS (function 'code.write', folder '{folder}');
CREATE FUNCTION twice AS 'code.twice' LANGUAGE PYTHON RETURNS INT;
CREATE LIVE TABLE counts AS SELECT window(ts, '1 minute') AS w, count(*) FROM clicks GROUP BY 1;
INSERT INTO files CHECKPOINT '{folder}/ck' SELECT twice(id) AS id FROM clicks;
INSERT INTO messages AS QUERY m SELECT * FROM avro;
EXECUTE STATEMENT SET AS QUERY both BEGIN INSERT INTO files SELECT id FROM clicks; INSERT INTO each SELECT id
  FROM clicks; END;
SELECT * FROM counts JOIN json.`{folder}/x.json` USING (id);
CREATE TEMPORARY VIEW v AS SELECT * FROM counts;
SELECT * FROM STATE OF QUERY counts;
PREVIEW USING json OPTIONS (path '{folder}');
INSERT INTO files AS QUERY p SELECT id FROM proto;
EXPLAIN PYSPARK INSERT INTO files AS QUERY x SELECT id FROM clicks;
SHOW BATCHES OF QUERY files;
SET streamsql.offline = on;
STOP QUERY ALL;
START QUERY counts;
DROP QUERY m;
"""
"""One of each kind that names files, in which planning could look."""
OUTSIDE = ("open", "os.listdir", "os.scandir", "subprocess.Popen", "socket.connect")
"""What Python reports when a program looks at files, or asks another one."""


class Watch:
    """Notes what its own thread opens below a folder, while it is on, and any other program that it asks.
    (Of another thread, say of the start of Spark for a test before, it knows nothing.)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.thread = threading.get_ident()
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self.notice)

    def notice(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event in OUTSIDE and threading.get_ident() == self.thread:
            name = str(arguments[0]) if arguments else ""
            if event not in ("open", "os.listdir", "os.scandir") or name.startswith(self.folder):
                self.seen.append(f"{event} {name}")


def test_planning_opens_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text('{"type": "record", "name": "r", "fields": []}')
    for name in ("a.desc", "x.json", "code.py", "x.csv"):
        (tmp_path / name).write_text("")
    watch, context, planned = Watch(tmp_path), Context(Catalog(), Places(str(tmp_path)), str(tmp_path)), 0
    for statement in parse_script(Source("a.sql", SCRIPT.format(folder=tmp_path))):
        watch.on = True
        try:
            made = plan(statement, context)
        except StreamsqlError as error:
            raise AssertionError(f"{statement.text}: {error.message}") from None
        finally:
            watch.on = False
        context = Context(made.applied(context.catalog), context.places, context.here)
        planned += 1
    assert watch.seen == []
    assert planned >= 20


def test_a_file_that_its_thread_opens_is_seen(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    watch.on = True
    (tmp_path / "x").touch()
    open(tmp_path / "x").close()
    (other := threading.Thread(target=(tmp_path / "y").touch)).start()
    other.join()
    watch.on = False
    assert watch.seen == [f"open {tmp_path}/x"] * 2
