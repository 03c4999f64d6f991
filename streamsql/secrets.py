"""Which keys hold secrets, and the secrets inside texts that are not SQL: addresses, settings, messages.

SQL is read by language/redaction, token by token; what is inside its strings comes here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

HIDDEN = "***"
"""What stands in the place of a secret, wherever something is shown or written."""
Range = tuple[int, int]

# Parts of a key, without dots, dashes and underscores.
_PARTS = (
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "jaas",
    "authorization", "authorisation", "userinfo", "apikey", "privatekey", "accesskey", "accountkey",
    "sharedkey", "signingkey", "encryptionkey", "masterkey", "keystorekey", "sharedaccess",
    "connectionstring", "storepass", "keypass",
)  # fmt: skip
_ANY_PART = "|".join(f"{p[:-3]}[._-]?key" if p.endswith("key") else p for p in _PARTS)
SPARK_PATTERN = f"(?i){_ANY_PART}"
"""The same for spark.redaction.regex, by which Spark hides the values of options in its plans."""
LOG_PATTERNS = (
    r"(://)[^\s/'\"@:]*:[^\s'\"@]*(?=@)",
    rf"(?i)((?:{_ANY_PART})[\w.-]*['\"]?\s*[=:]\s*['\"]?)[^\s'\",;&)]+",
)
"""What the log of the JVM hides, behind the first group: without braces, which log4j cannot take."""
_WORDS = frozenset({"pass", "pw", "sas"})
# A word of a key that is a slip of the pen away from one of these is one of them.
_MISSPELT = ("password", "passphrase", "secret", "token", "credential", "authorization", "apikey")
# `credentials.provider` names a class, `token.endpoint.url` an address: how a key ends whose value is public.
_PUBLIC = re.compile(
    r"[._-]?(?:source|provider|class|location|path|file|url|uri|type|enabled|mechanism|algorithm|format)\Z",
    re.IGNORECASE,
)
_KEY_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@lru_cache(10_000)
def is_secret_key(key: str) -> bool:
    """Whether the value of an option or setting must never be shown, whichever program declares it."""
    if _PUBLIC.search(key):
        return False
    letters = re.sub(r"[^a-z]", "", key.casefold())
    if any(part in letters for part in _PARTS):
        return True
    words = [word.casefold() for word in _KEY_WORD.findall(key)]
    return any(word in _WORDS or _is_misspelt(word) for word in words)


def _is_misspelt(word: str) -> bool:
    def near(right: str) -> bool:
        allowed = 2 if len(right) > 7 else 1
        return abs(len(word) - len(right)) <= allowed and _slips(word, right) <= allowed

    return len(word) > 3 and word != "taken" and any(map(near, _MISSPELT))


def _slips(word: str, right: str) -> int:
    """Letters left out, added, replaced or swapped with the next one, between two words."""
    before, row = [0] * (len(right) + 1), list(range(len(right) + 1))
    for i, a in enumerate(word, 1):
        last, row, older = row, [i], before
        for j, b in enumerate(right, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and word[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]


# user:password@, the password may hold slashes (AWS keys do); a port is no password.
_LOGIN = re.compile(r"(?<=://)[^\s/'\"`@:]*+:(?!\d{1,5}[/,?#;])[^\s'\"`@]*+(?:@[^\s'\"`@/]*+)*(?=@)")
# What stands alone before @ is a token, but the container of an address of Azure's, a user of HDFS.
_LONE_LOGIN = re.compile(
    r"(?<![\w+.:-])(?!abfss?:|wasbs?:|hdfs:)[A-Za-z][\w+.-]*+(?::[\w+.-]++)*+://([^\s/'\"`@:]++)(?=@)"
)
_ORACLE_LOGIN = re.compile(
    r"(?i)(?<=jdbc:oracle:thin:)[^\s'\"`@]++(?=@)|(?<=jdbc:oracle:oci:)[^\s'\"`@]++(?=@)"
)
_TYPE = (
    r"(?:string|int|integer|bigint|long|smallint|tinyint|double|float|decimal|boolean|binary|timestamp\w*|"
    r"date|array|map|struct|variant|char|varchar|true|false|null)\b"
)
_PAIR = re.compile(
    rf"""
    (?<![\w.-])(?P<key>[A-Za-z_][\w.-]*+)
    (?: (?P<close>["'`]?) \s*+ (?:=>|==|=|:(?![:/])) \s*+ | ["'`]?\s++(?=[rR]?["']) )
    (?: [rR]?"(?P<double>(?:\\.|[^"\\])*+)
      | [rR]?'(?P<single>(?:\\.|[^'\\])*+)
      | (?P<bare>(?!(?i:{_TYPE}))(?:(?i:bearer|basic|digest|token)\s+)?[^\s&;,'"`(){{}}\[\]<>|]++) )
    """,
    re.VERBOSE | re.DOTALL,
)

# As Kafka writes it, the value first.
_REFUSED_VALUE = re.compile(
    r"(?i)\binvalid value (?P<value>\S.{0,999}?) for (?:configuration|key) (?P<key>[\w.-]+)"
)


def logins(text: str) -> Iterator[Range]:
    """The places of users and passwords in the addresses of a text, of any scheme."""
    if "@" not in text:
        return
    for match in (*_LOGIN.finditer(text), *_ORACLE_LOGIN.finditer(text)):
        yield match.span()
    for match in _LONE_LOGIN.finditer(text):
        yield match.span(1)


def ranges(text: str, *, prose: bool = True) -> list[Range]:
    """The places of the secrets in a text: logins of addresses, the values of secret keys.

    prose: `password: word` counts too, as in messages; in a value that is kept it may be a description.
    """
    places, at = list(logins(text)), 0
    while pair := _PAIR.search(text, at):
        if not is_secret_key(pair["key"]):
            at = pair.end("key")
            continue
        name = next((n for n in ("double", "single", "bare") if pair[n] is not None), "bare")
        described = not prose and name == "bare" and ": " in text[pair.end("key") : pair.start(name)]
        if not described and (any(map(str.isalnum, pair[name])) or HIDDEN in pair[name]):
            places.append(pair.span(name))
        at = pair.end()
    places += (m.span("value") for m in _REFUSED_VALUE.finditer(text) if is_secret_key(m["key"]))
    return merged(text, places)


def merged(text: str, places: Iterable[Range]) -> list[Range]:
    """Ranges in order, none inside another, without those that only say where a secret lies."""
    result: list[Range] = []
    for start, end in sorted(places):
        if start == end or refers(text[start:end]):
            continue
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def refers(text: str) -> bool:
    """Whether a text holds ${env:NAME} or ${file:PATH}, whose values are looked up when a query starts."""
    return "${env:" in text or "${file:" in text


def replaced(text: str, places: Iterable[Range]) -> str:
    """A text with the place-holder at each of these places, which are in order."""
    parts, at = [], 0
    for start, end in places:
        parts += [text[at:start], HIDDEN]
        at = end
    return "".join(parts) + text[at:]


def redact_text(text: str) -> str:
    """A text that is not SQL, such as a message of Spark or an address, without the secrets in it."""
    return replaced(text, ranges(text))


def redact_option(key: str, value: str) -> str:
    """The value of an option or setting as it may be shown and written."""
    if value and is_secret_key(key) and not refers(value):
        return HIDDEN
    return replaced(value, ranges(value, prose=False))


def is_lost(key: str, value: str) -> bool:
    """Whether the secret of an option was not kept: the place-holder is there instead."""
    if is_secret_key(key) and value == HIDDEN:
        return True
    return any(value[start:end] == HIDDEN for start, end in ranges(value, prose=False))
