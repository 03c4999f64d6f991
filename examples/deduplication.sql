-- Each event once, although the sender repeats itself. Ids are remembered for as long as the
-- watermark says that a repetition may come, so the state stays small.

CREATE STREAM events (id STRING, kind STRING, at TIMESTAMP)
  USING json OPTIONS (path '${here}/data/events')
  WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;

CREATE LIVE TABLE once TRIGGER AVAILABLE NOW AS
SELECT DISTINCT ON (id) WITHIN WATERMARK id, kind, at FROM events;

AWAIT QUERY once;
SELECT * FROM once ORDER BY id;
