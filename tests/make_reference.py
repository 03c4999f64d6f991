"""Writes streamsql/language/reference.json, what completion tells of Spark, from the running Spark.

Usage: make_reference.py. Run it when the wanted version of Spark changes; test_completion.py finds a
file that no longer agrees.
"""

from __future__ import annotations

import html
import json
import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[1] / "streamsql" / "language" / "reference.json"
SIGNATURE, MEANING, DEFAULT = 60, 100, 80

# They are settings of a Hive server, which the console does not start.
_NOT_OURS = re.compile(r"spark\.sql\.(hive|thrift|legacy\.hive)", re.IGNORECASE)
# Too long as Spark writes it, and too much used to be cut.
_SHORTER = {"window": "window(time_column, duration[, slide[, start]])"}
# Classes that a setting can name; Spark takes any.
_STATE = "org.apache.spark.sql.execution.streaming.state."
_CLASSES = {
    "spark.sql.streaming.stateStore.providerClass": (
        f"{_STATE}HDFSBackedStateStoreProvider|{_STATE}RocksDBStateStoreProvider"
    )
}
# Its default is where the machine stands.
_OF_THE_MACHINE = {"spark.sql.session.timeZone": "the system's"}


def reference(spark: Any) -> dict[str, Any]:
    """{keywords: the words of its grammar, functions: name → [signature, meaning, kind], settings: key →
    [default, meaning, choices]}.

    choices: "boolean", the values with | between them, or nothing.
    """
    python = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    functions = {}
    for info in python.listBuiltinFunctionInfos():
        found = function(info.getName(), info.getUsage())
        if found:
            functions[info.getName()] = [*found, kind(spark, info)]
    return {
        "spark": spark.version,
        "keywords": sorted(row.keyword for row in spark.sql("SELECT keyword FROM sql_keywords()").collect()),
        "functions": dict(sorted(functions.items())),
        "settings": dict(sorted(settings(spark, python).items())),
    }


_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
# Spark's documentation groups some aggregates and generators by their subject (sketch, json, variant); the
# planner has to know what they do, so here their classes decide.
_KINDS = {
    "agg": (f"{_EXPRESSIONS}aggregate.AggregateFunction", f"{_EXPRESSIONS}RuntimeReplaceableAggregate"),
    "generator": (f"{_EXPRESSIONS}Generator",),
}


def kind(spark: Any, info: Any) -> str:
    """agg or generator by the class that implements a function, else Spark's group of functions."""
    group = str(info.getGroup().removesuffix("_funcs"))
    if group == "window":  # row_number and the like are aggregates to Spark, but stand before OVER only
        return group
    load = spark._jvm.org.apache.spark.util.Utils.classForName
    own = load(info.getClassName(), False, False)
    for name, classes in _KINDS.items():
        if any(load(c, False, False).isAssignableFrom(own) for c in classes):
            return name
    return group


def function(name: str, usage: str) -> tuple[str, str] | None:
    """Signature and meaning out of Spark's usage text; None for an operator."""
    if not re.fullmatch(r"[a-z_]\w*", name):
        return None
    text = re.sub(r"\(\s+|\s+\)", lambda m: m.group().strip(), " ".join(usage.split()))
    starts = [m.start() for m in re.finditer(rf"(?<![\w`.]){re.escape(name)}\(", text)]
    forms: list[str] = []
    meaning = ""
    for start, after in zip(starts, [*starts[1:], len(text)], strict=False):
        end = _closed(text, start + len(name))
        behind = re.match(r"(\[? WITHIN GROUP [^-]*?| ?/ \w+\([^)]*\))? - ", text[end:])
        if behind:
            form = text[start:end] + (behind.group(1) or "").rstrip()
            forms.append(form if len(form) <= SIGNATURE else text[start:end])
            meaning = meaning or text[end + behind.end() : max(after, end + behind.end())]
    if not forms:
        return None
    signature = _SHORTER.get(name, forms[0])
    for form in forms[1:]:
        if form != signature and len(signature) + len(form) + 3 <= SIGNATURE:
            signature += " | " + form
    return _cut(signature, SIGNATURE), sentence(meaning)


