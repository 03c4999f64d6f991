"""The packages that connectors need in addition to Spark: where they are, and which of them a program needs.

Spark ships without its connectors to Kafka and the like (Spark guide, "Deploying"); each is a package
of Maven coordinates that Spark's own resolver fetches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from streamsql.calls import Lit, Program, calls_in, variables_in
from streamsql.language.lexical import WordsForSpark, words_for_spark

SCALA = "2.13"


@dataclass(frozen=True)
class Release:
    """Coordinates (group:name:version) that are used together. whole: with all that they need in turn, but
    what is in without (group:name); else they are all that is needed.
    """

    coordinates: tuple[str, ...]
    whole: bool = True
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Package:
    """name: what asks for it; probe: a class that is there when it is, "" where none is known.

    formats: what a program reads or writes that needs it; calls: the functions; url: a pattern of the URLs of
    databases and files that it uses, folded, from their beginning. matching: coordinates of the release of
    the running Spark ({spark}) or, for what has versions of its own, the newest that works with it.
    fallback: one that works with Spark 4.3 as well, for registries that have not the first. unreleased:
    where there is none for this Spark, the newest combination that is known to work.
    """

    name: str
    probe: str
    formats: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    url: str = ""
    matching: Release = Release(())
    fallback: Release | None = None
    unreleased: str = ""

    def releases(self, spark_version: str) -> tuple[Release, ...]:
        """What to fetch, the first that can be had; nothing where there is no release."""
        if self.unreleased:
            return ()
        own = (c.format(spark=spark_version) for c in self.matching.coordinates)
        first = replace(self.matching, coordinates=tuple(own))
        return (first, self.fallback) if self.fallback else (first,)


_ALL = (
    Package(
        "kafka",
        "org.apache.spark.sql.kafka010.KafkaSourceProvider",
        frozenset({"kafka"}),
        matching=Release((f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{{spark}}",)),
        fallback=Release(
            (
                f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:4.2.0",
                f"org.apache.spark:spark-token-provider-kafka-0-10_{SCALA}:4.0.0",
                "org.apache.kafka:kafka-clients:3.9.2",
                "org.apache.commons:commons-pool2:2.12.0",
            ),
            whole=False,
        ),
    ),
    Package(
        "avro",
        "org.apache.spark.sql.avro.AvroDataToCatalyst",
        frozenset({"avro"}),
        frozenset({"from_avro", "to_avro", "avro_writer", "schemaregistry"}),
        matching=Release((f"org.apache.spark:spark-avro_{SCALA}:{{spark}}",)),
        fallback=Release((f"org.apache.spark:spark-avro_{SCALA}:4.1.1",), whole=False),
    ),
    # Tried with Spark 4.3.0: reading fails (NoSuchMethodError: LogicalRDD).
    Package(
        "delta",
        "org.apache.spark.sql.delta.sources.DeltaDataSource",
        frozenset({"delta"}),
        unreleased="the newest that works: Delta Lake 4.4.0 (delta-spark_4.2) with Spark 4.2",
    ),
    # Tried with Spark 4.3.0 and 4.2: IncompatibleClassChangeError.
    Package(
        "iceberg",
        "org.apache.iceberg.spark.source.IcebergSource",
        frozenset({"iceberg"}),
        unreleased="the newest that works: Apache Iceberg 1.12.0 (iceberg-spark-runtime-4.1) with Spark 4.1",
    ),
    Package(
        "postgresql",
        "org.postgresql.Driver",
        url="jdbc:postgresql:",
        matching=Release(("org.postgresql:postgresql:42.7.4",)),
    ),
    Package(
        "sqlite",
        "org.sqlite.JDBC",
        url="jdbc:sqlite:",
        matching=Release(("org.xerial:sqlite-jdbc:3.46.1.3",)),
    ),
    Package(
        "mysql",
        "com.mysql.cj.jdbc.Driver",
        url="jdbc:mysql:(?!.*permitmysqlscheme)",
        matching=Release(("com.mysql:mysql-connector-j:9.7.0",), whole=False),
    ),
    Package(
        "mariadb",
        "org.mariadb.jdbc.Driver",
        url="jdbc:mariadb:|jdbc:mysql:.*permitmysqlscheme",
        matching=Release(("org.mariadb.jdbc:mariadb-java-client:3.5.11",), whole=False),
    ),
    # Hadoop's release is that of Spark's jars. It asks for one jar of 690 MB; these are small.
    Package(
        "s3",
        "org.apache.hadoop.fs.s3a.S3AFileSystem",
        url="s3a://",
        matching=Release(
            (
                "org.apache.hadoop:hadoop-aws:3.5.0",
                "software.amazon.awssdk:s3:2.35.4",
                "software.amazon.awssdk:s3-transfer-manager:2.35.4",
            ),
            without=("software.amazon.awssdk:bundle",),
        ),
    ),
    Package(
        "duckdb",
        "org.duckdb.DuckDBDriver",
        url="jdbc:duckdb:",
        matching=Release(("org.duckdb:duckdb_jdbc:1.5.6.0",)),
    ),
)
PACKAGES = {package.name: package for package in _ALL}


def needed(program: Program) -> list[Package]:
    """The packages that a program needs: known ones, and those that its formats name."""
    use = _words_of(program)
    known_packages = [
        package
        for package in _ALL
        if package.formats & use.formats
        or package.calls & use.calls
        or (package.url and any(re.match(package.url, text) for text in use.urls))
    ]
    formats = (v for call in calls_in(program) for v in call.args if isinstance(v, Lit) and v.packages)
    named = (Package(str(format.value), "", matching=Release(format.packages)) for format in formats)
    return [*known_packages, *dict.fromkeys(named)]


def _words_of(program: Program) -> WordsForSpark:
    """The names in a program, folded: its own calls, and what is in the texts that it hands to Spark (sql and
    expr). A text inside quotes there is data. Any text of an option may be a URL.
    """
    formats: set[str] = set()
    names = {name.casefold() for name in variables_in(program)}
    texts: set[str] = set()
    for call in calls_in(program):
        name = call.method
        names.add(name.casefold())
        values = [v.value for v in (*call.args, *(v for _, v in call.kwargs)) if isinstance(v, Lit)]
        literals = [v for v in values if isinstance(v, str)]
        if name == "format":
            formats |= {v.casefold() for v in literals}
        elif name in ("sql", "expr", "table"):
            for text in literals:
                written = words_for_spark(text)
                formats |= written.formats
                names |= written.calls
                texts |= written.urls
        else:
            texts |= {v.casefold() for v in literals}
    return WordsForSpark(frozenset(formats), frozenset(names), frozenset(texts))
