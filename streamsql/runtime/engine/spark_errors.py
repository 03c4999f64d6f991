"""Translates Spark's exceptions to the console's errors: the cause in one line, its span, a hint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from streamsql.error_codes import MALFORMED_MESSAGE
from streamsql.errors import EngineFault, InputFault, QueryFault, Span, StreamsqlError
from streamsql.guard import internal
from streamsql.language.lexical import word_at
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.analysis_errors import explained
from streamsql.runtime.engine.file_errors import NO_SPACE, SKIP_ROWS, file_words, full_disk, is_no_space
from streamsql.runtime.engine.kafka_errors import in_plain_words

_PREFIX = re.compile(r"^\s*\[([A-Z0-9_.]+)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE:\s*\w+.*", re.DOTALL)
_PLAN = re.compile(r";?\s*\n\s*[!'+]?\s*(?:\+-|'?\w+ \[|'[A-Z]\w+|[A-Z]\w+ [\[\(']).*", re.DOTALL)
_TREE = re.compile(r";\s*\n.*", re.DOTALL)
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)\s*\n\n== SQL ==\n(.*?)\n-*\^\^\^", re.DOTALL)
_ECHO = re.compile(r"\s*\n== SQL.*", re.DOTALL)
_STACK = re.compile(r"\n\s*(at |===|Driver stacktrace|Caused by|JVM stacktrace|Traceback).*", re.DOTALL)


def clean(text: str) -> tuple[str, str]:
    """(condition, message) of a Spark message: no class prefix, SQLSTATE, plan or stack."""
    match = _PREFIX.match(text)
    condition = match.group(1) if match else ""
    text = text[match.end() :] if match else text
    if condition == "USER_RAISED_EXCEPTION" and (own := _PREFIX.match(text)):  # raised by our own program
        condition, text = own.group(1), text[own.end() :]
    for pattern in (_STACK, _ECHO, _STATE, _TREE, _PLAN):
        text = pattern.sub("", text)
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    return _named(condition), "\n".join(lines[:6]).rstrip(".;")


def _named(condition: str | None) -> str:
    """A condition, unless it is a meaningless one such as _LEGACY_ERROR_TEMP_3102."""
    return "" if not condition or condition.startswith("_LEGACY") else condition


_RAISED = re.compile(
    r"^(?:\w+\.)*([A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt|Iteration)\b.*)", re.MULTILINE
)
_FRAME = re.compile(r'^ *File "([^"]+)", line (\d+)', re.MULTILINE)


def python_error(text: str) -> tuple[str, str]:
    """(exception, place) of a message that contains the traceback of a Python worker.

    Both are empty for another message. The place is the innermost frame outside of PySpark; it is empty
    for exceptions of the console's own helpers, whose messages are complete.
    """
    _, begins, trace = text.rpartition("Traceback (most recent call last):")
    raised = _RAISED.search(trace) if begins else None
    if raised is None or raised.group().startswith(("pyspark.", "py4j.")):
        return "", ""
    frames = [f for f in _FRAME.findall(trace) if "pyspark" not in f[0] and not f[0].startswith("<")]
    if frames and "/streamsql/runtime/" in frames[-1][0]:
        return re.sub("^(Runtime|Value)Error: ", "", raised.group(1).strip()), ""
    return raised.group(1).strip(), f"{frames[-1][0]}, line {frames[-1][1]}" if frames else ""


def first_sentence(message: str) -> tuple[str, str]:
    """(fact, detail) of a message: its first sentence, and the rest."""
    head, _, detail = message.partition("\n")
    match = re.match(r"(.+?\.) (?=[A-Z])(.*)", head, re.DOTALL)
    if match:
        head, detail = match.group(1), f"{match.group(2)}\n{detail}".strip()
    return _lower(head), detail


def translate(
    error: BaseException, statement: Statement | None = None, relations: Iterable[str] = ()
) -> StreamsqlError:
    """Any exception of PySpark, Py4J or Python as a StreamsqlError.

    statement: for the span; relations: names of streams and tables, for a hint.
    """
    if isinstance(error, StreamsqlError):
        return error
    doubt = _doubt(error, statement)
    if doubt is not None:
        return doubt
    fault = _translated(error, statement.text if statement else "", relations)
    if statement and fault.span:
        fault.span = statement.origin.span(fault.span)
    return fault


def is_of_values(error: BaseException) -> bool:
    """Whether an exception of Spark, or the one behind an error, is about the values that an expression has:
    its SQLSTATE is of a data exception, of an external routine, or raised by the query.
    """
    states = (getattr(thrown, "getSqlState", lambda: "")() or "" for thrown in (error, error.__cause__))
    return any(state.startswith(("22", "38", "39", "P0")) for state in states)


def parse_fault(said: str, text: str) -> EngineFault:
    """The error for what Spark's parser says of a text, placed in it."""
    condition, message = clean(said)
    fact, detail = first_sentence(message)
    span = None
    if place := _PLACE.search(said):
        lines = text.split("\n")[: int(place["line"]) - 1]
        column = int(place["pos"]) if place["pos"] else int(place["position"]) - 1
        span = word_at(text, sum(len(line) + 1 for line in lines) + column)
    return EngineFault(fact, detail=detail, span=span, condition=condition, code=condition or "SPARK_ERROR")


