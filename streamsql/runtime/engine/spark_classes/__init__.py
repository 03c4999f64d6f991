"""Classes of the console in Spark's JVM: a Hadoop file system for local files that starts no process for
each file that it creates, and rules over Spark's plans (Rules.java). Event times are counted where Spark
reads them for a watermark, split_part needs no regular expression, and JSON of files and messages is read as
bytes. RowSpool.java hands over large results. SessionStart.java starts a session without MLlib.
ScalaLambdas.java writes classes for the start-up cache; EarlyClasses.java starts Spark where there is none.

The sources are the java files here; the jar has what Janino, the compiler in Spark's own jars, makes of them:

    python tests/spark_classes_jar.py

writes the jar again. A test compares both.
"""

from __future__ import annotations

from pathlib import Path

EARLY_CLASSES = "streamsql.EarlyClasses"
LOCAL_FILES = "streamsql.LocalFiles"
ROW_SPOOL = "streamsql.RowSpool"
SCALA_LAMBDAS = "streamsql.ScalaLambdas"
SESSION_START = "streamsql.SessionStart"
JSON_LINES = "spark.streamsql.jsonLines"
"""The setting that turns the rules of JsonLines.java and JsonMessages.java off."""
EXTENSIONS = {"META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider": ("streamsql.Rules\n")}
"""By its path in the jar, the file with which Java's ServiceLoader hands Spark the rules."""
SOURCES = tuple(
    Path(__file__).with_name(f"{name}.java")
    for name in (
        "CurrentTimes",
        "EarlyClasses",
        "EventTimes",
        "FewRows",
        "FileLines",
        "JsonLine",
        "JsonLines",
        "JsonMessages",
        "LocalFiles",
        "RowSpool",
        "Rules",
        "ScalaLambdas",
        "SessionStart",
        "SplitByCharacter",
    )
)
JAR = Path(__file__).with_name("spark_classes.jar")
