"""Key press to popup at the prompt: statements are typed key by key into a real prompt session with the
console's completer, over a catalog of 200 streams of 50 columns each. No JVM.

Usage: completion.py [rounds]. Prints median and 95th percentile; wanted: a median under 30 ms.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from types import SimpleNamespace
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from streamsql.catalog import Catalog
from streamsql.definitions import Stream
from streamsql.language.statements.base import Column
from streamsql.shell.completion.complete import complete
from streamsql.shell.prompt import _Completer

STREAMS, COLUMNS = 200, 50
STATEMENTS = (
    """SELECT c.column_7, upper(c.user_name) AS name, count(*) AS n
FROM stream_17 c JOIN stream_18 d ON c.user_name = d.user_name AND c.event_time >= d.event_time
WHERE c.column_3 > 10 AND column_40 LIKE 'a%'
GROUP BY window(c.event_time, '10 minutes'), c.column_7, c.user_name;""",
    """CREATE STREAM clicks (user STRING, ts TIMESTAMP) USING csv
OPTIONS (path 'streamsql/', header 'true', mode 'FAILFAST') WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;""",
    "SET spark.sql.streaming.multipleWatermarkPolicy = max;",
)


def catalog() -> Catalog:
    """200 streams whose 50 columns have mostly the same names."""
    made = Catalog()
    for n in range(STREAMS):
        names = [f"column_{i}" for i in range(COLUMNS - 3)]
        columns = (
            Column("user_name", "STRING"),
            Column("event_time", "TIMESTAMP"),
            Column(f"of_stream_{n}", "STRUCT<a: INT, b: ARRAY<STRING>>"),
            *(Column(name, "BIGINT") for name in names),
        )
        made = made.having(Stream(f"stream_{n}", "json", columns=columns))
    return made


class Typist:
    """Types into a prompt and takes the time until the screen shows description to show."""

    def __init__(self, app: Application[str], pipe: PipeInput) -> None:
        self.app = app
        self.pipe = pipe
        self.rendered = asyncio.Event()
        app.after_render += lambda sender: self.rendered.set()

    async def key(self, key: str, menu: bool) -> float:
        """Seconds from a key to the screen with the menu (without one: with the letter)."""
        wanted = self.app.current_buffer.text + key
        began = time.perf_counter()
        self.pipe.send_text(key)
        while not self.shows(wanted, menu):
            self.rendered.clear()
            await asyncio.wait_for(self.rendered.wait(), 5)
        return time.perf_counter() - began

    def shows(self, text: str, menu: bool) -> bool:
        state = self.app.current_buffer.complete_state
        return self.app.current_buffer.text == text and (not menu or bool(state and state.completions))


async def type_statement(statement: str, known: Catalog) -> tuple[list[float], list[float]]:
    """Seconds per key that opens a menu, and per key that opens none."""
    with create_pipe_input() as pipe:
        session = SimpleNamespace(catalog=known, columns=lambda name: (), query_state=lambda name: "query")
        desk: Any = SimpleNamespace(session=session)
        prompt: PromptSession[str] = PromptSession(
            multiline=True,
            completer=ThreadedCompleter(_Completer(lambda: desk)),
            complete_while_typing=True,
            input=pipe,
            output=DummyOutput(),
        )
        running = asyncio.ensure_future(prompt.prompt_async("sql> "))
        await asyncio.sleep(0.2)
        typist = Typist(prompt.app, pipe)
        menus, plain = [], []
        for end, key in enumerate(statement, 1):
            if key == "\n":
                prompt.default_buffer.insert_text(key)
                continue
            menu = bool(complete(statement[:end], end, known))
            (menus if menu else plain).append(await typist.key(key, menu))
            await asyncio.sleep(0.005)
        running.cancel()
    return menus, plain


def show(what: str, seconds: list[float]) -> None:
    ms = sorted(1000 * s for s in seconds)
    at_95 = ms[min(len(ms) - 1, round(0.95 * len(ms)))]
    print(
        f"{what:24} median {statistics.median(ms):6.2f} ms   p95 {at_95:6.2f} ms   most {ms[-1]:6.2f} ms   n {len(ms)}"
    )


def main() -> None:
    known = catalog()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    menus: list[float] = []
    plain: list[float] = []
    alone: list[float] = []
    for statement in STATEMENTS * rounds:
        opened, others = asyncio.run(type_statement(statement, known))
        menus += opened
        plain += others
        for end in range(1, len(statement) + 1):
            began = time.perf_counter()
            complete(statement[:end], end, known)
            alone.append(time.perf_counter() - began)
    show("key to popup", menus)
    show("key without popup", plain)
    show("complete() alone", alone)


if __name__ == "__main__":
    main()
