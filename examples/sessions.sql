-- Sessions of clicks by a stateful processor: sessions.py, beside this file, keeps each user's open
-- session as state, and a timer ends it after half an hour of event time without a click.
-- It needs two packages more:  pip install 'pandas>=2.2,<3' 'protobuf>=6.33.5,<7'

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