_PLACE = re.compile(r"\(line (?P<line>\d+), (?:pos (?P<pos>\d+)|position (?P<position>\d+))\)")
"""Where Spark stops: `pos` counts columns from 0, `position` from 1."""


def _doubt(error: BaseException, statement: Statement | None) -> StreamsqlError | None:
    """The console's error for a statement, or the one behind EXPLAIN, that Spark's parser does not take, or
    whose misspelt word it takes for a table.
    """
    doubt = getattr(statement, "doubt", None) or getattr(getattr(statement, "body", None), "doubt", None)
    if doubt is None:
        return None
    from pyspark.errors import AnalysisException, ParseException

    if isinstance(error, ParseException):
        return doubt
    unknown = isinstance(error, AnalysisException) and error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    return doubt if unknown else None


def spark_lost(*, memory: bool = False) -> EngineFault:
    """The error of a statement that was running when the JVM ended. memory: because its memory was full."""
    more = "; --conf spark.driver.memory=8g, where Spark is started, gives it more memory"
    return EngineFault(
        "the connection to Spark is lost",
        detail="its JVM has ended, because its memory was full" if memory else "its JVM has ended",
        hint=f"the next statement that needs Spark restarts it; definitions are kept{more if memory else ''}",
        code="SPARK_LOST",
    )


def may_be_lost(error: BaseException) -> bool:
    """Whether an error of a call of Spark tells nothing of Spark's: it comes from the connection."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return not isinstance(error, (StreamsqlError, Py4JJavaError, PySparkException))


def is_spark_lost(error: BaseException) -> bool:
    """Whether the error of a call of Spark is that its JVM has ended."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    if isinstance(error, StreamsqlError):
        return error.code == "SPARK_LOST"
    if _SHUT_DOWN in str(error):
        return True
    return isinstance(error, (Py4JNetworkError, ConnectionError)) or (
        isinstance(error, Py4JError) and any(words in str(error) for words in _OF_NO_JVM)
    )


_SHUT_DOWN = "because SparkContext was shut down"
"""What Spark says of a job under which it ended, as it does when its memory is full."""
_OF_NO_JVM = ("Answer from Java side is empty", "does not exist in the JVM")
"""What Py4J says when nobody answers."""


def _translated(error: BaseException, text: str, relations: Iterable[str]) -> StreamsqlError:
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    if isinstance(error, OSError) and isinstance(error.__cause__, (Py4JError, PySparkException)):
        error = error.__cause__  # of a file that Hadoop reads
    if is_spark_lost(error):
        return spark_lost()
    if isinstance(error, Py4JJavaError):
        return _of_java(error.java_exception, text, relations)
    if is_no_space(_texts(error)):
        return EngineFault(NO_SPACE, hint=_MAKE_SPACE, code="DISK_FULL")
    if isinstance(error, PySparkException):
        return _of_pyspark(error, text, relations)
    if type(error) is ValueError:  # of the console's own helpers
        fact, _, detail = str(error).partition("\n")
        return EngineFault(fact, detail=detail)
    if isinstance(error, (ImportError, SyntaxError)):
        return InputFault(
            f"Python code cannot be loaded: {error}",
            detail="it could be loaded when the sink, stream or function was created",
            code="BAD_PYTHON_CODE",
        )
    return internal(error)


