"""Makes Hadoop's configuration cheap to send to tasks."""

from __future__ import annotations

from typing import Any


def forget_sources(context: Any) -> None:
    """Forget where each Hadoop setting of a SparkContext came from; its value stays.

    Each micro-batch broadcasts the whole configuration, some 1,100 settings, once for its files and once
    for each stateful operation. Hadoop's Configuration.write compresses the source of each setting
    ("core-default.xml") by itself, which takes three quarters of the time: 8 ms, and 2 ms without. Nothing
    of Spark reads the sources. context: PySpark's SparkContext, classic.
    """
    class_named = context._jvm.java.lang.Class.forName
    for name in ("hdfs.HdfsConfiguration", "mapred.JobConf"):  # each adds settings, and has all loaded again
        class_named(f"org.apache.hadoop.{name}")
    settings = context._jsc.hadoopConfiguration()
    settings.size()  # loads them
    field = class_named("org.apache.hadoop.conf.Configuration").getDeclaredField("updatingResource")
    field.setAccessible(True)
    sources = field.get(settings)
    if sources is not None:
        sources.clear()
