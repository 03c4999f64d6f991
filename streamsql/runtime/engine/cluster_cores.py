"""The shuffle partitions of new checkpoints on a cluster, chosen from the cores that it offers.

Spark's default is 200: each small micro-batch would run 200 tasks.
"""

from __future__ import annotations

import time
from typing import Any

from streamsql.runtime.engine.java_command import spark_defaults
from streamsql.runtime.engine.settings import PARTITIONS, PER_CORE, Settings

FIRST_WORKER = 10.0
"""The seconds to wait for the first worker; later ones are noticed by the next statement."""
MORE_WORKERS = 0.5
"""The seconds without a new worker after which the others are not waited for."""
_POLL = 0.1
_MOST = 100_000


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