def _of_pyspark(error: Any, text: str, relations: Iterable[str]) -> StreamsqlError:
    from pyspark.errors import ParseException

    raised, where = python_error(str(error))
    if raised:
        return EngineFault(f"a Python function failed: {raised}", detail=where, code="PYTHON_CODE_FAILED")
    if "Traceback (most recent call last)" in str(error):
        said, where = _of_python(str(error))
        return EngineFault(f"Python code failed: {clean(said)[1]}", detail=where, code="PYTHON_CODE_FAILED")
    parameters = error.getMessageParameters() or {}
    condition, message = clean(str(error))
    condition = _named(error.getCondition()) or condition
    span = _span(error, text)
    words = explained(condition, message, parameters, text, span, relations)
    head, detail = first_sentence(words.message)
    return EngineFault(
        head,
        detail=detail,
        hint=words.hint,
        proposal=words.proposal,
        span=words.span or span,
        condition=condition,
        relation=words.relation,
        suggests=words.suggests,
        fragment=_fragment(error) or _named_in(parameters, text),
        unread=isinstance(error, ParseException),
    )


_NAMES_WORDS = (
    "functionName",
    "routineName",
    "name",
    "collationName",
    "sqlExpr",
    "objectName",
    "fieldName",
    "base",
)
"""Parameters of Spark's errors with the words of the statement that are at fault."""


def _named_in(parameters: Mapping[str, str], text: str) -> str:
    """What an error names by its parameters, if the statement has it; "" for nothing."""
    named = (parameters.get(key, "").strip('"').replace("`", "") for key in _NAMES_WORDS)
    return next((name for name in named if name and name.casefold() in text.casefold()), "")


def _fragment(error: Any) -> str:
    """The part of a statement that an error of Spark names; "" for none."""
    contexts = (c for c in error.getQueryContext() or () if "SQL" in str(c.contextType()))
    return next((context.fragment() for context in contexts), "")


def _lower(message: str) -> str:
    """A message of Spark in the console's style: no capital, no full stop."""
    first = message.split(" ", 1)[0]
    plain = (first[1:].islower() or len(first) == 1) and first != "Spark"
    return (message[0].lower() + message[1:] if plain else message).rstrip(". ") if message else message


def _span(error: Any, text: str) -> Span | None:
    """The span in the statement of an error of Spark."""
    position = _POSITION.search(str(error))
    if position:
        line, column, sql = int(position.group(1)), int(position.group(2)), position.group(3)
        start = text.find(sql)
        if start >= 0:
            lines = sql.split("\n")
            offset = start + sum(len(x) + 1 for x in lines[: line - 1]) + column
            return word_at(text, offset)
    for context in error.getQueryContext() or []:
        if "SQL" not in str(context.contextType()):
            continue
        span = _find(text, context.fragment())
        if span:
            return span
    parameters = error.getMessageParameters() or {}
    name = next((parameters[key] for key in _NAMING if parameters.get(key)), "").replace("`", "").strip('"')
    return _find(text, name) or _find(text, name.rpartition(".")[2])


_NAMING = ("objectName", "relationName", "schemaName", "catalogName", "identifier", "inputSql")
"""Parameters of Spark's errors that name what is at fault."""


def _find(text: str, fragment: str) -> Span | None:
    """The first span of a piece of SQL in a text, as whole words."""
    if not fragment:
        return None
    for match in re.finditer(re.escape(fragment), text):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        whole = not (before.isalnum() and fragment[0].isalnum()) and not (
            after.isalnum() and fragment[-1].isalnum()
        )
        if whole:
            return Span(*match.span())
    return None


def _causes(java: Any) -> list[Any]:
    """A Java exception and its causes, the root cause first."""
    causes = [java]
    while causes[0].getCause() is not None:
        causes.insert(0, causes[0].getCause())
    return causes


def _of_java(java: Any, text: str, relations: Iterable[str]) -> StreamsqlError:
    root, *others = _causes(java)
    texts = "\n".join(cause.toString() or "" for cause in (root, *others))
    words = in_plain_words(texts) or file_words(texts, of_query=False)
    if words:
        return EngineFault(words.fact, detail=words.detail, hint=words.hint, code=words.code)
    if is_no_space(root.toString() or ""):
        return EngineFault(NO_SPACE, hint=_MAKE_SPACE, code="DISK_FULL")
    condition, message = clean(root.getMessage() or root.getClass().getSimpleName())
    head, _, detail = message.partition("\n")
    if "Unexpected table relation" in head:
        return EngineFault("a view cannot be changed", detail="its rows are those of its query")
    kind = root.getClass().getSimpleName()
    if kind == "ConnectException":
        return EngineFault(
            "connection refused", detail=head, hint="is the server running on that port?", code="NO_SERVER"
        )
    if kind.endswith("ClassNotFoundException"):
        said = (clean(cause.getMessage() or "") for cause in others)
        if text := next((text for name, text in said if name == UNKNOWN_FORMAT), ""):
            fact, detail = first_sentence(text)
            return EngineFault(fact, detail=detail, hint=_FORMAT_HINT, condition=UNKNOWN_FORMAT)
        name = head.removeprefix("Class ").removesuffix(" not found")
        return EngineFault(
            f"Spark has no class {name}",
            hint="add its package: --packages group:name:version",
            code="PACKAGE_NOT_AVAILABLE",
        )
    return EngineFault(_lower(head), detail=detail, condition=condition)


