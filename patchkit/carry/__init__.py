"""Carry a stack onto another base: each patch as surely as can be shown, and never silently wrong.

`engine` goes through the series, `carry_file` decides of one file: the same file, git's three-way
merge, rules of our own for what that leaves in conflict, each checked, an exact place elsewhere,
code that went to other files; else a conflict. `cascade` finds what fails only because an earlier
patch does. docs/carry.md gives the reasons.
"""

from patchkit.carry.carried import CarryReport, Generate, Past
from patchkit.carry.engine import carry_stack, is_contained

__all__ = ["CarryReport", "Generate", "Past", "carry_stack", "is_contained"]
