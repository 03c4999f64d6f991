"""--remote: a console on a Spark Connect server."""

from streamsql.feature_registry import Feature

_HELP = "run on a Spark Connect server (HELP connect)"
FEATURE = Feature(
    __name__,
    flags={"--remote": {"metavar": "sc://HOST:PORT", "help": _HELP}},
    extends={"connect server": "remote:server_of", "connect workspace": "session_record:check_record"},
)
