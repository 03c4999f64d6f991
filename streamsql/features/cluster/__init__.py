"""--check-cluster: what running on a cluster ships, uses and lacks."""

from streamsql.feature_registry import Feature

_HELP = "list what running on --master ships, uses and lacks, start nothing"
FEATURE = Feature(
    __name__,
    flags={"--check-cluster": {"action": "store_true", "help": _HELP}},
    checks={"check_cluster": "check:check_cluster"},
)
