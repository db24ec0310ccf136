"""Functions of one upstream that another one replaces while it runs: are they still what they were?

`replacements` finds the names that are replaced, and what each is in the target's tree and what
of it a replacement depends on, `override_review` what has changed since the review.
"""

from enum import Enum


class TargetVerdict(str, Enum):
    """What became of a target since it was reviewed, from worst to best."""

    GONE = "gone"  # it was there when it was reviewed
    NOT_THERE = "not there"  # nobody ever saw it, and no reason is given
    SIGNATURE = "signature"  # it is called in another way, or is another kind of thing
    BODY = "body"  # it is called as before and does something else
    NEW = "new"  # it is there, and nobody has looked at it yet
    DECLARED = "declared"  # it is not there, and the manifest says why
    SAME = "same"

    @property
    def is_open(self) -> bool:
        """Whether somebody has to look."""
        return self not in (TargetVerdict.DECLARED, TargetVerdict.SAME)
