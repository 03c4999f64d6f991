-- Words counted in ten-minute windows, with late words. The rows are given by INSERT statements, each of
-- which is one micro-batch, so that the effect of each micro-batch can be seen.

CREATE STREAM words (word STRING, at TIMESTAMP)
  USING values
  WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;

-- A live table in update mode: it holds the newest count of each window and word.
CREATE LIVE TABLE counts AS
SELECT window.start AS since, window.end AS until, word, count(*) AS n
FROM words
GROUP BY window(at, '10 minutes'), word;

INSERT INTO words VALUES ('cat', '2024-05-01 12:02:00'), ('dog', '2024-05-01 12:07:00');
AWAIT QUERY counts IDLE;
INSERT INTO words VALUES ('cat', '2024-05-01 12:21:00'), ('owl', '2024-05-01 12:14:00');
AWAIT QUERY counts IDLE;

-- 12:13 is late, but not later than the watermark, which has moved from 11:57 to 12:11: the row is counted.
INSERT INTO words VALUES ('owl', '2024-05-01 12:13:00');
-- 12:04 is too late: its window ended before the watermark, so the row is dropped.
INSERT INTO words VALUES ('cat', '2024-05-01 12:04:00');
AWAIT QUERY counts IDLE;

SELECT * FROM counts ORDER BY since, word;
