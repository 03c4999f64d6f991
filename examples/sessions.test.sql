TEST 'half an hour without a click closes a session' BEGIN
  GIVEN clicks VALUES ('ann', '/a', '2024-05-01 12:00:00'), ('ann', '/b', '2024-05-01 12:20:00');
  EXPECT visits EMPTY;
  ADVANCE clicks TO '2024-05-01 13:30:00';
  EXPECT visits (user, began, clicks) VALUES ('ann', '2024-05-01 12:00:00', 2);
END TEST;
