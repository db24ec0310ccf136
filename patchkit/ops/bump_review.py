"""What a reviewer of a bump needs: each patch beside what it was, and what upstream did there.

A review is made of a bump's report, right after the bump or later: the report of the last one of
each checkout is kept in the workspace. It changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.drift.describe import commit_page, page_of
from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.object_reader import MissingObjectError, reading
from patchkit.gitcmd.repository import Repository
from patchkit.manifest.values import Component, GitPin, GitSource, Manifest
from patchkit.model.diff_parse import parse_diff
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Attention, FileResult, PatchResult
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.progress import Progress
from patchkit.model.tree import Tree
from patchkit.ops.check import check_manifests
from patchkit.ops.check_report import ComponentCheck
from patchkit.ops.refresh_carry import UpstreamPast
from patchkit.ops.refresh_report import BumpedComponent, BumpReport, PatchHead
from patchkit.ops.undo import bump_reports
from patchkit.refresh.project_files import other_uses
from patchkit.upstream.history import tree_of
from patchkit.upstream.store import Store
from patchkit.workspace import checkout_of

#: Patches of which upstream's side is shown; of the others nothing but lines moved.
_FORCED = (Attention.CONFLICTED, Attention.RESOLVED, Attention.FLAGGED, Attention.CONTEXT)
#: A hunk of upstream's is near when so many lines at most lie between it and one of the patch's.
_NEAR = 3
#: So many lines of a hunk are shown, from so many before the patch's: upstream may have emptied a
#: whole file.
_LONG = 60
_AROUND = 12
_COMMITS = 5
_HUNKS = 8
_ID = re.compile(r"[0-9a-f]{7,40}")


class UpstreamCommit(Struct, frozen=True):
    """A commit of upstream's: its short id, date, author and subject; `link` is "" for no page."""

    commit: CommitId
    words: str  # date, author and subject in one line
    link: str = ""


class UpstreamChange(Struct, frozen=True):
    """What upstream did to a file where a patch changes it."""

    path: str  # on the old base
    now: str  # on the new base; "" where the file is gone
    hunks: tuple[Hunk, ...]  # with three lines of context, those near the patch's own
    left_out: int  # how many more hunks are near
    lines_left_out: int  # how many lines of the hunks are not shown
    commits: tuple[UpstreamCommit, ...]  # newest first; those that touched these lines


class PatchReview(Struct, frozen=True):
    """A patch of a bump as a reviewer sees it."""

    result: PatchResult  # what became of it
    subject: str  # of the patch as it was
    file: str  # the patch file, below the project's root
    change: bytes  # old patch to new as a unified diff, ids and line numbers left out
    #: What upstream did to its files, where somebody has to look.
    upstream: tuple[UpstreamChange, ...]
    absorbed_by: tuple[UpstreamCommit, ...]  # commits that made the same change


class ComponentReview(Struct, frozen=True):
    """A component of a bump: its report, patches by attention, and what else depends on them."""

    report: BumpedComponent
    patches: tuple[PatchReview, ...]
    sharing: tuple[str, ...]  # "COMPONENT of MANIFEST.yaml" that take the same series
    check: ComponentCheck | None  # of the new pin, after the bump; None: was not made
    unknown: str  # why upstream's commits are not named, "" if they are


class BumpReview(Struct, frozen=True):
    """A bump, one component or several."""

    report: BumpReport  # of which this is the review
    components: tuple[ComponentReview, ...]


class NoBumpError(PatchkitError):
    """No bump is recorded that could be reviewed."""

    exit_code = ExitCode.FINDING


def review_bump(
    manifest: Manifest,
    report: BumpReport,
    *,
    store: Store,
    progress: Progress,
) -> BumpReview:
    """The review of a bump; `manifest` is as it is now, after the bump unless that was a dry run.

    Fetches upstream's history between the pins where it is not here, and goes without where it
    cannot be fetched. Runs `patchkit check` on what was written. SurroundingsError where something
    cannot be read that may be there.
    """
    rows = []
    for row in report.components:
        component = manifest.component(row.name)
        if component is None:
            continue
        reviewing = _Reviewing(manifest, component, row, store, progress)
        rows.append(reviewing.review(checked=row.moved and not report.dry_run))
    return BumpReview(report, tuple(rows))


