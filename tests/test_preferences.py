"""Preferences, the config file, and short forms: what is chosen, where it comes from, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripts import run_process

from streamsql.config.config_file import read_config
from streamsql.config.preferences import COMMAND_LINE, CONFIG_FILE, SPECS, Preferences, check
from streamsql.errors import InputFault, NameFault, StreamsqlError, UsageFault
from streamsql.language.short_forms import SHORT, expand, listing
from streamsql.output.error_text import format_error
from streamsql.runtime.engine.settings import Settings, rules_setting

ROOMS = ("streamsql/config/", "streamsql/cli/")


def test_every_default_is_a_value_that_can_be_set() -> None:
    for spec in SPECS.values():
        assert check(spec, spec.default) == spec.default


def test_later_layers_win_and_reset_goes_back() -> None:
    chosen = Preferences()
    seen = [(chosen["format"], chosen.origin("format"))]
    for layer, value in ((COMMAND_LINE, "csv"), (CONFIG_FILE, "tsv"), ("SET", "json")):
        chosen.set("format", value, layer)
        seen.append((chosen["format"], chosen.origin("format")))
    assert seen == [("table", "streamsql"), ("csv", "command line"), ("csv", "command line"), ("json", "SET")]
    assert chosen.changed() == ["streamsql.format"]
    chosen.reset("streamsql.format")
    assert (chosen["format"], chosen.changed()) == ("csv", [])


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("format", "CSV", "csv"),
        ("streamsql.Timing", "false", "off"),
        ("expanded", "TRUE", "on"),
        ("expanded", "auto", "auto"),
        ("max_cell", " 007 ", "7"),
        ("refresh", "2s", "2"),
        ("null", " ", " "),
        ("null", "", ""),
        ("pager", "less -S", "less -S"),
    ],
)
def test_a_value_is_kept_in_one_spelling(key: str, value: str, kept: str) -> None:
    assert Preferences().set(key, value) == kept


@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        (
            "format",
            "cvs",
            "format is table, csv, tsv, json, jsonl, markdown or vertical, not cvs",
            "did you mean csv?",
        ),
        ("timing", "perhaps", "timing is on or off, not perhaps", ""),
        ("timing", "", "timing is on or off, not empty", ""),
        ("max_cell", "-1", "max_cell is a whole number, 0 or more, not -1", ""),
        ("max_cell", "²", "max_cell is a whole number, 0 or more, not ²", ""),
        ("refresh", "0", "refresh is seconds, more than 0, not 0", ""),
        ("refresh", "nan", "refresh is seconds, more than 0, not nan", ""),
        ("streamsql.java", "auto", "java is chosen when the console starts", "--java on the command line"),
        ("streamsql.fromat", "csv", "there is no setting streamsql.fromat", "did you mean streamsql.format?"),
        ("streamsql.zzz", "csv", "there is no setting streamsql.zzz", "there are format, expanded"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(key: str, value: str, message: str, hint: str) -> None:
    with pytest.raises((InputFault, NameFault)) as refused:
        Preferences().set(key, value)
    assert refused.value.message == message
    assert hint in refused.value.hint


def config(folder: Path, text: str) -> str:
    path = folder / "config.toml"
    path.write_text(text)
    return str(path)


def test_a_config_file_chooses_and_sets(tmp_path: Path) -> None:
    text = """
format = "jsonl"  # a comment
max_cell = 40
refresh = 0.25
timing = false

