"""SET, RESET and DEFINE."""

from __future__ import annotations

from streamsql.config.preferences import PREFIX, SPECS, is_preference, spec_of
from streamsql.errors import NameFault, did_you_mean, nearest
from streamsql.guard import informing
from streamsql.language.statements.base import Name
from streamsql.language.statements.session import Define, Reset, Set
from streamsql.results import Done, Result
from streamsql.runtime.engine.settings import apply_setting
from streamsql.runtime.engine.spark_classes import SWITCH
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import table
from streamsql.runtime.handlers.old_definitions import with_setting
from streamsql.runtime.parts import SessionParts
from streamsql.secrets import redact_option

_RULES = "rules"
"""The preference that a setting of Spark hands on to the rules in its JVM."""


def _set(parts: SessionParts, statement: Set) -> Result:
    if statement.value is None:
        return _show_settings(parts, statement.key)
    assert statement.key
    key = statement.key.value
    if is_preference(key):
        value = parts.config.preferences.set(key, statement.value, span=statement.key.span)
        if spec_of(key).name == _RULES:
            _set_in_spark(parts, SWITCH, value)
        return Done(message=f"{key.casefold()} = {value}")
    if not key.startswith("spark."):
        raise NameFault(
            f"there is no setting {key}",
            hint=_nearest_setting(parts, key) or f"settings begin with spark. or {PREFIX}",
            span=statement.key.span,
            code="UNKNOWN_SETTING",
        )
    _set_in_spark(parts, key, statement.value)
    notes = informing(lambda: with_setting(parts, key), ())
    return Done(notes, f"{key} = {redact_option(key, statement.value)}")


def _set_in_spark(parts: SessionParts, key: str, value: str) -> None:
    if parts.engine.started or parts.engine.starting:
        spark = parts.spark
        with parts.cancel.holding(parts.queries.starting):  # a start may set it, and restore what it was
            apply_setting(spark, key, value)
    parts.settings.changed[key] = value


def _nearest_setting(parts: SessionParts, key: str) -> str:
    """A hint for an unknown key, which may be a preference without its prefix `streamsql.`."""
    keys = [k for k, _, _ in (*parts.settings.rows(), *parts.config.preferences.rows())]
    own = nearest(key.casefold(), SPECS)
    return did_you_mean(key, keys) or (f"did you mean {PREFIX}{own}?" if own else "")


def _show_settings(parts: SessionParts, key: Name | None) -> Result:
    rows = [*parts.settings.rows(), *parts.config.preferences.rows()]
    if key is not None:
        wanted = PREFIX + spec_of(key.value, key.span).name if is_preference(key.value) else key.value
        rows = [r for r in rows if r[0] == wanted]
        if not rows:
            try:
                value = parts.spark.conf.get(key.value)  # Spark's own default
            except Exception:
                value = "<undefined>"
            rows = [(key.value, redact_option(key.value, value), "Spark")]
    return table(("key", "value", "from"), rows, matters=("value",))


def _reset(parts: SessionParts, statement: Reset) -> Result:
    preferences = parts.config.preferences
    keys = [statement.key.value] if statement.key else [*parts.settings.changed, *preferences.changed()]
    for key in keys:
        if not is_preference(key):
            _reset_in_spark(parts, key)
            continue
        preferences.reset(key, statement.key.span if statement.key else None)
        if spec_of(key).name == _RULES:
            _reset_in_spark(parts, SWITCH)
    return Done(message=f"reset: {', '.join(keys)}" if keys else "nothing was set")


def _reset_in_spark(parts: SessionParts, key: str) -> None:
    parts.settings.changed.pop(key, None)
    if parts.store:
        parts.store.withheld.pop(key, None)
    before = parts.settings.start_conf().get(key)
    if parts.engine.started:
        with parts.cancel.holding(parts.queries.starting):  # as above
            apply_setting(parts.spark, key, before)


def _define(parts: SessionParts, statement: Define) -> Result:
    if statement.if_not_exists and statement.name.value in parts.variables:
        return Done(message=f"{statement.name} is already defined")
    parts.variables[statement.name.value] = statement.value
    return Done(message=f"{statement.name} defined")


DIRECT: Answers = {Set: _set, Reset: _reset, Define: _define}
