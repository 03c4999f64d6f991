"""Plug-ins: what they import, the example that is installed, and those that cannot be used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from test_features import console

from streamsql import plugin
from streamsql.language.topics import topic

ROOMS = ("streamsql/plugin.py", "streamsql/plug_in_loader.py", "streamsql/connectors/", "examples/plugin/")


def test_a_plug_in_has_ten_names_and_the_topic_tells_each() -> None:
    page = topic("plugins")
    assert page is not None
    assert len(plugin.__all__) == 10
    assert sorted(re.findall(r"(?m)^\| (\w+) \|", page.text)[1:]) == sorted(plugin.__all__)
    assert all(getattr(plugin, name) for name in plugin.__all__)
    with pytest.raises(ImportError, match="cannot import name 'Connector'"):
        exec("from streamsql.plugin import Connector")


def test_a_plug_in_imports_nothing_else_of_the_console() -> None:
    imports = [
        line
        for file in (ROOT / "examples" / "plugin").rglob("*.py")
        for line in file.read_text().splitlines()
        if re.match(r"(from|import) streamsql\b", line)
    ]
    assert len(imports) > 3
    assert {line.split()[1] for line in imports} == {"streamsql.plugin"}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The folder into which pip has installed the example."""
    folder = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
    example = str(ROOT / "examples" / "plugin")
    done = subprocess.run([*command, str(folder), example], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_the_example_is_used_as_soon_as_it_is_installed(installed: Path, tmp_path: Path) -> None:
    script = (
        "CREATE STREAM c USING countdown OPTIONS (start 3); CREATE LIVE TABLE t AS SELECT n FROM c;"
        "AWAIT QUERY t IDLE; SELECT * FROM t ORDER BY n; SHOW COUNTDOWNS; HELP countdown; HELP SHOW COUNTDOWNS;"
        "DESCRIBE CONNECTOR countdown; CREATE STREAM d USING countdown OPTIONS (strat 3);"
    )
    code, out, err = console(ROOT, tmp_path, "--format", "csv", "-e", script, more=str(installed))
    assert code == 1
    assert "n\n1\n2\n3\n" in out and "name,start\nc,3\n" in out
    assert "countdown: numbers down to 1" in out
    assert "SHOW COUNTDOWNS lists the streams of countdown" in out
    assert "start,read,positive integer,10,the first number" in out
    assert "countdown has no option strat" in err and "hint: did you mean start?" in err
    assert "warning" not in err


GOOD = "from streamsql.plugin import SparkFormat\nclass Made(SparkFormat):\n    name = 'made'\n"
FEATURE = "from streamsql.plugin import Feature\nFEATURE = Feature(__name__, statements='statement', handlers='run')"
STATEMENT = (
    "from dataclasses import dataclass\nfrom streamsql.plugin import Statement\n\n\n"
    "@dataclass(frozen=True, kw_only=True)\nclass {0}(Statement):\n    topic = '{0}'\n"
)
BROKEN: dict[str, tuple[dict[str, str], str]] = {
    # a file → its text; what the warning says
    "missing_module": ({"c.py": "import no_such_module"}, "ModuleNotFoundError: No module named 'no_such_module'"),
    "no_class": ({"c.py": ""}, "AttributeError: module 'no_class.c' has no attribute 'Made'"),
    "raises": ({"c.py": f"{GOOD}    def __init__(self): raise OSError('no network')"}, "OSError: no network"),
    "no_connector": ({"c.py": "class Made: name = 'made'"}, "TypeError: Made is no Connector"),
    "takes_a_name": ({"c.py": GOOD.replace("made", "kafka")}, "ValueError: its name kafka is taken"),
    "exits": ({"c.py": "raise SystemExit(3)"}, "SystemExit: 3"),
    "no_feature": ({"__init__.py": "FEATURE = 1"}, "TypeError: no_feature.FEATURE is no Feature"),
    "no_rule": (
        {"__init__.py": FEATURE, "statement.py": STATEMENT.format("Greet")},
        "LookupError: there is no rule of its own for Greet",
    ),
    "takes_a_rule": (
        {"__init__.py": FEATURE, "statement.py": STATEMENT.format("CreateStream")},
        "LookupError: there is no rule of its own for CreateStream",
    ),
    "twice": (
        {"__init__.py": FEATURE, "statement.py": STATEMENT.format("Twice"), "a.gram": "CreateStream <- 'TWICE' ~\n"},
        "ValueError: rule CreateStream is defined twice",
    ),
    "wrong_rule": (
        {"__init__.py": FEATURE, "statement.py": STATEMENT.format("Odd"), "a.gram": "Odd <- 'ODD' ( Nowhere\n"},
        "",
    ),
}  # fmt: skip


def install(folder: Path, name: str, files: dict[str, str]) -> None:
    """A distribution with a connector, or a feature if it has an __init__.py."""
    (folder / name).mkdir()
    for file, text in files.items():
        (folder / name / file).write_text(text)
    is_feature = "__init__.py" in files
    point = (
        f"[streamsql.features]\n{name} = {name}\n"
        if is_feature
        else f"[streamsql.connectors]\n{name} = {name}.c:Made\n"
    )
    metadata = folder / f"{name}-1.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(point)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: 1\n")


@pytest.mark.usefixtures("processes")
def test_a_plug_in_that_cannot_be_used_is_a_warning_and_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # of the log
    plug_ins = tmp_path / "plug_ins"
    plug_ins.mkdir()
    for name, (files, _) in BROKEN.items():
        install(plug_ins, name, files)
    good = {
        "__init__.py": FEATURE,
        "statement.py": STATEMENT.format("Greet"),
        "run.py": "from streamsql.plugin import Text\nfrom good.statement import Greet\n"
        "def greet(parts, statement):\n    if parts.catalog.streams:\n        return Text(text='hello')\n"
        "    raise KeyError('none')\nDIRECT = {Greet: greet}\n",
        "greet.gram": "# GREET greets.\n#> GREET;\nGreet <- 'GREET' ~\n",
    }
    install(plug_ins, "good", good)
    (plug_ins / "good" / "page.md").write_bytes(b"# \xff\xfe: no text\n")
    script = "GREET; CREATE STREAM r USING rate; GREET; CREATE STREAM s USING raises; SHOW STREAMS; HELP WATCH; HELP;"
    arguments = ("--on-error", "continue", "--format", "csv", "-e", script)
    code, out, err = console(ROOT, tmp_path, *arguments, more=str(plug_ins))
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    for name, (files, says) in BROKEN.items():
        kind = "feature" if "__init__.py" in files else "connector"
        begin = f"warning: the plug-in dist-{name}: its {kind} {name} cannot be loaded: {says}"
        assert len([line for line in warnings if line.startswith(begin)]) == 1, (name, err)
    assert len(warnings) == len(BROKEN)
    assert code == 1
    assert "error[INTERNAL]: KeyError: 'none'" in err
    assert (
        "the plug-in of the connector raises cannot be loaded\n" in err
        and "detail: OSError: no network" in err
    )
    assert "hello" in out and "r,rate," in out and "WATCH" in out and "GREET" in out
    log = "".join(file.read_text() for file in tmp_path.rglob("spark.log"))
    assert (
        log.count("the plug-in dist-raises: its connector raises cannot be loaded: OSError: no network") == 1
    )
    assert "Traceback" in log and "Traceback" not in err
