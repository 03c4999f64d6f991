-- The tables of the corpus: nulls, duplicates, ties, empty values, every kind of type.

CREATE OR REPLACE TEMPORARY VIEW store_sales AS SELECT * FROM VALUES
  (2450815, 1, 10, 100, 3, CAST(9.99 AS DECIMAL(7,2)), 1.5D),
  (2450815, 2, 10, 100, 1, CAST(5.00 AS DECIMAL(7,2)), -0.25D),
  (2450816, 1, 11, 101, 2, CAST(9.99 AS DECIMAL(7,2)), 3.0D),
  (2450816, 3, NULL, 100, NULL, NULL, NULL),
  (2450816, 1, 11, 101, 2, CAST(9.99 AS DECIMAL(7,2)), 3.0D),
  (2450817, 4, 12, 102, 7, CAST(0.50 AS DECIMAL(7,2)), 0.125D),
  (NULL, 2, 10, 101, 5, CAST(4.75 AS DECIMAL(7,2)), 2.5D),
  (2450900, 9, 13, NULL, 4, CAST(20.00 AS DECIMAL(7,2)), 8.0D),
  (2450900, 3, 12, 102, 1, CAST(100.00 AS DECIMAL(7,2)), 16.0D)
  AS t(ss_sold_date_sk, ss_item_sk, ss_customer_sk, ss_store_sk, ss_quantity, ss_sales_price, ss_net_profit);

CREATE OR REPLACE TEMPORARY VIEW date_dim AS SELECT * FROM VALUES
  (2450815, DATE '1998-01-01', 1998, 1, 'Thursday'),
  (2450816, DATE '1998-01-02', 1998, 1, 'Friday'),
  (2450817, DATE '1998-02-03', 1998, 2, 'Tuesday'),
  (2450900, DATE '1999-12-31', 1999, 12, NULL),
  (2450999, NULL, 2000, NULL, 'Monday')
  AS t(d_date_sk, d_date, d_year, d_moy, d_day_name);

CREATE OR REPLACE TEMPORARY VIEW item AS SELECT * FROM VALUES
  (1, 'AAAA', 'Books', 'fiction', 10, CAST(9.99 AS DECIMAL(7,2))),
  (2, 'BBBB', 'Books', 'travel', 10, CAST(5.25 AS DECIMAL(7,2))),
  (3, 'CCCC', 'Music', NULL, 20, CAST(100.00 AS DECIMAL(7,2))),
  (4, 'DDDD', NULL, 'classical', 20, NULL),
  (5, 'EEEE', 'Music', 'rock', NULL, CAST(1.00 AS DECIMAL(7,2)))
  AS t(i_item_sk, i_item_id, i_category, i_class, i_brand_id, i_current_price);

CREATE OR REPLACE TEMPORARY VIEW customer AS SELECT * FROM VALUES
  (10, 'Ann', 'Lee', 1980, 'US'),
  (11, 'bob', 'O''Neil', 1975, 'DE'),
  (12, NULL, 'Zoë', NULL, 'US'),
  (14, 'Dan', NULL, 1980, NULL)
  AS t(c_customer_sk, c_first_name, c_last_name, c_birth_year, c_country);

CREATE OR REPLACE TEMPORARY VIEW store AS SELECT * FROM VALUES
  (100, 'Main', 'TX'), (101, 'East', 'CA'), (102, 'West', 'CA'), (103, 'Shut', NULL)
  AS t(s_store_sk, s_store_name, s_state);

CREATE OR REPLACE TEMPORARY VIEW clicks AS SELECT * FROM VALUES
  (1, 'ann', 'a', TIMESTAMP '2024-01-01 10:00:00', 1),
  (2, 'bob', 'b', TIMESTAMP '2024-01-01 10:04:30', 5),
  (3, 'ann', 'a', TIMESTAMP '2024-01-01 10:06:00', NULL),
  (4, 'ann', 'c', TIMESTAMP '2024-01-01 10:31:00', 2),
  (5, NULL, 'a', TIMESTAMP '2024-01-01 11:00:00', 3),
  (6, 'bob', NULL, NULL, 8),
  (6, 'bob', NULL, NULL, 8),
  (7, 'cat', 'b', TIMESTAMP '2024-01-01 11:59:59.999', -4)
  AS t(id, user, page, ts, value);

CREATE OR REPLACE TEMPORARY VIEW impressions AS SELECT * FROM VALUES
  (1, 'ann', TIMESTAMP '2024-01-01 09:58:00'),
  (2, 'bob', TIMESTAMP '2024-01-01 10:04:00'),
  (3, 'ann', TIMESTAMP '2024-01-01 10:05:59'),
  (9, 'eve', TIMESTAMP '2024-01-01 10:10:00')
  AS t(id, user, ts);

CREATE OR REPLACE TEMPORARY VIEW nested AS SELECT * FROM VALUES
  (1, array(3, 1, 2), map('x', 10, 'y', 20), named_struct('a', 1, 'b', named_struct('c', 'deep', 'd', 1.5D)),
   array(named_struct('p', 'u', 'q', 1), named_struct('p', 'v', 'q', 2))),
  (2, array(5, CAST(NULL AS INT)), map('x', CAST(NULL AS INT)), named_struct('a', 2, 'b', NULL),
   array(named_struct('p', 'w', 'q', 3))),
  (3, array(), map(), NULL, array()),
  (4, NULL, NULL, named_struct('a', NULL, 'b', named_struct('c', NULL, 'd', 0.0D)), NULL)
  AS t(id, xs, m, s, ps);

-- Column names that are words of the grammar.
CREATE OR REPLACE TEMPORARY VIEW words AS SELECT * FROM VALUES
  (1, 10, TIMESTAMP '2024-03-01 00:00:00', DATE '2024-03-01', 'k1', 'abc', 100, true, 'w'),
  (2, 20, TIMESTAMP '2024-03-02 12:30:00', DATE '2024-03-02', 'k2', 'xyz', 200, false, 'v'),
  (2, NULL, NULL, NULL, NULL, 'xyz', 200, NULL, 'v')
  AS t(offset, value, timestamp, date, key, left, end, first, window);

CREATE OR REPLACE TEMPORARY VIEW `odd names` AS SELECT * FROM VALUES
  (1, 'one', 1.5D), (2, 'two', NULL), (2, 'zwei', -0.0D)
  AS t(`an id`, `select`, `a.b`);

CREATE OR REPLACE TEMPORARY VIEW numbers AS SELECT * FROM VALUES
  (1, 1L, 1.5D, CAST(1.5 AS FLOAT), CAST(1.10 AS DECIMAL(10,2)), true, 'one', X'01', DATE '2020-02-29'),
  (2, -2L, CAST('NaN' AS DOUBLE), CAST(-0.0 AS FLOAT), CAST(-2.25 AS DECIMAL(10,2)), false, '', X'', DATE '1969-12-31'),
  (NULL, NULL, CAST('Infinity' AS DOUBLE), NULL, NULL, NULL, NULL, NULL, NULL),
  (3, 9223372036854775807L, -1.25D, CAST(2.5 AS FLOAT), CAST(0.00 AS DECIMAL(10,2)), true, 'Ünï', X'FF00', DATE '9999-12-31')
  AS t(i, l, d, f, n, b, s, bin, day);

CREATE OR REPLACE TEMPORARY VIEW empty AS SELECT i, s FROM numbers WHERE false;

CREATE OR REPLACE GLOBAL TEMPORARY VIEW everywhere AS SELECT * FROM VALUES (1), (2) AS t(x);
