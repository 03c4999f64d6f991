-- Joins.

-- inner
SELECT i_item_id, ss_quantity FROM store_sales JOIN item ON ss_item_sk = i_item_sk;
-- inner-word
SELECT i_item_id, ss_quantity FROM store_sales INNER JOIN item ON ss_item_sk = i_item_sk;
-- inner-qualified
SELECT item.i_item_id, store_sales.ss_quantity FROM store_sales JOIN item ON store_sales.ss_item_sk = item.i_item_sk;
-- inner-aliases
SELECT s.ss_quantity, i.i_item_id FROM store_sales s JOIN item i ON s.ss_item_sk = i.i_item_sk WHERE i.i_brand_id = 10;
-- left
SELECT s.ss_item_sk, i.i_item_id FROM store_sales s LEFT JOIN item i ON s.ss_item_sk = i.i_item_sk;
-- left-outer
SELECT s.ss_item_sk, i.i_item_id FROM store_sales s LEFT OUTER JOIN item i ON s.ss_item_sk = i.i_item_sk AND i.i_brand_id = 10;
-- right
SELECT s.ss_item_sk, i.i_item_id FROM store_sales s RIGHT JOIN item i ON s.ss_item_sk = i.i_item_sk;
-- right-outer
SELECT ss_item_sk, i_item_id FROM store_sales RIGHT OUTER JOIN item ON ss_item_sk = i_item_sk;
-- full
SELECT s.ss_item_sk, i.i_item_id FROM store_sales s FULL JOIN item i ON s.ss_item_sk = i.i_item_sk;
-- full-outer
SELECT s.ss_item_sk, i.i_item_id FROM store_sales s FULL OUTER JOIN item i ON s.ss_item_sk = i.i_item_sk;
-- cross
SELECT s_store_name, c_first_name FROM store CROSS JOIN customer;
-- cross-with-condition
SELECT s_store_name, c_first_name FROM store CROSS JOIN customer ON s_store_sk = c_customer_sk * 10;
-- inner-without-condition
SELECT count(*) FROM store JOIN customer;
-- comma
SELECT s_store_name, c_first_name FROM store, customer WHERE c_birth_year = 1980;
-- comma-three
SELECT d_year, i_category, ss_quantity FROM date_dim dt, store_sales, item WHERE dt.d_date_sk = store_sales.ss_sold_date_sk AND store_sales.ss_item_sk = item.i_item_sk;
-- comma-then-join
SELECT s.s_store_name, c.c_first_name, x.i_item_id FROM store s, customer c JOIN item x ON x.i_item_sk = s.s_store_sk - 99;
-- comma-then-right-join
SELECT s.s_store_name, c.c_first_name, x.i_item_id FROM store s, customer c RIGHT JOIN item x ON x.i_item_sk = c.c_customer_sk - 9;
-- comma-then-left-join
SELECT s.s_store_name, c.c_first_name, x.i_item_id FROM store s, customer c LEFT JOIN item x ON x.i_item_sk = c.c_customer_sk - 9;
-- join-then-comma
SELECT s.s_store_name, c.c_first_name, x.ss_item_sk FROM store s JOIN store_sales x ON x.ss_store_sk = s.s_store_sk, customer c WHERE c.c_customer_sk = x.ss_customer_sk;
-- comma-star
SELECT * FROM store, date_dim WHERE s_store_sk = 100 AND d_moy = 1;
-- left-semi
SELECT c_first_name FROM customer LEFT SEMI JOIN store_sales ON c_customer_sk = ss_customer_sk;
-- semi
SELECT * FROM customer SEMI JOIN store_sales ON c_customer_sk = ss_customer_sk;
-- left-anti
SELECT c_first_name FROM customer c LEFT ANTI JOIN store_sales s ON c.c_customer_sk = s.ss_customer_sk;
-- anti
SELECT c_first_name FROM customer ANTI JOIN store_sales ON c_customer_sk = ss_customer_sk;
-- using
SELECT id, c.user, i.ts FROM clicks c JOIN impressions i USING (id);
-- using-star
SELECT * FROM clicks JOIN impressions USING (id);
-- using-two
SELECT * FROM clicks c JOIN impressions i USING (id, user);
-- using-left
SELECT id, page, i.ts FROM clicks LEFT JOIN impressions i USING (id);
-- using-right
SELECT id, page, i.user FROM clicks c RIGHT JOIN impressions i USING (id);
-- using-full
SELECT id, c.id, i.id, page FROM clicks c FULL OUTER JOIN impressions i USING (id);
-- using-semi
SELECT * FROM clicks LEFT SEMI JOIN impressions USING (user);
-- using-group
SELECT user, count(*) FROM clicks JOIN impressions USING (user) GROUP BY user;
-- natural
SELECT * FROM clicks NATURAL JOIN impressions;
-- natural-left
SELECT id, page FROM clicks NATURAL LEFT JOIN impressions;
-- self
SELECT a.i_item_id, b.i_item_id FROM item a JOIN item b ON a.i_category = b.i_category AND a.i_item_sk < b.i_item_sk;
-- self-one-alias
SELECT item.i_item_id, b.i_item_id AS other FROM item JOIN item b ON item.i_brand_id = b.i_brand_id;
-- self-star
SELECT a.*, b.i_class FROM item a, item b WHERE a.i_item_sk = b.i_item_sk;
-- three
SELECT d.d_year, i.i_category, s.ss_quantity FROM store_sales s JOIN date_dim d ON s.ss_sold_date_sk = d.d_date_sk JOIN item i ON s.ss_item_sk = i.i_item_sk;
-- mixed
SELECT c.c_last_name, st.s_store_name, d.d_date FROM store_sales s LEFT JOIN customer c ON s.ss_customer_sk = c.c_customer_sk JOIN store st ON s.ss_store_sk = st.s_store_sk FULL JOIN date_dim d ON d.d_date_sk = s.ss_sold_date_sk;
-- null-safe
SELECT a.i_item_sk, b.i_item_sk FROM item a JOIN item b ON a.i_class <=> b.i_class;
-- non-equi
SELECT a.i_item_sk, b.s_store_sk FROM item a JOIN store b ON a.i_item_sk + 99 <= b.s_store_sk;
-- range-in-time
SELECT c.id, i.id FROM clicks c JOIN impressions i ON c.user = i.user AND c.ts BETWEEN i.ts AND i.ts + INTERVAL 5 MINUTES;
-- parenthesized
SELECT s.ss_quantity, i.i_item_id FROM store_sales s JOIN (item i JOIN customer c ON i.i_item_sk = c.c_customer_sk - 9) ON s.ss_item_sk = i.i_item_sk;
-- subquery-right
SELECT s.s_store_name, t.n FROM store s JOIN (SELECT ss_store_sk, count(*) AS n FROM store_sales GROUP BY ss_store_sk) t ON t.ss_store_sk = s.s_store_sk;
-- subquery-left
SELECT q.k, d.d_year FROM (SELECT DISTINCT ss_sold_date_sk AS k FROM store_sales) q LEFT JOIN date_dim d ON q.k = d.d_date_sk;
-- subquery-twice
SELECT a.n, b.n FROM (SELECT count(*) n FROM item) a, (SELECT count(*) n FROM store) b;
-- lateral-subquery
SELECT s.s_store_name, t.total FROM store s, LATERAL (SELECT sum(ss_quantity) AS total FROM store_sales WHERE ss_store_sk = s.s_store_sk) t;
-- lateral-join
SELECT i, e FROM numbers JOIN LATERAL explode(array(i, i * 10)) AS x(e) WHERE i < 3;
-- order-by-both-sides, ordered
SELECT s.ss_quantity, i.i_item_id FROM store_sales s JOIN item i ON s.ss_item_sk = i.i_item_sk ORDER BY i.i_item_id, s.ss_net_profit, s.ss_quantity;
-- order-by-hidden-of-right, ordered
SELECT s.ss_quantity FROM store_sales s JOIN item i ON s.ss_item_sk = i.i_item_sk ORDER BY i.i_item_id, s.ss_quantity;
-- coalesce-over-full
SELECT coalesce(c.id, i.id) AS id, nvl2(c.id, 'c', 'i') AS side FROM clicks c FULL JOIN impressions i ON c.id = i.id;
-- in-subquery-over-join
SELECT i.i_item_id FROM store_sales s JOIN item i ON s.ss_item_sk = i.i_item_sk WHERE s.ss_store_sk IN (SELECT s_store_sk FROM store WHERE s_state = 'CA');
-- condition-with-subquery
SELECT i.i_item_id FROM item i JOIN store s ON i.i_item_sk = s.s_store_sk - 99 AND s.s_store_sk IN (SELECT ss_store_sk FROM store_sales);
-- conditions-behind-both
SELECT a.id FROM clicks a JOIN clicks b JOIN clicks c ON a.id = b.id AND b.id = c.id;
-- comma-then-join-with-both
SELECT a.id FROM clicks a JOIN clicks b ON a.id = b.id, clicks c LEFT JOIN impressions i ON c.id = i.id AND a.id = i.id;
