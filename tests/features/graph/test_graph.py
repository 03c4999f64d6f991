"""SHOW GRAPH: what reads and writes what, from the definitions alone; columns from the trees."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from conftest import Console

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.errors import NameFault, Source
from streamsql.features.graph.graph import as_json, as_mermaid, as_text, graph_of
from streamsql.language.parser import parse_script
from streamsql.plan.context import Context

ROOMS = ("streamsql/features/graph/", "streamsql/language/")

STREAMS = (
    "CREATE STREAM words (word STRING, at TIMESTAMP, n INT) USING values WITH WATERMARK at DELAY '1 minute';"
    "CREATE STREAM users (id INT, name STRING) USING values;"
)


def catalog_of(script: str) -> Catalog:
    checker = Checker(Context(Catalog()))
    for statement in parse_script(Source("", STREAMS + script)):
        checker.check(statement)
    return checker.catalog


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT word, n + 1 AS m FROM words", "words.word>word words.n>m"),
        ("SELECT * FROM words w", "words.word>word words.at>at words.n>n"),
        (
            "SELECT w.*, u.name FROM words w JOIN users u ON u.id = w.n",
            "words.word>word words.at>at words.n>n users.name>name",
        ),
        ("SELECT window.start AS s, count(*) AS c FROM words GROUP BY window(at, '1 minute')", "words.at>s"),
        ("WITH q(a, b) AS (SELECT word, n FROM words) SELECT b AS c FROM q", "words.n>c"),
        ("SELECT x.b FROM (SELECT word, n FROM words) AS x(a, b)", "words.n>b"),
        ("SELECT word AS w FROM words UNION ALL SELECT name FROM users", "users.name>w words.word>w"),
        ("SELECT (SELECT max(name) FROM users) AS m, word FROM words", "users.name>m words.word>word"),
        (
            "SELECT CASE WHEN n > 1 THEN word END AS c FROM words WHERE at IS NOT NULL",
            "words.n>c words.word>c",
        ),
        ("SELECT word FROM words WHERE EXISTS (SELECT 1 FROM users WHERE id = n)", "words.word>word"),
        ("SELECT sum(n) OVER (PARTITION BY word) AS s FROM words", "words.n>s words.word>s"),
        ("SELECT transform(array(n), x -> x + 1) AS t FROM words", "words.n>t"),
    ],
)
def test_the_columns_of_an_edge(query: str, columns: str) -> None:
    graph = graph_of(catalog_of(f"CREATE SINK out USING noop; INSERT INTO out AS QUERY q {query};"))
    pairs = [f"{e.source}.{a}>{b}" for e in graph.edges if e.target == "q" for a, b in e.columns]
    assert sorted(pairs) == sorted(columns.split())


def test_what_is_only_asked_for_has_an_edge_without_columns() -> None:
    catalog = catalog_of("CREATE LIVE TABLE t AS SELECT word FROM words WHERE n IN (SELECT id FROM users);")
    edges = {edge.source: edge.columns for edge in graph_of(catalog).edges}
    assert edges == {"words": (("word", "word"),), "users": ()}


PIPELINE = (
    "CREATE LIVE TABLE counts AS SELECT word, sum(n) AS total FROM words GROUP BY word;"
    "CREATE LIVE TABLE top AS SELECT word, total * 2 AS twice FROM counts ORDER BY total DESC LIMIT 3;"
    "CREATE SINK first USING noop; CREATE SINK other USING noop;"
    "EXECUTE STATEMENT SET AS QUERY both BEGIN INSERT INTO first SELECT word FROM words; INSERT INTO other SELECT n AS m FROM words; END;"
    "CREATE LIVE TABLE joined AS SELECT c.word, p.price FROM counts c JOIN prices p ON p.word = c.word;"
)


def test_the_text_is_a_tree_below_each_source() -> None:
    graph = graph_of(catalog_of(PIPELINE), lambda query: "running" if query != "top" else "FAILED")
    assert as_text(graph).splitlines() == [
        "stream words (values)",
        "├─ live table counts (running)",
        "│  ├─ live table top (FAILED)",
        "│  └─ live table joined (running)",
        "└─ query both (running)",
        "   ├─ sink first (noop)",
        "   └─ sink other (noop)",
        "stream users (values)",
        "table prices",
        "└─ live table joined (running)",
    ]
    assert as_text(graph.around("TOP"), columns=True).splitlines() == [
        "stream words (values)",
        "└─ live table counts (running): word, n → total",
        "   └─ live table top (FAILED): word, total → twice",
    ]


def test_json_has_all_and_mermaid_each_edge() -> None:
    graph = graph_of(catalog_of(PIPELINE))
    read = json.loads(as_json(graph))
    assert {"source": "both", "target": "other", "columns": [["m", "m"]]} in read["edges"]
    assert {"name": "prices", "kind": "table", "about": "", "status": ""} in read["nodes"]
    lines = as_mermaid(graph).splitlines()
    assert lines[0] == "flowchart LR" and sum("-->" in line for line in lines) == len(read["edges"]) == 7


def test_a_circle_ends() -> None:
    """As of a table that a query reads and writes."""
    catalog = catalog_of("CREATE LIVE TABLE a AS SELECT word FROM words;").without("streams", "words")
    query = catalog.queries["a"]
    looped = catalog.having(replace(query, text="SELECT word FROM a"))
    assert as_text(graph_of(looped)).splitlines()[1:] == ["live table a", "└─ live table a, see above"]


def test_show_graph_in_a_session(console: Console) -> None:
    console.run(
        "CREATE STREAM s (a INT) USING values; CREATE LIVE TABLE t AS SELECT a + 1 AS b FROM s; STOP QUERY t;"
    )
    assert console.run("SHOW GRAPH;")[-1].text == "stream s (values)\n└─ live table t (stopped)"
    assert console.run("SHOW GRAPH OF T;")[-1].text == "stream s (values)\n└─ live table t (stopped): a → b"
    with pytest.raises(NameFault) as unknown:
        console.run("SHOW GRAPH OF tt;")
    assert unknown.value.hint == "did you mean t?"
