-- A live table is changed: the changed query is built beside the one in use, compared with it, and put in its
-- place. What reads the table goes on. With a workspace, ROLLBACK spent; brings the table of before back.

CREATE STREAM orders (customer STRING, amount DECIMAL(10, 2), state STRING) USING values;

CREATE LIVE TABLE spent AS
SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer;
CREATE LIVE TABLE best AS
SELECT customer, amount FROM spent ORDER BY amount DESC LIMIT 1;

INSERT INTO orders VALUES
  ('Ines', 30, 'paid'),
  ('Lea', 20, 'paid'),
  ('Tom', 55, 'cancelled'),
  ('Lea', 5, 'paid');
AWAIT QUERY ALL IDLE;
SELECT * FROM best;

-- Cancelled orders should not count. The live tables do not change yet.
CREATE OR REPLACE LIVE TABLE spent STAGED AS
SELECT customer, sum(amount) AS amount FROM orders WHERE state <> 'cancelled' GROUP BY customer;
AWAIT QUERY spent$staged IDLE;
COMPARE LIVE TABLE spent;

PROMOTE spent;
AWAIT QUERY ALL IDLE;
SELECT * FROM best;
