"""From a walk to what a person wants to know of each patch: since when it is broken, by which
commit, what clashes there, and whether it was mended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from urllib.parse import quote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.drift_report import (
    AbsorbedHunk,
    Break,
    FileRisk,
    HunkFault,
    Interval,
    PatchDrift,
    Risk,
)
from patchkit.drift.judge import State
from patchkit.drift.walk import TouchingCommit, Transition, Walk
from patchkit.explain.diagnose import explain_patch
from patchkit.explain.explanation import Origin, PatchExplanation
from patchkit.gitcmd.commit_history import moved_blobs
from patchkit.gitcmd.first_parent import Commit, describe_commits
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.model.finding import Landed
from patchkit.model.objects import CommitId, GitObject
from patchkit.model.outcome import Reason, Status
from patchkit.model.tree import ObjectSource, Tree
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
    explained = explain_patch(view, patch, outcome, commit, history=history.repository)
    # that files changed since the patch was made is no news: the branch moves on
    return replace(explained, origin=Origin(0, ()))


# Pull requests and reverts, read off a commit's subject; pages on which to look at a commit.


_REQUEST = re.compile(
    r"\(#(\d{1,18})\)\s*$|^Merge pull request #(\d{1,18})\b"
    r"|\(!(\d{1,18})\)\s*$|^!(\d{1,18})\b|See merge request \S*!(\d{1,18})\b"
)
_REVERT = re.compile(r'^(?:Revert|Reapply) "|^revert[:(]', re.IGNORECASE)
_SCP = re.compile(r"(?:[A-Za-z0-9._~-]+@)?([A-Za-z0-9.-]+):([^/:].*)")


def request_number(subject: str) -> int | None:
    """The pull or merge request that a commit came by, as its subject says; the last one named."""
    found = [number for match in _REQUEST.findall(subject) for number in match if number]
    return int(found[-1]) if found else None


def is_revert(subject: str) -> bool:
    """Whether the subject says that the commit takes another one back."""
    return bool(_REVERT.match(subject))


def page_of(url: str) -> str | None:
    """The web page of the repository at `url`; None for one that has none that is known."""
    scp = _SCP.fullmatch(url) if "://" not in url else None
    if scp is not None:
        host, path = scp[1], scp[2]
    else:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http", "ssh", "git"):
            return None
        host, path = (parts.hostname or ""), parts.path
    if not re.fullmatch(r"[A-Za-z0-9.-]+", host):
        return None
    path = path.strip("/").removesuffix(".git")
    return f"https://{host.lower()}/{quote(path, safe='/-._~')}" if path else None


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
    touches = {touch.position: touch for touch in walk.touches}
    changed = (change.position for changes in walk.changes for change in changes)
    before = sorted({touches[each].parent for each in changed if each in touches})
    commits = describe_commits(history.repository, [history.pin, walk.start, walk.tip, *before])
    touched: dict[str, list[int]] = {}
    for touch in walk.touches:
        for path in touch.paths:
            touched.setdefault(path, []).append(touch.position)
    page = page_of(history.repository.source.url)
    teller = _Describer(walk, touches, page, commits, history.pin, touched)
    return tuple(
        teller.patch(*row)
        for row in zip(patches, walk.at_pin, walk.changes, walk.absorbed, strict=True)
    )


def landed_of(history: History, ids: Sequence[CommitId]) -> list[Landed]:
    """Commits of the history, each with its links."""
    page = page_of(history.repository.source.url)
    commits = describe_commits(history.repository, ids)
    return [_landed(commits[each], page) for each in ids]


def landed_along(history: History) -> tuple[Landed, ...]:
    """Every commit of the line, from where it starts."""
    line = history.line()
    return tuple(landed_of(history, [line.start, *line.commits]))


def landed(history: History, commit: Commit) -> Landed:
    """A commit of the history with its links."""
    return _landed(commit, page_of(history.repository.source.url))


class _Describer(Struct):
    walk: Walk
    touches: Mapping[int, TouchingCommit]  # by position on the line
    page: str | None  # web page of the upstream, None where none is known
    commits: Mapping[CommitId, Commit]
    pin: CommitId  # in full
    touched: Mapping[str, Sequence[int]]  # path -> the commits that change it, by position

    def patch(
        self,
        patch: LoadedPatch,
        at_pin: Status,
        changes: Sequence[Transition],
        absorbed: Sequence[tuple[HunkFault, Transition | None]],
    ) -> PatchDrift:
        """All about one patch."""
        status = changes[-1].status
        breaks = tuple(self._breaks(changes))
        intervals = tuple(self._intervals(changes))
        last_break = _last_start(changes)
        broken_by = self._at(last_break) if last_break is not None else None
        file_changes = patch_changes(patch.series_patch)
        return PatchDrift(
            name=patch.name,
            where=patch.where,
            at_pin=at_pin,
            status=status,
            since=intervals[-1].since,
            last_good=self._last_good(changes) if last_break is not None else None,
            broken_by=broken_by,
            days=self._days(at_pin, broken_by),
            absorbed_by=intervals[-1].since if status is Status.ABSORBED else None,
            breaks=breaks,
            absorbed=tuple(
                AbsorbedHunk(hunk.path, hunk.hunk, hunk.line, self._at(since) if since else None)
                for hunk, since in absorbed
            ),
            risk=self._risk({p for c in file_changes for p in (c.old_path, c.new_path) if p}),
            intervals=intervals,
            hunks=sum(max(1, len(change.hunks)) for change in file_changes),
            waits_for=changes[-1].verdict.waits_for,
        )

    def _at(self, change: Transition) -> Landed | None:
        """Who brought a state about; the commit inside, where it came by a merge."""
        touch = self.touches.get(change.position)
        if touch is None:
            return None
        at = _landed(touch.commit, self.page)
        if change.inside is None or change.inside.id == at.commit:
            return at
        return replace(_landed(change.inside, self.page), date=at.date, via=at)

    def _last_good(self, changes: Sequence[Transition]) -> Landed | None:
        """The last commit where a patch applies that does not any more."""
        good = max((n for n, each in enumerate(changes) if each.status in _FITS), default=None)
        touch = self.touches.get(changes[good + 1].position) if good is not None else None
        return _landed(self.commits[touch.parent], self.page) if touch is not None else None

    def _breaks(self, changes: Sequence[Transition]) -> Iterable[Break]:
        start: Transition | None = None
        for change in changes:
            if _is_broken(change):
                start = start or change
            elif start is not None and change.status is not Status.WAITING:
                mended = self._at(change)
                reverted = mended is not None and is_revert(mended.subject)
                yield Break(self._at(start), mended, reverted, start.faults)
                start = None
        if start is not None:
            yield Break(self._at(start), None, False, start.faults)

    def _intervals(self, changes: Sequence[Transition]) -> Iterable[Interval]:
        """Runs of one state; what merely changes in which hunks do not fit makes no new one.

        That a patch for which this one waits comes to be in conflict in this one's files does.
        """
        runs: list[list[Transition]] = []
        for change in changes:
            if runs and runs[-1][0].verdict.kind == change.verdict.kind:
                runs[-1].append(change)
            else:
                runs.append([change])
        ends = [run[0].position - 1 for run in runs[1:]] + [self.walk.length]
        for run, last in zip(runs, ends, strict=True):
            begin = run[0]
            since, names = self._at(begin), run[-1].verdict.waits_for
            yield Interval(begin.status, begin.position, last, since, begin.faults, names)

    def _risk(self, paths: set[str]) -> Risk:
        found = {path: self.touched[path] for path in paths if path in self.touched}
        commits = len(set[int]().union(*found.values()))
        days = _days_between(self.commits[self.walk.start].date, self.commits[self.walk.tip].date)
        counts = [(path, len(positions)) for path, positions in found.items()]
        files = sorted(counts, key=lambda each: (-each[1], each[0]))
        rate = commits * _MONTH / max(days, 1.0)
        return Risk(commits, round(rate, 1), tuple(FileRisk(*each) for each in files))

    def _days(self, at_pin: Status, broken_by: Landed | None) -> int | None:
        if not at_pin.applies or broken_by is None:
            return None
        return max(0, int(_days_between(self.commits[self.pin].date, broken_by.date)))


def _landed(commit: Commit, page: str | None) -> Landed:
    number = request_number(commit.subject)
    return Landed(
        commit.id,
        commit.date,
        commit.author,
        commit.subject,
        number,
        commit_page(page, commit.id),
        request_page(page, number),
    )


def _is_broken(change: Transition) -> bool:
    """Whether a patch does not apply as it is, by its own fault: one that waits has none."""
    regenerated = change.status is Status.REGENERATED and bool(change.faults)
    return regenerated or change.status in (Status.CONFLICTED, Status.MERGED)


def _last_start(changes: Sequence[Transition]) -> Transition | None:
    """Where the last break began; waiting for another patch begins none, and mends none."""
    start: Transition | None = None
    for change in changes:
        if change.status is Status.WAITING:
            continue
        if not _is_broken(change):
            start = None
        elif start is None:
            start = change
    return start


def _days_between(start: str, end: str) -> float:
    one, other = (datetime.fromisoformat(each.replace("Z", "+00:00")) for each in (start, end))
    return (other - one).total_seconds() / 86400
