"""Remember what a drift report saw, and reduce the next one to what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.drift_report import BrokenContract, MovedTarget, NewSite, PatchDrift, TrendPoint
from patchkit.drift.record import (
    KEPT,
    Line,
    Seen,
    SeenPatch,
    Since,
    append_seen,
    compare,
    read_record,
)
from patchkit.errors import ExitCode, SurroundingsError
from patchkit.model.outcome import Status
from patchkit.ops.drift import ComponentDrift, DriftReport


class RecordPlace(Struct, frozen=True):
    """Where records are: one file that the user named, or one for each manifest in a folder."""

    file: Path | None
    folder: Path

    def of(self, manifest: str) -> Path:
        """The record of a manifest."""
        return self.file or self.folder / f"{manifest}.jsonl"


def note_report(
    report: DriftReport, place: RecordPlace, now: datetime, *, since_last: bool
) -> DriftReport:
    """The report with what earlier ones saw; with `since_last` only what changed.

    On disk: what it saw, for the next time. A record in the cache that cannot be written is no
    error, one that the user named raises SurroundingsError.
    """
    seen = [_seen(each, now) for each in report.components if each.tip is not None]
    earlier: dict[Line, list[Seen]] = {}
    for path in dict.fromkeys(place.of(each.manifest) for each in seen):
        own = [each for each in seen if place.of(each.manifest) == path]
        with nullcontext() if place.file is not None else suppress(SurroundingsError):
            for each in read_record(path):
                earlier.setdefault(each.line, []).append(each)
            append_seen(path, own)
    known = {each.line: each for each in seen}
    told = [_with_trend(each, known, earlier) for each in report.components]
    if since_last:
        told = [_since(each, known, earlier) for each in told]
        news = tuple(each for each in told if each.problems or _is_news(each))
        looked_at = sum(each.since is not None for each in told)
        unchanged = looked_at - sum(each.since is not None for each in news)
        return replace(report, components=news, unchanged=unchanged)
    return replace(report, components=tuple(told))


def _is_news(component: ComponentDrift) -> bool:
    found = component.sites or component.targets or component.contracts
    return component.since is not None and bool(found or not component.since.is_empty)


def _seen(component: ComponentDrift, now: datetime) -> Seen:
    assert component.tip is not None
    return Seen(
        at=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        manifest=component.manifest,
        component=component.name,
        ref=component.ref,
        pin=component.pin,
        tip=component.tip.commit,
        patches={each.name: _seen_patch(each) for each in component.patches},
        notes=tuple(dict.fromkeys(_notes(component))),
    )


def _seen_patch(patch: PatchDrift) -> SeenPatch:
    return SeenPatch(patch.status, patch.event.commit if patch.event is not None else "")


def _notes(component: ComponentDrift) -> Iterator[str]:
    """What was found beside the states of patches, in words that stay the same."""
    for patch in component.patches:
        for each in patch.suspicions:
            yield f"{patch.name}: {each.path}: {each.what}"
        for hunk in patch.absorbed if patch.status is not Status.ABSORBED else ():
            yield f"{patch.name}: {hunk.path}: hunk {hunk.hunk} is upstream"
    yield from map(_site_note, component.sites)
    yield from map(_target_note, component.targets)
    yield from map(_contract_note, component.contracts)


def _site_note(site: NewSite) -> str:
    return f"{site.rule}: {site.path}: {site.within}: {site.text}"


def _target_note(target: MovedTarget) -> str:
    return f"{target.component} replaces {target.name}: {target.verdict.value}"


def _contract_note(contract: BrokenContract) -> str:
    place = contract.place
    return f"{place.component} in {place.within}: {place.target}: {place.what}"


def _with_trend(
    component: ComponentDrift, known: Mapping[Line, Seen], earlier: Mapping[Line, Sequence[Seen]]
) -> ComponentDrift:
    line = (component.manifest, component.name, component.ref)
    if line not in known:
        return component
    points = list(earlier.get(line, ()))
    if not points or not known[line].is_like(points[-1]):
        points.append(known[line])
    points = points[-KEPT:]
    return replace(component, trend=tuple(map(_point, points)))


def _point(seen: Seen) -> TrendPoint:
    states = [patch.status for patch in seen.patches.values()]
    carried = states.count(Status.MERGED) + states.count(Status.REGENERATED)
    absorbed, conflicts = states.count(Status.ABSORBED), states.count(Status.CONFLICTED)
    waiting = states.count(Status.WAITING)
    fits = len(states) - carried - absorbed - conflicts - waiting
    return TrendPoint(seen.at, seen.tip, fits, carried, absorbed, conflicts, waiting)


def _since(
    component: ComponentDrift, known: Mapping[Line, Seen], earlier: Mapping[Line, Sequence[Seen]]
) -> ComponentDrift:
    """The component with what changed alone; one that was not looked at stays as it is."""
    line = (component.manifest, component.name, component.ref)
    if line not in known:
        return component
    before = earlier.get(line, ())
    since = compare(before[-1] if before else None, known[line])
    sites = tuple(each for each in component.sites if _site_note(each) in since.new)
    targets = tuple(each for each in component.targets if _target_note(each) in since.new)
    contracts = tuple(e for e in component.contracts if _contract_note(e) in since.new)
    shown = {*map(_site_note, sites), *map(_target_note, targets), *map(_contract_note, contracts)}
    since = replace(since, new=tuple(each for each in since.new if each not in shown))
    changed = {change.patch for change in since.changes}
    changed |= {patch.name for patch in component.patches if _is_named(patch, since)}
    return replace(
        component,
        patches=tuple(patch for patch in component.patches if patch.name in changed),
        sites=sites,
        targets=targets,
        contracts=contracts,
        since=since,
        exit_code=_since_exit_code(component, since),
    )


def _is_named(patch: PatchDrift, since: Since) -> bool:
    return any(note.startswith(f"{patch.name}: ") for note in since.new)


def _since_exit_code(component: ComponentDrift, since: Since) -> ExitCode:
    quiet = component.exit_code is ExitCode.FINDING and not since.is_worse
    return ExitCode.OK if quiet else component.exit_code
