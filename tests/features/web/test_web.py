"""--web: the page, what it is told, and who may open it; in a real browser where one is installed."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Console

from streamsql.cli.addresses import address_of, is_loopback
from streamsql.errors import UsageFault
from streamsql.features.web import page_door as door
from streamsql.features.web.page_door import Door, open_door

ROOMS = ("streamsql/features/web/", "streamsql/features/graph/", "streamsql/server/")

TABLE = (
    "CREATE STREAM words (word STRING, n BIGINT) USING values;"
    "CREATE LIVE TABLE counts AS SELECT word, sum(n) AS total FROM words GROUP BY word;"
    "INSERT INTO words VALUES ('a', 9007199254740993), (NULL, 2); AWAIT QUERY counts IDLE;"
)


@pytest.fixture
def opened(console: Console) -> Iterator[Door]:
    opened = open_door(console.session.parts, "0")
    yield opened
    opened.close()


@pytest.fixture
def client(opened: Door) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=opened.url.partition("?")[0], follow_redirects=True, timeout=30) as client:
        client.get(opened.url)
        yield client


def events(client: httpx.Client, path: str) -> Iterator[Any]:
    with client.stream("GET", path) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


def test_who_has_no_token_is_refused(opened: Door) -> None:
    base, _, token = opened.url.partition("?token=")
    paths = ("", "state", "table/counts", "why/counts", "nowhere")
    for given in ({}, {"token": "x"}, {"token": ""}, {"token": token[:-1]}, {"token": "é"}):
        for path in paths:
            answer = httpx.get(base + path, params=given)
            assert answer.status_code == 403 and token not in answer.text
    answer = httpx.get(opened.url)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_page_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.status_code == 200 and "<title>streamsql</title>" in page.text
    assert (
        "http://" not in page.text.replace("http://www.w3.org/2000/svg", "") and "https://" not in page.text
    )


def test_queries_tables_and_graph_are_told_as_they_change(console: Console, client: httpx.Client) -> None:
    told = events(client, "/state")
    assert (first := next(told))["queries"] == [] and first["nodes"] == []
    console.run(TABLE)
    state = next(s for s in told if s["queries"] and s["queries"][0][s["columns"].index("rows in")] == "2")
    assert state["queries"][0][:2] == ["counts", "running"] and state["tables"] == ["counts"]
    assert state["edges"] == [
        {"source": "words", "target": "counts", "columns": [["word", "word"], ["n", "total"]]}
    ]


def test_a_live_table_is_told_as_it_changes(console: Console, client: httpx.Client) -> None:
    """Values are texts: a number of JavaScript has 53 bits."""
    console.run(TABLE)
    told = events(client, "/table/counts?rows=10")
    first = next(told)
    assert (first["columns"], first["numeric"], first["total"]) == (["word", "total"], [False, True], 2)
    assert sorted(first["rows"], key=str) == [["a", "9007199254740993"], [None, "2"]]
    console.run("INSERT INTO words VALUES ('b', 3);")
    second = next(told)
    assert second["version"] > first["version"] and ["b", "3"] in second["rows"]
    told.close()  # type: ignore[attr-defined]


def test_why_is_told_and_a_name_that_is_none_is_an_error(console: Console, client: httpx.Client) -> None:
    console.run(TABLE)
    said = client.get("/why/counts").json()
    assert said["verdict"].startswith("nothing is wrong") and ["rows in", "2"] in said["facts"]
    wrong = client.get("/table/cuonts")
    assert wrong.status_code == 400 and "did you mean counts?" in wrong.json()["error"]
    assert client.get("/why/x%60;%20DROP").status_code == 400
    assert client.get("/table/counts?rows=many").status_code == 400
    assert client.get("/nowhere").status_code == 404
    assert [client.request(method, "/").status_code for method in ("POST", "DELETE")] == [405, 405]
    assert console.rows("SHOW QUERIES;")[0][:2] == ("counts", "running")


@pytest.mark.slow
def test_many_readers_that_leave_in_the_middle_end_no_query(
    console: Console, opened: Door, eventually: Callable[..., None]
) -> None:
    console.run(TABLE)
    before = threading.active_count()

    def read(number: int) -> None:
        with httpx.Client(base_url=opened.url.partition("?")[0], follow_redirects=True, timeout=60) as client:
            client.get(opened.url)
            assert next(events(client, "/table/counts"))["total"] == 2  # and leaves

    readers = [threading.Thread(target=read, args=(number,)) for number in range(50)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    assert not any(reader.is_alive() for reader in readers)
    console.run("INSERT INTO words VALUES ('c', 1); AWAIT QUERY counts IDLE;")
    assert len(console.rows("SELECT * FROM counts;")) == 3
    eventually(lambda: threading.active_count() <= before + 41)  # the pool of anyio


def test_an_address_that_cannot_be_used_is_refused(
    console: Console, opened: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = opened.url.split(":")[2].split("/")[0]
    for address in (port, "x", "127.0.0.1:99999", "203.0.113.1:80"):
        with pytest.raises(UsageFault) as refused:
            open_door(console.session.parts, address)
        assert refused.value.code == "BAD_ADDRESS" and "--web" in refused.value.hint
    monkeypatch.setenv(door.TOKEN, "short")
    with pytest.raises(UsageFault, match="less than 16 characters"):
        open_door(console.session.parts, "0")


def test_a_token_of_ones_own_is_not_printed(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(door.TOKEN, token := "a-token-of-my-own-1234")
    own = open_door(console.session.parts, "0")
    try:
        assert token not in own.url and own.url.endswith("?token=$STREAMSQL_WEB_TOKEN")
        answer = httpx.get(own.url.partition("?")[0], params={"token": token})
        assert answer.status_code == 303
    finally:
        own.close()


def test_which_hosts_are_this_machine() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [True] * 4
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org")))
    assert address_of("[::1]:80", "--web", 8088) == ("::1", 80)


# ---- in a browser


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
@pytest.mark.skipif(not shutil.which("chromedriver"), reason="Chromium is not installed")
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (480, "dark")])
def test_the_page_in_chromium(
    console: Console, opened: Door, tmp_path: Path, eventually: Callable[..., None], width: int, scheme: str
) -> None:
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    options = webdriver.ChromeOptions()
    for flag in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-background-networking",
        "disable-sync",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.set_window_size(width, 1000)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        console.run(TABLE)
        browser.get(opened.url)
        shown = lambda part: browser.find_element(By.CSS_SELECTOR, part).text  # noqa: E731
        eventually(lambda: "9007199254740993" in shown("#rows"))
        assert shown("#news") == "1 running" and "counts" in shown("#queries")
        assert "words" in shown("#graph") and "NULL" in shown("#rows")
        console.run("INSERT INTO words VALUES ('fresh', 5);")
        eventually(lambda: "fresh" in shown("#rows"))
        browser.find_element(By.CSS_SELECTOR, "#queries button").click()
        eventually(lambda: "nothing is wrong" in shown("#why"))
        wide = browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert wide, "the page scrolls sideways"
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        assert browser.find_elements(By.CSS_SELECTOR, "#plot svg path")
        assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
    finally:
        browser.quit()


def test_the_port_is_free_after_the_end(console: Console) -> None:
    first = open_door(console.session.parts, "0")
    port = int(first.url.split(":")[2].split("/")[0])
    first.close()
    with socket.create_server(("127.0.0.1", port)):
        pass
