"""How to refresh, and the edit of a pin that goes with it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from patchkit.manifest.values import Pin
from patchkit.ops.bump_report import NamedPin
from patchkit.ops.conflict_report import ResumeStep
from patchkit.refresh.draft import Request


class RefreshOptions(Struct, frozen=True):
    """How to refresh.

    `request`: where ambiguous edits go. `fork`: give a component whose series is shared one of its
    own. `careful`: what is not certain on a new pin is a conflict. `dry_run`: write nothing.
    `when`: now, in seconds since the epoch; it names saved work. `stop`: put a conflict over a new
    pin into the checkout, if nothing of the user's is there. `step`: go on from such a conflict.
    `partial`: leave out every patch that does not fit a new pin, as if each were skipped.
    """

    when: int
    request: Request = field(default_factory=Request)
    fork: bool = False
    dry_run: bool = False
    careful: bool = False
    stop: bool = False
    step: ResumeStep | None = None
    partial: bool = False


class PinEdit(Struct, frozen=True):
    """A pin that is written together with the patches for it.

    `file` holds `before`, and will hold `after`, with `pin` in it; `old_base` is the base that the
    patches are for. `old` and `new` are the pins by name. `way_out` is what to do where a patch
    conflicts.
    """

    file: Path
    before: bytes
    after: bytes
    pin: Pin
    old_base: str
    old: NamedPin
    new: NamedPin
    way_out: str
