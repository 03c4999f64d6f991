"""The modules import in one direction, and the heavy packages stay where they belong."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "streamsql"

# A module imports from its own line and from the lines above it, never from below.
ORDER = [
    "secrets error_codes text_files",
    "errors",
    "config",
    "language",
    "definition_sql",
    "definitions",
    "catalog",
    "calls",
    "connectors",
    "plan",
    "results",
    "runtime",
    "server",
    "output",
    "testing",
    "shell",
    "cli",
    "__main__",
]
LAYER = {name: number for number, names in enumerate(ORDER) for name in names.split()}
# Inside language/, plan/ and runtime/, too, there is a direction.
LANGUAGE = [
    "origin dialect grammar_reader reference struct_types unfinished.blocks",
    "tokens",
    "script token_groups",
    "tree_nodes values_rows",
    "terminals expression lexical misplaced_words spark_definitions unfinished.select_items",
    "unread_query",
    "grammar synopsis topics unfinished.query_reader unfinished.query_words unfinished.order_of_use unfinished.spark_words",
    "durations",
    "statements.base",
    "query_tree",
    "console_clauses",
    "token_ranges",
    "from_reader",
    "block_reader",
    "query",
    "habits",
    "short_forms",
    "other_definitions other_functions",
    "dialect_words",
    "query_scope nested_queries",
    "statements",
    "names_read file_formats operands row_time window_functions distinct_on column_patterns flink_words",
    "json_arrows",
    "other_edits",
    "prefix_aliases psql_variables",
    "other_values other_intervals other_relations other_checks other_meanings",
    "other_operators",
    "other_expressions",
    "other_words",
    "parser redaction conditions",
    "query_clauses places missing_comma missing_keys",
    "unfinished.query_cursor unfinished.coloring",
    "unfinished.statement",
    "unfinished.cursor",
    "formatting.documents",
    "formatting.atoms formatting.keyword_places",
    "formatting.compound_places formatting.trees",
    "formatting.query_layout",
    "formatting.statement_layout",
    "formatting.format_script",
]
PLAN = [
    "basic_plans",
    "row_plans",
    "lowering.shape lowering.python_functions lowering.event_time streaming.join_bounds lowering.window_lengths lowering.window_tables "
    "statements.schema_guesses",
    "streaming.refusals",
    "streaming.rules streaming.advice lowering.row_number_dedup",
    "lowering.sources",
    "lowering.state_tables lowering.shared_streams",
    "lowering.late_rows",
    "lowering.stateful_calls",
    "lowering.own_relations",
    "lowering.frames",
    "lowering.hidden_keys",
    "lowering.relations lowering.grouping",
    "lowering.select_block",
    "lowering.lower",
    "late_plans",
    "plans",
    "event_time_plans",
    "changes limits streaming.query_changes stand_ins",
    "live_parts",
    "sink_relations",
    "context streaming.stages statements.stale_views",
    "connect_limits",
    "statements.statement_set statements.trigger_checks",
    "statements.query_parts statements.changelog_streams",
    "statements.late_writes",
    "statements.query_run",
    "statements.second_insert",
    "statements.refreshes",
    "statements.change_queries",
    "statements.staged",
    "statements.staged_inserts",
    "statements.definitions statements.inserts statements.queries",
    "statements.given statements.copies",
    "streaming.readers",
    "statements.previews statements.existing statements.altered statements.spark_targets",
    "statements.advances statements.verifications",
    "planner",
]

SERVER = [
    "address frames row_blocks",
    "encoding",
    "calls",
    "remote_views",
    "client",
    "registry",
    "client_session",
    "connection",
    "listener",
]

RUNTIME = [
    "embedded",
    "workspace.catalog_file workspace.formats workspace.trust workspace.owned_folders",
    "workspace.marker workspace.lock",
    "program_helpers",
    "engine.cancel engine.events engine.java engine.pyspark_import engine.disk_full engine.kafka_errors "
    "engine.interval_texts engine.row_values engine.row_differences engine.row_files engine.spark_classes",
    "engine.java_classes engine.mounts",
    "engine.row_fetch engine.file_errors engine.settings engine.start_failures engine.java_command",
    "engine.kept_tables engine.analysis_errors",
    "engine.spark_errors engine.package_loader engine.master_probe engine.cluster",
    "engine.cluster_cores engine.temporary_views",
    "engine.aot_cache engine.typical_work engine.unix_sockets engine.warm_seconds",
    "engine.jvm_process engine.warm_engine",
    "engine.jvm",
    "engine.warm_keeper",
    "engine.lifecycle",
    "program_source",
    "checkpoints.checkpoint_files checkpoints.state_schemas checkpoints.offsets checkpoints.batch_history",
    "checkpoints.checkpoint_log checkpoints.batch_under_way",
    "checkpoints.hadoop_files checkpoints.query_marker",
    "checkpoints.opening checkpoints.state_checks checkpoints.no_data_batch",
    "preflight.connectivity preflight.kafka_topics preflight.local_paths preflight.spark_tables preflight.python_code_checks "
    "preflight.schema_inference preflight.schema_files",
    "preflight.function_kinds preflight.registry_subjects",
    "live.kept_columns",
    "live.change_log live.journal live.refresher",
    "live.refreshes",
    "queries.advance_counts queries.callback_connections",
    "queries.idle_polling queries.progress queries.stop queries.output_mode",
    "queries.late_writes",
    "queries.run",
    "queries.restart_policy",
    "queries.query_waits",
    "queries.query_runs",
    "live.part_of_rows",
    "queries.parts",
    "queries.few_rows",
    "queries.start_refresh queries.stage_frames",
    "queries.kept_rows",
    "queries.start_changes queries.start_late",
    "queries.start",
    "queries.drain queries.restart_supervisor",
    "live.result_views",
    "workspace.folder workspace.store",
    "workspace.read_only workspace.session_workspace",
    "session_config hosting",
    "parts",
    "workspace.reopen",
    "connect.server_address connect.session_record",
    "connect.connect_probe",
    "metrics.query_metrics",
    "metrics.endpoint",
    "export.job_arguments",
    "export.job",
    "export.job_readme",
    "export.job_folder",
    "why.moments why.verdict why.query_parts why.source_files why.probes",
    "why.evidence",
    "why.proposals why.open_groups why.lateness why.event_times",
    "why.time_situations why.source_situations why.row_situations why.filter_situation why.join_situation "
    "why.wrong_times",
    "why.outcome_situations why.old_files why.waiting why.start_advice why.hidden_rows",
    "why.diagnose",
    "why.live_verdict",
    "handlers",
    "background_news console_session",
    "script_queries session_summary",
    "session",
    "start_up_build",
    "connect.connect_engine",
    "connect.server_queries connect.server_rows",
    "connect.connect_handlers",
    "connect.connect_session",
    "testing.bench testing.further_rows",
    "testing.results",
    "testing.expectations testing.actions",
    "testing.test_run",
]

# The one place of each heavy package.
HOMES = {
    "pyspark": "runtime/",
    "py4j": "runtime/",
    "prompt_toolkit": "shell/",
    "sqlglot": "language/",
}


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def imports(module: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all that a module imports, inside functions as well."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(module)}:{node.lineno} imports relatively"
            yield node.lineno, node.module or ""
            # `from streamsql.runtime.engine import jvm` imports a module.
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def own(module: Path) -> list[tuple[int, list[str]]]:
    """(line, parts of the name behind `streamsql`) of the imports of our own."""
    return [(n, i.split(".")[1:]) for n, i in imports(module) if i.split(".")[0] == "streamsql" and "." in i]


def test_every_module_has_its_place_in_the_order() -> None:
    there = {name_of(m).split("/")[0].removesuffix(".py") for m in modules()}
    assert there <= set(LAYER)


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_imports_go_one_way(module: Path) -> None:
    here = name_of(module).split("/")[0].removesuffix(".py")
    backwards = [
        f"{name_of(module)}:{line} imports {target[0]}, which comes after {here}"
        for line, target in own(module)
        if LAYER.get(target[0], -1) > LAYER[here]
    ]
    assert backwards == []


@pytest.mark.parametrize(
    ("folder", "order"), [("language", LANGUAGE), ("plan", PLAN), ("runtime", RUNTIME), ("server", SERVER)]
)
def test_imports_inside_a_folder_go_one_way(folder: str, order: list[str]) -> None:
    place = {name: number for number, names in enumerate(order) for name in names.split()}

    def place_of(parts: list[str]) -> int:
        """The place of a module: its own, or that of its folder; -1 when it has none."""
        return next((place[n] for n in (".".join(parts[:k]) for k in (2, 1)) if n in place), -1)

    backwards = []
    for module in sorted((PACKAGE / folder).rglob("*.py")):
        parts = list(module.relative_to(PACKAGE / folder).with_suffix("").parts)
        if parts[-1] == "__init__":
            continue
        here = ".".join(parts)
        assert place_of(parts) >= 0, f"{folder}/{here} has no place in the order"
        for line, target in own(module):
            if target[0] == folder and place_of(target[1:]) > place_of(parts):
                backwards.append(f"{name_of(module)}:{line} imports {target[1:]}, which comes after {here}")
    assert backwards == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports under TYPE_CHECKING and inside functions count."""
    dotted = {".".join(m.relative_to(PACKAGE).with_suffix("").parts): m for m in modules()}
    dotted = {n.removesuffix(".__init__"): m for n, m in dotted.items()}
    graph = {n: {t for _, parts in own(m) if (t := ".".join(parts)) in dotted} for n, m in dotted.items()}

    def reached(start: str) -> set[str]:
        seen, queue = set[str](), [start]
        while queue:
            new = graph[queue.pop()] - seen
            seen |= new
            queue += new
        return seen

    circles = {(a, b) for a in graph for b in reached(a) if a < b and a in reached(b)}
    assert circles == set()


