"""The packages that connectors need beside Spark: where they are, and which of them a program needs.

Spark ships without its connectors to Kafka and the like (Spark guide, "Deploying"); each is a package
of Maven coordinates that Spark's own resolver fetches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SCALA = "2.13"


@dataclass(frozen=True)
class Release:
    """Coordinates (group:name:version) that are used together. whole: with all that they need in turn;
    else they are all that is needed.
    """

    coordinates: tuple[str, ...]
    whole: bool = True


@dataclass(frozen=True)
class Package:
    """name: what asks for it; probe: a class that is there when it is.

    sign: what stands in the text of a program that needs it. matching: coordinates of the release of
    the running Spark ({spark}) or, for what has versions of its own, the newest that works with it.
    known: one that works with Spark 4.3 as well, for registries that have not the first. unreleased:
    where there is none for this Spark, the newest combination that is known to work.
    """

    name: str
    probe: str
    sign: re.Pattern[str]
    matching: Release = Release(())
    known: Release | None = None
    unreleased: str = ""

    def releases(self, spark_version: str) -> tuple[Release, ...]:
        """What to fetch, the first that can be had; nothing where there is no release."""
        if self.unreleased:
            return ()
        first = Release(tuple(c.format(spark=spark_version) for c in self.matching.coordinates))
        return (first, self.known) if self.known else (first,)


def _format(name: str) -> re.Pattern[str]:
    """A program that reads or writes in a format, or hands Spark a text that does."""
    return re.compile(rf"\.format\([\"']{name}[\"']\)|(?i:\bUSING\s+{name}\b|\b{name}\.`)")


def _url(database: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)\burl\b\W+jdbc:{database}:")


_ALL = (
    Package(
        "kafka",
        "org.apache.spark.sql.kafka010.KafkaSourceProvider",
        _format("kafka"),
        Release((f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{{spark}}",)),
        Release(
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
        re.compile(_format("avro").pattern + r"|(?i:\b(?:from|to)_avro\b)|avro_writer\(|SchemaRegistry\("),
        Release((f"org.apache.spark:spark-avro_{SCALA}:{{spark}}",)),
        Release((f"org.apache.spark:spark-avro_{SCALA}:4.1.1",), whole=False),
    ),
    # Tried with Spark 4.3.0: reading fails (NoSuchMethodError: LogicalRDD).
    Package(
        "delta",
        "org.apache.spark.sql.delta.sources.DeltaDataSource",
        _format("delta"),
        unreleased="the newest that works: Delta Lake 4.4.0 (delta-spark_4.2) with Spark 4.2",
    ),
    # Tried with Spark 4.3.0 and 4.2: IncompatibleClassChangeError.
    Package(
        "iceberg",
        "org.apache.iceberg.spark.source.IcebergSource",
        _format("iceberg"),
        unreleased="the newest that works: Apache Iceberg 1.12.0 (iceberg-spark-runtime-4.1) with Spark 4.1",
    ),
    Package(
        "postgresql",
        "org.postgresql.Driver",
        _url("postgresql"),
        Release(("org.postgresql:postgresql:42.7.4",)),
    ),
    Package(
        "sqlite",
        "org.sqlite.JDBC",
        _url("sqlite"),
        Release(("org.xerial:sqlite-jdbc:3.46.1.3",)),
    ),
)
PACKAGES = {package.name: package for package in _ALL}


def needed(program: str) -> list[Package]:
    """The packages that a program needs. program: its text, as calls.render gives it."""
    return [package for package in _ALL if package.sign.search(program)]
