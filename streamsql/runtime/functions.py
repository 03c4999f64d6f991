"""The Python behind CREATE FUNCTION: finding the module, seeing what it holds, taking it to the workers.

A module of the script's own folder is pickled by value with what is called, so that it reaches the
workers of any master without files being sent, and a new version of it, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from streamsql.catalog import Function
from streamsql.errors import NameFault, StreamsqlError, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.plan.functions import module_variable

# Packages by the module that they are imported as, where the names differ or a version matters.
_PACKAGES = {
    "pandas": "'pandas>=2.2,<3'",
    "google": "'protobuf>=6.33.5,<7'",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "PIL": "pillow",
    "cv2": "opencv-python",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
}


# What was loaded out of a folder, by name: Python keeps modules for the whole process.
_loaded: dict[str, str] = {}


class Modules:
    """The modules of a session's functions, by the variable that programs know each by."""

    def __init__(self) -> None:
        self._by_variable: dict[str, ModuleType] = {}

    def env(self, functions: tuple[Function, ...]) -> dict[str, Any]:
        """The variables that programs with these functions begin with."""
        names = {module_variable(f.module) for f in functions}
        return {name: self._by_variable[name] for name in names if name in self._by_variable}

    def find(self, function: Function, target: Name, folders: list[str], others: list[Function]) -> Function:
        """A function with what its module says of it: kind, form, folder and modules.

        folders: where to look before sys.path. The module is read anew, so that a changed file
        counts. others: the functions that stay. Raises NameFault at target for a module, attribute
        or package that is missing.
        """
        try:
            folder = next((f for f in folders if _holds(f, function.module)), "")
            for other in others:
                if other.module == function.module and other.folder != folder:
                    raise NameFault(
                        f"{other.name} uses another module {other.module}, of {other.folder or 'a package'}",
                        hint=f"give one of the two files another name, or DROP FUNCTION {other.name};",
                    )
            module, modules = _load(function.module, folder, folders)
            self._by_variable[module_variable(function.module)] = module
            made = replace(function, folder=folder, modules=modules)
            return _looked_at(made, _attribute(module, function))
        except StreamsqlError as error:
            error.span = target.span
            raise


def _load(name: str, folder: str, folders: list[str]) -> tuple[ModuleType, tuple[str, ...]]:
    """A module, and the names of all that lie in the same folder and came with it."""
    if not folder:
        return _import(name, folders), ()
    for old in [n for n, of in _loaded.items() if of == folder or n == name]:
        sys.modules.pop(old, None)
        del _loaded[old]
    before = set(sys.modules)
    kept = sys.path[:], sys.dont_write_bytecode
    # Compiled files are told from changed sources by whole seconds only.
    sys.path, sys.dont_write_bytecode = [folder, *sys.path], True
    try:
        importlib.invalidate_caches()
        module = _import(name, folders)
    finally:
        sys.path, sys.dont_write_bytecode = kept
        new = {n for n in set(sys.modules) - before if _lies_in(sys.modules[n], folder)}
        _loaded.update(dict.fromkeys(new, folder))
    if not _lies_in(module, folder):
        raise NameFault(
            f"there is another module {name}: {getattr(module, '__file__', None) or 'a part of Python'}",
            hint=f"give {Path(folder) / name}.py another name",
        )
    from pyspark import cloudpickle

    names = sorted({name, *new})
    for each in names:
        cloudpickle.register_pickle_by_value(sys.modules[each])
    return module, tuple(names)


