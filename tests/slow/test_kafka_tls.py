"""Kafka and a schema registry behind TLS, with a certificate that is trusted only because an option says so."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from broker import Broker, certificate
from conftest import Console, notes_of
from schemas import Registry
from test_kafka import ROWS, as_json, insert, said, source, target

from streamsql.results import Text

ROOMS = ("streamsql/connectors/",)

PASSWORD = "not-for-you"


def truststore(kind: str, certificate: Path, folder: Path) -> dict[str, str]:
    """The options of a truststore with one certificate."""
    if kind == "PEM":
        return {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": str(certificate)}
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("keytool is missing")
    store = folder / "trust.jks"
    subprocess.run(
        [keytool, "-importcert", "-noprompt", "-file", str(certificate), "-keystore", str(store)]
        + ["-storetype", "JKS", "-storepass", PASSWORD],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return {"kafka.ssl.truststore.location": str(store), "kafka.ssl.truststore.password": PASSWORD}


@pytest.mark.parametrize("kind", ["PEM", "JKS"])
def test_read_and_write_by_tls(kafka: Broker, console: Console, tmp_path: Path, kind: str) -> None:
    topic, copies = kafka.topic(*as_json(*ROWS)), kafka.topic()
    options = truststore(kind, kafka.certificate, tmp_path)
    options |= {"servers": kafka.tls_servers, "kafka.security.protocol": "SSL"}
    console.run(
        source(kafka, topic, **options) + target(kafka, copies, **options) + insert("SELECT * FROM s")
    )
    assert [tuple(json.loads(m.value or b"").values()) for m in kafka.read(copies)] == ROWS
    assert console.rows(f"SHOW TOPICS FROM s LIKE '{topic}';") == [(topic, 1, 1, 2)]
    shown = []
    for statement in (
        "SHOW CREATE STREAM s;",
        "SHOW CREATE SINK o;",
        "EXPLAIN PYSPARK INSERT INTO o SELECT * FROM s;",
    ):
        [result] = console.run(statement)
        assert isinstance(result, Text)
        shown.append(result.text)
    assert PASSWORD not in "\n".join(shown)
    assert ("truststore.password '***'" in shown[0]) == (kind == "JKS")


def test_a_certificate_that_is_not_trusted(kafka: Broker, console: Console, tmp_path: Path) -> None:
    topic = kafka.topic(*as_json(*ROWS))
    other, _ = certificate(tmp_path)
    options = truststore("PEM", other, tmp_path)
    options |= {"servers": kafka.tls_servers, "kafka.security.protocol": "SSL"}
    for script in (
        source(kafka, topic, **options) + "SELECT * FROM s;",
        "SHOW TOPICS FROM s;",
        target(kafka, topic, **options) + "INSERT INTO o SELECT 1 AS n;",
    ):
        error = said(console, script)
        assert "no TLS connection to Kafka" in error
        assert "hint: check the options kafka.ssl.…" in error


def test_a_schema_registry_behind_tls(kafka: Broker, console: Console) -> None:
    """Its messages come from the broker behind TLS; the registry has the same certificate."""
    registry = Registry(certificate=(str(kafka.certificate), str(kafka.certificate.with_name("key.pem"))))
    topic = kafka.topic()
    schema = {"type": "record", "name": "r", "fields": [{"name": "k", "type": "string"}]}
    registry.register(f"{topic}-value", schema)
    try:
        options = {"schemaRegistry": registry.url, "schemaRegistry.max.retries": "0"}
        error = said(console, source(kafka, topic, "", **options))
        assert (
            f"the schema registry {registry.url} cannot be reached: [SSL: CERTIFICATE_VERIFY_FAILED]" in error
        )
        options["schemaRegistry.ssl.ca.location"] = str(kafka.certificate)
        note = notes_of(console.run(source(kafka, topic, "", **options))[-1])[-1]
        assert note == "columns of s, as inferred and recorded: k string"
        error = said(console, source(kafka, topic, "", **options).replace("certificate.pem", "none.pem"))
        assert "cannot be reached: [Errno 2] No such file or directory" in error
    finally:
        registry.stop()
