"""Verbs on a series (edit, drop, move, fold, split, vendor): the new stack that each leads to.

A verb gives places in a new stack. Where the patches do not apply there as they are, they are
carried there (`carry/`). All but `drop` leave the last tree as it is, so a checkout's files stay as
they are. Whether the patch files give these trees is proved as for every refresh (`patch_plan`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem, UsageError
from patchkit.gitcmd.object_reader import write_objects
from patchkit.manifest.values import LocalSeries, Manifest, PinnedPatch
from patchkit.model.mail import parse_patch, subject_from, with_trailer
from patchkit.model.names import pick_patch, readable_url
from patchkit.model.objects import (
    Base,
    TreeId,
)
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.patch import FileChange, Identity
from patchkit.model.text import counted
from patchkit.refresh.draft import RefreshStart, Request, draft_refresh, free_name
from patchkit.refresh.patch_plan import (
    Draft,
    SeriesFolder,
    StackSlot,
    arrange,
    commit_changes,
    parse_written,
    plan_patches,
    revisions,
)
from patchkit.stack.build import SeriesPatch, Stack, build_stack, patch_changes, read_stack
from patchkit.stack.importing import ImportSource
from patchkit.stack.patch_files import (
    CommitChange,
    OriginalFile,
    PatchToWrite,
    canonical_diffs,
    export_patches,
)
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.store import home_of


class SeriesEdit(Struct, frozen=True):
    """A verb on the series: what it is called, and what plans it.

    That writes trial objects to the start's repository, no more. The start has the stack as it is,
    without edits of a checkout; UsageError or BadInputError where the wish cannot be met,
    CannotEditSeriesError where the patches do not allow it.
    """

    verb: str
    draft: Callable[[RefreshStart, SeriesFolder], Draft]
    source: str = ""  # the folder in which files were edited, "" for none


class CannotEditSeriesError(PatchkitError):
    """The patches do not allow it: one of them needs another one, or where it stands."""

    exit_code = ExitCode.FINDING


def find_patch(patches: Sequence[LoadedPatch], given: str) -> LoadedPatch:
    """The patch that a user means: see `pick_patch`."""
    name = pick_patch(given, [each.name for each in patches])
    return next(each for each in patches if each.name == name)


def _require_stack(start: RefreshStart) -> None:
    if not start.stack.clean:
        hint = "drop or move the patch in the way"
        raise CannotEditSeriesError(Problem("the series does not apply at its pin", hint=hint))


def edit_patch(
    start: RefreshStart, folder: SeriesFolder, *, given: str, message: str | None, wish: str
) -> Draft:
    """Give a patch other words, or its file another name.

    `message` is subject, empty line, body; what else stands above the diff stays. A `wish` is with
    or without .patch; its line in the series keeps comment and options.
    """
    patch = _own(start, given, listed=bool(wish), plain=bool(wish))
    edited, said = patch, []
    if message is not None:
        edited = _reworded(start, patch, message.strip())
        said.append("has another message")
    if wish:
        name = free_name(start, wish, old=patch.name)
        edited = folder.at(edited, folder.name_of(name, start.patches, patch, instead=True))
        said.append(f"is called {edited.name}")
    listed = [edited if each is patch else each for each in start.patches]
    detail = f"{patch.name} {' and '.join(said)}"
    renamed = {patch.name: edited.name} if wish else {}
    return _files_edited(start, folder, listed, detail, renamed=renamed)


def _reworded(start: RefreshStart, patch: LoadedPatch, message: str) -> LoadedPatch:
    if not message:
        raise UsageError(f"{patch.name}: the message is empty", hint="nothing was changed")
    # without a commit only its words can be compared
    unknown = CommitChange("", "", patch.file.message, Identity("", ""))
    old = commit_changes(start.stack).get(patch.name, unknown)
    new = replace(old, message=message)
    (data,) = export_patches(start.repository, [PatchToWrite(new, OriginalFile(patch.file, old))])
    return replace(patch, data=data, file=parse_written(data, patch.where, patch.strip, new))


def drop_patches(start: RefreshStart, folder: SeriesFolder, *, given: Sequence[str]) -> Draft:
    """Take patches off the series."""
    gone = [_own(start, each, listed=True).name for each in given]
    left = [each for each in start.patches if each.name not in gone]
    detail = f"{', '.join(gone)} {_is(gone)} off the series"
    if not start.stack.clean:
        return _files_edited(start, folder, left, detail, dropped=tuple(gone))
    merging = _Merging(start)
    stack = merging.exact(start.base, [each.series_patch for each in left])
    if stack is not None:
        slots = _slots(left, stack)
    else:
        slots = _slots(start.patches, start.stack)
        for name in reversed([each.name for each in slots if each.name in gone]):
            slots = merging.without(slots, name)
    draft = _planned(start, folder, slots, detail, gone=gone, notes=merging.notes)
    return replace(draft, dropped=tuple(gone))


def _planned(
    start: RefreshStart,
    folder: SeriesFolder,
    slots: Sequence[StackSlot],
    detail: str,
    *,
    gone: Collection[str] = (),
    notes: Iterable[Problem] = (),
) -> Draft:
    """The draft that has these slots, without the patches that are `gone` from the series."""
    left = [patch for patch in start.patches if patch.name not in gone]
    draft = plan_patches(slots, left, start.setting(folder, commit_changes(start.stack)))
    return replace(draft, detail=detail, notes=tuple(notes))


def move_patch(
    start: RefreshStart, folder: SeriesFolder, *, given: str, to: str, numbered: bool
) -> Draft:
    """Put a patch in the place of another one; `numbered`: a folder's files get other numbers."""
    folder = replace(folder, numbered_anew=numbered)
    patch = _own(start, given, listed=True)
    others = [each for each in start.patches if each.name != patch.name]
    place = start.patches.index(find_patch(start.patches, to))
    order = [*others[:place], patch, *others[place:]]
    detail = f"{patch.name} is number {place + 1} of {len(order)}"
    if not start.stack.clean:
        return _files_edited(start, folder, order, detail)
    slots, notes = _reordered(start, order)
    return _planned(start, folder, slots, detail, notes=notes)


