"""foreach_batch: a Python function takes each micro-batch. Spark guide, "ForeachBatch"."""

from __future__ import annotations

import inspect

from streamsql.calls import Node
from streamsql.connectors.base import Connector, OptionSpec
from streamsql.connectors.foreach import FOLDER, loaded
from streamsql.connectors.option_kinds import PYTHON_NAME
from streamsql.definitions import Sink


class ForeachBatch(Connector):
    name = "foreach_batch"
    not_read_back = "a Python function receives its rows"
    help = "a Python function receives each micro-batch: function(DataFrame, batch_id)"
    takes_key = True
    writes = (
        OptionSpec(
            "function",
            "the name of the function; after a failure a batch_id is retried with the same rows: delivery is "
            "exactly once if the function skips or overwrites a batch_id that it has already written",
            PYTHON_NAME,
            required=True,
        ),
        FOLDER,
    )

    once_by_batch_id = True
    code_hint = "def function(batch, batch_id): …"

    def delivery(self, sink: Sink) -> str:
        return (
            "at least once; exactly once if the function skips or overwrites a batch_id that it has written"
        )

    def batch_writer(self, sink: Sink) -> Node:
        return loaded(sink, "function")

    def check_code(self, code: object, purpose: str) -> str:
        if not callable(code):
            return f"it is a value ({type(code).__name__}), not a function"
        call = vars(code).get("__call__") if isinstance(code, type) else code
        if call is None:
            return "it is a class without __call__(self, batch, batch_id)"
        arguments = (None,) * (3 if isinstance(code, type) else 2)
        try:
            inspect.signature(call).bind(*arguments)
        except TypeError as error:
            return f"it cannot be called with (batch, batch_id): {error}"
        except ValueError:
            pass  # a builtin has no signature to inspect
        return ""
