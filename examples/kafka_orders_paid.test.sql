-- Without Kafka: rows are given to the streams, and the sinks keep what would be sent.
TEST 'orders that are paid within ten minutes' BEGIN
  GIVEN orders VALUES (1, 'tea', 2.5, '2024-05-01 12:00:00'), (2, 'cake', 4, '2024-05-01 12:05:00');
  GIVEN payments VALUES (1, '2024-05-01 12:10:00'), (2, '2024-05-01 12:15:01');
  EXPECT paid_files (id, item) VALUES (1, 'tea');
  ADVANCE orders TO '2024-05-02 12:00:00';
  ADVANCE payments TO '2024-05-02 12:00:00';
  EXPECT takings VALUES ('2024-05-01 12:00:00', 'tea', 1, 2.5);
END TEST;

TEST 'two of three orders are paid' BEGIN
  GIVEN made_orders (id, at) VALUES
    (1, '2024-05-01 12:00:00'),
    (2, '2024-05-01 12:00:00'),
    (3, '2024-05-01 12:00:00');
  EXPECT orders_topic (id) VALUES (1), (2), (3);
  EXPECT payments_topic VALUES (1, '2024-05-01 12:00:37'), (2, '2024-05-01 12:01:14');
END TEST;
