"""The prompt. The only package that imports prompt_toolkit."""
