-- Each event once, although the sender repeats some of them. An id is kept in state only for the delay of
-- the watermark, so the state stays small.

CREATE STREAM events (id STRING, kind STRING, at TIMESTAMP)
  USING json OPTIONS (path '${here}/data/events')
  WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;

CREATE LIVE TABLE once TRIGGER AVAILABLE NOW AS
SELECT DISTINCT ON (id) WITHIN WATERMARK id, kind, at FROM events;

AWAIT QUERY once;
SELECT * FROM once ORDER BY id;
