CREATE STREAM words (word STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
CREATE SINK final USING noop;
SET spark.sql.session.timeZone = 'UTC';

TEST 'a missing row, and one too many' BEGIN
  GIVEN words VALUES ('cat', '2024-05-01 12:02:00'), ('dog', '2024-05-01 12:07:00');
  EXPECT counts VALUES ('cat', 1), ('dog', 2);
END TEST;
TEST 'nothing came out yet' BEGIN
  INSERT INTO final OUTPUT MODE APPEND SELECT window.start AS since, count(*) AS n FROM words GROUP BY window(at, '10 minutes');
  GIVEN words VALUES ('cat', '2024-05-01 12:02:00');
  EXPECT final VALUES ('2024-05-01 12:00:00', 1);
END TEST;
TEST 'not empty, and in another order' BEGIN
  CREATE LIVE TABLE sorted AS SELECT word FROM counts ORDER BY word;
  GIVEN words (word) VALUES ('a'), ('b');
  EXPECT sorted ORDERED VALUES ('b'), ('a');
END TEST;
TEST 'changes' BEGIN
  GIVEN words (word) VALUES ('a');
  EXPECT NO CHANGES IN counts;
END TEST;
TEST 'other changes, and a value that does not fit' BEGIN
  GIVEN words (word) VALUES ('a');
  EXPECT CHANGES IN counts (_op, n) VALUES ('+U', 1);
END TEST;
TEST 'a value that does not fit' BEGIN
  EXPECT counts VALUES ('a', 'one');
END TEST;
TEST 'another watermark' BEGIN
  GIVEN words VALUES ('a', '2024-05-01 12:00:00');
  EXPECT WATERMARK OF counts = '2024-05-01 12:00:00';
END TEST;
TEST 'a query that does not fail' BEGIN
  EXPECT counts FAILS WITH 'DIVIDE_BY_ZERO';
END TEST;
TEST 'a query that fails' BEGIN
  CREATE LIVE TABLE inverse AS SELECT CAST(word AS INT) AS w FROM words;
  GIVEN words (word) VALUES ('a');
  EXPECT inverse EMPTY;
END TEST;
TEST 'another error' BEGIN
  EXPECT ERROR 'UNKNOWN_SINK' FROM CREATE LIVE TABLE t AS SELECT * FROM wrods;
END TEST;
TEST 'no error' BEGIN
  EXPECT ERROR 'UNKNOWN_STREAM' FROM CREATE LIVE TABLE t AS SELECT * FROM words;
END TEST;
TEST 'a misspelt stream' BEGIN
  GIVEN wrods VALUES ('a');
END TEST;
TEST 'a row of another width' BEGIN
  GIVEN words VALUES ('a', '2024-05-01 12:00:00'), ('b');
END TEST;
TEST 'an unknown table' BEGIN
  EXPECT count EMPTY;
END TEST;
TEST 'an unknown column' BEGIN
  EXPECT counts (wrod) VALUES ('a');
END TEST;
TEST 'expected rows of another width' BEGIN
  EXPECT counts (n) VALUES ('a', 1);
END TEST;
TEST 'a stream is no result' BEGIN
  EXPECT words EMPTY;
END TEST;
TEST 'a sink without a query' BEGIN
  EXPECT final EMPTY;
END TEST;
TEST 'not empty' BEGIN
  GIVEN words (word) VALUES ('a');
  EXPECT counts EMPTY;
END TEST;
TEST 'contains' BEGIN
  GIVEN words (word) VALUES ('a');
  EXPECT counts CONTAINS VALUES ('a', 1), ('b', 1);
END TEST;
TEST 'late rows' BEGIN
  CREATE LIVE TABLE windows AS SELECT window.end AS until, count(*) AS n FROM words GROUP BY window(at, '10 minutes');
  GIVEN words VALUES ('a', '2024-05-01 12:00:00');
  GIVEN words VALUES ('b', '2024-05-01 11:00:00');
  EXPECT LATE ROWS OF windows EMPTY;
END TEST;
TEST 'a query as the expectation' BEGIN
  GIVEN words (word) VALUES ('a');
  EXPECT counts AS SELECT 'b', 1;
END TEST;
TEST 'another code of a failure' BEGIN
  CREATE LIVE TABLE inverse AS SELECT CAST(word AS INT) AS w FROM words;
  GIVEN words (word) VALUES ('a');
  EXPECT inverse FAILS WITH 'DIVIDE_BY_ZERO';
END TEST;
TEST 'beyond the tolerance' BEGIN
  CREATE LIVE TABLE thirds AS SELECT CAST(length(word) / 3 AS FLOAT) AS third FROM words;
  GIVEN words (word) VALUES ('a');
  EXPECT thirds TOLERANCE 0.001 VALUES (0.33);
END TEST;
TEST 'no watermark yet' BEGIN
  EXPECT WATERMARK OF counts = '2024-05-01 12:00:00';
END TEST;
TEST 'a file that is not there' BEGIN
  GIVEN words FROM 'none.jsonl';
END TEST;
