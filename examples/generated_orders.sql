-- The datagen connector generates test data: the same seed gives the same rows in every run.

CREATE STREAM orders (id BIGINT, customer INT, item STRING, price DOUBLE, at TIMESTAMP)
  USING datagen
  OPTIONS (
    rowsPerBatch 1000,
    seed 7,
    'fields.customer' 'skew 1 to 50',
    'fields.item' 'choice tea, coffee, cake',
    'fields.price' 'random 1 to 20',
    'fields.at' 'event_time every 1 second late up to 30 seconds'
  )
  WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;

SELECT item, count(*) AS orders, round(sum(price), 2) AS total
FROM orders
GROUP BY item
ORDER BY item;
