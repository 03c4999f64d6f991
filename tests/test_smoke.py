"""The shortest way through everything: a file stream, a live table, a SELECT."""

from pathlib import Path

from conftest import Console


def test_live_table_from_files(console: Console, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_text('{"user":"ann"}\n{"user":"bob"}\n{"user":"ann"}\n')
    rows = console.rows(
        f"""
        CREATE STREAM clicks (user STRING) USING json OPTIONS (path '{folder}');
        CREATE LIVE TABLE counts AS SELECT user, count(*) AS n FROM clicks GROUP BY user;
        AWAIT QUERY counts IDLE;
        SELECT * FROM counts ORDER BY user;
        """
    )
    assert rows == [("ann", 2), ("bob", 1)]
