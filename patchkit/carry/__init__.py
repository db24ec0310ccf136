"""Carry a stack onto another base: each patch as surely as can be shown, and never silently wrong.

Per file, in this order: the file is the same (take the result); the patch applies exactly; git's
three-way merge with the old file as the base; rules of our own for what that leaves in conflict,
each checked and flagged for review; else a conflict. docs/carry.md gives the reasons.
"""

from patchkit.carry.carried import CarryReport, Generate, PartialResult, Past
from patchkit.carry.engine import carry_stack, is_contained

__all__ = ["CarryReport", "Generate", "PartialResult", "Past", "carry_stack", "is_contained"]
