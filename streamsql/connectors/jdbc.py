"""jdbc: a table of a database. Options: Spark guide, "JDBC To Other Databases"."""

from __future__ import annotations

from streamsql.calls import Call, Node, Var, lit
from streamsql.connectors.base import Connector, option_table, read, with_options
from streamsql.connectors.packages import PACKAGES
from streamsql.definitions import Sink
from streamsql.errors import RuleFault
from streamsql.language.statements.base import Name, Option
from streamsql.secrets import ranges

_OF_READERS = frozenset("url user password driver querytimeout sessioninitstatement".split())
_KEYED = ("postgresql", "mysql", "mariadb", "sqlite", "duckdb")
# How a URL begins → the driver's class.
DRIVERS = {f"jdbc:{name}:": PACKAGES[name].probe for name in _KEYED}


def spark_url(url: str) -> str:
    """The URL by which Spark knows the dialect: that of MariaDB is MySQL's. JdbcTable does the same."""
    start, _, rest = url.partition("jdbc:mariadb:")
    return url if start or not rest else f"jdbc:mysql:{rest}{'&' if '?' in rest else '?'}permitMysqlScheme"


class Jdbc(Connector):
    name = "jdbc"
    help = (
        f"a database table: rows are inserted, or with KEY replace the row of that key ({', '.join(_KEYED)})"
    )
    takes_key = True
    once_by_batch_id = True
    packages = _KEYED
    writes = option_table("""
        url: required, JDBC address -- jdbc:postgresql://host/database, jdbc:sqlite:file, …
        table: required -- the table to write to; created if it does not exist
        user -- the database user
        password: secret -- the user's password
        driver -- the class of the driver; not needed for postgresql, mysql, mariadb, sqlite, duckdb
        batchsize: positive integer = 1000 -- rows per insert batch
        isolationLevel -- isolation level of the transactions that fill the staging table
        queryTimeout: number of seconds = 0 -- time limit of a statement, in seconds
        sessionInitStatement -- SQL that runs at the start of each session
        createTableOptions -- text added to CREATE TABLE
        createTableColumnTypes -- column types for CREATE TABLE
    """)

    def modes_of(self, sink: Sink) -> tuple[str, ...]:
        return ("append", "update") if sink.key else ("append",)

    def shows_newest(self, sink: Sink) -> bool:
        return bool(sink.key)

    def batch_writer(self, sink: Sink) -> Node:
        return self._table(sink).attr("write")

    def changes_writer(self, sink: Sink) -> Node:
        return self._table(sink).attr("write_changes" if sink.key else "write")

    def keeps_in_step(self, sink: Sink) -> bool:
        return bool(sink.key)

    def write_batch(self, sink: Sink, frame: Node) -> Node:
        return self._table(sink).call("insert", frame)

    def _table(self, sink: Sink) -> Node:
        key = [lit(list(sink.key))] if sink.key else []
        table: Node = Call(Var("JdbcTable"), (lit(sink.option("table")), *key))
        return _with_driver(with_options(table, sink.options, skip=("table",)), sink)

    def read_back(self, sink: Sink) -> Node:
        only = [
            (k, spark_url(v) if k.casefold() == "url" else v)
            for k, v in sink.options
            if k.casefold() in _OF_READERS
        ]
        reader = with_options(read("jdbc"), only).call("option", "dbtable", sink.option("table"))
        return _with_driver(reader, sink).call("load")

    def driver(self, sink: Sink) -> str:
        return sink.option("driver")

    def check_sink(self, sink: Sink, options: dict[str, Option], key: tuple[Name, ...], at: Name) -> None:
        url = options["url"].value
        if ranges(url.value):
            raise RuleFault(
                "a password in the url would be shown",
                hint="OPTIONS (url '…', user '…', password '…') keeps it hidden",
                span=url.span,
                code="SECRET_SHOWN",
            )
        if key and not url.value.startswith(tuple(DRIVERS)):
            raise RuleFault(
                f"KEY is supported for {', '.join(_KEYED)} only",
                hint="omit KEY to insert rows, or write with USING foreach_batch",
                span=key[0].span,
                code="CLAUSE_NOT_SUPPORTED",
            )


def _with_driver(node: Node, sink: Sink) -> Node:
    """With the driver of a known database, unless the sink names one."""
    driver = next((d for start, d in DRIVERS.items() if sink.option("url").startswith(start)), "")
    return node.call("option", "driver", driver) if driver and not sink.option("driver") else node
