"""Writes early_classes.txt, the classes that Spark's JVM loads until the first row of a windowed count, in their
order: python tests/early_classes.py; then python tests/spark_classes_jar.py. After a change of Spark's version.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIST = Path(__file__).with_name("early_classes.txt")
SCRIPT = """
CREATE STREAM s (user STRING, ts TIMESTAMP) USING json OPTIONS (path '{folder}/in')
  WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
SELECT window, user, count(*) AS n FROM s GROUP BY window(ts, '10 minutes'), user;
"""
_LOADED = re.compile(r"\] (\S+) source: (?:jrt:/|file:)")
_NOT_BY_NAME = re.compile(r"0x|Lambda|\$Proxy|GeneratedClass|EarlyClasses")


def names(log: str) -> list[str]:
    """The classes in a log of -Xlog:class+load that can be loaded by their names, each once."""
    loaded = dict.fromkeys(match.group(1) for match in _LOADED.finditer(log))
    return [name for name in loaded if not _NOT_BY_NAME.search(name)]


def main() -> None:
    """Write the list."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in").mkdir()
        rows = [f'{{"user": "u{i % 7}", "ts": "2024-01-01T10:{i % 60:02d}:00"}}\n' for i in range(500)]
        (Path(folder) / "in" / "a.json").write_text("".join(rows))
        # An option that names a cache: the JVM starts without one, and without this list.
        options = f"-Xshare:auto -Xlog:class+load:file={folder}/log"
        command = [sys.executable, "-m", "streamsql", "--warm", "off", "-e", SCRIPT.format(folder=folder)]
        command += ["--conf", f"spark.driver.extraJavaOptions={options}"]
        subprocess.run(command, check=True, env=os.environ | {"STREAMSQL_NO_AOT": "1"})
        LIST.write_text("".join(f"{name}\n" for name in names((Path(folder) / "log").read_text())))


if __name__ == "__main__":
    main()
