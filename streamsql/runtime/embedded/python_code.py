"""Python code that a statement names. EXPLAIN PYSPARK prints these functions, so they stand alone."""

import importlib
import importlib.machinery
import os
import sys


def load_module(name, folder="."):
    """The module of that name: in the folder, the current folder, then where Python's packages are.

    Modules of the two folders are read anew each time, and what Spark's workers need of them is
    sent along with what is called: nothing is installed there. Raises ImportError or what the module raises.
    """
    from pyspark import cloudpickle

    folders = [os.path.abspath(folder), os.getcwd()]
    installed = (os.path.dirname(os.__file__) + os.sep, f"{os.sep}site-packages{os.sep}", "built-in")
    # What was read of the two folders: name asked for → its modules → their files.
    read = load_module.__dict__.setdefault("read", {})
    for old in [module for modules in read.values() for module in modules]:
        sys.modules.pop(old, None)
    read[name] = {}
    before, known, compiles = list(sys.path), set(sys.modules), sys.dont_write_bytecode
    sys.path[:0] = folders
    # Compiled files are told from changed sources by whole seconds only.
    sys.dont_write_bytecode = True
    try:
        importlib.invalidate_caches()
        top = name.split(".")[0]
        there = importlib.machinery.PathFinder.find_spec(top)
        here = getattr(sys.modules.get(top), "__spec__", None)
        if there and here and there.origin != here.origin:
            if any(part in str(here.origin) for part in installed):
                raise ImportError(
                    f"there is another module {top}: {here.origin}; give {there.origin} another name"
                )
            for other in [m for m in sys.modules if m == top or m.startswith(top + ".")]:
                known.discard(other)
                del sys.modules[other]
        module = importlib.import_module(name)
    finally:
        # At the end they hide nothing, and the function can still import from beside itself.
        sys.path[:] = before + [f for f in folders if f not in before]
        sys.dont_write_bytecode = compiles
        for new in set(sys.modules) - known:
            file = os.path.abspath(getattr(sys.modules[new], "__file__", None) or os.sep)
            own = any(file.startswith(f.rstrip(os.sep) + os.sep) for f in folders)
            if own and not any(part in file for part in installed):
                read[name][new] = file
    for new in read[name]:
        cloudpickle.register_pickle_by_value(sys.modules[new])
    return module


def modules_of(name):
    """The modules of the folders that the last `load_module(name)` read, with their files."""
    return dict(sorted(load_module.__dict__.get("read", {}).get(name, {}).items()))


def find(name, folder="."):
    """The function or class `module.name`, of the module that `load_module` gives."""
    module, _, attribute = name.rpartition(".")
    return getattr(load_module(module, folder), attribute)


def load(name, folder="."):
    """What `find` finds; a class is made an object."""
    found = find(name, folder)
    return found() if isinstance(found, type) else found


def data_source(spark, name, folder="."):
    """Makes the DataSource class of that name known to Spark; returns the format that it goes by."""
    found = find(name, folder)
    spark.dataSource.register(found)
    return found.name()
