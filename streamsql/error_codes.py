"""The codes of errors and notes: what each says, whatever the wording. A code never changes its meaning.

An error without a code of its own has that of its class (errors.py); what Spark refuses has Spark's own
error class for a code, which Spark's documentation lists.
"""

MALFORMED_MESSAGE = "MALFORMED_MESSAGE"
OUTPUT_MODE = "OUTPUT_MODE_NOT_SUPPORTED"
ROW_OF_EACH_KEY = "ROW_OF_EACH_KEY"

CODES = { # of the classes "ERROR": "an error of no particular kind", "SYNTAX_ERROR": "the statement cannot be
read", "UNKNOWN_NAME": "a name, option or value is not known, or clashes with another", "NOT_SUPPORTED": "the
statement can be read, but it is not allowed", "BAD_INPUT": "a file, directory, server or encoding is not as
declared", "SPARK_ERROR": "Spark refused the statement, or failed while it ran", "QUERY_FAILED": "a streaming
query failed while it ran", "SPARK_NOT_STARTED": "Spark could not be started or connected to", "USAGE": "the
command line or the configuration file is wrong", "TIME_OUT": "it took longer than is allowed", "CANCELLED":
"it was cancelled by Ctrl-C", "NOT_AS_EXPECTED": "an EXPECT of a test does not hold", # of single errors
"ALREADY_EXISTS": "there is already an entry of that name", "AMBIGUOUS_KEY": "rows of a result that are not
the same have the same KEY", "AMBIGUOUS_STATE": "it is not clear which of several states is meant",
"BAD_ADDRESS": "an address of this machine cannot be read or opened", "BAD_ARGUMENT": "an argument of a table
function or a backslash command is missing or not as it takes it", "BAD_CONFIG": "the configuration file
cannot be read, or holds a wrong value", "BAD_DURATION": "a duration cannot be read, or does not fit there",
"BAD_ENCODING": "a script is not UTF-8", "BAD_FRAME": "a client has sent data that is not a frame",
"BAD_NAME": "a name is empty, or holds what a name cannot hold", "BAD_NUMBER": "a number is not a whole one,
out of range or in the wrong order", "BAD_OPTION_VALUE": "an option does not take this value",
"BAD_PYTHON_CODE": "Python code that a statement names cannot be imported or used as it is", "BAD_SCHEMA":
"the schema of messages cannot be read", "BAD_SETTING": "a setting of the console does not take this value, or
not now", "BAD_VARIABLE": "the value of a variable holds another variable", "CHECKPOINT_CHANGED": "a query has
changed since its checkpoint was created", "CLUSTER_INCOMPLETE": "something that a cluster needs is missing",
"CHECKPOINT_NEEDED": "a query on a Spark Connect server needs a folder for its checkpoint",
"CHECKPOINT_IN_USE": "another query has this checkpoint", "CIRCULAR_DEFINITION": "a stream or live table would
be computed from itself", "CIRCULAR_SCRIPT": "a script reads itself", "CLAUSE_CONFLICT": "two clauses cannot
be used together", "CLAUSE_NOT_SUPPORTED": "this statement, connector or place does not take the clause",
"CONNECTOR_NOT_SUPPORTED": "the connector cannot be used in this way", "CONNECTION_CLOSED": "a connection of
Python is used after it was closed", "DAMAGED_CHECKPOINT": "a file of a checkpoint cannot be read",
"DAMAGED_WORKSPACE": "a file of the workspace cannot be read", "DISK_FULL": "there is no space left on a
disk", "DOUBLE_QUOTED_NAME": "a name is in double quotes, which make a string in Spark", "DUPLICATE_CLAUSE":
"a clause is written twice", "DUPLICATE_NAME": "a column, option or sink is named twice",
"EDITOR_NOT_STARTED": "the editor could not be started", "FILE_NOT_READ": "a file cannot be read",
"FILE_NOT_WRITTEN": "a file cannot be written", "HEADER_MISMATCH": "the header of a csv file is not that of
the columns of its stream", "FIXED_COLUMNS": "the columns of the connector are fixed", "FOLDER_IN_USE": "a
folder holds what another query or program has written", "FOREIGN_STREAM": "a query reads a stream that Spark
knows and the console does not", "FRAME_TOO_LARGE": "a message between a client and its server is too large",
"INTERNAL": "an error that the console does not expect", "IN_USE": "an entry cannot be dropped, because
another uses it", "LIMIT_REACHED": "a result has more rows than its live table keeps", "NOT_A_SERVER": "the
console is no server", "NOT_DETACHED": "the console cannot become a server", "SERVER_LOST": "the server has
ended", "SERVER_VERSION": "the server is of another version", "TOO_MANY_STAGES": "a query would need more
stages than one may have", "TOO_MANY_CLIENTS": "the server serves as many clients or calls as it may",
MALFORMED_MESSAGE: "a message, or a row of a file, cannot be read in its format", "MISSING_COLUMNS": "a stream
needs columns that are not declared and cannot be inferred", "MISSING_DRIVER": "Spark does not have the JDBC
driver that a sink needs", "MISSING_MODULE": "a Python module is not there, or not installed", "MISSING_KEY":
"a format of changes needs a KEY", "MISSING_OPTION": "an option that the connector requires is not given",
"MISSING_PATH": "a file or folder is not there", "MISSING_SEMICOLON": "a ; is missing between two statements",
"MISSING_TOPIC": "the Kafka cluster has no such topic", "MISSING_TEST": "a file of tests has none",
"MISSING_WATERMARK": "a watermark is needed", "NAME_TOO_LONG": "a name is longer than file systems and Spark
allow", "NESTED_TOO_DEEPLY": "the statement is nested too deeply to be read", "NOT_IN_A_TEST": "the statement
belongs into a TEST, which streamsql test runs", "VERIFY_DIFFERS": "the rows of a query are not those of its
SELECT as a batch", "NOT_A_CHECKPOINT": "a folder is not a checkpoint that can be inspected",
"NOT_A_WORKSPACE": "a folder is not a workspace, or cannot be opened as one", "NOT_ON_STREAMS": "an operation
that Spark does not have on streams", "NO_CONNECT": "the console cannot use that Spark Connect server, or not
together with another flag", "NOT_ON_CONNECT": "a Spark Connect server does not do this: it needs the driver's
JVM or this process", "NO_PROGRAM": "EXPLAIN of a statement that runs no program", "NO_QUERY": "a live table
has no query yet", "NO_RECORDS": "there are no records to show", "NO_SERVER": "no server answers: a broker,
schema registry, database or Spark master", "STATE_IN_A_STREAM": "a streaming query reads the state of another
query", "NO_STATE": "a query keeps no state, or not what is asked for", "NO_STREAM": "a statement that starts
a query reads no stream", "OPTION_CONFLICT": "an option cannot be used with another one, or is set by Spark",
"OTHER_CHECKPOINT": "the checkpoint of a query is gone, or another one is in its place", "OTHER_CONSOLE": "a
statement of another console, which is proposed in the words of this one", OUTPUT_MODE: "another output mode
is needed for this query or sink", "PACKAGE_NOT_AVAILABLE": "a package for Spark is not there and cannot be
fetched", "PATTERN_IN_NAME": "a stream would take the name of a file for a pattern", "PYTHON_CODE_FAILED":
"Python code that a statement names failed while it ran", "QUERY_RUNNING": "the query is running, or its last
micro-batch has not ended", "READ_ONLY": "this console only reads the workspace", "RELATIVE_PATH": "a path on
a Spark Connect server is relative", ROW_OF_EACH_KEY: "the row of the greatest or least value of each key,
which is an aggregation", "ROWS_NOT_OF_CHECKPOINT": "the rows of a live table do not fit the checkpoint of its
query", "ROWS_NOT_READ": "the rows of a live table, or the record of what a query has written, cannot be
read", "SECRET_LOST": "a secret was not kept in the workspace, or cannot be read", "SECRET_SHOWN": "a secret
stands where it would be shown", "SPARK_LOST": "the connection to Spark is lost", "STATEMENT_SET": "the
INSERTs of a statement set do not fit together", "TRIGGER_NOT_SUPPORTED": "the source, sink or an operation
does not take this trigger", "UNKNOWN_BATCH": "the checkpoint has no such micro-batch", "UNCLOSED_TEST": "a
TEST has no END TEST", "UNKNOWN_COLUMN": "there is no column of that name", "UNKNOWN_CONNECTOR": "there is no
connector of that name", "UNKNOWN_FORMAT": "the connector has no format of that name", "UNKNOWN_FUNCTION":
"there is no function written in Python of that name", "UNKNOWN_LIVE_TABLE": "there is no live table of that
name", "UNKNOWN_OPTION": "the connector has no option of that name", "UNKNOWN_QUERY": "there is no query of
that name", "UNKNOWN_RELATION": "there is no stream, live table, table or view of that name",
"UNKNOWN_SETTING": "there is no setting of that name", "UNKNOWN_SINK": "there is no sink of that name",
"UNKNOWN_STATE": "the checkpoint has no such operator, store or state variable", "UNKNOWN_STATEMENT": "no
statement starts with that word", "UNKNOWN_STREAM": "there is no stream of that name", "UNKNOWN_TOPIC": "HELP
has no topic of that name", "UNKNOWN_TYPE": "Spark has no type of that name", "UNKNOWN_VARIABLE": "there is no
variable of that name", "UNSUPPORTED_TYPE": "a type is switched off in Spark", "UNTRUSTED_WORKSPACE": "the
workspace was created elsewhere and is not trusted", "VIEW_NOT_RESTORED": "a temporary view could not be
created again when Spark started", "WORKSPACE_IN_USE": "another console has the workspace",
"WORKSPACE_VERSION": "a workspace or checkpoint was written by a later version", "WRONG_CHARACTER": "a
character does not belong to SQL, such as a typographic quote or an invisible one", "WRONG_COLUMNS": "the
columns of a query do not match those that are named or declared", "WRONG_KIND": "an entry of that name is
there, but it is of another kind", "WRONG_PARAMETERS": "the values for the parameters of a statement are too
few, too many or of no type of Spark", "WRONG_TYPE": "a column does not have the type that is needed", }

NOTES = {
    "GOES_ON": "a query that a script has started goes on in the server",
    "AT_LEAST_ONCE": "late rows may be written again after a failure",
    "ASSUMED_TABLE": "a name that a checked script does not define is assumed to be a table of Spark",
    "CHANGE_ACCEPTED": "a query has changed since its checkpoint was created, as the statement accepts",
    "CHECKPOINT_HERE": "a query that was exported runs in this console, with its checkpoint",
    "CHECKPOINT_KEPT": "the old checkpoint of a query is kept in another folder",
    "CODE_CHANGED": "the Python code of a query has changed since its checkpoint was written",
    "COLUMNS_INFERRED": "the columns of a stream, as read from its source when it was created",
    "COLUMNS_RENAMED": "columns with the same name are printed under different names",
    "OLD_DEFINITION": "running queries go on with the old definition of what a statement has changed",
    "ODD_VALUES": "a few values of a column do not have the type of the others",
    "CSV_OPTIONS": "how the fields of csv files are quoted and encoded, as their lines show",
    "COLUMN_OMITTED": "a column is left out, because Spark does not distinguish it from another",
    "DAMAGED_MICRO_BATCH": "a micro-batch is incomplete in the log of a checkpoint",
    "DELAY_TOO_LONG": "the delay of a watermark is many times as long as the latest row needs",
    "DELAY_TOO_SHORT": "rows arrive later than the delay of the watermark",
    "FIRST_ROW_KEPT": "row_number() over a stream keeps the first row to arrive",
    "JOINED_ONCE": "a streaming query takes a live table as it is when the query starts",
    "LATENESS_OF_MICRO_BATCHES": "lateness is that of micro-batches, as their rows cannot be read again",
    "LATE_ROWS_OF_JOIN": "late rows that are dropped behind a join are not listed",
    "LONG_RANGE": "the time range of a join is much longer than rows may be late",
    "EVENT_TIMES_APART": "the event times of joined streams are years apart",
    "FIRST_WINDOW": "the event with which the first window of a query in append mode is emitted",
    "FOREIGN_CHECKPOINT": "a checkpoint was created by another program",
    "HEADER_GUESSED": "the first line of a file is taken for the names of columns",
    "LEFTOVERS_MOVED": "folders that no definition uses were moved to the trash",
    "LEFTOVERS_NOT_MOVED": "folders that no definition uses could not be moved to the trash",
    "LEFT_TO_SPARK": "names and columns of a query that only Spark reads are not checked",
    "MALFORMED_QUERY": "a query was started that writes malformed messages to their sink",
    "MALFORMED_RECORDS": "some of the first records cannot be read in the format",
    "LIVE_TABLE_EMPTY": "a live table that a SELECT reads has no rows",
    "LIVE_TABLE_STANDS": "the query of a live table that a SELECT reads has failed or is stopped",
    "ROWS_LOST": "a query of a script has dropped rows that came late or could not be read",
    "STAYS_STOPPED": "START QUERY ALL does not start a query that STOP QUERY has stopped by its name",
    "MANY_PARTITIONS": "a query has many shuffle partitions for few processors",
    "MESSAGE_TIME": "the time of the messages is taken for the event time",
    "MICRO_BATCH": "the micro-batch from which the rows of a console sink come",
    "MICRO_BATCHES": "which micro-batches the log of a checkpoint holds",
    "MICRO_BATCH_ABORTED": "a micro-batch was aborted, and is retried on restart",
    "NOT_ALL_SHOWN": "rows, columns or parts of values have no room in the window",
    "NOT_CHECKED": "a statement uses what a statement with an error would define",
    "NOT_DELETED": "files in the trash were left there, because the console did not create them",
    "NOT_REFRESHED": "why a live table over other live tables is behind them",
    "NOT_RUN": "what was typed behind a statement that failed was not run",
    "NOT_AWAITED": "a query that is awaited is stopped",
    "NO_EVENT_TIME": "no column looks like an event time",
    "NO_ROWS": "why a query over a stream gave no rows",
    "ONE_QUERY_INSTEAD": "one query without stages that has nearly the same result",
    "OTHER_MEANING": "words that mean something else in another SQL dialect",
    "OTHER_SPARK": "a Spark Connect server is of another version of Spark",
    "OUTPUT_MODE": "the output mode that was chosen, and why",
    "PACKAGE_FETCHED": "a package for Spark was fetched",
    "PAGER_NOT_STARTED": "the pager could not be started",
    "PROPOSAL": "how to run a statement that is proposed",
    "QUERIES_ELSEWHERE": "the queries run in another console, or in none",
    "READ_AS": "words of another SQL dialect, in the words of Spark",
    "READ_FROM_START": "a stream is read from the oldest message",
    "STAGES": "a query over streams runs in stages, since Spark does not run it as one",
    "TABLE_PATH": "Spark takes the relative path of a table from the folder of its database",
    "CHANGES_WRITTEN": "a sink gets what changes in a result over live tables",
    "FILE_BY_FILE": "a stream reads one file in each micro-batch",
    "REFRESHED": "a live table is computed from others, after their micro-batches",
    "REGISTRY_MESSAGES": "the messages look like those of a schema registry",
    "ROWS_REMOVED": "CREATE OR REPLACE of a stream of values removes the rows that it had",
    "ROWS_DROPPED": "older rows of a live table are no longer kept",
    "RUNS_ON": "a query of a script runs until it is stopped",
    "SAMPLED": "the rows are made from the first records of a source",
    "SECRET_NOT_KEPT": "the workspace does not keep a secret",
    "SESSION_ENDED": "the session of a Spark Connect server in which queries were left has ended",
    "SESSION_TIMEOUT": "a Spark Connect server ends a session that no console uses",
    "SETTINGS_NOT_APPLIED": "settings of the workspace that can run code are not applied",
    "SETTING_OF_CHECKPOINT": "a setting does not apply to a checkpoint that is there",
    "STATE_STORE": "the state store that a query needs",
    "TIME_AS_TEXT": "a query groups by the time of a column that is a text or a number",
    "TIME_LIMITED": "the rows are those that arrived within a time limit",
    "TRIGGER_TOO_SHORT": "the trigger interval of a query is shorter than its micro-batches take",
    "UNBOUNDED_STATE": "the state of a query grows without bound",
    "VIEW_NOT_RESTORED": "a temporary view could not be created again when Spark started",
    "WINDOWS_IN_UTC": "windows begin by UTC, and not by the session time zone",
    "WATERMARK_UNUSED": "a watermark closes no group, as event time is not among the keys",
    "WINDOW_TABLE": "a window table, in the words of Spark",
    "WORKSPACE_NOT_WRITTEN": "the workspace could not be written",
}
"""The codes of notes."""

VERDICTS = {
    "NOT_RUNNING": "the query failed, was stopped, or has ended",
    "NO_DATA": "the source has no data that the query reads",
    "OLDER_CHECKPOINT": "the checkpoint is new, and the rows went into an older one",
    "ALL_READ_BEFORE": "all that the source has was read before this start",
    "NOT_READ_YET": "there is data that the query has not read yet",
    "EVENT_TIME_UNREADABLE": "the event time of rows is NULL",
    "ROWS_UNREADABLE": "rows cannot be read as declared",
    "EVENT_TIME_WRONG": "event times lie in the future, or around 1970",
    "FILTERED_OUT": "a filter drops all rows",
    "NO_JOIN_PARTNER": "no row of a join has a partner",
    "ROWS_LATE": "rows came behind the watermark",
    "WATERMARK_HELD": "one of several inputs holds the watermark back",
    "WINDOW_NOT_CLOSED": "append mode waits until the watermark has passed the end of a window",
    "SESSION_OPEN": "append mode waits until the watermark has passed the end of a session",
    "STATE_WAITS": "rows of an outer join wait for a partner",
    "ALL_SEEN_BEFORE": "a deduplication has seen all rows before",
    "BEHIND": "a live table over live tables is behind them, or their queries do not run",
    "ROWS_HIDDEN": "the WHERE of a SELECT hides the rows of a live table",
    "TIME_ZONE": "the session time zone shifts the times away from those that a SELECT asks for",
    "ROWS_WRITTEN": "the sink has the rows",
    "STATE_GROWS": "the state grows, and nothing removes rows from it",
    "FILES_HIDDEN": "files are not in the log of the file sink that has written their folder",
    "FILES_CHANGED": "files were changed after they had been read",
    "FILES_TOO_OLD": "files are not read, because they are older than maxFileAge allows",
    "NOTHING_WRONG": "rows came out, and none was lost",
    "NOT_EXPLAINED": "no situation that WHY knows holds",
}
"""The codes of the verdicts of WHY, the nearest to the source first."""
