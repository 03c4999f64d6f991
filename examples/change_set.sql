-- A stream and a live table over it are changed as one set: both changes are built beside what is in use, with
-- the live tables that read them, compared, and put in use together. With a workspace, ROLLBACK CHANGE paid;
-- brings all of it back.

CREATE STREAM orders (customer STRING, amount DECIMAL(10, 2), state STRING) USING values;
CREATE STREAM sold AS SELECT customer, amount FROM orders;

CREATE LIVE TABLE spent AS
SELECT customer, sum(amount) AS amount FROM sold GROUP BY customer;
CREATE LIVE TABLE best AS
SELECT customer, amount FROM spent ORDER BY amount DESC LIMIT 1;

INSERT INTO orders VALUES
  ('Ines', 30, 'paid'),
  ('Lea', 20, 'paid'),
  ('Tom', 55, 'cancelled'),
  ('Lea', 5, 'paid');
AWAIT QUERY ALL IDLE;
SELECT * FROM best;

-- Cancelled orders should not count, and the number of orders is wanted. Nothing in use changes yet.
BEGIN CHANGE paid;
CREATE OR REPLACE STREAM sold AS SELECT customer, amount FROM orders WHERE state <> 'cancelled';
CREATE OR REPLACE LIVE TABLE spent AS
SELECT customer, sum(amount) AS amount, count(*) AS orders FROM sold GROUP BY customer;
END CHANGE;

AWAIT QUERY ALL IDLE;
COMPARE CHANGE paid;

PROMOTE CHANGE paid;
AWAIT QUERY ALL IDLE;
SELECT * FROM best;
