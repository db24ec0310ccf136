"""Sites as they are now against the baseline: new ones, expired reasons, entries for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from patchkit.guards.residual.baseline import (
    Baseline,
    Fingerprint,
    ReviewedArea,
    ReviewedSite,
    fingerprint,
)
from patchkit.model.lint import Finding, Severity
from patchkit.model.text import counted
from patchkit.recipes.sites import Site


class ReviewState(str, Enum):
    """What is known of a site."""

    NEW = "new"
    EXPIRED = "expired"  # it was reviewed, for a time that is over
    KNOWN = "known"  # it was there when the baseline was begun; nobody has looked at it
    REVIEWED = "reviewed"


class ResidualSite(Struct, frozen=True):
    """A site that no patch covers, and the reason why it may stay (or might)."""

    rule: str
    path: str
    line: int
    within: str
    text: str
    state: ReviewState
    reason: str = ""

    @property
    def place(self) -> str:
        """For messages: path:line."""
        return f"{self.path}:{self.line}"


class Review(Struct, frozen=True):
    """Every site, judged, and the entries that match none (any more)."""

    sites: tuple[ResidualSite, ...]
    unmatched: tuple[ReviewedSite | ReviewedArea, ...]

    def count(self, state: ReviewState) -> int:
        """How many sites are in a state."""
        return sum(site.state is state for site in self.sites)


def review_sites(sites: Sequence[Site], baseline: Baseline, today: date) -> Review:
    """Judge the sites in their order: of many alike, the first `count` are the reviewed ones."""
    entries: dict[Fingerprint, list[ReviewedSite]] = {}
    for entry in baseline.sites:
        entries.setdefault(entry.site, []).append(entry)
    used: Counter[int] = Counter()
    areas: set[int] = set()
    judged = []
    for site in sites:
        found: ReviewedSite | ReviewedArea | None = None
        for entry in entries.get(fingerprint(site), ()):
            if used[id(entry)] < entry.count:
                used[id(entry)] += 1
                found = entry
                break
        for area in baseline.areas:
            if area.covers(site):
                areas.add(id(area))
                found = area if found is None or _is_weaker(found, today) else found
        judged.append(_judged(site, found, today))
    unmatched = [each for each in baseline.sites if not used[id(each)]]
    return Review(
        tuple(judged), (*unmatched, *(each for each in baseline.areas if id(each) not in areas))
    )


def with_reviewed(
    baseline: Baseline, sites: Sequence[ResidualSite], reason: str, until: date | None
) -> Baseline:
    """The baseline with further sites; what was said of them before, and is over, is dropped.

    Without a reason they become known; what is known already, or was reviewed, stays as it is.
    """
    done = (
        (ReviewState.REVIEWED,)
        if reason
        else (ReviewState.REVIEWED, ReviewState.EXPIRED, ReviewState.KNOWN)
    )
    chosen = [site for site in sites if site.state not in done]
    added = [ReviewedSite(_known_by(site), reason, 1, until) for site in chosen]
    expired = {_known_by(site) for site in chosen if site.state is ReviewState.EXPIRED}
    looked_at = Counter(_known_by(site) for site in chosen if site.state is ReviewState.KNOWN)
    kept = []
    for each in baseline.sites:
        if not each.reason:
            now = min(looked_at[each.site], each.count)
            looked_at[each.site] -= now
            kept += [replace(each, count=each.count - now)] if now < each.count else []
        elif each.site not in expired or each.until is None:
            kept.append(each)
    return Baseline((*kept, *added), baseline.areas)


def without(baseline: Baseline, entries: Sequence[ReviewedSite | ReviewedArea]) -> Baseline:
    """The baseline without some of its entries."""
    gone = {id(each) for each in entries}
    return Baseline(
        tuple(each for each in baseline.sites if id(each) not in gone),
        tuple(each for each in baseline.areas if id(each) not in gone),
    )


def _judged(site: Site, entry: ReviewedSite | ReviewedArea | None, today: date) -> ResidualSite:
    known_by = fingerprint(site)
    state = ReviewState.NEW
    if entry is not None:
        current = ReviewState.REVIEWED if entry.reason else ReviewState.KNOWN
        state = ReviewState.EXPIRED if _is_past(entry, today) else current
    reason = "" if entry is None else entry.reason
    return ResidualSite(site.rule, site.path, site.line, site.within, known_by.text, state, reason)


def _is_weaker(entry: ReviewedSite | ReviewedArea, today: date) -> bool:
    """Whether any area says more of a site: nobody looked at it, or for a time that is over."""
    return not entry.reason or _is_past(entry, today)


def _is_past(entry: ReviewedSite | ReviewedArea, today: date) -> bool:
    return entry.until is not None and entry.until < today


def _known_by(site: ResidualSite) -> Fingerprint:
    return Fingerprint(site.path, site.rule, site.within, site.text)


# What `patchkit check` says about residual sites: one finding for each rule.


#: So many places are told, the rest is counted.
_NAMED = 3

_TOLD = {
    ReviewState.NEW: ("new", "no patch covers"),
    ReviewState.EXPIRED: ("expired", "a reason that is over covers"),
}


def residual_findings(review: Review, name: str, command: str) -> Iterator[Finding]:
    """What somebody has to look at; `name` is the baseline's, `command` lists all."""
    for state, (code, what) in _TOLD.items():
        for rule in dict.fromkeys(site.rule for site in review.sites):
            found = [s for s in review.sites if s.rule == rule and s.state is state]
            if found:
                many = f"{counted(len(found), 'site')} that {what}"
                text = f"{rule}: {many}: {_places(found)}"
                hint = f"`{command}` lists them, with `--accept --reason ...` they may stay"
                yield Finding(Severity.WARNING, f"residual-{code}", text, name, hint)
    if review.unmatched:
        count = len(review.unmatched)
        text = f"{count} entr{'y matches' if count == 1 else 'ies match'} no site any more"
        hint = f"`{command} --prune` takes them out"
        yield Finding(Severity.WARNING, "residual-unmatched", text, name, hint)


def _places(sites: list[ResidualSite]) -> str:
    shown = ", ".join(
        f"{site.place} in {site.within}" if site.within else site.place for site in sites[:_NAMED]
    )
    more = len(sites) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
