"""What to do: names resolved, options and streaming rules checked, the PySpark calls built.

Pure: the same statement and catalog give an equal plan. No Spark, no files, no clock.
"""
