CREATE STREAM words (word STRING) USING values;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
BEGIN CHANGE upper;
CREATE OR REPLACE LIVE TABLE counts STAGED AS SELECT upper(word) AS word, count(*) AS n FROM words GROUP BY 1;
END CHANGE;
PROMOTE CHANGE upper;

TEST 'a set of changes in a pipeline is not made' BEGIN
  GIVEN words VALUES ('a');
  EXPECT counts VALUES ('a', 1);
END TEST;
