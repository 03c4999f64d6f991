"""What the statement does."""

from streamsql.plugin import table
from streamsql_countdown.statement import ShowCountdowns


def show(parts, statement):
    streams = [s for s in parts.catalog.streams.values() if s.connector == "countdown"]
    return table(("name", "start"), [(s.name, s.option("start", "10")) for s in streams])


DIRECT = {ShowCountdowns: show}
