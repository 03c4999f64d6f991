-- Word count over a socket, the "hello world" of streaming.
-- In one terminal:   nc -lk 9999
-- in another:        streamsql examples/word_count_socket.sql
-- Each micro-batch prints the words whose count has changed. Ctrl-C stops the script. For another port: -D port=9998.

DEFINE IF NOT EXISTS port = 9999;

CREATE STREAM lines USING socket OPTIONS (host 'localhost', port '${port}');

CREATE STREAM words AS
SELECT explode(split(value, ' ')) AS word FROM lines;

CREATE SINK screen USING console;

INSERT INTO screen
SELECT word, count(*) AS n FROM words GROUP BY word;
