-- The script only defines a stream; the test adds the live table that it looks at.
TEST 'orders are summed by item' BEGIN
  CREATE LIVE TABLE sums AS
  SELECT item, count(*) AS orders, sum(price) AS total FROM orders GROUP BY item;
  GIVEN orders (item, price) VALUES ('tea', 1.1), ('tea', 2.2), ('cake', 3);
  EXPECT sums VALUES ('tea', 2, 3.3), ('cake', 1, 3);
END TEST;
