"""What an installation brings: examples, completion of a shell, the manual page, the file for a report; --help."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from scripts import run_main, run_process

from streamsql.cli.command_line import FLAGS, commands
from streamsql.features.setup.examples import about, examples

ROOMS = ("streamsql/features/setup/", "streamsql/cli/", "examples/")

SECRET = "hunter2-of-the-test"


def printed(*arguments: str) -> str:
    outcome = run_main(*arguments)
    assert outcome.code == 0 and "error" not in outcome.err, outcome
    return outcome.out


# ---- the command line


def test_help_lists_each_flag_once_in_groups_and_all_commands() -> None:
    text = printed("--help")
    flags = [line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  -")]
    assert sorted(flags) == sorted({*(name.split()[0] for name in FLAGS if name.startswith("-")), "-h"})
    titles = {line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")}
    assert {"scripts:", "output:", "workspace:", "Spark:", "commands:"} <= titles
    listed = text.partition("commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == list(commands())


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--worksapce", "x"), "did you mean --workspace?"),
        (("--nonsense",), "streamsql --help lists the flags"),
        (("fmt", "--chekc", "x.sql"), "did you mean --check?"),
        (("test", "--format", "xml", "x"), "streamsql test --help lists the flags"),
        (("serv", "-w", "x"), "did you mean streamsql serve?"),
        (("examples", "top-videos"), "did you mean top_videos?"),
        (("examples", "--run"), "streamsql examples lists them"),
        (("examples", "--copy", str(ROOT)), "name a new folder"),
    ],
)
def test_an_error_of_the_command_line_is_one_line_and_a_hint(arguments: tuple[str, ...], hint: str) -> None:
    outcome = run_main(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert [line.startswith("hint: ") for line in outcome.err.splitlines()] == [False, True]
    assert outcome.err.endswith(f"hint: {hint}\n")


# ---- examples


def test_the_examples_are_listed_with_what_they_show_and_printed() -> None:
    listed = printed("examples")
    for name, path in examples().items():
        script = path.read_text("utf-8")
        assert len(about(script)) > 10 and re.search(rf"\| {name} +\| {re.escape(about(script))} ", listed)
        assert printed("examples", name) == script


def test_the_examples_are_copied_with_their_data(tmp_path: Path) -> None:
    outcome = run_main("examples", "--copy", "tutorial", cwd=tmp_path)
    assert outcome.out == "copied; streamsql tutorial/windowed_word_count.sql runs one\n"
    assert (tmp_path / "tutorial" / "data" / "profiles.csv").is_file()
    checked = run_main("--check", "tutorial/windowed_word_count.sql", cwd=tmp_path)
    assert checked.code == 0, checked.err


@pytest.mark.usefixtures("processes")
def test_an_example_runs(tmp_path: Path) -> None:
    outcome = run_process("examples", "--run", "windowed_word_count", cwd=tmp_path)
    golden = (ROOT / "tests" / "golden" / "examples" / "windowed_word_count.txt").read_text("utf-8")
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[:3] == golden.splitlines()[:3]


# ---- shells


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("streamsql --work", ["--workspace"]),
        ("streamsql --on-error ", ["continue", "stop"]),
        ("streamsql --format j", ["json", "jsonl"]),
        ("streamsql supp", ["support"]),
        ("streamsql fmt --d", ["--diff"]),
    ],
)
def test_bash_completes_what_the_parsers_take(typed: str, offered: list[str], tmp_path: Path) -> None:
    """In a real bash."""
    (tmp_path / "completion").write_text(printed("completion", "bash"))
    words = typed.split(" ")
    script = (
        f"source completion; COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}'); COMP_CWORD={len(words) - 1}; "
        "$(complete -p streamsql | sed 's/.*-F \\([^ ]*\\) .*/\\1/'); printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert sorted(done.stdout.split()) == offered, done.stderr


@pytest.mark.usefixtures("processes")
def test_the_manual_page_can_be_read(tmp_path: Path) -> None:
    page = printed("man")
    assert page.startswith(".TH STREAMSQL")
    assert ".SH WORKSPACE" in page and "\\fB\\-\\-trust\\-workspace\\fR" in page
    if groff := shutil.which("groff"):
        done = subprocess.run(
            [groff, "-man", "-Kutf8", "-Tutf8", "-ww"], input=page, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_without_the_libraries_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shtab", "argparse_manpage.manpage"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    for arguments, what in ((("completion", "bash"), "shtab"), (("man",), "argparse-manpage")):
        outcome = run_main(*arguments)
        assert outcome.code == 2 and f"needs the package {what}" in outcome.err
        assert outcome.err.endswith("hint: pip install 'streamsql-console[shell]'\n")


# ---- a report


@pytest.mark.usefixtures("processes")
def test_the_file_for_a_report_masks_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "catalog.sql").write_text(
        f"CREATE SINK db USING jdbc OPTIONS (url 'jdbc:postgresql://u:{SECRET}@h/d', dbtable 't', password '{SECRET}');\n"
    )
    (workspace / "status.json").write_text('{"version": 2, "queries": {"counts": {"status": "FAILED"}}}')
    log = tmp_path / "cache" / "streamsql" / "spark.log"
    log.parent.mkdir(parents=True)
    log.write_text("first line\n" + "line\n" * 400 + f"ERROR fs.s3a.secret.key={SECRET}\n")
    (tmp_path / "config.toml").write_text(f'[spark]\n"spark.hadoop.fs.s3a.secret.key" = "{SECRET}"\n')
    outcome = run_main(
        "support", "-w", str(workspace), "--config", str(tmp_path / "config.toml"), "r.txt", cwd=tmp_path
    )
    assert outcome.code == 0 and outcome.out.startswith("r.txt: ") and "read it first" in outcome.out
    text = (tmp_path / "r.txt").read_text("utf-8")
    assert SECRET not in text and text.count("***") >= 3
    for part in ('"pyspark": ', "CREATE SINK db", '"FAILED"', "ERROR fs.s3a.secret.key", "(there is none)"):
        assert part in text
    assert "first line" not in text
    assert (tmp_path / "r.txt").stat().st_mode & 0o777 == 0o600
    again = run_main("support", "r.txt", cwd=tmp_path)
    assert again.code == 2 and "cannot write r.txt: file exists" in again.err.lower()


@pytest.mark.usefixtures("processes")
def test_a_report_about_a_config_file_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("format = [")
    outcome = run_main("support", "--config", "config.toml", "r.txt", cwd=tmp_path)
    assert outcome.code == 0
    assert "BAD_CONFIG" in (tmp_path / "r.txt").read_text("utf-8")
