"""A Hadoop file system for local files that starts no process for each file that it creates.

Its source is LocalFiles.java; the jar holds what Janino, the compiler in Spark's own jars, makes of it:

    python tests/local_files_jar.py

writes the jar again. A test compares both.
"""

from __future__ import annotations

from pathlib import Path

CLASS = "streamsql.LocalFiles"
SOURCE = Path(__file__).with_name("LocalFiles.java")
JAR = Path(__file__).with_name("local_files.jar")
