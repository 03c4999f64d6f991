-- Aggregation.

-- count
SELECT count(*) FROM store_sales;
-- several-global
SELECT count(*), count(ss_quantity), sum(ss_quantity), avg(ss_net_profit), min(ss_sales_price), max(ss_sales_price) FROM store_sales;
-- global-of-empty
SELECT count(*), sum(i), max(s) FROM empty;
-- global-expression
SELECT count(*) + 1, sum(ss_quantity) / count(*) AS mean, max(ss_quantity) - min(ss_quantity), 'x', round(avg(ss_net_profit), 2) FROM store_sales;
-- global-constant
SELECT 1 FROM store_sales HAVING count(*) > 3;
-- by-key
SELECT ss_item_sk, count(*) FROM store_sales GROUP BY ss_item_sk;
-- by-key-alias
SELECT ss_item_sk AS item, count(*) AS n FROM store_sales GROUP BY ss_item_sk;
-- by-key-implicit-alias
SELECT ss_item_sk item, count(*) n FROM store_sales GROUP BY ss_item_sk;
-- by-key-unselected
SELECT count(*) AS n FROM store_sales GROUP BY ss_item_sk;
-- by-key-last
SELECT count(*), ss_item_sk FROM store_sales GROUP BY ss_item_sk;
-- by-key-only
SELECT ss_item_sk FROM store_sales GROUP BY ss_item_sk;
-- by-key-twice
SELECT ss_item_sk, ss_item_sk AS again, count(*) FROM store_sales GROUP BY ss_item_sk;
-- by-two
SELECT ss_item_sk, ss_store_sk, sum(ss_quantity) AS q FROM store_sales GROUP BY ss_item_sk, ss_store_sk;
-- by-two-swapped
SELECT ss_store_sk, ss_item_sk, sum(ss_quantity) AS q FROM store_sales GROUP BY ss_item_sk, ss_store_sk;
-- by-two-one-selected
SELECT ss_store_sk, sum(ss_quantity) AS q FROM store_sales GROUP BY ss_item_sk, ss_store_sk;
-- by-key-in-expression
SELECT ss_item_sk + 1, ss_item_sk * 10 + count(*) FROM store_sales GROUP BY ss_item_sk;
-- by-key-alias-and-expression
SELECT ss_item_sk AS x, ss_item_sk + 1 AS y, count(*) FROM store_sales GROUP BY ss_item_sk;
-- by-expression
SELECT ss_item_sk % 2, count(*) FROM store_sales GROUP BY ss_item_sk % 2;
-- by-expression-spaced
SELECT ss_item_sk%2 AS odd, count(*) FROM store_sales GROUP BY ss_item_sk % 2;
-- by-expression-used
SELECT ss_item_sk % 2 + 10, count(*) FROM store_sales GROUP BY ss_item_sk % 2;
-- by-case
SELECT CASE WHEN ss_quantity > 2 THEN 'many' ELSE 'few' END AS size, count(*) FROM store_sales GROUP BY CASE WHEN ss_quantity > 2 THEN 'many' ELSE 'few' END;
-- by-function
SELECT upper(i_category), lower(i_category), count(*) FROM item GROUP BY upper(i_category), lower(i_category);
-- by-cast
SELECT CAST(i_item_sk AS STRING), count(*) FROM item GROUP BY CAST(i_item_sk AS STRING);
-- by-qualified
SELECT i.i_category, count(*) FROM item i GROUP BY i.i_category;
-- by-qualified-and-bare
SELECT i.i_category, count(*) FROM item i GROUP BY i_category;
-- by-bare-and-qualified
SELECT i_category, count(*) FROM item i GROUP BY i.i_category;
-- by-other-case
SELECT I_CATEGORY, count(*) FROM item GROUP BY i_category;
-- by-ordinal
SELECT i_category, count(*) FROM item GROUP BY 1;
-- by-ordinals
SELECT i_category, i_brand_id, count(*) FROM item GROUP BY 1, 2;
-- by-ordinal-last
SELECT count(*), i_category FROM item GROUP BY 2;
-- by-ordinal-expression
SELECT i_item_sk % 2 AS odd, max(i_item_id) FROM item GROUP BY 1;
-- by-alias
SELECT i_item_sk % 2 AS odd, count(*) FROM item GROUP BY odd;
-- by-alias-implicit
SELECT i_item_sk % 2 odd, count(*) FROM item GROUP BY odd;
-- by-alias-interval
SELECT date_trunc('DAY', ts) + INTERVAL 1 DAY d, count(*) n FROM clicks GROUP BY d;
-- by-alias-like-a-column
SELECT lower(i_category) AS i_category, count(*) FROM item GROUP BY i_category;
-- by-alias-of-subquery
SELECT k % 2 AS odd, count(*) FROM (SELECT i_item_sk AS k FROM item) GROUP BY odd;
-- by-alias-of-subquery-shadowed
SELECT k % 2 AS k, count(*) FROM (SELECT i_item_sk AS k FROM item) GROUP BY k;
-- by-all
SELECT i_category, i_brand_id, count(*) FROM item GROUP BY ALL;
-- by-constant
SELECT 'x' AS c, count(*) FROM item GROUP BY 'x';
-- by-null
SELECT count(*) FROM item GROUP BY NULL;
-- names-in-groups
SELECT ss_item_sk, sum(ss_quantity), sum(DISTINCT ss_quantity), count(DISTINCT ss_quantity, ss_store_sk), max(ss_quantity + 1), avg(CAST(ss_quantity AS DOUBLE)), count(1), sum(1) FROM store_sales GROUP BY ss_item_sk;
-- names-of-functions-in-groups
SELECT i_category, upper(i_category), coalesce(i_category, '?'), CAST(i_category AS STRING), i_category IS NULL, i_category || '!', CASE WHEN i_category = 'x' THEN 1 END FROM item GROUP BY i_category;
-- names-of-operators-in-groups
SELECT -sum(i_item_sk), NOT max(i_item_sk) > 1, sum(i_item_sk) BETWEEN 1 AND 2, max(i_item_id) IN ('a', 'b'), sum(i_item_sk)::string, count(*) FILTER (WHERE i_item_sk > 2) FROM item;
-- names-of-casts-in-groups
SELECT CAST(max(i_item_sk) AS STRING), CAST(sum(i_item_sk) + 1 AS DOUBLE), i_brand_id::string, substr(i_brand_id, 1, 1), 1.5, 2L, DATE '2020-01-01', INTERVAL 1 DAY FROM item GROUP BY i_brand_id;
-- names-of-structs-in-groups
SELECT s.a, s.a + 1, max(s.b.c), struct(s.a), collect_list(id)[0] FROM nested WHERE id <> 4 GROUP BY s.a;
-- names-of-more-functions
SELECT any_value(1), bool_and(i_item_sk > 0), every(i_item_sk > 0), some(i_item_sk > 3), stddev(i_item_sk), var_pop(i_item_sk), corr(i_item_sk, i_brand_id), percentile(i_item_sk, 0.5), approx_count_distinct(i_item_sk), max_by(i_item_id, i_item_sk), count_if(i_brand_id = 10), mode(i_category), median(i_item_sk), date_format(max(current_date()), '') FROM item;
-- having
SELECT ss_item_sk, count(*) AS n FROM store_sales GROUP BY ss_item_sk HAVING count(*) > 1;
-- having-alias
SELECT ss_item_sk, count(*) AS n FROM store_sales GROUP BY ss_item_sk HAVING n > 1;
-- having-other-aggregate
SELECT ss_item_sk FROM store_sales GROUP BY ss_item_sk HAVING sum(ss_quantity) > 2 AND max(ss_net_profit) IS NOT NULL;
-- having-key
SELECT ss_item_sk, count(*) FROM store_sales GROUP BY ss_item_sk HAVING ss_item_sk > 1;
-- having-unselected-key
SELECT count(*) FROM store_sales GROUP BY ss_item_sk HAVING ss_item_sk > 1;
-- having-alias-shadows
SELECT ss_item_sk, sum(ss_quantity) AS ss_quantity FROM store_sales GROUP BY ss_item_sk HAVING sum(ss_quantity) > 2;
-- having-alias-shadows-key
SELECT ss_item_sk % 2 AS ss_item_sk, count(*) AS n FROM store_sales GROUP BY ss_item_sk % 2 HAVING ss_item_sk = 1;
-- having-global
SELECT sum(ss_quantity) FROM store_sales HAVING sum(ss_quantity) > 100;
-- having-without-group
SELECT count(*) AS n FROM store_sales HAVING n > 1;
-- having-subquery
SELECT ss_item_sk, count(*) AS n FROM store_sales GROUP BY ss_item_sk HAVING count(*) > (SELECT count(*) / 5 FROM store_sales);
-- order-by-aggregate, ordered
SELECT ss_item_sk, count(*) AS n FROM store_sales GROUP BY ss_item_sk ORDER BY count(*) DESC, ss_item_sk;
-- order-by-unselected-aggregate, ordered
SELECT ss_item_sk FROM store_sales GROUP BY ss_item_sk ORDER BY sum(ss_quantity) DESC NULLS LAST, ss_item_sk;
-- order-by-alias-of-aggregate, ordered
SELECT ss_item_sk, count(*) AS n FROM store_sales GROUP BY ss_item_sk ORDER BY n DESC, ss_item_sk LIMIT 3;
-- order-by-ordinal-of-aggregate, ordered
SELECT ss_item_sk, count(*) FROM store_sales GROUP BY ss_item_sk ORDER BY 2 DESC, 1;
-- order-by-ordinal-key-last, ordered
SELECT count(*), ss_item_sk FROM store_sales GROUP BY ss_item_sk ORDER BY 1 DESC, 2;
-- order-by-ordinal-key-hidden, ordered
SELECT sum(ss_quantity) AS q, max(ss_net_profit) FROM store_sales GROUP BY ss_item_sk ORDER BY 1 DESC, 2;
-- order-by-group-expression, ordered
SELECT ss_item_sk % 3 AS m, count(*) FROM store_sales GROUP BY ss_item_sk % 3 ORDER BY ss_item_sk % 3 DESC;
-- order-by-unselected-key, ordered
SELECT count(*) FROM store_sales GROUP BY ss_item_sk ORDER BY ss_item_sk;
-- order-by-key-expression, ordered
SELECT ss_item_sk, count(*) FROM store_sales GROUP BY ss_item_sk ORDER BY -ss_item_sk;
-- order-by-qualified-key, ordered
SELECT s.ss_item_sk, count(*) FROM store_sales s GROUP BY s.ss_item_sk ORDER BY s.ss_item_sk DESC;
-- order-by-qualified-key-aliased, ordered
SELECT s.ss_item_sk AS k, count(*) FROM store_sales s GROUP BY s.ss_item_sk ORDER BY s.ss_item_sk DESC;
-- having-key-order-aggregate, ordered
SELECT ss_item_sk FROM store_sales GROUP BY ss_item_sk HAVING ss_item_sk < 4 ORDER BY count(*), ss_item_sk;
-- distinct-of-groups
SELECT DISTINCT count(*) FROM store_sales GROUP BY ss_item_sk;
-- distinct-of-groups-order, ordered
SELECT DISTINCT count(*) AS n FROM store_sales GROUP BY ss_item_sk ORDER BY n DESC;
-- filter
SELECT count(*) FILTER (WHERE ss_quantity > 2) AS many, sum(ss_net_profit) FILTER (WHERE ss_store_sk = 100) FROM store_sales;
-- filter-by-key
SELECT ss_item_sk, count(ss_quantity) FILTER (WHERE ss_quantity > 1) n FROM store_sales GROUP BY ss_item_sk;
-- distinct-aggregates
SELECT count(DISTINCT ss_item_sk), sum(DISTINCT ss_quantity), count(DISTINCT ss_item_sk, ss_store_sk) AS pairs FROM store_sales;
-- distinct-aggregate-by-key
SELECT ss_store_sk, count(DISTINCT ss_item_sk) AS items, count(*) FROM store_sales GROUP BY ss_store_sk;
-- distinct-and-filter
SELECT count(DISTINCT ss_item_sk) FILTER (WHERE ss_quantity > 1) FROM store_sales;
-- collect
SELECT ss_store_sk, sort_array(collect_list(ss_item_sk)), sort_array(collect_set(ss_item_sk)) AS s, array_size(array_agg(ss_quantity)) FROM store_sales GROUP BY ss_store_sk;
-- within-group
SELECT i_brand_id, listagg(i_item_id, ',') WITHIN GROUP (ORDER BY i_item_id), percentile_cont(0.5) WITHIN GROUP (ORDER BY i_item_sk) AS mid FROM item GROUP BY i_brand_id;
-- lambda-over-aggregate
SELECT i_brand_id, transform(sort_array(collect_list(i_item_sk)), x -> x * 2) FROM item GROUP BY i_brand_id;
-- floats
SELECT sum(d), avg(d), min(d), max(d), sum(f) FROM numbers WHERE d < 10;
-- nan-keys
SELECT d, count(*) FROM numbers GROUP BY d;
-- null-keys
SELECT c_country, c_birth_year, count(*) FROM customer GROUP BY c_country, c_birth_year;
-- lateral-alias-over-aggregate
SELECT ss_item_sk AS k, sum(ss_quantity) AS q, q * 2 AS twice, k + 1 FROM store_sales GROUP BY ss_item_sk;
-- rollup
SELECT i_category, i_brand_id, count(*), grouping_id() FROM item GROUP BY ROLLUP (i_category, i_brand_id);
-- with-rollup
SELECT i_category, i_brand_id, count(*) FROM item GROUP BY i_category, i_brand_id WITH ROLLUP;
-- cube
SELECT i_category, i_brand_id, sum(i_item_sk), grouping(i_category) FROM item GROUP BY CUBE (i_category, i_brand_id);
-- with-cube
SELECT i_category, i_brand_id, count(*) FROM item GROUP BY i_category, i_brand_id WITH CUBE;
-- grouping-sets
SELECT i_category, i_brand_id, count(*) FROM item GROUP BY GROUPING SETS ((i_category), (i_brand_id), ());
-- grouping-sets-old
SELECT i_category, i_brand_id, count(*) FROM item GROUP BY i_category, i_brand_id GROUPING SETS ((i_category, i_brand_id), i_category);
-- grouping-sets-old-one
SELECT i_category, count(*) FROM item GROUP BY i_category GROUPING SETS ((i_category), ());
-- rollup-beside-key
SELECT i_category, i_brand_id, count(*) FROM item GROUP BY i_category, ROLLUP (i_brand_id);
-- rollup-having-order, ordered
SELECT i_category, count(*) AS n FROM item GROUP BY ROLLUP (i_category) HAVING count(*) > 0 ORDER BY grouping_id(), i_category;
-- time-window
SELECT window(ts, '30 minutes') AS w, count(*) AS n FROM clicks GROUP BY window(ts, '30 minutes');
-- time-window-fields
SELECT window.start, window.end, count(*) FROM clicks GROUP BY window(ts, '30 minutes');
-- time-window-whole
SELECT window, count(*) FROM clicks GROUP BY window(ts, '1 hour');
-- time-window-and-key
SELECT user, window.start AS start, sum(value) FROM clicks GROUP BY user, window(ts, '10 minutes');
-- time-window-sliding
SELECT window.start s, user, count(*) FROM clicks GROUP BY window(ts, '20 minutes', '10 minutes'), user;
-- time-window-shifted
SELECT window.start, count(*) FROM clicks GROUP BY window(ts, '1 hour', '1 hour', '15 minutes');
-- time-window-alias
SELECT window(ts, '1 hour') AS hour, count(*) FROM clicks GROUP BY hour;
-- time-window-unselected
SELECT count(*) FROM clicks GROUP BY window(ts, '30 minutes');
-- time-window-order, ordered
SELECT window.start, count(*) AS n FROM clicks GROUP BY window(ts, '30 minutes') ORDER BY window.start DESC;
-- time-window-order-hidden, ordered
SELECT count(*) AS n, max(id) FROM clicks GROUP BY window(ts, '30 minutes') ORDER BY window.start;
-- time-window-having
SELECT window.start, count(*) AS n FROM clicks GROUP BY window(ts, '30 minutes') HAVING count(*) > 1 AND window.start IS NOT NULL;
-- window-time
SELECT window_time(w), w.end, n FROM (SELECT window(ts, '30 minutes') AS w, count(*) AS n FROM clicks GROUP BY window(ts, '30 minutes'));
-- window-of-window
SELECT window(window_time(w), '1 hour').start, sum(n) FROM (SELECT window(ts, '30 minutes') AS w, count(*) AS n FROM clicks GROUP BY window(ts, '30 minutes')) GROUP BY window(window_time(w), '1 hour');
-- window-of-struct
SELECT count(*), sum(n) FROM (SELECT window AS w, count(*) AS n FROM clicks GROUP BY window(ts, '30 minutes')) GROUP BY window(w, '1 hour');
-- session-window
SELECT session_window.start, session_window.end, user, count(*) FROM clicks GROUP BY session_window(ts, '5 minutes'), user;
-- session-window-global
SELECT session_window(ts, '40 minutes') AS s, count(*) FROM clicks GROUP BY session_window(ts, '40 minutes');
-- session-window-dynamic
SELECT user, session_window.end, count(*) FROM clicks GROUP BY user, session_window(ts, CASE WHEN user = 'ann' THEN '1 hour' ELSE '5 minutes' END);
-- window-ungrouped
SELECT id, window(ts, '1 hour').start AS s FROM clicks;
-- window-over-groups-having
SELECT user, count(*) AS c, sum(count(*)) OVER () AS total FROM clicks GROUP BY user HAVING c > 1;
-- by-ordinal-in-parentheses
SELECT i_category, count(*) FROM item GROUP BY (1);
-- order-by-ordinal-in-parentheses, ordered
SELECT sum(ss_quantity), ss_item_sk FROM store_sales GROUP BY ss_item_sk ORDER BY (2) DESC;
-- by-alias-after-number
SELECT d_year + 1 year, count(*) FROM (SELECT d_year FROM date_dim) GROUP BY year;
-- within-group-distinct
SELECT string_agg(DISTINCT user, ',') WITHIN GROUP (ORDER BY user) FROM clicks;
-- within-group-over
SELECT id, percentile_cont(0.5) WITHIN GROUP (ORDER BY id) OVER (PARTITION BY user) FROM clicks;
