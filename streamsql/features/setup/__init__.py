"""What an installation brings beside the console: its examples, completion of the shell, a manual page, and a
file for the report of a fault.
"""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    commands={
        "examples": ("examples:COMMAND", "list, print, copy or run the examples"),
        "completion": ("shell_completion:COMMAND", "print a script that completes flags in a shell"),
        "man": ("shell_completion:MANUAL", "print the manual page"),
        "support": ("support:COMMAND", "write one file for the report of a fault, secrets masked"),
    },
)