def _holds(folder: str, module: str) -> bool:
    path = Path(folder, *module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _lies_in(module: Any, folder: str) -> bool:
    """Whether a module is a file of a folder's own, and not of a Python kept inside it."""
    file = getattr(module, "__file__", None) or ""
    return bool(file) and "site-packages" not in file and Path(file).resolve().is_relative_to(folder)


def _import(name: str, folders: list[str]) -> ModuleType:
    """The module of that name. Raises NameFault that says what is missing or at fault in it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(missing + "."):
            near = [p.stem for f in folders for p in Path(f).glob("*.py")]
            raise NameFault(
                f"there is no Python module {name}",
                detail=f"looked in {', '.join(folders)} and where Python's packages are",
                hint=did_you_mean(name, near) or f"write it into {Path(folders[0]) / name}.py",
            ) from None
        raise _package_missing(f"the module {name}", missing) from None
    except ImportError as error:
        raise NameFault(f"the module {name} cannot be imported: {error}") from None
    except SyntaxError as error:
        raise NameFault(
            f"the module {name} is not Python: {error.msg}", detail=f"{error.filename}, line {error.lineno}"
        ) from None
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise NameFault(
            f"the module {name} fails while it is imported: {type(error).__name__}: {error}",
            detail=f"{last.filename}, line {last.lineno}: {last.line}",
        ) from None


def _package_missing(whose: str, *modules: str) -> NameFault:
    roots = dict.fromkeys(m.split(".")[0] for m in modules)
    packages = [_PACKAGES.get(root, root) for root in roots]
    plain = " and ".join(p.strip("'").split(">")[0] for p in packages)
    what = f"the package {plain}, which is" if len(packages) == 1 else f"the packages {plain}, which are"
    return NameFault(f"{whose} needs {what} not there", hint=f"pip install {' '.join(packages)}")


def _need(whose: str, *modules: str) -> None:
    """Raise NameFault that names all of these modules' packages that are missing."""
    missing = []
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing.append(error.name or module)
        except Exception:  # protobuf says in a class of its own that it is too old for PySpark
            missing.append("google")
    if missing:
        raise _package_missing(whose, *missing)


def _attribute(module: ModuleType, function: Function) -> Any:
    found = getattr(module, function.attribute, None)
    if found is None:
        names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise NameFault(
            f"the module {function.module} has no {function.attribute}",
            hint=did_you_mean(function.attribute, names)
            or (f"it has {', '.join(names[:8])}" if names else f"{module.__file__} defines nothing"),
        )
    if not callable(found):
        raise NameFault(f"{function.module}.{function.attribute} is no function and no class")
    if hasattr(found, "evalType") or hasattr(found, "returnType"):
        raise NameFault(
            f"{function.module}.{function.attribute} is a user-defined function already",
            hint="take its decorator away: RETURNS says the type",
        )
    return found


def _looked_at(function: Function, found: Any) -> Function:
    """A function with the kind and form of what it stands for."""
    name = f"{function.module}.{function.attribute}"
    if function.returns:
        if inspect.isclass(found):
            raise NameFault(f"{name} is a class", hint="RETURNS TABLE (column type, …)")
        return _value_function(function, found, name)
    if not inspect.isclass(found):
        raise NameFault(
            f"{name} is no class", detail="a table function is a class with a method eval that yields rows",
            hint="RETURNS a type, for a function that gives one value",
        )  # fmt: skip
    if hasattr(found, "handleInputRows"):
        return _processor(function, found, name)
    if not hasattr(found, "eval"):
        raise NameFault(
            f"the class {name} has neither eval nor handleInputRows",
            hint="eval(self, …) for a table function; handleInputRows(self, key, rows, timerValues) "
            "for a stateful processor",
        )
    return replace(function, kind="table")


def _value_function(function: Function, found: Any, name: str) -> Function:
    """Scalar or aggregate, over values or over series: told by the annotations, as PySpark reads them."""
    from pyspark.sql.pandas.typehints import infer_eval_type_for_udf
    from pyspark.util import PythonEvalType as Kinds

    hints = " ".join(str(h) for h in getattr(found, "__annotations__", {}).values())
    if "pandas" in hints or "pd." in hints:
        _need(f"the function {name}", "pandas")
    try:
        told = infer_eval_type_for_udf(found)
    except Exception:
        told = None  # plain values, or a callable without a signature
    pandas = (Kinds.SQL_SCALAR_PANDAS_UDF, Kinds.SQL_SCALAR_PANDAS_ITER_UDF)
    arrow = (Kinds.SQL_SCALAR_ARROW_UDF, Kinds.SQL_SCALAR_ARROW_ITER_UDF)
    if told in pandas:
        return replace(function, kind="scalar", form="pandas")
    if told in arrow:
        return replace(function, kind="scalar", form="arrow")
    if told is not None:
        return replace(
            function, kind="aggregate", form="pandas" if "pandas" in hints or "pd." in hints else "arrow"
        )
    # PySpark hands rows over in Arrow batches only where there is pandas, too.
    batched = importlib.util.find_spec("pandas") is not None
    return replace(function, kind="scalar", form="batched" if batched else "plain")


def _processor(function: Function, found: Any, name: str) -> Function:
    """A stateful processor, over rows or (when handleInputRows says DataFrame) over pandas frames."""
    from pyspark.sql.streaming import StatefulProcessor

    _need(
        f"the stateful processor {name}",
        "pandas",
        "google.protobuf",
        "pyspark.sql.streaming.proto.StateMessage_pb2",
    )
    if not issubclass(found, StatefulProcessor):
        raise NameFault(
            f"{name} is no StatefulProcessor",
            hint="from pyspark.sql.streaming import StatefulProcessor\n"
            f"class {function.attribute}(StatefulProcessor): …",
        )
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise NameFault(f"the class {name} has no method {' and no '.join(missing)}")
    wanted = [
        p.name
        for p in inspect.signature(found).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if wanted:
        raise NameFault(f"the class {name} wants {', '.join(wanted)}, and is called with nothing")
    hints = " ".join(str(h) for h in getattr(found.handleInputRows, "__annotations__", {}).values())
    return replace(function, kind="processor", form="pandas" if "DataFrame" in hints else "rows")


WHAT = {"scalar": "function", "aggregate": "aggregate function", "table": "table function",
        "processor": "stateful processor"}  # fmt: skip
