"""Statements of other dialects, and what each is in Spark's words: for the tests with and without Spark."""

from __future__ import annotations

TRANSLATIONS: list[tuple[str, str, str]] = [
    (
        "ksqldb",
        "SELECT id, WINDOWSTART, count(*) AS n FROM clicks WINDOW TUMBLING (SIZE 10 MINUTES) WHERE id > 1 GROUP BY id EMIT CHANGES",
        "SELECT id, TUMBLE_START(INTERVAL '10 minutes') AS WINDOWSTART, count(*) AS n FROM clicks WHERE id > 1 GROUP BY id, TUMBLE(INTERVAL '10 minutes')",
    ),
    (
        "ksqldb",
        "CREATE TABLE t AS SELECT id, count(*) AS n FROM clicks WINDOW HOPPING (SIZE 10 MINUTES, ADVANCE BY 1 MINUTE) GROUP BY id EMIT CHANGES",
        "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM clicks GROUP BY id, HOP(INTERVAL '1 minute', INTERVAL '10 minutes')",
    ),
    (
        "ksqldb",
        "SELECT id, count(*) AS n FROM clicks WINDOW SESSION (30 SECONDS) GROUP BY id EMIT CHANGES LIMIT 2",
        "SELECT id, count(*) AS n FROM clicks GROUP BY id, SESSION(INTERVAL '30' SECONDS) LIMIT 2",
    ),
    (
        "duckdb",
        "SELECT * FROM read_csv('a.csv', nullstr = '-')",
        "SELECT * FROM csv.`a.csv` WITH (header = true, inferSchema = true, nullValue = '-')",
    ),
    (
        "postgres",
        "SELECT (regexp_match('ab1', '([a-z]+)([0-9]+)'))[2] AS m, id::text FROM counts",
        "SELECT regexp_extract('ab1', '([a-z]+)([0-9]+)', 2) AS m, CAST(id AS STRING) FROM counts",
    ),
    (
        "duckdb",
        "SELECT * REPLACE (id + 1 AS id, ts AS ts) FROM clicks",
        "SELECT * EXCEPT (id, ts), id + 1 AS id, ts AS ts FROM clicks",
    ),
    ("duckdb", "SELECT c.* RENAME (id AS n) FROM clicks c", "SELECT c.* EXCEPT (id), id AS n FROM clicks c"),
    (
        "duckdb",
        "SELECT {'a': 1, b: [{'c': 'x'}]} AS s, MAP {'k': 2} AS m, struct_pack(n := 1) AS p FROM clicks",
        "SELECT STRUCT(1 AS a, ARRAY(STRUCT('x' AS c)) AS b) AS s, map('k', 2) AS m, STRUCT(1 AS n) AS p FROM clicks",
    ),
    (
        "duckdb",
        "SELECT [x * 2 FOR x IN [1, 2] IF x > 1] AS a, 7//2 AS b, id ** 2 AS c, 1_000 AS d, count() AS n FROM counts GROUP BY ALL",
        "SELECT transform(filter(ARRAY(1, 2), x -> x > 1), x -> x * 2) AS a, 7 DIV 2 AS b, POWER(id, 2) AS c, 1000 AS d, count(*) AS n FROM counts GROUP BY ALL",
    ),
    ("postgres", "SELECT id FROM counts FETCH FIRST 2 ROWS ONLY", "SELECT id FROM counts LIMIT 2"),
    (
        "duckdb",
        "SELECT DISTINCT a: 1, \"b c\": upper('x') || 'y', c: CASE WHEN true THEN 1 END, d: [1, 2] FROM e: counts JOIN f: (SELECT g: -1) ON true",
        "SELECT DISTINCT 1 AS a, UPPER('x') || 'y' AS `b c`, CASE WHEN TRUE THEN 1 END AS c, ARRAY(1, 2) AS d FROM counts AS e JOIN (SELECT -1 AS g) AS f ON TRUE",
    ),
    (
        "postgres",
        "SELECT id FROM counts ORDER BY id OFFSET 2 ROWS FETCH NEXT ROW ONLY",
        "SELECT id FROM counts ORDER BY id LIMIT 1 OFFSET 2",
    ),
    ("duckdb", "SELECT id FROM counts OFFSET 3 LIMIT 2", "SELECT id FROM counts LIMIT 2 OFFSET 3"),
    ("duckdb", "SELECT id FROM counts OFFSET 3 ROWS", "SELECT id FROM counts OFFSET 3"),
    ("duckdb", 'DESCRIBE "clicks"', "DESCRIBE clicks"),
    ("duckdb", 'SHOW CREATE STREAM "clicks"', "SHOW CREATE STREAM clicks"),
    ("duckdb", 'DROP LIVE TABLE IF EXISTS "counts"', "DROP LIVE TABLE IF EXISTS counts"),
    (
        "postgres",
        "SELECT localtimestamp AS l, ts::timestamp(3) AS t FROM clicks WHERE ts > now() - '1 hour'",
        "SELECT localtimestamp() AS l, CAST(ts AS TIMESTAMP) AS t FROM clicks WHERE ts > CURRENT_TIMESTAMP() - INTERVAL '1 hour'",
    ),
    (
        "duckdb",
        "WITH c AS NOT MATERIALIZED (SELECT count(*) FILTER (id > 1) AS n FROM counts) SELECT n FROM c FOR UPDATE",
        "WITH c AS (SELECT COUNT(*) FILTER(WHERE id > 1) AS n FROM counts) SELECT n FROM c",
    ),
    (
        "duckdb",
        "SELECT [3, 4, 5][2:3] AS s, transform([1], lambda x, i: x + i) AS l FROM counts ORDER BY s COLLATE NOCASE",
        "SELECT slice(ARRAY(3, 4, 5), 2, 2) AS s, TRANSFORM(ARRAY(1), (x, i) -> x + i) AS l FROM counts ORDER BY s COLLATE UTF8_LCASE",
    ),
    (
        "duckdb",
        "SELECT (array(3, 4, 5))[2:3] AS s FROM counts",
        "SELECT slice((ARRAY(3, 4, 5)), 2, 2) AS s FROM counts",
    ),
    ("duckdb", "SELECT e FROM UNNEST(array(1)) AS e", "SELECT e FROM explode(ARRAY(1)) AS e(e)"),
    (
        "duckdb",
        "SELECT e FROM counts c, unnest(array(c.id)) AS e WHERE e > 1",
        "SELECT e FROM counts AS c LATERAL VIEW explode(ARRAY(c.id)) e AS e WHERE e > 1",
    ),
    (
        "duckdb",
        "SELECT e FROM counts LEFT JOIN UNNEST(array(id)) AS u (e) ON TRUE",
        "SELECT e FROM counts LATERAL VIEW OUTER explode(ARRAY(id)) u AS e",
    ),
    ("postgres", "FROM 'a/b.json' LIMIT 3", "FROM json.`a/b.json` LIMIT 3"),
    ("duckdb", "SELECT * FROM read_parquet('b.parquet') p", "SELECT * FROM parquet.`b.parquet` AS p"),
    (
        "duckdb",
        "SELECT * FROM read_csv('a/*.csv', delim = '|') c JOIN 'b.tsv' ON a = b",
        "SELECT * FROM csv.`a/*.csv` WITH (header = true, inferSchema = true, sep = '|') AS c JOIN csv.`b.tsv` WITH (header = true, inferSchema = true, sep = '\\t') ON a = b",
    ),
    (
        "postgres",
        "SELECT * FROM read_json(['a.json', 'b.json'])",
        "SELECT * FROM (SELECT * FROM json.`a.json` UNION ALL SELECT * FROM json.`b.json`)",
    ),
    (
        "flink",
        "SELECT id, w FROM clicks, LATERAL TABLE(explode(array(1, 2))) AS t(w)",
        "SELECT id, w FROM clicks, LATERAL EXPLODE(ARRAY(1, 2)) AS t(w)",
    ),
    (
        "postgres",
        "SELECT '{1,\"b,c\",NULL}'::text[] AS a, CAST('{}' AS int[]) AS b, $$x y$$ AS c, $t$z$t$ AS d",
        "SELECT CAST(array('1', 'b,c', NULL) AS ARRAY<STRING>) AS a, CAST(array() AS ARRAY<INT>) AS b, 'x y' AS c, 'z' AS d",
    ),
    (
        "postgres",
        "SELECT window.start AS w, count(*) AS n FROM clicks GROUP BY window(ts, INTERVAL 10 MINUTES, interval '5 minutes')",
        "SELECT window.start AS w, count(*) AS n FROM clicks GROUP BY window(ts, '10 minutes', '5 minutes')",
    ),
    (
        "flink",
        "SELECT MAP['a', 1, 'b', 2] AS m, JSON_OBJECT('k' VALUE id, KEY 'l' VALUE 2) AS o FROM counts",
        "SELECT map('a', 1, 'b', 2) AS m, to_json(named_struct('k', id, 'l', 2)) AS o FROM counts",
    ),
    (
        "ksqldb",
        "SELECT d->id, concat('a', d -> id), transform(array(d), x -> x->id), reduce(array(1), 0, (s, x) => s + x), filter(array(1), x => x > 0) FROM (SELECT struct(id) AS d FROM counts)",
        "SELECT d.id, CONCAT('a', COALESCE(d.id, '')), TRANSFORM(ARRAY(d), x -> x.id), reduce(array(1), 0, (s, x) -> s + x), FILTER(ARRAY(1), x -> x > 0) FROM (SELECT STRUCT(id) AS d FROM counts)",
    ),
    (
        "postgres",
        "SELECT ts + interval '1 month 2 days' - '1 year 3 hours'::interval AS t FROM clicks",
        "SELECT ts + make_interval(0, 1, 0, 2) - make_interval(1, 0, 0, 0, 3) AS t FROM clicks",
    ),
    (
        "postgres",
        "SELECT ARRAY[1, 2] && '{2,3}' AS a, [id] <@ ARRAY[1] AS b, '{1}'::int[] @> array(1) AS c, 1 + |/ 16 AS d, ||/ 27 AS e FROM counts",
        "SELECT arrays_overlap(ARRAY(1, 2), array(2, 3)) AS a, (size(array_except(ARRAY(id), ARRAY(1))) = 0) AS b, (size(array_except(ARRAY(1), CAST(array(1) AS ARRAY<INT>))) = 0) AS c, 1 + SQRT(16) AS d, CBRT(27) AS e FROM counts",
    ),
    (
        "postgres",
        "SELECT '{}' ? 'k' AS a, '{}' ?| ARRAY['k'] AS b, '{}' IS NOT JSON AS c, 'x' ^@ 'y' AS d, 'x' !~~* 'y' AS e",
        "SELECT array_contains(json_object_keys('{}'), 'k') AS a, arrays_overlap(json_object_keys('{}'), ARRAY('k')) AS b, NOT (try_parse_json('{}') IS NOT NULL) AS c, startswith('x', 'y') AS d, 'x' NOT ILIKE 'y' AS e",
    ),
    (
        "duckdb",
        "SELECT ARRAY(SELECT id FROM counts) AS a, $$it's; \"one$$ AS b, $t$'$$'$t$ AS c",
        "SELECT (SELECT collect_list(value) RESPECT NULLS FROM (SELECT id FROM counts) AS list(value)) AS a, 'it\\'s; \"one' AS b, '\\'$$\\'' AS c",
    ),
    (
        "duckdb",
        "SELECT MAP {'k': 1}['k'] AS a, {'a': 1}['a'] AS b, [1, 2][:1] AS c, [1, 2][2:] AS d, [1, 2][-1] AS e",
        "SELECT map('k', 1)['k'] AS a, STRUCT(1 AS a)['a'] AS b, slice(ARRAY(1, 2), 1, 1) AS c, slice(ARRAY(1, 2), 2, size(ARRAY(1, 2))) AS d, element_at(ARRAY(1, 2), -1) AS e",
    ),
    (
        "postgres",
        "SELECT current_schema AS a, INTERVAL (3) DAYS AS b FROM counts FOR UPDATE SKIP LOCKED",
        "SELECT CURRENT_SCHEMA() AS a, INTERVAL '3 days' AS b FROM counts",
    ),
    ("duckdb", "FROM counts USING SAMPLE reservoir(5 ROWS)", "FROM counts TABLESAMPLE (5 ROWS)"),
    (
        "postgres",
        "SELECT now() - '5 min'::interval AS a, interval '1h 30m' AS b, '01:30'::interval AS c, id::varchar AS d, CAST(ts AS TIMESTAMP WITH TIME ZONE) AS e FROM clicks",
        "SELECT CURRENT_TIMESTAMP() - INTERVAL '5 minutes' AS a, INTERVAL '1 hour 30 minutes' AS b, INTERVAL '01:30:00' HOUR TO SECOND AS c, CAST(id AS STRING) AS d, CAST(ts AS TIMESTAMP) AS e FROM clicks",
    ),
    (
        "postgres",
        "SELECT id AS \"Id\", \"clicks\".ts FROM \"clicks\" WHERE id = ANY(ARRAY[1, 2]) AND id <> ALL ('{3,4}') AND 'a' ILIKE ANY (ARRAY['A%']) AND 'a' SIMILAR TO '(a|b)%' AND E'x' = 'x'",
        "SELECT id AS `Id`, `clicks`.ts FROM `clicks` WHERE id IN (1, 2) AND id NOT IN (3, 4) AND 'a' ILIKE ANY ('A%') AND 'a' RLIKE '^(?:(a|b).*)$' AND 'x' = 'x'",
    ),
    (
        "duckdb",
        "SELECT d FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-02', '1 hour') AS d",
        "SELECT d FROM explode(sequence(CAST('2024-01-01' AS TIMESTAMP_NTZ), CAST('2024-01-02' AS TIMESTAMP_NTZ), INTERVAL '1 hour')) AS d(d)",
    ),
    (
        "ksqldb",
        "CREATE STREAM k AS SELECT id FROM clicks PARTITION BY id EMIT CHANGES",
        "CREATE STREAM k AS SELECT id FROM clicks",
    ),
    (
        "ksqldb",
        "SELECT TIMESTAMPTOSTRING(WINDOWSTART, 'HH:mm') AS w, count(*) AS n FROM clicks WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id EMIT CHANGES",
        "SELECT date_format(TUMBLE_START(INTERVAL '1 hour'), 'HH:mm') AS w, count(*) AS n FROM clicks GROUP BY id, TUMBLE(INTERVAL '1 hour')",
    ),
    (
        "postgres",
        "SELECT 'a' ~ 'b' AS a, ts !~* 'c' AS b, ~ id FROM clicks",
        "SELECT 'a' RLIKE 'b' AS a, NOT ts RLIKE '(?i)c' AS b, ~ id FROM clicks",
    ),
    (
        "duckdb",
        "SELECT [1, 2][0] AS a, ARRAY[[1], [2]] AS b FROM generate_series(1, 5)",
        "SELECT ARRAY(1, 2)[0] AS a, ARRAY(ARRAY(1), ARRAY(2)) AS b FROM range(1, 5 + 1) AS series(generate_series)",
    ),
    (
        "duckdb",
        "SELECT ts AT TIME ZONE 'UTC' AS t FROM clicks",
        "SELECT convert_timezone('UTC', ts) AS t FROM clicks",
    ),
    (
        "postgres",
        'SELECT \'{}\'::jsonb @> \'{"a": "x", "b": 2}\' AS x',
        "SELECT get_json_object(CAST('{}' AS STRING), '$.a') = 'x' AND get_json_object(CAST('{}' AS STRING), '$.b') = '2' AS x",
    ),
    (
        "postgres",
        "SELECT '{}'::jsonb ->> 'a' AS x",
        "SELECT GET_JSON_OBJECT(CAST('{}' AS STRING), '$.a') AS x",
    ),
    (
        "ksqldb",
        "SELECT * FROM clicks c JOIN counts FOR SYSTEM_TIME AS OF PROCTIME() AS p ON p.id = c.id",
        "SELECT * FROM clicks c JOIN counts AS p ON p.id = c.id",
    ),
    (
        "postgres",
        "SELECT '{}' -> 'a' ->> 'b' AS x",
        "SELECT GET_JSON_OBJECT(GET_JSON_OBJECT('{}', '$.a'), '$.b') AS x",
    ),
    ("postgres", "SELECT '{}' #>> '{a, 0}' AS x", "SELECT get_json_object('{}', '$.a[0]') AS x"),
    (
        "postgres",
        "SELECT to_char(ts, 'YYYY-MM-DD') FROM clicks",
        "SELECT DATE_FORMAT(ts, 'yyyy-MM-dd') FROM clicks",
    ),
    ("duckdb", "FROM counts USING SAMPLE 10%", "FROM counts TABLESAMPLE (10 PERCENT)"),
    (
        "postgres",
        "SELECT * FROM counts TABLESAMPLE SYSTEM (5)",
        "SELECT * FROM counts TABLESAMPLE (5 PERCENT)",
    ),
    (
        "duckdb",
        "SELECT 5 ^ 2 AS a, log(10) AS b, [7, 8][1] AS c FROM counts",
        "SELECT POWER(5, 2) AS a, log10(10) AS b, ARRAY(7, 8)[0] AS c FROM counts",
    ),
    ("duckdb", "SELECT '{\"a\": 1}' ->> '$.a' AS x", "SELECT GET_JSON_OBJECT('{\"a\": 1}', '$.a') AS x"),
]
"""(dialect, a statement of it, the same in Spark's words)"""
