TEST 'interactions within an hour after the post' BEGIN
  GIVEN posts VALUES (10, 'Cats', '2024-05-01 09:00:00');
  GIVEN interactions VALUES
    (1, 10, 'like', '2024-05-01 09:59:00'),
    (2, 10, 'like', '2024-05-01 10:01:00'),
    (3, 11, 'like', '2024-05-01 09:10:00');
  EXPECT early_reactions VALUES ('Cats', 1, 'like', '2024-05-01 09:59:00');
END TEST;
