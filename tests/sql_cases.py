"""The TESTs of files, run in the Spark of a test run."""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.errors import StreamsqlError
from streamsql.features.testing.cases import collect
from streamsql.features.testing.sessions import SessionFactory
from streamsql.features.testing.test_run import explained, load_pipeline, run_case


def results_of(
    files: Sequence[str], factory: SessionFactory, pipelines: Sequence[str] = ()
) -> dict[str, str]:
    """What a person reads of each test, by its name: "" of one that has passed."""
    collection = collect(files, pipelines)
    assert not collection.errors
    results = dict[str, str]()
    for case in collection.cases:
        results[case.name] = ""
        try:
            with factory.session() as session:
                load_pipeline(case, session)
                run_case(case, session)
        except StreamsqlError as error:
            results[case.name] = explained(error)
    return results
