"""Planning: resolves names, checks options and streaming rules, and builds the PySpark calls.

It is pure: the same statement and catalog give an equal plan. It uses no Spark, no files and no clock.
"""