def fold_into(
    start: RefreshStart, folder: SeriesFolder, *, given: Sequence[str], to: str, message: str
) -> Draft:
    """Make patches part of another one, which keeps its name and place, and for "" its message."""
    _require_stack(start)
    into = _own(start, to, plain=True)
    folded = [_own(start, each, listed=True, plain=True) for each in given]
    gone = {each.name for each in folded}
    if into.name in gone:
        raise UsageError(f"{into.name} cannot be folded into itself")
    members = [each for each in start.patches if each.name in gone or each.name == into.name]
    # what came before it comes directly before it, so that it keeps its own base
    rest = [each for each in start.patches if each not in members]
    at = start.patches.index(into) - members.index(into)
    slots, notes = _reordered(start, [*rest[:at], *members, *rest[at:]])
    _require_change(start, into)
    inside = [slot for slot in slots if slot.name == into.name or slot.name in gone]
    own = next(slot for slot in inside if slot.name == into.name)
    words = message.strip("\n") or own.change.message
    whole = replace(
        own.change, before=inside[0].change.before, after=inside[-1].change.after, message=words
    )
    merged = [
        replace(slot, change=whole) if slot.name == into.name else slot
        for slot in slots
        if slot.name not in gone
    ]
    names = ", ".join(each.name for each in folded)
    detail = f"{names} {_is(folded)} part of {into.name}"
    return _planned(start, folder, merged, detail, gone=gone, notes=notes)


class SplitPart(Struct, frozen=True):
    """What goes into a new patch."""

    name: str  # of the patch, with or without .patch
    message: str  # its own; "" makes one from its name
    files: tuple[str, ...]  # paths, or PATH:N for a hunk, counted from 1


