"""Writes Nexmark events as JSON files: the rules of the generator of nexmark-flink with a seed of its own, so
that each run has the same events. Fields that no query reads are drawn more simply.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

PER_FILE = 50_000
BASE = datetime(2026, 1, 1)
RATE = 10_000
"""Events for each second of event time."""
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
STATES = ("az", "ca", "id", "or", "wa", "wy")
CITIES = ("phoenix", "los angeles", "san francisco", "boise", "portland", "bend", "redmond", "seattle")
LETTERS = "abcdefghijklmnopqrstuvwxyz" * 40
TABLES = ("person", "auction", "bid")


def written(folder: Path, events: int) -> Path:
    """The folder of the files of so many events, which are written if they are not there: one file a table
    and PER_FILE events in `person`, `auction` and `bid`.
    """
    place = folder / f"nexmark-{events}"
    if not place.exists():
        part = folder / f"nexmark-{events}.part"
        for table in TABLES:
            (part / table).mkdir(parents=True, exist_ok=True)
        rng = random.Random(11)
        for begin in range(0, events, PER_FILE):
            lines: dict[str, list[str]] = {table: [] for table in TABLES}
            for table, line in _events(rng, range(begin, min(begin + PER_FILE, events))):
                lines[table].append(line)
            for table in TABLES:
                (part / table / f"{begin // PER_FILE:05d}.json").write_text("".join(lines[table]))
        part.rename(place)
    return place


def _events(rng: random.Random, numbers: range) -> Iterator[tuple[str, str]]:
    for n in numbers:
        at = _time(n * 1_000_000 // RATE)
        part, people = n % 50, n // 50
        auctions = 3 * people + (part - 1 if 0 < part < 4 else 2 if part else -1)
        if part == 0:
            yield "person", _person(rng, people, at)
        elif part < 4:
            yield "auction", _auction(rng, auctions, people, n, at)
        else:
            yield "bid", _bid(rng, auctions, people, at)


def _time(micros: int) -> str:
    return (BASE + timedelta(microseconds=micros // 1000 * 1000)).isoformat(" ", "milliseconds")


def _text(rng: random.Random, length: int) -> str:
    start = int(rng.random() * 26)
    return LETTERS[start : start + length]


def _some_person(rng: random.Random, people: int, hot: int) -> int:
    """The hot person of the last hundred in three of four cases, one of the last thousand in the others."""
    if rng.random() < 0.75:
        return 1000 + people // 100 * 100 + hot
    return 1000 + max(people - 1000, 0) + int(rng.random() * (min(people, 1000) + 11))


def _person(rng: random.Random, people: int, at: str) -> str:
    name, city, state = _text(rng, 12), CITIES[int(rng.random() * 8)], STATES[int(rng.random() * 6)]
    return (
        f'{{"id": {1000 + people}, "name": "{name}", "email_address": "{name}@{_text(rng, 8)}.com", '
        f'"credit_card": "{int(rng.random() * 1e16):016d}", "city": "{city}", "state": "{state}", '
        f'"date_time": "{at}", "extra": "{_text(rng, 100)}"}}\n'
    )


def _auction(rng: random.Random, number: int, people: int, n: int, at: str) -> str:
    price = round(100 * 10 ** (6 * rng.random()))
    expires = _time(n * 1_000_000 // RATE + 1000 + int(rng.random() * 2 * 100 * 50 / 3 / RATE * 1e6))
    return (
        f'{{"id": {1000 + number}, "item_name": "{_text(rng, 12)}", "description": "{_text(rng, 60)}", '
        f'"initial_bid": {price}, "reserve": {2 * price}, "date_time": "{at}", "expires": "{expires}", '
        f'"seller": {_some_person(rng, people, 0)}, "category": {10 + int(rng.random() * 5)}, '
        f'"extra": "{_text(rng, 300)}"}}\n'
    )


def _bid(rng: random.Random, auctions: int, people: int, at: str) -> str:
    hot = rng.random() < 0.5
    auction = auctions // 100 * 100 if hot else max(auctions - 100, 0) + int(rng.random() * 111)
    price = round(100 * 10 ** (6 * rng.random()))
    if rng.random() < 0.5:
        channel = CHANNELS[int(rng.random() * 4)]
        url = f"https://www.nexmark.com/{channel.lower()}/b/c/item.htm?query=1"
    else:
        k = int(rng.random() * 10_000)
        channel = f"channel-{k}"
        url = f"https://www.nexmark.com/{_text(rng, 4)}/{_text(rng, 4)}/{_text(rng, 4)}/item.htm?query=1"
        url += f"&channel_id={k * 2654435761 % 2**32}" if rng.random() < 0.9 else ""
    return (
        f'{{"auction": {1000 + auction}, "bidder": {_some_person(rng, people, 1)}, "price": {price}, '
        f'"channel": "{channel}", "url": "{url}", "date_time": "{at}", "extra": "{_text(rng, 70)}"}}\n'
    )
