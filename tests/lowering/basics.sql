-- Projections, filters, aliases, sorting, limits.

-- star
SELECT * FROM item;
-- star-case
sElEcT * fRoM ITEM;
-- columns
SELECT i_item_id, i_category FROM item;
-- column-case-of-name
SELECT I_Item_Id, i_CATEGORY FROM item;
-- qualified
SELECT item.i_item_id, item.i_class FROM item;
-- table-alias
SELECT x.i_item_id FROM item x;
-- table-alias-as
SELECT x.i_item_id FROM item AS x;
-- qualified-star
SELECT x.* FROM item x;
-- star-and-more
SELECT *, i_item_sk + 1 AS next, 'x' FROM item;
-- star-except
SELECT * EXCEPT (i_class, i_brand_id) FROM item;
-- qualified-star-except
SELECT x.* EXCEPT (i_class) FROM item x;
-- automatic-names
SELECT i_item_sk + 1, -i_item_sk, i_item_sk * 2 + 1, NOT i_item_sk > 2, i_item_id || '-' FROM item;
-- automatic-names-functions
SELECT upper(i_item_id), coalesce(i_class, i_category, '?'), substring(i_item_id, 1, 2), nvl(i_class, 'none') FROM item;
-- automatic-names-cast
SELECT CAST(i AS STRING), CAST(i + 1 AS BIGINT), i::double, TRY_CAST(s AS INT), s FROM numbers;
-- automatic-names-literals
SELECT 1, 1.5, 'it\'s', true, NULL, 2L, 1e3, DATE '2020-01-01', X'1F' FROM store;
-- automatic-names-predicates
SELECT i IN (1, 2), i BETWEEN 1 AND 2, s LIKE 'o%', i IS NULL, i <=> NULL, b AND i > 1 OR NOT b FROM numbers;
-- automatic-names-case
SELECT CASE WHEN i > 1 THEN 'big' ELSE 'small' END, CASE i WHEN 1 THEN 'a' END, if(b, 1, 2) FROM numbers;
-- aliases-explicit
SELECT i_item_id AS id, i_brand_id AS `brand id` FROM item;
-- aliases-implicit
SELECT i_item_id id, i_brand_id + 1 brand, upper(i_class) c, 'lit' l, 1 one, i_item_sk `the key` FROM item;
-- aliases-implicit-after-end
SELECT CASE WHEN i > 1 THEN s END label, i IS NULL missing, NULL nothing, b = true yes FROM numbers;
-- aliases-implicit-keyword
SELECT i_item_sk key, i_item_id value, i_class date, i_category year, i_brand_id window FROM item;
-- aliases-on-typed-literals
SELECT DATE '2020-01-01' d, TIMESTAMP '2020-01-01 00:00:00' t, INTERVAL 1 DAY i, INTERVAL '2' HOUR h FROM store;
-- aliases-shared-name
SELECT i_item_id AS x, i_class AS x FROM item;
-- alias-lateral
SELECT i_item_sk AS a, a + 1 AS b, b * 2 AS c FROM item;
-- where
SELECT i_item_id FROM item WHERE i_category = 'Books' AND i_brand_id >= 10;
-- where-null
SELECT i_item_id FROM item WHERE i_class IS NULL OR i_category IS NOT NULL;
-- where-in-like-between
SELECT i_item_id FROM item WHERE i_item_sk IN (1, 3, 5) AND i_item_id LIKE '%C%' OR i_item_sk BETWEEN 4 AND 5;
-- where-like-any
SELECT i_item_id LIKE ANY ('A%', 'C%') AS hit FROM item WHERE i_item_id LIKE SOME ('A%', 'B%', 'C%');
-- where-like-all
SELECT i_item_id FROM item WHERE i_item_id NOT LIKE ALL ('A%', '%B');
-- where-like-any-selected
SELECT i_item_id, i_item_id LIKE ANY ('A%', 'C%') FROM item;
-- where-rlike-ilike
SELECT i_item_id FROM item WHERE i_item_id RLIKE '^[A-C]+$' AND i_category ILIKE 'b%';
-- where-distinct-from
SELECT i_item_id FROM item WHERE i_category IS DISTINCT FROM i_class AND i_category IS NOT DISTINCT FROM 'Music';
-- where-false
SELECT * FROM item WHERE false;
-- where-null-boolean
SELECT * FROM item WHERE CAST(NULL AS BOOLEAN);
-- where-unselected
SELECT i_item_id FROM item WHERE i_brand_id = 20;
-- where-string-with-keywords
SELECT i_item_id FROM item WHERE i_class <> 'FROM x WHERE y GROUP BY z; -- /* no */' ;
-- empty-table
SELECT s, i + 1 FROM empty;
-- nan-and-infinity
SELECT d, -d, d = d, d > 1e300D, f + 0.0F FROM numbers;
-- decimals
SELECT n * 3, n / 7, n + 0.001, n % 2, round(n, 1), CAST(n AS DECIMAL(4,1)) FROM numbers;
-- integers
SELECT i DIV 2, i % 2, i / 2, l - 1, abs(i), i & 3, i | 4, ~i, i ^ 1 FROM numbers;
-- binary-and-text
SELECT hex(bin), length(s), reverse(s), concat(s, '|', s), s || NULL FROM numbers;
-- string-escapes
SELECT 'it\'s', 'a\\b', "dq 'x'", 'a\tb', r'raw\n', 'ad' 'jacent', '100%\_', '\u00e9' FROM store;
-- date-arithmetic
SELECT day + 1, day - INTERVAL 1 MONTH, date_add(day, 30), datediff(day, DATE '2000-01-01'), year(day) FROM numbers WHERE i < 3;
-- timestamp-arithmetic
SELECT ts + INTERVAL 10 MINUTES, ts - INTERVAL '1' HOUR, ts + INTERVAL '1 02:03:04' DAY TO SECOND d FROM clicks;
-- interval-alias
SELECT ts + INTERVAL 1 DAY tomorrow, ts - INTERVAL 1 DAY - INTERVAL 2 HOURS AS earlier FROM clicks;
-- timestamp-difference
SELECT ts - TIMESTAMP '2024-01-01 10:00:00', unix_timestamp(ts), date_trunc('HOUR', ts), extract(MINUTE FROM ts) FROM clicks;
-- extract-and-trim
SELECT extract(YEAR FROM day), trim(BOTH 'o' FROM s), position('n' IN s), overlay(s PLACING 'X' FROM 1 FOR 2) FROM numbers;
-- left-right-functions
SELECT left(i_item_id, 2), right(i_item_id, 1) AS r FROM item WHERE left(i_class, 1) = 'f' OR right(i_class, 1) = 'l';
-- order-by, ordered
SELECT i_item_id, i_category FROM item ORDER BY i_item_id;
-- order-by-desc, ordered
SELECT i_item_id FROM item ORDER BY i_item_id DESC;
-- order-by-nulls, ordered
SELECT i_item_sk, i_class FROM item ORDER BY i_class NULLS LAST, i_item_sk DESC NULLS FIRST;
-- order-by-desc-nulls-first, ordered
SELECT i_item_sk, i_class FROM item ORDER BY i_class DESC NULLS FIRST;
-- order-by-default-nulls, ordered
SELECT i_item_sk, i_class, i_category FROM item ORDER BY i_category ASC, i_class DESC;
-- order-by-ordinal, ordered
SELECT i_category, i_item_id FROM item ORDER BY 1, 2 DESC;
-- order-by-ordinal-desc-nulls, ordered
SELECT i_class, i_item_id FROM item ORDER BY 1 DESC NULLS LAST, 2;
-- order-by-alias, ordered
SELECT -i_item_sk AS minus FROM item ORDER BY minus;
-- order-by-expression, ordered
SELECT i_item_id FROM item ORDER BY i_item_sk % 2, i_item_sk;
-- order-by-hidden, ordered
SELECT i_item_id FROM item ORDER BY i_item_sk DESC;
-- order-by-hidden-qualified, ordered
SELECT x.i_item_id FROM item x ORDER BY x.i_item_sk DESC;
-- order-by-qualified-only, ordered
SELECT i_item_id FROM item ORDER BY item.i_item_sk DESC;
-- order-by-swapped-aliases, ordered
SELECT i_item_sk AS i_brand_id, i_brand_id AS i_item_sk FROM item ORDER BY i_item_sk NULLS LAST, i_brand_id;
-- order-by-case, ordered
SELECT i_item_id FROM item ORDER BY CASE WHEN i_category = 'Music' THEN 0 ELSE 1 END, i_item_id;
-- order-by-floats, ordered
SELECT d FROM numbers ORDER BY d;
-- order-by-all, ordered
SELECT i_category, i_item_id FROM item ORDER BY ALL;
-- order-by-constant, ordered
SELECT i_item_id FROM item ORDER BY 'x', i_item_id;
-- limit
SELECT i_item_id FROM item ORDER BY i_item_id LIMIT 2;
-- limit-zero
SELECT i_item_id FROM item LIMIT 0;
-- limit-all
SELECT i_item_id FROM item LIMIT ALL;
-- limit-expression
SELECT i_item_id FROM item ORDER BY i_item_id LIMIT 1 + 1;
-- limit-more-than-there-are
SELECT i_item_id FROM item LIMIT 1000;
-- offset, ordered
SELECT i_item_id FROM item ORDER BY i_item_id OFFSET 3;
-- limit-offset, ordered
SELECT i_item_id FROM item ORDER BY i_item_id LIMIT 2 OFFSET 1;
-- distinct
SELECT DISTINCT i_category FROM item;
-- distinct-several
SELECT DISTINCT ss_item_sk, ss_quantity FROM store_sales;
-- distinct-star
SELECT DISTINCT * FROM store_sales;
-- distinct-order, ordered
SELECT DISTINCT i_category FROM item ORDER BY i_category DESC;
-- distinct-order-expression, ordered
SELECT DISTINCT i_category, i_brand_id FROM item ORDER BY upper(i_category), i_brand_id;
-- distinct-order-limit, ordered
SELECT DISTINCT ss_item_sk FROM store_sales ORDER BY 1 LIMIT 3;
-- distinct-expression
SELECT DISTINCT upper(i_category) AS c, i_brand_id IS NULL FROM item;
-- select-all-word
SELECT ALL i_item_id FROM item;
-- comments
SELECT /* one */ i_item_id, -- two
  i_class /* /* nested */ ; */ AS c
