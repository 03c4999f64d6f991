"""A true Spark cluster on this machine, a master and a worker, loses both while a query runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline import Pipeline, written
from spark_cluster import Cluster
from terminal import Terminal
from test_kills import LONG

ROOMS = ("streamsql/runtime/engine/", "streamsql/cli/")


@pytest.mark.skipif(not LONG, reason="takes a minute: STREAMSQL_KILLS=50 runs it")
def test_a_lost_cluster_is_said_and_the_query_goes_on_with_the_next_one(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.start()
    pipeline = Pipeline(tmp_path, seed=3)
    pipeline.feed()
    prompt = Terminal(tmp_path, "-w", "w", *cluster.flags, columns=120, lines=44)
    definitions = (
        f"CREATE STREAM clicks (id INT, user STRING, ts TIMESTAMP) USING json OPTIONS (path '{tmp_path}/clicks');"
        f"CREATE SINK copies USING json OPTIONS (path '{tmp_path}/copies');"
        "CREATE LIVE TABLE counts AS SELECT user, count(*) AS n, sum(id) AS total FROM clicks GROUP BY user;"
        "INSERT INTO copies SELECT id, user FROM clicks; AWAIT QUERY ALL IDLE;"
    )
    (tmp_path / "all.sql").write_text(definitions)
    try:
        prompt.prompt()
        prompt.run("SOURCE 'all.sql';", "^idle")
        cluster.kill("Worker1")
        pipeline.feed()
        prompt.until(rf"no worker of {cluster.url} accepts tasks: statements and queries wait for one")
        cluster.kill("Master")
        prompt.until(rf"Spark has ended: the master {cluster.url} is lost, and no worker is left.*resumes")
        prompt.clear()
        prompt.run("SHOW QUERIES;", r"query copies ended with Spark")
        prompt.run(
            "START QUERY ALL;",
            rf"error\[NO_SERVER\]: no Spark master answers at {cluster.url}.*hint: is it running",
        )
        cluster.start()
        prompt.clear()
        prompt.run("START QUERY ALL;", "started: counts, copies")
        prompt.run("AWAIT QUERY ALL IDLE;", "^idle")
        prompt.run("SELECT count(*) AS users, sum(n) AS n, sum(total) AS total FROM counts;", r"\(1 row, ")
        clicks = pipeline.input["clicks"]
        users, total = len({u for _, u, _ in clicks}), sum(i for i, _, _ in clicks)
        prompt.until(rf"\| +{users} \| +{len(clicks)} \| +{total} \|")
        assert written(tmp_path / "copies", "id", "user") == pipeline.expected()["copies"]
        for hidden in ("Traceback", "java.", "\tat ", "py4j"):
            assert hidden not in prompt.scrollback, prompt.scrollback
    finally:
        prompt.kill()
        cluster.stop()
