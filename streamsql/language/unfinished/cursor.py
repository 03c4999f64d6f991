"""The statement at the cursor; the text can contain several statements."""

from __future__ import annotations

from streamsql.language.tokens import Token, scan
from streamsql.language.unfinished.statement import UnfinishedStatement

_EXPLAIN_FORMS = frozenset("PYSPARK LOGICAL EXTENDED FORMATTED CODEGEN COST".split())
_BLOCK_HEADS = (["BEGIN"], ["EXECUTE", "STATEMENT", "SET", "BEGIN"])
_OPEN = {"--": "comment", "/*": "comment", "'": "'", '"': '"'}
# The number of `;` to try, since each can be inside a quote.
_SEMICOLONS = 5


def statement_at(text: str, position: int) -> UnfinishedStatement:
    """The statement at the cursor; within EXPLAIN and blocks of statements, the inner one."""
    tokens, opened, start = scan(text[:position])
    touches = bool(tokens) and tokens[-1].end == position
    first = next((n for n in range(len(tokens), 0, -1) if tokens[n - 1].text == ";"), 0)
    tokens, typed = _inside_block(tokens[first:]), ""
    if opened:
        # In a quote, the typed text starts after the quote sign; a name in backticks includes them.
        typed = text[start + (opened in ("'", '"')) : position]
    elif tokens and tokens[-1].kind in ("word", "quoted") and touches:
        typed = tokens.pop().text
    inside = _OPEN.get(opened, "")
    behind = () if inside else _behind(text, position)
    return UnfinishedStatement(_explained(tokens), typed, behind, inside)


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
