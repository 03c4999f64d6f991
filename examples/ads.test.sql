TEST 'an impression without a click comes out once no click can follow' BEGIN
  GIVEN impressions VALUES (1, '2024-05-01 12:00:00'), (2, '2024-05-01 12:10:00');
  GIVEN clicks VALUES (1, '2024-05-01 12:30:00');
  EXPECT clicked VALUES (1, '2024-05-01 12:00:00', '2024-05-01 12:30:00');
  EXPECT shown (ad) VALUES (1);
  ADVANCE impressions TO '2024-05-02 12:00:00';
  ADVANCE clicks TO '2024-05-02 12:00:00';
  EXPECT shown VALUES
    (1, '2024-05-01 12:00:00', '2024-05-01 12:30:00'),
    (2, '2024-05-01 12:10:00', NULL);
END TEST;

TEST 'a click after more than an hour does not count' BEGIN
  GIVEN impressions VALUES (1, '2024-05-01 12:00:00');
  GIVEN clicks VALUES (1, '2024-05-01 13:00:01');
  EXPECT clicked EMPTY;
  GIVEN clicks VALUES (1, '2024-05-01 13:00:00');
  EXPECT clicked (clicked_at) VALUES ('2024-05-01 13:00:00');
END TEST;
