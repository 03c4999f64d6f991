"""SELECT * FROM live table LIMIT 20: a table of 1,000,000 rows against one of 1,000, while both change
between reads. Prints the ratio of the medians; wanted: about 1.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

SETUP = """
CREATE STREAM v (id BIGINT, name STRING) USING values;
CREATE LIVE TABLE small AS SELECT * FROM v;
CREATE LIVE TABLE large AS SELECT * FROM v;
STOP QUERY ALL;
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        session = Session(Config(Settings.make("local[*]", {}), place / "w", place / "log", place))
        run(session, SETUP)
        for name, rows in (("small", 1_000), ("large", 1_000_000)):
            ids = pa.array(range(rows))
            session.live[name].table = pa.table({"id": ids, "name": ids.cast(pa.string())})
        times: dict[str, list[float]] = {"small": [], "large": []}
        for _ in range(15):
            for name, taken in times.items():
                session.live[name].version += 1
                began = time.perf_counter()
                run(session, f"SELECT * FROM {name} LIMIT 20;")
                taken.append(time.perf_counter() - began)
        medians = {k: statistics.median(v[3:]) for k, v in times.items()}
        print({k: f"{1000 * v:.0f} ms" for k, v in medians.items()})
        print(f"1,000,000 rows / 1,000 rows: {medians['large'] / medians['small']:.2f}")
        session.close()


def run(session: Session, script: str) -> None:
    for written in split_script(Source("benchmark", script)):
        session.execute(parse(written))


if __name__ == "__main__":
    main()
