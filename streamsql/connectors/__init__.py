"""The connectors of streams and sinks, one file each.

A connector is added by its file and its line in registry.py, or by a package with an entry point
in the group `streamsql.connectors`.
"""
