"""What `patchkit check` says about residual sites: one finding for each rule."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.model.counting import counted
from patchkit.model.lint import Finding, Severity
from patchkit.residual.reviewing import ResidualSite, Review, State

#: So many places are told, the rest is counted.
_NAMED = 3

_TOLD = {
    State.NEW: ("new", "no patch covers"),
    State.EXPIRED: ("expired", "a reason that is over covers"),
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
