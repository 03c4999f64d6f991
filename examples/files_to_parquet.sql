-- Files in, Parquet out: views of each page in ten-minute windows. A file sink takes only finished
-- groups (append mode): a window is written once the watermark has passed its end.
--   streamsql -D out=/tmp/page_views examples/files_to_parquet.sql
-- Run it again when there are new files: it goes on from the checkpoint.

CREATE STREAM pages (page STRING, user STRING, at TIMESTAMP)
  USING json OPTIONS (path '${here}/data/pages')
  WITH WATERMARK at DELAY OF INTERVAL 5 MINUTES;

CREATE SINK page_views USING parquet OPTIONS (path '${out}/views');

INSERT INTO page_views
  OUTPUT MODE APPEND
  TRIGGER AVAILABLE NOW
  CHECKPOINT '${out}/checkpoint'
SELECT window.start AS since, page, count(*) AS views
FROM pages
GROUP BY window(at, '10 minutes'), page;

AWAIT QUERY page_views;
SELECT * FROM parquet.`${out}/views` ORDER BY since, page;
