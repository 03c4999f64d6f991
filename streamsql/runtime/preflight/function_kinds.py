"""CREATE FUNCTION: determines the kind of a Python function or class."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from streamsql.definitions import Function
from streamsql.errors import NameFault, StreamsqlError
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.python_functions import module_variable
from streamsql.runtime.embedded import python_code
from streamsql.runtime.preflight.python_code_checks import digest, find_code, package_missing


class Modules:
    """The modules of a session's functions, by their variable in programs."""

    def __init__(self) -> None:
        self._by_variable: dict[str, ModuleType] = {}
        self._digests: dict[str, str] = {}
        self._loaded: set[Function] = set()

    def loaded(self, functions: tuple[Function, ...]) -> bool:
        """Whether the modules of all these functions have been imported."""
        return self._loaded.issuperset(functions)

    def load(self, function: Function, others: list[Function]) -> Function:
        """Import the module of a function if necessary. Returns the function as `find` does."""
        if function in self._loaded:
            return function
        target = Name(f"{function.module}.{function.attribute}")
        return self.find(function, target, function.folder, others)

    def env(self, functions: tuple[Function, ...]) -> dict[str, Any]:
        """The variables that programs with these functions start with."""
        names = {module_variable(f.module) for f in functions}
        return {name: self._by_variable[name] for name in names if name in self._by_variable}

    def digests(self, functions: tuple[Function, ...]) -> dict[str, str]:
        """The digests of the code of these functions as it was loaded, by module."""
        return {f.module: self._digests[f.module] for f in functions if self._digests.get(f.module)}

    def find(self, function: Function, target: Name, folder: str, others: list[Function]) -> Function:
        """A function with its kind, form, folder and modules, from its code.

        folder: searched first. The module is read again, so that changes of its file are seen. others: the
        other functions of the session. Raises a fault at target for code that is missing or unusable.
        """
        module, code = find_code(target, folder)
        modules = tuple(python_code.modules_of(function.module))
        own = _folder(module) if module.__name__ in modules else ""
        try:
            for other in others:
                if other.module == function.module and other.folder != own:
                    raise NameFault(
                        f"{other.name} uses another module {other.module}, of {other.folder or 'a package'}",
                        hint="give one of the two files another name, "
                        f"or DROP FUNCTION {quote_name(other.name)};",
                        code="BAD_PYTHON_CODE",
                    )
            checked = _with_kind(replace(function, folder=own, modules=modules), code)
        except StreamsqlError as error:
            error.span = target.span
            raise
        self._by_variable[module_variable(function.module)] = module
        self._digests[function.module] = digest(function.module)
        self._loaded.add(checked)
        return checked


def _folder(module: ModuleType) -> str:
    """The folder that a module was looked up in."""
    file = Path(module.__file__ or "")
    return str(file.parents[module.__name__.count(".") + (file.name == "__init__.py")])


def _need(whose: str, *modules: str) -> None:
    """Raise InputFault that names the packages of those modules that are missing."""
    missing = []
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing.append(error.name or module)
        except Exception:  # protobuf has its own exception for a version that is too old for PySpark
            missing.append("google")
    if missing:
        raise package_missing(whose, *missing)


def _with_kind(function: Function, code: Any) -> Function:
    """A function with the kind and form of its code. Raises NameFault or InputFault for unusable code."""
    name = f"{function.module}.{function.attribute}"
    if not callable(code):
        raise NameFault(f"{name} is neither a function nor a class", code="BAD_PYTHON_CODE")
    if hasattr(code, "evalType") or hasattr(code, "returnType"):
        raise NameFault(
            f"{name} is a user-defined function already",
            hint="remove the decorator: RETURNS declares the type",
            code="BAD_PYTHON_CODE",
        )
    if function.returns:
        if inspect.isclass(code):
            raise NameFault(
                f"{name} is a class", hint="RETURNS TABLE (column type, …)", code="BAD_PYTHON_CODE"
            )
        return _value_function(function, code, name)
    if not inspect.isclass(code):
        raise NameFault(
            f"{name} is not a class",
            detail="a table function is a class with a method eval that yields rows",
            hint="RETURNS a type, for a function that gives one value", code="BAD_PYTHON_CODE",
        )  # fmt: skip
    if hasattr(code, "handleInputRows"):
        return _processor(function, code, name)
    if not hasattr(code, "eval"):
        raise NameFault(
            f"the class {name} has neither eval nor handleInputRows",
            hint="eval(self, …) for a table function; handleInputRows(self, key, rows, timerValues) "
            "for a stateful processor",
            code="BAD_PYTHON_CODE",
        )
    return replace(function, kind="table")


def _value_function(function: Function, code: Any, name: str) -> Function:
    """A scalar or aggregate function, over values or series: decided by its annotations, as in PySpark."""
    from pyspark.sql.pandas.typehints import infer_eval_type_for_udf
    from pyspark.util import PythonEvalType as Kinds

    hints = " ".join(str(h) for h in getattr(code, "__annotations__", {}).values())
    if "pandas" in hints or "pd." in hints:
        _need(f"the function {name}", "pandas")
    try:
        eval_type = infer_eval_type_for_udf(code)
    except Exception:
        eval_type = None  # plain values, or a callable without a signature
    pandas = (Kinds.SQL_SCALAR_PANDAS_UDF, Kinds.SQL_SCALAR_PANDAS_ITER_UDF)
    arrow = (Kinds.SQL_SCALAR_ARROW_UDF, Kinds.SQL_SCALAR_ARROW_ITER_UDF)
    if eval_type in pandas:
        return replace(function, kind="scalar", form="pandas")
    if eval_type in arrow:
        return replace(function, kind="scalar", form="arrow")
    if eval_type is not None:
        return replace(
            function, kind="aggregate", form="pandas" if "pandas" in hints or "pd." in hints else "arrow"
        )
    # PySpark transfers rows in Arrow batches only if pandas is installed, too.
    batched = importlib.util.find_spec("pandas") is not None
    return replace(function, kind="scalar", form="batched" if batched else "plain")


def _processor(function: Function, code: Any, name: str) -> Function:
    """A stateful processor, over rows or (if handleInputRows is annotated with DataFrame) over pandas."""
    from pyspark.sql.streaming import StatefulProcessor

    _need(
        f"the stateful processor {name}",
        "pandas",
        "google.protobuf",
        "pyspark.sql.streaming.proto.StateMessage_pb2",
    )
    if not issubclass(code, StatefulProcessor):
        raise NameFault(
            f"{name} is not a StatefulProcessor",
            hint="from pyspark.sql.streaming import StatefulProcessor\n"
            f"class {function.attribute}(StatefulProcessor): …",
            code="BAD_PYTHON_CODE",
        )
    missing = sorted(getattr(code, "__abstractmethods__", ()))
    if missing:
        raise NameFault(f"the class {name} has no method {' and no '.join(missing)}", code="BAD_PYTHON_CODE")
    wanted = [
        p.name
        for p in inspect.signature(code).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if wanted:
        raise NameFault(
            f"the class {name} needs {', '.join(wanted)}, but is called without arguments",
            code="BAD_PYTHON_CODE",
        )
    hints = " ".join(str(h) for h in getattr(code.handleInputRows, "__annotations__", {}).values())
    return replace(function, kind="processor", form="pandas" if "DataFrame" in hints else "rows")


WHAT = {"scalar": "function", "aggregate": "aggregate function", "table": "table function",
        "processor": "stateful processor"}  # fmt: skip
