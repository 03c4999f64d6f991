"""Short forms: lines that begin with a backslash (psql) or a point (DuckDB) and stand for statements.

Those that only other consoles have are rows of HELP SWITCHING FROM psql and duckdb (dialects/statements.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamsql.config.preferences import PREFIX, SPECS, Preferences
from streamsql.errors import InputFault, Span, did_you_mean


@dataclass(frozen=True)
class Short:
    """A short form. names: without backslash, the first is shown; takes: its argument as shown, empty for
    none, in [ ] if it is optional; make: the statement with {} for the argument, after a | that without one;
    or a function of the argument and the preferences; "" for a command of the prompt, which stands for
    itself.
    """

    names: tuple[str, ...]
    takes: str
    help: str
    make: str | Callable[[str, Preferences], str] = ""

    def statement(self, given: str, preferences: Preferences) -> str:
        """The statement, without its `;`, or the command of the prompt with its argument."""
        if callable(self.make):
            return self.make(given, preferences)
        with_argument, _, without = (self.make or f"\\{self.names[0]} {{}}|\\{self.names[0]}").partition("|")
        return with_argument.format(given) if given else without or with_argument


def _listed(one: str, all_: str) -> Callable[[str, Preferences], str]:
    """one: the statement about one name, with {} for it; all_: the list, also of names like a pattern."""

    def make(given: str, preferences: Preferences) -> str:
        if "*" in given or "%" in given:
            return f"{all_} LIKE {_quoted(given)}"
        return one.format(given) if given else all_

    return make


def _switch(name: str) -> Callable[[str, Preferences], str]:
    """Toggle a preference, or set it to the argument."""

    def make(given: str, preferences: Preferences) -> str:
        value = given or ("off" if preferences[name] != "off" else "on")
        return f"SET {PREFIX}{name} = {value}"

    return make


def _watch(given: str, preferences: Preferences) -> str:
    """\\watch SECONDS, or i=SECONDS c=COUNT, repeats the last statement; \\watch NAME is WATCH."""
    number, count = "", ""
    for word in given.split():
        value = word.removeprefix("i=").removeprefix("interval=").removesuffix("s")
        times = word.removeprefix("c=").removeprefix("count=")
        if times != word and times.isdigit() and not count:
            count = times
        elif value.replace(".", "", 1).isdigit() and not number:
            number = value
        elif "=" in word:
            raise InputFault(f"\\watch takes i=SECONDS and c=COUNT, not {word}", code="BAD_ARGUMENT")
        else:
            return f"WATCH {given}"
    return f"\\watch {number or 2} {count}".rstrip()


def _copy(given: str, preferences: Preferences) -> str:
    from streamsql.language.dialects.statements import quoted_path

    return f"COPY {quoted_path(given)}"


def _source(given: str, preferences: Preferences) -> str:
    return f"SOURCE {_quoted(given)}"


def _quoted(given: str) -> str:
    from streamsql.language.tokens import quote

    quoted = given[:1] in ("'", '"') and given[-1:] == given[:1] and len(given) > 1
    return quote(given[1:-1] if quoted else given)


def _set(given: str, preferences: Preferences) -> str:
    """\\set name value, \\set name = value; preferences of the console need no `streamsql.`."""
    if not given:
        return "SET"
    name, _, text = given.partition(" ")
    if text.strip() and name.isidentifier() and name.casefold() not in SPECS and "=" not in given:
        return f"DEFINE {name} = {_quoted(text.strip())}"  # a variable of psql
    key, _, value = given.partition("=") if "=" in given else given.partition(" ")
    key, value = key.strip(), value.strip()
    key = PREFIX + key if key.casefold() in SPECS or "." not in key else key
    return f"SET {key} = {value}" if value else f"SET {key}"


def _reset(given: str, preferences: Preferences) -> str:
    key = PREFIX + given if given and "." not in given else given
    return f"RESET {key}".strip()


SHORT = (
    Short(("q", "quit", "exit"), "", "leave", "EXIT"),
    Short(("?",), "[words]", "list the short forms, or help", "HELP {}|\\?"),
    Short(("h", "help"), "[words]", "help on a statement or topic", "HELP {}|HELP"),
    Short(
        ("d",), "[name]", "list all that FROM can read, or describe one thing",
        _listed("DESCRIBE TABLE {}", "SHOW TABLES"),
    ),
    Short(
        ("d+",), "[name]", "the same, with the format, location and comment of a table of Spark",
        _listed("DESCRIBE TABLE EXTENDED {}", "SHOW TABLES"),
    ),
    Short(("ds",), "[name]", "list the sinks, or describe one", _listed("DESCRIBE SINK {}", "SHOW SINKS")),
    Short(
        ("dl",), "[name]", "list the live tables, or describe one",
        _listed("DESCRIBE LIVE TABLE {}", "SHOW LIVE TABLES"),
    ),
    Short(
        ("dq",), "[name]", "list the queries, or describe one", _listed("DESCRIBE QUERY {}", "SHOW QUERIES"),
    ),
    Short(("stop",), "name", "stop a query, or ALL", "STOP QUERY {}"),
    Short(("start",), "name", "resume a query, or ALL", "START QUERY {}"),
    Short(("watch",), "[name|seconds]", "watch a live table, or repeat the last statement", _watch),
    Short(
        ("why",), "[name]", "why the last query, or one by name, gives no rows",
        "WHY QUERY {}|WHY",
    ),
    Short(
        ("connectors",), "[name]", "list the connectors, or describe one",
        "SHOW CONNECTORS {}|SHOW CONNECTORS",
    ),
    Short(("i", "include"), "file", "run the statements of a file", _source),
    Short(("copy",), "t TO 'f.csv'|t FROM 'f.csv'", "write rows to a file, or read them", _copy),
    Short(("x",), "[on|off|auto]", "one line per column, on or off", _switch("expanded")),
    Short(("timing",), "[on|off]", "show the duration of a statement, on or off", _switch("timing")),
    Short(
        ("mode",), "[format]", f"output format: {', '.join(SPECS['format'].choices)}",
        f"SET {PREFIX}format = {{}}|SET {PREFIX}format",
    ),
    Short(("set",), "[name value]", "show the settings, or change one", _set),
    Short(("reset",), "[name]", "reset a setting to its default", _reset),
    Short(("g",), "[file]", "run the statement, or the last one again; its rows into a file"),
    Short(("gx",), "", "the same, with one line per column"),
    Short(("p",), "", "show the statement that is being typed"),
    Short(("r",), "", "discard the statement that is being typed"),
    Short(("last",), "", "show the last result again, in full"),
    Short(("e", "edit"), "[file]", "open the last statement, or a file, in your editor"),
    Short(("o",), "[file]", "write rows to a file; without one, here again"),
    Short(("once",), "file", "write the rows of the next statement to a file"),
    Short(("echo",), "[text]", "print a text, with ${name} replaced"),
    Short(("!",), "[command]", "run a command in your shell"),
    Short(("errverbose",), "", "show the last error, whole"),
    Short(("conninfo",), "", "show where statements run"),
    Short(("fmt",), "", "format the last statement, as streamsql fmt does, for editing"),
)  # fmt: skip
_BY_NAME = {name: short for short in SHORT for name in short.names}
SIGNS = ("\\", ".", "?")
"""The first characters of short forms: no statement begins with one."""


def expand(text: str, preferences: Preferences) -> str | None:
    """The statement, with its `;`, of a line that begins with one of SIGNS; None for any other text. Commands
    of the prompt such as \\last, which no statement corresponds to, are returned with a backslash and their
    argument. Raises InputFault, its span within text, for an unknown short form, or one with a missing or
    unexpected argument.
    """
    line = text.strip().rstrip(";").rstrip()
    if not line.startswith(SIGNS):
        return None
    if line[0] == "?":
        return f"HELP {line[1:].strip()};" if line[1:].strip() else "\\?"
    name, given = (*line[1:].split(None, 1), "", "")[:2]
    start = text.index(line[0])
    span = Span(start, start + 1 + len(name))
    plain = name if name in _BY_NAME else name.rstrip("+") or name  # most forms show all that there is
    other = _of_another_prompt(line, name, span)
    if other:
        return other
    short = (_BY_NAME.get(plain) or _BY_NAME.get(plain.casefold())) if line[0] == "\\" else None
    if short is None:
        raise _unknown(line[0], name, span)
    usage = f"\\{short.names[0]} {short.takes}".strip()
    if given and not short.takes:
        raise InputFault(
            f"\\{name} takes no argument, not {given}", hint=usage, span=span, code="BAD_ARGUMENT"
        )
    if not given and short.takes and not short.takes.startswith("["):
        raise InputFault(f"\\{name} needs a {short.takes}", hint=usage, span=span, code="BAD_ARGUMENT")
    statement = short.statement(given, preferences)
    return statement if statement.startswith("\\") else statement + ";"


def _of_another_prompt(line: str, name: str, span: Span) -> str:
    """The statement for a command that only another prompt has; "" if none has it. Raises InputFault if there
    is no statement for it, or if that is to be completed first.
    """
    from streamsql.language.dialects.statements import command_form

    form = command_form(line.replace("+", "", 1) if name.endswith("+") else line)
    if form is None:
        return ""
    habit, statement = form
    if habit.runs:
        return statement if statement.startswith("\\") else statement + ";"
    raise habit.fault(InputFault, statement, span)


def _unknown(sign: str, name: str, span: Span) -> InputFault:
    if sign != "\\":
        return InputFault(
            f"there is no command {sign}{name}",
            hint="HELP switching from duckdb; lists those of DuckDB, \\? the short forms",
            span=span,
            code="UNKNOWN_STATEMENT",
        )
    return InputFault(
        f"there is no short form \\{name}",
        hint=did_you_mean("\\" + name, ["\\" + n for n in _BY_NAME]) or "\\? lists them",
        span=span,
        code="UNKNOWN_STATEMENT",
    )


def listing() -> str:
    """All short forms with their descriptions, as a table of prose."""
    shown = [(f"\\{s.names[0]} {s.takes}".strip(), s.help) for s in SHORT]
    return "\n".join(f"    {usage}\t{help}" for usage, help in shown)
