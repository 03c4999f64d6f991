# A live table in stages was replaced by another one in stages: the folder of the new stage was removed, because its
# name is that of the old one. The next micro-batch failed with FileNotFoundError.
CREATE STREAM s0 (k STRING, v BIGINT) USING values;
CREATE STREAM s1 (k STRING, v BIGINT) USING values;
INSERT INTO s0 VALUES ('b', 4), ('c', 2); INSERT INTO s1 VALUES ('a', 3);
CREATE LIVE TABLE v0 AS SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM s0) WHERE rn <= 1;
CREATE OR REPLACE LIVE TABLE v0 AS SELECT k, v FROM s1 INTERSECT SELECT k, v FROM s1;
-- check
INSERT INTO s1 VALUES ('c', 5);
-- check
-- crash
START QUERY ALL;
INSERT INTO s1 VALUES ('d', 6);
-- check
