TEST 'binary messages of files' BEGIN
  CREATE STREAM in_avro (k STRING, n INT) USING kafka FORMAT avro ON MALFORMED SKIP
    OPTIONS (servers 'nowhere:9092', topic 't', avroSchema '{"type": "record", "name": "r", "fields": [{"name": "k", "type": "string"}, {"name": "n", "type": "int"}]}');
  CREATE STREAM in_protobuf (k STRING, n INT) USING kafka FORMAT protobuf
    OPTIONS (servers 'nowhere:9092', topic 't', descriptorFile 'record.desc', message 'shop.Record');
  CREATE LIVE TABLE of_avro AS SELECT k, n FROM in_avro;
  CREATE LIVE TABLE of_protobuf AS SELECT k, n FROM in_protobuf;
  CREATE LIVE TABLE bad AS SELECT payload FROM `in_avro$malformed`;
  GIVEN in_avro FROM 'record.avro';
  GIVEN in_protobuf FROM 'record.protobuf';
  EXPECT of_avro VALUES ('ann', 1);
  EXPECT of_protobuf VALUES ('ann', 1);
  GIVEN in_avro (_value) VALUES (X'ff');
  EXPECT bad VALUES ('�');
END TEST;
