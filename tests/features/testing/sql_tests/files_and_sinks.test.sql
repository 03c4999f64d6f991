SET spark.sql.session.timeZone = 'America/New_York';
CREATE SINK rejected USING json OPTIONS (path '/nowhere/rejected');
CREATE SINK out USING json OPTIONS (path '/nowhere/out');
CREATE STREAM words (word STRING, n INT, at TIMESTAMP)
  USING json ON MALFORMED INTO rejected
  OPTIONS (path '/nowhere')
  WITH WATERMARK at DELAY '10 minutes';
CREATE STREAM lax (word STRING, n INT) USING csv OPTIONS (path '/nowhere', sep ';');

TEST 'rows of files that cannot be parsed' BEGIN
  CREATE LIVE TABLE good AS SELECT word, n FROM words;
  CREATE LIVE TABLE there AS SELECT * FROM lax;
  CREATE LIVE TABLE bad AS SELECT payload FROM `lax$malformed`;
  GIVEN words FROM 'malformed.jsonl';
  EXPECT good VALUES ('a', 1);
  EXPECT rejected (payload) VALUES ('not json');
  GIVEN words VALUES ('b', 2, NULL);
  EXPECT NO CHANGES IN rejected;
  GIVEN lax FROM 'visits.csv';
  EXPECT there VALUES ('user', NULL), ('ann', 3);
  EXPECT bad VALUES ('user;n');
END TEST;

TEST 'two queries, and rows inserted by hand, in one sink' BEGIN
  INSERT INTO out AS QUERY one SELECT word, n FROM words;
  INSERT INTO out AS QUERY two SELECT word, n FROM lax;
  GIVEN words (word, n) VALUES ('a', 1);
  GIVEN lax VALUES ('b', 2);
  INSERT INTO out VALUES ('c', 3);
  EXPECT CHANGES IN out VALUES ('+I', 'a', 1), ('+I', 'b', 2), ('+I', 'c', 3);
  RESTART QUERY two;
  GIVEN lax VALUES ('d', 4);
  EXPECT out VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4);
END TEST;

TEST 'times are in the session time zone, and fractions are near' BEGIN
  CREATE LIVE TABLE thirds AS
  SELECT at, n / 3 AS d, CAST(n / 3 AS FLOAT) AS f, array(CAST(n AS DECIMAL(9, 2)) / 3) AS m
  FROM words;
  GIVEN words (n, at) VALUES (1, '2024-07-01 12:00:00');
  EXPECT thirds (at, d, f) VALUES ('2024-07-01T16:00:00Z', 1 / 3, 0.33333334);
  EXPECT thirds (at, f) VALUES (TIMESTAMP '2024-07-01 12:00:00', 0.3333333);
  EXPECT thirds (d, f, m) TOLERANCE 0.01 VALUES (0.33, 0.33, array(0.34));
END TEST;

TEST 'a row that ends the query' BEGIN
  CREATE STREAM strict (word STRING, n INT) USING csv ON MALFORMED FAIL OPTIONS (path '/nowhere', sep ';');
  CREATE LIVE TABLE there AS SELECT * FROM strict;
  GIVEN strict FROM 'visits.csv';
  EXPECT there FAILS WITH 'MALFORMED_MESSAGE';
END TEST;
