"""A project as code: a folder of SQL files is compared with a workspace, and applied to it.

The folder (project_folder.py) and the workspace give definitions (definition_set.py), which are compared
(comparison.py); plan_command.py, apply_command.py and
export_command.py have the commands.
"""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    commands={
        "export": ("export_command:COMMAND", "write the definitions of a workspace into a new folder"),
        "plan": ("plan_command:COMMAND", "compare a folder of SQL files with a workspace"),
        "apply": ("apply_command:COMMAND", "give a workspace what a folder of SQL files defines"),
    },
)
