-- From JSON files to Parquet files: page views in ten-minute windows. A file sink accepts only final rows
-- (append mode): a window is written when the watermark has passed its end.
--   streamsql examples/files_to_parquet.sql                       writes to the folder page_views
--   streamsql -D out=/tmp/views examples/files_to_parquet.sql     writes to /tmp/views
-- Run it again when there are new files: it resumes from its checkpoint and reads only these.

DEFINE IF NOT EXISTS out = 'page_views';

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
