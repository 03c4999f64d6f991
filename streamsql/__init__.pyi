"""The types of the names that __init__.py imports when they are used."""

from streamsql.api.connection import Connection as Connection
from streamsql.api.connection import Explanation as Explanation
from streamsql.api.connection import connect as connect
from streamsql.api.query_result import QueryResult as QueryResult
from streamsql.api.watched import Change as Change
from streamsql.api.watched import Changes as Changes
from streamsql.api.watched import Watch as Watch
from streamsql.errors import StreamsqlError
from streamsql.features.notebook.magics import load_ipython_extension as load_ipython_extension
from streamsql.features.notebook.magics import unload_ipython_extension as unload_ipython_extension
from streamsql.language.python_values import Pairs as Pairs
from streamsql.language.python_values import Struct as Struct
from streamsql.query_facts import QueryFacts as QueryFacts

__version__: str
Error = StreamsqlError
