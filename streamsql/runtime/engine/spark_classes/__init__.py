"""Classes of the console in Spark's JVM: a Hadoop file system for local files that starts no process for each
file that it creates, a rule that aggregates sliding windows by their slides first, and one that counts event
times where Spark reads them for a watermark.

The sources are the java files here; the jar has what Janino, the compiler in Spark's own jars, makes of them:

    python tests/spark_classes_jar.py

writes the jar again. A test compares both.
"""

from __future__ import annotations

from pathlib import Path

LOCAL_FILES = "streamsql.LocalFiles"
SLIDES = "spark.streamsql.slides"
"""The setting that turns the rule of SlidingWindows.java off."""
EXTENSIONS = {
    "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider": (
        "streamsql.SlidingWindows\nstreamsql.EventTimes\n"
    )
}
"""By its path in the jar, the file with which Java's ServiceLoader hands Spark the rules."""
SOURCES = tuple(
    Path(__file__).with_name(f"{name}.java") for name in ("EventTimes", "LocalFiles", "SlidingWindows")
)
JAR = Path(__file__).with_name("spark_classes.jar")
