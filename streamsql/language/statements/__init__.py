"""What was written: one frozen dataclass for each statement, each file with its grammar's name.

Every statement has `span`, its place in the text. Names and clauses carry theirs in a Name.
"""
