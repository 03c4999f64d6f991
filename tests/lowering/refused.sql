-- Queries that Spark refuses: the lowered program must not make sense of them either.

-- no-such-column
SELECT nope FROM item;
-- no-such-table
SELECT * FROM nowhere;
-- no-such-function
SELECT nofunc(i_item_sk) FROM item;
-- ungrouped-column
SELECT i_category, i_class, count(*) FROM item GROUP BY i_category;
-- column-beside-aggregate
SELECT i_category, count(*) FROM item;
-- ambiguous
SELECT id FROM clicks c JOIN impressions i ON c.id = i.id;
-- ambiguous-in-where
SELECT c.id FROM clicks c, impressions i WHERE ts > '2024-01-01';
-- aggregate-in-where
SELECT i_category FROM item WHERE count(*) > 1;
-- column-not-given-out-where
SELECT k FROM (SELECT i_item_sk AS k FROM item) WHERE i_class = 'rock';
-- column-not-given-out-order
SELECT k FROM (SELECT i_item_sk AS k FROM item) ORDER BY i_class;
-- column-not-given-out-cte
WITH t AS (SELECT i_item_sk AS k FROM item) SELECT k FROM t WHERE i_class = 'rock';
-- column-not-given-out-cte-order
WITH t AS (SELECT i_item_sk AS k FROM item) SELECT k FROM t ORDER BY i_class;
-- aggregate-through-subquery
SELECT n FROM (SELECT i_category, count(*) AS n FROM item GROUP BY i_category) WHERE sum(i_item_sk) > 1;
-- aggregate-order-through-subquery
SELECT n FROM (SELECT i_category, count(*) AS n FROM item GROUP BY i_category) ORDER BY sum(i_item_sk);
-- qualifier-not-there
SELECT x.i_item_id FROM item;
-- qualifier-hidden-by-alias
SELECT item.i_item_id FROM item x;
-- qualifier-hidden-by-subquery
SELECT item.k FROM (SELECT i_item_sk AS k FROM item);
-- qualifier-hidden-by-cte
WITH t AS (SELECT i_item_sk AS k FROM item) SELECT item.k FROM t;
-- distinct-order-hidden
SELECT DISTINCT i_category FROM item ORDER BY i_item_sk;
-- group-ordinal-out-of-range
SELECT i_category, count(*) FROM item GROUP BY 3;
-- group-ordinal-of-aggregate
SELECT count(*), i_category FROM item GROUP BY 1;
-- group-ordinal-of-star
SELECT *, count(*) FROM store GROUP BY 1, 2, 3;
-- star-grouped
SELECT * FROM store GROUP BY 1;
-- order-ordinal-out-of-range
SELECT i_category FROM item ORDER BY 2;
-- order-ordinal-of-hidden-key
SELECT count(*) FROM item GROUP BY i_category ORDER BY 2;
-- order-by-ungrouped
SELECT i_category, count(*) FROM item GROUP BY i_category ORDER BY i_item_sk;
-- union-column-count
SELECT i_item_sk FROM item UNION ALL SELECT s_store_sk, s_state FROM store;
-- union-types
SELECT xs FROM nested UNION ALL SELECT id FROM nested;
-- using-missing
SELECT * FROM clicks JOIN item USING (id);
-- full-without-condition
SELECT count(*) FROM clicks FULL JOIN impressions ON;
-- semi-right-column
SELECT i.ts FROM clicks c LEFT SEMI JOIN impressions i ON c.id = i.id;
-- nested-aggregate
SELECT sum(count(*)) FROM item;
-- wrong-types
SELECT map('a', 1) + 1 FROM item;
-- wrong-argument-count
SELECT substring() FROM item;
-- not-a-boolean
SELECT i_item_id FROM item WHERE i_item_id + 1;
-- subquery-two-columns
SELECT i_item_id FROM item WHERE i_item_sk = (SELECT s_store_sk, s_state FROM store);
-- subquery-two-rows
SELECT i_item_id FROM item WHERE i_item_sk = (SELECT s_store_sk FROM store);
-- divide-by-zero
SELECT i_item_sk / (i_item_sk - i_item_sk) FROM item;
-- cast-invalid
SELECT CAST(i_item_id AS INT) FROM item;
-- array-index
SELECT array(1, 2)[i_item_sk + 5] FROM item;
-- overflow
SELECT l + 1 FROM numbers;
-- negative-limit
SELECT i_item_id FROM item LIMIT -1;
-- text-limit
SELECT i_item_id FROM item LIMIT 'x';
-- huge-limit
SELECT i_item_id FROM item LIMIT 99999999999;
-- other-digits
SELECT i_item_id FROM item LIMIT ²;
-- trailing-comma-where
SELECT i_item_id FROM item WHERE i_item_sk >;
-- no-items
SELECT FROM item;
-- having-ungrouped
SELECT i_category, count(*) FROM item GROUP BY i_category HAVING i_item_sk > 1;
-- lateral-view-not-a-generator
SELECT x FROM nested LATERAL VIEW upper('a') t AS x;
-- lateral-view-name-count
SELECT a FROM nested LATERAL VIEW explode(xs) t AS a, b;
-- window-function-in-where
SELECT i_item_id FROM item WHERE row_number() OVER (ORDER BY i_item_sk) = 1;
-- ambiguous-self-join
SELECT i_item_id FROM item a JOIN item b ON a.i_item_sk = b.i_item_sk;
-- correlated-too-far
SELECT i_item_id FROM item WHERE i_item_sk IN (SELECT s_store_sk FROM store WHERE s_state = c_country);
-- where-null-literal
SELECT * FROM item WHERE NULL;
-- having-no-aggregate
SELECT ss_item_sk FROM store_sales HAVING ss_item_sk > 2;
-- having-order-aggregate
SELECT ss_item_sk FROM store_sales GROUP BY ss_item_sk HAVING count(*) > 1 ORDER BY sum(ss_quantity), ss_item_sk;
-- window-time-of-group
SELECT window_time(window), count(*) FROM clicks GROUP BY window(ts, '30 minutes');
-- qualifier-of-inner-table
SELECT item.i_class FROM (SELECT i_class FROM item);
-- qualifier-of-inner-table-where
SELECT i_class FROM (SELECT i_class FROM item) WHERE item.i_class = 'x';
-- qualifier-of-inner-table-cte
WITH t AS (SELECT * FROM item) SELECT item.i_class FROM t;
-- several-billion-rows
SELECT i_item_id FROM item LIMIT 11111111111111111111111111111111111;
-- alias-in-parentheses
SELECT i_item_sk AS (x) FROM item;
-- ambiguous-alias-order
SELECT i_item_sk a, i_brand_id a FROM item ORDER BY a;
