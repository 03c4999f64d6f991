-- Live tables over live tables: the two videos with the most actions, and their share of all actions.

CREATE STREAM interactions (user_id INT, video_id INT, event STRING, event_time TIMESTAMP)
  USING csv
  OPTIONS (path '${here}/data/interactions', header true);

-- A streaming query keeps the number of actions of each video.
CREATE LIVE TABLE by_video TRIGGER AVAILABLE NOW AS
SELECT video_id, count(*) AS n FROM interactions GROUP BY video_id;

-- No streaming query of Spark can rank them. A live table over the live table can: it is computed again
-- after each micro-batch of by_video.
CREATE LIVE TABLE top_videos AS
SELECT video_id, n FROM by_video ORDER BY n DESC, video_id LIMIT 2;

-- This one reads both, always after the same micro-batch.
CREATE LIVE TABLE top_share AS
SELECT video_id, n, round(100 * n / (SELECT sum(n) FROM by_video)) AS percent FROM top_videos;

AWAIT QUERY ALL;
SELECT * FROM top_share ORDER BY n DESC, video_id;
