"""What a scene is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.faults.sandbox import Sandbox


@dataclass(frozen=True)
class Scene:
    """A command about to be run, in a project that `prepare` makes.

    `mine` are files of the user's in the checkout `demo`, with their bytes: untracked or edited,
    they must be there afterwards, or in a saved ref. `done` are exit codes that a second run may
    end with when the first one did its work: `new` cannot make the same patch twice. `parts` are
    commands that do some of the work, whole in itself: one component of several. A command that
    goes further when it is run again is struck by no fault, `once`.
    """

    name: str
    argv: tuple[str, ...]
    prepare: Callable[[Sandbox], object]
    mine: Mapping[str, bytes] = field(default_factory=dict)
    done: frozenset[int] = frozenset()
    parts: tuple[tuple[str, ...], ...] = ()
    once: bool = False
