"""Candidates for connectors, their options, settings and paths, and for what is inside quotes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamsql.connectors.base import Connector, OptionSpec
from streamsql.connectors.registry import connectors
from streamsql.language import reference
from streamsql.language.statements.base import Column
from streamsql.language.tokens import Token, quote, unquote
from streamsql.shell.completion.spot import Offer, Spot, declared, dotted, expected

# The options of kafka that say how one gets to its brokers.
_LOGIN = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")
# Entries of a folder that are looked at.
MOST_ENTRIES = 5000


def connector_names(spot: Spot) -> Iterator[Offer]:
    """The connectors that can do what the statement at the cursor wants."""
    words = {t.upper for t in spot.tokens[:4]}
    for made in connectors().values():
        usable = made.writes if "SINK" in words else made.reads
        if usable is not None or words & {"CONNECTORS", "CONNECTOR"}:
            yield Offer(made.name, made.help)


def connector_of(spot: Spot) -> Connector | None:
    """The connector that the statement names behind USING, if there is one of that name."""
    using = next((i for i, t in enumerate(spot.tokens) if t.upper == "USING"), None)
    if using is None:
        return None
    name = ""
    for token in spot.tokens[using + 1 :]:
        if name and token.text != "-" and not name.endswith("-"):
            break
        name += unquote(token).casefold()
    return connectors().get(name)


def specs(spot: Spot) -> Sequence[OptionSpec]:
    """The options that the statement's connector takes, those of the declared columns too."""
    if spot.has("TOPICS", 2):
        return [s for s in connectors()["kafka"].reads or () if s.name.startswith(_LOGIN)]
    made = connector_of(spot)
    if made is None:
        return ()
    if spot.has("SINK", 4):
        return made.writes or ()
    return made.stream_options(tuple(Column(n, t) for n, t in declared(spot.tokens)))


def option_keys(spot: Spot) -> Iterator[Offer]:
    """The options that the statement does not give yet, with their meaning and default."""
    options = next((i for i, t in enumerate(spot.tokens) if t.upper == "OPTIONS"), 0)
    given = {"".join(unquote(t) for t in key).casefold() for key in _given_keys(spot.tokens[options + 2 :])}
    for spec in specs(spot):
        if spec.name.casefold() not in given:
            shown = f"{spec.help} ({spec.default})" if spec.default else spec.help
            yield Offer(spec.name, shown, keys=(spec.name.casefold(),))


def _given_keys(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each key of an option list: those up to its value."""
    key: list[Token] = []
    for token in tokens:
        if token.text == ",":
            key = []
        elif not key:
            key = [token]
            yield key
        elif token.text in (".", "-") or key[-1].text in (".", "-"):
            key.append(token)


def _option(spot: Spot) -> OptionSpec | None:
    """The option whose value is due."""
    tokens = spot.tokens[:-1] if spot.tokens[-1:] and spot.tokens[-1].text == "=" else spot.tokens
    before = tokens[:-1]
    done, key = dotted(before, unquote(tokens[-1])) if tokens else ([], "")
    return next((s for s in specs(spot) if s.name.casefold() == key.casefold()), None)


def option_values(spot: Spot) -> Iterator[Offer]:
    """The known values of the option before the cursor, in quotes."""
    spec = _option(spot)
    if spec is None:
        return
    for value in spec.values:
        yield Offer(quote(value), _value_kind(value, spec), keys=(value.casefold(),))


def _value_kind(value: str, spec: OptionSpec) -> str:
    return "default" if value == spec.default else "value"


def formats(spot: Spot) -> Iterator[Offer]:
    """The formats that the statement's connector takes."""
    made = connector_of(spot)
    return (Offer(f, "format") for f in (made.formats if made else ()))


def setting_keys(spot: Spot) -> Iterator[Offer]:
    """What SET can change: the console's own settings, then Spark's, those of streaming first."""
    from streamsql.preferences import PREFIX, SPECS

    for spec in (s for s in SPECS.values() if not s.fixed):
        yield Offer(PREFIX + spec.name, f"[{spec.default}] {spec.help}")
    streaming = "spark.sql.streaming."
    for found in sorted(reference.settings().values(), key=lambda s: not s.name.startswith(streaming)):
        shown = f"[{found.default}] {found.meaning}" if found.default else found.meaning
        yield Offer(found.name, shown, keys=(found.name.casefold(),))


def setting_values(spot: Spot) -> Iterator[Offer]:
    """Behind `SET key =`: the values of the key where they are few, else its default."""
    from streamsql.preferences import PREFIX, SPECS

    if not spot.has("SET", 1) or spot.tokens[-1].text != "=":
        return
    key = "".join(unquote(t) for t in spot.tokens[1:-1]).casefold()
    own = SPECS.get(key.removeprefix(PREFIX)) if key.startswith(PREFIX) else None
    known = {k.casefold(): s for k, s in reference.settings().items()}.get(key)
    choices = own.choices if own else known.choices if known else ()
    default = own.default if own else known.default if known else ""
    plain = default and not any(sign in default for sign in " …")
    for value in choices or ((default,) if plain else ()):
        yield Offer(value, "default" if value == default else "value")


# ---- inside quotes -------------------------------------------------------------------------


def in_quote(spot: Spot) -> Iterator[Offer]:
    """What may stand in a quote that is open: a path, or an option's key or value, where one is due."""
    wanted = expected(spot.tokens)
    last = spot.tokens[-1].upper if spot.tokens else ""
    spec = _option(spot) if "OptionValue" in wanted else None
    if "Path" in wanted or (spec and spec.kind == "path") or last in ("LOCATION", "INPATH", "CHECKPOINT"):
        yield from paths(spot.typed)
    elif last == "PATH" and spot.has("OPTIONS") and spec is None:
        yield from paths(spot.typed)  # of Spark's CREATE TABLE … USING
    else:
        offers: list[Offer] = []
        if spec:
            offers = [Offer(v, _value_kind(v, spec)) for v in spec.values]
        elif "OptionKey" in wanted:
            offers = list(option_keys(spot))
        for offer in offers:
            if offer.text.casefold().startswith(spot.typed.casefold()) and offer.text != spot.typed:
                yield offer._replace(typed=spot.typed, closes=True)


def paths(typed: str) -> Iterator[Offer]:
    """Files and folders that begin as typed, folders with a slash behind them; hidden ones only when
    the dot is typed. What is replaced is the last part of the path.
    """
    head, slash, tail = typed.rpartition("/")
    if typed == "~":
        yield Offer("~/", "folder", typed="~")
        return
    try:
        with os.scandir(Path(head + slash or ".").expanduser()) as entries:
            found = sorted(
                (e.name, e.is_dir())
                for e, _ in zip(entries, range(MOST_ENTRIES), strict=False)
                if e.name.startswith(tail) and (tail.startswith(".") or not e.name.startswith("."))
            )
    except (OSError, RuntimeError, ValueError):  # no such folder, no such user, no such path
        return
    for name, folder in found:
        text = quote(name)[1:-1] + ("/" if folder else "")
        if text != tail:
            yield Offer(text, "folder" if folder else "file", typed=tail)
