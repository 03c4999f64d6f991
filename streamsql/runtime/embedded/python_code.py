"""Loads the Python code that a statement names. EXPLAIN PYSPARK prints this code, so it is self-contained."""

import importlib
import importlib.machinery
import os
import sys


def remove_other(top, installed):
    """Remove the package `top` from sys.modules if the search path now finds another one of that name. Raises
    ImportError when the loaded package is an installed one. Returns the names of the removed modules.
    """
    found = importlib.machinery.PathFinder.find_spec(top)
    loaded = getattr(sys.modules.get(top), "__spec__", None)
    if not found or not loaded or found.origin == loaded.origin:
        return []
    if any(part in str(loaded.origin) for part in installed):
        raise ImportError(f"there is another module {top}: {loaded.origin}; give {found.origin} another name")
    others = [m for m in sys.modules if m == top or m.startswith(top + ".")]
    for other in others:
        del sys.modules[other]
    return others


def load_module(name, folder="."):
    """The module of that name. It is searched in the folder, the current folder, then sys.path.

    Modules of the two folders are read again with each call. Their code is sent to Spark's workers with
    the functions that need it: nothing is installed there. Raises ImportError, or what the module raises.
    """
    from pyspark import cloudpickle

    folders = [os.path.abspath(folder), os.getcwd()]
    installed = (os.path.dirname(os.__file__) + os.sep, f"{os.sep}site-packages{os.sep}", "built-in")
    # The modules read from the two folders: name → its modules → their files.
    read = load_module.__dict__.setdefault("read", {})
    for old in [module for modules in read.values() for module in modules]:
        sys.modules.pop(old, None)
    read[name] = {}
    before, loaded_before, compiles = list(sys.path), set(sys.modules), sys.dont_write_bytecode
    sys.path[:0] = folders
    # Python detects changed sources of compiled files only by whole seconds.
    sys.dont_write_bytecode = True
    try:
        importlib.invalidate_caches()
        loaded_before.difference_update(remove_other(name.split(".")[0], installed))
        module = importlib.import_module(name)
    finally:
        # At the end of the path they hide no module, and functions can still import from them.
        sys.path[:] = before + [f for f in folders if f not in before]
        sys.dont_write_bytecode = compiles
        for new in set(sys.modules) - loaded_before:
            file = os.path.abspath(getattr(sys.modules[new], "__file__", None) or os.sep)
            own = any(file.startswith(f.rstrip(os.sep) + os.sep) for f in folders)
            if own and not any(part in file for part in installed):
                read[name][new] = file
    for new in read[name]:
        cloudpickle.register_pickle_by_value(sys.modules[new])
    return module


def modules_of(name):
    """The modules that the last `load_module(name)` read from its folders, with their files."""
    return dict(sorted(load_module.__dict__.get("read", {}).get(name, {}).items()))


def find(name, folder="."):
    """The function or class `module.name`, of the module that `load_module` returns."""
    module, _, attribute = name.rpartition(".")
    return getattr(load_module(module, folder), attribute)


def load(name, folder="."):
    """The result of `find`; of a class, an instance."""
    named = find(name, folder)
    return named() if isinstance(named, type) else named


def data_source(spark, name, folder="."):
    """Registers the DataSource class of that name with Spark. Returns the name of its format."""
    source = find(name, folder)
    spark.dataSource.register(source)
    return source.name()
