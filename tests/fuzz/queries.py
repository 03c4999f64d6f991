"""Random SELECTs of Spark: most that its parser takes, of all clauses that it has.

Nothing here knows what the console reads. A generated text need not be one that Spark takes:
where that matters (test_spark_parser.py), Spark's own parser is asked.
"""

from __future__ import annotations

import random

TABLES = ["orders", "trips", "db.events", "`my table`", "cat.db.t", "a", "b", "values_t"]
# vi is near to vip, which is a stream in the tests; the others are words that sound like clauses.
COLUMNS = [
    "x", "y", "k", "vi", "t.x", "o.price", "s.a.b", "`odd name`", "xs[0]", "m['k']", "m.k", "ts", "user", "date", "window.start",
    "offset", "qualify", "cross", "interval", "value", "type", "start", "end", "left", "filter", "cluster", "minus", "first",
    "semi", "anti", "array", "map", "lateral", "natural", "stream", "watermark", "asof", "over", "index", "format", "cache",
]  # fmt: skip
LITERALS = [
    "1", "-1", "1L", "2S", "3Y", "1.5", "1.5BD", "2D", "1e10", ".5", "1.", "'a'", '"b"', "'it\\'s'", "r'\\d'", "'a' 'b'", "X'1F'",
    "NULL", "TRUE", "DATE '2024-01-01'", "TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    "INTERVAL 1 DAY", "INTERVAL '1' HOUR", "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL 1 DAY 2 HOURS", "interval '1 day'", "5 DIV 2",
]  # fmt: skip
TYPES = [
    "INT", "STRING", "DECIMAL(10, 2)", "ARRAY<INT>", "MAP<STRING, ARRAY<INT>>", "STRUCT<a: INT, b: STRING>", "TIMESTAMP_NTZ",
    "INTERVAL DAY TO SECOND", "VARIANT", "VARCHAR(5)", "STRING COLLATE UTF8_LCASE", "BINARY", "LONG", "REAL", "STRUCT<>",
]  # fmt: skip
FUNCTIONS = [
    "upper",
    "coalesce",
    "concat",
    "f",
    "db.f",
    "abs",
    "array",
    "named_struct",
    "`my f`",
    "struct",
    "date_add",
    "left",
    "if",
    "replace",
]
AGGREGATES = [
    "count",
    "sum",
    "max",
    "collect_list",
    "percentile_approx",
    "first",
    "any_value",
    "kll_sketch_agg_bigint",
    "mode",
    "every",
]
WINDOW_FRAMES = [
    "", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW", "ROWS 2 PRECEDING",
]  # fmt: skip
HINTS = ["/*+ BROADCAST(a) */", "/*+ REPARTITION(3, x), COALESCE(2) */", "/*+ MERGE(a, b) */"]
JOINS = [
    "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL OUTER JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "SEMI JOIN",
    "ANTI JOIN", "CROSS JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN",
]  # fmt: skip
PIPES = [
    "|> SELECT x, y", "|> WHERE x > 1", "|> EXTEND x + 1 AS z", "|> SET x = 1, y = 2", "|> DROP y", "|> AS u", "|> AGGREGATE count(*) AS n GROUP BY x",
    "|> ORDER BY x DESC", "|> LIMIT 3 OFFSET 1", "|> JOIN b USING (x)", "|> UNION ALL TABLE b", "|> TABLESAMPLE (10 PERCENT)",
    "|> LATERAL VIEW explode(xs) e AS v", "|> PIVOT (sum(x) FOR y IN (1, 2))", "|> SELECT *, row_number() OVER (ORDER BY x) AS r",
    "|> INTERSECT SELECT 2, 3 FROM b",
]  # fmt: skip


