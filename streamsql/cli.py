"""argv to one of the modes, and exit codes; nothing else."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamsql.errors import Source, StreamsqlError, UsageFault, format_error

FORMATS = ("table", "csv", "tsv", "json", "jsonl", "markdown", "vertical")


class _Inputs(argparse.Action):
    """Scripts in the order given, whichever flag brings each."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        kind = "text" if option_string in ("-e", "--execute") else "file"
        values = values if isinstance(values, list) else [values]
        namespace.inputs = [*(namespace.inputs or []), *((kind, v) for v in values)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamsql",
        description="A SQL-first console for Spark Structured Streaming.",
        epilog="exit codes: 0 done, 1 a statement failed, 2 usage, 3 Spark could not start, 4 time-out, "
        "5 a query failed while running, 130 interrupted",
    )
    add = parser.add_argument
    add("files", nargs="*", action=_Inputs, metavar="FILE", help="scripts to run; - is standard input")
    add("-f", "--file", action=_Inputs, metavar="FILE", help="a script to run")
    add("-e", "--execute", action=_Inputs, metavar="SQL", help="statements to run")
    add("-D", "--define", action="append", default=[], metavar="NAME=VALUE", help="what ${NAME} stands for")
    add("--check", action="store_true", help="read and plan everything, start nothing")
    add("--format", choices=FORMATS, default="table", help="how rows are written (default: table)")
    add("--on-error", choices=("stop", "continue"), default="stop", help="after an error (default: stop)")
    add("--timeout", type=_seconds, metavar="SECONDS", help="end with exit code 4 after so long")
    add("--master", default="local[*]", help="Spark master (default: local[*])")
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    add("--packages", metavar="GROUP:NAME:VERSION,…", help="packages for Spark to fetch")
    add("--jars", metavar="FILE,…", help="jars for Spark")
    add("--java", default="auto", metavar="auto|bundled|system|DIR", help="which Java to use (default: auto)")
    add("-q", "--quiet", action="store_true", help="no words but notes and errors")
    add("--info", action="store_true", help="versions, Java and folders, as JSON")
    add("--debug", action="store_true", help="show Python tracebacks of errors")
    add("--version", action="store_true", help="the version")
    parser.set_defaults(inputs=None)
    return parser


def _seconds(text: str) -> float:
    value = float(text.removesuffix("s"))
    if value <= 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


def _pairs(given: list[str], flag: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageFault(f"{flag} takes NAME=VALUE, not {text}")
        pairs[name] = value
    return pairs


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code; raises nothing but SystemExit of argparse."""
    options = _parser().parse_args(argv)
    try:
        code = _main(options)
        sys.stdout.flush()
        return code
    except StreamsqlError as error:
        if options.debug:
            raise
        print(format_error(error), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return _reader_gone()
    except Exception as error:  # a fault of the console's own: said in one line all the same
        if options.debug:
            raise
        print(f"error: {type(error).__name__}: {error}\nhint: --debug shows where", file=sys.stderr)
        return 1


def _reader_gone() -> int:
    """`| head -1`: the reader has what it wanted."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _main(options: argparse.Namespace) -> int:
    if options.version:
        print(f"streamsql {_version()}")
        return 0
    if options.info:
        from streamsql.info import info_text

        print(info_text(options.java))
        return 0
    variables = _pairs(options.define, "-D")
    if not options.inputs and sys.stdin.isatty() and sys.stdout.isatty() and not options.check:
        return _run(options, None, variables)
    sources = _sources(options)
    if options.check:
        from streamsql.output.printer import Printer
        from streamsql.script import check

        printer = Printer(options.format, sys.stdout, sys.stderr, quiet=options.quiet)
        return check(sources, variables, printer, keep_going=options.on_error == "continue")
    return _run(options, sources, variables)


def _version() -> str:
    from importlib.metadata import version

    return version("streamsql")


def _sources(options: argparse.Namespace) -> list[Source]:
    from streamsql.script import decode, read_file

    made = []
    for kind, value in options.inputs or [("file", "-")]:
        if kind == "text":
            made.append(Source("-e", value))
        elif value == "-":
            made.append(decode("<stdin>", sys.stdin.buffer.read()))
        else:
            made.append(read_file(value))
    return made


@contextlib.contextmanager
def _workspace() -> Iterator[Path]:
    """The folder of a script's checkpoints and the like: gone when the script ends."""
    with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _run(options: argparse.Namespace, sources: list[Source] | None, variables: dict[str, str]) -> int:
    """Run scripts, or the prompt when there are none."""
    from streamsql.folders import cache_folder
    from streamsql.output.printer import Printer
    from streamsql.runtime.session import Config, Session
    from streamsql.runtime.settings import Settings
    from streamsql.script import ScriptRunner
    from streamsql.supervisor import Supervisor, needs_spark

    given = _pairs(options.conf, "--conf")
    for flag, key in (("packages", "spark.jars.packages"), ("jars", "spark.jars")):
        if getattr(options, flag):
            given[key] = getattr(options, flag)
    printer = Printer(options.format, sys.stdout, sys.stderr, quiet=options.quiet)
    with _workspace() as folder:
        config = Config(
            Settings.make(options.master, given),
            folder,
            cache_folder() / "spark.log",
            cache_folder(),
            options.java,
            show_batch=lambda result, batch_id: printer.show(result),
        )
        session = Session(config)
        session.variables.update(variables)
        if sources is None:
            from streamsql.shell.prompt import Shell

            session.begin_start()
            printer.width = lambda: shutil.get_terminal_size().columns
            try:
                return Shell(session, printer).run()
            finally:
                session.close()
        if any(needs_spark(source) for source in sources):
            session.begin_start()
        runner = ScriptRunner(session, printer, keep_going=options.on_error == "continue")
        return Supervisor(runner, sources, options.timeout).run()


if __name__ == "__main__":
    sys.exit(main())
