"""The stream of texts that is tried: derived, generated, collected, changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import corpus
from derive import NAMES, STRINGS, Derivations
from mutations import mutate
from queries import Queries

SOURCES = [
    "json OPTIONS (path 'in')", "kafka FORMAT json OPTIONS (servers 'h:1', topic 't')", "csv OPTIONS (path 'in', header true)", "values",
    "kafka FORMAT csv OPTIONS (kafka.bootstrap.servers 'h:1', subscribePattern 't.*', kafka.security.protocol SSL)", "parquet OPTIONS (path 'in')",
    "xml OPTIONS (path 'in', rowTag 'r')", "kafka FORMAT avro OPTIONS (servers 'h:1', topic 't')", "text OPTIONS (path 'in')", "datagen",
]  # fmt: skip
SINKS = [
    "noop", "console", "memory", "parquet OPTIONS (path 'o')", "kafka FORMAT json OPTIONS (servers 'h:1', topic 't')", "csv OPTIONS (path 'o', sep '|')",
    "foreach_batch OPTIONS (function 'm.f')", "jdbc OPTIONS (url 'jdbc:postgresql://h/d', dbtable 't')", "json OPTIONS (path 'o', 'a b' 'it\\'s')",
]  # fmt: skip
ON_STREAMS = [
    "SELECT user, count(*) AS c FROM clicks GROUP BY user", "SELECT * FROM orders", "SELECT window, user, sum(n) AS s FROM clicks GROUP BY window(ts, '5 minutes'), user",
    "SELECT DISTINCT user FROM clicks", "SELECT c.user FROM clicks c JOIN msgs m ON c.n = m.id AND m.ts BETWEEN c.ts AND c.ts + INTERVAL 1 HOUR", "SELECT a FROM v -- the end",
    "SELECT DISTINCT ON (user) user, n FROM clicks", "SELECT upper(user) AS `odd name`, 'x; y' FROM vip", "WITH t AS (SELECT n FROM clicks) SELECT max(n) FROM t",
    "SELECT user FROM clicks UNION ALL SELECT user FROM vip", "SELECT s.user FROM clicks s LEFT JOIN trips t ON s.n = t.x WHERE s.n IN (SELECT x FROM trips)",
]  # fmt: skip


class Definitions:
    """CREATE and INSERT statements that are mostly accepted, for the way back through SHOW CREATE."""

    def __init__(self, random: random.Random, derivations: Derivations) -> None:
        self.random = random
        self.rule = derivations.rule
        self.count = 0

    def maybe(self, text: str) -> str:
        return f" {text}" if self.random.random() < 0.4 else ""

    def name(self) -> str:
        self.count += 1
        return self.random.choice(
            [
                f"n{self.count}",
                f"`odd {self.count}`",
                f"`a``{self.count}`",
                f"größe{self.count}",
                self.random.choice(NAMES),
            ]
        )

    def columns(self) -> str:
        types = [self.rule("Type") for _ in range(self.random.randint(1, 3))]
        parts = [
            f"{n} {t}{self.maybe('NOT NULL')}{self.comment()}"
            for n, t in zip(["a", "`b c`", "`ü`"], types, strict=False)
        ]
        return f" ({', '.join([*parts, 'ts TIMESTAMP'])})"

    def comment(self) -> str:
        return self.maybe("COMMENT " + self.random.choice(STRINGS))

    def definition(self) -> str:
        create = self.random.choice(["CREATE", "CREATE", "create or replace"])
        return self.random.choice(
            [self._stream, self._stream, self._sink, self._derived, self._live, self._insert, self._function]
        )(create)

    def _stream(self, create: str) -> str:
        mark = self.random.choice(
            ["ts DELAY OF INTERVAL 5 MINUTES", "to_timestamp(a) AS t2 DELAY '1 hour'", "ts DELAY '90 s'"]
        )
        malformed = self.random.choice(["SKIP", "FAIL", "INTO files"])
        tail = self.maybe(f"ON MALFORMED {malformed}") + self.maybe(f"WITH WATERMARK {mark}") + self.comment()
        return f"{create} STREAM {self.name()}{self.columns()} USING {self.random.choice(SOURCES)}{tail}"

    def _sink(self, create: str) -> str:
        columns = self.columns() if self.random.random() < 0.3 else ""
        tail = (
            self.maybe("KEY (a, `b c`)")
            + self.maybe("PARTITIONED BY (`ü`)")
            + self.maybe("RETAIN 12 ROWS")
            + self.comment()
        )
        return f"{create} SINK {self.name()}{columns} USING {self.random.choice(SINKS)}{tail}"

    def _derived(self, create: str) -> str:
        return f"{create} STREAM {self.name()}{self.maybe('WITH WATERMARK ts DELAY OF INTERVAL 1 DAY')} AS {self.random.choice(ON_STREAMS)}"

    def _clauses(self) -> str:
        trigger = self.random.choice(
            ["AVAILABLE NOW", "ONCE", "EVERY INTERVAL 5 SECONDS", "CONTINUOUS EVERY '1 second'"]
        )
        return self.maybe(f"TRIGGER {trigger}") + self.maybe(f"OUTPUT MODE {self.random.choice(['APPEND', 'UPDATE', 'COMPLETE'])}") + self.maybe(
            "RESTART 3 TIMES EVERY INTERVAL 10 SECONDS"
        )  # fmt: skip

    def _live(self, create: str) -> str:
        tail = self._clauses() + self.maybe("KEY (user)") + self.maybe("RETAIN 5 ROWS") + self.comment()
        return f"{create} LIVE TABLE {self.name()}{tail} AS {self.random.choice(ON_STREAMS)}"

    def _insert(self, create: str) -> str:
        path = self.random.choice(STRINGS)
        tail = self.maybe(f"AS QUERY {self.name()}") + self._clauses() + self.maybe(f"CHECKPOINT {path}")
        if self.random.random() < 0.2:
            return f"EXECUTE STATEMENT SET{tail} BEGIN INSERT INTO out SELECT n FROM clicks; INSERT INTO files SELECT user FROM clicks; END"
        return f"INSERT INTO {self.random.choice(['out', 'files', 'out, files'])}{tail} {self.random.choice(ON_STREAMS)}"

    def _function(self, create: str) -> str:
        returns = self.rule("Type") if self.random.random() < 0.5 else "TABLE" + self.columns()
        return f"{create} FUNCTION {self.name()} AS 'pkg.mod.g' LANGUAGE PYTHON RETURNS {returns}"


def texts(count: int, seed: int) -> Iterator[str]:
    """So many texts; the same ones for the same seed."""
    chance = random.Random(seed)
    queries = Queries(chance)
    derivations = Derivations(chance, queries)
    definitions = Definitions(chance, derivations)
    known = [*corpus.statements(), *corpus.shared_queries()]

    def fresh() -> str:
        kind = chance.random()
        if kind < 0.35:
            return derivations.statement()
        if kind < 0.55:
            return definitions.definition()
        if kind < 0.8:
            heads = [
                "",
                "",
                "",
                "CREATE LIVE TABLE l1 AS ",
                "INSERT INTO out ",
                "CREATE STREAM s1 AS ",
                "EXPLAIN PYSPARK ",
                "EXPLAIN ",
            ]
            return chance.choice(heads) + queries.query()
        return chance.choice(known)

    for _ in range(count):
        text = fresh()
        yield mutate(chance, text, chance.choice(known)) if chance.random() < 0.6 else text
