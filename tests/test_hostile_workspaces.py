"""Folders that are broken, foreign or hostile are opened as workspaces: nothing in them or around them is lost,
and nothing of them runs.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from streamsql.cli.main import main
from streamsql.runtime.workspace.folder import Held, Workspace, holder
from streamsql.runtime.workspace.workspace_files import STATUS

NOTHING = "SHOW STREAMS; SHOW SINKS; SHOW QUERIES; SHOW LIVE TABLES; HELP;"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious" / "checkpoint").mkdir(parents=True)
    (tmp_path / "precious" / "gold.txt").write_text("gold")
    (tmp_path / "precious" / "checkpoint" / "metadata").write_text("{}")
    (tmp_path / "w").mkdir(mode=0o700)


def snapshot(folder: Path) -> dict[str, object]:
    """All that lies in a folder, symbolic links as such: type, mode, owner and content."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*"), key=str):
        status = path.lstat()
        content: object = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_uid, content)
    return found


def marked(**more: object) -> None:
    Path("w/streamsql.json").write_text(json.dumps({"kind": "workspace", "version": 2} | more))


def catalog(text: str = "") -> None:
    Path("w/catalog.sql").write_text(f"-- The definitions of a workspace.\n\n{text}\n")


def link(name: str) -> None:
    """A marked workspace with a symbolic link to what is precious in the place of one of its own."""
    marked()
    Path("w", name).parent.mkdir(parents=True, exist_ok=True)
    Path("w", name).symlink_to(Path("precious").absolute())


def put(name: str, content: str = "mine", *, mode: int = 0o600) -> None:
    Path("w", name).parent.mkdir(parents=True, exist_ok=True)
    Path("w", name).write_text(content)
    Path("w", name).chmod(mode)


def of_project() -> None:
    put("run/queries/mine/checkpoint/offsets/0")
    put("run/data.csv")
    put("main.py", "print()")


def with_version(name: str, version: object) -> Callable[[], None]:
    def make() -> None:
        marked()
        put(name, json.dumps({"kind": "workspace", "version": version, "queries": {}, "functions": {}}))

    return make


def of_other_owner(name: str = "") -> Callable[[], None]:
    def make() -> None:
        marked()
        catalog()
        os.chown(Path("w", name), 12345, 12345)

    return make


def writable(name: str = "") -> Callable[[], None]:
    def make() -> None:
        marked()
        catalog()
        Path("w", name).chmod(0o777)

    return make


