-- A stream joined with a static table: the actions of each user in each hour, with the profile of the user.

CREATE STREAM interactions (user_id INT, video_id INT, event STRING, event_time TIMESTAMP)
  USING csv
  OPTIONS (path '${here}/data/interactions', header true)
  WITH WATERMARK event_time DELAY OF INTERVAL 30 MINUTES;

CREATE TEMPORARY VIEW profiles (id INT, name STRING, age INT)
  USING csv OPTIONS (path '${here}/data/profiles.csv', header true);

CREATE LIVE TABLE by_hour TRIGGER AVAILABLE NOW AS
SELECT a.hour, p.name, p.age, a.event, a.n
FROM (
  SELECT window.start AS hour, user_id, event, count(*) AS n
  FROM interactions
  GROUP BY window(event_time, '1 hour'), user_id, event
) a
JOIN profiles p ON a.user_id = p.id;

AWAIT QUERY by_hour;
SELECT * FROM by_hour ORDER BY hour, name, event;