def split_patch(
    start: RefreshStart, folder: SeriesFolder, *, given: str, wanted: SplitPart, numbered: bool
) -> Draft:
    """Put some of a patch's changes into a new patch behind it; `numbered`: see `move_patch`."""
    _require_stack(start)
    folder = replace(folder, numbered_anew=numbered)
    patch = _own(start, given, listed=True, plain=True)
    name = folder.name_of(free_name(start, wanted.name), start.patches, patch)
    change = _require_change(start, patch)
    kept = _kept_changes(patch, wanted.files)
    part = replace(patch.series_patch, file=replace(patch.file, changes=kept))
    below = replace(start.base, tree=TreeId(change.before))
    stack = _Merging(start).exact(below, [part])
    if stack is None:
        what = f"{patch.name} does not apply without them"
        raise CannotEditSeriesError(Problem(what, patch.where, "choose other hunks"))
    middle = stack.tree
    if middle in (change.before, change.after):
        which = "all" if middle == change.before else "none"
        raise UsageError(f"{which} of {patch.name} would be in {name}", hint="choose a part of it")
    message = wanted.message.strip("\n") or subject_from(name)
    slots = _slots(start.patches, start.stack)
    at = _place_of(patch.name, slots)
    rest = CommitChange(middle, change.after, message, change.author)
    slots[at : at + 1] = [
        replace(slots[at], change=replace(change, after=middle)),
        StackSlot(name, rest, None),
    ]
    return _planned(start, folder, slots, f"{name} has a part of {patch.name}")


def _kept_changes(patch: LoadedPatch, files: Sequence[str]) -> tuple[FileChange, ...]:
    """The changes that stay in the patch; UsageError for a file or hunk that it does not have."""
    paths = [each.path for each in patch_changes(patch.series_patch)]
    changes = dict(zip(paths, patch.file.changes, strict=True))
    going: dict[str, set[int]] = {}  # path -> numbers of hunks
    for given in files:
        path, _, number = given.rpartition(":")
        whole = given in changes or not number.isdigit()
        path = given if whole else path
        if path not in changes:
            hint = f"it changes {', '.join(changes)}"
            raise UsageError(f"{patch.name} does not change {path}", hint=hint)
        have = range(1, len(changes[path].hunks) + 1)
        if not whole and int(number) not in have:
            what = f"{patch.name} has no hunk {number} in {path}"
            raise UsageError(what, hint=f"it has {len(have)} there")
        # a change of no lines has no hunk, and goes as a whole
        numbers = (have or {0}) if whole else {int(number)}
        going.setdefault(path, set()).update(numbers)
    kept = []
    for path, change in zip(paths, patch.file.changes, strict=True):
        gone = going.get(path, set())
        hunks = tuple(each for at, each in enumerate(change.hunks, 1) if at not in gone)
        if hunks or not gone:
            kept.append(replace(change, hunks=hunks))
    return tuple(kept)


def vendor_patches(
    start: RefreshStart, folder: SeriesFolder, *, manifest: Manifest, given: Sequence[str]
) -> Draft:
    """Copy patches by reference, or all of them, into the series, to be changed there.

    A patch by reference is another repository's and is never rewritten, so that a new pin which it
    does not fit stops it. Copied it is like any other; where it came from stays in its message.
    """
    component = folder.component
    referred = [patch for patch in start.patches if isinstance(patch.origin, PinnedPatch)]
    chosen = [find_patch(start.patches, name) for name in given] or referred
    if strangers := [patch.name for patch in chosen if patch not in referred]:
        hint = f"by reference: {', '.join(patch.name for patch in referred) or 'none is'}"
        what = f"{', '.join(strangers)}: not by reference in {component.name}"
        raise UsageError(Problem(what, hint=hint))
    there = [
        Problem(
            "is there already", folder.entry.beside(patch.name), f"name it at {patch.origin.where}"
        )
        for patch in chosen
        if patch.name in start.taken
    ]
    if there:
        raise BadInputError(*there)
    copies = {patch.name: _copied(folder, patch, manifest) for patch in chosen}
    listed = [copies.get(patch.name, patch) for patch in start.patches]
    gone = [patch.origin for patch in chosen]
    entries = [entry for entry in component.patches if entry not in gone]
    if gone and component.series is None:
        entries.insert(component.patches.index(gone[0]), folder.entry)
    folder = replace(folder, component=replace(component, patches=tuple(entries)))
    detail = f"{', '.join(copies)} {_is(copies)} in the series" if copies else "refers to no patch"
    return _files_edited(start, folder, listed, detail)