def also(*steps: Callable[[], object]) -> Callable[[], None]:
    def make() -> None:
        for step in steps:
            step()

    return make


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a project with a folder run": (of_project, "w is not a workspace: it has no streamsql.json"),
    "one file of somebody's": (lambda: put("notes.txt"), "it holds notes.txt"),
    "a file named lock that is not empty": (lambda: put("lock"), "it holds lock"),
    "a catalog of another program": (
        lambda: put("catalog.sql", "CREATE TABLE t (n INT);"),
        "it holds catalog.sql",
    ),
    "only a folder run that holds something": (lambda: put("run/queries/mine/x"), "it holds run"),
    "a linked run": (lambda: link("run"), "w/run is a symbolic link"),
    "linked queries": (lambda: link("run/queries"), "w/run/queries is a symbolic link"),
    "linked live tables": (lambda: link("run/live"), "w/run/live is a symbolic link"),
    "linked streams": (lambda: link("run/streams"), "w/run/streams is a symbolic link"),
    "a linked trash": (lambda: link("trash"), "w/trash is a symbolic link"),
    "a linked catalog": (
        also(marked, lambda: Path("w/catalog.sql").symlink_to(Path("precious/gold.txt").absolute())),
        "w/catalog.sql is a symbolic link",
    ),
    "a linked marker": (
        lambda: Path("w/streamsql.json").symlink_to(Path("precious/gold.txt").absolute()),
        "w/streamsql.json is a symbolic link",
    ),
    "a linked lock": (
        also(marked, lambda: Path("w/lock").symlink_to(Path("precious/gold.txt").absolute())),
        "w/lock is a symbolic link",
    ),
    "a linked status": (
        also(marked, lambda: Path("w/status.json").symlink_to(Path("precious/gold.txt").absolute())),
        "w/status.json is a symbolic link",
    ),
    "a pipe as catalog": (also(marked, lambda: os.mkfifo("w/catalog.sql")), "w/catalog.sql is not a file"),
    "a folder as catalog": (also(marked, lambda: os.mkdir("w/catalog.sql")), "w/catalog.sql is not a file"),
    "a file as run": (also(marked, lambda: put("run")), "w/run is not a folder"),
    "a half-written marker": (lambda: put("streamsql.json", '{"kind": "work'), "is not the marker of one"),
    "an empty marker": (lambda: put("streamsql.json", ""), "is not the marker of one"),
    "the marker of a checkpoint": (
        lambda: put("streamsql.json", '{"query": "q", "text": ""}'),
        "is not the marker of one",
    ),
    "a marker of a later version": (with_version("streamsql.json", 3), "written by a later version"),
    "a marker without a usable version": (with_version("streamsql.json", "x"), "written by a later version"),
    "a status of a later version": (
        with_version("status.json", STATUS + 1),
        "w/status.json was written by a later version",
    ),
    "a catalog with an open quote": (
        also(marked, lambda: catalog("SELECT 'open"), lambda: put("run/queries/q/.streamsql.json", "{}")),
        "w/catalog.sql:3:8: error[SYNTAX_ERROR]: the quote is not closed",
    ),
    "a catalog with an open comment": (
        also(marked, lambda: catalog("/* open"), lambda: put("run/live/t/.streamsql.json", "{}")),
        "comment is not closed",
    ),
    "a catalog that is not text": (
        also(marked, lambda: Path("w/catalog.sql").write_bytes(b"\xff\xfe\x00")),
        "w/catalog.sql cannot be read",
    ),
    "a folder that all may write to": (writable(), "other users may write to it"),
    "a catalog that all may write to": (
        writable("catalog.sql"),
        "w/catalog.sql: other users may write to it",
    ),
    "a file in the place of the folder": (
        also(lambda: os.rmdir("w"), lambda: Path("w").write_text("mine")),
        "w is a file, not a folder",
    ),
}
if os.geteuid() == 0:
    REFUSED |= {
        "another's folder": (of_other_owner(), "another user owns it"),
        "another's catalog": (of_other_owner("catalog.sql"), "w/catalog.sql: another user owns it"),
    }
else:
    REFUSED["a folder that cannot be read"] = (lambda: Path("w").chmod(0), "permission denied")


