"""Checks the Python code that a statement names, before anything is started."""

from __future__ import annotations

import hashlib
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from streamsql.calls import Lit, Program, Var, calls_in
from streamsql.connectors.base import Connector
from streamsql.errors import InputFault, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.runtime.embedded import python_code
from streamsql.runtime.engine.pyspark_import import import_pyspark

# Packages by their module, if the names differ or a version is required.
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


def find_code(name: Name, folder: str) -> tuple[ModuleType, Any]:
    """The module and the function or class that 'module.attribute' names; folder: searched first.

    Raises InputFault, with the span of the name, when one of them or an import of the module is missing,
    and when the module fails.
    """
    module, _, attribute = name.value.rpartition(".")
    import_pyspark()
    try:
        code = _module(module, folder or ".")
        if getattr(code, attribute, None) is None:
            raise _no_attribute(code, attribute)
    except InputFault as fault:
        fault.span = name.span
        raise
    return code, getattr(code, attribute)


def check_code(name: Name, folder: str, connector: Connector, purpose: str) -> None:
    """Raise InputFault, with the span of the name, when there is no such function or class, its module
    fails, or the connector cannot use it. purpose: "read" or "write".
    """
    _, code = find_code(name, folder)
    wrong = connector.check_code(code, purpose)
    if wrong:
        raise InputFault(
            f"{name} cannot be used by {connector.name}",
            detail=wrong,
            hint=connector.code_hint,
            span=name.span,
            code="BAD_PYTHON_CODE",
        )


def digest(module: str) -> str:
    """The digest of a module's code and of the modules of its folder that it imports, as last loaded; empty
    for an installed module.
    """
    texts = [Path(file).read_bytes() for file in python_code.modules_of(module).values()]
    return hashlib.sha256(b"\0".join(texts)).hexdigest() if texts else ""


def digests(program: Program) -> dict[str, str]:
    """The digests of the modules that a program, which has run, loads by name."""
    texts = {}
    for call in calls_in(program):
        if isinstance(call.function, Var) and call.function.name in ("find", "load", "data_source"):
            name = next(str(a.value) for a in call.args if isinstance(a, Lit))
            module = name.rpartition(".")[0]
            texts[module] = digest(module)
    return {module: text for module, text in texts.items() if text}


def _module(name: str, folder: str) -> ModuleType:
    try:
        module: ModuleType = python_code.load_module(name, folder)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(missing + "."):
            raise _no_module(missing, folder) from None
        raise package_missing(f"the module {name}", missing) from None
    except ImportError as error:
        raise InputFault(
            f"the module {name} cannot be imported: {error}", detail=_place(error), code="BAD_PYTHON_CODE"
        ) from None
    except SyntaxError as error:
        raise InputFault(
            f"the module {name} is not Python: {error.msg}",
            detail=f"{error.filename}, line {error.lineno}",
            code="BAD_PYTHON_CODE",
        ) from None
    except (Exception, SystemExit) as error:
        raise InputFault(
            f"the module {name} fails while it is imported: {type(error).__name__}: {error}",
            detail=_place(error),
            code="BAD_PYTHON_CODE",
        ) from None
    return module


def _place(error: BaseException) -> str:
    """The innermost frame of an error that is in the user's code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "importlib" not in f.filename and not f.filename.startswith(_HERE)]
    return f"{own[-1].filename}, line {own[-1].lineno}: {own[-1].line}" if own else ""


_HERE = str(Path(__file__).parents[2])


def _no_module(missing: str, folder: str) -> InputFault:
    near = [p.stem for f in {folder, "."} for p in Path(f).glob("*.py")]
    where = Path(folder) / (missing.replace(".", "/") + ".py")
    return InputFault(
        f"there is no Python module {missing}",
        detail=f"searched in {Path(folder).absolute()}, the current folder and sys.path",
        hint=did_you_mean(missing, near) or f"write {where}, or install the package that has it",
        code="MISSING_MODULE",
    )


def _no_attribute(module: ModuleType, attribute: str) -> InputFault:
    names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
    return InputFault(
        f"the module {module.__name__} has no {attribute}",
        hint=did_you_mean(attribute, names)
        or (f"it has {', '.join(names[:8])}" if names else f"{module.__file__} defines nothing"),
        code="BAD_PYTHON_CODE",
    )


def package_missing(whose: str, *modules: str) -> InputFault:
    """The error for packages that are not installed. modules: those that could not be imported."""
    roots = dict.fromkeys(m.split(".")[0] for m in modules)
    packages = [_PACKAGES.get(root, root) for root in roots]
    plain = " and ".join(p.strip("'").split(">")[0] for p in packages)
    what = f"the package {plain}, which is" if len(packages) == 1 else f"the packages {plain}, which are"
    return InputFault(
        f"{whose} needs {what} not installed", hint=f"pip install {' '.join(packages)}", code="MISSING_MODULE"
    )
