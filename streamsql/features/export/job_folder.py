"""The folder of EXPORT QUERY: programs, Python modules, requirements.txt, README.md."""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from streamsql.errors import InputFault, RuleFault
from streamsql.features.export.job import Job
from streamsql.features.export.job_readme import readme
from streamsql.language.statements.base import Name
from streamsql.runtime.embedded import python_code
from streamsql.runtime.workspace.owned_folders import private

MODULES = "modules"


def file_of(query: str, taken: Iterable[str]) -> str:
    """The name of a query's program. It begins with a word that no module of Python begins with: the folder
    of the program is the first in which Python looks for modules.
    """
    base = "query_" + (re.sub(r"\W+", "_", query.casefold(), flags=re.ASCII).strip("_")[:100] or "it")
    names = (f"{base}.py", *(f"{base}_{n}.py" for n in range(2, 10_000)))
    return next(name for name in names if name not in taken)


def check_free(folder: Name) -> Path:
    """The path of a new folder. Raises InputFault when it is not free, or its parent does not exist."""
    path = Path(folder.value).expanduser().absolute()
    if path.is_symlink() or path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise InputFault(
            f"the folder {path} exists and is not empty" if path.is_dir() else f"{path} is not a folder",
            hint="EXPORT QUERY writes a new folder: name another one",
            span=folder.span,
            code="FOLDER_IN_USE",
        )
    if not path.parent.is_dir():
        raise InputFault(
            f"there is no folder {path.parent}",
            hint=f"\\! mkdir -p '{path.parent}'",
            span=folder.span,
            code="MISSING_PATH",
        )
    return path


def write_folder(path: Path, jobs: list[Job], settings: dict[str, str]) -> None:
    """Write the folder of some jobs. settings: see `chosen_settings`. Raises OSError, RuleFault."""
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        modules = _copy_modules(jobs, part / MODULES)
        for job in jobs:
            _write(part / job.file, job.text)
        tables = {statement.text: None for job in jobs for statement in job.tables}
        if tables:
            _write(part / "tables.sql", "".join(f"{text.rstrip().rstrip(';')};\n\n" for text in tables))
        _write(part / "requirements.txt", requirements(jobs, modules))
        _write(part / "README.md", readme(jobs, sorted(modules), settings))
        if path.is_dir():
            path.rmdir()
        part.chmod(0o755)
        part.replace(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write(file: Path, text: str) -> None:
    with open(file, "w", encoding="utf-8", opener=private) as out:
        out.write(text)


def _copy_modules(jobs: list[Job], folder: Path) -> dict[str, str]:
    """Copy the Python modules of jobs. Returns their texts by relative path. Raises RuleFault when two have
    the same name.
    """
    wanted = {f.module: f.folder for job in jobs for f in job.functions if f.folder}
    wanted |= {name: place for job in jobs for name, place in job.arguments.code.items()}
    copied: dict[str, str] = {}
    for name, place in wanted.items():
        python_code.load_module(name, place)
        for file in python_code.modules_of(name).values():
            own = os.path.abspath(place)
            inside = file.startswith(own.rstrip(os.sep) + os.sep)
            relative = os.path.relpath(file, own if inside else os.getcwd())
            text = Path(file).read_text("utf-8")
            if copied.setdefault(relative, text) != text:
                raise RuleFault(
                    f"two Python modules of the queries have the name {relative}",
                    hint="export the queries one by one, each into a folder of its own",
                    code="BAD_PYTHON_CODE",
                )
            (folder / relative).parent.mkdir(parents=True, exist_ok=True)
            _write(folder / relative, text)
    return copied


def requirements(jobs: list[Job], modules: dict[str, str]) -> str:
    """The text of requirements.txt: PySpark, and the packages that programs and modules import."""
    own = {Path(path).parts[0].removesuffix(".py") for path in modules}
    names = {"pyspark", "pyarrow", "pandas"} if any(job.functions for job in jobs) else {"pyspark"}
    if any(function.kind == "processor" for job in jobs for function in job.functions):
        names.add("google")
    for text in (*(job.text for job in jobs), *modules.values()):
        names |= imported(text)
    by_module = metadata.packages_distributions()
    names -= own | set(sys.stdlib_module_names) | {"streamsql"}
    packages = {by_module.get(name, [name])[0] for name in names}
    return "".join(f"{_pinned(package)}\n" for package in sorted(packages, key=str.casefold))


def _pinned(package: str) -> str:
    try:
        return f"{package}=={metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package


def imported(text: str) -> set[str]:
    """The top-level names of the modules that a Python source imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
