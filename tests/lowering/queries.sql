-- Sub-queries, CTEs, set operations, window functions, generators.

-- subquery
SELECT k FROM (SELECT i_item_sk AS k FROM item);
-- subquery-alias
SELECT q.k FROM (SELECT i_item_sk AS k FROM item) q WHERE q.k > 2;
-- subquery-alias-as
SELECT k + 1 AS k FROM (SELECT i_item_sk AS k FROM item) AS q WHERE k > 2;
-- subquery-nested
SELECT a FROM (SELECT a, b FROM (SELECT i_item_sk AS a, i_class AS b, i_brand_id AS c FROM item) x WHERE c IS NOT NULL) y WHERE b IS NOT NULL;
-- subquery-limit, ordered
SELECT k FROM (SELECT i_item_sk AS k FROM item ORDER BY k DESC LIMIT 3) ORDER BY k;
-- subquery-of-groups
SELECT max(n), min(n) FROM (SELECT count(*) AS n FROM store_sales GROUP BY ss_item_sk);
-- subquery-of-groups-where
SELECT n FROM (SELECT ss_item_sk, count(*) AS n FROM store_sales GROUP BY ss_item_sk) WHERE n > 1;
-- subquery-of-distinct
SELECT count(*) FROM (SELECT DISTINCT ss_item_sk FROM store_sales);
-- subquery-order-outer, ordered
SELECT s.k FROM (SELECT i_item_sk AS k, i_class FROM item) s ORDER BY s.i_class NULLS LAST, s.k;
-- subquery-in-parentheses
SELECT k FROM ((SELECT i_item_sk AS k FROM item)) WHERE k < 3;
-- subquery-shadows-table
SELECT item.x FROM (SELECT 1 AS x FROM store) item;
-- in
SELECT i_item_id FROM item WHERE i_item_sk IN (SELECT ss_item_sk FROM store_sales);
-- not-in
SELECT i_item_id FROM item WHERE i_item_sk NOT IN (SELECT ss_item_sk FROM store_sales WHERE ss_item_sk IS NOT NULL);
-- not-in-nulls
SELECT i_item_id FROM item WHERE i_item_sk NOT IN (SELECT ss_customer_sk FROM store_sales);
-- in-pair
SELECT id FROM clicks WHERE (id, user) IN (SELECT id, user FROM impressions);
-- exists
SELECT c_last_name FROM customer WHERE EXISTS (SELECT 1 FROM store_sales WHERE ss_customer_sk = c_customer_sk);
-- exists-qualified
SELECT c_last_name FROM customer WHERE EXISTS (SELECT * FROM store_sales s WHERE s.ss_customer_sk = customer.c_customer_sk AND s.ss_quantity > 2);
-- not-exists
SELECT c.c_last_name FROM customer c WHERE NOT EXISTS (SELECT 1 FROM store_sales s WHERE s.ss_customer_sk = c.c_customer_sk);
-- scalar
SELECT i_item_id FROM item WHERE i_current_price > (SELECT avg(i_current_price) FROM item);
-- scalar-selected
SELECT i_item_id, (SELECT max(ss_quantity) FROM store_sales) AS most FROM item;
-- scalar-selected-unnamed
SELECT i_item_id, (SELECT count(*) FROM store) FROM item;
-- scalar-correlated
SELECT i_item_id, (SELECT sum(ss_quantity) FROM store_sales s WHERE s.ss_item_sk = i.i_item_sk) AS sold FROM item i;
-- scalar-correlated-where
SELECT i.i_item_id FROM item i WHERE i.i_current_price >= (SELECT avg(j.i_current_price) FROM item j WHERE j.i_brand_id = i.i_brand_id);
-- scalar-in-group
SELECT i_category, count(*) + (SELECT count(*) FROM store) AS n FROM item GROUP BY i_category;
-- scalar-in-order, ordered
SELECT i_item_id FROM item ORDER BY i_item_sk * (SELECT -1), i_item_id;
-- subquery-with-window-function
SELECT i_item_id FROM item WHERE i_item_sk IN (SELECT max(i_item_sk) OVER (PARTITION BY i_category) FROM item);
-- exists-selected
SELECT c_customer_sk, EXISTS (SELECT 1 FROM store_sales WHERE ss_customer_sk = c_customer_sk) AS buys FROM customer;
-- cte
WITH books AS (SELECT * FROM item WHERE i_category = 'Books') SELECT i_item_id FROM books;
-- cte-two
WITH a AS (SELECT i_item_sk AS k FROM item), b AS (SELECT k * 2 AS k FROM a WHERE k > 1) SELECT a.k, b.k FROM a LEFT JOIN b ON a.k = b.k;
-- cte-twice
WITH t AS (SELECT ss_item_sk AS k, count(*) AS n FROM store_sales GROUP BY ss_item_sk) SELECT x.k, y.n FROM t x JOIN t y ON x.k = y.k WHERE x.n > 1;
-- cte-shadows-table
WITH item AS (SELECT i_item_id FROM item WHERE i_item_sk < 3) SELECT * FROM item;
-- cte-shadows-cte
WITH t AS (SELECT 1 AS x FROM store) SELECT * FROM (WITH t AS (SELECT 2 AS x FROM store) SELECT x FROM t) q, t;
-- cte-qualified
WITH t AS (SELECT i_item_sk AS k FROM item) SELECT t.k FROM t WHERE t.k > 3;
-- cte-order-qualified, ordered
WITH t AS (SELECT i_item_sk AS k, i_class AS c FROM item) SELECT k FROM t ORDER BY t.k DESC;
-- cte-order-hidden-qualified, ordered
WITH t AS (SELECT i_item_sk AS k, i_class AS c FROM item) SELECT k FROM t ORDER BY t.c NULLS LAST, t.k;
-- cte-columns
WITH t(k, c) AS (SELECT i_item_sk, i_class FROM item) SELECT k, c FROM t;
-- cte-other-case
WITH Books AS (SELECT * FROM item) SELECT BOOKS.i_item_id FROM bookS;
-- cte-in-expression
WITH t AS (SELECT max(i_item_sk) AS m FROM item) SELECT i_item_id FROM item WHERE i_item_sk = (SELECT m FROM t);
-- cte-in-subquery
SELECT * FROM (WITH t AS (SELECT i_item_sk AS k FROM item) SELECT k FROM t WHERE k > 2) q;
-- cte-unused
WITH unused AS (SELECT nope FROM VALUES (1) AS v(nope)), t AS (SELECT s_state FROM store) SELECT s_state FROM t;
-- cte-recursive
WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 4) SELECT x FROM n;
-- cte-named-like-python
WITH spark AS (SELECT 1 AS f FROM store), result AS (SELECT f FROM spark), class AS (SELECT f + 1 AS f FROM result) SELECT f FROM class;
-- cte-alias-grouped
WITH t AS (SELECT i_category AS c, i_item_sk AS k FROM item) SELECT upper(c) AS u, sum(k) FROM t GROUP BY u;
-- union-all
SELECT i_item_sk AS k FROM item UNION ALL SELECT s_store_sk FROM store;
-- union
SELECT ss_item_sk FROM store_sales UNION SELECT i_item_sk FROM item;
-- union-distinct
SELECT ss_item_sk FROM store_sales UNION DISTINCT SELECT i_item_sk FROM item;
-- union-types
SELECT i AS x, s FROM numbers UNION ALL SELECT l, 'l' FROM numbers UNION ALL SELECT d, NULL FROM numbers;
-- union-mixed
SELECT i_brand_id FROM item UNION SELECT i_brand_id FROM item UNION ALL SELECT 10 FROM store;
-- union-order-limit, ordered
SELECT i_item_sk AS k FROM item UNION ALL SELECT s_store_sk FROM store ORDER BY k DESC LIMIT 4;
-- union-order-ordinal, ordered
SELECT i_item_id, i_item_sk FROM item UNION ALL SELECT s_store_name, s_store_sk FROM store ORDER BY 2;
-- union-parentheses
(SELECT i_item_sk FROM item ORDER BY i_item_sk LIMIT 1) UNION ALL (SELECT s_store_sk FROM store ORDER BY 1 DESC LIMIT 1);
-- union-of-groups
SELECT i_category AS g, count(*) AS n FROM item GROUP BY i_category UNION ALL SELECT 'all', count(*) FROM item;
-- union-of-hidden-keys
SELECT count(*) AS n FROM item GROUP BY i_category UNION ALL SELECT count(*) FROM store GROUP BY s_state;
-- union-in-subquery
SELECT x, count(*) FROM (SELECT i_item_sk AS x FROM item UNION ALL SELECT ss_item_sk FROM store_sales) u GROUP BY x;
-- union-in-cte
WITH u AS (SELECT user FROM clicks UNION SELECT user FROM impressions) SELECT count(*) FROM u;
-- intersect
SELECT ss_item_sk FROM store_sales INTERSECT SELECT i_item_sk FROM item;
-- intersect-all
SELECT ss_item_sk FROM store_sales INTERSECT ALL SELECT ss_item_sk FROM store_sales WHERE ss_quantity > 1;
-- except
SELECT i_item_sk FROM item EXCEPT SELECT ss_item_sk FROM store_sales;
-- except-all
SELECT ss_item_sk FROM store_sales EXCEPT ALL SELECT i_item_sk FROM item;
-- minus
SELECT i_item_sk FROM item MINUS SELECT ss_item_sk FROM store_sales;
-- set-precedence
SELECT 1 AS x FROM store UNION SELECT 2 FROM store INTERSECT SELECT 2 FROM item;
-- row-number
SELECT i_item_id, row_number() OVER (PARTITION BY i_category ORDER BY i_item_sk) AS rn FROM item;
-- window-functions
SELECT i_item_sk, rank() OVER (ORDER BY i_brand_id NULLS LAST), dense_rank() OVER (ORDER BY i_brand_id), lag(i_item_id, 1, '-') OVER (ORDER BY i_item_sk), ntile(2) OVER (ORDER BY i_item_sk) FROM item;
-- window-sums
SELECT ss_item_sk, sum(ss_quantity) OVER (PARTITION BY ss_item_sk) AS total, count(*) OVER () AS n, avg(ss_quantity) OVER (ORDER BY ss_item_sk ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM store_sales;
-- window-frame
SELECT i_item_sk, sum(i_item_sk) OVER (ORDER BY i_item_sk ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s, max(i_item_sk) OVER (ORDER BY i_item_sk RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM item;
-- window-filter
SELECT i_item_sk, count(*) FILTER (WHERE i_brand_id = 10) OVER (ORDER BY i_item_sk) AS n FROM item;
-- window-ignore-nulls
SELECT i_item_sk, last_value(i_class) IGNORE NULLS OVER (ORDER BY i_item_sk) AS c, first(i_class) RESPECT NULLS OVER (ORDER BY i_item_sk DESC) FROM item;
-- window-named
SELECT i_item_sk, sum(i_item_sk) OVER w FROM item WINDOW w AS (PARTITION BY i_category);
-- window-over-groups
SELECT i_category, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS r FROM item GROUP BY i_category;
-- window-share-of-groups
SELECT i_category, sum(i_item_sk) AS s, sum(sum(i_item_sk)) OVER () AS total FROM item GROUP BY i_category;
-- window-in-expression
SELECT i_item_sk - lag(i_item_sk) OVER (ORDER BY i_item_sk) AS step, i_item_sk * 1.0 / sum(i_item_sk) OVER () FROM item;
-- window-order, ordered
SELECT i_item_id, row_number() OVER (ORDER BY i_item_id DESC) AS rn FROM item ORDER BY rn;
-- window-distinct
SELECT DISTINCT i_category, count(*) OVER (PARTITION BY i_category) AS n FROM item;
-- window-top
SELECT * FROM (SELECT i_item_id, i_category, row_number() OVER (PARTITION BY i_category ORDER BY i_item_sk DESC) AS rn FROM item) WHERE rn = 1;
-- qualify
SELECT i_item_id, i_category FROM item QUALIFY row_number() OVER (PARTITION BY i_category ORDER BY i_item_sk) = 1;
-- qualify-alias, ordered
SELECT i_item_id, row_number() OVER (PARTITION BY i_category ORDER BY i_item_sk) AS rn FROM item QUALIFY rn = 1 ORDER BY i_item_id;
-- explode
SELECT id, explode(xs) FROM nested;
-- explode-alias
SELECT id, explode(xs) AS x FROM nested;
-- explode-map
SELECT id, explode(m) AS (k, v) FROM nested;
-- posexplode
SELECT id, posexplode(xs) AS (p, x) FROM nested;
-- explode-outer
SELECT id, explode_outer(xs) x FROM nested;
-- inline
SELECT id, inline(ps) FROM nested;
-- stack
SELECT id, stack(2, 'a', id, 'b', id * 10) AS (name, val) FROM nested;
-- json-tuple
SELECT json_tuple('{"a": 1, "b": "x"}', 'a', 'b') FROM store;
-- lateral-view
SELECT id, x FROM nested LATERAL VIEW explode(xs) t AS x;
-- lateral-view-no-names
SELECT id, col FROM nested LATERAL VIEW explode(xs) t;
-- lateral-view-star
SELECT * FROM nested LATERAL VIEW explode(xs) t AS x;
-- lateral-view-outer
SELECT id, x FROM nested LATERAL VIEW OUTER explode(xs) t AS x;
-- lateral-view-two
SELECT id, x, k, v FROM nested LATERAL VIEW explode(xs) t AS x LATERAL VIEW explode(m) u AS k, v;
-- lateral-view-dependent
SELECT id, p.p, q FROM nested LATERAL VIEW explode(ps) t AS p LATERAL VIEW explode(array(p.q, p.q * 2)) u AS q;
-- lateral-view-posexplode
SELECT id, pos, x FROM nested LATERAL VIEW posexplode(xs) t AS pos, x;
-- lateral-view-outer-posexplode
SELECT id, pos, x FROM nested LATERAL VIEW OUTER posexplode(xs) t AS pos, x;
-- lateral-view-inline
SELECT id, p, q FROM nested LATERAL VIEW inline(ps) t AS p, q;
-- lateral-view-outer-inline
SELECT id, a, b FROM nested LATERAL VIEW OUTER inline(ps) t AS a, b;
-- lateral-view-stack
SELECT id, a, b FROM nested LATERAL VIEW stack(2, 1, 'x', 2, 'y') t AS a, b;
-- lateral-view-outer-stack
SELECT id, a FROM nested LATERAL VIEW OUTER stack(1, id) t AS a;
-- lateral-view-qualified
SELECT t.x, nested.id FROM nested LATERAL VIEW explode(xs) t AS x;
-- lateral-view-where-group
SELECT x % 2 AS odd, count(*) FROM nested LATERAL VIEW explode(xs) t AS x WHERE x > 0 GROUP BY x % 2;
-- lateral-view-order, ordered
SELECT id, x FROM nested n LATERAL VIEW explode(n.xs) t AS x ORDER BY x NULLS FIRST;
-- lateral-view-over-join
SELECT c.id, x FROM clicks c JOIN nested n ON c.id = n.id LATERAL VIEW explode(n.xs) t AS x;
-- lateral-view-hides-column
SELECT * FROM (SELECT id, xs FROM nested) LATERAL VIEW explode(xs) t AS id;
-- pivot
SELECT * FROM (SELECT i_category, i_brand_id, i_item_sk FROM item) PIVOT (sum(i_item_sk) FOR i_brand_id IN (10, 20));
-- unpivot
SELECT * FROM (SELECT i_item_id, i_item_sk, i_brand_id FROM item) UNPIVOT (val FOR name IN (i_item_sk, i_brand_id));
-- subquery-keeps-its-names-to-itself
SELECT item.i_item_id, k FROM (SELECT item.i_item_sk AS k, item.i_item_id AS x FROM item) JOIN item ON k = item.i_item_sk;
-- subquery-same-column-inside-and-out
SELECT item.i_item_id FROM (SELECT item.i_item_id FROM item) JOIN item ON item.i_item_sk = 1;
-- distinct-star-order, ordered
SELECT DISTINCT * FROM store ORDER BY s_store_sk DESC;
-- distinct-alias-order-qualified, ordered
SELECT DISTINCT i.i_item_sk FROM item i ORDER BY i.i_item_sk DESC;
-- aggregate-of-distinct-from
SELECT i_category, count_if(i_class IS DISTINCT FROM 'rock') FROM item GROUP BY i_category;
-- two-generators
SELECT explode(xs), explode(m) FROM nested;
