"""From a walk to what a person wants to know of each patch: since when it is broken, by which
commit, what clashes there, and whether it was mended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.drift_report import (
    Break,
    Interval,
    PatchDrift,
    Risk,
)
from patchkit.drift.sample import State
from patchkit.drift.walk import Transition, Walk
from patchkit.explain.diagnose import FindRename, explain_patch
from patchkit.explain.explanation import Origin, PatchExplanation
from patchkit.gitcmd.commit_history import moved_blobs
from patchkit.gitcmd.first_parent import Commit, describe_commits
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.model.finding import Landed
from patchkit.model.names import normal_url
from patchkit.model.objects import CommitId, GitObject
from patchkit.model.outcome import Reason, Status
from patchkit.model.tree import ObjectSource, Tree
from patchkit.model.upstream_intent import request_number
from patchkit.stack.build import SeriesPatch, StackBuilder, patch_changes
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.history import History

# The clash at the commit that broke a patch, explained as `check` does it.


def explain_clash(
    history: History,
    source: ObjectSource,
    patch: SeriesPatch,
    *,
    commit: CommitId,
    met: State,
    renamed: FindRename,
) -> PatchExplanation | None:
    """Why a patch does not apply on `commit`, where it meets `met`; None if it does.

    That is what earlier patches leave there; `source` has it. Files into which one that vanished
    may have been renamed are fetched.
    """
    base = history.base(commit)
    tree, objects = Tree(source, base.tree), list[GitObject]()
    for path, entry in met.items():
        if tree.entry(path) != entry:
            tree = tree.remove(path) if entry is None else tree.put(path, entry)
    base = replace(base, tree=tree.write(objects))
    builder = StackBuilder(Overlay(source, objects), base)
    outcome = builder.push(patch)
    if outcome.status is not Status.CONFLICTED:
        return None
    if any(clash.reason is Reason.MISSING for clash in outcome.clashes):
        history.repository.bring(moved_blobs(history.repository, f"{commit}^", commit))
    view = TreeView(Overlay(source, (*objects, *builder.objects)), builder.tree_id)
    explained = explain_patch(view, patch, outcome, commit, renamed=renamed)
    # that files changed since the patch was made is no news: the branch moves on
    return replace(explained, origin=Origin(0, ()))


# Reverts, read off a commit's subject; pages on which to look at a commit.


_REVERT = re.compile(r'^(?:Revert|Reapply) "|^revert[:(]', re.IGNORECASE)
_HOST = re.compile(r"([a-z0-9.-]+)(?::\d+)?")


def is_revert(subject: str) -> bool:
    """Whether the subject says that the commit takes another one back."""
    return bool(_REVERT.match(subject))


@cache
def page_of(url: str) -> str | None:
    """The web page of the repository at `url`; None for one that has none that is known."""
    place, _, path = normal_url(url).partition("/")
    host = _HOST.fullmatch(place)
    return f"https://{host[1]}/{quote(path, safe='/-._~')}" if host and path else None


def commit_page(page: str | None, commit: CommitId) -> str | None:
    """The page of a commit."""
    if page is None:
        return None
    return f"{page}/-/commit/{commit}" if _is_gitlab(page) else f"{page}/commit/{commit}"


def request_page(page: str | None, number: int | None) -> str | None:
    """The page of a pull or merge request."""
    if page is None or number is None:
        return None
    if _is_gitlab(page):
        return f"{page}/-/merge_requests/{number}"
    return f"{page}/pulls/{number}" if "gitee.com/" in page else f"{page}/pull/{number}"


def _is_gitlab(page: str) -> bool:
    return "gitlab" in page.split("/")[2]


_MONTH = 30.0
_FITS = (Status.UNCHANGED, Status.SHIFTED, Status.EMPTY)


def tell(history: History, walk: Walk, patches: Sequence[LoadedPatch]) -> tuple[PatchDrift, ...]:
    """What the walk says about each patch of the series."""
    line = (walk.line.start, *walk.line.commits)
    ends = {line[change.position - 1] for changes in walk.changes for change in changes[1:]}
    ids = [history.pin, line[0], line[-1], *sorted(ends)]
    touched: dict[str, list[int]] = {}
    for step in walk.steps:
        for path in step.landing.touches:
            touched.setdefault(path, []).append(step.position)
    teller = _Describer(
        line,
        {step.position: step.landing.commit for step in walk.steps},
        history,
        describe_commits(history.repository, ids),
        touched,
    )
    return tuple(teller.patch(*row) for row in zip(patches, walk.at_pin, walk.changes, strict=True))


def landed_of(history: History, ids: Sequence[CommitId]) -> list[Landed]:
    """Commits of the history, each with its links."""
    commits = describe_commits(history.repository, ids)
    return [landed(history, commits[commit]) for commit in ids]


def landed(history: History, commit: Commit) -> Landed:
    """A commit of the history with its links."""
    page, number = page_of(history.repository.source.url), request_number(commit.subject)
    return Landed(
        commit.id,
        commit.date,
        commit.author,
        commit.subject,
        number,
        commit_page(page, commit.id),
        request_page(page, number),
    )


class _Describer(Struct):
    line: Sequence[CommitId]  # by position, from where it starts
    touching: Mapping[int, Commit]  # those that change watched files, by position
    history: History
    commits: Mapping[CommitId, Commit]
    touched: Mapping[str, Sequence[int]]  # path -> the commits that change it, by position

    def patch(
        self,
        patch: LoadedPatch,
        at_pin: Status,
        changes: Sequence[Transition],
    ) -> PatchDrift:
        """All about one patch."""
        intervals = self._intervals(changes)
        breaks = tuple(_breaks(intervals))
        broken = bool(breaks) and breaks[-1].mended is None
        broken_by = breaks[-1].by if broken else None
        fitted = [run.last for run in intervals if run.status in _FITS] if broken else []
        status, since = intervals[-1].status, intervals[-1].since
        file_changes = patch_changes(patch.series_patch)
        return PatchDrift(
            name=patch.name,
            where=patch.where,
            at_pin=at_pin,
            status=status,
            since=since,
            last_good=landed(self.history, self.commits[self.line[fitted[-1]]]) if fitted else None,
            broken_by=broken_by,
            days=self._days(at_pin, broken_by),
            absorbed_by=since if status is Status.ABSORBED else None,
            breaks=breaks,
            risk=self._risk({p for c in file_changes for p in (c.old_path, c.new_path) if p}),
            intervals=intervals,
            hunks=sum(max(1, len(change.hunks)) for change in file_changes),
            waits_for=intervals[-1].waits_for,
        )

    def _intervals(self, changes: Sequence[Transition]) -> tuple[Interval, ...]:
        ends = [change.position - 1 for change in changes[1:]] + [len(self.line) - 1]
        return tuple(
            Interval(
                change.status,
                change.position,
                last,
                self._at(change),
                change.faults,
                change.waits_for,
            )
            for change, last in zip(changes, ends, strict=True)
        )

    def _at(self, change: Transition) -> Landed | None:
        """Who brought a state about; the commit inside, where it came by a merge."""
        commit = self.touching.get(change.position)
        if commit is None:
            return None
        at = landed(self.history, commit)
        if change.inside is None or change.inside.id == at.commit:
            return at
        return replace(landed(self.history, change.inside), date=at.date, via=at)

    def _risk(self, paths: set[str]) -> Risk:
        commits = len(set[int]().union(*(self.touched.get(path, ()) for path in paths)))
        days = _days_between(self.commits[self.line[0]].date, self.commits[self.line[-1]].date)
        return Risk(commits, round(commits * _MONTH / max(days, 1.0), 1))

    def _days(self, at_pin: Status, broken_by: Landed | None) -> int | None:
        if not at_pin.applies or broken_by is None:
            return None
        return max(0, int(_days_between(self.commits[self.history.pin].date, broken_by.date)))


def _breaks(intervals: Sequence[Interval]) -> Iterable[Break]:
    """Waiting for another patch begins none, and mends none."""
    start: Interval | None = None
    for each in intervals:
        if each.is_broken:
            start = start or each
        elif start is not None and each.status is not Status.WAITING:
            reverted = each.since is not None and is_revert(each.since.subject)
            yield Break(start.since, each.since, reverted, start.faults)
            start = None
    if start is not None:
        yield Break(start.since, None, False, start.faults)


def _days_between(start: str, end: str) -> float:
    one, other = (datetime.fromisoformat(each.replace("Z", "+00:00")) for each in (start, end))
    return (other - one).total_seconds() / 86400
