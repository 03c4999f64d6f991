"""Functions over pandas and pyarrow series."""

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


def plus_one(values: pd.Series) -> pd.Series:
    return values + 1


def twice(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


def spread(values: pd.Series) -> float:
    return float(values.max() - values.min())


def largest(values: pa.Array) -> int:
    return pc.max(values).as_py()