def _copied(folder: SeriesFolder, patch: LoadedPatch, manifest: Manifest) -> LoadedPatch:
    """The patch as a file of the series, whose message says where it came from."""
    entry = patch.origin
    assert isinstance(entry, PinnedPatch)
    source, commit = home_of(manifest, entry)
    origin = (
        f"Origin: {readable_url(source.url)} {commit}\n"
        f"Origin-File: {entry.path}\nOrigin-SHA256: {entry.sha256}"
    )
    reason = f"{subject_from(patch.name)}\n\nTaken over as it was published."
    data = with_trailer(patch.file, origin, reason)
    copy = replace(folder.at(patch, patch.name), data=data, origin=folder.entry)
    return replace(copy, file=parse_patch(data, name=copy.where, strip=patch.strip))


# A branch in the place of the series. Which of its commits is which patch git's range-diff says.

_PAIR = re.compile(rb"^ *(\d+): +[0-9a-f]+ +[=!] +(\d+):", re.MULTILINE)


def follow_branch(
    start: RefreshStart, folder: SeriesFolder, *, name: str, branch: ImportSource, leave_out: bool
) -> Draft:
    """Put the patches of the branch `name`, which are made for the pin, in the series' place.

    Those that the branch does not have stay behind it; what does not fit there is left out, or
    refused.
    """
    draft = _with_branch(start, folder, branch, ())
    if len(draft.stack.outcomes) < len(branch.patches):
        raise CannotEditSeriesError(f"not every commit of {name} is one that can be a patch")
    gone = draft.dropped
    if gone:
        draft = _with_branch(start, folder, branch, gone)
    if draft.dropped and not leave_out:
        what = f"{name} is in the way of {', '.join(draft.dropped)}"
        hint = "patchkit refresh --from-branch --skip-conflicts  leaves them out"
        raise CannotEditSeriesError(Problem(what, hint=hint))
    stay = (
        Problem(f"{each} is not on {name}, and stays", hint=f"patchkit drop {each}")
        for each in gone
        if each not in draft.dropped
    )
    detail = f"{name} has {counted(len(branch.patches), 'patch', 'patches')}"
    return replace(draft, detail=detail, notes=(*stay, *branch.notes))


def _with_branch(
    start: RefreshStart, folder: SeriesFolder, branch: ImportSource, behind: Collection[str]
) -> Draft:
    """A refresh where the checkout has the commits of a branch, and some patches behind them."""
    series = [SeriesPatch(e.name, parse_patch(e.data, name=e.where)) for e in branch.patches]
    series += [each.series_patch for each in start.patches if each.name in behind]
    stack = build_stack(start.reader, start.base, series)
    write_objects(start.repository, stack.objects)
    base, tips = start.base.commit, (start.stack.commit, stack.commit)
    told = b""
    if base not in tips:  # git takes no empty range
        spans = (f"{base}..{tip}" for tip in tips)
        told = start.repository.git("range-diff", "--no-color", "-s", *spans).out
    old = [outcome.name for outcome in start.stack.outcomes if outcome.commit]
    names = {int(new): old[int(number) - 1] for number, new in _PAIR.findall(told)}
    commits = read_stack(start.repository, base, stack.commit)
    named = (replace(each, patch=names.get(at)) for at, each in enumerate(commits, 1))
    start = replace(start, commits=tuple(named), worktree=stack.tree)
    return draft_refresh(start, folder, Request())


# What only changes files and their list: words and names, and all of a series that does not apply.


def _files_edited(
    start: RefreshStart,
    folder: SeriesFolder,
    listed: Sequence[LoadedPatch],
    detail: str,
    *,
    dropped: tuple[str, ...] = (),
    renamed: Mapping[str, str] | None = None,
) -> Draft:
    """The draft with these patches, none of which is merged.

    CannotEditSeriesError where a patch that applies, or a new one, would not apply then.
    """
    series = arrange(folder.component, listed, [each.name for each in listed])
    numbered = folder.renamed(series, start.patches)
    listed = [folder.at(e, numbered[e.name]) if e.name in numbered else e for e in listed]
    series = tuple(numbered.get(name, name) for name in series)
    renamed = {**(renamed or {}), **numbered}
    if folder.as_named(listed) != tuple(listed):
        what = "the names of the patches give another order"
        raise UsageError(Problem(what, folder.entry.path, "choose a name that sorts there"))
    stack = build_stack(start.reader, start.base, [each.series_patch for each in listed])
    before, after = (
        {each.name for each in made.outcomes if not each.status.applies}
        for made in (start.stack, stack)
    )
    if lost := sorted(after - {renamed.get(name, name) for name in before}):
        what = f"{', '.join(lost)} would not apply any more"
        raise CannotEditSeriesError(Problem(what, hint="take them together"))
    revised = revisions(start.patches, listed)
    return Draft(
        tuple(listed), revised, stack, series, dropped=dropped, renamed=renamed, detail=detail
    )