[spark]
"spark.sql.shuffle.partitions" = 3
sql.session.timeZone = "UTC"
spark.ui.enabled = true
"""
    chosen = Preferences()
    read = read_config(config(tmp_path, text), chosen)
    assert {n: chosen[n] for n in ("format", "max_cell", "refresh", "timing")} == {
        "format": "jsonl",
        "max_cell": "40",
        "refresh": "0.25",
        "timing": "off",
    }
    assert chosen.origin("format") == "config file"
    assert read.spark == {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "true",
    }
    assert read.warnings == []
    assert read.init_script() is None
    (tmp_path / "init.sql").write_text("SHOW STREAMS;")
    assert read.init_script() == tmp_path / "init.sql"


def test_an_unknown_key_is_warned_about_and_passed_over(tmp_path: Path) -> None:
    path = config(tmp_path, '# mine\nfromat = "csv"\nnull = "-"\n[prak]\nx = 1\n')
    chosen = Preferences()
    assert read_config(path, chosen).warnings == [
        f"{path}:2: there is no setting fromat; did you mean format?",
        f"{path}:4: there is no setting prak; did you mean spark?",
    ]
    assert chosen["null"] == "-"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            'null = "x"\nformat = "cvs"\n',
            ":2:1: error[BAD_CONFIG]: format is table, csv, tsv, json, jsonl, markdown or vertical, not cvs\n"
            '2 | format = "cvs"\n  | ^^^^^^\nhint: did you mean csv?',
        ),
        ("\nmax_cell = true", ":2:1: error[BAD_CONFIG]: max_cell is one value, not true or false"),
        ("format = [1]", ":1:1: error[BAD_CONFIG]: format is one value, not a list"),
        (
            "a = 1\nb = = 2\n",
            ":2:5: error[BAD_CONFIG]: this is not TOML: invalid value\n2 | b = = 2\n  |     ^",
        ),
        ("spark = 3", ":1:1: error[BAD_CONFIG]: spark is a table of settings"),
        ("[spark]\nsql.x = [1]", ":2:5: error[BAD_CONFIG]: x is one value, not a list"),
    ],
)
def test_a_config_file_that_cannot_be_used_says_where(text: str, shown: str, tmp_path: Path) -> None:
    path = config(tmp_path, text)
    with pytest.raises(UsageFault) as refused:
        read_config(path, Preferences())
    assert format_error(refused.value).startswith(path + shown)


def test_a_broken_line_with_a_secret_is_not_shown(tmp_path: Path) -> None:
    path = config(tmp_path, '[spark]\n"spark.hadoop.fs.s3a.secret.key" = "hush\n')
    with pytest.raises(UsageFault) as refused:
        read_config(path, Preferences())
    assert ":2:" in format_error(refused.value)
    assert "hush" not in format_error(refused.value)


# ---- the command line ----------------------------------------------------------------------

SHOW = "SET streamsql.format; SHOW STREAMS;"


@pytest.mark.usefixtures("processes")
def test_a_flag_is_above_the_file_and_set_above_both(tmp_path: Path) -> None:
    path = config(tmp_path, 'format = "csv"\n')
    outcome = run_process("--config", path, "-e", SHOW)
    assert (
        outcome.out
        == "key,value,from\nstreamsql.format,csv,config file\nname,connector,columns,watermark,comment\n"
    )
    outcome = run_process("--config", path, "--format", "tsv", "-e", SHOW)
    assert outcome.out.startswith("key\tvalue\tfrom\nstreamsql.format\ttsv\tcommand line\n")
    outcome = run_process("--config", path, "-e", "SET streamsql.format = jsonl; SET streamsql.format;")
    assert outcome.out == '{"key": "streamsql.format", "value": "jsonl", "from": "SET"}\n'
    outcome = run_process("--config", path, "--no-config", "-e", SHOW)
    assert (outcome.code, outcome.err) == (2, "error[USAGE]: --config and --no-config exclude each other\n")


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_the_config_file_of_the_config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "streamsql").mkdir()
    (tmp_path / "streamsql" / "config.toml").write_text(
        'format = "csv"\ncolour = "never"\nmaster = "local[1]"\n'
    )
    (tmp_path / "streamsql" / "init.sql").write_text("SELECT broken")
    outcome = run_process("-q", "-e", "SET streamsql.master; SET spark.master;")
    assert outcome.code == 0
    assert "streamsql.master,local[1],config file\n" in outcome.out
    assert "spark.master,local[1],config file\n" in outcome.out
    assert "config.toml:2: there is no setting colour; did you mean color?\n" in outcome.err
    outcome = run_process("-q", "--no-config", "-e", SHOW)
    assert "| streamsql.format | table   | streamsql |" in outcome.out
    assert outcome.err == ""


@pytest.mark.usefixtures("processes")
def test_a_config_file_that_is_not_there_or_broken_ends_with_2(tmp_path: Path) -> None:
    outcome = run_process("--config", "missing.toml", "-e", SHOW, cwd=tmp_path)
    assert (outcome.code, outcome.err) == (
        2,
        "error[BAD_CONFIG]: cannot read missing.toml: no such file or directory\n",
    )
    path = config(tmp_path, "max_cell = 'wide'\n")
    outcome = run_process("--check", "--config", path, "-e", SHOW)
    assert outcome.code == 2
    assert outcome.err.startswith(
        f"{path}:1:1: error[BAD_CONFIG]: max_cell is a whole number, 0 or more, not wide\n"
    )


@pytest.mark.usefixtures("processes")
def test_info_tells_where_preferences_come_from(tmp_path: Path) -> None:
    path = config(tmp_path, 'null = "-"\nnul = 1\n[spark]\n"spark.some.password" = "hush"\n')
    shown = run_process("--info", "--config", path, "--format", "csv").out
    facts = json.loads(shown)["config"]
    assert facts["file"] == path
    assert facts["found"] is True
    assert facts["preferences"] == {
        "streamsql.format": {"value": "csv", "from": "command line"},
        "streamsql.null": {"value": "-", "from": "config file"},
    }
    assert facts["warnings"] == [f"{path}:2: there is no setting nul; did you mean null?"]
    assert "hush" not in shown
    assert json.loads(run_process("--info", "--no-config").out)["config"]["file"] == "left out by --no-config"
    broken = run_process("--info", "--config", config(tmp_path, "="))
    assert broken.code == 0
    assert "this is not TOML" in json.loads(broken.out)["config"]["error"]


@pytest.mark.usefixtures("processes")
def test_set_lists_preferences_and_reset_gives_them_back() -> None:
    script = (
        "SET streamsql.null = '-'; SET streamsql.timing = off; SET;"
        "RESET streamsql.null; SET streamsql.null; RESET; SET streamsql.timing;"
    )
    outcome = run_process("--format", "csv", "-e", script)
    assert "streamsql.null,-,SET\nstreamsql.offline,off,streamsql\n" in outcome.out
    assert "\nstreamsql.null,NULL,streamsql\n" in outcome.out
    assert outcome.out.endswith("\nstreamsql.timing,on,streamsql\n")
    assert "streamsql.null = -\n" in outcome.err
    assert "reset: streamsql.timing\n" in outcome.err


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SET streamsql.fromat = csv;", "there is no setting streamsql.fromat"),
        ("SET streamsql.fromat;", "did you mean streamsql.format?"),
        ("RESET streamsql.fromat;", "did you mean streamsql.format?"),
        ("SET streamsql.format = cvs;", "-e:1:5: error[BAD_SETTING]: format is table, csv,"),
        ("SET format = csv;", "did you mean streamsql.format?"),
        ("SET streamsql.master = local;", "master is chosen when the console starts"),
    ],
)
@pytest.mark.usefixtures("processes")
def test_set_refuses_what_is_not_there(statement: str, said: str) -> None:
    outcome = run_process("-e", statement)
    assert outcome.code == 1
    assert said in outcome.err


@pytest.mark.usefixtures("processes")
def test_check_finds_a_preference_that_is_not_there() -> None:
    outcome = run_process("--check", "-e", "SET streamsql.fromat = csv;")
    assert (outcome.code, "did you mean streamsql.format?" in outcome.err) == (1, True)


# ---- short forms -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "statement"),
    [
        ("SELECT 1;", None),
        ("", None),
        (r"\q", "EXIT;"),
        (r" \quit ;", "EXIT;"),
        (r"\h", "HELP;"),
        (r"\h create stream", "HELP create stream;"),
        (r"\d", "SHOW TABLES;"),
        (r"\d clicks", "DESCRIBE TABLE clicks;"),
        (r"\d+ clicks", "DESCRIBE TABLE EXTENDED clicks;"),
        (r"\d+", "SHOW TABLES;"),
        (r"\dq+ counts", "DESCRIBE QUERY counts;"),
        (r"\ds", "SHOW SINKS;"),
        (r"\dl", "SHOW LIVE TABLES;"),
        (r"\dq", "SHOW QUERIES;"),
        (r"\dq q1", "DESCRIBE QUERY q1;"),
        (r"\i my file.sql", "SOURCE 'my file.sql';"),
        (r"\i 'it\'s'", r"SOURCE 'it\\\'s';"),
        (r"\stop q", "STOP QUERY q;"),
        (r"\start ALL", "START QUERY ALL;"),
        (r"\watch t", "WATCH t;"),
        (r"\connectors", "SHOW CONNECTORS;"),
        (r"\connectors json", "SHOW CONNECTORS json;"),
        (r"\mode csv", "SET streamsql.format = csv;"),
        (r"\mode", "SET streamsql.format;"),
        (r"\x", "SET streamsql.expanded = on;"),
        (r"\x auto", "SET streamsql.expanded = auto;"),
        (r"\timing", "SET streamsql.timing = off;"),
        (r"\set", "SET;"),
        (r"\set null", "SET streamsql.null;"),
        (r"\set null -", "SET streamsql.null = -;"),
        (r"\set spark.sql.shuffle.partitions=3", "SET spark.sql.shuffle.partitions = 3;"),
        (r"\reset null", "RESET streamsql.null;"),
        (r"\last", r"\last"),
        (r"\e", r"\e"),
        (r"\fmt", r"\fmt"),
        (r"\errverbose", r"\errverbose"),
        (r"\o out.csv", r"\o out.csv"),
        (r"\! ls -l", r"\! ls -l"),
        (r"\watch 5", r"\watch 5"),
        (r"\watch", r"\watch 2"),
        (r"\watch counts", "WATCH counts;"),
        (r"\?", r"\?"),
    ],
)
def test_short_forms(typed: str, statement: str | None) -> None:
    assert expand(typed, Preferences()) == statement


def test_a_switch_goes_back_and_forth() -> None:
    assert expand(r"\x", Preferences(expanded="on")) == "SET streamsql.expanded = off;"
    assert expand(r"\timing", Preferences(timing="off")) == "SET streamsql.timing = on;"


@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        (r"\wach t", r"there is no short form \wach", r"did you mean \watch?"),
        (r"\zzz", r"there is no short form \zzz", r"\? lists them"),
        (r"\stop", r"\stop needs a name", r"\stop name"),
        (r"\q now", r"\q takes no argument, not now", r"\q"),
    ],
)
def test_a_short_form_that_is_not_there(typed: str, message: str, hint: str) -> None:
    with pytest.raises(StreamsqlError) as refused:
        expand(typed, Preferences())
    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_the_list_of_short_forms_has_each_of_them() -> None:
    lines = listing().splitlines()
    assert [line.split()[0] for line in lines] == ["\\" + short.names[0] for short in SHORT]


def test_every_command_without_a_statement_is_one_of_the_prompt() -> None:
    from streamsql.shell.statement_runner import COMMANDS

    stand_for_themselves = {f"\\{short.names[0]}" for short in SHORT if not short.make}
    assert set(COMMANDS) == stand_for_themselves | {"\\?", "\\watch"}


def test_every_short_form_is_a_statement_that_can_be_read() -> None:
    from streamsql.errors import Source
    from streamsql.language.parser import parse, split_script

    for short in SHORT:
        for given in {"", short.takes.strip("[]").split("|")[0]} - (
            {""} if short.takes[:1] not in "[" else set()
        ):
            made = expand(f"\\{short.names[0]} {given}", Preferences())
            if (made or "").startswith("\\"):
                continue
            (written,) = split_script(Source("short", made or ""))
            parse(written, {})


def test_rules_that_are_off_in_the_config_file_are_off_in_spark() -> None:
    preferences = Preferences()
    assert rules_setting(preferences) == {}
    preferences.set("rules", "false", CONFIG_FILE)
    settings = Settings.make("local[1]", {}, rules_setting(preferences))
    assert settings.start_conf()["spark.streamsql.rules"] == "off"
    assert ("spark.streamsql.rules", "off", CONFIG_FILE) in settings.rows()
