"""streamsql fmt: tokens and comments stay, names keep their case, and a format of a format is the same."""

from __future__ import annotations

import io
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

from streamsql.cli.main import main
from streamsql.errors import Source, StreamsqlError
from streamsql.features.fmt.format_script import format_script
from streamsql.features.fmt.keyword_places import names_of
from streamsql.language.dialect import parse_tokens
from streamsql.language.parser import split_script
from streamsql.language.tokens import split, tokenize

sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
import corpus
from statements import texts

ROOMS = ("streamsql/features/fmt/", "streamsql/language/", "grammars/")

SQL_TESTS = [
    *(ROOT / "examples").glob("*.test.sql"),
    *(ROOT / "tests" / "features" / "testing" / "sql_tests").glob("*.test.sql"),
]


def formatted(text: str) -> str:
    return format_script(Source("a.sql", text))


def layout(text: str) -> str:
    """The format of a script, which is its own format, too."""
    out = formatted(text)
    assert formatted(out) == out
    return out


CASES = [
    ("select 1 ;select 2", "SELECT 1;\nSELECT 2\n"),
    ("select a,b from t where x=1", "SELECT a, b FROM t WHERE x = 1\n"),
    ("select a,\n b from t", "SELECT\n  a,\n  b\nFROM t\n"),
    ("select a, b\nfrom t where x", "SELECT a, b\nFROM t\nWHERE x\n"),
    (f"select {'a' * 50}, {'b' * 50} from t", f"SELECT\n  {'a' * 50},\n  {'b' * 50}\nFROM t\n"),
    (
        "create stream s(a int,b array<string>) using json options(path 'in') with watermark ts delay '1 hour';",
        "CREATE STREAM s (a INT, b ARRAY<STRING>) USING json OPTIONS (path 'in') WITH WATERMARK ts DELAY '1 hour';\n".replace(
            ") USING json OPTIONS (path 'in') WITH", ")\n  USING json\n  OPTIONS (path 'in')\n  WITH"
        ),
    ),
    ("create stream s using rate\n  with watermark t delay '1 s'", "CREATE STREAM s USING rate\n  WITH WATERMARK t DELAY '1 s'\n"),
    ("create live table t as\nselect 1", "CREATE LIVE TABLE t AS\nSELECT 1\n"),
    ("select a from t\njoin u on t.x=u.x and\nt.y=u.y", "SELECT a\nFROM t\nJOIN u ON t.x = u.x AND t.y = u.y\n"),
    ("select a -- one\n, b from t", "SELECT\n  a, -- one\n  b\nFROM t\n"),
    ("/* x */ select 1 -- end\n;\n\n\n-- last", "/* x */\nSELECT 1; -- end\n\n-- last\n"),
    ("select - 1, a-1, -a, a - -1, count( * ), t.x", "SELECT -1, a - 1, -a, a - -1, count(*), t.x\n"),
    ("set a.b =  x,y  z", "SET a.b = x,y  z\n"),
    ("\\x on\nselect ${n}, '${ n }' from ${t}_x", "\\x on\nSELECT ${n}, '${ n }' FROM ${t}_x\n"),
    ("select x from (select y from t\nwhere z) u", "SELECT x\nFROM (\n  SELECT y\n  FROM t\n  WHERE z\n) u\n"),
    (
        "execute statement set begin insert into a select 1;insert into b select 2;end;",
        "EXECUTE STATEMENT SET BEGIN\n  INSERT INTO a SELECT 1;\n  INSERT INTO b SELECT 2;\nEND;\n",
    ),
    (
        "test 'a' begin given s (a) values (1); -- one\nexpect error 'X' from create live table t as select * from u;\n\n"
        "kill; restart query all; end test;",
        "TEST 'a' BEGIN\n  GIVEN s (a) VALUES (1); -- one\n  EXPECT ERROR 'X' FROM CREATE LIVE TABLE t AS SELECT * FROM u;\n\n"
        "  KILL;\n  RESTART QUERY ALL;\nEND TEST;\n",
    ),
    (
        "begin declare x int default 1; lbl: while x<9 do -- c\nset x=x+1;if x>2 and x<5 then leave lbl; elseif x=1 then "
        "select a\nfrom t where b; else\nbegin select 1; end;\n-- d\nend if;\n\nend while lbl; end;\nselect 2",
        "BEGIN\n  DECLARE x INT DEFAULT 1;\n  lbl: WHILE x < 9 DO -- c\n    SET x = x+1;\n    IF x > 2 AND x < 5 THEN\n"
        "      LEAVE lbl;\n    ELSEIF x = 1 THEN\n      SELECT a\n      FROM t\n      WHERE b;\n    ELSE\n      BEGIN\n"
        "        SELECT 1;\n      END;\n      -- d\n    END IF;\n\n  END WHILE lbl;\nEND;\nSELECT 2\n",
    ),
    (
        "test 'a' begin begin for r as select a from t do select r.a; end for; case x when 1 then select 1; end case; end;\n"
        "expect t empty; end test",
        "TEST 'a' BEGIN\n  BEGIN\n    FOR r AS SELECT a FROM t DO\n      SELECT r.a;\n    END FOR;\n    CASE x\n      WHEN 1 THEN\n"
        "        SELECT 1;\n    END CASE;\n  END;\n  EXPECT t EMPTY;\nEND TEST\n",
    ),
    (
        "begin case when x then select 1; end case; end; select 2",
        "BEGIN\n  CASE\n    WHEN x THEN\n      SELECT 1;\n  END CASE;\nEND;\nSELECT 2\n",
    ),
    (
        "test 'a' begin kill; begin set x=1; end end test;",  # the last statement of a block needs no `;`
        "TEST 'a' BEGIN\n  KILL;\n  BEGIN\n    SET x = 1;\n  END\nEND TEST;\n",
    ),
    ("from s |> extend a+1 as b |> aggregate sum(b) group by a", "FROM s |> EXTEND a + 1 AS b |> AGGREGATE sum(b) GROUP BY a\n"),
    ("create function f(x int) returns int return x+1", "CREATE FUNCTION f (x INT) RETURNS INT RETURN x + 1\n"),
    ("explain pyspark select a from t", "EXPLAIN PYSPARK SELECT a FROM t\n"),
    ("show jobs", "show jobs\n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES, ids=lambda text: text[:30])
def test_layout(text: str, expected: str) -> None:
    assert layout(text) == expected


def test_names_that_are_spelled_like_keywords_keep_their_case() -> None:
    names = "date, window, end, first, left, t.order, f.from, value, x as interval, offset, rows, stream"
    assert formatted(f"select {names} from options o;") == (
        "SELECT " + names.replace(" as ", " AS ") + "\nFROM options o;\n"
    )
    assert formatted("create stream format (date timestamp, key int) using values;") == (
        "CREATE STREAM format (date TIMESTAMP, key INT) USING values;\n"
    )
    assert formatted("select cast(d as date), date '2024-01-01', ts - interval 5 minutes from t") == (
        "SELECT cast(d AS DATE), DATE '2024-01-01', ts - INTERVAL 5 MINUTES FROM t\n"
    )


def test_the_examples_are_formatted() -> None:
    for file in (ROOT / "examples").glob("*.sql"):
        assert formatted(file.read_text()) == file.read_text(), file.name


GAPS = [" "] * 8 + ["\n", "\n\n", " -- c\n", " /* x */ ", "\n-- own\n", "\n/* o\n p */\n", "\n  "]


def with_gaps(text: str, chance: random.Random) -> str:
    """The text with comments and line breaks in place of some of its blanks."""
    try:
        tokens = tokenize(text)
    except StreamsqlError:
        return text
    parts, behind = [], 0
    for token in tokens:
        gap = text[behind : token.start]
        parts += [chance.choice(GAPS) if gap and not gap.strip() and behind else gap, token.text]
        behind = token.end
    return "".join([*parts, text[behind:]])


def content(text: str) -> tuple[list[str], list[str]]:
    """The tokens, words in one case, and the words of comments."""
    tokens = tokenize(text)
    words = [t.upper if t.kind == "word" else t.text for t in tokens]
    gaps = "".join(
        text[a:b]
        for a, b in zip([0, *(t.end for t in tokens)], [*(t.start for t in tokens), len(text)], strict=True)
    )
    return words, re.sub(r"\s*\n\s*", "\n", gaps).split()


def names(text: str) -> Iterator[list[str]]:
    """The names of each SELECT of a script, as written."""
    for piece in split(tokenize(text)):
        start = next((n for n, t in enumerate(piece.tokens) if t.upper in ("SELECT", "WITH", "FROM")), None)
        tokens = piece.tokens[start:] if start is not None else []
        tree, _ = parse_tokens([p for t in tokens for p in t.parts], text) if tokens else (None, None)
        places = names_of(tree) if tree is not None else set()
        yield [t.text for t in tokens if t.start in places]


def check(text: str) -> bool:
    """Check what holds of each format; False for a text that cannot be parsed."""
    try:
        out, before = formatted(text), content(text)  # a command with a backslash has no tokens
    except StreamsqlError as error:
        assert error.code != "INTERNAL", ascii(text)
        return False
    assert content(out) == before, ascii(text)
    assert list(names(out)) == list(names(text)), ascii(text)
    assert formatted(out) == out, ascii(text)
    return True


@pytest.mark.slow
def test_tokens_comments_and_names_stay_and_a_second_format_changes_nothing() -> None:
    chance = random.Random(14)
    known = corpus.statements()
    read = [check(text) for text in [*known[::36], *texts(20, 14)]]
    read += [check(with_gaps(text, chance) + chance.choice(["", ";", " -- end\n;"])) for text in known[1::36]]
    assert sum(read) > 30
    tests = [written.text for file in SQL_TESTS for written in split_script(Source("", file.read_text()))]
    assert all(check(text) for text in tests)
    assert sum(check(with_gaps(text, chance) + ";") for text in tests) > 50


COMPOUNDS = [
    "begin loop select 1 ; iterate l ; end loop ; repeat set x = 1 ; until x > ( 3 + 1 ) end repeat ; end",
    "begin declare exit handler for sqlexception begin select 1 ; end ; declare continue handler for a , b set x = 1 ; "
    "declare c condition for sqlstate '12345' ; execute immediate 'select ?' using x ; drop table if exists t ; end ;",
    "begin declare exit handler for not found , sqlstate value '22012' if x then select 1 ; end if ; end",
    "begin not atomic case when x = 1 then select case when a then b end from t ; else values ( 1 ) ; end case ; end",
    "begin create view v as select * from t where a = 1 ; update t set a = 1 where b in ( select c from d ) ; end ;",
    *(text for text, _ in CASES if text.startswith(("begin", "test"))),
]


def test_compound_statements_keep_their_tokens_and_comments() -> None:
    chance = random.Random(14)
    assert all(check(with_gaps(text, chance)) for text in COMPOUNDS for _ in range(3))


def test_scripts_of_pages_can_be_formatted() -> None:
    pages = [ROOT / "README.md", *(ROOT / "grammars" / "topics").glob("*.md")]
    blocks = [b for p in pages for b in re.findall(r"^```sql\n(.*?)^```$", p.read_text(), re.DOTALL | re.M)]
    assert sum(map(check, blocks)) > 10


# ---- the command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["fmt", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_a_file_is_formatted_in_place_with_its_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, link = tmp_path / "a.sql", tmp_path / "link.sql"
    file.write_bytes("\ufeffselect 'a\r\nb' as x;\r\n".encode())
    file.chmod(0o640)
    link.symlink_to(file)
    assert run(capsys, "--check", str(link)) == (1, f"{link}\n", "")
    code, out, _ = run(capsys, "--diff", str(link))
    assert (code, "SELECT 'a" in out) == (0, True)
    assert run(capsys, str(link)) == (0, "", f"formatted {link}\n")
    assert file.read_bytes() == "\ufeffSELECT 'a\r\nb' AS x;\r\n".encode()
    assert (file.stat().st_mode & 0o777, link.is_symlink()) == (0o640, True)
    assert run(capsys, "--check", str(link)) == (0, "", "")
    assert sorted(os.listdir(tmp_path)) == ["a.sql", "link.sql"]


def test_a_file_that_cannot_be_parsed_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = tmp_path / "bad.sql", tmp_path / "good.sql"
    bad.write_text("select 1;\ncreate stream x;\n")
    good.write_text("select 1;")
    code, _, err = run(capsys, str(bad), str(good))
    assert code == 2
    assert f"{bad}:2:15: error" in err
    assert bad.read_text() == "select 1;\ncreate stream x;\n"
    assert good.read_text() == "SELECT 1;\n"
    bad.write_text("select (1;\nselect 2")
    code, _, err = run(capsys, str(bad))
    assert (code, f"{bad}:1:8: error" in err) == (2, True)
    assert run(capsys, str(tmp_path / "none.sql"))[0] == 2


def test_standard_input_is_formatted_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"select 1")))
    assert run(capsys, "-") == (0, "SELECT 1\n", "")
