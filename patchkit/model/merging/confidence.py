"""How sure a merge is: measured on what maintainers did with the conflicts of real histories.

Two numbers: that these lines stand at this place, and that the file is the same to the byte, which
an order of two insertions or a blank line may change. Each is the share of files in which people
came to just that, also counting those where they dropped or reworked the change (docs/carry.md has
the tables). Maintainers decide for themselves, so even a merge that loses no line is far from
certain: what is below `CERTAIN` is for a person to look at, and what is below `LIKELY` is no merge
but a proposal.
"""

from __future__ import annotations

from msgspec import Struct

from patchkit.model.merging.merge import FileMerge
from patchkit.model.merging.regions import Doubt, Region, RegionResolution, Rule

#: From here on nobody needs to look.
CERTAIN = 0.95
#: Below it a merge of our own is likelier wrong than right.
LIKELY = 0.5


class Confidence(Struct, frozen=True):
    """From 0 to 1: how surely these lines at this place, and these very bytes."""

    lines: float
    same_bytes: float

    def times(self, other: Confidence) -> Confidence:
        """Both at once, as if they had nothing to do with each other."""
        return Confidence(
            round(self.lines * other.lines, 2), round(self.same_bytes * other.same_bytes, 2)
        )

    def least(self, other: Confidence) -> Confidence:
        """The lesser of each."""
        return Confidence(min(self.lines, other.lines), min(self.same_bytes, other.same_bytes))


SURE = Confidence(1.0, 1.0)

_CLEAN = Confidence(0.99, 0.99)
_BY_RULE = {
    Rule.CLEAN: _CLEAN,
    Rule.CONTAINED: Confidence(0.58, 0.5),  # some of it: what is left was mostly made anew, too
    Rule.MOVED: Confidence(0.6, 0.35),
    Rule.BESIDE: Confidence(0.69, 0.51),
    Rule.BOTH_INSERT: Confidence(0.82, 0.49),
    Rule.IMPORTS: Confidence(0.4, 0.3),
    Rule.WORDS: Confidence(0.28, 0.26),
}
_SHORT_INSERTION = Confidence(0.86, 0.58)  # of a few lines only, mostly entries of a list
_SHORT = 3
# Nothing of the change is left to put in: upstream has it, or has it in the place of the patch's.
_ABSORBED = Confidence(0.85, 0.8)

# Each further place that our rules settle in a file: upstream worked there.
_FURTHER_PLACE = Confidence(0.75, 0.6)
_DOUBTED = {
    Doubt.UPSTREAM_HAS_MOST: Confidence(0.85, 0.5),
    Doubt.UPSTREAM_HAS_A_HUNK: Confidence(0.5, 0.5),
    Doubt.NAME_GONE: Confidence(0.75, 0.65),
    Doubt.UNBOUND: Confidence(0.63, 0.6),
}
# The same of git's own merge, where nothing else speaks against it.
_CLEAN_DOUBTED = _DOUBTED | {
    Doubt.UPSTREAM_HAS_MOST: Confidence(0.4, 0.4),
    Doubt.NAME_GONE: Confidence(0.6, 0.6),
    Doubt.UNBOUND: Confidence(0.3, 0.3),
}


def confidence_of(merge: FileMerge) -> Confidence:
    """The confidence in a merged file: that of its least certain place, less for each other one."""
    if merge.absorbed:
        return _CLEAN if merge.clean else _ABSORBED
    result, places = _CLEAN, 0
    for region, resolution in merge.steps:
        if resolution is not None:
            result = result.least(_place(region, resolution))
            places += resolution.rule is not Rule.CLEAN
    for _ in range(places - 1):
        result = result.times(_FURTHER_PLACE)
    factors = _CLEAN_DOUBTED if merge.clean else _DOUBTED
    for doubt in merge.doubts:
        result = result.times(factors.get(doubt, SURE))
    return result


def _place(region: Region, resolution: RegionResolution) -> Confidence:
    if resolution.rule is Rule.BOTH_INSERT:
        added = sum(bool(line.strip()) for line in region.patch)
        return _SHORT_INSERTION if added <= _SHORT else _BY_RULE[Rule.BOTH_INSERT]
    return _BY_RULE[resolution.rule]
