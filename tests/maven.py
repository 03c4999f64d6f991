"""Fetches what tests need from a Maven repository, once: into the console's cache folder."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from streamsql.config.folders import cache_folder

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>streamsql.tests</groupId><artifactId>fetched</artifactId><version>1</version>
<dependencies>{}</dependencies></project>"""
DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
)
CLASSIFIER = "<classifier>{}</classifier>"
ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
TIMEOUT = 240


def fetched(coordinates: Sequence[str], *, alone: bool = False) -> Path | None:
    """The folder with the jars of these coordinates (group:name:version or group:name:version:classifier), and
    with all that they need in turn, unless they are wanted alone. None where Maven is missing or cannot
    fetch them.
    """
    _, *names = coordinates[0].split(":")
    folder = cache_folder() / "test-programs" / "-".join(names)
    if folder.exists() or not shutil.which("mvn"):
        return folder if folder.exists() else None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / "lock", "w") as lock, tempfile.TemporaryDirectory(dir=folder.parent) as making:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the tests may run on several workers
        if folder.exists():
            return folder
        dependencies = "".join(_dependency(written, alone) for written in coordinates)
        Path(making, "pom.xml").write_text(POM.format(dependencies))
        command = ["mvn", "-q", "-B", COPY, "-DincludeScope=runtime", "-DoutputDirectory=lib"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, cwd=making)
            if done.returncode == 0:
                with contextlib.suppress(OSError):  # another run of the tests was quicker
                    Path(making, "lib").rename(folder)
    return folder if folder.exists() else None


def _dependency(coordinates: str, alone: bool) -> str:
    group, name, version, *classifier = coordinates.split(":")
    more = "".join(CLASSIFIER.format(word) for word in classifier) + (ALONE if alone else "")
    return DEPENDENCY.format(group, name, version, more)
