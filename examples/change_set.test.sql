-- The tests run the script as it ends: what the set changes is in use.
TEST 'cancelled orders do not count' BEGIN
  GIVEN orders VALUES ('Ines', 30, 'paid'), ('Tom', 55, 'cancelled'), ('Ines', 1, 'paid');
  EXPECT spent (customer, amount, orders) VALUES ('Ines', 31, 2);
  EXPECT best VALUES ('Ines', 31);
END TEST;
