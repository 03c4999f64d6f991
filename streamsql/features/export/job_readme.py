"""The README of an exported folder: how each program is run."""

from __future__ import annotations

import os
import shlex
from importlib import metadata

from streamsql.features.export.job import Job
from streamsql.plan.changes_plan import Changes
from streamsql.secrets import redact_option

_HEAD = """\
# Streaming queries for spark-submit

Exported from streamsql, which is not needed to run them. Spark {spark} and the packages of requirements.txt
must be installed where the driver runs, and on the workers if a query calls Python functions.

Each program takes its checkpoint, folders and servers as arguments; `--help` lists them. `--master` and the
other options of spark-submit come before the name of the program. Checkpoints, and the folders that are
read and written, must be reachable from all machines of a cluster (hdfs://, s3a://, or a shared folder).

With the checkpoint of the console, a query resumes where it was stopped in the console: first `STOP QUERY
name;` there. Two programs must never use a checkpoint at the same time. With a new folder it begins anew.
"""
_LIVE = """\
A program that reads live tables contains the queries that feed them. Run either that program or the one of
such a query with its checkpoint, not both.
"""
_MODULES = """\
The modules are in `modules` and are sent to the workers. With `--deploy-mode cluster`, where the driver has
no such folder, add `--py-files {files}`. Files that these modules read, and modules that they import only
inside functions, are not included.
"""
_TABLES = """\
The programs read or write tables of Spark. tables.sql has their definitions in the console; the cluster
needs tables of these names in its catalog.
"""
_ZONE = """\
Windows of a day, and times without a zone, are those of the session time zone. If the time zone of the
cluster is not that of the console, add `--conf spark.sql.session.timeZone=ZONE`.
"""


def readme(jobs: list[Job], modules: list[str], settings: dict[str, str]) -> str:
    """The text of README.md. modules: the Python files; settings: of Spark that the analyst has chosen."""
    text = _HEAD.format(spark=metadata.version("pyspark"))
    text += "".join(_of_job(job, settings) for job in jobs)
    if any(job.feeding for job in jobs):
        text += _section("Live tables", _LIVE)
    if modules:
        listed = ",".join(f"modules/{path}" for path in modules)
        text += _section("Python modules", _MODULES.format(files=listed))
    if any(job.tables for job in jobs):
        text += _section("Tables", _TABLES)
    secret = sorted(key for key, value in settings.items() if redact_option(key, value) != value)
    if secret:
        text += _section("Secrets", f"Set these settings, which are not exported: {', '.join(secret)}.\n")
    if "spark.sql.session.timeZone" not in settings:
        text += _section("Time zone", _ZONE)
    return text


def _section(title: str, text: str) -> str:
    return f"\n## {title}\n\n{text}"


def _of_job(job: Job, settings: dict[str, str]) -> str:
    """The section of one query."""
    name = job.query.query.name
    options = [f"--packages {','.join(_coordinates(job))}"] if job.packages else []
    options += [
        f"--conf {shlex.quote(f'{key}={value}')}"
        for key, value in sorted(settings.items())
        if not key.startswith(("spark.sql.", "spark.master", "spark.submit.", "spark.driver.extra"))
        and redact_option(key, value) == value
    ]
    anew = [f"--{flag} /new/folder" for flag in job.checkpoints]
    places = job.arguments.places
    taken = [f"--{flag} {shlex.quote(place)}" for flag, place in job.checkpoints.items()]
    for run in (*job.feeding, job.query):
        for table in run.live if run.query.name in job.arguments.queries else ():
            flag = job.arguments.rows_of(table.name).flag
            taken.append(f"--{flag} {shlex.quote(os.path.realpath(places.rows(table.name, run.query.name)))}")
    text = f"\n## {name}\n\nA new start:\n\n{_command(job, options, anew)}"
    if not isinstance(job.query, Changes):
        text += f"\nResuming the query of the console:\n\n{_command(job, options, taken)}"
    else:
        text += "\nIt begins by writing all rows of the result; later it writes what changes.\n"
    if job.arguments.environment:
        listed = ", ".join(f"`{name}`" for name in job.arguments.environment)
        text += f"\nSecrets are read from the environment of the driver: {listed}.\n"
    if job.query.query.restart:
        text += "\nIts RESTART clause is the console's; let the service that runs spark-submit restart it.\n"
    return text


def _coordinates(job: Job) -> list[str]:
    """The Maven coordinates of the packages that a job needs."""
    version = metadata.version("pyspark")
    return [c for package in job.packages for r in package.releases(version)[:1] for c in r.coordinates]


def _command(job: Job, options: list[str], arguments: list[str]) -> str:
    lines = ["spark-submit", *options, " ".join([job.file, *arguments])]
    text = " \\\n  ".join(lines) if options else " ".join(lines)
    return f"```bash\n{text}\n```\n"
