"""How sure a merge is: measured on what maintainers did with the conflicts of real bumps.

A number is about the share of conflicting places, of those that the rule settles in files that are
settled whole, where the maintainers kept just that result (docs/carry.md has the tables).
Maintainers also drop and rework changes, so even a merge that loses no line is far from certain:
what is below `CERTAIN` is for a person to look at.
"""

from __future__ import annotations

from patchkit.model.merging.merge import FileMerge
from patchkit.model.merging.regions import Doubt, Region, RegionResolution, Rule

#: From here on nobody needs to look.
CERTAIN = 0.95

_CLEAN = 0.99
_BY_RULE = {
    Rule.CLEAN: _CLEAN,
    Rule.CONTAINED: 0.5,  # some of it: what is left was mostly made anew, too
    Rule.MOVED: 0.5,
    Rule.BESIDE: 0.6,
    Rule.BOTH_INSERT: 0.5,
    Rule.IMPORTS: 0.3,
    Rule.WORDS: 0.3,
}
_SHORT_INSERTION = 0.8  # of a few lines only, which mostly are entries of a list
_SHORT = 3
_REWRITTEN = 0.4
# Nothing of the change is left to put in: upstream has it, or has it in the place of the patch's.
_ABSORBED = 0.9

# Upstream changed a file in so many places of the patch that it is more than in passing.
_MANY = 3
_IN_MANY_PLACES = 0.5
_DOUBTED = {
    Doubt.UPSTREAM_HAS_MOST: 0.4,
    Doubt.UPSTREAM_HAS_A_HUNK: 0.5,
    Doubt.NAME_GONE: 0.6,
    Doubt.UNBOUND: 0.3,
}


def confidence_of(merge: FileMerge) -> float:
    """The confidence in a merged file, from 0 to 1: that of its least certain place."""
    if merge.absorbed:
        return _CLEAN if merge.clean else _ABSORBED
    parts = [_place(region, resolution) for region, resolution in merge.steps if resolution]
    confidence = min(parts, default=_CLEAN)
    if not merge.clean and len(merge.three.conflicts) >= _MANY and confidence < CERTAIN:
        confidence *= _IN_MANY_PLACES
    for doubt in merge.doubts:
        confidence *= _DOUBTED.get(doubt, 1.0)
    return round(confidence, 2)


def _place(region: Region, resolution: RegionResolution) -> float:
    if Doubt.REWRITTEN in resolution.doubts:
        return _REWRITTEN
    if resolution.rule is Rule.BOTH_INSERT:
        added = sum(bool(line.strip()) for line in region.patch)
        return _SHORT_INSERTION if added <= _SHORT else _BY_RULE[Rule.BOTH_INSERT]
    return _BY_RULE[resolution.rule]
