TEST 'a repeated event counts once' BEGIN
  GIVEN events VALUES ('a', 'login', '2024-05-01 12:00:00'), ('a', 'login', '2024-05-01 12:00:00');
  GIVEN events VALUES ('a', 'login', '2024-05-01 12:05:00'), ('b', 'logout', '2024-05-01 12:05:00');
  EXPECT once (id, kind) VALUES ('a', 'login'), ('b', 'logout');
END TEST;

TEST 'a crash repeats no event' BEGIN
  GIVEN events VALUES ('a', 'login', '2024-05-01 12:00:00');
  KILL;
  RESTART QUERY ALL;
  EXPECT once (id) VALUES ('a');
END TEST;
