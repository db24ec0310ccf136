"""The patches of a stack, one after the other, from the old base onto the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry.carried import (
    CarriedFile,
    CarryContext,
    CarryOptions,
    CarryReport,
    NoPast,
    doubted_as,
)
from patchkit.carry.carry_file import carry_change, carry_file
from patchkit.carry.cascade import Names, ResolvedStack, edited, waiting
from patchkit.carry.upstream_word import fate_of, with_upstreams_word
from patchkit.model.apply_changes import Applied, Blobs, apply_changes
from patchkit.model.merging.regions import Labels
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.outcome import FileResult, PatchResult, Reason, Status
from patchkit.model.patch import FileChange, Kind
from patchkit.model.revision import reverse_changes
from patchkit.model.tree import ObjectSource, ObstructedError, Overlay, Tree
from patchkit.stack.build import (
    Base,
    SeriesPatch,
    StackBuilder,
    build_stack,
    patch_changes,
)

# What a file change may come to, from what weighs most in a patch to what weighs least.
_WEIGHT = (
    Status.CONFLICTED,
    Status.WAITING,
    Status.MERGED,
    Status.SHIFTED,
    Status.UNCHANGED,
    Status.ABSORBED,
)


def carry_stack(
    source: ObjectSource,
    old_base: Base,
    new_base: Base,
    patches: Sequence[SeriesPatch],
    options: CarryOptions | None = None,
) -> CarryReport:
    """Put `patches`, made for `old_base`, onto `new_base`; nothing is written.

    A patch that conflicts is left out and the next one is tried without it; one that fails only for
    that reason is WAITING. BadInputError if a remembered resolution comes to another result now.
    """
    options = options or CarryOptions()
    made_on = options.made_on
    there = [each for each in patches if each.name not in made_on]
    before = build_stack(source, new_base if made_on else old_base, there)
    stacks = [before]
    for patch in patches:
        if patch.name in made_on:
            base = replace(old_base, tree=TreeId(made_on[patch.name].before))
            stacks.append(build_stack(source, base, [patch]))
    objects = Overlay(source, [each for stack in stacks for each in stack.objects])
    carrying = StackCarrier(
        source,
        objects,
        old_base.commit,
        options,
        StackBuilder(source, new_base),
        Tree(objects, before.base.tree),
        Blobs(objects),
    )
    carrying.builder.preload(patches)
    befores = {each.name: each for stack in stacks for each in stack.outcomes}
    outcomes = [carrying.put(patch, befores[patch.name]) for patch in patches]
    found = carrying.conflicts, carrying.left_out, carrying.external
    return CarryReport(old_base, new_base, carrying.builder.finish(outcomes), *found)


def is_contained(tree: Tree, blobs: Blobs, changes: Sequence[FileChange]) -> bool:
    """Whether `tree` holds the changes already: undoing all of them applies exactly, in place."""
    undone = apply_changes(tree, blobs, reverse_changes(changes), terse=True)
    return bool(changes) and undone.tree is not None and not _shifted(undone.files)


class StackCarrier(Struct):
    """A stack on its way; each of the results is kept by the patch's name."""

    source: ObjectSource  # upstream's objects
    objects: Overlay  # these, and what the patches make on the trees that they are for
    old_base: CommitId  # the commit that the patches are for
    options: CarryOptions  # what the carry goes by
    builder: StackBuilder  # the new stack so far
    old_tree: Tree  # where the old stack has got to
    old_blobs: Blobs  # contents of the old stack's files
    conflicts: dict[str, tuple[CarriedFile, ...]] = {}  # all its files
    resolved: ResolvedStack | None = None  # the new stack had no patch failed; None if none has
    left_out: dict[str, str] = {}  # the tree on which it was left out
    external: dict[str, dict[str, str]] = {}  # path -> key, of a merger

    def put(
        self,
        patch: SeriesPatch,
        old: PatchResult,
    ) -> PatchResult:
        """Put the next patch onto the stack, and be one further in the old one."""
        first = self.resolved is None  # no earlier one has failed
        generate, leave_out = self.options.generate, self.options.leave_out
        made_on, old_tree = self.options.made_on.get(patch.name), self.old_tree
        if made_on is not None:
            self.old_tree = Tree(self.objects, made_on.before)
        generated = generate(self.builder, patch) if generate is not None else None
        outcome = self.carry(patch, old) if generated is None else generated
        if generated is not None:
            self._whole(patch, patch_changes(patch), generated)
        outcome = as_on_old_base(outcome, old)
        if first and outcome.status is Status.CONFLICTED and patch.name in leave_out:
            outcome = replace(self.without(patch), fate=outcome.fate)
        # the old stack is one patch further; one from elsewhere is no part of it
        self.old_tree = old_tree if made_on is not None else self._after(old) or old_tree
        return outcome

    def without(self, patch: SeriesPatch) -> PatchResult:
        """Leave out the first patch in conflict: nothing of it has landed, none waits for it."""
        self.resolved = None
        for kept in (self.conflicts, self.external):
            kept.pop(patch.name, None)
        self.left_out[patch.name] = self.builder.tree_id
        return PatchResult(patch.name, Status.ABSORBED)

    def carry(self, patch: SeriesPatch, old: PatchResult) -> PatchResult:
        """Carry one patch; `old` is what it comes to on the old base."""
        changes = patch_changes(patch)
        after = self._after(old)
        if not changes or after is None or names_a_path_twice(changes):
            outcome = self._strictly(patch, changes)
            joint = joint_changes(changes)
            if not outcome.status.fails or after is None or names_a_path_twice(joint):
                return self._whole(patch, changes, outcome)
            changes = joint
            old = replace(old, files=self._exact(joint).files)
        options, context = self.options, self._context(patch, after)
        carry_one: Callable[[CarryContext, FileChange, FileResult], CarriedFile] = carry_change
        if options.carry_one is not None:
            carry_one = partial(options.carry_one, patch)
            files = list(map(partial(carry_one, context), changes, old.files))
        else:
            exact = self._exact(changes)
            if any(clash.reason is Reason.UNSAFE for e in exact.files for clash in e.clashes):
                outcome = PatchResult(patch.name, Status.CONFLICTED, exact.files)
                return self._whole(patch, changes, outcome)
            files = [
                carry_file(context, change, doubted_as(outcome, before))
                for change, outcome, before in zip(changes, exact.files, old.files, strict=True)
            ]
            files = with_upstreams_word(context, patch.file, changes, files)
            self._note(patch, files)
        outcomes = tuple(file.outcome for file in files)
        there: list[CarriedFile | Names] = [*files]
        if self.resolved is not None:
            there, outcomes = self.resolved.cascade(context, changes, files, old, carry_one)
        outcome = self._land(patch, files, outcomes)
        if options.carry_one is None:
            outcome = replace(outcome, fate=fate_of(context, patch.file, changes, files, outcome))
        if self.resolved is None and outcome.status is Status.CONFLICTED:
            self.resolved = ResolvedStack(context.here)
        if self.resolved is not None:
            self.resolved.take(outcome, changes, files, there, context)
        return outcome

    def _context(self, patch: SeriesPatch, after: Tree) -> CarryContext:
        """What a patch is carried between; `after` is the old stack with it."""
        options = self.options
        return CarryContext(
            self.old_tree,
            after,
            self.builder.tree,
            self.old_blobs,
            self.builder.blobs,
            options.past or NoPast(),
            options.careful,
            self._labels(patch),
            options.remembered,
            options.patch_first,
            patch.name in options.take_proposals,
            partial(options.merger, patch) if options.merger is not None else None,
        )

    def _whole(
        self, patch: SeriesPatch, changes: Sequence[FileChange], outcome: PatchResult
    ) -> PatchResult:
        """The outcome of a patch that is taken as a whole, which may wait for earlier ones."""
        if self.resolved is None and outcome.status is Status.CONFLICTED:
            self.resolved = ResolvedStack(self.builder.tree)
        if self.resolved is None:
            return outcome
        names = self.resolved.take_whole(patch.name, changes, self.builder.blobs, outcome.status)
        if not names:
            return outcome
        files = tuple(waiting(each, names) if each.clashes else each for each in outcome.files)
        return replace(outcome, status=Status.WAITING, files=files)

    def _exact(self, changes: Sequence[FileChange]) -> Applied:
        return apply_changes(self.builder.tree, self.builder.blobs, changes)

    def _after(self, old: PatchResult) -> Tree | None:
        if old.tree is None:
            return None
        return Tree(self.objects, old.tree)

    def _labels(self, patch: SeriesPatch) -> Labels:
        subject = patch.file.subject or patch.name
        return Labels(
            f"upstream {short_id(self.builder.base.commit)}",
            f"base {short_id(self.old_base)}",
            f"{patch.name}: {subject}" if subject != patch.name else patch.name,
        )

    def _strictly(self, patch: SeriesPatch, changes: Sequence[FileChange]) -> PatchResult:
        """For a patch that says nothing about the old base: it applies exactly, or not at all."""
        exact = self._exact(changes)
        elsewhere = exact.tree is None or _shifted(exact.files)
        if changes and elsewhere and is_contained(self.builder.tree, self.builder.blobs, changes):
            return PatchResult(patch.name, Status.ABSORBED, exact.files)
        if self.options.careful and any(each.review for each in exact.files):
            files = tuple(replace(e, status=Status.CONFLICTED, review=False) for e in exact.files)
            return PatchResult(patch.name, Status.CONFLICTED, files)
        # what becomes of another kind is deleted and added: a patch is applied whatever mode it had
        trees = self.old_tree, self.builder.tree
        for change in changes:
            entries = [tree.entry(change.path) for tree in trees]
            modes = {entry.mode for entry in entries if entry is not None}
            if change.kind is Kind.DELETE and len(modes) > 1:
                both = (f"the patch deletes {change.path}, upstream changed its mode",)
                files = tuple(
                    replace(file, status=Status.CONFLICTED, reasons=both) for file in exact.files
                )
                return PatchResult(patch.name, Status.CONFLICTED, files)
        if exact.tree is not None:
            return self.builder.push(patch)
        why = "it does not apply on the old base either, so that nothing can be merged"
        files = tuple(
            replace(file, reasons=(why,)) if file.clashes else file for file in exact.files
        )
        return PatchResult(patch.name, Status.CONFLICTED, files)

    def _note(self, patch: SeriesPatch, files: Sequence[CarriedFile]) -> None:
        if not all(file.carried for file in files):
            self.conflicts[patch.name] = tuple(files)
        keys = {f.path: f.key for f in files if f.outcome.merged_by and not f.outcome.remembered}
        if keys:
            self.external[patch.name] = keys

    def _land(
        self,
        patch: SeriesPatch,
        files: Sequence[CarriedFile],
        outcomes: tuple[FileResult, ...],
    ) -> PatchResult:
        status = joined(each.status for each in outcomes)
        if status.fails:
            return PatchResult(patch.name, status, outcomes)
        try:
            tree = edited(self.builder.tree, files)
        except ObstructedError as error:
            failed = tuple(
                replace(each, status=Status.CONFLICTED, reasons=(str(error),))
                if each.path == error.path
                else each
                for each in outcomes
            )
            return PatchResult(patch.name, Status.CONFLICTED, failed)
        made = [file.blob for file in files if file.blob is not None]
        if tree.write(made) == self.builder.tree_id:
            return PatchResult(patch.name, Status.ABSORBED, outcomes)
        if any(each.status is Status.ABSORBED for each in outcomes):
            status = Status.MERGED  # what is left of it is another patch
        return self.builder.place(patch, tree, made, status, outcomes)


