TEST 'a late word is dropped' BEGIN
  GIVEN words VALUES ('cat', 1, '2024-05-01 12:02:00'), ('dog', 2, '2024-05-01 12:07:00');
  EXPECT counts (word, n) VALUES ('cat', 1), ('dog', 1);
  EXPECT files EMPTY;
  EXPECT WATERMARK OF counts = '2024-05-01 11:57:00';
  ADVANCE words TO '2024-05-01 12:30:00';
  EXPECT files VALUES ('2024-05-01 12:00:00', 'dog', 1), ('2024-05-01 12:00:00', 'cat', 1);
  GIVEN words VALUES ('cat', 1, '2024-05-01 12:04:00');
  EXPECT NO CHANGES IN counts;
  EXPECT LATE ROWS OF counts (word, at) VALUES ('cat', '2024-05-01 12:04:00');
END TEST;

TEST 'each test begins with nothing, and changes are counted' BEGIN
  EXPECT WATERMARK OF files = NULL;
  EXPECT counts EMPTY;
  GIVEN words (t, word, weight) SELECT '2024-05-01 12:02:00', word, 1 / 3D FROM VALUES ('cat'), ('cat'), ('owl') AS v (word);
  EXPECT CHANGES IN counts (_op, word, n) VALUES ('+I', 'cat', 2), ('+I', 'owl', 1);
  EXPECT top ORDERED VALUES ('cat', 2), ('owl', 1);
  EXPECT counts (word, weight) TOLERANCE 0.01 VALUES ('cat', 0.33), ('owl', 0.33);
  EXPECT counts (word) CONTAINS VALUES ('owl');
  EXPECT top AS SELECT word, n FROM counts;
  GIVEN words VALUES ('owl', 0, '2024-05-01 12:02:00');
  GIVEN words VALUES ('owl', 0, '2024-05-01 12:02:00');
  EXPECT CHANGES IN counts (_op, word, n) ORDERED
    VALUES ('-U', 'owl', 1), ('+U', 'owl', 2), ('-U', 'owl', 2), ('+U', 'owl', 3);
  EXPECT top ORDERED VALUES ('owl', 3), ('cat', 2);
  EXPECT LATE ROWS OF counts EMPTY;
  EXPECT ERROR 'UNKNOWN_STREAM' FROM CREATE LIVE TABLE t AS SELECT * FROM wrods;
END TEST;

TEST 'a crash repeats no row' BEGIN
  INSERT INTO newest SELECT word, count(*) FROM words GROUP BY word;
  GIVEN words VALUES ('cat', 1, '2024-05-01 12:02:00');
  KILL;
  GIVEN words VALUES ('cat', 1, '2024-05-01 12:22:00'), ('cat', 1, '2024-05-01 12:02:30');
  EXPECT newest VALUES ('cat', 1);
  RESTART QUERY ALL;
  EXPECT newest VALUES ('cat', 3);
  EXPECT files VALUES ('2024-05-01 12:00:00', 'cat', 2);
  RESTART QUERY files;
  EXPECT NO CHANGES IN files;
  EXPECT WATERMARK OF files = '2024-05-01 12:12:00';
END TEST;

TEST 'a query that fails is expected to' BEGIN
  CREATE LIVE TABLE inverse AS SELECT CAST(1 / weight AS INT) AS w FROM words;
  GIVEN words (word, weight) VALUES ('cat', 1);
  GIVEN words (word, weight) VALUES ('dog', 0);
  EXPECT inverse FAILS WITH 'DIVIDE_BY_ZERO';
  EXPECT inverse VALUES (1);
END TEST;
