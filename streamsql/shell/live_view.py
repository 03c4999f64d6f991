"""The live view: a result that refreshes in place, until the user leaves or its query ends.

One thread computes the frames and the terminal's thread only draws them: no key press waits for a frame.
"""

from __future__ import annotations

import re
import select
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import get_app_session
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.styles import BaseStyle

from streamsql.errors import reason_of
from streamsql.output.cursor_places import one_by_one
from streamsql.output.live_frames import Frame, View, frame
from streamsql.output.row_formats import FORMATS
from streamsql.output.terminal import window
from streamsql.results import Live, Rows, counted, unique_names

KEYS = (
    "p pause · c changes · s sort · w save as csv · arrows, PgUp, PgDn, Home, End move · "
    "f full screen · + - pace"
)
"""The keys of every view but q and ?, shown with ?."""
KEEP = "b keep it running"
"""The key of a view whose query would end with it."""
SHORTEST, LONGEST = 0.1, 10.0
"""The shortest and longest seconds between two pictures, for the keys + and -."""
REST = 3
"""The pause after a frame, in times of what it took: a large chart would take a whole processor."""


class RefreshingView(ABC):
    """Lines and a footer that are drawn in place until the reader leaves. every: the seconds between two
    pictures; options: input and output of prompt_toolkit, if they are not the terminal.
    """

    def __init__(self, every: float, style: BaseStyle | None, options: dict[str, Any]) -> None:
        self.every = every
        self.style = style
        self.options = options
        self.full_screen = False
        self.paused = False
        self._wake = threading.Event()
        """Set when the next picture is not to wait."""
        self._app: Application[None] | None = None

    @abstractmethod
    def picture(self) -> tuple[list[str], str, str]:
        """(lines with escapes of colours, the style of the footer, the footer)."""

    def application(self, keys: KeyBindings | None = None) -> Application[None]:
        """An application that shows the view. keys: instead of those of the view."""
        control = FormattedTextControl(self._text, focusable=True, show_cursor=False)
        window = Window(control, wrap_lines=False, dont_extend_height=not self.full_screen)
        self._app = Application(
            Layout(window),
            key_bindings=keys or self._key_bindings(),
            full_screen=self.full_screen,
            erase_when_done=True,
            min_redraw_interval=0.05,
            style=self.style,
            **self.options,
        )
        return self._app

    def redraw(self) -> None:
        """Draw the picture of now, from any thread."""
        if self._app is not None and self._app.is_running:
            self._app.invalidate()

    def leave(self) -> None:
        """End the application, on its own thread."""
        if self._app is not None and self._app.is_running and not self._app.is_done:
            self._app.exit()

    def leave_soon(self) -> None:
        """End the application, from any thread."""
        if self._app is not None and self._app.loop is not None:
            self._app.loop.call_soon_threadsafe(self.leave)

    def keys(self) -> dict[str, Callable[[], None]]:
        """The keys of the view."""
        return {
            "p": self.pause,
            "+": lambda: self.change_pace(0.5),
            "-": lambda: self.change_pace(2.0),
            **dict.fromkeys(("q", "c-c", "c-d"), self.leave),
        }

    def pause(self) -> None:
        """Stand still, or go on."""
        self.paused = not self.paused
        self._wake.set()

    def change_pace(self, factor: float) -> None:
        """Refresh more or less often."""
        self.every = min(max(self.every * factor, SHORTEST), max(LONGEST, self.every))
        self._wake.set()

    def _text(self) -> StyleAndTextTuples:
        lines, style, footer = self.picture()
        return [*to_formatted_text(ANSI("\n".join(lines))), ("", "\n"), (style, footer)]

    def _key_bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        for name, act in self.keys().items():
            bindings.add(name, eager=True)(lambda event, act=act: act())
        return bindings


