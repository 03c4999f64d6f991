"""Prints results as table, csv, tsv, json, jsonl, markdown, vertical or chart."""
