"""HELP topics: each page is listed, found and completed, and each of its statements can be planned."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker, read_all
from streamsql.cli.findings import Reporter
from streamsql.config.preferences import Preferences
from streamsql.errors import NameFault, Source
from streamsql.language.parser import STATEMENTS, parse, split_script
from streamsql.language.topics import topics
from streamsql.output.printer import Printer
from streamsql.plan.context import Context
from streamsql.results import Rows, Text
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.shell.completion.complete import complete

BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    settings = Settings.make("local[1]", {})
    return Session(Config(settings, tmp_path / "workspace", tmp_path / "spark.log", tmp_path))


def ask(session: Session, text: str) -> str | Rows:
    """The answer to a HELP statement: the text, or the list."""
    (written,) = split_script(Source("", text))
    answer = session.execute(parse(written))
    assert isinstance(answer, (Rows, Text))
    return answer.text if isinstance(answer, Text) else answer


@pytest.mark.parametrize("name", topics())
def test_every_statement_of_a_topic_is_planned(name: str) -> None:
    script = "".join(BLOCK.findall(topics()[name].text))
    said = io.StringIO()
    printer = Printer(Preferences(), said, said)
    variables: dict[str, str] = {}
    assert read_all([Source(name, script)], variables, Reporter(printer), Checker(Context(Catalog()))) == 0, (
        said.getvalue()
    )


@pytest.mark.parametrize("name", topics())
def test_what_a_topic_refers_to_exists(name: str, session: Session) -> None:
    text = topics()[name].text
    for asked in re.findall(r"HELP ([\w ]+)[;),]", text):
        ask(session, f"HELP {asked};")
    for example in re.findall(r"examples/\w+\.\w+", text):
        assert (Path(__file__).parents[1] / example).is_file()


def test_help_lists_and_finds_topics(session: Session) -> None:
    listed = ask(session, "HELP;")
    assert isinstance(listed, Rows)
    first = [row[0] for row in listed.rows]
    assert sorted(t for t in first if t.startswith("HELP ")) == [f"HELP {name}" for name in topics()]
    titles = dict(listed.sections)
    assert list(titles.values()) == [
        "begin with",
        "read",
        "keep",
        "look",
        "write",
        "operate",
        "test",
        "topics",
    ]
    assert first[0] == "HELP usage"
    assert ask(session, "HELP psql;") == ask(session, "HELP switching from psql;")
    assert ("DROP SINK", "removes the definition of a sink; the data that was written is kept") in listed.rows
    assert max(len(row[1]) for row in listed.rows) < 140  # one sentence
    page = ask(session, "HELP output modes;")
    assert isinstance(page, str)
    assert page.startswith("output modes: which rows a micro-batch emits\n\n    mode\temits\n")
    assert "\n    INSERT INTO out OUTPUT MODE APPEND\n" in page
    assert "```" not in page
    assert ask(session, "HELP Output Mode;") == page
    assert "<!--" not in str(ask(session, "HELP deduplication;"))
    shown = str(ask(session, "HELP create stream;"))
    assert "\nCREATE [OR REPLACE] STREAM " in shown
    assert "\n    see also: HELP streams;" in shown
    with pytest.raises(NameFault, match="there is no help for WATERMRKS") as fault:
        ask(session, "HELP watermrks;")
    assert fault.value.hint == "did you mean WATERMARKS?"


def test_the_topic_of_each_statement_is_there() -> None:
    assert {kind.topic for kind in STATEMENTS.values()} <= topics().keys()


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("HELP wat", "watermarks"),
        ("HELP output ", "modes"),
        ("HELP out", "output modes"),
        ("help kaf", "kafka"),
    ],
)
def test_topics_are_completed(text: str, offered: str) -> None:
    assert offered in [c.text for c in complete(text, len(text), Catalog())]
