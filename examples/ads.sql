-- Ad impressions joined with the clicks within one hour after them: an inner join, and a left outer join,
-- which also returns impressions without a click, once the watermarks show that no click can follow.

CREATE STREAM impressions (ad INT, shown_at TIMESTAMP)
  USING json OPTIONS (path '${here}/data/impressions', maxFilesPerTrigger 1)
  WITH WATERMARK shown_at DELAY OF INTERVAL 2 HOURS;

CREATE STREAM clicks (ad INT, clicked_at TIMESTAMP)
  USING json OPTIONS (path '${here}/data/ad_clicks', maxFilesPerTrigger 1)
  WITH WATERMARK clicked_at DELAY OF INTERVAL 3 HOURS;

CREATE LIVE TABLE clicked AS
SELECT i.ad, i.shown_at, c.clicked_at
FROM impressions i
JOIN clicks c
  ON c.ad = i.ad AND c.clicked_at BETWEEN i.shown_at AND i.shown_at + INTERVAL 1 HOUR;

CREATE LIVE TABLE shown AS
SELECT i.ad, i.shown_at, c.clicked_at
FROM impressions i
LEFT OUTER JOIN clicks c
  ON c.ad = i.ad AND c.clicked_at BETWEEN i.shown_at AND i.shown_at + INTERVAL 1 HOUR;

AWAIT QUERY ALL IDLE;
SELECT * FROM clicked ORDER BY ad;
SELECT * FROM shown ORDER BY ad;
