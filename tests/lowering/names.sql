-- Quoted names, words of the grammar as names, nested values.

-- quoted-columns
SELECT `an id`, `select`, `a.b` FROM `odd names`;
-- quoted-table-alone
SELECT * FROM `odd names`;
-- quoted-table-qualifier
SELECT `odd names`.`an id` FROM `odd names` WHERE `odd names`.`select` <> 'one';
-- quoted-alias
SELECT `an id` AS `x y`, `select` `from`, `a.b` AS `back``tick` FROM `odd names`;
-- quoted-table-alias
SELECT `t u`.`an id` FROM `odd names` `t u`;
-- quoted-order, ordered
SELECT `an id`, `select` FROM `odd names` ORDER BY `an id` DESC, `select`;
-- quoted-group
SELECT `an id`, count(*), sum(`a.b`) FROM `odd names` GROUP BY `an id`;
-- quoted-group-alias
SELECT `an id` + 1 AS `an other`, max(`select`) AS `max` FROM `odd names` GROUP BY `an other`;
-- quoted-plain-names
SELECT `item`.`i_item_id` FROM `item` WHERE `i_item_sk` = 1;
-- quoted-join
SELECT a.`an id`, b.`select` FROM `odd names` a JOIN `odd names` b ON a.`an id` = b.`an id`;
-- quoted-using
SELECT `an id`, l.`select`, r.`select` FROM `odd names` l JOIN `odd names` r USING (`an id`);
-- quoted-cte
WITH `my rows` AS (SELECT `an id` FROM `odd names`) SELECT `my rows`.`an id` FROM `my rows`;
-- dotted-table
SELECT global_temp.everywhere.x FROM global_temp.everywhere;
-- dotted-table-quoted
SELECT everywhere.x FROM `global_temp`.`everywhere`;
-- word-columns
SELECT offset, value, timestamp, date, key, end, first, window FROM words;
-- word-left
SELECT left, left(left, 2), right(left, 1) FROM words;
-- word-left-quoted
SELECT `left`, left(`left`, 2) AS l FROM words WHERE `left` = 'abc';
-- word-offset-expression
SELECT offset + 1, -offset, value + offset FROM words;
-- word-offset-where
SELECT value FROM words WHERE offset > 1;
-- word-offset-second
SELECT value FROM words WHERE value > 5 AND offset > 1;
-- word-offset-equals
SELECT value FROM words WHERE value > 5 AND offset = 2;
-- word-offset-order, ordered
SELECT value, offset FROM words ORDER BY offset DESC, value NULLS LAST LIMIT 2;
-- word-offset-order-second, ordered
SELECT value, offset FROM words ORDER BY value, offset OFFSET 1;
-- word-group
SELECT offset, max(value) FROM words GROUP BY offset;
-- word-group-several
SELECT key, offset, count(value) AS count FROM words GROUP BY key, offset;
-- word-window
SELECT window, count(*) FROM words GROUP BY window;
-- word-window-alias
SELECT w.window AS window, w.end AS end, w.first FROM words w;
-- word-end
SELECT CASE WHEN end > 100 THEN end ELSE offset END, end e FROM words WHERE end = 200;
-- word-end-alias
SELECT CASE WHEN end > 100 THEN 1 END end, offset timestamp FROM words;
-- word-timestamp
SELECT timestamp, timestamp + INTERVAL 1 HOUR, date + 1, timestamp '2020-01-01 00:00:00' FROM words WHERE timestamp > '2024-03-01';
-- word-date-function
SELECT date(timestamp), date, year(date) year, first(value) OVER (ORDER BY offset, value) FROM words;
-- word-value-aggregate
SELECT sum(value) AS value, first FROM words GROUP BY first;
-- word-qualified
SELECT words.offset, words.end, words.timestamp FROM words WHERE words.offset = 1;
-- word-key
SELECT key key, value value, count(*) count FROM words GROUP BY key, value;
-- word-as-table-alias
SELECT value.offset FROM words value WHERE value.value > 1;
-- function-names-as-columns
SELECT count, sum, max FROM (SELECT id AS count, value AS sum, user AS max FROM clicks);
-- column-named-aggregate-in-expression
SELECT count + 1 FROM (SELECT id AS count FROM clicks) WHERE count > 2;
-- struct-field
SELECT s.a, s.b.c, s.b.d + 1, nested.s.a FROM nested;
-- struct-star
SELECT s.*, id FROM nested;
-- struct-field-where
SELECT id FROM nested WHERE s.b.c = 'deep' OR s.a = 2;
-- struct-field-order, ordered
SELECT id FROM nested ORDER BY s.b.d NULLS LAST, s.a, id;
-- struct-field-group
SELECT s.a, count(*) FROM nested GROUP BY s.a;
-- struct-field-group-alias
SELECT s.b.c AS c, count(*) FROM nested GROUP BY s.b.c;
-- struct-build
SELECT struct(id, s.a AS a), named_struct('k', id, 'v', xs), (id, 'x') FROM nested;
-- struct-table-alias
SELECT n.s.b.c, n.s FROM nested n;
-- array-elements
SELECT xs[0], element_at(xs, -1), size(xs), array_contains(xs, 3), ps[0].p, ps.q FROM nested WHERE id < 3;
-- map-elements
SELECT m['x'], map_keys(m), map_values(m), m.y, cardinality(m) FROM nested;
-- array-of-struct
SELECT ps.p, ps.q[0] AS first_q FROM nested WHERE size(ps) > 0;
-- lambda
SELECT transform(xs, x -> x + 1), filter(xs, x -> x > 1), exists(xs, x -> x IS NULL), forall(xs, x -> x > 0) FROM nested;
-- lambda-two
SELECT aggregate(xs, 0, (acc, x) -> acc + coalesce(x, 0), acc -> acc * 10), zip_with(xs, xs, (a, b) -> a * b) FROM nested;
-- lambda-map
SELECT transform_values(m, (k, v) -> concat(k, v)), map_filter(m, (k, v) -> v > 10) AS big FROM nested;
-- lambda-reduce
SELECT reduce(xs, 0, (a, x) -> a + ifnull(x, 0)) total, array_sort(m, (l, r) -> r - l) FROM (SELECT xs, array(id, 3, 2) AS m FROM nested);
-- lambda-shadows-column
SELECT transform(xs, id -> id * 2), id FROM nested;
