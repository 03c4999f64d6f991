"""Python code that a sink or stream names. EXPLAIN PYSPARK prints these functions, so they stand alone."""

import importlib
import importlib.machinery
import os
import sys


def find(name, folder="."):
    """The function or class `module.name`: in the folder, the current folder, then sys.path.

    Modules of the two folders are read anew each time, and what Spark's workers need of them is
    sent along with the function. Raises ImportError, AttributeError or what the module raises.
    """
    from pyspark import cloudpickle

    module_name, _, attribute = name.rpartition(".")
    folders = [os.path.abspath(folder), os.getcwd()]
    read = find.__dict__.setdefault("read", set())
    for old in read:
        sys.modules.pop(old, None)
    read.clear()
    before, known = list(sys.path), set(sys.modules)
    sys.path[:0] = folders
    try:
        importlib.invalidate_caches()
        top = module_name.split(".")[0]
        there = importlib.machinery.PathFinder.find_spec(top)
        here = getattr(sys.modules.get(top), "__spec__", None)
        if there and here and there.origin != here.origin:
            known.discard(top)
            del sys.modules[top]  # another module of that name
        module = importlib.import_module(module_name)
    finally:
        # At the end they hide nothing, and the function can still import from beside itself.
        sys.path[:] = before + [f for f in folders if f not in before]
    for new in set(sys.modules) - known:
        file = os.path.abspath(getattr(sys.modules[new], "__file__", None) or os.sep)
        installed = file.startswith((sys.prefix + os.sep, os.path.dirname(os.__file__)))
        if not installed and any(file.startswith(f + os.sep) for f in folders):
            read.add(new)
            cloudpickle.register_pickle_by_value(sys.modules[new])
    return getattr(module, attribute)


def load(name, folder="."):
    """What `find` finds; a class is made an object."""
    found = find(name, folder)
    return found() if isinstance(found, type) else found


def data_source(spark, name, folder="."):
    """Makes the DataSource class of that name known to Spark; returns the format that it goes by."""
    found = find(name, folder)
    spark.dataSource.register(found)
    return found.name()