UNKNOWN_FORMAT = "DATA_SOURCE_NOT_FOUND"
"""Spark's condition for the name of a format that it does not know."""
_FORMAT_HINT = "its package: USING spark OPTIONS (…, packages 'group:artifact:version'), or --packages"
_MAKE_SPACE = "free space on the disk of the workspace, of the sink or of temporary files"


def _texts(error: Any) -> str:
    """The messages of an exception and its causes, the root cause first."""
    texts = [str(error)]
    while getattr(error, "_cause", None) is not None:
        error = error._cause
        texts.append(getattr(error, "_desc", None) or str(error))
    return "\n".join(reversed(texts))


def query_fault(error: Any, name: str, places: Iterable[str] = ()) -> QueryFault:
    """The fault of a failed query: the root cause in one line, the rest in the detail. places: the folders
    that it writes into.
    """
    subject = f"query {name} failed"
    if is_spark_lost(error):
        lost = spark_lost()
        hint = f"START QUERY {quote_name(name)}; resumes from its checkpoint"
        return QueryFault(lost.message, subject=subject, detail=lost.detail, hint=hint, code=lost.code)
    texts = _texts(error)
    words = in_plain_words(texts) or file_words(texts)
    if words:
        return QueryFault(words.fact, subject=subject, detail=words.detail, hint=words.hint, code=words.code)
    if is_no_space(texts):
        hint = f"free disk space; START QUERY {quote_name(name)}; resumes from its checkpoint"
        return QueryFault(NO_SPACE, subject=subject, detail=full_disk(places), hint=hint, code="DISK_FULL")
    while getattr(error, "_cause", None) is not None:
        error = error._cause
    text = getattr(error, "_desc", None) or str(error)
    raised, where = python_error(text)
    if raised:
        condition, raised = clean(raised)
        return QueryFault(raised, subject=subject, detail=where, code=condition)
    text = re.sub(r"^(?:[a-z]\w*\.)+\w+(?:Exception|Error): ", "", text.split("=== Streaming Query")[0])
    python, place = _of_python(text)
    condition, message = clean(python or text)
    head, detail = (message, place) if place else first_sentence(message)
    hint = "is a server listening on that host and port?" if "Connection refused" in head else ""
    code = condition
    if code == MALFORMED_MESSAGE:
        condition = ""
        hint = SKIP_ROWS
    return QueryFault(head, subject=subject, detail=detail, hint=hint, condition=condition, code=code)


def recurs(error: Any) -> bool:
    """Whether the fault of a query is certain to recur: Spark's analysis refuses it, or its state has
    another schema.
    """
    from pyspark.errors import AnalysisException, ParseException

    while getattr(error, "_cause", None) is not None:
        error = error._cause
    return isinstance(error, (AnalysisException, ParseException)) or "_SCHEMA_NOT_COMPATIBLE" in str(error)


def _of_python(text: str) -> tuple[str, str]:
    """(exception, place) of an error that contains Python's traceback; empty without one.

    The place is in the user's code, not in Spark's or the console's.
    """
    raised = list(
        re.finditer(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b", text, re.MULTILINE)
    )
    trace = text.rfind("Traceback (most recent call last)")
    last = next((r for r in reversed(raised) if r.start() > trace), None)
    if last is None or (trace < 0 and "." not in last.group()):
        return "", ""
    own = [
        (file, line)
        for file, line in re.findall(r'File "([^"]+)", line (\d+)', text[max(trace, 0) : last.start()])
        if not any(
            part in file for part in ("/pyspark/", "/py4j/", "/streamsql/", "pyspark.zip", "/lib/python3")
        )
    ]
    message = text[last.start() :]
    if "." in last.group():  # the messages of Spark's own errors need no class
        return message[last.end() - last.start() :].lstrip(": "), ""
    return message, f"{own[-1][0]}, line {own[-1][1]}" if own else ""
