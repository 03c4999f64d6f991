"""A Result to text: table, csv, tsv, json, jsonl, markdown, vertical."""
