"""`--check-cluster`: what a session on a cluster ships, uses and lacks. Starts nothing."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from streamsql.cli.dry_run import Checker, read_all
from streamsql.cli.findings import Reporter
from streamsql.connectors.base import OptionSpec
from streamsql.connectors.packages import PACKAGES, Package, needed
from streamsql.connectors.registry import connector
from streamsql.definitions import Sink, Stream
from streamsql.errors import EXIT_OK, Source, StartFault, StreamsqlError
from streamsql.language.statements.base import Name
from streamsql.output.printer import Printer
from streamsql.plan.context import Context
from streamsql.plan.planner import start_plan
from streamsql.results import Rows
from streamsql.runtime.engine.cluster import check_master
from streamsql.runtime.engine.cluster_cores import tune_executors
from streamsql.runtime.engine.java import find_java, spark_home
from streamsql.runtime.engine.java_command import spark_defaults
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.connectivity import contacts

MISSING = "missing"
Row = tuple[str, str, str]
_IMAGE = "spark.kubernetes.container.image"
_COLUMNS = ("check", "what", "result")


def check_cluster(
    parts: SessionParts,
    context: Context,
    sources: list[Source],
    variables: dict[str, str],
    printer: Printer,
) -> int:
    """Print what running scripts on the master of the settings ships, uses and lacks. context: the
    definitions of the workspace. Returns the exit code: 0, that of a fault in a script, or 3 when something
    is missing.
    """
    checker = Checker(context)
    if sources and (code := read_all(sources, variables, Reporter(printer), checker)):
        return code
    context = checker.context
    tune_executors(parts.settings)
    rows = [*_cluster(parts), *_machines(parts), *_shipped(parts, context)]
    rows += [*_paths(context), *_contacts(context)]
    settings = (row for row in parts.settings.rows() if row[0] != "spark.redaction.regex")
    rows += [("setting", f"{key} = {value}", f"from {origin}") for key, value, origin in settings]
    printer.show(Rows((), _COLUMNS, rows, (False, False, False)))
    lacks = [what for check, what, result in rows if result.startswith(MISSING)]
    if lacks:
        printer.error(
            StartFault(
                f"the cluster cannot be used yet: {', '.join(lacks)}",
                hint="HELP cluster;",
                code="CLUSTER_INCOMPLETE",
            )
        )
        return StartFault.exit_code
    return EXIT_OK


def _cluster(parts: SessionParts) -> Iterator[Row]:
    """The master, and what it needs."""
    settings = parts.settings
    try:
        check_master(settings.master)
        found = "ok" if not settings.master.startswith("local") else "this machine, no cluster; --master URL"
        yield "master", settings.master, found
    except StartFault as fault:
        yield "master", settings.master, f"{MISSING}: {fault.detail or fault.message}; {fault.hint}"
    conf = spark_defaults() | settings.start_conf()
    if settings.master.startswith("k8s://") and not conf.get(_IMAGE):
        yield "image", _IMAGE, f"{MISSING}: --conf {_IMAGE}=NAME, an image with Spark and Python"
    home = spark_home()
    yield "Spark", f"{version('pyspark')} in {home}", "the workers must run the same version"
    try:
        java = find_java(parts.config.java)
        yield (
            "Java",
            f"{java.version} in {java.path.parent.parent}",
            "ok: for the driver; workers have their own",
        )
    except StartFault as fault:
        yield "Java", parts.config.java, f"{MISSING}: {fault.message}; {fault.hint}"
    python = conf.get("spark.pyspark.python") or "python3"
    needs = f"Python {'.'.join(platform.python_version_tuple()[:2])} with pyarrow and pandas"
    yield (
        "Python",
        f"{python} on the workers",
        f"functions need {needs}; spark.pyspark.python names it",
    )


def _machines(parts: SessionParts) -> Iterator[Row]:
    """The folders of the console that the workers use."""
    folder = str(parts.store.folder if parts.store else parts.config.folder)
    kind, shared = mount_of(folder), is_shared(folder)
    if parts.settings.master.startswith("local"):
        return
    if shared:
        yield "workspace", folder, f"ok: on {kind}"
    else:
        where = f"on a disk of this machine ({kind})" if kind else "on this machine"
        yield (
            "workspace",
            folder,
            f"{where}, and workers read and write it: -w DIR names a shared folder",
        )


def _shipped(parts: SessionParts, context: Context) -> Iterator[Row]:
    """Python modules and jars that are sent to the workers."""
    for function in context.catalog.functions.values():
        target = f"{function.module}.{function.attribute}"
        yield "ships", f"Python {target}", f"with each task that calls {function.name}"
    for entry in _entries(context):
        for key, value in entry.options:
            if key.casefold() in ("function", "class"):
                yield "ships", f"Python {value}", f"with each task of {entry.name}"
    for package in _packages(context):
        jars = parts.packages.jars(package, version("pyspark"))
        release = next(iter(package.releases(version("pyspark"))), None)
        for jar in jars:
            yield "ships", Path(jar).name, f"for {package.name}, from the cache{_instead(package, jar)}"
        if not jars and release:
            offline = parts.config.preferences["offline"] == "on"
            fetched = "is fetched on first use, then sent to the workers"
            result = f"{MISSING}: SET streamsql.offline = off lets it be fetched" if offline else fetched
            yield "ships", ", ".join(release.coordinates), result
        elif not jars:
            yield "ships", package.name, f"{MISSING}: {package.unreleased}"


def _instead(package: Package, jar: str) -> str:
    """A remark on a jar that is of another release than Spark."""
    spark, name = version("pyspark"), Path(jar).name
    own = [c for c in package.matching.coordinates if "{spark}" in c and c.split(":")[1] in name]
    if not own or name.endswith(f"-{spark}.jar"):
        return ""
    return f"; it works with Spark {spark}, whose own release could not be fetched"


def _packages(context: Context) -> list[Package]:
    """The packages that streams, sinks and queries need."""
    wanted = {PACKAGES[name]: None for e in _entries(context) if (name := e.connector) in PACKAGES}
    for query in context.catalog.queries.values():
        try:
            plan = start_plan(query, context)
        except StreamsqlError:
            continue  # START QUERY says why
        wanted |= dict.fromkeys(needed(plan.program + plan.writer(plan.choices[0].mode)))
    return list(wanted)


def _paths(context: Context) -> Iterator[Row]:
    """The local folders that streams and sinks name."""
    for entry in _entries(context):
        if not entry.connector or entry.connector == "table":
            continue
        using = connector(Name(entry.connector))
        specs: tuple[OptionSpec, ...] = (*(using.reads or ()), *(using.writes or ()))
        paths = {spec.name.casefold() for spec in specs if spec.kind == "path"} - {"folder"}
        for key, value in entry.options:
            if key.casefold() in paths and ("://" not in value or value.startswith("file:")):
                shared = is_shared(value.removeprefix("file://").removeprefix("file:"))
                result = "ok: on a shared file system" if shared else "all machines must see it there"
                yield "path", f"{value} ({entry.name})", result


def _contacts(context: Context) -> Iterator[Row]:
    """The servers that streams and sinks name, such as those of Kafka."""
    for name, servers, reason in contacts(_entries(context)):
        requirement = "it accepts connections of this machine, and must accept those of the workers"
        yield "contacts", f"{servers} ({name})", f"{MISSING}: {reason}" if reason else requirement


def _entries(context: Context) -> tuple[Stream | Sink, ...]:
    return (*context.catalog.streams.values(), *context.catalog.sinks.values())


_SHARED = (
    "nfs",
    "cifs",
    "smb",
    "ceph",
    "gluster",
    "lustre",
    "beegfs",
    "gpfs",
    "afs",
    "ocfs2",
    "gfs2",
    "fuse.",
)


def mount_of(folder: str) -> str:
    """The type of the file system that a folder is on, or will be; empty when it is not known."""
    path = os.path.realpath(folder)
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        _, place, type_, *_ = line.split()
        place = place.replace("\\040", " ")
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, kind = place, type_
    return kind


def is_shared(folder: str) -> bool:
    """Whether other machines can see a folder, as far as the type of its file system tells."""
    return mount_of(folder).startswith(_SHARED)
