"""What a person may choose about the console itself: SET streamsql.name, config.toml, flags.

Later layers win: the console's default, the config file, the command line, SET.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamsql.errors import InputFault, NameFault, Span, did_you_mean, nearest

PREFIX = "streamsql."
CONSOLE = "streamsql"
CONFIG_FILE = "config file"
COMMAND_LINE = "command line"
SET = "SET"
LAYERS = (CONFIG_FILE, COMMAND_LINE, SET)

FORMATS = ("table", "csv", "tsv", "json", "jsonl", "markdown", "vertical")
DIALECTS = ("spark", "duckdb", "postgres", "flink", "ksqldb")
ON_OFF = ("on", "off")
_SWITCHES = {"true": "on", "false": "off"}


@dataclass(frozen=True)
class Spec:
    """One preference. kind: choice, text, count (a whole number, 0 too) or seconds (more than 0);
    fixed: chosen when the console starts, so SET comes too late.
    """

    name: str
    default: str
    help: str
    kind: str = "text"
    choices: tuple[str, ...] = ()
    fixed: bool = False


SPECS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        Spec("format", "table", "output format of rows", "choice", FORMATS),
        Spec(
            "expanded", "off", "one line per column; auto: if the table is wider than the window", "choice",
            ("auto", *ON_OFF),
        ),
        Spec("timing", "on", "show the duration below a result", "choice", ON_OFF),
        Spec("null", "NULL", "text shown for NULL in table, vertical and markdown"),
        Spec("max_cell", "60", "maximum width of a value in a table at the prompt; 0: no limit", "count"),
        Spec("max_rows", "1000", "maximum rows at the prompt without a pager; 0: no limit", "count"),
        Spec("pager", "auto", "auto, off, or the command that shows results larger than the window"),
        Spec("color", "auto", "colours; auto: on a terminal only", "choice", ("auto", "always", "never")),
        Spec("editing", "emacs", "key bindings of the prompt", "choice", ("emacs", "vi")),
        Spec("refresh", "0.5", "seconds between two refreshes of a live view", "seconds"),
        Spec("stages", "on", "run a query in stages that Spark refuses on streams", "choice", ON_OFF),
        Spec("generations", "2", "how many generations of a query stay after they were replaced", "count"),
        Spec("staged_rate", "0", "files or messages a second for a staged change; 0: no limit", "count"),
        Spec("dialect", "spark", "SQL dialect of the statements; others are translated", "choice", DIALECTS),
        Spec("event_times", "on", "measure event times as they come", "choice", ON_OFF),
        Spec("rules", "on", "read JSON in Spark by the console's own reader", "choice", ON_OFF),
        Spec("offline", "off", "fetch no packages for connectors", "choice", ON_OFF),
        Spec(
            "hangup", "detach", "whether queries go on or stop when the terminal is lost", "choice",
            ("detach", "stop"),
        ),
        Spec("master", "local[*]", "Spark master", fixed=True),
        Spec("java", "auto", "which Java to use: auto, bundled, system or a folder", fixed=True),
    )
}  # fmt: skip


def is_preference(key: str) -> bool:
    """Whether a setting is the console's own, by its key as written after SET."""
    return key.casefold().startswith(PREFIX)


def spec_of(key: str, span: Span | None = None) -> Spec:
    """The preference of a key, with or without `streamsql.`. Raises NameFault with the nearest key."""
    name = key.casefold().removeprefix(PREFIX)
    if name not in SPECS:
        near = nearest(name, SPECS)
        prefix = PREFIX if is_preference(key) else ""
        hint = f"did you mean {prefix}{near}?" if near else f"there are {', '.join(SPECS)}"
        raise NameFault(f"there is no setting {key}", hint=hint, span=span, code="UNKNOWN_SETTING")
    return SPECS[name]


def check(spec: Spec, value: str, span: Span | None = None) -> str:
    """A value in its one spelling (`ON` and `true` are `on`). Raises InputFault when it cannot be it."""
    value = value.strip() if spec.kind != "text" else value
    if spec.kind == "choice":
        folded = value.casefold()
        folded = _SWITCHES.get(folded, folded) if "on" in spec.choices else folded
        if folded in spec.choices:
            return folded
        wanted = ", ".join(spec.choices[:-1]) + " or " + spec.choices[-1]
        hint = did_you_mean(value, spec.choices)
    elif spec.kind == "count":
        digits = value.lstrip("0") or "0"
        if value.isdecimal() and value.isascii() and len(digits) < 10:
            return digits
        large = len(digits) >= 10 and value.isdecimal()
        wanted, hint = "a whole number" + (" below 1000000000" if large else ", 0 or more"), ""
    elif spec.kind == "seconds":
        number = value.casefold().removesuffix("s").strip()
        try:
            if 0 < float(number) < 86400:
                return number
        except ValueError:
            pass
        wanted, hint = "seconds, more than 0", ""
    else:
        return value
    shown = value if len(value) <= 40 else value[:40] + "…"
    raise InputFault(
        f"{spec.name} is {wanted}, not {shown or 'empty'}", hint=hint, span=span, code="BAD_SETTING"
    )


class Preferences:
    """The values, each with the layer it comes from. One object is shared by session and printer, so
    that a SET is obeyed at once.
    """

    def __init__(self, **given: str) -> None:
        """given: values as if from the command line; raises as `set` does."""
        self._layers: dict[str, dict[str, str]] = {layer: {} for layer in LAYERS}
        for name, value in given.items():
            self.set(name, value, COMMAND_LINE)

    def set(self, key: str, value: str, layer: str = SET, span: Span | None = None) -> str:
        """Take over a value, and return it in its one spelling. Raises NameFault for an unknown key,
        InputFault for a value it cannot have; span is where that is said.
        """
        spec = spec_of(key, span)
        if spec.fixed and layer == SET:
            raise InputFault(
                f"{spec.name} is chosen when the console starts",
                hint=f"--{spec.name} on the command line, or {spec.name} in config.toml",
                span=span,
                code="BAD_SETTING",
            )
        checked = check(spec, value, span)
        self._layers[layer][spec.name] = checked
        return checked

    def layers(self) -> dict[str, dict[str, str]]:
        """What each layer chooses, for `set` in another process."""
        return {layer: dict(values) for layer, values in self._layers.items()}

    def reset(self, key: str, span: Span | None = None) -> None:
        """Take back what SET gave. Raises NameFault for an unknown key."""
        self._layers[SET].pop(spec_of(key, span).name, None)

    def changed(self) -> list[str]:
        """Keys (with `streamsql.`) that SET has given a value."""
        return [PREFIX + name for name in self._layers[SET]]

    def __getitem__(self, name: str) -> str:
        return self._with_origin(name)[0]

    def number(self, name: str) -> float:
        """The value of a preference that is a count or seconds."""
        return float(self[name])

    def count(self, name: str) -> int:
        return int(self[name])

    def origin(self, name: str) -> str:
        """The layer that a value comes from."""
        return self._with_origin(name)[1]

    def _with_origin(self, name: str) -> tuple[str, str]:
        for layer in reversed(LAYERS):
            if name in self._layers[layer]:
                return self._layers[layer][name], layer
        return SPECS[name].default, CONSOLE

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """(key with `streamsql.`, value, where it comes from) of each preference."""
        for name in sorted(SPECS):
            yield (PREFIX + name, *self._with_origin(name))


def as_text(value: Any) -> str | None:
    """A TOML value as the text that SET would take; None when it is not a plain value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else None
