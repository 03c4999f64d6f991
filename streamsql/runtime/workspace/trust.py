"""Settings that can make Spark load or run code: an untrusted workspace does not apply them."""

from __future__ import annotations

import re

_RUNS_CODE = re.compile(
    r"""spark\.(
        master | remote | files | archives | extraListeners
      | (jars | plugins | pyspark | python | r | submit | kubernetes | metrics | executorEnv)(\..*)?
      | yarn\.appMasterEnv\..* | sql\.catalog\..*
      | .*(java.?options | class.?path | library.?path | listeners | extensions)
      | .*(discoveryScript | script | command | shell)(\..*)?
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_NAMES_CLASS = re.compile(
    r".*(class|classes|className|impl|providers?|factory|mapping|serializer|codecs?|registrator|protocol"
    r"|handler|filters|manager)",
    re.IGNORECASE,
)
_OF_SPARK = re.compile(r"[\w$-]*|org\.apache\.spark\.[\w.$]+")
"""A class of Spark, or a short name."""


def can_run_code(key: str, value: str) -> bool:
    """Whether a setting can load or run code that is not Spark's own, or send queries elsewhere."""
    if _RUNS_CODE.fullmatch(key):
        return True
    return bool(_NAMES_CLASS.fullmatch(key)) and not _OF_SPARK.fullmatch(value)
