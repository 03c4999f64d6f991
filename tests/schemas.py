"""A schema registry for the tests: the part of Confluent's REST API that its clients use here.

It stands in for the real one, which lies in no repository that the tests can count on (Confluent has its
own, and Apicurio's server is not published as a jar). What it must not be trusted with is the format of
messages: the tests write and read those with Confluent's own AvroSerializer and AvroDeserializer.
Numbers, error codes and texts are those of docs.confluent.io, "Schema Registry API Reference".
Compatibility is BACKWARD, the default: the new schema must read what the newest one has written.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import fastavro

PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class Refused(Exception):
    """status: of HTTP; code: the registry's own."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Registry:
    """url: where it listens; login: user:password that it wants; asked: the requests so far."""

    def __init__(self, login: str = "", certificate: tuple[str, str] | None = None) -> None:
        self.login = login
        self.asked: list[str] = []
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def register(
        self, subject: str, schema: object, references: tuple[Any, ...] = (), kind: str = "AVRO"
    ) -> int:
        """Give a subject a schema, by no rules; its number."""
        body = {"schema": json.dumps(schema), "schemaType": kind, "references": list(references)}
        number = self._number(body)
        self.subjects.setdefault(subject, []).append(number)
        return number

    def newest(self, subject: str) -> Any:
        """The newest schema of a subject, as JSON values."""
        return json.loads(self.schemas[self.subjects[subject][-1] - 1]["schema"])

    def _number(self, body: dict[str, Any]) -> int:
        known = {k: body[k] for k in ("schema", "schemaType", "references") if body.get(k)}
        if known not in self.schemas:
            self.schemas.append(known)
        return self.schemas.index(known) + 1

    # ---- the API --------------------------------------------------------------------------

    def answer(self, method: str, path: str, body: dict[str, Any]) -> object:
        for pattern, asked, answer in ANSWERS:
            found = re.fullmatch(pattern, path)
            if found and asked == method:
                with self.lock:
                    return answer(self, *map(unquote, found.groups()), *([body] if body else []))
        raise Refused(404, 404, "HTTP 404 Not Found")

    def _take(self, subject: str, body: dict[str, Any]) -> object:
        try:
            new = fastavro.parse_schema(json.loads(body["schema"]))
        except Exception as error:
            raise Refused(422, 42201, f"Invalid schema {body['schema']}, details: {error}") from None
        if self.subjects.get(subject):
            why = unreadable(new, fastavro.parse_schema(self.newest(subject)))
            if why:
                text = (
                    f'Schema being registered is incompatible with an earlier schema for subject "{subject}"'
                )
                raise Refused(409, 409, f"{text}, details: [{{errorType:'{why}'}}]")
        number = self._number(body)
        if number not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(number)
        return {"id": number}

    def _version(self, subject: str, version: str) -> object:
        if subject not in self.subjects:
            raise Refused(404, 40401, f"Subject '{subject}' not found.")
        at = len(self.subjects[subject]) if version == "latest" else int(version)
        number = self.subjects[subject][at - 1]
        return {"subject": subject, "version": at, "id": number, **self.schemas[number - 1]}

    def _look_up(self, subject: str, body: dict[str, Any]) -> object:
        if subject not in self.subjects:
            raise Refused(404, 40401, f"Subject '{subject}' not found.")
        number = self._number(body)
        if number not in self.subjects[subject]:
            raise Refused(404, 40403, "Schema not found")
        return {"subject": subject, "version": self.subjects[subject].index(number) + 1, "id": number, **body}

    def _schema(self, number: str) -> object:
        if not 0 < int(number) <= len(self.schemas):
            raise Refused(404, 40403, f"Schema {number} not found")
        return self.schemas[int(number) - 1]


ANSWERS: list[tuple[str, str, Callable[..., object]]] = [
    (r"/subjects", "GET", lambda registry: list(registry.subjects)),
    (r"/subjects/([^/]+)/versions", "POST", Registry._take),
    (r"/subjects/([^/]+)/versions/(latest|\d+)", "GET", Registry._version),
    (r"/subjects/([^/]+)", "POST", Registry._look_up),
    (r"/schemas/ids/(-?\d+)", "GET", Registry._schema),
]


def unreadable(reader: Any, writer: Any) -> str:
    """Why a schema cannot read what another one has written (Avro, "Schema Resolution"); empty if it can."""
    if isinstance(writer, list):
        return next((why for w in writer if (why := unreadable(reader, w))), "")
    if isinstance(reader, list):
        return "" if any(not unreadable(r, writer) for r in reader) else "MISSING_UNION_BRANCH"
    kinds = [s["type"] if isinstance(s, dict) else s for s in (reader, writer)]
    if kinds[0] != kinds[1]:
        return "" if kinds[0] in PROMOTIONS.get(kinds[1], ()) else "TYPE_MISMATCH"
    if kinds[0] in ("array", "map"):
        part = "items" if kinds[0] == "array" else "values"
        return unreadable(reader[part], writer[part])
    if kinds[0] != "record":
        return ""
    there = {f["name"]: f["type"] for f in writer["fields"]}
    for field in reader["fields"]:
        if field["name"] not in there and "default" not in field:
            return "READER_FIELD_MISSING_DEFAULT_VALUE"
        if field["name"] in there and (why := unreadable(field["type"], there[field["name"]])):
            return why
    return ""


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = urlsplit(self.path).path
            registry.asked.append(f"{self.command} {path}")
            wanted = "Basic " + base64.b64encode(registry.login.encode()).decode()
            try:
                if registry.login and self.headers.get("Authorization") != wanted:
                    raise Refused(401, 401, "Unauthorized")
                status, answer = 200, registry.answer(self.command, path, json.loads(body) if body else {})
            except Refused as why:
                status, answer = why.status, {"error_code": why.code, "message": str(why)}
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    return Handler