# Patches in another order, or without one of them. Where they apply there as they are, that is all.
# Else they are carried, one past the other.


_BY_HAND = "git rebase -i in the checkout, then refresh"


def _reordered(
    start: RefreshStart, order: Sequence[LoadedPatch]
) -> tuple[list[StackSlot], tuple[Problem, ...]]:
    """The places of the same patches in another order, which end in the same tree; and notes.

    An insertion sort that swaps neighbours, so that each pair that changes its order is swapped
    once. Invariant: after every swap the slots are a stack from the base to the very last tree.
    """
    slots, merging = _slots(start.patches, start.stack), _Merging(start)
    stack = merging.exact(start.base, [each.series_patch for each in order])
    if stack is not None and stack.tree == start.stack.tree:
        return _slots(order, stack), ()
    have = {slot.name for slot in slots}
    wanted = [each.name for each in order if each.name in have]
    for place, name in enumerate(wanted):
        at = _place_of(name, slots)
        for low in range(at - 1, place - 1, -1):
            slots[low : low + 2] = merging.swapped(slots[low], slots[low + 1])
    return slots, tuple(merging.notes)


class _Merging:
    """Patches put on other trees than they were made for, by the engine that carries a bump.

    `notes` say which of them a person should look at.
    """

    def __init__(self, start: RefreshStart) -> None:
        self._start = start
        self._as_is = commit_changes(start.stack)
        self.notes: list[Problem] = []

    def exact(self, base: Base, patches: Sequence[SeriesPatch]) -> Stack | None:
        """The stack of the patches as they are; None where one does not apply."""
        stack = build_stack(self._start.reader, base, patches)
        if not stack.clean:
            return None
        write_objects(self._start.repository, stack.objects)
        return stack

    def swapped(self, first: StackSlot, second: StackSlot) -> list[StackSlot]:
        """Two neighbours in the other order: the second is carried to where the first one was, and
        what is missing then is the first one's.
        """
        below, above = first.change.before, second.change.after
        series = [self._series(second), self._series(first)]
        stack = self.exact(self._base(below), series)
        middle = stack.outcomes[0].tree if stack is not None and stack.tree == above else None
        if middle is None:
            _require_ours(first, second)
            middle = self._carried(first.change.after, below, [second], first.name)[0]
        if middle in (below, above):
            empty, other = (second, first) if middle == below else (first, second)
            what = f"{empty.name} would change nothing on the other side of {other.name}"
            raise CannotEditSeriesError(Problem(what, hint="fold them, or drop one of them"))
        return [_between(second, below, middle), _between(first, middle, above)]

    def without(self, slots: Sequence[StackSlot], name: str) -> list[StackSlot]:
        """The places without one patch: those behind it are carried to where it was."""
        at = _place_of(name, slots)
        gone, later = slots[at], slots[at + 1 :]
        trees = self._carried(gone.change.after, gone.change.before, later, name)
        befores = (gone.change.before, *trees)
        return [*slots[:at], *map(_between, later, befores, trees)]

    def _carried(
        self, old: TreeId | str, new: TreeId | str, slots: Sequence[StackSlot], other: str
    ) -> list[TreeId]:
        """The trees of patches on `new`, that are made for `old`, each on the one before.

        CannotEditSeriesError, with the hunks that do not fit there without `other`.
        """
        from patchkit.carry import carry_stack  # noqa: PLC0415  most verbs carry nothing

        series = [self._series(slot) for slot in slots]
        report = carry_stack(self._start.reader, self._base(old), self._base(new), series)
        write_objects(self._start.repository, report.stack.objects)
        outcomes = report.stack.outcomes
        rows = zip(slots, series, outcomes, strict=True)
        failed = [problem for row in rows for problem in _unfit(*row, other)]
        if failed:
            hint = f"take them together, or resolve it: {_BY_HAND}"
            raise CannotEditSeriesError(*failed[:-1], replace(failed[-1], hint=hint))
        for slot, outcome in zip(slots, outcomes, strict=True):
            if outcome.status is Status.MERGED:
                _require_ours(slot)
            if any(each.certainty is not None for each in outcome.files):
                what = f"{slot.name} was merged without {other}"
                self.notes.append(Problem(what, hint="look at it; `patchkit undo` takes it back"))
        return [TreeId(str(each.tree)) for each in outcomes]

    def _series(self, slot: StackSlot) -> SeriesPatch:
        """The patch as it is at its place now."""
        change, loaded = slot.change, slot.loaded
        assert loaded is not None
        known = self._as_is[slot.name]
        if (change.before, change.after) == (known.before, known.after):
            return loaded.series_patch
        (diff,) = canonical_diffs(self._start.repository, [(change.before, change.after)])
        return SeriesPatch(slot.name, parse_patch(diff, name=slot.name))

    def _base(self, tree: TreeId | str) -> Base:
        return replace(self._start.base, tree=TreeId(tree))


