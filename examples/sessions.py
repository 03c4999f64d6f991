"""The stateful processor of sessions.sql: the visits of each user, separated by pauses."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

PAUSE = timedelta(minutes=30)


class Sessions(StatefulProcessor):
    """A session is open until its user has not clicked for half an hour of event time."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.session = handle.getValueState("session", "began TIMESTAMP, ended TIMESTAMP, clicks INT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        session = self.session.get() if self.session.exists() else None
        for click in sorted(rows, key=lambda row: row.at):
            if session and click.at - session[1] > PAUSE:
                yield finished(key, session)
                session = None
            began, ended, clicks = session or (click.at, click.at, 0)
            session = (min(began, click.at), max(ended, click.at), clicks + 1)
        self.session.update(session)
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(int((session[1] + PAUSE).timestamp() * 1000))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield finished(key, self.session.get())
        self.session.clear()


def finished(key: tuple[str], session: tuple[datetime, datetime, int]) -> Row:
    began, ended, clicks = session
    return Row(user=key[0], began=began, ended=ended, clicks=clicks)


def length(began: datetime, ended: datetime) -> str:
    """`1 h 05 min` between two moments."""
    minutes = int((ended - began).total_seconds() // 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"
