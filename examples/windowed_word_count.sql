-- Words in ten-minute windows, with words that come late. The rows are typed in, so that one can
-- see what each micro-batch does: every INSERT below is one.

CREATE STREAM words (word STRING, at TIMESTAMP)
  USING values
  WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;

-- A live table in update mode: the newest count of each window and word.
CREATE LIVE TABLE counts AS
SELECT window.start AS since, window.end AS until, word, count(*) AS n
FROM words
GROUP BY window(at, '10 minutes'), word;

INSERT INTO words VALUES ('cat', '2024-05-01 12:02:00'), ('dog', '2024-05-01 12:07:00');
AWAIT QUERY counts IDLE;
INSERT INTO words VALUES ('cat', '2024-05-01 12:21:00'), ('owl', '2024-05-01 12:14:00');
AWAIT QUERY counts IDLE;

-- 12:14 is late but within the delay: the watermark was at 11:57 until now, and is at 12:11 now.
INSERT INTO words VALUES ('owl', '2024-05-01 12:13:00');
-- 12:04 is too late: its window ended before the watermark. It is dropped.
INSERT INTO words VALUES ('cat', '2024-05-01 12:04:00');
AWAIT QUERY counts IDLE;

SELECT * FROM counts ORDER BY since, word;
