"""Candidates for connectors, their options, settings and paths, and inside quotes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from streamsql.connectors.base import Connector, OptionSpec
from streamsql.connectors.registry import connectors
from streamsql.language import reference
from streamsql.language.statements.base import Column
from streamsql.language.tokens import quote
from streamsql.shell.completion.offers import Context, Offer, Source

# The options of kafka for the connection to its brokers.
_LOGIN = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")
# The largest number of entries of a folder that are read.
MOST_ENTRIES = 5000


def _connectors(context: Context) -> Iterator[Offer]:
    """The connectors that the statement at the cursor can use."""
    for connector in connectors().values():
        usable = connector.writes if context.statement.has("SINK", within=4) else connector.reads
        if usable is not None or context.statement.has("CONNECTOR", "CONNECTORS", within=4):
            yield Offer(connector.name, connector.help)


def _connector(context: Context) -> Connector | None:
    """The connector that the statement names after USING, if there is one of that name."""
    return connectors().get(context.statement.connector)


def _specs(context: Context) -> Sequence[OptionSpec]:
    """The options of the statement's connector, including those for the declared columns."""
    statement = context.statement
    if statement.has("TOPICS", within=2):
        return [s for s in connectors()["kafka"].reads or () if s.name.startswith(_LOGIN)]
    connector = _connector(context)
    if connector is None:
        return ()
    if statement.has("SINK", within=4):
        return connector.writes or ()
    return connector.stream_options(tuple(Column(n, t) for n, t in statement.declared_columns))


def _option_keys(context: Context) -> Iterator[Offer]:
    """The options that the statement does not have yet, with their meaning and default."""
    given = context.statement.option_keys
    for spec in _specs(context):
        if spec.name.casefold() not in given:
            shown = f"{spec.help} ({spec.default})" if spec.default else spec.help
            yield Offer(spec.name, shown, keys=(spec.name.casefold(),))


def _option(context: Context) -> OptionSpec | None:
    """The option whose value is expected at the cursor."""
    key = context.statement.option_key
    return next((s for s in _specs(context) if s.name.casefold() == key), None)


def _option_values(context: Context) -> Iterator[Offer]:
    """The known values of the option before the cursor, in quotes."""
    spec = _option(context)
    for value in spec.values if spec else ():
        assert spec is not None
        yield Offer(quote(value), _value_kind(value, spec), keys=(value.casefold(),))


def _value_kind(value: str, spec: OptionSpec) -> str:
    return "default" if value == spec.default else "value"


def _formats(context: Context) -> Iterator[Offer]:
    """The formats of the statement's connector."""
    connector = _connector(context)
    return (Offer(f, "format") for f in ((*connector.formats, *connector.line_formats) if connector else ()))


def _setting_keys(context: Context) -> tuple[Offer, ...]:
    """The settings of SET: the console's preferences, then Spark's settings, those of streaming first."""
    return _all_settings()


@cache
def _all_settings() -> tuple[Offer, ...]:
    from streamsql.config.preferences import PREFIX, SPECS

    offers = [Offer(PREFIX + s.name, f"[{s.default}] {s.help}") for s in SPECS.values() if not s.fixed]
    streaming = "spark.sql.streaming."
    for setting in sorted(reference.settings().values(), key=lambda s: not s.name.startswith(streaming)):
        shown = f"[{setting.default}] {setting.meaning}" if setting.default else setting.meaning
        offers.append(Offer(setting.name, shown, keys=(setting.name.casefold(),)))
    return tuple(offers)


def _setting_values(context: Context) -> Iterator[Offer]:
    """After `SET key =`: the values of the key if they are few, else its default."""
    from streamsql.config.preferences import PREFIX, SPECS

    key = context.statement.setting
    own = SPECS.get(key.removeprefix(PREFIX)) if key.startswith(PREFIX) else None
    sparks = {k.casefold(): s for k, s in reference.settings().items()}.get(key)
    choices = own.choices if own else sparks.choices if sparks else ()
    default = own.default if own else sparks.default if sparks else ""
    plain = default and not any(sign in default for sign in " …")
    for value in choices or ((default,) if plain else ()):
        yield Offer(value, "default" if value == default else "value")


SOURCES: dict[str, Source] = {
    "Connector": _connectors,
    "FormatName": _formats,
    "OptionKey": _option_keys,
    "OptionValue": _option_values,
    "SettingKey": _setting_keys,
    "Rest": _setting_values,
}


# ---- inside quotes -------------------------------------------------------------------------


def in_quote(context: Context) -> Iterator[Offer]:
    """The candidates inside an open quote: a path, or the key or value of an option if one is expected."""
    statement = context.statement
    spec = _option(context) if "OptionValue" in statement.expected else None
    path_option = spec.kind == "path" if spec else statement.last == "PATH" and statement.has("OPTIONS")
    if statement.expects_path or path_option:
        yield from _paths(context.typed)
        return
    offers: list[Offer] = []
    if spec:
        offers = [Offer(v, _value_kind(v, spec)) for v in spec.values]
    elif "OptionKey" in statement.expected:
        offers = list(_option_keys(context))
    typed = context.typed
    for offer in offers:
        if offer.text.casefold().startswith(typed.casefold()) and offer.text != typed:
            yield offer._replace(typed=typed, closes=True)


def _paths(typed: str) -> Iterator[Offer]:
    """The files and folders that begin with the typed text, folders with a slash at the end; hidden ones
    only if the dot is typed. They replace the last part of the path.
    """
    head, slash, tail = typed.rpartition("/")
    if typed == "~":
        yield Offer("~/", "folder", typed="~")
        return
    try:
        with os.scandir(Path(head + slash or ".").expanduser()) as entries:
            names = sorted(
                (e.name, e.is_dir())
                for e, _ in zip(entries, range(MOST_ENTRIES), strict=False)
                if e.name.startswith(tail) and (tail.startswith(".") or not e.name.startswith("."))
            )
    except (OSError, RuntimeError, ValueError):  # no such folder, no such user, no such path
        return
    for name, folder in names:
        text = quote(name)[1:-1] + ("/" if folder else "")
        if text != tail:
            yield Offer(text, "folder" if folder else "file", typed=tail)
