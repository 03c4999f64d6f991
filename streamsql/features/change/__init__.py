"""Staged changes of what is defined: compared, promoted and rolled back, one by one or as sets."""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    statements="statement",
    planners="change_plans",
    handlers="change_sets",
    extends={
        "reopened": "swap:complete",
        "statement": "change_plans:within",
        "staged definition": "stage_plan:stage_definition",
    },
)
