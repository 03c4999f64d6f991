SET spark.sql.session.timeZone = 'UTC';
CREATE SINK rejected USING json OPTIONS (path '/nowhere/rejected');
CREATE STREAM orders (id INT, price DECIMAL(8, 2), at TIMESTAMP)
  USING kafka FORMAT json ON MALFORMED INTO rejected
  OPTIONS (servers 'nowhere:9092', topic 'orders', timestampFormat 'dd.MM.yyyy HH:mm')
  WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;

TEST 'payloads are decoded as those of the topic' BEGIN
  CREATE LIVE TABLE windows OUTPUT MODE APPEND AS
    SELECT window.end AS until, count(*) AS n, max(_key) AS k FROM orders GROUP BY window(at, '5 minutes');
  GIVEN orders (_value, _key) VALUES ('{"id": 1, "price": "10.50", "at": "01.05.2024 12:00"}', 'k'), ('{"id": 2', NULL);
  EXPECT rejected (payload) VALUES ('{"id": 2');
  GIVEN orders VALUES (3, 20, '2024-05-01 12:01:00'), (4, 1, NULL);
  ADVANCE orders TO '2024-05-01 13:00:00';
  EXPECT windows VALUES ('2024-05-01 12:05:00', 2, 'k');
  GIVEN orders (_value) VALUES ('{"id": 5, "price": 11, "at": "01.05.2024 12:02"}');
  EXPECT LATE ROWS OF windows (id) VALUES (5);
END TEST;

TEST 'messages of a file' BEGIN
  CREATE LIVE TABLE big AS SELECT id, price, at FROM orders WHERE price > 10;
  GIVEN orders FROM 'orders.jsonl';
  EXPECT big VALUES (7, 70.00, '2024-05-01 12:00:00');
  EXPECT rejected (payload) VALUES ('no message');
END TEST;

TEST 'changes of rows' BEGIN
  CREATE STREAM stock (id INT, n INT) USING kafka FORMAT debezium_json KEY (id) OPTIONS (servers 'nowhere:9092', topic 'stock');
  CREATE LIVE TABLE now_there KEY (id) AS SELECT id, n FROM stock;
  GIVEN stock (_value) VALUES ('{"op": "c", "after": {"id": 1, "n": 5}}'), ('{"op": "c", "after": {"id": 2, "n": 6}}');
  GIVEN stock (_value) VALUES ('{"op": "u", "before": {"id": 1, "n": 5}, "after": {"id": 1, "n": 4}}'),
    ('{"op": "d", "before": {"id": 2, "n": 6}}');
  EXPECT now_there VALUES (1, 4);
  EXPECT ERROR 'WRONG_COLUMNS' FROM GIVEN stock VALUES (1, 2);
END TEST;

TEST 'lines of a socket' BEGIN
  CREATE STREAM lines USING socket OPTIONS (host 'nowhere', port 9999);
  CREATE LIVE TABLE words AS SELECT explode(split(value, ' ')) AS word FROM lines;
  GIVEN lines VALUES ('to be'), ('be');
  EXPECT words VALUES ('to'), ('be'), ('be');
END TEST;

TEST 'rows of a file, with the options of the stream' BEGIN
  CREATE STREAM visits (user STRING, n INT) USING csv OPTIONS (path '/nowhere/visits', header true, sep ';');
  CREATE LIVE TABLE seen AS SELECT user, n FROM visits;
  GIVEN visits FROM 'visits.csv';
  EXPECT seen VALUES ('ann', 3);
  EXPECT ERROR 'PATH_NOT_FOUND' FROM GIVEN visits FROM 'visit.csv';
END TEST;

TEST 'sinks of changes' BEGIN
  CREATE STREAM w (word STRING) USING json OPTIONS (path '/nowhere/words');
  CREATE SINK db USING jdbc KEY (word) OPTIONS (url 'jdbc:sqlite:/nowhere/db', table 'counts');
  CREATE SINK log USING kafka FORMAT json OPTIONS (servers 'nowhere:9092', topic 'log');
  CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM w GROUP BY word;
  INSERT INTO db SELECT word, n FROM counts;
  INSERT INTO log SELECT word, n FROM counts WHERE n > 1;
  GIVEN w VALUES ('cat'), ('cat');
  GIVEN w VALUES ('cat'), ('dog');
  EXPECT log VALUES ('+I', 'cat', 2), ('-U', 'cat', 2), ('+U', 'cat', 3);
  EXPECT db VALUES ('cat', 3), ('dog', 1);
END TEST;
