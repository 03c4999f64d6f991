TEST 'a late word is dropped' BEGIN
  -- One micro-batch, and its rows in any order.
  GIVEN words VALUES ('cat', '2024-05-01 12:02:00'), ('dog', '2024-05-01 12:07:00');
  EXPECT counts (word, n) VALUES ('cat', 1), ('dog', 1);
  ADVANCE words TO '2024-05-01 12:30:00';
  GIVEN words VALUES ('cat', '2024-05-01 12:04:00');
  EXPECT NO CHANGES IN counts;
  EXPECT LATE ROWS OF counts VALUES ('cat', '2024-05-01 12:04:00');
END TEST;

TEST 'a word that is late, but not too late, is counted' BEGIN
  GIVEN words VALUES ('owl', '2024-05-01 12:21:00');
  EXPECT WATERMARK OF counts = '2024-05-01 12:11:00';
  GIVEN words VALUES ('owl', '2024-05-01 12:13:00');
  EXPECT CHANGES IN counts (_op, since, n) VALUES ('+I', '2024-05-01 12:10:00', 1);
END TEST;
