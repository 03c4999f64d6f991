-- Through Kafka and back: generated orders and payments are written to two topics, read back, and joined
-- where a payment follows its order within ten minutes. The paid orders go to a live table, grouped by
-- quarter of an hour, and to Parquet files. The topics orders and payments must exist, unless the brokers
-- create topics automatically. When the script runs again, each query resumes from its checkpoint.
--
--   streamsql examples/kafka_orders_paid.sql
--   streamsql -D servers=kafka:9092 -D out=/tmp/shop examples/kafka_orders_paid.sql

DEFINE IF NOT EXISTS servers = 'localhost:9092';
DEFINE IF NOT EXISTS out = 'shop';

-- datagen to Kafka: 1000 orders, one every 3 seconds, and a payment for two orders of three, at most 12 minutes later.
CREATE STREAM made_orders (id BIGINT, item STRING, price DOUBLE, at TIMESTAMP)
  USING datagen
  OPTIONS (
    rowsPerBatch 1000,
    seed 7,
    'fields.item' 'choice tea, coffee, cake',
    'fields.price' 'random 1 to 20',
    'fields.at' 'event_time every 3 seconds'
  );

CREATE SINK orders_topic USING kafka FORMAT json KEY (id)
  OPTIONS (servers '${servers}', topic 'orders');
CREATE SINK payments_topic USING kafka FORMAT json KEY (order_id)
  OPTIONS (servers '${servers}', topic 'payments');

INSERT INTO orders_topic CHECKPOINT '${out}/checkpoints/orders' TRIGGER AVAILABLE NOW
SELECT * FROM made_orders;

INSERT INTO payments_topic CHECKPOINT '${out}/checkpoints/payments' TRIGGER AVAILABLE NOW
SELECT id AS order_id, at + make_dt_interval(0, 0, 0, id * 37 % 720) AS paid_at
FROM made_orders
WHERE id % 3 > 0;

AWAIT QUERY ALL;

-- Two topics joined on a time range.
CREATE STREAM orders (id BIGINT, item STRING, price DOUBLE, at TIMESTAMP)
  USING kafka FORMAT json
  OPTIONS (servers '${servers}', topic 'orders')
  WITH WATERMARK at DELAY OF INTERVAL 15 MINUTES;

CREATE STREAM payments (order_id BIGINT, paid_at TIMESTAMP)
  USING kafka FORMAT json
  OPTIONS (servers '${servers}', topic 'payments')
  WITH WATERMARK paid_at DELAY OF INTERVAL 15 MINUTES;

CREATE STREAM paid AS
SELECT o.id, o.item, o.price, o.at, p.paid_at
FROM orders o
JOIN payments p
  ON p.order_id = o.id AND p.paid_at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES;

-- The join to a live table, and to Parquet files.
CREATE LIVE TABLE takings TRIGGER AVAILABLE NOW AS
SELECT window.start AS since, item, count(*) AS orders, round(sum(price), 2) AS total
FROM paid
GROUP BY window(at, '15 minutes'), item;

CREATE SINK paid_files USING parquet OPTIONS (path '${out}/paid');
INSERT INTO paid_files CHECKPOINT '${out}/checkpoints/paid' TRIGGER AVAILABLE NOW
SELECT * FROM paid;

AWAIT QUERY ALL;
SELECT * FROM takings ORDER BY since, item;
SELECT
  item,
  count(*) AS paid,
  round(avg(unix_timestamp(paid_at) - unix_timestamp(at)), 1) AS seconds
FROM parquet.`${out}/paid`
GROUP BY item
ORDER BY item;