FROM item -- 'no string
WHERE i_item_sk -- inside
  > /* ! */ 1;
-- comment-at-end
SELECT i_item_id FROM item WHERE i_item_sk = 1 -- the last word;
;
-- odd-spacing
SELECT	i_item_id,i_class	c
 ,
i_item_sk+1 n
FROM


   item   WHERE(i_item_sk>1)AND(i_item_sk<5)ORDER	BY(i_item_id)LIMIT 2;
-- no-spaces-round-strings
SELECT'x'AS a,"y"b,i_item_id||'z'c FROM item WHERE'x'='x';
-- hint
SELECT /*+ COALESCE(1) */ i_item_id FROM item;
-- hint-join
SELECT /*+ BROADCAST(i) */ ss_quantity, i.i_item_id FROM store_sales JOIN item i ON ss_item_sk = i.i_item_sk;
-- no-from
SELECT 1 AS a, 'x' AS b;
-- no-from-bare
SELECT 1 + 1;
-- values
VALUES (1, 'a'), (2, 'b');
-- values-as-table
SELECT a, b FROM VALUES (1, 'a'), (2, NULL) AS v(a, b) WHERE a > 1;
-- table-statement
TABLE store;
-- from-first
FROM store SELECT s_store_name WHERE s_state = 'CA';
-- range
SELECT id * 2 AS twice FROM range(5);
-- tablesample-all
SELECT count(*) FROM item TABLESAMPLE (100 PERCENT);
-- pipe
FROM store |> WHERE s_state = 'CA' |> SELECT s_store_name;
-- pipe-aggregate
FROM item |> AGGREGATE count(*) AS n GROUP BY i_category |> WHERE n > 1;
-- pipe-after-select
SELECT * FROM store |> EXTEND length(s_store_name) AS len |> ORDER BY s_store_sk |> LIMIT 2;
-- parentheses
(SELECT i_item_id FROM item);
-- parentheses-order, ordered
(SELECT i_item_id FROM item ORDER BY i_item_id DESC LIMIT 3) ORDER BY i_item_id;
-- parentheses-order-hidden, ordered
(SELECT i_item_id FROM item) ORDER BY i_item_sk;
-- watermark-on-a-table
SELECT user, count(*) AS n FROM clicks WATERMARK ts DELAY OF INTERVAL 10 MINUTES GROUP BY user;
