"""The codes of errors and notes: what each says, whatever the wording. A code never changes its meaning.

An error without a code of its own has that of its class (errors.py); what Spark refuses has Spark's own
error class for a code, which Spark's documentation lists.
"""

MALFORMED_MESSAGE = "MALFORMED_MESSAGE"
OUTPUT_MODE = "OUTPUT_MODE_NOT_SUPPORTED"

CODES = {
    # of the classes
    "ERROR": "an error of no particular kind",
    "SYNTAX_ERROR": "the statement cannot be read",
    "UNKNOWN_NAME": "a name, option or value is not known, or clashes with another",
    "NOT_SUPPORTED": "the statement can be read, but it is not allowed",
    "BAD_INPUT": "a file, directory, server or encoding is not as declared",
    "SPARK_ERROR": "Spark refused the statement, or failed while it ran",
    "QUERY_FAILED": "a streaming query failed while it ran",
    "SPARK_NOT_STARTED": "Spark could not be started or connected to",
    "USAGE": "the command line or the configuration file is wrong",
    "TIME_OUT": "it took longer than is allowed",
    "CANCELLED": "it was cancelled by Ctrl-C",
    # of single errors
    "ALREADY_EXISTS": "there is already an entry of that name",
    "UNKNOWN_STATEMENT": "no statement starts with that word",
    "UNKNOWN_STREAM": "there is no stream of that name",
    "UNKNOWN_SINK": "there is no sink of that name",
    "UNKNOWN_LIVE_TABLE": "there is no live table of that name",
    "UNKNOWN_QUERY": "there is no query of that name",
    "UNKNOWN_FUNCTION": "there is no function written in Python of that name",
    "UNKNOWN_RELATION": "there is no stream, live table, table or view of that name",
    "UNKNOWN_CONNECTOR": "there is no connector of that name",
    "UNKNOWN_OPTION": "the connector has no option of that name",
    "MISSING_OPTION": "an option that the connector requires is not given",
    "UNKNOWN_SETTING": "there is no setting of that name",
    "UNKNOWN_VARIABLE": "there is no variable of that name",
    "NO_STREAM": "a statement that starts a query reads no stream",
    "NOT_ON_STREAMS": "an operation that Spark does not have on streams",
    OUTPUT_MODE: "another output mode is needed for this query or sink",
    "TRIGGER_NOT_SUPPORTED": "the source, sink or an operation does not take this trigger",
    "IN_USE": "an entry cannot be dropped, because another uses it",
    "READ_ONLY": "this console only reads the workspace",
    "QUERY_RUNNING": "the query is running, or its last micro-batch is",
    "CHECKPOINT_IN_USE": "another query has this checkpoint",
    "SPARK_LOST": "the connection to Spark is lost",
    "DISK_FULL": "there is no space left on a disk",
    MALFORMED_MESSAGE: "a message cannot be read in its format",
}
