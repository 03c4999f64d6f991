-- The tests run the script as it ends: the changed query is in use.
TEST 'cancelled orders do not count' BEGIN
  GIVEN orders VALUES ('Ines', 30, 'paid'), ('Tom', 55, 'cancelled');
  EXPECT best VALUES ('Ines', 30);
END TEST;