def _closed(text: str, opening: int) -> int:
    """Offset behind the parenthesis that closes the one at opening."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at + 1
    return len(text)


def settings(spark: Any, python: Any) -> dict[str, list[str]]:
    """Settings that can be changed at run time: the public ones, and all of streaming."""
    entries = getattr(getattr(spark._jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    known = {c._1(): (c._2(), c._3()) for c in python.listRuntimeSQLConfigs()}
    for entry in entries.getConfigEntries().toArray():
        if entry.key().startswith("spark.sql.streaming."):
            known.setdefault(entry.key(), (entry.defaultValueString(), entry.doc()))
    trial = spark.newSession()  # values are tried out where they disturb nobody
    found = {}
    for key, (default, doc) in known.items():
        if not _NOT_OURS.match(key) and trial.conf.isModifiable(key):
            default = _OF_THE_MACHINE.get(key, "" if default == "<undefined>" else default)
            found[key] = [_cut(default, DEFAULT), sentence(doc), choices(trial, key)]
    return found


def choices(trial: Any, key: str) -> str:
    """What a setting can be, out of Spark's complaint about a value that it cannot be."""
    try:
        trial.conf.set(key, "?!")
    except Exception as error:
        said = " ".join(str(error).split("JVM stacktrace")[0].split())
        if "'boolean' value" in said:
            return "boolean"
        one_of = re.search(r"one of '([^']*)'", said)
        if one_of:
            return "|".join(sorted(v.strip() for v in one_of.group(1).split(",")))
        valid = re.search(r"[Vv]alid values are (.*?)\.?(?: SQLSTATE|$)", said)
        return "|".join(re.findall(r"'([^']*)'", valid.group(1))) if valid else ""
    trial.conf.unset(key)
    return _CLASSES.get(key, "")


def sentence(text: str) -> str:
    """The first sentence of a description, in one line."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", " ".join(text.split())))
    plain = re.sub(r"^\((?:[Ee]xperimental|[Dd]eprecated[^)]*)\) ?(?=.)", "", plain)
    first = re.split(r"(?<=[a-z0-9`')\]])\. (?=[A-Z`])", plain, maxsplit=1)[0]
    return _cut(first.rstrip(" ."), MEANING)


def _cut(text: str, length: int) -> str:
    """At most that many characters, cut between words where that can be."""
    if len(text) <= length:
        return text
    short = text[: length - 1]
    return (short.rsplit(" ", 1)[0] if " " in short else short).rstrip(" ,;") + "…"


def write(content: dict[str, Any]) -> str:
    """The file's text: an entry a line, so that a change of Spark is read as a diff."""
    parts = []
    for name, value in content.items():
        if isinstance(value, dict):
            lines = [f"{json.dumps(k)}:{json.dumps(v, ensure_ascii=False)}" for k, v in value.items()]
            parts.append(f"{json.dumps(name)}:{{\n" + ",\n".join(lines) + "\n}")
        elif isinstance(value, list):
            parts.append(
                f"{json.dumps(name)}:[\n" + "\n".join(textwrap.wrap(json.dumps(value)[1:-1], 110)) + "\n]"
            )
        else:
            parts.append(f"{json.dumps(name)}:{json.dumps(value)}")
    return "{" + ",\n".join(parts) + "}\n"


def main() -> None:
    from streamsql.config.folders import cache_folder
    from streamsql.runtime.engine import jvm
    from streamsql.runtime.engine.java import find_java
    from streamsql.runtime.engine.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        conf = Settings.make("local[1]", {}).start_conf()
        spark = jvm.start_session(conf, Path(folder) / "log", cache_folder(), find_java())
        content = reference(spark)
        spark.stop()
    REFERENCE.write_text(write(content), encoding="utf-8")
    print(f"{len(content['functions'])} functions, {len(content['settings'])} settings")


if __name__ == "__main__":
    main()
