"""The features, each a folder. streamsql/feature_registry.py finds them; no module outside imports them."""