class Queries:
    """Random expressions and queries. Each is about `size` deep at most."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.left = 0

    def pick(self, options: list[str]) -> str:
        return self.random.choice(options)

    def maybe(self, text: str, chance: float = 0.3) -> str:
        return f" {text}" if self.random.random() < chance else ""

    def several(self, make: str, most: int = 3) -> str:
        return ", ".join(getattr(self, make)() for _ in range(self.random.randint(1, most)))

    def query(self) -> str:
        """A query, of a few dozen words at most."""
        self.left = self.random.choice([2, 4, 8, 14])
        return self._query()

    def expression(self) -> str:
        self.left = self.random.choice([0, 2, 5])
        return self._expression()

    def _spend(self) -> bool:
        """Whether there is room for one more level."""
        self.left -= 1
        return self.left > 0

    def _query(self) -> str:
        if not self._spend():
            return f"SELECT {self._item()} FROM {self.pick(TABLES)}"
        kind = self.random.random()
        if kind < 0.04:
            return self.pick(
                [
                    "TABLE orders",
                    "VALUES (1, 'a'), (2, 'b')",
                    "VALUES 1, 2 AS t(x)",
                    "FROM orders",
                    "FROM orders SELECT x",
                ]
            )
        text = self._select()
        if kind < 0.14:
            text = f"({text})" if self.random.random() < 0.3 else text
            operation = self.pick(
                [
                    "UNION",
                    "UNION ALL",
                    "EXCEPT",
                    "INTERSECT ALL",
                    "MINUS",
                    "EXCEPT DISTINCT",
                    "UNION DISTINCT",
                ]
            )
            text += f" {operation} {self._select()}"
        elif kind < 0.2:
            text += "".join(f" {self.pick(PIPES)}" for _ in range(self.random.randint(1, 3)))
            return text
        if kind > 0.85:
            recursive = self.maybe("RECURSIVE", 0.15)
            level = self.maybe("MAX RECURSION LEVEL 5", 0.3) if recursive else ""
            columns = self.maybe("(x, y)", 0.2)
            text = f"WITH{recursive} c{columns}{level} AS ({self._query()}), d AS (SELECT 1 AS x) {text}"
        return text + self._tail()

    def _tail(self) -> str:
        keys = ", ".join(self._order_key() for _ in range(self.random.randint(1, 2)))
        order = self.pick(
            [
                f"ORDER BY {keys}",
                f"SORT BY {keys}",
                "CLUSTER BY x",
                "DISTRIBUTE BY x SORT BY y",
                "ORDER BY ALL",
                "ORDER BY 1 DESC",
            ]
        )
        return (
            self.maybe(order)
            + self.maybe("WINDOW w AS (PARTITION BY x ORDER BY y)", 0.05)
            + self.maybe(self.pick(["LIMIT 10", "LIMIT ALL", "LIMIT 1 + 1", "LIMIT 5 OFFSET 2", "OFFSET 3"]))
        )

    def _order_key(self) -> str:
        return self._expression() + self.maybe(self.pick(["ASC", "DESC", "DESC NULLS LAST", "NULLS FIRST"]))

    def _select(self) -> str:
        if not self._spend():
            return "SELECT 1"
        head = "SELECT" + self.maybe(self.pick(HINTS), 0.06) + self.maybe(self.pick(["DISTINCT", "ALL"]), 0.1)
        text = f"{head} {self.several('_item')}"
        if self.random.random() < 0.06:
            return text
        text += f" FROM {self.several('_joined', 2)}"
        text += self.maybe(
            self.pick(
                [
                    "LATERAL VIEW explode(xs) e AS v",
                    "LATERAL VIEW OUTER posexplode(m) e AS p, v",
                    "LATERAL VIEW inline(ps) e",
                ]
            ),
            0.06,
        )
        text += self.maybe(f"WHERE {self._condition()}", 0.4)
        if self.random.random() < 0.3:
            text += f" GROUP BY {self._groups()}" + self.maybe(f"HAVING {self._aggregate()} > 1")
        return text + self.maybe(f"QUALIFY row_number() OVER ({self._window()}) = 1", 0.03)

    def _groups(self) -> str:
        keys = self.several("_expression", 2)
        special = ["ALL", "ROLLUP (x, y)", "CUBE (x, (y, k))", "GROUPING SETS ((x), (x, y), ())", "x, y WITH ROLLUP", "x, ROLLUP (y)",
                   "window(ts, '10 minutes'), x", "session_window(ts, '5 minutes')", "x GROUPING SETS (x, ())", "1, 2"]  # fmt: skip
        return keys if self.random.random() < 0.6 else self.pick(special)

    def _item(self) -> str:
        star = ["*", "t.*", "* EXCEPT (x, y)", "s.*", "* EXCEPT (s.a)"]
        if self.random.random() < 0.1:
            return self.pick(star)
        alias = self.pick(["AS x1", "AS `odd one`", "y1", "AS (a, b)", "AS date", "AS user", "AS end"])
        return self._expression() + self.maybe(alias, 0.4)

    def _joined(self) -> str:
        text = self._relation()
        while self._spend() and self.random.random() < 0.3:
            join = self.pick(JOINS)
            lateral = "LATERAL " if self.random.random() < 0.1 else ""
            text += f" {join} {lateral}{self._relation() if not lateral else f'({self._query()})'}"
            if "CROSS" not in join and "NATURAL" not in join:
                text += self.pick(
                    [f" ON {self._condition()}", f" ON {self._condition()}", " USING (x)", " USING (x, y)"]
                )
        return text

    def _relation(self) -> str:
        kind = self.random.random()
        alias = self.maybe(self.pick(["t", "AS u", "o(x, y)", "AS `odd`", "AS v(k)"]), 0.5)
        if kind < 0.12 and self._spend():
            return f"({self._query()}){alias}"
        special = [
            "range(10)", "explode(array(1, 2))", "VALUES (1), (2) AS v(x)", "(VALUES (1, 'a')) AS v(x, y)", "f(TABLE(orders) PARTITION BY x)",
            "f(TABLE(SELECT 1 AS x) WITH SINGLE PARTITION)", "f(TABLE orders PARTITION BY x ORDER BY y)", "f(a => 1, b => TABLE(orders))",
            "(orders JOIN trips USING (x))", "orders TABLESAMPLE (10 PERCENT) t", "orders TABLESAMPLE (5 ROWS)", "orders TABLESAMPLE (BUCKET 1 OUT OF 10)",
            "orders VERSION AS OF 3", "orders TIMESTAMP AS OF '2024-01-01'", "orders PIVOT (sum(x) AS s FOR y IN ('a' AS a, 'b' AS b))",
            "orders UNPIVOT (v FOR n IN (x, y))", "orders UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((x, y) AS xy))", "IDENTIFIER('orders')",
            "orders WITH (x = 1)", "IDENTIFIER('db' || '.t') u", "json.`/data/x`", "orders TABLESAMPLE (10 PERCENT) REPEATABLE (3)",
        ]  # fmt: skip
        if kind < 0.3:
            return self.pick(special)
        return self.pick(TABLES) + alias

    def _condition(self) -> str:
        if not self._spend():
            return f"{self.pick(COLUMNS)} = {self.pick(LITERALS)}"
        a, b = self._expression(), self._expression()
        return self.pick([
            f"{a} = {b}", f"{a} <=> {b}", f"{a} > {b} AND {a} != 3", f"{a} IS NOT NULL", f"{a} IS DISTINCT FROM {b}", f"NOT {a} <> {b}",
            f"{a} BETWEEN {b} AND 5", f"{a} NOT IN (1, {b})", f"{a} LIKE 'x%' ESCAPE '/'", f"{a} ILIKE ANY ('a', 'b')", f"{a} RLIKE 'x.*'",
            f"{a} IN ({self._query()})", f"EXISTS ({self._query()})", f"({a} OR {b})", f"{a} == {b}", f"({a}, {b}) IN (SELECT 1, 2)",
            f"{a} NOT LIKE ALL ('a%')", f"{a} IS TRUE", f"! {a}", f"x !< {b}", f"{a} REGEXP 'a'", f"{a} IS NOT DISTINCT FROM NULL",
        ])  # fmt: skip

    def _window(self) -> str:
        return f"PARTITION BY {self.pick(COLUMNS)} ORDER BY {self.pick(COLUMNS)} {self.pick(WINDOW_FRAMES)}"

    def _aggregate(self) -> str:
        name = self.pick(AGGREGATES)
        inner = self.pick(["x", "DISTINCT x", "*", "x, 0.5", "x + 1", "DISTINCT x, y", "ALL x"])
        return f"{name}({inner})" + self.maybe("FILTER (WHERE x > 1)", 0.15)

    def _expression(self) -> str:
        if not self._spend() or self.random.random() < 0.35:
            return self.pick(self.random.choice([COLUMNS, COLUMNS, LITERALS]))
        kind = self.random.random()
        if kind < 0.2:
            return self._aggregate() + self.maybe(f"OVER ({self._window()})", 0.2)
        if kind < 0.4:
            return f"{self.pick(FUNCTIONS)}({self.several('_expression')})"
        a, b = self._expression(), self._expression()
        return self.pick([
            f"{a} + {b}", f"({a} * {b})", f"-{a}", f"{a} || {b}", f"{a} % 2", f"{a} & {b}", f"{a} ^ 2", f"~{a}", f"{a} DIV {b}",
            f"CASE WHEN {a} = 1 THEN {b} ELSE 0 END", f"CASE {a} WHEN 1 THEN {b} END", f"CAST({a} AS {self.pick(TYPES)})", f"TRY_CAST({a} AS INT)",
            f"x::{self.pick(TYPES)}", f"transform(xs, v -> v + {a})", "aggregate(xs, 0, (s, v) -> s + v)", f"extract(HOUR FROM {a})",
            f"substring({a} FROM 2 FOR 3)", f"trim(BOTH 'x' FROM {a})", f"overlay({a} PLACING 'x' FROM 2)", f"position('a' IN {a})",
            f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {a})", f"f(x => {a}, y => {b})", "f(DISTINCT x)", f"struct({a} AS p, {b} AS q)",
            f"({self._query()})", f"first({a}) IGNORE NULLS", f"lag({a}, 1) IGNORE NULLS OVER ({self._window()})", f"array({a}, {b})[0].z",
            f"named_struct('a', {a}).a", f"parse_json('{{}}'):{'a.b'}::STRING", "current_date", "current_timestamp()", "IDENTIFIER('f')(1)",
            f"{a} COLLATE UTF8_LCASE", f"map('a', {a})['a']", f"INTERVAL ({a}) DAYS", f"timestampdiff(HOUR, {a}, {b})", f"date_add(DAY, 1, {a})",
            "count(*) OVER w", f"{a} >> 1", f"{a} >>> 1", f"{a} << 2", f"listagg({a}, ',') WITHIN GROUP (ORDER BY {b})", ":param", "?",
            f"TIMESTAMP {self.pick(['x', chr(39) + '2024-01-01' + chr(39)])}", "(x, y) -> x", f"({a}, {b})", "EXISTS (SELECT 1)",
        ])  # fmt: skip
