"""Plans a micro-batch without rows, with a later watermark, in the checkpoint of a query that does not run.

Spark itself plans such micro-batches when the watermark has moved on (MicroBatchExecution, "no data batch"):
their offsets are those of the micro-batch before. A query that resumes first runs the planned micro-batch.
"""

from __future__ import annotations

import json
import time

from streamsql.errors import InputFault, RuleFault
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.checkpoints.query_marker import Folder


def plan_no_data_batch(checkpoint: Checkpoint, folder: Folder, watermark: int) -> int:
    """Plan it. watermark: in milliseconds since 1970. Returns its number. Raises InputFault, RuleFault or
    OSError.
    """
    newest = checkpoint.batches(last=1)
    if not newest or newest[0].planned is None:
        raise InputFault(f"no micro-batch is in the log of {checkpoint.folder}", code="UNKNOWN_BATCH")
    [last] = newest
    if last.committed is None:
        raise RuleFault(
            f"micro-batch {last.number} is not committed",
            hint="START QUERY resumes it",
            code="QUERY_RUNNING",
        )
    text = folder.read(f"offsets/{last.number}")
    version, _, rest = text.partition("\n")
    written, _, offsets = rest.partition("\n")
    metadata = json.loads(written)
    metadata |= {"batchWatermarkMs": watermark, "batchTimestampMs": int(time.time() * 1000)}
    number = last.number + 1
    folder.add(f"offsets/{number}", f"{version}\n{json.dumps(metadata)}\n{offsets}")
    return number
