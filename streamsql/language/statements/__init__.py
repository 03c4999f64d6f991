"""The statements: one frozen dataclass each. Each file has the name of its grammar file.

Every statement has a `span`, its position in the text. Names and clauses have theirs in a Name.
"""
