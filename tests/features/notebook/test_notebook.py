"""Notebooks: a real kernel executes cells; what it shows is looked at, also in a browser."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import ROOT
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient

from streamsql.features.notebook.html import table_html
from streamsql.results import Rows

ROOMS = ("streamsql/features/notebook/", "streamsql/api/", "examples/notebook.ipynb")

EXAMPLE = ROOT / "examples" / "notebook.ipynb"


def test_values_are_escaped_and_null_is_told_from_a_text() -> None:
    shown = table_html(Rows((), ("<a>", "n"), [("<script>x</script>", None), ("NULL", 1)], (False, True)))
    assert "<script>" not in shown and "&lt;script&gt;x&lt;/script&gt;" in shown and "&lt;a&gt;" in shown
    assert re.findall(r"<td style='[^']*?(opacity:.5)?'>NULL</td>", shown) == ["opacity:.5", ""]


class Kernel:
    """A kernel with the extension loaded."""

    def __init__(self, folder: Path) -> None:
        self.manager: KernelManager
        self.manager, self.client = start_new_kernel(kernel_name="python3", cwd=str(folder))

    def run(self, code: str, *, interrupt_at: Callable[[list[Any]], bool] | None = None) -> list[Any]:
        """The messages of a cell, up to its end. interrupt_at: whether the cell is interrupted now."""
        asked, messages = self.client.execute(code), list[Any]()
        while True:
            message = self.client.get_iopub_msg(timeout=90)
            if message["parent_header"].get("msg_id") != asked:
                continue
            messages.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return messages
            if interrupt_at is not None and interrupt_at(messages):
                interrupt_at = None
                self.manager.interrupt_kernel()

    def html(self, code: str) -> str:
        """What a cell shows last, as HTML or text."""
        shown = [m["content"] for m in self.run(code) if "data" in m["content"] or m["msg_type"] == "error"]
        assert shown, code
        if "traceback" in shown[-1]:
            return "\n".join(shown[-1]["traceback"])
        data: dict[str, str] = shown[-1]["data"]
        return data.get("text/html") or data["text/plain"]

    def complete(self, cell: str) -> list[str]:
        """The candidates where a cell has |."""
        at = cell.index("|")
        asked = self.client.complete(cell.replace("|", ""), at)
        while (reply := self.client.get_shell_msg(timeout=60))["parent_header"].get("msg_id") != asked:
            pass
        return list(reply["content"]["matches"])

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path_factory.mktemp("notebook"))
    kernel.run("%load_ext streamsql")
    yield kernel
    kernel.close()


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_cells_and_their_results(kernel: Kernel) -> None:
    made = kernel.html(
        "%%streamsql\nCREATE STREAM s (k STRING, n INT) USING values;\n"
        "CREATE LIVE TABLE t AS SELECT k, sum(n) AS total FROM s GROUP BY k;\n"
        "INSERT INTO s VALUES ('a<b', 1), (NULL, 2); AWAIT QUERY t IDLE;"
    )
    assert "note: output mode update" in made
    shown = kernel.html("%%streamsql -o rows\nSELECT * FROM t ORDER BY total;")
    assert "a&lt;b" in shown and "2 rows" in shown and "NULL" in shown
    assert "[('a<b', 1), (None, 2)]" in kernel.html("rows.fetchall()")
    assert "nothing is wrong" in kernel.html("%streamsql why t")
    wrong = kernel.html("%streamsql SELECT * FROM tt")
    assert "there is no stream, table or view tt" in wrong and "did you mean t?" in wrong
    assert "Traceback" not in wrong and "Exception" not in wrong
    assert "takes -o NAME" in kernel.html("%%streamsql -o 1x\nSELECT 1;")
    assert "connect takes one folder" in kernel.html("%streamsql connect")


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_watch_refreshes_in_place_until_the_cell_is_interrupted(kernel: Kernel) -> None:
    """The query goes on."""
    kernel.run(
        "%%streamsql\nCREATE STREAM ticks USING rate OPTIONS (rowsPerSecond 50);"
        "CREATE LIVE TABLE per_second AS SELECT value % 3 AS k, count(*) AS n FROM ticks GROUP BY 1;"
    )

    def refreshed(messages: list[Any]) -> bool:
        return sum(m["msg_type"] == "update_display_data" for m in messages) >= 3

    messages = kernel.run("%streamsql WATCH per_second;", interrupt_at=refreshed)
    assert [m["msg_type"] for m in messages if m["msg_type"] == "error"] == []
    shown = [m for m in messages if m["msg_type"] == "display_data"]
    updates = [m for m in messages if m["msg_type"] == "update_display_data"]
    assert len(shown) == 1
    of_one = {m["content"]["transient"]["display_id"] for m in (*shown, *updates)}
    assert len(of_one) == 1
    assert "as of the interrupt" in updates[-1]["content"]["data"]["text/html"]
    pictures = kernel.run("%streamsql WATCH per_second AS CHART (k, n);", interrupt_at=refreshed)
    drawn = [m["content"]["data"]["text/html"] for m in pictures if "data" in m["content"]]
    assert all(page.startswith("<svg") for page in drawn)
    assert "running" in kernel.html("%streamsql SHOW QUERIES;")
    kernel.run("%streamsql STOP QUERY per_second;")
    ended = kernel.run("%streamsql WATCH per_second;")
    assert [m["msg_type"] for m in ended if m["msg_type"] in ("display_data", "error")] == ["display_data"]


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_cells_are_completed(kernel: Kernel) -> None:
    kernel.run("%streamsql CREATE STREAM clicks (user STRING, at TIMESTAMP) USING values;")
    assert "user" in kernel.complete("%%streamsql\nSELECT us| FROM clicks;")
    assert "clicks" in kernel.complete("%%streamsql\nSELECT *\nFROM cli|")
    assert "CREATE" in kernel.complete("%%streamsql\nSELECT 1;\nCREA|")
    kernel.run("other = 1")
    assert "other" in kernel.complete("oth|")


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_the_example_runs_and_shows_its_rows_in_a_browser(tmp_path: Path) -> None:
    notebook: Any = nbformat.read(EXAMPLE, 4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = str([cell.outputs for cell in notebook.cells if cell.cell_type == "code"])
    for part in ("2024-05-01 12:10:00", "3 rows", "nothing is wrong", "<svg", "stopped: counts"):
        assert part in shown
    if not (driver := shutil.which("chromedriver")):
        return
    from nbconvert import HTMLExporter
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    page, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)  # type: ignore[no-untyped-call]
    (tmp_path / "notebook.html").write_text(page)
    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-background-networking"):
        options.add_argument(f"--{flag}")
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        browser.get(f"file://{tmp_path}/notebook.html")
        rows = [row.text for row in browser.find_elements(By.CSS_SELECTOR, "table tr")]
        assert "2024-05-01 12:00:00 cat 1" in rows
        picture = browser.find_element(By.CSS_SELECTOR, "svg")
        assert picture.size["width"] > 300 and picture.size["height"] > 100
    finally:
        browser.quit()


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_kernel_that_is_restarted_ends_no_query_of_a_server(tmp_path: Path) -> None:
    import subprocess

    from scripts import command

    server = subprocess.Popen(
        command("serve", "-w", str(tmp_path / "w"), "-e", "CREATE STREAM r USING rate; CREATE LIVE TABLE t AS SELECT count(*) AS n FROM r;"),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stderr and any("live table t started" in line for line in server.stderr)
        for _ in range(2):
            kernel = Kernel(tmp_path)
            try:
                kernel.run("%load_ext streamsql")
                kernel.run(f"%streamsql connect {tmp_path / 'w'}")
                assert "running" in kernel.html("%streamsql SHOW QUERIES;")
                kernel.client.execute("%streamsql WATCH t;")
                deadline = time.monotonic() + 60
                while kernel.client.get_iopub_msg(timeout=60)["msg_type"] != "display_data":
                    assert time.monotonic() < deadline
            finally:
                kernel.close()
        assert server.poll() is None
    finally:
        server.terminate()
        server.wait(60)