@pytest.mark.parametrize("way", [(), ("--read-only",), ("--check",)], ids=lambda w: " ".join(w) or "open")
@pytest.mark.parametrize("folder", REFUSED)
def test_it_is_refused_and_every_byte_stays(
    folder: str, way: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, said = REFUSED[folder]
    make()
    before = snapshot(tmp_path)
    for _ in range(2):
        assert main([*way, "-w", "w", "-e", NOTHING]) in (1, 2)
        assert said in capsys.readouterr().err
    assert snapshot(tmp_path) == before


def test_what_is_not_the_consoles_stays_where_it_is(tmp_path: Path) -> None:
    """Below the folders of a workspace, too: only what bears the mark is moved."""
    marked()
    catalog()
    put("run/queries/foreign/checkpoint/offsets/0")
    put("run/live/foreign/kind.json", "{}")
    put("run/streams/foreign/data.parquet")
    put("run/queries/a_file")
    put("run/notes/x")
    put("mine/x")
    Path("w/run/queries/linked").symlink_to(Path("precious").absolute())
    Path("precious/.streamsql.json").write_text("{}")
    put("run/live/marked_by_link/x")
    Path("w/run/live/marked_by_link/.streamsql.json").symlink_to(Path("precious/gold.txt").absolute())
    put("trash/foreign/x")
    Path("w/trash/linked").symlink_to(Path("precious").absolute())
    before = snapshot(tmp_path)
    for _ in range(2):
        assert main(["-w", "w", "-e", f"{NOTHING} EMPTY TRASH;"]) == 0
    after = snapshot(tmp_path)
    assert {k: v for k, v in after.items() if k in before and k != "w/catalog.sql"} == {
        k: v for k, v in before.items() if k != "w/catalog.sql"
    }


def test_leftovers_go_to_the_trash_and_are_emptied_by_a_statement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marked()
    catalog()
    for kind in ("queries", "live", "streams"):
        put(f"run/{kind}/left/.streamsql.json", "{}")
        put(f"run/{kind}/left/below/data", f"data of {kind}")
    put("run/streams/hollow/.streamsql.json", "{}")
    assert main(["-w", "w", "--read-only", "-e", NOTHING]) == 0
    assert Path("w/run/queries/left").exists()
    capsys.readouterr()
    assert main(["-w", "w", "-e", NOTHING]) == 0
    said = capsys.readouterr().err
    assert (
        "note: 3 folders that no definition uses moved to w/trash: "
        "queries/left, live/left, streams/left; EMPTY TRASH; deletes" in said
    )
    kept = {p.name.rsplit("-", 2)[0]: (p / "below" / "data").read_text() for p in Path("w/trash").iterdir()}
    assert kept == {f"{kind}-left": f"data of {kind}" for kind in ("queries", "live", "streams")}
    assert list(Path("w/run/queries").iterdir()) == []
    assert main(["-w", "w", "-e", NOTHING]) == 0
    assert "trash" not in capsys.readouterr().err
    assert main(["-w", "w", "-e", "EMPTY TRASH;"]) == 0
    assert "3 folders deleted" in capsys.readouterr().err
    assert list(Path("w/trash").iterdir()) == []


def test_nothing_is_moved_while_a_statement_of_the_catalog_cannot_be_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    marked()
    catalog("CREATE SINK k USING carrier_pigeon;")
    put("run/queries/k/.streamsql.json", "{}")
    put("run/queries/k/checkpoint/metadata", "{}")
    for _ in range(2):
        assert main(["-w", "w", "-e", NOTHING]) == 0
        assert "there is no connector carrier_pigeon; kept in w/catalog.sql" in capsys.readouterr().err
    assert Path("w/run/queries/k/checkpoint/metadata").exists()
    assert not Path("w/trash").exists()


def test_empty_and_new_folders_become_workspaces_for_their_owner_only(tmp_path: Path) -> None:
    Path("w").chmod(0o777)
    defined = "CREATE STREAM s (n INT) USING values; CREATE SINK t USING noop; SET spark.a = 1;"
    for folder in ("w", "deep/er/new"):
        assert main(["-w", folder, "-e", defined]) == 0
        made = [Path(folder), *Path(folder).rglob("*")]
        assert {"streamsql.json", "catalog.sql", "status.json", "run"} <= {p.name for p in made}
        assert not [str(p) for p in made if p.stat().st_mode & 0o077]
        assert json.loads(Path(folder, "streamsql.json").read_text()) == {"kind": "workspace", "version": 2}
        assert json.loads(Path(folder, "status.json").read_text())["version"] == STATUS


def test_a_workspace_that_a_console_was_killed_in_is_opened() -> None:
    put("lock", "")
    put("streamsql.json.part", '{"ki')
    Path("w/run").mkdir()
    assert main(["-w", "w", "-e", NOTHING]) == 0
    assert json.loads(Path("w/streamsql.json").read_text())["kind"] == "workspace"


def test_a_status_that_cannot_be_read_is_kept_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    marked()
    catalog()
    for broken in ('{"version": 1, "que', "[1]", '{"version": 1, "queries": 3, "functions": {}}'):
        put("status.json", broken)
        assert main(["-w", "w", "-e", NOTHING]) == 0
        assert "w/status.json cannot be read" in capsys.readouterr().err
        kept = [p for p in Path("w").iterdir() if p.name.startswith("status.json.")]
        assert [p.read_text() for p in kept] == [broken]
        kept[0].unlink()


def test_looking_at_a_workspace_imports_no_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("code").mkdir()
    Path("code/evil_module.py").write_text(
        "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\ndef f(x): return x\n"
    )
    marked()
    catalog("CREATE FUNCTION f AS 'evil_module.f' LANGUAGE PYTHON RETURNS INT;")
    functions = {"f": {"folder": str(tmp_path / "code"), "kind": "scalar", "form": "plain", "modules": []}}
    put("status.json", json.dumps({"version": 1, "queries": {}, "functions": functions}))
    look = f"{NOTHING} DESCRIBE FUNCTION f; SHOW CREATE FUNCTION f;"
    for way in ((), ("--read-only",), ("--check",)):
        assert main([*way, "-w", "w", "-e", look]) == 0
    assert main(["--check", "-w", "w", "-e", "CREATE STREAM s USING rate; SELECT f(value) FROM s;"]) == 0
    assert "LANGUAGE PYTHON RETURNS INT" in capsys.readouterr().out
    assert not Path("code/ran").exists()


def test_settings_that_can_run_code_wait_for_the_word(capsys: pytest.CaptureFixture[str]) -> None:
    marked()
    held = {
        "spark.jars": "evil.jar",
        "spark.jars.packages": "a:b:1",
        "spark.driver.extraJavaOptions": "-javaagent:evil.jar",
        "spark.plugins": "evil.Plugin",
        "spark.extraListeners": "evil.Listener",
        "spark.sql.extensions": "evil.Extension",
        "spark.sql.streaming.streamingQueryListeners": "evil.Listener",
        "spark.sql.streaming.stateStore.providerClass": "evil.Provider",
        "spark.hadoop.fs.evil.impl": "evil.FileSystem",
        "spark.pyspark.python": "/evil",
    }
    free = {"spark.sql.ansi.enabled": "true", "spark.sql.parquet.compression.codec": "snappy"}
    catalog("\n".join(f"SET {k} = '{v}';" for k, v in (held | free).items()))

    def shown(*flags: str) -> set[tuple[str, str]]:
        assert main(["-w", "w", *flags, "--format", "csv", "-e", "SET;"]) == 0
        out, err = capsys.readouterr()
        assert ("settings of the workspace that can run code are not applied" in err) == (not flags)
        return {(k, v) for k, v, *_ in (line.split(",") for line in out.splitlines())}

    for _ in range(2):  # they stay in the catalog
        assert set(free.items()) <= (there := shown())
        assert not set(held.items()) & there
    assert set((held | free).items()) <= shown("--trust-workspace")


def test_a_workspace_of_others_is_opened_with_the_word(capsys: pytest.CaptureFixture[str]) -> None:
    writable()()
    assert main(["-w", "w", "-e", NOTHING]) == 2
    assert "--trust-workspace opens it anyway" in capsys.readouterr().err
    assert main(["-w", "w", "--trust-workspace", "-e", NOTHING]) == 0
    assert Path("w").stat().st_mode & 0o777 == 0o777


def test_who_holds_a_workspace_is_asked_without_a_change(tmp_path: Path) -> None:
    assert holder(Path("w")) == ""
    assert list(Path("w").iterdir()) == []
    held = Workspace(Path("w"))
    with pytest.raises(Held, match=f"process {os.getpid()}"):
        Workspace(Path("w"))
    before = snapshot(tmp_path)
    assert f"process {os.getpid()}" in holder(Path("w"))
    assert snapshot(tmp_path) == before
    held.close()
    before = snapshot(tmp_path)
    assert holder(Path("w")) == ""
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE STREAM {} (n INT) USING values;",
        "CREATE SINK {} USING noop;",
        "CREATE LIVE TABLE {} AS SELECT n FROM s;",
        "CREATE OR REPLACE LIVE TABLE {} AS SELECT n FROM s;",
        "INSERT INTO k AS QUERY {} SELECT n FROM s;",
        "EXECUTE STATEMENT SET AS QUERY {} BEGIN INSERT INTO k SELECT n FROM s; END;",
        "CREATE FUNCTION {} AS 'm.f' LANGUAGE PYTHON RETURNS INT;",
        "CREATE STREAM t ({} INT) USING values;",
        "DEFINE {} = 'x';",
    ],
)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "a name cannot be empty"),
        ("a" * 256, "the name is 256 bytes long; at most 255 are allowed"),
        ("é" * 128, "the name is 256 bytes long; at most 255 are allowed"),
    ],
    ids=["empty", "long", "long in bytes"],
)
def test_a_name_that_nothing_can_have_is_refused_in_its_place(
    statement: str, name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "CREATE STREAM s (n INT) USING values; CREATE SINK k USING noop; "
    assert main(["--check", "-e", script + statement.format(f"`{name}`")]) == 1
    column, code = len(script) + statement.index("{}") + 1, "NAME_TOO_LONG" if name else "BAD_NAME"
    assert f"-e:1:{column}: error[{code}]: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["..", ".", "../../precious", "/etc", "a/b", "~", "a\\b", "é" * 127, "%", "con", "*"]
)
def test_no_name_leaves_its_place(name: str, tmp_path: Path) -> None:
    before = snapshot(tmp_path / "precious")
    assert (
        main(
            [
                "-w",
                "w",
                "-e",
                f"CREATE STREAM `{name}` (n INT) USING values; CREATE STREAM b (n INT) USING values;",
            ]
        )
        == 0
    )
    assert len(list(Path("w/run/streams").iterdir())) == 2
    assert main(["-w", "w", "-e", f"CREATE OR REPLACE STREAM `{name}` (m INT) USING values;"]) == 0
    assert len(list(Path("w/run/streams").iterdir())) == 2
    assert main(["-w", "w", "-e", f"DROP STREAM `{name}`;"]) == 0
    assert main(["-w", "w", "-e", NOTHING]) == 0
    assert [p.name for p in Path("w/run/streams").iterdir()] == ["b"]
    assert {p.name for p in tmp_path.iterdir()} == {"w", "precious"}
    assert snapshot(tmp_path / "precious") == before


