"""EXPLAIN PYSPARK: prints a plan as a stand-alone program. Does not need Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from streamsql.calls import Assign, Call, Lit, Node, Program, Var, indented, render, variables_in, with_parts
from streamsql.calls import Function as Written
from streamsql.connectors.memory import rows_variable
from streamsql.definitions import Function, Sink
from streamsql.language.redaction import redact
from streamsql.plan.changes_plan import Changes
from streamsql.plan.context import Context
from streamsql.plan.lowering.python_functions import module_variable
from streamsql.plan.planner import start_plan
from streamsql.plan.plans import Collect, Plan, Reads, Refresh, Run, Write
from streamsql.plan.streaming.rules import Choice
from streamsql.runtime.engine.settings import CONNECT, Settings
from streamsql.runtime.program_helpers import sources
from streamsql.secrets import redact_option

SHOW_BATCH = """
def show_batch(batch, batch_id, most=20):
    print(f"-- batch {batch_id}")
    batch.show(most, truncate=False)
    batch.write.format("noop").mode("append").save()  # computes all rows: else Spark does not save its state

"""
_CHECKPOINT = """
@functools.cache
def checkpoint(name):
    # In the console this folder is permanent, so that a stopped query resumes from it.
    return tempfile.mkdtemp(prefix=f"{name}-")

