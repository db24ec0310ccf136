"""How much of what is generated a run tries: a share by a seed, or all of it.

What is listed case by case is never left out, nor are examples that are written down
(`@example`). The share is that of examples of a law, of points at which a command is killed.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

#: PATCHKIT_TEST_SHARE, a fraction as 1/10 or 1; `make faults` takes 1.
SHARE = Fraction(os.environ.get("PATCHKIT_TEST_SHARE", "1/10"))
#: PATCHKIT_TEST_SEED: which examples these are; without it the same at every run.
SEED = int(os.environ.get("PATCHKIT_TEST_SEED", "1"))
#: A law of so few examples has all of them.
_FEW = 3


def share(count: int) -> int:
    """How many of `count` examples of a law a run tries."""
    return min(count, max(_FEW, math.ceil(count * SHARE)))


def every(step: int) -> int:
    """Every how many-th point of a command it is killed at, where all examples take each `step`-th;
    PATCHKIT_TEST_KILLS=1 strikes at each.
    """
    return int(os.environ.get("PATCHKIT_TEST_KILLS", "0")) or math.ceil(step / SHARE)


def told() -> str:
    """The line by which a run says what it took, and how to take it again."""
    part = "all examples" if SHARE >= 1 else f"{SHARE} of the examples"
    return f"generated laws: {part} (PATCHKIT_TEST_SHARE={SHARE} PATCHKIT_TEST_SEED={SEED})"
