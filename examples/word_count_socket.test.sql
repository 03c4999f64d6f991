-- No server is needed: the lines are given. The console sink is sent each count that has changed.
TEST 'words are counted' BEGIN
  GIVEN lines VALUES ('to be or'), ('not to be');
  EXPECT screen VALUES ('to', 2), ('be', 2), ('or', 1), ('not', 1);
  GIVEN lines VALUES ('or');
  EXPECT CHANGES IN screen VALUES ('+I', 'or', 2);
END TEST;
