"""Keys that were typed before what reads them is there: whole lines of them are for the next prompt."""

from __future__ import annotations

import select
import sys

from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

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
