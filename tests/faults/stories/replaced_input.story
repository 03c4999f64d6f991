# A refresh of c1 was under way while its input was replaced: it failed with "has no query yet".
CREATE STREAM s0 (k STRING, v BIGINT) USING values;
CREATE LIVE TABLE v0 AS SELECT k, count(*) AS v FROM s0 GROUP BY k;
CREATE SINK out_c1 USING memory; INSERT INTO out_c1 AS QUERY c1 SELECT k, v FROM v0;
INSERT INTO s0 VALUES (NULL, 4), ('c', 1), ('a', 2), (NULL, 4);
STOP QUERY v0;
START QUERY v0 FROM BEGINNING;
CREATE OR REPLACE LIVE TABLE v0 AS SELECT k, v FROM (SELECT k, v FROM s0) ORDER BY v DESC NULLS LAST, k NULLS LAST LIMIT 3;
-- check
