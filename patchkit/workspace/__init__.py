"""Checkouts: see in which state one is, and bring it to a stack without ever losing work.

Looking is here: `inspect`, and where a checkout is. Acting is in the modules, which commands that
only look need not load: `enter` brings a checkout to a stack, `move.settle` records one. Below
them `create` makes a checkout, `move` moves one (`plan` what, `staging` in which form, `journal`
and `place` safely, `record` the end of it), `recover` finishes what a kill left, `save` keeps
what --force goes over.
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
