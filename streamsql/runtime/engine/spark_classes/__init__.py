"""Classes of the console in Spark's JVM: a Hadoop file system for local files that starts no process for
each file that it creates, rules over Spark's plans (Rules.java), with which JSON of files and messages is
read as bytes, and RowSpool.java, which hands over large results.

The sources are the java files here; the jar has what Janino, the compiler in Spark's own jars, makes of them:

    python tests/spark_classes_jar.py

writes the jar again. A test compares both.
"""

from __future__ import annotations

from pathlib import Path

LOCAL_FILES = "streamsql.LocalFiles"
ROW_SPOOL = "streamsql.RowSpool"
RULES = "streamsql.Rules"
SWITCH = "spark.streamsql.rules"
"""The setting of Spark that switches the rules off in a session: what SET streamsql.rules sets."""
SPARK_VERSION = "4.3.0"
"""The version of Spark that the jar is built for: the rules are active on no other."""
RESOURCES = {
    "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider": f"{RULES}\n",
    "streamsql/spark-version": f"{SPARK_VERSION}\n",
}
"""By their paths in the jar, the files with which Java's ServiceLoader hands Spark the rules, and from which
the rules read the version that they are built for.
"""
SOURCES = tuple(
    Path(__file__).with_name(f"{name}.java")
    for name in (
        "FileLines",
        "JsonLine",
        "JsonLines",
        "JsonMessages",
        "LocalFiles",
        "RowSpool",
        "Rules",
    )
)
JAR = Path(__file__).with_name("spark_classes.jar")
