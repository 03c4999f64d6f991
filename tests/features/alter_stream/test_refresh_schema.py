from conftest import Console
from test_alter_stream import attempt
import pytest
@pytest.mark.parametrize("fmt", ["json", "csv", "parquet", "orc", "avro"])
def test_r(console: Console, tmp_path, spark, packages, fmt) -> None:
    packages("avro")
    d = tmp_path / "in"
    def put(q):
        w = spark.sql(q).coalesce(1).write.mode("append").format(fmt)
        if fmt == "csv": w = w.option("header", "true")
        w.save(str(d))
    opts = ", header 'true'" if fmt == "csv" else ""
    put("SELECT 1 AS a, 'x' AS b")
    print("\n=====", fmt)
    attempt(console, f"CREATE STREAM s USING {fmt} OPTIONS (path '{d}'{opts}); CREATE LIVE TABLE t AS SELECT * FROM s; AWAIT QUERY t IDLE; ALTER STREAM s REFRESH SCHEMA;")
    print("new c")
    put("SELECT 2 AS a, 'y' AS b, 5 AS c")
    attempt(console, "AWAIT QUERY t IDLE; ")
    attempt(console, "ALTER STREAM s REFRESH SCHEMA; ")
    attempt(console, "START QUERY t; ")
    attempt(console, "AWAIT QUERY t IDLE; SELECT * FROM t;")
    put("SELECT 3 AS a, 'y' AS b, 6 AS c")
    attempt(console, "AWAIT QUERY t IDLE; SELECT * FROM t;")
    print("missing b, reordered")
    put("SELECT 7 AS c, 4 AS a")
    attempt(console, "AWAIT QUERY t IDLE;")
    attempt(console, "ALTER STREAM s REFRESH SCHEMA; SELECT * FROM t;")
    print("retyped")
    put("SELECT 'five' AS a, 'y' AS b, 6 AS c")
    attempt(console, "AWAIT QUERY t IDLE;")
    attempt(console, "ALTER STREAM s REFRESH SCHEMA;")
    attempt(console, "SELECT * FROM t;")
