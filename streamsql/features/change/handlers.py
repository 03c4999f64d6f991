"""The handlers of the statements about staged changes."""

from __future__ import annotations

from streamsql.features.change import change_sets, run
from streamsql.features.change.plan import Staging
from streamsql.features.change.staging import stage_stream
from streamsql.features.change.statement import (
    BeginChange,
    CompareChange,
    EndChange,
    PromoteChange,
    RollbackChange,
)
from streamsql.runtime.handlers import Answers

PLANS: Answers = {Staging: stage_stream}
DIRECT: Answers = {
    **run.DIRECT,
    BeginChange: change_sets.begin_change,
    EndChange: change_sets.end_change,
    PromoteChange: change_sets.promote_change,
    RollbackChange: change_sets.roll_back_change,
    CompareChange: change_sets.compare_change,
}
