"""Stateful processors that tests call from SQL."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle


class Counter(StatefulProcessor):
    """How many rows of each key there were so far: value state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        n = (self.count.get()[0] if self.count.exists() else 0) + sum(1 for _ in rows)
        self.count.update((n,))
        yield Row(word=key[0], n=n)

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:
        self.count.update((initialState.n,))


class PandasCounter(StatefulProcessor):
    """The same over pandas frames."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n BIGINT")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        n = (self.count.get()[0] if self.count.exists() else 0) + sum(len(frame) for frame in rows)
        self.count.update((n,))
        yield pd.DataFrame({"word": [key[0]], "n": [n]})


class Pairs(StatefulProcessor):
    """The words of each key, joined once three are there: list state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.seen = handle.getListState("seen", "at TIMESTAMP")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            self.seen.appendValue((row.at,))
        minutes = sorted(at.minute for (at,) in self.seen.get())
        if len(minutes) >= 3:
            self.seen.clear()
            yield Row(word=key[0], minutes=minutes)


class Places(StatefulProcessor):
    """How often each minute was seen, for each word: map state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.minutes = handle.getMapState("minutes", "minute INT", "n INT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            minute = (row.at.minute,)
            n = self.minutes.getValue(minute)[0] if self.minutes.containsKey(minute) else 0
            self.minutes.updateValue(minute, (n + 1,))
        for (minute,), (n,) in self.minutes.iterator():
            yield Row(word=key[0], minute=minute, n=n)


class Sessions(StatefulProcessor):
    """The rows of each key until five minutes of event time pass without one: timers on event time."""

    GAP = 5 * 60 * 1000

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.count = handle.getValueState("count", "n BIGINT, last BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        n, last = self.count.get() if self.count.exists() else (0, 0)
        for row in rows:
            n, last = n + 1, max(last, int(row.at.timestamp() * 1000))
        for timer in self.handle.listTimers():
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(last + self.GAP)
        self.count.update((n, last))
        return iter([])

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        n, last = self.count.get()
        self.count.clear()
        yield Row(word=key[0], n=n, until=datetime.fromtimestamp(last / 1000))


class Reminder(StatefulProcessor):
    """Each key once more a moment later: timers on processing time."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1)
        yield Row(word=key[0], n=sum(1 for _ in rows))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield Row(word=f"{key[0]} again", n=0)


class Forgetful(StatefulProcessor):
    """Counts that are forgotten after a millisecond: state with a time to live."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.short = handle.getValueState("short", "n BIGINT", ttlDurationMs=1)
        self.long = handle.getValueState("long", "n BIGINT", ttlDurationMs=3_600_000)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        more = sum(1 for _ in rows)
        counts = []
        for state in (self.short, self.long):
            n = (state.get()[0] if state.exists() else 0) + more
            state.update((n,))
            counts.append(n)
        yield Row(word=key[0], short=counts[0], long=counts[1])


class Stamped(StatefulProcessor):
    """Each row with its number among those of its key and its own time."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        n = self.count.get()[0] if self.count.exists() else 0
        for row in rows:
            n += 1
            yield Row(word=key[0], n=n, at=row.at)
        self.count.update((n,))


class Failing(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        raise ValueError(f"no {key[0]}, please")