"""


def program_text(
    plan: Plan, context: Context, settings: Settings, packages: Callable[[Program], dict[str, str]]
) -> str:
    """The program of a plan as Python source. Run with `python` and PySpark it produces the same rows.

    packages: returns the settings with which Spark loads the packages that a program needs.
    """
    assert isinstance(plan, (Collect, Write, Run))
    source = ProgramSource(plan, context)
    modules = modules_text(source.functions)
    imports, helpers = _helpers(source.steps, modules)
    begin = f"{imports}from pyspark.sql import SparkSession, functions as F\n"
    session = _session(settings, packages(source.steps))
    if not helpers:
        return f"{begin}\n{modules}spark = {session}\n{source.body()}"
    # What was asked for stands first, and the settings last. Who pastes the program has what main() returns.
    helpers = f"{helpers.rstrip()}\n\n\ndef session():\n{indented(f'return {session}').rstrip()}\n\n"
    main = indented(f"{modules}spark = session()\n\n{source.body(waits=False)}")
    returned, names, waits = source.value
    text = f"def main():\n{main}    return {returned}\n\n\n# The helpers of main()\n{helpers}\n"
    return f"{begin}\n\n{text}{names} = main()\n{waits}"


class ProgramSource:
    """The source of a plan's program. rewrite: applied to each part before it is rendered; mode: returns the
    output mode of a query; steps_of_table: returns the steps that follow those that keep the rows of a live
    table.

    feeding: the queries whose live tables it reads; functions: those written in Python that it calls; steps:
    all steps, as they were planned.
    """

    def __init__(
        self,
        plan: Collect | Write | Run,
        context: Context,
        rewrite: Callable[[Program], Program] | None = None,
        mode: Callable[[Run], Choice] = lambda plan: plan.choices[0],
        steps_of_table: Callable[[Sink], Program] = lambda table: (),
    ) -> None:
        self.plan = plan
        self.rewrite = rewrite or _hidden
        self.mode = mode
        self.steps_of_table = steps_of_table
        self.feeding = _feeding(plan.reads, context, plan.stages if isinstance(plan, Refresh) else ())
        self.functions = list(dict.fromkeys(f for p in (plan, *self.feeding) for f in p.reads.functions))
        self._refresh = self._refreshing(plan) if isinstance(plan, Refresh) else ()
        parts = (*self.feeding, plan)
        self.steps = (*self._refresh, *(step for part in parts for step in self._steps(part)))

    def body(self, *, waits: bool = True) -> str:
        """The program after its imports, helpers and session. waits: for the end of its query, too."""
        if isinstance(self.plan, Refresh):
            return self.part(self._refresh)
        body = "".join(map(self._fed, self.feeding))
        if isinstance(self.plan, Run):
            return body + self._query(self.plan, waits=waits)
        body += _note(self.plan) + self.part(self.plan.program)
        return body + ("result.show(truncate=False)\n" if isinstance(self.plan, Collect) else "")

    @property
    def value(self) -> tuple[str, str, str]:
        """(what there is to see after the body without its wait, the names for it, the wait): the DataFrame
        of rows, or the query and the rows of its live tables.
        """
        plan = self.plan
        if isinstance(plan, Changes):
            return "refreshing", "refreshing", ""
        if isinstance(plan, Refresh):
            return f"{rows_variable(plan.sink.name)}.frame(spark)", "result", ""
        if not isinstance(plan, Run) or plan.transient:
            return "result", "result", ""
        rows = (step.name for step in self._keeping(plan) if step.name)
        names = ", ".join(("query", *rows))
        return names, names, "" if plan.late else "query.awaitTermination()\n"

    def part(self, program: Program) -> str:
        """A part of the program."""
        return render(self.rewrite(program))

    def _query(self, plan: Run, *, waits: bool) -> str:
        text = ""
        if plan.query.restart:
            text = f"# RESTART {plan.query.restart.sql()} is done by the console, not by this program.\n"
        text += self._run(plan)
        if plan.late:
            text += self.part((Assign("", plan.late.follow),))
        elif waits or plan.transient:
            text += self.part((Assign("", Var("query").call("awaitTermination")),))
        if plan.transient:
            rows = f"{rows_variable(plan.sink.name)}.frame(spark)"
            shown = f"spark.table({plan.sink.name!r})" if plan.sink.is_view else rows
            text += f"result = {shown}\nresult.show(truncate=False)\n"
        return text

    def _keeping(self, plan: Run) -> Program:
        """The steps that keep the rows of live tables."""
        rows = plan.keeping(self.mode(plan).mode)
        if isinstance(plan, Refresh):
            return rows
        return (*rows, *(step for table in plan.live for step in self.steps_of_table(table)))

    def _steps(self, plan: Collect | Write | Run) -> Program:
        """All steps of a plan's program."""
        if not isinstance(plan, Run):
            return plan.program
        mode = self.mode(plan).mode
        passed = plan.passing_over(mode) if plan.begins == "now" else ()
        late = plan.late.program if plan.late else ()
        return (*passed, *plan.program, *self._keeping(plan), *late, *plan.writer(mode))

    def _fed(self, feeding: Run) -> str:
        """The program that fills the live tables of a query with what is there."""
        if isinstance(feeding, Refresh):
            program = (*feeding.program, *feeding.keeping("complete"), *feeding.writer("complete"))
            reason = f"# {feeding.query.name}: {feeding.choices[0].reason}\n"
            return f"{reason}{_note(feeding)}{self.part(program)}\n"
        late = self.part((Assign("", Var(feeding.late.writer).call("write_new")),)) if feeding.late else ""
        return self._run(feeding) + f"query.processAllAvailable()\n{late}\n"

    def _refreshing(self, plan: Refresh) -> Program:
        """The program that keeps a live table over live tables up to date."""
        steps = [Assign("refreshing", Call(Var("Refreshing")))]
        for part in (*self.feeding, plan):
            if isinstance(part, Refresh):
                steps += _refreshed(part)
                continue
            steps += (*part.program, *self._keeping(part), *part.writer(self.mode(part).mode))
            tables = (Var(rows_variable(table.name)) for table in part.live)
            steps.append(Assign("", Var("refreshing").call("follow", Var("query"), *tables)))
        return (*steps, Assign("", Var("refreshing").call("run")))

    def _run(self, plan: Run) -> str:
        choice = self.mode(plan)
        reason = f"# output mode {choice.mode}: {choice.reason}\n" if choice.reason else ""
        passed = ""
        if plan.begins == "now":
            passed = (
                "# FROM NOW: one run that drops the available rows, so that their offsets are committed\n"
            )
            passed += self.part(plan.passing_over(choice.mode)) + "query.awaitTermination()\n\n"
        late = plan.late.program if plan.late else ()
        program = plan.program + self._keeping(plan) + late + plan.writer(choice.mode)
        return _note(plan) + reason + passed + self.part(program)


def modules_text(functions: list[Function], folder: str = "") -> str:
    """The lines that load the modules of functions written in Python. folder: the variable of the program
    with the folder in which they are; else each is in the folder where it was found.
    """
    lines: dict[str, None] = {}
    for function in functions:
        variable = module_variable(function.module)
        if function.folder:
            lines[f"{variable} = load_module({function.module!r}, {folder or repr(function.folder)})"] = None
        else:
            lines[f"import {function.module} as {variable}"] = None
    return "".join(f"{line}\n" for line in lines)


def _hide(node: Node) -> Node:
    """A node of a program with the secrets in its options and texts redacted."""
    if isinstance(node, Lit) and isinstance(node.value, str):
        return Lit(redact(node.value))
    node = with_parts(node, _hide)
    if not isinstance(node, Call):
        return node
    args = node.args
    is_option = node.method in ("option", "config") and len(args) == 2
    if is_option and isinstance(args[0], Lit) and isinstance(args[1], Lit):
        args = (args[0], _option(str(args[0].value), args[1]))
    return replace(node, args=args, kwargs=tuple((k, _option(k, v)) for k, v in node.kwargs))


