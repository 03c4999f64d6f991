"""Rows to messages, and protobuf to rows. EXPLAIN PYSPARK prints this code, so it is self-contained."""


def to_messages(rows, form, key=(), options=()):
    """Rows as messages, with the columns key, value and, if the rows have them, topic, partition, headers.

    A column _key, _topic, _partition or _headers becomes that field of the message. All others are its
    payload in a form: json, csv (options: pairs), text or raw for a single column, or a function of a
    struct of them and its type. key: the columns of the key; one is written as text, several as JSON.
    """

    from pyspark.sql import functions as F

    def quoted(name):
        return F.col("`" + name.replace("`", "``") + "`")

    fields = {name.casefold(): name for name in rows.columns}
    own = {n: fields.pop(n) for n in ("_key", "_topic", "_partition", "_headers") if n in fields}
    payload = [quoted(name) for name in fields.values()]
    missing = [name for name in key if name.casefold() not in fields]
    if missing:
        raise ValueError(f"the rows have no column {missing[0]} for KEY; they have {', '.join(rows.columns)}")
    if form in ("text", "raw") and len(payload) != 1:
        raise ValueError(f"FORMAT {form} takes one column, not {', '.join(fields.values()) or 'none'}")
    if form in ("text", "raw"):
        value = payload[0].cast("binary" if form == "raw" else "string")
    elif callable(form):
        value = form(F.struct(*payload), rows.select(*payload).schema)
    else:
        value = {"json": F.to_json, "csv": F.to_csv}[form](F.struct(*payload), dict(options) or None)
    columns = [value.alias("value")]
    if "_key" in own:
        columns.append(quoted(own["_key"]).alias("key"))
    elif len(key) == 1:
        columns.append(quoted(fields[key[0].casefold()]).cast("string").alias("key"))
    elif key:
        columns.append(F.to_json(F.struct(*(quoted(fields[k.casefold()]) for k in key))).alias("key"))
    columns += [quoted(own[n]).alias(n[1:]) for n in ("_topic", "_partition", "_headers") if n in own]
    return rows.select(*columns)


def envelopes(rows):
    """New rows in Debezium's envelope: before, after, op and ts_ms."""
    from pyspark.sql import functions as F

    row = F.struct(*(F.col("`" + name.replace("`", "``") + "`") for name in rows.columns))
    columns = {"before": F.lit(None).cast(rows.schema), "after": row, "op": F.lit("c")}
    columns["ts_ms"] = F.unix_millis(F.current_timestamp())
    return rows.select(*(column.alias(name) for name, column in columns.items()))


def envelope_messages(envelopes, key=(), options=()):
    """Envelopes as messages. key: the columns of the key of a row; one is written as text, several as JSON.
    options: pairs, for JSON.
    """
    from pyspark.sql import functions as F

    micros = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
    micros["timestampNTZFormat"] = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    columns = [F.to_json(F.struct("*"), micros | dict(options)).alias("value")]
    fields = [F.coalesce(F.col("after")[name], F.col("before")[name]).alias(name) for name in key]
    if len(fields) == 1:
        columns.append(fields[0].cast("string").alias("key"))
    elif fields:
        columns.append(F.to_json(F.struct(*fields)).alias("key"))
    return envelopes.select(*columns)


def avro_writer(schema=None):
    """A function from a struct to Avro, with a schema (JSON) if one is given."""
    from pyspark.sql import functions as F

    return lambda payload, types: F.call_function("to_avro", payload, *([F.lit(schema)] if schema else []))


