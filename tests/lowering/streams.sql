-- Read as streams and as tables: clicks, impressions and sales without watermark, events (clicks) and
-- views (impressions) with one; item, customer, store, date_dim are static either way. `odd one` (impressions)
-- and checkpoint (clicks) are streams with names that need care.

-- star
SELECT * FROM clicks;
-- projection
SELECT id + 1 AS next, upper(user) AS user, value IS NULL FROM clicks;
-- filter
SELECT id, page FROM clicks WHERE user = 'ann' OR value > 4;
-- subquery
SELECT q.u, n FROM (SELECT user AS u, value * 2 AS n FROM clicks) q WHERE n > 3;
-- cte
WITH anns AS (SELECT id, page FROM clicks WHERE user = 'ann') SELECT page, count(*) AS n FROM anns GROUP BY page;
-- as-text
SELECT id FROM clicks WHERE user IN (SELECT lower(c_first_name) FROM customer);
-- union-all
SELECT user FROM clicks UNION ALL SELECT user FROM impressions;
-- union
SELECT user FROM clicks UNION SELECT user FROM impressions;
-- distinct
SELECT DISTINCT user, page FROM clicks;
-- global-count
SELECT count(*), sum(value), max(ts) FROM clicks;
-- group
SELECT user, count(*) AS n, avg(value) FROM clicks GROUP BY user;
-- group-alias
SELECT substr(user, 1, 1) AS initial, count(*) FROM clicks GROUP BY initial;
-- group-ordinal-hidden-key
SELECT count(*) AS n, max(id) FROM clicks GROUP BY page;
-- group-having
SELECT user, sum(value) AS total FROM clicks GROUP BY user HAVING sum(value) > 2 AND user IS NOT NULL;
-- group-order, ordered
SELECT user, count(*) AS n FROM clicks GROUP BY user ORDER BY n DESC, user LIMIT 3;
-- group-order-ordinal, ordered
SELECT count(*) AS n, page FROM clicks GROUP BY page ORDER BY 1 DESC, 2 NULLS LAST;
-- group-rollup
SELECT user, page, count(*) FROM clicks GROUP BY ROLLUP (user, page);
-- window
SELECT window.start, window.end, count(*) AS n FROM clicks GROUP BY window(ts, '30 minutes');
-- window-watermark
SELECT window, user, count(*) AS n FROM events GROUP BY window(ts, '30 minutes'), user;
-- window-sliding
SELECT window(ts, '20 minutes', '10 minutes').start AS s, sum(value) AS v FROM clicks GROUP BY window(ts, '20 minutes', '10 minutes');
-- session-window
SELECT session_window.start, user, count(*) AS n FROM clicks GROUP BY session_window(ts, '10 minutes'), user;
-- explode
SELECT id, explode(split(concat(user, ',', page), ',')) AS word FROM clicks;
-- lateral-view
SELECT word, count(*) FROM clicks LATERAL VIEW explode(array(user, page)) w AS word GROUP BY word;
-- stream-static
SELECT s.ss_quantity, i.i_item_id FROM sales s JOIN item i ON s.ss_item_sk = i.i_item_sk WHERE i.i_brand_id = 10;
-- stream-static-left
SELECT ss_item_sk, c.c_last_name FROM sales LEFT JOIN customer c ON ss_customer_sk = c.c_customer_sk;
-- static-right-stream
SELECT ss_item_sk, s_store_name FROM store RIGHT JOIN sales ON ss_store_sk = s_store_sk;
-- stream-static-semi
SELECT ss_item_sk FROM sales LEFT SEMI JOIN item ON ss_item_sk = i_item_sk AND i_category = 'Books';
-- stream-static-group
SELECT i_category, sum(ss_sales_price) AS revenue FROM sales, item, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk GROUP BY i_category;
-- stream-static-using
SELECT user, id, n FROM clicks JOIN (SELECT lower(c_first_name) AS user, c_customer_sk AS n FROM customer) USING (user);
-- stream-stream
SELECT c.id, i.ts FROM clicks c JOIN impressions i ON c.id = i.id;
-- stream-stream-range
SELECT c.id, i.id, c.user FROM events c JOIN views i ON c.user = i.user AND c.ts BETWEEN i.ts AND i.ts + INTERVAL 5 MINUTES;
-- stream-stream-aliases
SELECT e.user AS u, v.ts - e.ts AS early FROM events AS e INNER JOIN views AS v ON e.id = v.id AND e.user = v.user;
-- word-names
SELECT user.user, `value` AS value FROM clicks user WHERE user.value > 1;
-- odd-name
SELECT `odd one`.id, o.user FROM `odd one` JOIN (SELECT lower(c_first_name) AS user FROM customer) o ON o.user = `odd one`.user;
-- odd-name-as-text
SELECT id FROM `odd one` LIMIT ALL;
-- name-of-the-program
SELECT c.id FROM checkpoint c WHERE c.value > 1;
-- subquery-and-text
SELECT id FROM clicks WHERE user IN (SELECT lower(c_first_name) FROM customer) LIMIT ALL;
-- named-columns
SELECT v.who, v.n FROM (SELECT user, id FROM clicks WHERE value > 1) AS v (who, n);
-- named-columns-of-a-name
SELECT a, count(*) AS c FROM views AS v (a, b, t) GROUP BY a;
-- named-columns-with
WITH q (who, n) AS (SELECT user, count(*) FROM clicks GROUP BY user) SELECT q.who, n + 1 AS m FROM q WHERE n > 1;
-- named-columns-twice
SELECT x, y FROM (SELECT id, id FROM clicks) AS v (x, y);
-- named-columns-event-time
SELECT window(at, '10 minutes').start AS w, count(*) AS c FROM (SELECT ts, id FROM events) AS v (at, n) GROUP BY window(at, '10 minutes');
-- named-columns-join
SELECT v.n, w.n2 FROM (SELECT id, user FROM clicks) AS v (n, u) JOIN (SELECT id, user FROM impressions) AS w (n2, u) USING (u);
