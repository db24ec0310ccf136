"""The own commits of a branch, such as a fork's, as patches in one line on a commit of upstream.

Invariant: once a commit of the branch's first parents is taken, the line gives its very tree. A
merge of upstream moves the line onto what it merged, by the engine that carries a bump; what is
still missing of the merge's tree then is a patch of its own, under the merge's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.errors import Problem
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.first_parent import blobs_of, entries_at, merge_base
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.mail import parse_patch
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId, TreeEntry, lines_of
from patchkit.model.outcome import Status
from patchkit.refresh.patch_plan import commit_changes
from patchkit.stack.build import SeriesPatch, parse_commit, series_paths
from patchkit.stack.importing import patches_of
from patchkit.stack.patch_files import CommitChange
from patchkit.stack.series import ImportedPatch
from patchkit.upstream.history import History


class OwnCommits(Struct, frozen=True):
    """The patches give the branch's tree on `base`, the newest commit of upstream that it has.

    `notes` say what became of commits that are no patch.
    """

    base: CommitId
    patches: tuple[ImportedPatch, ...]  # in order; each is from where its commit is
    notes: tuple[Problem, ...]


def own_commits(history: History, tip: CommitId) -> OwnCommits:
    """The commits of a branch that neither the pin nor `tip` has, which is upstream's.

    BadInputError if the branch has nothing in common with the pin.
    """
    base, notes = history.fork, list[Problem]()
    with overlay(history.repository) as trial, ObjectReader(trial) as reader:
        branch = _Branch(history, reader, (history.pin, tip))
        branch.bring()
        changes: dict[str, CommitChange] = {}
        for oid, *parents in branch.beyond(history.tip, "--first-parent", "--parents"):
            base = base if changes or notes else parents[0]
            if len(parents) == 1:
                changes[oid] = branch.commit(oid)
                continue
            report = branch.carried(changes, base, oid, parents[0])
            base, whole = report.new_base.commit, branch.commit(oid)
            notes += _notes(report, whole)
            changes = commit_changes(report.stack)
            if report.stack.tree != whole.after:
                changes[oid] = replace(whole, before=report.stack.tree)
        return OwnCommits(base, tuple(patches_of(trial, changes)), tuple(notes))


class _Branch(Struct, frozen=True):
    history: History
    reader: ObjectReader  # reads the history, and what is made here
    upstream: tuple[CommitId, ...]  # what upstream's commits are known by

    def beyond(self, tip: CommitId, *options: str) -> list[list[CommitId]]:
        """The commits that upstream does not have, oldest first, with what options add to each."""
        arguments = ["--reverse", *options, tip, "--not", *self.upstream]
        out = self.history.repository.git("rev-list", *arguments).out.decode()
        return [[CommitId(each) for each in row.split()] for row in lines_of(out)]

    def commit(self, oid: CommitId) -> CommitChange:
        """What a commit does to its first parent."""
        commit = parse_commit(oid, self.reader.commit(oid))
        before = self.reader.root(commit.parent)
        return CommitChange(before, commit.tree, commit.message, commit.author)

    def bring(self) -> None:
        """Bring at once the files that its commits change, and those of upstream's that it has."""
        repository, entries, paths = self.history.repository, list[TreeEntry | None](), set[str]()
        pairs = [(f"{oid}^", oid) for (oid,) in self.beyond(self.history.tip, "--no-merges")]
        merges = [oid for (oid,) in self.beyond(self.history.tip, "--first-parent", "--merges")]
        pairs += [(self.merged(oid), oid) for oid in merges]
        for pair in pairs:
            changes = tree_changes(repository, *pair)
            paths.update(each.path for each in changes)
            entries += [side for each in changes for side in (each.old, each.new)]
        for oid in merges:
            entries += entries_at(repository, self.merged(oid), sorted(paths)).values()
        repository.bring(blobs_of(entries))

    def merged(self, oid: CommitId) -> CommitId:
        """The newest commit of upstream that a commit has."""
        return merge_base(self.history.repository, oid, *self.upstream) or self.history.fork

    def carried(
        self,
        changes: Mapping[str, CommitChange],
        base: CommitId,
        merge: CommitId,
        first: CommitId,
    ) -> CarryReport:
        """The line on what a merge has of upstream, with the own commits that the merge brought
        to its first parent.
        """
        repository, trial = self.history.repository, self.reader.repository
        target = self.merged(merge)
        brought = self.beyond(merge, "--topo-order", "--no-merges", f"^{first}")
        wanted = dict(changes)
        wanted.update((oid, self.commit(oid)) for (oid,) in brought)
        series = [
            SeriesPatch(each.where, parse_patch(each.data, name=each.where))
            for each in patches_of(trial, wanted)
        ]
        paths = series_paths(series)
        past = Between(repository, base, target, bring=repository.bring, paths=paths)
        options = CarryOptions(past=past, made_on=wanted)
        old, new = (read_base(repository, each, self.reader) for each in (base, target))
        report = carry_stack(self.reader, old, new, series, options)
        write_objects(trial, report.stack.objects)
        return report


def _notes(report: CarryReport, merge: CommitChange) -> Iterator[Problem]:
    """Which commits are no patch after a merge, and why."""
    for outcome in report.outcomes:
        by = next((f" ({f.absorbed_by})" for f in outcome.files if f.absorbed_by), "")
        commit = f"commit {short_id(CommitId(outcome.name))}"
        if outcome.status is Status.ABSORBED:
            yield Problem(f"{commit} is no patch: upstream has it{by}")
        elif outcome.status.fails:
            subject = merge.message.partition("\n")[0]
            yield Problem(f"{commit} is part of the patch of the merge: {subject}")