class ProtobufKind:
    """A message type of a descriptor file (protoc --include_imports -o FILE), read with the Python package
    protobuf: Spark's own from_protobuf needs a JVM package for each release, which registries often lack.

    Workers receive the descriptor's bytes and create the class once. Raises ValueError when the file or
    the message does not exist.
    """

    def __init__(self, file, message):
        try:
            import google.protobuf  # noqa: F401
        except ImportError:
            raise ValueError(
                "FORMAT protobuf needs the Python package protobuf: pip install 'protobuf>=6.33.5,<7'"
            ) from None
        try:
            with open(file, "rb") as described:
                self.description = described.read()
        except OSError as error:
            raise ValueError(f"cannot read the descriptorFile {file}: {error.strerror}") from None
        self.message = message
        self._class = None
        try:
            self.make()
        except KeyError:
            raise ValueError(f"{file} describes no message {message}") from None
        except Exception as error:
            raise ValueError(f"{file} is not a protobuf description: {error}") from None
        self._class = None

    def make(self):
        """The Python class of the message."""
        if self._class is None:
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

            pool = descriptor_pool.DescriptorPool()
            for file in descriptor_pb2.FileDescriptorSet.FromString(self.description).file:
                pool.Add(file)
            self._class = message_factory.GetMessageClass(pool.FindMessageTypeByName(self.message))
        return self._class

    def read(self, payload, names):
        """The fields of these names of a serialized message as a dict; None if the bytes are not such a
        message, or were written by a message type that has another type for one of them.
        """
        if payload is None:
            return None
        try:
            message = self.make().FromString(payload)
            if message.SerializeToString() != payload and not self._fits(payload, message.DESCRIPTOR, names):
                return None
            return self._row(message, names)
        except Exception:
            return None

    def _row(self, message, names=None):
        from google.protobuf.unknown_fields import UnknownFieldSet

        fields = [f for f in message.DESCRIPTOR.fields if names is None or f.name in names]
        numbers = {f.number: f for f in fields}
        for unknown in UnknownFieldSet(message):
            field = numbers.get(unknown.field_number)
            if field is not None and (field.enum_type is None or unknown.wire_type):
                raise ValueError(f"{field.name} is of another type")
        return {field.name: self._value(message, field) for field in fields}

    def _fits(self, payload, kind, names=None):
        """Whether the numbers of a serialized message fit into its fields. The parser cuts off what is too
        long for a field of 32 bits: the writer had one of 64.
        """
        at = 0
        while at < len(payload):
            key, at = self._varint(payload, at)
            field, wire = kind.fields_by_number.get(key >> 3), key & 7
            if wire in (3, 4):
                return True  # a group, which only old message types have
            values, part = [], b""
            if wire == 0:
                value, at = self._varint(payload, at)
                values.append(value)
            elif wire == 2:
                size, at = self._varint(payload, at)
                part, at = payload[at : at + size], at + size
            else:
                at += 8 if wire == 1 else 4
            if field is None or (names is not None and field.name not in names):
                continue
            if part and field.message_type is not None and not self._fits(part, field.message_type):
                return False
            place = 0
            while place < len(part) and self._bits(field):  # a packed list
                value, place = self._varint(part, place)
                values.append(value)
            if not all(self._is_of(value, self._bits(field)) for value in values):
                return False
        return True

    def _bits(self, field):
        """How many bits the numbers of a field have, with a minus for signed ones that Protobuf extends to
        64; 0 for other types.
        """
        bits = {field.TYPE_INT32: -32, field.TYPE_ENUM: -32, field.TYPE_UINT32: 32, field.TYPE_SINT32: 32}
        return 1 if field.type == field.TYPE_BOOL else bits.get(field.type, 0)

    def _is_of(self, value, bits):
        if bits < 0:
            return value < 1 << 31 or value >= (1 << 64) - (1 << 31)
        return not bits or value < 1 << bits

    def _varint(self, payload, at):
        value = shift = 0
        while payload[at] & 128:
            value |= (payload[at] & 127) << shift
            at, shift = at + 1, shift + 7
        return value | payload[at] << shift, at + 1

    def _value(self, message, field):
        value = getattr(message, field.name)
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            kind = entry.fields_by_name["value"]
            return [(key, self._plain(element, kind)) for key, element in value.items()]
        if field.label == field.LABEL_REPEATED:
            return [self._plain(element, field) for element in value]
        if field.has_presence and not message.HasField(field.name):
            return None
        return self._plain(value, field)

    def _plain(self, value, field):
        if field.message_type is not None:
            return self._row(value)
        names = field.enum_type.values_by_number if field.enum_type else {}
        return names[value].name if value in names else value

    def write(self, row):
        """A dict of fields as a serialized message. Raises ValueError for an unknown field."""
        message = self.make()()
        self._fill(message, row)
        return message.SerializeToString()

    def _fill(self, message, row):
        for name, value in row.items():
            field = message.DESCRIPTOR.fields_by_name.get(name)
            if field is None:
                raise ValueError(f"{self.message} has no field {name}")
            if value is None:
                continue
            entry = field.message_type
            if entry is not None and entry.GetOptions().map_entry:
                for key, element in value:
                    kind = entry.fields_by_name["value"]
                    if kind.message_type is not None:
                        self._fill(getattr(message, name)[key], element)
                    else:
                        getattr(message, name)[key] = self._number(element, kind)
            elif field.label == field.LABEL_REPEATED:
                for element in value:
                    if entry is not None:
                        self._fill(getattr(message, name).add(), element)
                    else:
                        getattr(message, name).append(self._number(element, field))
            elif entry is not None:
                self._fill(getattr(message, name), value)
            else:
                setattr(message, name, self._number(value, field))

    def _number(self, value, field):
        if field.enum_type is not None and isinstance(value, str):
            return field.enum_type.values_by_name[value].number
        return value


def protobuf_reader(file, message, columns):
    """A function from bytes to a struct of the columns (SQL text); NULL where they cannot be read."""
    import pyarrow as pa
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import _parse_datatype_string

    kind = ProtobufKind(file, message)
    types = _parse_datatype_string(columns)
    arrow_type, names = to_arrow_type(types), set(types.names)

    @F.arrow_udf(columns)
    def read(payloads: pa.Array) -> pa.Array:
        return pa.array([kind.read(payload, names) for payload in payloads.to_pylist()], type=arrow_type)

    return read


def protobuf_writer(file, message):
    """A function from a struct to bytes."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    kind = ProtobufKind(file, message)

    @F.arrow_udf("binary")
    def write(rows: pa.Array) -> pa.Array:
        return pa.array([kind.write(row) for row in rows.to_pylist()], type=pa.binary())

    return lambda payload, types: write(payload)
