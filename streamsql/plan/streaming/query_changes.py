"""The changes of a query since its checkpoint was created, and their effects.

Spark itself checks very little: it silently accepts another window, another aggregate of the same type or
another path, and mixes their results with the existing state (Spark guide, "Recovery Semantics after Changes
in a Streaming Query"; tested with Spark 4.3).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from streamsql.connectors.registry import connectors
from streamsql.definition_sql import column_sql
from streamsql.definitions import Sink, Stream, promoted_name
from streamsql.language.query_clauses import clauses_of, declared, words_in
from streamsql.language.redaction import redact
from streamsql.language.struct_types import is_wider
from streamsql.plan.plans import Run
from streamsql.secrets import HIDDEN, redact_option

MIXED, REFUSED = "mixed", "refused"
"""The effects of a change: Spark continues with mixed results of the old and the new query, or refuses to
start the query."""

_PACE = frozenset(
    """maxfilespertrigger maxbytespertrigger maxoffsetspertrigger minoffsetspertrigger maxtriggerdelay
    maxrecordsperpartition minpartitions maxcachedfiles maxfileage latestfirst cleansource sourcearchivedir
    failondataloss startingoffsets endingoffsets startingtimestamp groupidprefix numpartitions schemainference
    kafkaconsumer.polltimeoutms fetchoffset.numretries fetchoffset.retryintervalms""".split()
)
"""Case-folded options that affect the rate of a source, or its start without a checkpoint."""
_PLACE = frozenset(
    "path table dbtable topic url class function folder kafka.bootstrap.servers host port".split()
)
"""Case-folded options with the target of a sink."""


@dataclass(frozen=True)
class Change:
    """what: a description in one line; effect: MIXED or REFUSED."""

    what: str
    effect: str = MIXED


def facts_of(run: Run, mode: str, state: list[dict[str, Any]] | None, operators: str = "") -> dict[str, Any]:
    """The facts about a query that are stored with its checkpoint, as plain values for `changes`.

    state: its state operators (kind, types of keys and values), None if not known; operators: a digest of
    all that these and the joins compute, "" if not known. Secret options are omitted.
    """
    return {
        "select": redact(run.query.text),
        "mode": mode,
        "streams": [_entry(s) for s in run.reads.streams],
        "sinks": [_entry(t.sink) for t in run.becomes or run.targets],
        "state": state,
        "operators": operators,
    }


def _entry(entry: Stream | Sink) -> dict[str, Any]:
    definition: dict[str, Any] = {
        "name": promoted_name(entry.name),
        "connector": entry.connector,
        "format": entry.format,
        "columns": [column_sql(c) for c in entry.columns],
        "options": {k: s for k, v in entry.options if (s := redact_option(k, v)) != HIDDEN},
    }
    if isinstance(entry, Sink):
        return definition | {"key": list(entry.key), "partitioned by": list(entry.partitioned_by)}
    watermark = entry.watermark
    computed = f"{watermark.computed.text} AS " if watermark and watermark.computed else ""
    return definition | {
        "query": redact(entry.query),
        "malformed": entry.malformed,
        "watermark": f"{computed}{watermark.column.value}, {watermark.delay}" if watermark else "",
    }


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """The changes between two results of `facts_of`, without those that have no effect."""
    changes = list[Change]()
    # An earlier version recorded no stream of a query that reads streams only through views.
    if old["streams"] or old["select"] != new["select"]:
        changes += _sources(old["streams"], new["streams"], _unchanged(old, new))
    changes += _texts("", old["select"], new["select"])
    changes += _state(old["state"], new["state"])
    changes += _sinks(old["sinks"], new["sinks"])
    return [*changes, *_pair("output mode", old["mode"], new["mode"])]


def entry_changes(old: Stream | Sink, new: Stream | Sink) -> list[Change]:
    """The changes of a stream or sink for which a query with a checkpoint has to begin anew."""
    before, after = [_entry(old)], [_entry(new)]
    return list(_sinks(before, after) if isinstance(new, Sink) else _sources(before, after, None))


@dataclass(frozen=True)
class _Unchanged:
    """A query that does the same with its state as before. words: the folded words of its texts and of those
    of the streams that it reads; keeps_no_type: whether it may read wider types, as it has no state and its
    rows are in live tables only.
    """

    words: frozenset[str]
    keeps_no_type: bool


def _unchanged(old: Mapping[str, Any], new: Mapping[str, Any]) -> _Unchanged | None:
    """The query, if it has no state, or that of the same operators as before."""
    stateless, operators = old["state"] == new["state"] == [], old.get("operators")
    if not stateless and (not operators or operators != new.get("operators")):
        return None
    texts = (new["select"], *(s["query"] for s in new["streams"]))
    words = frozenset().union(*map(words_in, texts))
    return _Unchanged(words, stateless and all(s["connector"] == "memory" for s in new["sinks"]))


def _columns(what: str, old: list[str], new: list[str], query: _Unchanged | None) -> Iterator[Change]:
    """The changes of the columns of a stream, as they are declared. Columns behind those that it had change
    nothing for a query that is unchanged, unless it has their names for something else, or a NATURAL JOIN may
    now compare them.
    """
    behind = new[len(old) :]
    pairs = zip(old, new[: len(old)], strict=True) if len(new) >= len(old) else ()
    if query is None or not pairs or not all(_holds(then, now, query) for then, now in pairs):
        yield from _listed(what, old, new)
        return
    named = [column for column in behind if declared(column)[0].casefold() in query.words]
    if named:
        yield Change(f"{what}: {', '.join(named)} added, and the query has that name already")
    elif behind and "natural" in query.words:
        yield Change(f"{what}: {', '.join(behind)} added, which NATURAL JOIN may compare")


def _holds(old: str, new: str, query: _Unchanged) -> bool:
    """Whether a column is as it was for an unchanged query, or of a wider type."""
    (name, kind), (new_name, new_kind) = declared(old), declared(new)
    same = kind.casefold() == new_kind.casefold() or (query.keeps_no_type and is_wider(kind, new_kind))
    return name == new_name and same


def _sources(old: list[Any], new: list[Any], query: _Unchanged | None) -> Iterator[Change]:
    before, after = ([s for s in streams if s["connector"]] for streams in (old, new))
    if len(before) != len(after):
        gone = sorted({s["name"] for s in before} - {s["name"] for s in after})
        come = sorted({s["name"] for s in after} - {s["name"] for s in before})
        yield from (Change(f"sources: {name} is no longer read", REFUSED) for name in gone)
        yield from (Change(f"sources: {name} is also read now", REFUSED) for name in come)
    else:
        for then, now in zip(before, after, strict=True):
            yield from _source(then, now, query)
    queries = {s["name"].casefold(): s for s in old if not s["connector"]}
    for now in new:
        then = queries.get(now["name"].casefold())
        if then and not now["connector"]:
            yield from _texts(f"stream {now['name']}, ", then["query"], now["query"])
            yield from _pair(f"watermark of {now['name']}", then["watermark"], now["watermark"])


def _source(old: Any, new: Any, query: _Unchanged | None) -> Iterator[Change]:
    """The changes of one source. Spark identifies a source only by its position in the query."""
    name = new["name"]
    if _kind(old["connector"]) != _kind(new["connector"]):
        what = f"source {name}: {old['name']} USING {old['connector']} → {name} USING {new['connector']}"
        yield Change(what, REFUSED)
        return
    yield from _pair(f"connector of {name}", old["connector"], new["connector"])
    yield from _pair(f"format of {name}", old["format"], new["format"])
    by_registry = any(key.casefold() == "schemaregistry" for key in new["options"])
    pace = (
        _PACE | {"avroschema"} if by_registry else _PACE
    )  # each message names its schema; columns are compared
    yield from _options(f"{{}} of {name}", old["options"], new["options"], lambda key: key not in pace)
    yield from _columns(f"columns of {name}", old["columns"], new["columns"], query)
    yield from _pair(f"watermark of {name}", old["watermark"], new["watermark"])
    yield from _pair(f"handling of malformed rows of {name}", old["malformed"], new["malformed"])


def _kind(name: str) -> str:
    """The kind of source for Spark: all files are the same kind."""
    source = connectors().get(name)
    return "files" if name == "values" or (source is not None and source.keeps_log) else name


def _sinks(old: list[Any], new: list[Any]) -> Iterator[Change]:
    if len(old) != len(new):
        yield from _pair("sinks", *(", ".join(s["name"] for s in sinks) for sinks in (old, new)))
        return
    for then, now in zip(old, new, strict=True):
        name = now["name"]
        yield from _pair(f"connector of {name}", then["connector"], now["connector"])
        if then["connector"] == now["connector"]:
            yield from _options(f"{{}} of {name}", then["options"], now["options"], lambda key: key in _PLACE)
        yield from _pair(f"format of {name}", then["format"], now["format"])
        for part in ("columns", "key", "partitioned by"):
            yield from _listed(f"{part} of {name}", then[part], now[part])


def _state(old: list[Any] | None, new: list[Any] | None) -> Iterator[Change]:
    if old is None or new is None:
        return
    kinds = [[o["kind"] for o in state] for state in (old, new)]
    if kinds[0] != kinds[1]:
        yield from _pair("state", ", ".join(kinds[0]), ", ".join(kinds[1]), REFUSED)
        return
    for then, now in zip(old, new, strict=True):
        for part in ("keys", "values"):
            before, after = (", ".join(o[part]) for o in (then, now))
            yield from _pair(f"{part} in the state of the {now['kind']}", before, after, REFUSED)


def _pair(what: str, old: str, new: str, effect: str = MIXED) -> Iterator[Change]:
    if old != new:
        yield Change(f"{what}: {old or 'none'} → {new or 'none'}", effect)


def _listed(what: str, old: list[str], new: list[str]) -> Iterator[Change]:
    if old != new:
        less, more = [c for c in old if c not in new], [c for c in new if c not in old]
        words = [*(f"{c} removed" for c in less), *(f"{c} added" for c in more)]
        yield Change(f"{what}: {', '.join(words) or 'in another order'}")


def _options(what: str, old: Mapping[str, str], new: Mapping[str, str], counts: Any) -> Iterator[Change]:
    then, now = ({k.casefold(): v for k, v in options.items()} for options in (old, new))
    for key in sorted(then.keys() | now.keys()):
        client = key.startswith("kafka.") and key not in _PLACE
        if counts(key) and not client:
            yield from _pair(what.format(key), then.get(key, ""), now.get(key, ""))


# ---- the text of a SELECT ---------------------------------------------------------------------

LONGEST = 100
"""Characters of a part that are shown."""


def _texts(what: str, old: str, new: str) -> Iterator[Change]:
    """The differences between the texts of two queries, clause by clause."""
    before, after = clauses_of(old), clauses_of(new)
    for clause in {**before, **after}:
        then, now = before.get(clause, []), after.get(clause, [])
        for kind, a, b, c, d in SequenceMatcher(None, then, now, autojunk=False).get_opcodes():
            gone, come = ", ".join(p.text for p in then[a:b]), ", ".join(p.text for p in now[c:d])
            if kind == "replace":
                yield Change(f"{what}{clause}: {' → '.join(_shortened(gone, come))}")
            elif kind != "equal":
                word = "removed" if gone else "added"
                yield Change(f"{what}{clause}: {_shortened(gone or come, '')[0]} {word}")


def _shortened(*texts: str) -> list[str]:
    """Texts to be compared by a reader: long ones from shortly before the place where they differ."""
    same = len(os.path.commonprefix(texts))
    start = max(0, same - LONGEST // 4) if max(map(len, texts)) > LONGEST else 0
    return [_cut(text, start) for text in texts]


def _cut(text: str, start: int) -> str:
    rest = ("…" if start else "") + text[start:]
    return rest if len(rest) <= LONGEST else rest[: LONGEST - 1] + "…"
