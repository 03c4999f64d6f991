"""Looks at the Python code that a sink or stream names, before anything is started."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from streamsql.connectors.base import Connector
from streamsql.errors import InputFault, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.runtime import code


def check_code(name: Name, folder: str, connector: Connector) -> None:
    """Raise InputFault, placed at the name, when there is no such function or class, when its module
    fails, or when the connector cannot use it.
    """
    module, _, attribute = name.value.rpartition(".")
    try:
        found = code.find(name.value, folder or ".")
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(error.name + ".")):
            raise _no_module(name, error.name, folder) from None
        raise _failing(name, module, error) from error
    except AttributeError as error:
        public = vars(sys.modules[module]) if module in sys.modules else {}
        if attribute in public or error.name != attribute:
            raise _failing(name, module, error) from error
        names = [n for n, v in public.items() if callable(v) and not n.startswith("_")]
        raise InputFault(
            f"the module {module} has no {attribute}",
            hint=did_you_mean(attribute, names) or (f"it has: {', '.join(names[:8])}" if names else ""),
            span=name.span,
        ) from None
    except Exception as error:
        raise _failing(name, module, error) from error
    wrong = connector.check_code(found)
    if wrong:
        raise InputFault(
            f"{name} cannot be used by {connector.name}",
            detail=wrong,
            hint=connector.code_hint,
            span=name.span,
        )


def _no_module(name: Name, missing: str, folder: str) -> InputFault:
    near = [p.stem for f in {folder or ".", "."} for p in Path(f).glob("*.py")]
    where = Path(folder or ".") / (missing.replace(".", "/") + ".py")
    return InputFault(
        f"there is no Python module {missing}",
        detail=f"looked for in {Path(folder or '.').absolute()}, the current folder and sys.path",
        hint=did_you_mean(missing, near) or f"write {where}, or name its folder: OPTIONS (…, folder 'dir')",
        span=name.span,
    )


def _failing(name: Name, module: str, error: Exception) -> InputFault:
    """The module is there but cannot be imported; said with the last place of its own."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "importlib" not in f.filename and not f.filename.startswith(_HERE)]
    place = f"{own[-1].filename}, line {own[-1].lineno}: " if own else ""
    return InputFault(
        f"the Python module {module} cannot be imported",
        detail=f"{place}{type(error).__name__}: {error}",
        span=name.span,
    )


_HERE = str(Path(__file__).parents[1])
