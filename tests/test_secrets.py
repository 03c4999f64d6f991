"""Secrets are never shown, written or logged: kinds of secrets, each through every way out."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from scripts import run_process
from test_python_source import SOURCE

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connectors
from streamsql.errors import QueryFault, Source, StreamsqlError, UsageFault
from streamsql.guard import log_to
from streamsql.language.parser import parse, split_script
from streamsql.language.redaction import redact
from streamsql.output.error_text import format_error
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.secrets import LOG_PATTERNS, is_secret_key, redact_text
from streamsql.shell.editing import History

ROOMS = ("streamsql/runtime/", "streamsql/secrets.py", "streamsql/language/")

SECRET = "Hunter2x"
KINDS = {
    "kafka key": "kafka.ssl.keystore.key 'Hunter2x'",
    "account key": "'fs.azure.account.key.acc.dfs.core.windows.net' 'Hunter2x'",
    "password": "password 'Hunter2x'",
    "passwd": "db.passwd 'Hunter2x'",
    "pwd": "PWD = 'Hunter2x'",
    "apiKey": "apiKey 'Hunter2x'",
    "token": "`my.token` 'Hunter2x'",
    "authorization": "'http.Authorization' 'Bearer Hunter2x'",
    "passphrase": 'passphrase "Hunter2x"',
    "credentials": "credentials 'Hunter2x'",
    "jaas": 'kafka.sasl.jaas.config \'org.Login required username="joe" password="Hunter2x";\'',
    "login in the text": "settings 'user=joe;password=Hunter2x;x=1'",
    "access key": "'fs.s3a.access.key' 'Hunter2x'",
    "secret key": "fs.s3a.secret.key 'Hunter2x'",
    "misspelt": "passwort 'Hunter2x'",
    "swapped": "passwrod 'Hunter2x'",
    "AWS login": "place 's3a://Hunter2x:Hunter2x/Hunter2x@bucket/path'",
    "database login": "url 'jdbc:postgresql://joe:Hunter2x@h/db'",
    "query": "url 'jdbc:mysql://h/db?user=joe&password=Hunter2x&ssl=true'",
    "pass": "url 'https://h/?pass=Hunter2x'",
    "token login": "url 'https://Hunter2x@github.com/x'",
    "oracle": "url 'jdbc:oracle:thin:joe/Hunter2x@h:1521'",
    "next line": "password\n  'Hunter2x'",
    "after a comment": "password /* it's the old one */ -- of joe\n 'Hunter2x'",
    "raw": "password r'Hunter2x'",
}
# What only an error can show: the statement cannot be read.
BROKEN = {
    "two strings": "password 'Hunter2x' 'Hunter2x'",
    "unquoted": "password Hunter2x",
    "unquoted signs": "password = Hunter2x!Hunter2x",
    "unclosed": "password 'Hunter2x",
    "an earlier quote": "user 'joe, password 'Hunter2x'",
    "unclosed behind": "password 'Hunter2x', user 'joe",
    "a call": "password concat('Hunter2x', x)",
    "unclosed raw": "password r'Hunter2x",
    "unclosed login": "url 's3a://AK:Hunter2x@b",
}
AROUND = (
    "CREATE STREAM s (n INT) USING json OPTIONS (path '/tmp', {});",
    "CREATE STREAM s (n INT) USING json OPTIONS (path '/tmp' {});",
    "CREATE STREAM s (n INT) USING json OPTIONS (path '/tmp', {}) NONSENSE;",
    "CREATE STREAM s (n INT) USING json OPTIONS ({}, NONSENSE 'x';",
    "CREATE SINK s USING jdbc OPTIONS (table 't', {}, nonsense 'x');",
    "CREATE SINK s USING jdbc ({});",
    "PREVIEW USING kafka OPTIONS ({}, topic t;",
    "CREATE STRAEM s USING kafka OPTIONS ({});",
)


@pytest.mark.parametrize("kind", [*KINDS, *BROKEN])
@pytest.mark.parametrize("around", AROUND)
def test_no_error_shows_a_secret(kind: str, around: str) -> None:
    script = around.format((KINDS | BROKEN)[kind])
    source = Source("test.sql", script)
    shown = []
    try:
        for written in split_script(source):
            plan(parse(written), Context(Catalog()))
    except StreamsqlError as error:
        shown = [format_error(error.at(source)), format_error(error.at(source), 60)]
    assert SECRET not in "\n".join(shown), shown


def test_a_failure_that_is_told_of_something_else_shows_no_secret() -> None:
    failed = QueryFault(f"login with password={SECRET} was refused", subject="query q failed")
    assert SECRET not in f"{failed} {failed.fact} {failed.of('the query failed').message}"


def test_a_caret_stands_where_it_should_beside_a_secret() -> None:
    script = "CREATE SINK s USING jdbc OPTIONS (password 'Hunter2x', nonsense 'x');"
    with pytest.raises(StreamsqlError) as caught:
        for written in split_script(Source("test.sql", script)):
            plan(parse(written), Context(Catalog()))
    error = caught.value
    if error.source is None:
        error.at(Source("test.sql", script))
    lines = format_error(error).split("\n")
    line, carets = lines[1], lines[2]
    assert "password '***', nonsense" in line
    assert line[carets.index("^") :].startswith("nonsense")


@pytest.mark.usefixtures("processes")
def test_what_a_console_prints_and_writes_holds_no_secret(tmp_path: Path) -> None:
    """One process: every kind as an option of a stream, a sink and a view, and the files that it leaves."""
    (tmp_path / "cities.py").write_text(SOURCE)
    there = f"class 'cities.Cities', folder '{tmp_path}'"
    parts = []
    for number, option in enumerate(KINDS.values()):
        parts += [
            f"CREATE STREAM s{number} (n INT) USING python OPTIONS ({there}, {option});",
            f"CREATE SINK k{number} USING python OPTIONS ({there.replace('Cities', 'Folder')}, {option}) COMMENT 'as joe:x, pwd=Hunter2x';",
            f"SHOW CREATE STREAM s{number}; DESCRIBE STREAM s{number};",
            f"SHOW CREATE SINK k{number}; DESCRIBE SINK k{number};",
            f"EXPLAIN PYSPARK SELECT * FROM s{number};",
            f"EXPLAIN PYSPARK CREATE TEMPORARY VIEW v USING json OPTIONS ({option});",
            f"EXPLAIN PYSPARK SELECT map('password', 'Hunter2x'), f(token => 'Hunter2x') FROM s{number};",
            f"SHOW CREATE STREAM t{number}; SHOW CREATE STREAM 'x' OPTIONS ({option});",
            f"CREATE STREAM d{number} AS SELECT n, 's3a://a:Hunter2x@b' AS x FROM s{number};",
            f"SHOW CREATE STREAM d{number};",
        ]
    for key in ("fs.s3a.secret.key", "x.passwort", "fs.azure.account.key.acc", "x.apiKey"):
        parts += [f"SET spark.hadoop.{key} = Hunter2x;", f"SET spark.hadoop.{key};"]
    parts += ["SET spark.x.url = 's3a://a:Hunter2x@b';", "SET;", "SHOW STREAMS;", "SHOW SINKS;"]
    (tmp_path / "all.sql").write_text("\n".join(parts))
    outcome = run_process(
        "--no-config", "-w", "work", "--on-error", "continue", "all.sql", cwd=tmp_path, seconds=300
    )
    assert outcome.out.count("CREATE STREAM") >= 2 * len(KINDS), outcome.err
    assert outcome.out.count("CREATE SINK") == len(KINDS), outcome.err
    assert outcome.out.count("***") > 6 * len(KINDS)
    for name, text in (("printed", outcome.out), ("told", outcome.err)):
        assert SECRET not in text, f"{name}: {leak(text)}"
    (tmp_path / "all.sql").unlink()
    check_files(tmp_path)


def leak(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if SECRET in line)


def check_files(folder: Path) -> None:
    """No file below a folder holds the secret, nor its name."""
    for file in folder.rglob("*"):
        assert SECRET not in str(file)
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file


def test_history_keeps_no_statement_with_a_secret(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    for option in (KINDS | BROKEN).values():
        history.append_string(f"CREATE STREAM s USING json OPTIONS (path '/x', {option});")
    history.append_string("SET spark.x.passwd = Hunter2x;")
    history.append_string("SELECT token FROM words WHERE token = 'the';")
    history.append_string("CREATE SINK s USING jdbc OPTIONS (password '${env:PW}');")
    kept = (tmp_path / "history").read_text()
    assert SECRET not in kept
    assert "token = 'the'" in kept and "${env:PW}" in kept


@pytest.mark.parametrize(
    "text",
    [
        "SELECT token, password FROM users WHERE token = 'the' AND a.token = b.token",
        "CREATE STREAM s (token STRING, password STRING COMMENT 'of whom') USING json OPTIONS (path 'x')",
        "SELECT * FROM t WHERE kind IN ('token', 'password')",
        "SELECT regexp_extract(line, 'password=(\\\\S+)') FROM logs",
        "OPTIONS (password '${env:PW}', path 'abfss://container@account.dfs.core.windows.net/x')",
        'OPTIONS (avroSchema \'{"name": "token", "doc": "password: as hashed"}\') COMMENT \'token: a word\'',
        "OPTIONS (servers 'http://h:8080/x@y', kafka.ssl.truststore.location '/x', a.credentials.provider 'C')",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_declared_secrets_are_those_that_the_rule_knows() -> None:
    for connector in connectors().values():
        for spec in (*(connector.reads or ()), *(connector.writes or ())):
            assert spec.secret == is_secret_key(spec.name), f"{connector.name} {spec.name}"


def test_a_value_that_kafka_refuses_is_not_shown() -> None:
    refused = "ConfigException: Invalid value Hunter2x, y for configuration ssl.key.password"
    assert redact_text(refused) == refused.replace("Hunter2x, y", "***")
    assert (
        redact_text("Invalid value 7 for configuration acks: no")
        == "Invalid value 7 for configuration acks: no"
    )


@pytest.mark.usefixtures("processes")
def test_messages_are_without_secrets_from_the_beginning(tmp_path: Path) -> None:
    error = UsageFault(
        "cannot reach s3a://AK:Hunter2x@b", detail='{"password": "Hunter2x"}', hint="token=Hunter2x"
    )
    assert SECRET not in f"{error} {error.message} {error.detail} {error.hint}"
    outcome = run_process("--conf", "spark.x.password", "Hunter2x=1;password=Hunter2x", cwd=tmp_path)
    assert outcome.code == 2 and "password=Hunter2x" not in outcome.err


def test_logs_hold_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    log_to(tmp_path / "spark.log")
    logging.getLogger("x").error("jdbc:postgresql://joe:Hunter2x@h?password=%s", "Hunter2x")
    root.handlers[0].close()
    logged = (tmp_path / "spark.log").read_text()
    assert "jdbc:postgresql://***@h" in logged and SECRET not in logged


@pytest.mark.parametrize("text", ["url=s3a://a:Hunter2x@b", "api.key = Hunter2x", "x.secret='Hunter2x'"])
def test_what_the_jvm_hides_is_hidden_here_too(text: str) -> None:
    hidden = text
    for pattern in LOG_PATTERNS:
        hidden = re.sub(pattern, r"\1***", hidden)
    assert SECRET not in hidden
    assert SECRET not in redact_text(text)


@pytest.mark.slow
def test_what_spark_says_of_queries_and_plans_holds_no_secret(console: Console, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"n": 1}\n')
    (tmp_path / "cities.py").write_text(SOURCE)
    python = (
        f"class 'cities.Cities', folder '{tmp_path}', city 'ulm', pwd 'Hunter2x', folder_out '{tmp_path}'"
    )
    results: list[Any] = console.run(
        f"""
        CREATE STREAM s USING python OPTIONS ({python});
        CREATE SINK out USING python OPTIONS ({python.replace("Cities", "Folder")});
        INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW
        SELECT n, city, 's3a://a:Hunter2x@b' AS place FROM s;
        AWAIT QUERY q;
        DESCRIBE QUERY q; SHOW QUERIES EXTENDED; SHOW PROGRESS q; DESCRIBE CHECKPOINT OF QUERY q;
        SHOW BATCHES OF QUERY q; SHOW CREATE STREAM s;
        EXPLAIN EXTENDED SELECT * FROM s;
        CREATE TEMPORARY VIEW v USING json OPTIONS (path '{tmp_path}/in', password 'Hunter2x');
        EXPLAIN EXTENDED SELECT * FROM v; DESCRIBE EXTENDED v;
        """
    )
    shown = "\n".join(
        str(getattr(r, "rows", "")) + str(getattr(r, "text", "")) + str(notes_of(r)) for r in results
    )
    assert SECRET not in shown, leak(shown)
    with pytest.raises(StreamsqlError) as failed:
        console.run("SELECT raise_error('password=Hunter2x of jdbc:x://joe:Hunter2x@h') FROM v;")
    assert SECRET not in format_error(failed.value)
    for written in (tmp_path / "console").rglob("*.json"):
        assert SECRET not in written.read_text("utf-8"), leak(written.read_text("utf-8"))
    # What Spark logs of the failure is in the log of the one JVM of the tests.
    warehouse = console.session.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    log = Path(warehouse).with_name("spark.log")
    assert "USER_RAISED_EXCEPTION" in log.read_text("utf-8", "replace")
    assert SECRET not in log.read_text("utf-8", "replace"), leak(log.read_text("utf-8", "replace"))
