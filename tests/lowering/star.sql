-- Queries in the manner of TPC-DS.

-- q3, ordered
SELECT dt.d_year, item.i_brand_id brand_id, item.i_category brand, SUM(ss_sales_price) sum_agg
FROM date_dim dt, store_sales, item
WHERE dt.d_date_sk = store_sales.ss_sold_date_sk AND store_sales.ss_item_sk = item.i_item_sk AND dt.d_moy IN (1, 12)
GROUP BY dt.d_year, item.i_category, item.i_brand_id
ORDER BY dt.d_year, sum_agg DESC, brand_id
LIMIT 100;
-- q7, ordered
SELECT i_item_id, avg(ss_quantity) agg1, avg(ss_sales_price) agg2, avg(ss_net_profit) agg3
FROM store_sales, date_dim, item, store
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND (s_state = 'TX' OR d_year = 1998)
GROUP BY i_item_id ORDER BY i_item_id LIMIT 100;
-- q19
SELECT i_brand_id brand_id, i_class brand, sum(ss_sales_price) ext_price
FROM date_dim, store_sales, item, customer, store
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND ss_customer_sk = c_customer_sk AND ss_store_sk = s_store_sk
  AND substr(c_country, 1, 1) <> substr(s_state, 1, 1)
GROUP BY i_class, i_brand_id;
-- q34, ordered
SELECT c_last_name, c_first_name, cnt
FROM (SELECT ss_customer_sk, count(*) cnt FROM store_sales, store WHERE ss_store_sk = s_store_sk GROUP BY ss_customer_sk) dn, customer
WHERE ss_customer_sk = c_customer_sk AND cnt BETWEEN 1 AND 5
ORDER BY c_last_name, c_first_name DESC, cnt;
-- q36-rollup, ordered
SELECT sum(ss_net_profit) / sum(ss_sales_price) AS gross_margin, i_category, i_class, grouping(i_category) + grouping(i_class) AS lochierarchy
FROM store_sales JOIN item ON i_item_sk = ss_item_sk
GROUP BY ROLLUP (i_category, i_class) ORDER BY lochierarchy DESC, i_category, i_class LIMIT 100;
-- q42, ordered
SELECT dt.d_year, item.i_category, sum(ss_net_profit) FROM date_dim dt, store_sales, item
WHERE dt.d_date_sk = store_sales.ss_sold_date_sk AND store_sales.ss_item_sk = item.i_item_sk
GROUP BY dt.d_year, item.i_category ORDER BY sum(ss_net_profit) DESC, dt.d_year, item.i_category LIMIT 100;
-- q43
SELECT s_store_name, s_store_sk,
  sum(CASE WHEN (d_day_name = 'Thursday') THEN ss_sales_price ELSE null END) thu_sales,
  sum(CASE WHEN (d_day_name = 'Friday') THEN ss_sales_price ELSE null END) fri_sales
FROM date_dim, store_sales, store WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk GROUP BY s_store_name, s_store_sk;
-- q52, ordered
SELECT d.d_year, i.i_brand_id AS brand_id, sum(s.ss_sales_price) AS ext_price FROM date_dim d JOIN store_sales s ON d.d_date_sk = s.ss_sold_date_sk
JOIN item i ON s.ss_item_sk = i.i_item_sk WHERE i.i_brand_id IS NOT NULL GROUP BY d.d_year, i.i_brand_id ORDER BY d.d_year, ext_price DESC, brand_id;
-- q59-cte
WITH wss AS (SELECT d_year, ss_store_sk, sum(CASE WHEN d_moy = 1 THEN ss_sales_price END) jan, sum(CASE WHEN d_moy = 12 THEN ss_sales_price END) dec
  FROM store_sales, date_dim WHERE d_date_sk = ss_sold_date_sk GROUP BY d_year, ss_store_sk)
SELECT s_store_name, y.d_year, y.jan / z.jan AS ratio, coalesce(y.dec, 0) FROM wss y JOIN wss z ON y.ss_store_sk = z.ss_store_sk JOIN store ON s_store_sk = y.ss_store_sk;
-- q65
SELECT s_store_name, i_item_id, sc.revenue FROM store, item,
  (SELECT ss_store_sk, avg(revenue) AS ave FROM (SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue FROM store_sales GROUP BY ss_store_sk, ss_item_sk) sa GROUP BY ss_store_sk) sb,
  (SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue FROM store_sales GROUP BY ss_store_sk, ss_item_sk) sc