def _option(key: str, value: Node) -> Node:
    is_text = isinstance(value, Lit) and isinstance(value.value, str)
    return Lit(redact_option(key, value.value)) if is_text and isinstance(value, Lit) else value


def _hidden(program: Program) -> Program:
    return tuple(replace(step, node=_hide(step.node)) for step in program)


def _feeding(reads: Reads, context: Context, stages: Iterable[Run] = ()) -> list[Run]:
    """The queries whose live tables a program reads, directly or through other live tables: each after
    those that it reads itself.
    """
    plans = {stage.query.name: stage for stage in stages}
    for query in context.catalog.upstream(*(table.name for table in reads.live)):
        if query.name not in plans:
            plans[query.name] = start_plan(query, context)
    return list(plans.values())


def _refreshed(plan: Refresh) -> Program:
    """The function that computes a live table from the rows of its inputs, and its place among the others."""
    rows = rows_variable(plan.query.name)
    inputs = tuple(rows_variable(name) for name in plan.query.inputs)
    compute, arguments = f"compute_{rows.removesuffix('_rows')}", tuple(map(Var, inputs))
    schema = Call(Var(compute), tuple(argument.call("now") for argument in arguments)).attr("schema")
    steps: Program
    if isinstance(plan, Changes):
        rows = f"changes_of_{rows.removesuffix('_rows')}"
        steps = (*plan.rows(schema), Assign(rows, plan.changes(schema)))
    else:
        arguments_of_rows = (schema, Lit("complete"), Lit(None), Lit(plan.sink.retain))
        steps = (Assign(rows, Call(Var("LiveRows"), arguments_of_rows)),)
    return (
        Assign(compute, Written(inputs, plan.program[:-1], plan.program[-1].node)),
        *steps,
        Assign("", Var("refreshing").call("add", Var(rows), Var(compute), *arguments)),
    )


def _note(plan: Collect | Write | Run) -> str:
    why = plan.as_text if not isinstance(plan, Write) else ""
    text = f"# sent to Spark as text: {why}\n" if why else ""
    otherwise = plan.otherwise if isinstance(plan, Run) else None
    if isinstance(otherwise, Refresh):
        text += f"# if Spark refuses it on streams, it runs in {len(otherwise.stages) + 1} stages instead\n"
    return text


def _helpers(steps: Program, modules: str) -> tuple[str, str]:
    """(imports, definitions) of what a program calls beside PySpark."""
    imports, helpers = "", ""
    names = variables_in(steps)
    if "checkpoint" in names:
        imports += "import functools\nimport tempfile\n"
        helpers += _CHECKPOINT
    if "show_batch" in names:
        helpers += SHOW_BATCH
    more_imports, more_helpers = sources(names | ({"load_module"} if "load_module(" in modules else set()))
    return imports + more_imports, helpers + more_helpers


def _session(settings: Settings, packages: dict[str, str]) -> str:
    """The expression of the session of a program, with its settings and packages."""
    start = settings.start_conf().items()
    conf = {k: v for k, v in start if k.startswith("spark.sql.") and redact_option(k, v) == v}
    for key, value in packages.items():
        conf[key] = ",".join(v for v in (settings.start_conf().get(key), value) if v)
    options = "".join(f"\n    .config({k!r}, {redact_option(k, v)!r})" for k, v in conf.items())
    remote = f".remote({settings.master!r})" if settings.master.startswith(CONNECT) else ""
    return f"(\n    SparkSession.builder{remote}{options}\n    .getOrCreate()\n)\n"


def spark_plan(frame: Any, mode: str) -> str:
    """Spark's own plan of a DataFrame, as its EXPLAIN shows it."""
    execution = frame._jdf.queryExecution()
    if frame.isStreaming and mode != "logical":
        # Spark knows only after the analysis of a text that it reads a stream.
        execution = frame.select("*")._jdf.queryExecution()
    return explained(frame.sparkSession, execution, mode)


def explained(spark: Any, execution: Any, mode: str) -> str:
    """The plan of a QueryExecution of Spark. Raises what Spark raises when it makes the plan."""
    execution.assertAnalyzed()
    if mode == "logical":
        return str(execution.analyzed().toString())
    if not execution.analyzed().isStreaming():
        execution.executedPlan()  # explainString would write an error into the text
    return str(spark._jvm.PythonSQLUtils.explainString(execution, mode or "simple"))
