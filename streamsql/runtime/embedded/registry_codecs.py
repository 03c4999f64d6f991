"""Avro with a schema registry. EXPLAIN PYSPARK prints this code, so it is self-contained."""


class SchemaRegistry:
    """A client of a schema registry. Needs the packages confluent-kafka and fastavro.

    Its messages are a zero byte, the id of the writer's schema in four bytes, and Avro (Confluent, "Wire
    format"). Faults are ValueErrors: the fact in the first line, its cause in the others.
    """

    # The answers of registries in this process, the driver or a Python worker: each schema is fetched once.
    # On the class, since each task of a worker and each micro-batch of several sinks has a new instance.
    said: dict = {}

    def __init__(self, url):
        try:
            import confluent_kafka.schema_registry  # noqa: F401
            import fastavro  # noqa: F401
        except ImportError:
            raise ValueError(
                "a schema registry needs the Python packages confluent-kafka and fastavro:"
                " pip install 'confluent-kafka[schemaregistry]>=2.10,<3' 'fastavro>=1.9,<2'"
            ) from None
        self.settings = {"url": url, "timeout": 10, "max.retries": 2}

    def option(self, name, value):
        """Set one of the client's settings (confluent-kafka, SchemaRegistryClient). Returns self."""
        counts = ("timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms")
        self.settings[name] = int(value) if name in counts else value
        return self

    def ask(self, question):
        """Return question(client). Raises ValueError when the registry does not answer or refuses, and
        SchemaRegistryError for what it does not have (HTTP 404) or does not accept (409, 422).
        """
        from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError

        url = self.settings["url"]
        try:
            with SchemaRegistryClient(self.settings) as client:
                return question(client)
        except SchemaRegistryError as error:
            if (error.error_code or 0) > 0 and error.http_status_code in (404, 409, 422):
                raise
            said = f"HTTP {error.http_status_code}: {str(error.error_message)[:200]}"
            if error.http_status_code in (401, 403):
                raise ValueError(f"the schema registry {url} refuses the login\n{said}") from None
            raise ValueError(f"the schema registry {url} sent an invalid answer\n{said}") from None
        except Exception as error:  # of the HTTP library, of TLS, of a file that a setting names
            said = str(error) or type(error).__name__
            raise ValueError(f"the schema registry {url} cannot be reached: {said}") from None

    def newest(self, subject):
        """(id, text) of the newest Avro schema of a subject. Raises ValueError when there is none."""
        import difflib
        import json

        from confluent_kafka.schema_registry import SchemaRegistryError

        def latest(client):
            version = client.get_latest_version(subject)
            return version.schema_id, self.avro(client, version.schema)

        try:
            number, schema = self.ask(latest)
        except SchemaRegistryError:
            near = difflib.get_close_matches(subject, self.ask(lambda client: client.get_subjects()), 3)
            others = f"\nit has {', '.join(near)}" if near else ""
            raise ValueError(f"the schema registry has no subject {subject}{others}") from None
        if schema is None:
            raise ValueError(f"the newest schema of {subject} is not Avro")
        return number, json.dumps(schema)

    def avro(self, client, schema):
        """A schema as JSON values, with its references resolved; None when it is not Avro."""
        return self.whole(client, schema) if schema.schema_type in (None, "AVRO") else None

    def whole(self, client, schema):
        """A schema as JSON values; a schema that it refers to is inserted where it is first named."""
        import json

        others = {}

        def collect(refers):
            for reference in refers.references or ():
                inner = client.get_version(reference.subject, reference.version).schema
                others[reference.name] = json.loads(inner.schema_str)
                collect(inner)

        def placed(kind, space):
            if isinstance(kind, str):
                full = kind if "." in kind or not space else f"{space}.{kind}"
                name = full if full in others else kind
                return placed(others.pop(name), "") if name in others else kind
            if isinstance(kind, list):
                return [placed(branch, space) for branch in kind]
            space = kind.get("namespace") or kind.get("name", "").rpartition(".")[0] or space
            whole = dict(kind)
            if "fields" in kind:
                whole["fields"] = [{**f, "type": placed(f["type"], space)} for f in kind["fields"]]
            for part in ("items", "values"):
                if part in kind:
                    whole[part] = placed(kind[part], space)
            return whole

        collect(schema)
        return placed(json.loads(schema.schema_str), "")

    # ---- reading --------------------------------------------------------------------------

    def reader(self, schema, subject=None):
        """A function from messages to structs: avro, the payload in the reader's schema, as a list of one
        (for a list that it cannot read from_avro returns NULL, for a record a row of NULLs); writer, the
        id of the writer's schema; fault, why the message cannot be read.
        """
        import pyarrow as pa
        from pyspark.sql import functions as F

        row_type = pa.struct([("avro", pa.binary()), ("writer", pa.int32()), ("fault", pa.string())])

        @F.arrow_udf("avro BINARY, writer INT, fault STRING")
        def read(messages: pa.Array) -> pa.Array:
            unknown: dict = {}
            return pa.array(
                [self.resolved(m, schema, subject, unknown) for m in messages.to_pylist()], row_type
            )

        return read

    def resolved(self, message, schema, subject, unknown):
        """A message as a row of `reader`. unknown: ids that the registry does not have, with the fault."""
        if message is None:
            return None
        if len(message) < 5 or message[0] != 0:
            return {"fault": "it does not start with the header of a schema registry message"}
        number = int.from_bytes(message[1:5], "big", signed=True)
        key = (str(self.settings), schema, number)
        resolve = self.said.get(key) or unknown.get(number)
        if resolve is None:
            resolve = self.resolver(number, schema, subject)
            if isinstance(resolve, str):
                unknown[number] = resolve
            else:
                self.said[key] = resolve
        if isinstance(resolve, str):
            return {"writer": number, "fault": resolve}
        try:
            return {"avro": b"\x02" + resolve(message[5:]) + b"\x00", "writer": number}
        except Exception as error:
            return {"writer": number, "fault": f"schema {number} does not fit: {str(error)[:200]}"}

    def resolver(self, number, schema, subject):
        """A function from Avro in the schema of that id to Avro in the reader's; a text (the fault) when
        the registry has no such schema.
        """
        import io
        import json

        import fastavro
        from confluent_kafka.schema_registry import SchemaRegistryError

        def writer_schema(client):
            return self.avro(client, client.get_schema(number, subject_name=subject))

        try:
            writer, reader = self.ask(writer_schema), json.loads(schema)
        except SchemaRegistryError:
            return f"the schema registry has no schema {number}"
        if writer is None:
            return f"schema {number} is not Avro"
        if writer == reader:
            return bytes
        if isinstance(writer, dict) and isinstance(reader, dict) and "fields" in writer:
            # The record may have another name there (Avro's own readers ignore it).
            space = writer.get("namespace")
            reader["aliases"] = [f"{space}.{writer['name']}" if space else writer["name"]]
        writer, reader = fastavro.parse_schema(writer), fastavro.parse_schema(reader)

        def resolve(body):
            old_body, new_body = io.BytesIO(body), io.BytesIO()
            value = fastavro.schemaless_reader(old_body, writer, reader, return_named_type=True)
            if old_body.read(1):
                raise ValueError("bytes are left over")
            fastavro.schemaless_writer(new_body, reader, value)
            return new_body.getvalue()

        return resolve

    # ---- writing --------------------------------------------------------------------------

    def writer(self, subject, schema=None, register=True):
        """A function from a struct of columns, and their types, to messages: (payload, types).

        The schema is the given one, or is derived from the columns; it is registered under the subject.
        With register=False it must exist, and without a given one the newest is used. The registry is
        called on the driver, the first time that the function is called.
        """
        from pyspark.sql import functions as F

        def write(payload, types):
            wanted = schema or (avro_schema(types, subject) if register else None)
            key = (str(self.settings), subject, wanted, register)
            if key not in self.said:
                self.said[key] = self.number(subject, wanted, register)
            number, text = self.said[key]
            if schema or not register:
                payload = as_written(payload, types, text)
            head = F.lit(bytearray(b"\x00" + number.to_bytes(4, "big")))
            return F.concat(head, F.call_function("to_avro", payload, F.lit(text)))

        return write

    def number(self, subject, schema, register):
        """(id, text) of the schema to write with."""
        from confluent_kafka.schema_registry import Schema, SchemaRegistryError

        if schema is None:
            return self.newest(subject)
        asked = Schema(schema, "AVRO")
        try:
            if register:
                return self.ask(lambda client: client.register_schema(subject, asked)), schema
            return self.ask(lambda client: client.lookup_schema(subject, asked).schema_id), schema
        except SchemaRegistryError as error:
            why = {
                404: f"the subject {subject} does not have this schema, and autoRegister is false",
                409: f"the schema of the rows is not compatible with the subject {subject}",
            }.get(error.http_status_code, f"the schema registry does not accept the schema of {subject}")
            raise ValueError(f"{why}\n{error.error_message}") from None