WHERE sb.ss_store_sk = sc.ss_store_sk AND sc.revenue <= 1.5 * sb.ave AND s_store_sk = sc.ss_store_sk AND i_item_sk = sc.ss_item_sk;
-- q67-window
SELECT * FROM (SELECT i_category, i_item_id, sumsales, rank() OVER (PARTITION BY i_category ORDER BY sumsales DESC) rk
  FROM (SELECT i_category, i_item_id, sum(coalesce(ss_sales_price * ss_quantity, 0)) sumsales FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY i_category, i_item_id) dw1) dw2
WHERE rk <= 2;
-- q68-left
SELECT c.c_last_name, coalesce(sum(s.ss_sales_price), 0.00) AS spent, count(s.ss_item_sk) AS n FROM customer c LEFT JOIN store_sales s ON s.ss_customer_sk = c.c_customer_sk GROUP BY c.c_last_name HAVING count(s.ss_item_sk) < 5;
-- q73-between
SELECT c_first_name, t.cnt FROM customer JOIN (SELECT ss_customer_sk AS k, count(*) AS cnt FROM store_sales WHERE ss_quantity BETWEEN 1 AND 6 GROUP BY 1) t ON t.k = c_customer_sk WHERE t.cnt >= 1;
-- q79
SELECT c_last_name, substr(s_store_name, 1, 3), amt FROM (SELECT ss_customer_sk, s_store_name, sum(ss_net_profit) amt FROM store_sales JOIN store ON ss_store_sk = s_store_sk GROUP BY ss_customer_sk, s_store_name) ms JOIN customer ON ms.ss_customer_sk = c_customer_sk;
-- q89-over-groups
SELECT i_category, d_moy, sum(ss_sales_price) sum_sales, avg(sum(ss_sales_price)) OVER (PARTITION BY i_category) avg_monthly
FROM item, store_sales, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk GROUP BY i_category, d_moy;
-- q98-share, ordered
SELECT i_item_id, i_category, sum(ss_sales_price) AS itemrevenue, sum(ss_sales_price) * 100 / sum(sum(ss_sales_price)) OVER (PARTITION BY i_class) AS revenueratio
FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY i_item_id, i_class, i_category ORDER BY i_category, i_item_id;
-- q1-correlated
WITH ctr AS (SELECT ss_customer_sk AS customer, ss_store_sk AS store, sum(ss_sales_price) AS total FROM store_sales GROUP BY ss_customer_sk, ss_store_sk)
SELECT c_first_name FROM ctr ctr1, customer WHERE ctr1.total > (SELECT avg(total) * 0.5 FROM ctr ctr2 WHERE ctr1.store = ctr2.store) AND ctr1.customer = c_customer_sk;
-- q38-intersect
SELECT count(*) FROM (SELECT DISTINCT ss_customer_sk FROM store_sales INTERSECT SELECT c_customer_sk FROM customer) hot;
-- q87-except
SELECT count(*) FROM ((SELECT DISTINCT ss_item_sk FROM store_sales) EXCEPT (SELECT i_item_sk FROM item)) cool;
-- q10-exists
SELECT c_country, count(*) cnt FROM customer c WHERE EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = 1998) GROUP BY c_country;
-- q32-scalar
SELECT sum(ss_sales_price) AS excess FROM store_sales, item WHERE i_item_sk = ss_item_sk AND ss_sales_price > (SELECT 0.3 * avg(ss_sales_price) FROM store_sales, date_dim WHERE ss_item_sk = i_item_sk AND d_date_sk = ss_sold_date_sk);
-- q45-or-in
SELECT s_state, sum(ss_quantity) FROM store_sales, store, item WHERE ss_store_sk = s_store_sk AND ss_item_sk = i_item_sk AND (s_state IN ('TX') OR i_item_id IN (SELECT i_item_id FROM item WHERE i_item_sk IN (1, 3))) GROUP BY s_state;
