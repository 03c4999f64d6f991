TEST 'actions are counted by hour, with the profile of the user' BEGIN
  GIVEN interactions VALUES
    (1, 10, 'like', '2024-05-01 09:10:00'),
    (1, 11, 'like', '2024-05-01 09:50:00'),
    (2, 10, 'share', '2024-05-01 10:00:00'),
    (999, 10, 'like', '2024-05-01 10:00:00');
  EXPECT by_hour (hour, event, n) VALUES
    ('2024-05-01 09:00:00', 'like', 2),
    ('2024-05-01 10:00:00', 'share', 1);
  EXPECT by_hour (name) AS SELECT name FROM profiles WHERE id IN (1, 2);
END TEST;
