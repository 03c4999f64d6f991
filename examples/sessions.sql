-- Sessions of clicks with a stateful processor in Python: sessions.py, in the same folder, keeps the open
-- session of each user as state, and a timer closes it after half an hour of event time without a click.

CREATE STREAM clicks (user STRING, page STRING, at TIMESTAMP)
  USING json OPTIONS (path '${here}/data/visits')
  WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;

CREATE FUNCTION sessionize AS 'sessions.Sessions' LANGUAGE PYTHON
  RETURNS TABLE (user STRING, began TIMESTAMP, ended TIMESTAMP, clicks INT);
CREATE FUNCTION duration AS 'sessions.length' LANGUAGE PYTHON RETURNS STRING;

CREATE LIVE TABLE visits TRIGGER AVAILABLE NOW AS
SELECT user, began, duration(began, ended) AS length, clicks
FROM sessionize(TABLE(clicks) PARTITION BY user, time_mode => 'eventTime')
WHERE clicks > 1;

AWAIT QUERY visits;
SELECT * FROM visits ORDER BY user, began;
