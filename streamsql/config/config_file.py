"""config.toml: preferences at the top, Spark's settings in the table [spark]."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamsql.config.folders import config_folder
from streamsql.config.preferences import CONFIG_FILE, SPECS, Preferences, as_text
from streamsql.errors import InputFault, Source, Span, StreamsqlError, UsageFault, did_you_mean, reason_of
from streamsql.secrets import is_secret_key


@dataclass
class ConfigFile:
    """The contents of a config file. path: its path, None with --no-config; exists: whether the file exists;
    spark: settings by key; warnings: a line for each unknown key.
    """

    path: Path | None = None
    exists: bool = False
    spark: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def init_script(self) -> Path | None:
        """init.sql next to the config file, when it is there: run before the first prompt."""
        path = (self.path.parent if self.path else config_folder()) / "init.sql"
        return path if path.is_file() else None


def read_config(given: str | None, preferences: Preferences) -> ConfigFile:
    """Read a config file into preferences. given: --config, else the one of the config folder, which
    need not be there. Raises UsageFault, placed in the file, when it cannot be used.
    """
    path = Path(given) if given else config_folder() / "config.toml"
    if not given and not path.exists():
        return ConfigFile(path)
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise UsageFault(f"cannot read {path}: {reason_of(error)}", code="BAD_CONFIG") from None
    except UnicodeDecodeError as error:
        raise UsageFault(f"{path} is not UTF-8 (byte {error.start})", code="BAD_CONFIG") from None
    source = Source(str(path), text)
    config = ConfigFile(path, exists=True)
    for key, value in _parse(source).items():
        if key == "spark":
            config.spark = _spark(value, source)
        elif key not in SPECS:
            hint = did_you_mean(key, [*SPECS, "spark"])
            place = source.line_column(_span(source, key).start)[0]
            config.warnings.append(
                f"{path}:{place}: there is no setting {key}" + (f"; {hint}" if hint else "")
            )
        else:
            _take(key, value, source, preferences)
    return config


def _parse(source: Source) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        message, at = str(error), re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        offset = len(source.text)
        if at:
            message = message[: at.start()]
            lines = source.text.split("\n")
            offset = sum(len(line) + 1 for line in lines[: int(at[1]) - 1]) + int(at[2]) - 1
        number, column = source.line_column(offset)
        message = f"this is not TOML: {message.strip()[:1].lower()}{message.strip()[1:]}"
        if any(map(is_secret_key, re.findall(r"[\w.-]+", source.line(number)))):  # no part of it is shown
            raise UsageFault(f"{source.name}:{number}:{column}: {message}", code="BAD_CONFIG") from None
        raise UsageFault(message, code="BAD_CONFIG").at(source, Span(offset, offset + 1)) from None


def _take(key: str, value: Any, source: Source, preferences: Preferences) -> None:
    text = as_text(value)
    number_wanted = SPECS[key].kind in ("count", "seconds")
    try:
        if text is None or (number_wanted and isinstance(value, bool)):
            raise InputFault(f"{key} is one value, not {_kind(value)}", code="BAD_CONFIG")
        preferences.set(key, text, CONFIG_FILE)
    except StreamsqlError as error:
        raise UsageFault(error.message, hint=error.hint, code="BAD_CONFIG").at(
            source, _span(source, key)
        ) from None


def _spark(value: Any, source: Source) -> dict[str, str]:
    """Settings of Spark: quoted keys, dotted keys, with or without `spark.` in front."""
    if not isinstance(value, dict):
        raise UsageFault(
            "spark is a table of settings",
            hint='[spark]\n"spark.sql.shuffle.partitions" = 4',
            code="BAD_CONFIG",
        ).at(source, _span(source, "spark"))
    settings: dict[str, str] = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            nested = _spark(inner, source)
            settings |= {f"{key}.{name.removeprefix('spark.')}": v for name, v in nested.items()}
        else:
            text = as_text(inner)
            if text is None:
                raise UsageFault(f"{key} is one value, not {_kind(inner)}", code="BAD_CONFIG").at(
                    source, _span(source, key)
                )
            settings[key] = text
    return {k if k.startswith("spark.") else f"spark.{k}": v for k, v in settings.items()}


def _kind(value: Any) -> str:
    return {dict: "a table", list: "a list", bool: "true or false"}.get(type(value), "a date or time")


def _span(source: Source, key: str) -> Span:
    """Where a key stands: tomllib does not say, so its first line is looked for."""
    match = re.search(rf"(?m)^[^\n#=]*?({re.escape(key)})[\"'\]]*\s*(?:=|\.|$)", source.text)
    return Span(*match.span(1)) if match else Span(0, 1)
