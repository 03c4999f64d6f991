"""The console for Python programs: streamsql.connect() (HELP python api)."""