def _between(slot: StackSlot, before: TreeId | str, after: TreeId | str) -> StackSlot:
    return replace(slot, change=replace(slot.change, before=before, after=after))


def _unfit(
    slot: StackSlot, patch: SeriesPatch, outcome: PatchResult, other: str
) -> Iterator[Problem]:
    """What is in the way of a patch where `other` is not below it: its hunks that do not fit."""
    loaded = slot.loaded
    assert loaded is not None
    if outcome.status is Status.ABSORBED:
        yield Problem(f"{outcome.name} would change nothing without {other}", loaded.where)
    if outcome.status is not Status.CONFLICTED:
        return
    for file in outcome.files:
        if file.status is Status.CONFLICTED:
            numbers = ", ".join(str(each.hunk) for each in file.clashes if each.hunk)
            which = f", hunk {numbers}" if numbers else ""
            first = next((each.line for each in file.clashes if patch.file is loaded.file), 0)
            place = f"{loaded.where}:{first}" if first else loaded.where
            yield Problem(f"{outcome.name} needs {other}: {file.path}{which}", place)


def _require_ours(*slots: StackSlot) -> None:
    """CannotEditSeriesError for a patch that would have to be rewritten, and must not be."""
    for slot in slots:
        patch = slot.loaded
        assert patch is not None
        if patch.path is None or patch.has_recipe:
            why = "is made from a recipe" if patch.has_recipe else "belongs to another repository"
            what = f"{patch.name} {why}, and would have to be another one there"
            raise CannotEditSeriesError(Problem(what, patch.where, _BY_HAND))


def _place_of(name: str, slots: Sequence[StackSlot]) -> int:
    return next(place for place, slot in enumerate(slots) if slot.name == name)


def _slots(patches: Sequence[LoadedPatch], stack: Stack) -> list[StackSlot]:
    changes = commit_changes(stack)
    return [
        StackSlot(each.name, changes[each.name], each) for each in patches if each.name in changes
    ]


def _own(
    start: RefreshStart, given: str, *, listed: bool = False, plain: bool = False
) -> LoadedPatch:
    """The patch that is meant; UsageError for one that is not the project's to change.

    `listed`: its line in the series changes. `plain`: it must not be made from a recipe.
    """
    patch = find_patch(start.patches, given)
    if patch.path is None:
        what = f"{patch.name} belongs to another repository and cannot be rewritten"
        raise UsageError(
            Problem(what, patch.where, f"make it yours: patchkit import --vendor {patch.name}")
        )
    if listed and not isinstance(patch.origin, LocalSeries):
        what = f"{patch.name} is listed in the manifest itself"
        raise UsageError(Problem(what, str(patch.origin.where), "change its entry there"))
    if plain and patch.has_recipe:
        what = f"{patch.name} is made from a recipe"
        raise UsageError(Problem(what, patch.where, "change the recipe, then `patchkit refresh`"))
    return patch


def _require_change(start: RefreshStart, patch: LoadedPatch) -> CommitChange:
    change = commit_changes(start.stack).get(patch.name)
    if change is None:
        raise UsageError(Problem(f"{patch.name} changes no file", patch.where, "edit it by hand"))
    return change


def _is(names: Collection[object]) -> str:
    return "is" if len(names) == 1 else "are"