def as_written(payload, types, schema):
    """A struct of columns, cast to the types of an Avro schema (JSON) that was not derived from them.
    Raises ValueError for a column that the schema does not have, and for a required one that is missing.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    empty = F.call_function("from_avro", F.lit(None).cast("binary"), F.lit(schema))
    wanted = SparkSession.active().range(0).select(empty).schema.fields[0].dataType
    fields = {f.name.casefold(): f for f in wanted.fields}
    given = {f.name.casefold(): f.name for f in types.fields}
    for name in given:
        if name not in fields:
            listed = ", ".join(f.name for f in wanted.fields)
            raise ValueError(f"the Avro schema has no field {given[name]}\nits fields: {listed}")
    for name, field in fields.items():
        if name not in given and not field.nullable:
            raise ValueError(f"the Avro schema needs a column {field.name}: {field.dataType.simpleString()}")
    pairs = [(payload.getField(column), fields[name]) for name, column in given.items()]
    return F.struct(*(value.cast(field.dataType).alias(field.name) for value, field in pairs))


def avro_schema(types, subject):
    """The Avro schema (JSON) of columns, a StructType. All fields are nullable and NULL by default, so that
    the columns of a query can change later. Raises ValueError for a column that Avro cannot hold.
    """
    import json
    import re

    def record(struct, name, path):
        fields = []
        for field in struct.fields:
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", field.name):
                raise ValueError(f"{field.name} is not a valid name in Avro\nrename the column with AS name")
            kind = nullable(field.dataType, f"{name}.{field.name}", f"{path}{field.name}")
            fields.append({"name": field.name, "type": kind, "default": None})
        return {"type": "record", "name": name, "fields": fields}

    def nullable(type, name, path):
        return ["null", nested(type, type.simpleString(), name, path) or avro_type(type, path)]

    def nested(type, text, name, path):
        if text.startswith("struct"):
            return record(type, name, f"{path}.")
        if text.startswith("array"):
            return {"type": "array", "items": nullable(type.elementType, name, path)}
        if text.startswith("map<string,"):
            return {"type": "map", "values": nullable(type.valueType, name, path)}
        return None

    return json.dumps(record(types, re.sub("[^A-Za-z0-9_]|^(?=[0-9])", "_", subject), ""))


def avro_type(type, path):
    """The Avro type of a column without fields or elements, with the path `path`. Raises ValueError when
    Avro cannot hold it.
    """
    text = type.simpleString()
    plain = {"tinyint": "int", "smallint": "int", "int": "int", "bigint": "long", "binary": "bytes"}
    plain |= {name: name for name in ("float", "double", "boolean")}
    logical = {
        "date": {"type": "int", "logicalType": "date"},
        "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
        "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
    }
    if text.startswith("decimal"):
        return {"type": "bytes", "logicalType": "decimal", "precision": type.precision, "scale": type.scale}
    if text.startswith("string"):
        return "string"
    if text not in plain and text not in logical:
        raise ValueError(f"Avro cannot hold the column {path}: {text}")
    return logical.get(text) or plain[text]
