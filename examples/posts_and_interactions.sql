-- Two streams joined on a time range: the interactions within one hour after a video was posted.

CREATE STREAM interactions (user_id INT, video_id INT, event STRING, event_time TIMESTAMP)
  USING csv
  OPTIONS (path '${here}/data/interactions', header true)
  WITH WATERMARK event_time DELAY OF INTERVAL 1 HOUR;

CREATE STREAM posts (id INT, title STRING, post_time TIMESTAMP)
  USING csv
  OPTIONS (path '${here}/data/posts', header true)
  WITH WATERMARK post_time DELAY OF INTERVAL 5 MINUTES;

CREATE LIVE TABLE early_reactions TRIGGER AVAILABLE NOW AS
SELECT p.title, i.user_id, i.event, i.event_time
FROM interactions i
JOIN posts p
  ON i.video_id = p.id
    AND i.event_time BETWEEN p.post_time AND p.post_time + INTERVAL 1 HOUR;

AWAIT QUERY early_reactions;
SELECT * FROM early_reactions ORDER BY event_time;
