"""Spark's settings: the console's defaults, those of the user, and the origin of each."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any

from streamsql.config.preferences import COMMAND_LINE, CONFIG_FILE, CONSOLE, SET, Preferences
from streamsql.errors import UsageFault
from streamsql.runtime.engine.spark_classes import SWITCH
from streamsql.secrets import SPARK_PATTERN, redact_option


def local_defaults(cores: int) -> dict[str, str]:
    """Settings that make a single machine fast at no loss (figures: ENGINE, cost of a micro-batch).

    cores: the processors that Spark may use, which is the number of shuffle partitions.
    """
    return {
        # 200 by default: most of a small micro-batch's time on one machine.
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        # More than 32 files of a micro-batch are listed by tasks, one for each file by default, which takes
        # longer than to list a local one.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),
        # The default manager renames through AbstractFileSystem, with a process for each log file (25 to
        # 30 ms); this one uses FileSystem, where LocalFiles (spark_classes) starts none. On a local file
        # system both check whether the target exists and then rename it, with the same guarantees.
        "spark.sql.streaming.checkpointFileManagerClass": LOCAL_CHECKPOINTS,
        # A larger table of Python is handed over as Arrow batches, which tasks read, and not as rows of the
        # driver, which are serialized for each query: a sum over 1,000,000 rows takes 0.6 s of processor
        # instead of 2.1 s.
        "spark.sql.execution.arrow.localRelationThreshold": "4m",
        # 64 MB on a heap of 4 GB: each small aggregation or sort would take one, a humongous object for its
        # collector (G1). This one is none.
        "spark.buffer.pageSize": "1000k",
        # Spark takes a whole block for each broadcast, and each job has several of a few KB. Of 4 MB, the
        # default, they are 40 % of all that tiny micro-batches allocate, and humongous objects.
        "spark.broadcast.blockSize": "256k",
        # In memory, written to the checkpoint; no native library to load before the first row. A
        # micro-batch takes 203 to 313 ms, with RocksDB 188 to 223 ms. RocksDB (SET) is for state that
        # does not fit into memory.
        "spark.sql.streaming.stateStore.providerClass": STATE_IN_MEMORY,
    }


STATE_IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def common_defaults() -> dict[str, str]:
    """The console's defaults on any master."""
    return {
        "spark.app.name": "streamsql",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": SPARK_PATTERN,
        "spark.sql.streaming.stopTimeout": "20s",
        "spark.sql.streaming.numRecentProgressUpdates": "100",
        **REQUIRED,
    }


REQUIRED = {"spark.sql.exchange.reuse": "false"}
"""Settings for right results on any Spark. In a streaming query, Spark 4.3 loses the watermark of the second
operation that reads a reused exchange: two equal windows over one stream, joined, emit nothing.
"""


def cores_of(master: str) -> int:
    """The processors that a local master uses: local[4] → 4, local[*] → those of the machine."""
    threads = _local_master(master)
    return processors() if threads == "*" else int(threads)


def processors() -> int:
    """The processors that this process may use; those of the machine where the system does not tell."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def rules_setting(preferences: Preferences) -> dict[str, str]:
    """The setting of Spark for the preference `rules`; none while the rules are on."""
    return {} if preferences["rules"] == "on" else {SWITCH: preferences["rules"]}


CONNECT = "sc://"
"""What the address of a Spark Connect server begins with."""
PARTITIONS = "spark.sql.shuffle.partitions"
PER_CORE = 2
"""The shuffle partitions for each core of a cluster."""
_FORMS = r"spark://[^,/\s]+:\d+(,[^,/\s]+:\d+)*|yarn|k8s://\S+|local\S*"


def check_form(master: str) -> None:
    """Raise UsageFault for a text that names no master of Spark."""
    if master.startswith(CONNECT):
        raise UsageFault(
            "the address of a Spark Connect server is no master",
            hint="--remote sc://HOST:PORT",
            code="NO_CONNECT",
        )
    if re.fullmatch(_FORMS, master):
        return
    host = re.fullmatch(r"spark://([^,/:\s]+)/?", master)
    raise UsageFault(
        f"{master} names no port" if host else f"{master} is not a master of Spark",
        hint=f"spark://{host[1]}:7077"
        if host
        else "local[*], spark://HOST:7077, yarn or k8s://https://HOST:443",
    )


def _local_master(master: str) -> str:
    """The number of threads of a local master, or "*". Raises UsageFault for an invalid master."""
    local = re.fullmatch(r"local(?:\[\s*(\*|0*[1-9]\d{0,5})\s*(?:,\s*\d{1,6}\s*)?\])?", master)
    cluster = re.fullmatch(r"local-cluster\[\s*([1-9]\d{0,5})\s*,\s*\d{1,6}\s*,\s*\d{1,9}\s*\]", master)
    if local is None and cluster is None:
        raise UsageFault(f"{master} is not a master of Spark", hint="local[*], local[4] or spark://host:7077")
    return (local or cluster or [""])[1] or "1"


@dataclass
class Settings:
    """Settings by key, with their origin. Later layers override: defaults, config file, command line, SET."""

    master: str = "local[*]"
    defaults: dict[str, str] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    configured: dict[str, str] = field(default_factory=dict)
    master_from: str = CONSOLE

    @classmethod
    def make(
        cls,
        master: str,
        given: dict[str, str],
        configured: dict[str, str] | None = None,
        master_from: str = CONSOLE,
    ) -> Settings:
        """given: of the command line; configured: of the config file."""
        check_form(master)
        defaults = common_defaults()
        if master.startswith("local"):
            defaults |= local_defaults(cores_of(master))
        return cls(master, defaults, given, configured=configured or {}, master_from=master_from)

    @classmethod
    def of_server(cls, address: str, given: dict[str, str], configured: dict[str, str]) -> Settings:
        """For a Spark Connect server, which has defaults of its own."""
        return cls(address, {}, given, configured=configured, master_from=COMMAND_LINE)

    def fits_partitions(self) -> bool:
        """Whether the console chooses the number of shuffle partitions from the cores of a cluster."""
        chosen = PARTITIONS in self.configured or PARTITIONS in self.given or PARTITIONS in self.changed
        return not self.master.startswith(("local", CONNECT)) and not chosen

    def start_conf(self) -> dict[str, str]:
        """The settings that Spark is started with."""
        return {"spark.master": self.master} | self.defaults | self.configured | self.given | self.changed

    def rows(self) -> list[tuple[str, str, str]]:
        """(key, value, origin) of all settings, secrets redacted, of each the last layer."""
        merged: dict[str, tuple[str, str]] = {"spark.master": (self.master, self.master_from)}
        layers = (
            (self.defaults, CONSOLE),
            (self.configured, CONFIG_FILE),
            (self.given, COMMAND_LINE),
            (self.changed, SET),
        )
        for layer, origin in layers:
            merged |= {k: (v, origin) for k, v in layer.items()}
        if self.fits_partitions():
            number = self.defaults.get(PARTITIONS, f"{PER_CORE} for each core of the cluster")
            merged[PARTITIONS] = (number, CONSOLE)
        return [(k, redact_option(k, v), origin) for k, (v, origin) in sorted(merged.items())]


def apply_setting(spark: Any, key: str, value: str | None) -> None:
    """Set a setting in a session that runs, or reset it (None). Spark reads spark.hadoop.NAME, a setting of
    Hadoop's, as it starts; its sessions read NAME (SessionState.newHadoopConf).
    """
    hadoop = key.removeprefix("spark.hadoop.")
    for name in (key,) if hadoop == key else (key, hadoop):
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
