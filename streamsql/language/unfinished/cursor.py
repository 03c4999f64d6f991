"""The statement at the cursor; the text can contain several statements."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.tokens import Token, scan
from streamsql.language.unfinished.statement import UnfinishedStatement

_EXPLAIN_FORMS = frozenset("PYSPARK LOGICAL EXTENDED FORMATTED CODEGEN COST".split())
_BLOCK_HEADS = (["BEGIN"], ["EXECUTE", "STATEMENT", "SET", "BEGIN"])
_OPEN = {"--": "comment", "/*": "comment", "'": "'", '"': '"'}
# The number of tokens at the end that the next typed characters can change.
_UNSETTLED = 6
# The number of `;` to try, since each can be inside a quote.
_SEMICOLONS = 5


def statement_at(text: str, position: int) -> UnfinishedStatement:
    """The statement at the cursor; within EXPLAIN and blocks of statements, the inner one."""
    before = _before(text, position)
    tokens, typed = before.tokens, ""
    if before.opened:
        # In a quote, the typed text starts after the quote sign; a name in backticks includes them.
        quote = before.opened in ("'", '"')
        typed = text[before.start + quote : position]
    elif tokens and tokens[-1].kind in ("word", "quoted") and before.touches:
        typed = tokens.pop().text
    inside = _OPEN.get(before.opened, "")
    behind = () if inside else _behind(text, position)
    return UnfinishedStatement(_explained(tokens), typed, behind, inside)


@dataclass(frozen=True)
class _Before:
    """The statement up to the cursor: its tokens, the item that is open at the cursor (see `scan`), the start
    of that item, and whether the last token ends at the cursor.
    """

    tokens: list[Token]
    opened: str
    start: int
    touches: bool


class _LastKey:
    """The result of the last keystroke: the statements before the current one, and the tokens of the current
    one.
    """

    head = ""
    typed: tuple[str, list[Token]] = ("", [])


def _before(text: str, position: int) -> _Before:
    head = _LastKey.head
    start = len(head) if len(head) <= position and text.startswith(head) else 0
    tokens, opened, at = _scan_on(text[start:position])
    touches = bool(tokens) and start + tokens[-1].end == position
    first = next((i + 1 for i in range(len(tokens) - 1, -1, -1) if tokens[i].text == ";"), 0)
    if first:
        _LastKey.head = text[: start + tokens[first - 1].end]
    return _Before(_inside_block(tokens[first:]), opened, start + at, touches)


def _scan_on(text: str) -> tuple[list[Token], str, int]:
    """Like `scan`, but if the text only extends that of the last keystroke, only its end is read."""
    before, settled = _LastKey.typed
    reused = settled if text.startswith(before) else []
    start = reused[-1].end if reused else 0
    tokens, opened, at = scan(text[start:])
    if start:
        tokens = [*reused, *(t._replace(start=t.start + start, end=t.end + start) for t in tokens)]
    _LastKey.typed = text, tokens[:-_UNSETTLED]
    return tokens, opened, start + at


def _inside_block(tokens: list[Token]) -> list[Token]:
    """The tokens after a leading BEGIN or EXECUTE STATEMENT SET BEGIN."""
    words = [t.upper for t in tokens[:4]]
    for head in _BLOCK_HEADS:
        if words[: len(head)] == head:
            return tokens[len(head) :]
    return tokens


def _explained(tokens: list[Token]) -> list[Token]:
    """The tokens after a leading EXPLAIN and its mode."""
    if tokens and tokens[0].upper == "EXPLAIN":
        rest = tokens[2 if len(tokens) > 1 and tokens[1].upper in _EXPLAIN_FORMS else 1 :]
        if rest and rest[0].upper != "QUERY":
            return rest
    return tokens


def _behind(text: str, position: int) -> tuple[Token, ...]:
    """The tokens of the statement after the cursor, without the word at the cursor."""
    if position == len(text):
        return ()
    end, passed = position, 0
    while True:
        end = text.find(";", end)
        end = len(text) if end < 0 or passed > _SEMICOLONS else end
        tokens, opened, _ = scan(text[position:end])
        if end == len(text) or opened not in ("'", '"', "`", "/*"):
            break
        end, passed = end + 1, passed + 1
    inside = tokens and tokens[0].start == 0 and tokens[0].kind == "word" and text[position - 1 : position]
    return tuple(tokens[1:] if inside and (inside.isalnum() or inside == "_") else tokens)