def joint_changes(changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """The changes with those of one file's lines joined, which the mails of a file may have.

    The hunks of a joint change fit nowhere if one changes lines of another: all that can be asked
    of it is what its file was and became.
    """
    joint: dict[str | int, FileChange] = {}
    for number, change in enumerate(changes):
        known = joint.get(change.path)
        if known is not None and change.hunks and change.kind is Kind.MODIFY:
            joint[change.path] = replace(known, hunks=known.hunks + change.hunks)
        else:
            joint[change.path if known is None else number] = change
    return tuple(joint.values())


def names_a_path_twice(changes: Sequence[FileChange]) -> bool:
    """Whether two changes of a patch meet at one path."""
    paths = [path for c in changes for path in {c.old_path, c.new_path} if path is not None]
    return len(paths) != len(set(paths))


def as_on_old_base(outcome: PatchResult, before: PatchResult) -> PatchResult:
    """Unchanged means: just as it applied on the old base, offsets and all."""
    joint = len(outcome.files) != len(before.files)
    if outcome.status is not Status.SHIFTED or not before.status.applies or joint:
        return outcome
    files: tuple[FileResult, ...] = tuple(
        replace(here, status=Status.UNCHANGED)
        if here.offsets == there.offsets and not here.review
        else here
        for here, there in zip(outcome.files, before.files, strict=True)
    )
    status = Status.SHIFTED if any(f.status is Status.SHIFTED for f in files) else Status.UNCHANGED
    return replace(outcome, status=status, files=files)


def joined(files: Iterable[Status]) -> Status:
    """What a patch comes to by its files, before one asks whether it is absorbed as a whole."""
    return min(files, key=_WEIGHT.index)


def _shifted(files: Sequence[FileResult]) -> bool:
    return any(each.status is Status.SHIFTED for each in files)