class _Reviewing(Struct, frozen=True):
    manifest: Manifest
    component: Component
    row: BumpedComponent  # the component's bump
    store: Store
    progress: Progress

    def review(self, *, checked: bool) -> ComponentReview:
        old, new = self.row.bases
        pinned = (
            replace(self.component, pin=GitPin(CommitId(new)))
            if self._has_history
            else self.component
        )
        past = UpstreamPast(self.store, pinned, old, self.progress)
        patches = tuple(self._patch(each, past) for each in self.row.patches)
        check = None
        if checked:
            chosen = [(self.manifest, [self.component])]
            check = check_manifests(chosen, self.store, self.progress).components[0]
            if check.exit_code is ExitCode.ENVIRONMENT:
                # what could not be read is not the bump's: no page says so as a finding
                raise SurroundingsError(*check.problems)
        return ComponentReview(self.row, patches, self._sharing(), check, past.unknown)

    @property
    def _has_history(self) -> bool:
        return isinstance(self.component.source, GitSource) and bool(self.row.bases[1])

    @property
    def _page(self) -> str | None:
        source = self.component.source
        return page_of(source.url) if isinstance(source, GitSource) else None

    def _patch(self, result: PatchResult, past: UpstreamPast) -> PatchReview:
        heads = {each.name: each for each in self.row.series}
        changes = {each.name: each.diff for each in self.row.changes}
        head = heads.get(result.name, PatchHead(result.name, "", result.name))
        upstream: tuple[UpstreamChange, ...] = ()
        if result.attention in _FORCED and all(self.row.bases):
            rows = (self._upstream(file, head, past) for file in result.files)
            upstream = tuple(each for each in rows if each is not None)
        return PatchReview(
            result,
            head.subject,
            head.where,
            changes.get(result.name, b""),
            upstream,
            tuple(map(self._commit, result.absorbed_by)),
        )

    def _upstream(
        self, file: FileResult, head: PatchHead, past: UpstreamPast
    ) -> UpstreamChange | None:
        """What upstream did near the patch's hunks on a file; None for nothing."""
        repository = self.store.repository(self.component)
        now = file.carried_to or file.path
        old, new = self.row.bases
        there = _files_there(repository, ((old, file.path), (new, now)))
        if there is None or not there[0]:
            return None
        gone, change = not there[1], None
        if all(there):
            change = _blob_change(repository, f"{old}:{file.path}", f"{new}:{now}")
        places = [(first, last) for path, first, last in head.places if path == file.path]
        near = [each for each in change.hunks if _is_near(each, places)] if change else []
        if not near and not gone:
            return None
        shown = [_part_near(hunk, places) for hunk in near[:_HUNKS]]
        cut = sum(len(each.lines) for each in near[:_HUNKS]) - sum(len(e.lines) for e in shown)
        commits = self._commits(file.path, shown, past)
        left_out = max(0, len(near) - _HUNKS)
        return UpstreamChange(file.path, "" if gone else now, tuple(shown), left_out, cut, commits)

    def _commits(
        self, path: str, hunks: Sequence[Hunk], past: UpstreamPast
    ) -> tuple[UpstreamCommit, ...]:
        if not self._has_history:
            return ()
        lines = {row[1:] for hunk in hunks for row in hunk.lines if row[:1] in b"+-"}
        return tuple(self._commit(each.told) for each in past.touches(path, lines)[:_COMMITS])

    def _commit(self, told: str) -> UpstreamCommit:
        """Of "ID words"; what begins with no id is all words."""
        first, _, words = told.partition(" ")
        commit = CommitId(first)
        if not _ID.fullmatch(commit):
            return UpstreamCommit(CommitId(""), told)
        return UpstreamCommit(commit, words, commit_page(self._page, commit) or "")

    def _sharing(self) -> tuple[str, ...]:
        files: dict[Path, bytes | None] = {
            self.manifest.root / each.where: None for each in self.row.series
        }
        if self.component.series is not None:
            files[self.manifest.root / self.component.series.path] = None
        return tuple(
            str(each) for each in other_uses(self.manifest, self.component, files, self.store)
        )


def _files_there(repository: Repository, files: Sequence[tuple[str, str]]) -> list[bool] | None:
    """Of each (commit, path) whether a file is there; None where not all of it is in the cache."""
    found = []
    with reading(repository) as reader:
        try:
            for commit, path in files:
                entry = Tree(reader, tree_of(reader, CommitId(commit))).entry(path)
                found.append(entry is not None)
                if entry is not None:
                    reader.blob(entry.oid)
        except MissingObjectError:
            return None
    return found


def _blob_change(repository: Repository, old: str, new: str) -> FileChange | None:
    """How upstream changed a file, by its names in both commits; None where it did not."""
    options = ("-U3", "--no-color", "--no-ext-diff", "--diff-algorithm=histogram", "--full-index")
    try:
        changes = parse_diff(repository.git("diff", *options, old, new).out)
    except BadInputError:
        return None
    return changes[0] if changes else None


def _is_near(hunk: Hunk, places: Sequence[tuple[int, int]]) -> bool:
    """Whether lines that the hunk changes are near one of the places, on the old side."""
    line, changed = hunk.old_start, []
    for row in hunk.lines:
        if row[:1] in b"+-":
            changed.append(line)
        if row[:1] in b"- ":
            line += 1
    if not changed:
        return False
    low, high = min(changed) - _NEAR, max(changed) + _NEAR
    return any(first <= high and low <= last for first, last in places)


def _part_near(hunk: Hunk, places: Sequence[tuple[int, int]]) -> Hunk:
    """A long hunk from a little before the first place on; of any other all."""
    if len(hunk.lines) <= _LONG:
        return hunk
    begin = min(first for first, last in places if last >= hunk.old_start - _NEAR) - _AROUND
    old, new, at = hunk.old_start, hunk.new_start, 0
    while old < begin and at < len(hunk.lines) - 1:
        old += hunk.lines[at][:1] != b"+"
        new += hunk.lines[at][:1] != b"-"
        at += 1
    part = replace(hunk, old_start=old, new_start=new, lines=hunk.lines[at : at + _LONG])
    return replace(part, old_count=len(part.preimage), new_count=len(part.postimage))


def last_bump(manifest: Manifest, names: Sequence[str], workspace: Path) -> BumpReport:
    """The last finished bump of one of the components, as it was reported then.

    NoBumpError if there is none, or the manifest has another pin since.
    """
    found: list[tuple[int, BumpedComponent]] = []
    for name in names:
        component = manifest.component(name)
        assert component is not None
        checkout = checkout_of(workspace, manifest, component)
        found += list(bump_reports(checkout, str(component.pin)))[:1]
    if not found:
        what = "no finished bump is recorded"
        hint = "-o FILE beside --to writes the review with the bump"
        raise NoBumpError(Problem(what, ", ".join(names) or manifest.name, hint))
    row = max(found, key=lambda each: each[0])[1]
    return BumpReport(manifest.name, dry_run=False, components=(row,))