def test_code_that_is_printed_into_programs_imports_nothing_of_the_project() -> None:
    embedded = [m for m in modules() if name_of(m).startswith("runtime/embedded/")]
    assert embedded
    assert [(name_of(m), line, parts) for m in embedded for line, parts in own(m)] == []


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_heavy_packages_stay_where_they_belong(module: Path) -> None:
    astray = [
        f"{name_of(module)}:{line} imports {target}"
        for line, target in imports(module)
        for package, home in HOMES.items()
        if target.split(".")[0] == package and not name_of(module).startswith(home)
    ]
    assert astray == []


@pytest.mark.parametrize("module", [m for m in modules() if name_of(m).startswith("runtime/")], ids=name_of)
def test_pyspark_is_imported_when_it_is_needed(module: Path) -> None:
    """Inside functions only, so that what needs no Spark does not wait for it."""
    top = [
        n for n in ast.parse(module.read_text("utf-8")).body if isinstance(n, (ast.Import, ast.ImportFrom))
    ]
    lines = {n.lineno for n in top}
    heavy = [i for n, i in imports(module) if n in lines and i.split(".")[0] in ("pyspark", "py4j")]
    assert heavy == []


LIGHT = [
    "cli.main",
    "output.script_runner",
    "plan.planner",
    "cli.dry_run",
    "runtime.session",
    "shell.prompt",
    "server.client",
]


