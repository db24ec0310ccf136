"""Checkouts: see in which state one is, and bring it to a stack without ever losing work.

Looking is here: `inspect`, and where a checkout is. Acting is in the modules, which commands that
only look need not load: `enter` makes a checkout or brings it to a stack, `move.settle` records
one. Below them `move` moves one (`changes` says which files, `journal` and `put_files` replace them
safely), `recover` ends a move, also one that a kill cut short, `save`
keeps what --force goes over, and `waiting` holds a conflict.
"""

from patchkit.workspace.checkout import (
    APPLIED_REF,
    BASE_REF,
    BRANCH,
    HALT_REF,
    Checkout,
    checkout_of,
    locked,
)
from patchkit.workspace.state import CheckoutState, Snapshot, inspect

__all__ = [
    "APPLIED_REF",
    "BASE_REF",
    "BRANCH",
    "HALT_REF",
    "Checkout",
    "CheckoutState",
    "Snapshot",
    "checkout_of",
    "inspect",
    "locked",
]
