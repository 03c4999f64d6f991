-- Words counted by window: from a topic, into a live table, files and a database.
DEFINE IF NOT EXISTS delay = '10 minutes';
SET spark.sql.session.timeZone = 'UTC';
CREATE STREAM words (word STRING, weight DOUBLE, t STRING)
  USING kafka FORMAT json OPTIONS (servers 'nowhere:9092', topic 'words')
  WITH WATERMARK to_timestamp(t) AS at DELAY '${delay}';
CREATE SINK files USING parquet OPTIONS (path '/nowhere/files');
CREATE SINK newest (word STRING, n BIGINT) USING jdbc KEY (word) OPTIONS (url 'jdbc:sqlite:/nowhere/db', table 'newest');

CREATE LIVE TABLE counts TRIGGER EVERY INTERVAL 1 HOUR AS
SELECT window.start AS since, word, count(*) AS n, avg(weight) AS weight
FROM words GROUP BY window(at, '10 minutes'), word;
CREATE LIVE TABLE top AS SELECT word, n FROM counts ORDER BY n DESC, word LIMIT 2;
INSERT INTO files TRIGGER AVAILABLE NOW CHECKPOINT '/nowhere/checkpoint'
SELECT window.start AS since, word, count(*) AS n FROM words GROUP BY window(at, '10 minutes'), word;

AWAIT QUERY ALL IDLE;
SELECT * FROM counts;
