"""Opens the checkpoint that a statement names. A local folder is read without Spark, another one with
Hadoop's FileSystem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import InputFault
from streamsql.language.statements.checkpoint import Owner
from streamsql.plan.lowering.state_tables import checkpoint_of
from streamsql.runtime.checkpoints.checkpoint_files import local_path
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.checkpoints.hadoop_files import HadoopFiles
from streamsql.runtime.engine.settings import Settings


def open_checkpoint(
    owner: Owner, catalog: Catalog, places: Places, settings: Settings, spark: Callable[[], Any]
) -> Checkpoint:
    """The checkpoint of a query or folder. spark: returns the Spark session; called only if it is needed.
    Raises NameFault or InputFault, with the span of the owner.
    """
    folder = checkpoint_of(owner, catalog, places)
    home = settings.start_conf().get("spark.hadoop.fs.defaultFS", "file:")
    local = local_path(folder) is not None and (folder.startswith("file:") or home.startswith("file:"))
    try:
        return Checkpoint.open(folder, None if local else HadoopFiles(spark()))
    except InputFault as fault:
        if owner.query:
            fault = InputFault(
                f"the query {owner.query} has no checkpoint to inspect: {fault.message}",
                detail=fault.detail,
                hint=f"START QUERY {owner.query}; creates one",
                code="NOT_A_CHECKPOINT",
            )
        fault.span = owner.span
        raise fault from None
