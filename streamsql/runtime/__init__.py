"""The only package that imports pyspark: the session, its queries and live tables."""
