"""The own commits of a branch, such as a fork's, as patches in one line on a commit of upstream.

Invariant: once a commit of the branch's first parents is taken, the line gives its very tree. A
merge of upstream moves the line onto what it merged, by the engine that carries a bump; what is
still missing of the merge's tree then is a patch of its own, under the merge's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.first_parent import blobs_of, entries_at, merge_base
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.mail import parse_patch
from patchkit.model.objects import CommitId, lines_of
from patchkit.model.outcome import Status
from patchkit.refresh.patch_plan import commit_changes
from patchkit.stack.build import SeriesPatch, parse_commit, series_paths
from patchkit.stack.importing import ImportSource, patches_of
from patchkit.stack.patch_files import CommitChange
from patchkit.upstream.history import History


def own_commits(history: History, tip: CommitId) -> ImportSource:
    """The commits of a branch that neither the pin nor `tip` has, which is upstream's.

    The patches give the branch's tree on the pin; notes say what became of commits that are none.
    BadInputError if the newest commit of upstream that the branch has is not the pin.
    """
    with overlay(history.repository) as trial, ObjectReader(trial) as reader:
        branch = _Branch(history, reader, (history.pin, tip))
        base, notes = branch.based(history.tip), list[Problem]()
        if base != history.pin:
            what = f"{history.ref} is on the commit {base} of upstream, and not on the pin"
            bump = f"patchkit bump {history.repository.name} --to {base} --skip-conflicts"
            raise BadInputError(Problem(what, history.pin_where, f"{bump}  then the same again"))
        branch.bring((f"{e}^", e) for (e,) in branch.beyond(history.tip, "--no-merges"))
        changes: dict[str, CommitChange] = {}
        for oid, *parents in branch.beyond(history.tip, "--first-parent", "--parents"):
            change = branch.change(oid)
            if len(parents) > 1:
                report = branch.merged(oid, parents[0], changes)
                notes += _notes(report)
                changes = commit_changes(report.stack)
                change = replace(change, before=report.stack.tree)
            changes[oid] = change
        return ImportSource("branch", tuple(patches_of(trial, changes)), tuple(notes))


class _Branch(Struct, frozen=True):
    history: History
    reader: ObjectReader  # reads its objects, and what is made here
    upstream: tuple[CommitId, ...]  # what upstream's commits are known by

    def based(self, oid: CommitId) -> CommitId:
        """The newest commit of upstream that a commit has."""
        return merge_base(self.history.repository, oid, *self.upstream) or self.history.fork

    def beyond(self, tip: CommitId, *options: str) -> list[list[CommitId]]:
        """The commits that upstream does not have, oldest first, with what options add to each."""
        arguments = ["--reverse", *options, tip, "--not", *self.upstream]
        out = self.history.repository.git("rev-list", *arguments).out.decode()
        return [[CommitId(oid) for oid in row.split()] for row in lines_of(out)]

    def change(self, oid: CommitId) -> CommitChange:
        """What a commit does to its first parent."""
        commit = parse_commit(oid, self.reader.commit(oid))
        before = self.reader.root(commit.parent)
        return CommitChange(before, commit.tree, commit.message, commit.author)

    def bring(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Bring the files that differ between commits, all at once."""
        repository = self.history.repository
        changes = [change for pair in pairs for change in tree_changes(repository, *pair)]
        repository.bring(blobs_of(e for change in changes for e in (change.old, change.new)))

    def merged(
        self, oid: CommitId, first: CommitId, changes: Mapping[str, CommitChange]
    ) -> CarryReport:
        """What is on the line on what a merge has of upstream, and behind it the own commits that
        the merge brought to its first parent.
        """
        repository, trial = self.history.repository, self.reader.repository
        target = self.based(oid)
        wanted = dict(changes)
        brought = self.beyond(oid, "--topo-order", "--no-merges", f"^{first}")
        wanted.update((commit, self.change(commit)) for (commit,) in brought)
        series = [
            SeriesPatch(each.where, parse_patch(each.data, name=each.where))
            for each in patches_of(trial, wanted)
        ]
        self.bring([(target, oid)])
        repository.bring(blobs_of(entries_at(repository, target, series_paths(series)).values()))
        options = CarryOptions(made_on=wanted)
        base = read_base(repository, target, self.reader)
        report = carry_stack(self.reader, base, base, series, options)
        write_objects(trial, report.stack.objects)
        return report


def _notes(report: CarryReport) -> Iterator[Problem]:
    """Which commits are no patch after a merge, and why."""
    for outcome in report.outcomes:
        absorbed = outcome.status is Status.ABSORBED
        if absorbed or outcome.status.fails:
            why = "upstream has it" if absorbed else "what it does is in the patch of a merge"
            yield Problem(f"commit {outcome.name} is no patch: {why}")
