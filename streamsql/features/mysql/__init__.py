"""--mysql: a door for MySQL's drivers and dashboards."""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    flags={
        "--mysql": {
            "metavar": "[HOST:]PORT",
            "help": "answer MySQL's drivers and dashboards (HOST default: 127.0.0.1); with streamsql serve",
        },
        "--mysql-password": {
            "metavar": "REFERENCE",
            "help": "its password: env:NAME, file:PATH, or none, which is for this machine only",
        },
        "--mysql-tls": {
            "metavar": "CERT,KEY",
            "help": "its certificate and key, PEM files: all of it is TLS",
        },
        "--mysql-write": {"action": "store_true", "help": "its clients may also change something"},
    },
    extends={"session": "mysql_door:open_doors"},
)
