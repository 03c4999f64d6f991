"""The character sets among the options of a stream or sink, before Spark reads or writes with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streamsql.connectors.base import OptionSpec
from streamsql.connectors.option_kinds import CHARSET, SPARK_CHARSET
from streamsql.errors import SyntaxFault, did_you_mean
from streamsql.language.statements.base import Option
from streamsql.runtime.engine.java_classes import java_class

_OF_SPARK = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16BE", "UTF-16LE", "UTF-16", "UTF-32")
"""Those that Spark 4.3 takes for csv and json."""
_ALL_OF_JAVA = "spark.sql.legacy.javaCharsets"
"""The setting under which it takes all that Java knows."""


def check_charsets(
    session: Callable[[], Any], specs: Iterable[OptionSpec], options: Sequence[Option]
) -> None:
    """Raise SyntaxFault for a character set that Spark, as it is set, or Java does not know. session: gives
    Spark, which is waited for only if there is such an option.
    """
    kinds = {spec.name.casefold(): spec for spec in specs if spec.kind in (CHARSET, SPARK_CHARSET)}
    for option in options:
        spec = kinds.get(option.key.value.casefold())
        if spec is None:
            continue
        spark, name = session(), option.value.value
        any_of_java = spec.kind == CHARSET or spark.conf.get(_ALL_OF_JAVA, "false") == "true"
        if _is_of_java(spark, name) if any_of_java else name.upper() in _OF_SPARK:
            continue
        more = f"SET {_ALL_OF_JAVA} = true; lets Spark take others of Java's"
        raise SyntaxFault(
            f"option {spec.name} takes a character set, not '{name}'",
            detail="" if any_of_java else f"Spark takes {', '.join(_OF_SPARK)}",
            hint=did_you_mean(name.upper(), _OF_SPARK) or ("" if any_of_java else more),
            span=option.value.span,
            code="BAD_OPTION_VALUE",
        )


def _is_of_java(spark: Any, name: str) -> bool:
    from pyspark.errors import IllegalArgumentException

    try:
        return bool(java_class(spark, "java.nio.charset.Charset").isSupported(name))
    except IllegalArgumentException:  # no name that a character set could have
        return False
