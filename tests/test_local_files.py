"""Hadoop's local file system without a process for each file."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path
from typing import Any

from local_files_jar import compiled

from streamsql.runtime.engine.local_files import CLASS, JAR


def test_the_jar_is_what_its_source_compiles_to(spark: Any) -> None:
    with zipfile.ZipFile(JAR) as jar:
        kept = {name: jar.read(name) for name in jar.namelist()}
    assert kept == compiled(spark._jvm)


def file_system(spark: Any) -> Any:
    java = spark._jvm
    return java.org.apache.hadoop.fs.FileSystem.get(
        java.java.net.URI("file:///"), spark._jsc.hadoopConfiguration()
    )


def test_permissions_are_set_as_by_chmod(spark: Any, tmp_path: Path) -> None:
    files, java = file_system(spark), spark._jvm
    assert files.getClass().getName() == CLASS
    for mode in (0o600, 0o644, 0o755, 0o440, 0o1777):
        file = tmp_path / f"{mode:o}"
        file.touch()
        files.setPermission(
            java.org.apache.hadoop.fs.Path(str(file)),
            java.org.apache.hadoop.fs.permission.FsPermission(f"{mode:o}"),
        )
        assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_query_starts_no_process_for_its_checkpoint(console: Any, spark: Any, tmp_path: Path) -> None:
    children = f"/proc/{spark.sparkContext._gateway.proc.pid}/stat"

    def waited_for() -> list[str]:
        """The page faults of children that have ended: each process has some."""
        return Path(children).read_text().rsplit(")", 1)[1].split()[8:12:2]

    before = waited_for() if os.path.exists(children) else []
    console.run(
        "CREATE STREAM s (n INT) USING values;"
        "CREATE LIVE TABLE t TRIGGER AVAILABLE NOW AS SELECT n, count(*) AS c FROM s GROUP BY n;"
        "AWAIT QUERY t;"
    )
    logs = list(tmp_path.glob("console*/**/offsets")) + list(tmp_path.glob("console*/**/commits"))
    assert logs and all(stat.S_IMODE(folder.stat().st_mode) == 0o755 for folder in logs)
    if before:
        assert waited_for() == before