def test_the_rows_of_a_stream_that_is_replaced_are_in_the_trash(capsys: pytest.CaptureFixture[str]) -> None:
    create = "CREATE OR REPLACE STREAM s (n INT) USING values;"
    assert main(["-w", "w", "-e", create]) == 0
    Path("w/run/streams/s/part-0.parquet").write_text("rows")
    capsys.readouterr()
    assert main(["-w", "w", "-e", create]) == 0
    (kept,) = Path("w/trash").iterdir()
    assert (kept / "part-0.parquet").read_text() == "rows"
    said = f"the rows of the stream before it (1 micro-batch) are moved to {kept}; EMPTY TRASH; deletes"
    assert said in capsys.readouterr().err
    assert main(["-w", "w", "-e", f"{create} EMPTY TRASH;"]) == 0
    assert "1 folder deleted" in capsys.readouterr().err


@pytest.mark.usefixtures("processes")
def test_a_workspace_on_a_read_only_file_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It can be looked at, and it is said why no more."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", "w"]
    if os.getuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        marked()
        catalog("CREATE STREAM a (n INT)\n  USING values;")
        Path("w/catalog.sql").chmod(0o600)
        subprocess.run(["mount", "-o", "remount,ro", "w"], check=True)
        before = snapshot(tmp_path)
        assert main(["-w", "w", "-e", NOTHING]) == 2
        assert "cannot be opened: read-only file system" in capsys.readouterr().err
        assert main(["--read-only", "-w", "w", "-e", "SHOW STREAMS;"]) == 0
        assert "values" in capsys.readouterr().out
        assert main(["--check", "-w", "w", "-e", "SHOW STREAMS;"]) == 0
        assert snapshot(tmp_path) == before
    finally:
        subprocess.run(["umount", "w"], check=True)
