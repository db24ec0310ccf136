"""What drifted without a conflict, told as few notices: one for each rule or kind and commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from patchkit.drift.drift_report import BrokenContract, Landed, MovedTarget, NewSite
from patchkit.guards.overrides.override_review import TargetVerdict
from patchkit.model.text import counted
from patchkit.ops.drift import ComponentDrift
from patchkit.report.notice import Level, Notice, landed_words

#: So many are named in one notice, the rest is counted.
_NAMED = 8

#: What upstream did to a function that is replaced.
MOVED_WORDS = {
    TargetVerdict.GONE: "is gone",
    TargetVerdict.SIGNATURE: "is called in another way",
    TargetVerdict.BODY: "does something else",
}

Found = TypeVar("Found", NewSite, MovedTarget, BrokenContract)


def silent_notices(component: ComponentDrift, path: str) -> Iterator[Notice]:
    """New sites and changed functions of one component; `path` is the manifest's."""
    subject = f"{component.manifest}/{component.name}"
    where = f"{component.ref} of {component.name}"
    for (rule, commit), sites in _by_commit(component.sites, lambda each: each.rule).items():
        title = f"{rule}: {counted(len(sites), 'new site')} in {component.name}"
        lines = [f"{each.place} in {each.within}".removesuffix(" in ") for each in sites]
        message = _message(f"{title} ({where})", sites[0].by, lines)
        about = f"{subject}/{rule}/{commit}"
        yield Notice(Level.WARNING, "new-site-upstream", title, message, about, path)
    by_kind = _by_commit(component.targets, lambda each: f"{each.component}/{each.verdict.value}")
    for (kind, commit), targets in by_kind.items():
        first = targets[0]
        many = counted(len(targets), "function")
        title = f"{first.component} replaces {many} that upstream has otherwise"
        if first.verdict is TargetVerdict.GONE:
            title = f"{first.component} replaces {many} that upstream has no more"
        message = _message(f"{title} ({where})", first.by, [each.name for each in targets])
        level = Level.NOTE if first.verdict is TargetVerdict.BODY else Level.WARNING
        rule = f"override-{first.verdict.value}-upstream"
        yield Notice(level, rule, title, message, f"{subject}/{kind}/{commit}", path)
    broken = _by_commit(component.contracts, lambda each: each.place.component)
    for (caller, commit), contracts in broken.items():
        title = f"{counted(len(contracts), 'call')} of {caller} that upstream broke"
        lines = [f"{e.place.place}: {e.place.target} {e.place.what}" for e in contracts]
        message = _message(f"{title} ({where})", contracts[0].by, lines)
        about = f"{subject}/contract/{caller}/{commit}"
        yield Notice(Level.WARNING, "contract-upstream", title, message, about, path)
    for each in component.unseen:
        title = f"not all of {component.name} could be looked at"
        yield Notice(Level.NOTE, "unseen", title, each, f"{subject}/unseen/{each}", path)


def _by_commit(
    found: tuple[Found, ...], kind: Callable[[Found], str]
) -> dict[tuple[str, str], list[Found]]:
    groups: dict[tuple[str, str], list[Found]] = {}
    for each in found:
        commit = each.by.commit if each.by is not None else ""
        groups.setdefault((kind(each), commit), []).append(each)
    return groups


def _message(head: str, by: Landed | None, lines: list[str]) -> str:
    shown = [head, *([landed_words(by)] if by is not None else []), *lines[:_NAMED]]
    if len(lines) > _NAMED:
        shown.append(f"and {len(lines) - _NAMED} more")
    return "\n".join(shown)
