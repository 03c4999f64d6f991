"""Jars that the tests need, fetched by Maven into the cache folder once."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from streamsql.folders import cache_folder

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>streamsql.tests</groupId><artifactId>{artifact}</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def _maven(*arguments: str, cwd: str, seconds: float) -> bool:
    """Whether Maven is there and did what it was asked."""
    if not shutil.which("mvn"):
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        return not subprocess.run(
            ["mvn", "-q", "-B", *arguments], capture_output=True, timeout=seconds, cwd=cwd
        ).returncode
    return False


@cache
def jar(package: str) -> Path | None:
    """The jar of group:name:version, without what it needs; None where Maven cannot fetch it."""
    _, artifact, version = package.split(":")
    path = cache_folder() / "test-drivers" / f"{artifact}-{version}.jar"
    if not path.exists():
        _maven(
            f"{PLUGIN}:copy",
            f"-Dartifact={package}",
            f"-DoutputDirectory={path.parent}",
            cwd=tempfile.gettempdir(),
            seconds=120,
        )
    return path if path.exists() else None


@cache
def program(*packages: str) -> Path | None:
    """A folder with packages and all that they need at run time; None where Maven cannot fetch them."""
    _, artifact, version = packages[0].split(":")
    folder = cache_folder() / "test-programs" / f"{artifact}-{version}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as making:
        dependencies = "".join(DEPENDENCY.format(*p.split(":")) for p in packages)
        Path(making, "pom.xml").write_text(POM.format(artifact=artifact, dependencies=dependencies))
        goal = (f"{PLUGIN}:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib")
        if not _maven(*goal, cwd=making, seconds=240):
            return None
        with contextlib.suppress(OSError):  # another run of the tests was quicker
            Path(making, "lib").rename(folder)
    return folder
