from conftest import Console
def attempt(console, script):
    from streamsql.errors import StreamsqlError
    try:
        for r in console.run(script):
            print("   ", type(r).__name__, getattr(r,'message',''), [f"{n.code}: {n.text}" for n in r.notes], getattr(r,'rows',''))
    except StreamsqlError as e:
        print("   ERROR", e.code, e.message, "| detail:", e.detail, "| hint:", e.hint, "| proposal:", e.proposal)

def test_a(console: Console, tmp_path) -> None:
    attempt(console, "CREATE STREAM s (id INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '1 minute'; CREATE LIVE TABLE t AS SELECT * FROM s; CREATE LIVE TABLE u AS SELECT * FROM t WHERE id < 9; CREATE LIVE TABLE c AS SELECT id, count(*) AS n FROM s GROUP BY id; CREATE LIVE TABLE d AS SELECT DISTINCT * FROM s; CREATE LIVE TABLE j AS SELECT a.id FROM s AS a JOIN s AS b ON a.id = b.id; CREATE LIVE TABLE jj AS SELECT * FROM s AS a JOIN s AS b USING (id);CREATE LIVE TABLE x AS SELECT id, id AS c FROM s; CREATE STREAM v AS SELECT * FROM s; CREATE LIVE TABLE vv AS SELECT * FROM v; INSERT INTO s VALUES (1, '2024-01-01'); AWAIT QUERY ALL IDLE;")
    attempt(console, "ALTER STREAM s ADD COLUMN c STRING;")
    attempt(console, "INSERT INTO s VALUES (2, '2024-01-01', 'new'); AWAIT QUERY ALL IDLE; SELECT * FROM t; SELECT * FROM u; SELECT * FROM c; SELECT * FROM d; SELECT * FROM j; SELECT * FROM x; SELECT * FROM vv; SHOW QUERIES; SHOW CREATE STREAM s; STOP QUERY ALL; START QUERY t; START QUERY c; START QUERY j;")
