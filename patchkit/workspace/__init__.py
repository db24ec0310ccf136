"""Checkouts: see in which state one is, and bring it to a stack without ever losing work.

`state.inspect` looks, `enter.enter_stack` acts. Below: `create` makes a checkout, `move` moves one
(`plan` what, `staging` in which form, `journal` and `place` safely, `record` the end of it),
`recover` finishes what a kill left, `save` keeps what --force goes over.
"""

from patchkit.workspace.checkout import (
    APPLIED_REF,
    BASE_REF,
    BRANCH,
    Checkout,
    checkout_of,
    locked,
)
from patchkit.workspace.enter import (
    Action,
    Cause,
    Entered,
    Refusal,
    Stacked,
    enter_stack,
    foresee,
)
from patchkit.workspace.move import Target, settle
from patchkit.workspace.recover import recover
from patchkit.workspace.save import Saved, Worktree, read_worktree
from patchkit.workspace.state import Snapshot, State, inspect

__all__ = [
    "APPLIED_REF",
    "BASE_REF",
    "BRANCH",
    "Action",
    "Cause",
    "Checkout",
    "Entered",
    "Refusal",
    "Saved",
    "Snapshot",
    "Stacked",
    "State",
    "Target",
    "Worktree",
    "checkout_of",
    "enter_stack",
    "foresee",
    "inspect",
    "locked",
    "read_worktree",
    "recover",
    "settle",
]
