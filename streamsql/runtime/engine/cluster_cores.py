"""What the console chooses for a cluster: the shuffle partitions of new checkpoints, from the cores that it
offers, and the options of the executors' JVMs.

Spark's default is 200 partitions: each small micro-batch would run 200 tasks.
"""

from __future__ import annotations

import time
from typing import Any

from streamsql.runtime.engine.java_command import TUNING, spark_defaults
from streamsql.runtime.engine.settings import PARTITIONS, PER_CORE, Settings

FIRST_WORKER = 10.0
"""The seconds to wait for the first worker; later ones are noticed by the next statement."""
MORE_WORKERS = 0.5
"""The seconds without a new worker after which the others are not waited for."""
_POLL = 0.1
_MOST = 100_000


EXECUTOR_OPTIONS = "spark.executor.defaultJavaOptions"
"""Options before those of the user (spark.executor.extraJavaOptions)."""


def tune_executors(settings: Settings) -> None:
    """Let executors start as the driver does, with less compiling. To be called before Spark starts;
    spark-defaults.conf wins.
    """
    local = settings.start_conf()["spark.master"].startswith("local")
    if not local and EXECUTOR_OPTIONS not in spark_defaults():
        settings.defaults[EXECUTOR_OPTIONS] = " ".join(TUNING)


def await_workers(spark: Any) -> None:
    """Wait until the cluster has given workers, so that their cores are known."""
    began = changed = time.monotonic()
    count = 0
    while time.monotonic() - began < FIRST_WORKER:
        now = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
        if now != count:
            count, changed = now, time.monotonic()
        if count and time.monotonic() - changed > MORE_WORKERS:
            return
        time.sleep(_POLL)


def fit_partitions(spark: Any, settings: Settings) -> None:
    """Set the shuffle partitions of a cluster, unless the analyst has chosen them. A checkpoint keeps those
    that it began with.
    """
    if not settings.fits_partitions() or PARTITIONS in spark_defaults():
        return
    wanted = str(PER_CORE * offered_cores(spark))
    if settings.defaults.get(PARTITIONS) != wanted:
        spark.conf.set(PARTITIONS, wanted)
        settings.defaults[PARTITIONS] = wanted


def offered_cores(spark: Any) -> int:
    """The cores of the workers; with dynamic allocation, of as many as there can be."""
    context = spark.sparkContext
    conf = context.getConf()

    def number(key: str) -> int:
        text = conf.get(key) or "0"
        return int(text) if text.isdigit() and int(text) < _MOST else 0

    most = number("spark.dynamicAllocation.maxExecutors") or number("spark.executor.instances")
    return max(context.defaultParallelism, most * max(number("spark.executor.cores"), 1))