class LiveView(RefreshingView):
    """Shows a Live result in the terminal. every: the seconds between two frames.

    If the next statement has been typed already, its keys are not for the view, which then ends with the
    first rows.

    After run(): `last` is the last frame, `message` the message of a key.
    """

    def __init__(
        self, live: Live, *, every: float, color: bool, null: str, style: BaseStyle | None, **options: Any
    ) -> None:
        super().__init__(live.every or every, style, options)
        self.live = live
        self.view = View(mode=live.mode, color=color, null=null)
        self.last: Frame | None = None
        self.message = ""
        self.remark = ""
        """What the key w or + has done, for the line below the footer."""
        self.helping = False
        self.next_is_typed = self.ended_itself = False
        self._typed: list[KeyPress] = []
        self._again = False
        self._done = False

    def run(self) -> None:
        """Show the result. Returns when the user leaves, or when the query has ended."""
        self.next_is_typed = line_is_waiting(self.options.get("input") or get_app_session().input)
        taking = threading.Thread(target=self._compute_frames, daemon=True, name="live-view")
        self.last = self._next_frame()
        taking.start()
        try:
            while True:
                self._again = False
                app = self.application(self._keys_of_next() if self.next_is_typed else None)
                app.run(handle_sigint=False)
                store_typeahead(app.input, self._typed)
                if not self._again:
                    break
        finally:
            self._done = True
            self._wake.set()
            taking.join(5)

    def final(self) -> Frame:
        """The last frame as it stays in the scrollback, without the line of keys, and without an error that
        is printed below it.
        """
        width, height = window()
        view = replace(self.view, width=width, height=height - 2, paused=False, now="")
        return frame(self.live, view, with_error=self.live.fault() is None)

    # ---- frames ---------------------------------------------------------------------------

    def _next_frame(self) -> Frame:
        width, height = window()
        now = datetime.now().strftime("updated %H:%M:%S")
        room = height if self.full_screen else height - 1
        keep = ((2, KEEP),) if self.live.keep else ()
        keys = ((0, "q leave"), *keep, (2, "? keys"))
        if self.next_is_typed:
            keys = ((0, "the next statement waits"),)
        help = f"{KEYS} · {KEEP}" if keep else KEYS
        below = "\n".join(filter(None, (self.remark, help if self.helping else "")))
        view = replace(self.view, width=width, height=room, now=now)
        return frame(self.live, view, keys, self.last, help=below)

    def _compute_frames(self) -> None:
        while not self._done:
            began = time.monotonic()
            self.last = self._next_frame()
            took = time.monotonic() - began
            over = self.last.status.over
            self.redraw()
            if self._app is not None and self._app.is_running:
                enough = self.live.enough and self.last.snapshot.total >= self.live.enough
                if (over or enough or (self.next_is_typed and self._has_shown(self.last))) and not self._done:
                    self._done = self.ended_itself = True
                    self.leave_soon()
            self._wake.wait(max(self.every, REST * took))
            self._wake.clear()

    def _has_shown(self, shown: Frame) -> bool:
        """Whether there is a result, or the reason why there is none: the first micro-batch may be empty."""
        return shown.snapshot.total > 0 or shown.snapshot.batch > 0 or bool(self.live.why())

    def picture(self) -> tuple[list[str], str, str]:
        last = self.last
        if last is None:
            return [], "", ""
        style = "class:failed" if last.status.error else "class:footer"
        return list(map(one_by_one, last.lines)), style, "\n".join(last.footer)

    # ---- keys -----------------------------------------------------------------------------

    def _change_view(self, **changed: Any) -> None:
        self.view = replace(self.view, **changed)
        self._wake.set()

    def _keys_of_next(self) -> KeyBindings:
        """Keep all keys for the next prompt; Ctrl-C forgets them, as that of a terminal does."""
        keys = KeyBindings()

        @keys.add(Keys.Any, eager=True)
        @keys.add(Keys.BracketedPaste, eager=True)
        def _(event: KeyPressEvent) -> None:
            self._typed += event.key_sequence

        @keys.add(Keys.CPRResponse, eager=True)
        def _(event: KeyPressEvent) -> None:  # of the terminal, not a key
            event.app.renderer.report_absolute_cursor_row(int(event.data[2:-1].split(";")[0]))

        @keys.add("c-c", eager=True)
        def _(event: KeyPressEvent) -> None:
            self._typed.clear()
            event.app.exit()

        return keys

    def keys(self) -> dict[str, Callable[[], None]]:
        return {
            **super().keys(),
            "?": self._help,
            "c": self._switch,
            "s": self._sort,
            "w": self._save,
            "f": self._full_screen,
            "b": self._keep,
            "right": lambda: self._change_view(column=min(self.view.column + 1, self._columns() - 1)),
            "left": lambda: self._change_view(column=max(self.view.column - 1, 0)),
            "up": lambda: self._move(-1),
            "down": lambda: self._move(1),
            "pageup": lambda: self._move(-self._page()),
            "pagedown": lambda: self._move(self._page()),
            "home": lambda: self._change_view(first=0),
            "end": lambda: self._change_view(first=None),
        }

    def _help(self) -> None:
        self.helping = not self.helping
        self._wake.set()

    def _full_screen(self) -> None:
        self.full_screen = not self.full_screen
        self._again = True
        self.leave()

    def _keep(self) -> None:
        if self.live.keep is not None:
            self.message = self.live.keep()
            self.leave()

    def pause(self) -> None:
        self.live.freeze(not self.paused)
        super().pause()
        self._change_view(paused=self.paused)

    def _save(self) -> None:
        """Write the rows of the view as they are now to a csv file in the current folder."""
        take = self.live.changes if self.view.mode == "changes" else self.live.take
        snapshot = take(sys.maxsize, 0, self.view.order)
        columns = unique_names(snapshot.columns)
        lines = FORMATS["csv"](Rows((), columns, snapshot.rows, snapshot.numeric))
        name = re.sub(r"\W+", "_", self.live.title) or "rows"
        path = Path(f"{name}-{datetime.now():%Y%m%d-%H%M%S}.csv")
        try:
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            self.message = f"{counted(len(snapshot.rows), 'row')} saved in {path}"
            self.remark = f"saved in {path}"
        except OSError as error:
            self.remark = f"cannot write {path}: {reason_of(error)}"
        self._wake.set()

    def _columns(self) -> int:
        return len(self.last.snapshot.columns) if self.last else 1

    def _page(self) -> int:
        return self.last.rows if self.last else 10

    def _switch(self) -> None:
        other = {"table": "changes", "changes": "chart" if self.live.chart else "table", "chart": "table"}
        self._change_view(mode=other[self.view.mode], first=None, order=None, column=0)

    def _sort(self) -> None:
        """Sort by the next column, ascending and then descending; after the last, in the original order."""
        if self.view.mode != "table" or not self.last or self.last.view.mode != "table":
            return  # the last frame may still be one of changes, which have other columns
        orders: list[tuple[str, bool] | None] = [None]
        orders += [(c, down) for c in self.last.snapshot.columns for down in (False, True)]
        at = orders.index(self.view.order) if self.view.order in orders else 0
        self._change_view(order=orders[(at + 1) % len(orders)], first=None)

    def _move(self, by: int) -> None:
        if not self.last:
            return
        snapshot, page = self.last.snapshot, self._page()
        # Several keys may have come since the last frame.
        first = max(0, (snapshot.first if self.view.first is None else self.view.first) + by)
        self._change_view(first=None if by > 0 and first + page >= snapshot.total else first)

    def change_pace(self, factor: float) -> None:
        super().change_pace(factor)
        self.remark = f"refreshed every {self.every:.3g} s"


_ENDS_OF_LINES = (Keys.ControlM, Keys.ControlJ)


def keys_ahead(keys: Input) -> list[KeyPress]:
    """What was read and not used; it stays there."""
    ahead = get_typeahead(keys)
    store_typeahead(keys, ahead)
    return ahead


def line_is_waiting(keys: Input) -> bool:
    """Whether a whole line was typed that nobody has used, while no prompt was shown: read already, or
    still in the terminal, which gives whole lines then.
    """
    if any(key.key in _ENDS_OF_LINES for key in keys_ahead(keys)):
        return True
    try:
        return keys.fileno() == sys.stdin.fileno() and bool(select.select([keys.fileno()], [], [], 0)[0])
    except (OSError, ValueError, NotImplementedError):  # no file, or one that Windows cannot wait for
        return False