@pytest.mark.parametrize("module", [f"streamsql.{m}" for m in LIGHT])
def test_importing_loads_nothing_heavy(module: str) -> None:
    heavy = sorted(HOMES) + (
        ["pandas"] if module != "streamsql.cli.main" else ["pandas", "pyarrow", "wcwidth"]
    )
    heavy = [h for h in heavy if h != "prompt_toolkit" or not module.startswith("streamsql.shell")]
    code = f"import sys, {module}; print(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def test_the_check_finds_an_import_that_turns_back(tmp_path: Path) -> None:
    """The walk itself: it sees imports of every form, at any depth."""
    module = tmp_path / "made.py"
    module.write_text(
        "import streamsql.cli.main\nfrom streamsql import plan\n"
        "def f():\n    from streamsql.runtime.engine import jvm\n    import pyspark.sql as s\n"
    )
    found = {(line, target) for line, target in imports(module)}
    assert {
        (1, "streamsql.cli.main"),
        (2, "streamsql.plan"),
        (4, "streamsql.runtime.engine.jvm"),
        (5, "pyspark.sql"),
    } <= found
    assert (2, ["plan"]) in own(module)
    assert (4, ["runtime", "engine", "jvm"]) in own(module)


def test_what_benchmarks_import_is_there() -> None:
    """They run by hand, some in programs that stand in texts: nothing else notices a module that moved."""
    code = set[str]()
    for file in (PACKAGE.parent / "tests" / "benchmarks").glob("*.py"):
        for line in file.read_text().splitlines():
            if line.strip().startswith("from streamsql") and not line.endswith("("):
                code.add(line.strip())
    assert len(code) > 20
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(sorted(code))], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
