"""Verbs on a series (edit, rename, drop, move, fold, split): the new stack that each leads to.

A verb gives places in a new stack, from trees that the patches themselves make; nothing is merged
and nothing guessed. All but `drop` leave the last tree as it is, so a checkout's files stay as
they are. Whether the patch files give these trees is proved as for every refresh (`patch_plan`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import ExitCode, PatchkitError, Problem, UsageError
from patchkit.gitcmd.object_reader import write_objects
from patchkit.manifest.values import LocalSeries
from patchkit.model.names import is_patch_name, pick_patch, slug
from patchkit.model.patch import FileChange
from patchkit.refresh.draft import Draft, RefreshStart, finish_draft, full_name
from patchkit.refresh.patch_plan import SeriesFolder, StackSlot, commit_changes
from patchkit.stack.build import Stack, build_stack, patch_changes
from patchkit.stack.patch_files import CommitChange
from patchkit.stack.series import LoadedPatch


class EditMessage(Struct, frozen=True):
    """Give a patch other words."""

    verb: ClassVar[str] = "edit"

    patch: str  # its name, number in the series, or a prefix of its name that only it has
    message: str  # subject, empty line, body; what else stands above the diff stays


class RenamePatch(Struct, frozen=True):
    """Give a patch's file another name; its line in the series keeps comment and options."""

    verb: ClassVar[str] = "rename"

    patch: str  # as in EditMessage
    name: str  # the new one, with or without .patch


class DropPatches(Struct, frozen=True):
    """Take patches off the series."""

    verb: ClassVar[str] = "drop"

    patches: tuple[str, ...]  # as in EditMessage


class MovePatch(Struct, frozen=True):
    """Put a patch elsewhere in the series; exactly one of the three places is given."""

    verb: ClassVar[str] = "move"

    patch: str  # as in EditMessage
    before: str = ""  # directly before this patch
    after: str = ""  # directly behind this patch
    place: int = 0  # the place that it has then, from 1


class FoldPatches(Struct, frozen=True):
    """Make patches part of another one, which keeps its name and place."""

    verb: ClassVar[str] = "fold"

    patches: tuple[str, ...]  # those that go
    into: str  # the one that stays
    message: str = ""  # its new message; "" keeps the one that it has


class SplitPatch(Struct, frozen=True):
    """Put some of a patch's changes into a new patch directly behind it."""

    verb: ClassVar[str] = "split"

    patch: str  # as in EditMessage
    name: str  # the new patch, with or without .patch
    message: str  # the new patch's; "" makes one from its name
    files: tuple[str, ...] = ()  # paths whose changes go there
    hunks: tuple[tuple[str, int], ...] = ()  # (path, number of the hunk in its file, from 1)


SeriesEdit: TypeAlias = (
    EditMessage | RenamePatch | DropPatches | MovePatch | FoldPatches | SplitPatch
)


class CannotEditSeriesError(PatchkitError):
    """The patches do not allow it: one of them needs another one, or where it stands."""

    exit_code = ExitCode.FINDING


def find_patch(patches: Sequence[LoadedPatch], given: str) -> LoadedPatch:
    """The patch that a user means: see `pick_patch`."""
    name = pick_patch(given, [each.name for each in patches])
    return next(each for each in patches if each.name == name)


def draft_series_edit(start: RefreshStart, folder: SeriesFolder, edit: SeriesEdit) -> Draft:
    """Plan a verb on the series; writes trial objects to the start's repository, no more.

    `start` has the stack as it is, without edits of a checkout. UsageError or BadInputError where
    the wish cannot be met, CannotEditSeriesError where the patches do not allow it.
    """
    match edit:
        case EditMessage():
            return _reworded(start, folder, edit)
        case RenamePatch():
            return _renamed(start, folder, edit)
        case DropPatches():
            return _dropped(start, folder, edit)
        case MovePatch():
            return _moved(start, folder, edit)
        case FoldPatches():
            return _folded(start, folder, edit)
        case SplitPatch():
            return _split(start, folder, edit)


def _reworded(start: RefreshStart, folder: SeriesFolder, edit: EditMessage) -> Draft:
    patch = _own(start, edit.patch)
    message = edit.message.strip()
    if not message:
        raise UsageError(f"{patch.name}: the message is empty", hint="nothing was changed")
    changes = commit_changes(start.stack, start.patches)
    _require_change(patch, changes)
    slots = [
        replace(slot, change=replace(slot.change, message=message))
        if slot.name == patch.name
        else slot
        for slot in _slots(start.patches, changes)
    ]
    draft = finish_draft(start, folder, changes, slots)
    return replace(draft, detail=f"{patch.name} has another message")


def _renamed(start: RefreshStart, folder: SeriesFolder, edit: RenamePatch) -> Draft:
    patch = _own(start, edit.patch, listed=True, plain=True)
    name = _new_name(start, edit.name, old=patch.name)
    changes = commit_changes(start.stack, start.patches)
    _require_change(patch, changes)
    where = folder.path(name)
    there = replace(patch, name=name, path=folder.root / where, where=where)
    slots = [
        StackSlot(name, slot.change, there) if slot.name == patch.name else slot
        for slot in _slots(start.patches, changes)
    ]
    changes = {name if key == patch.name else key: each for key, each in changes.items()}
    renamed = {patch.name: name}
    draft = finish_draft(start, folder, changes, slots, renamed=renamed)
    return replace(draft, detail=f"{patch.name} is called {name}")


def _dropped(start: RefreshStart, folder: SeriesFolder, edit: DropPatches) -> Draft:
    gone = [_own(start, each, listed=True).name for each in edit.patches]
    left = [each for each in start.patches if each.name not in gone]
    stack = _rebuilt(start, left, "drop the later ones, too")
    changes = commit_changes(stack, left)
    before = commit_changes(start.stack, start.patches)
    draft = finish_draft(start, folder, before, _slots(left, changes), left=left)
    names = ", ".join(gone)
    return replace(draft, dropped=tuple(gone), detail=f"{names} {_is(gone)} off the series")


def _moved(start: RefreshStart, folder: SeriesFolder, edit: MovePatch) -> Draft:
    patch = _own(start, edit.patch, listed=True)
    others = [each for each in start.patches if each.name != patch.name]
    if edit.before or edit.after:
        beside = find_patch(start.patches, edit.before or edit.after)
        if beside.name == patch.name:
            raise UsageError(f"{patch.name} cannot stand beside itself")
        place = others.index(beside) + (1 if edit.after else 0)
    else:
        if not 1 <= edit.place <= len(start.patches):
            hint = f"the series has {len(start.patches)} patches"
            raise UsageError(f"there is no place {edit.place}", hint=hint)
        place = edit.place - 1
    order = [*others[:place], patch, *others[place:]]
    _, slots = _reordered(start, order)
    changes = commit_changes(start.stack, start.patches)
    draft = finish_draft(start, folder, changes, slots)
    return replace(draft, detail=f"{patch.name} is number {place + 1} of {len(order)}")


def _folded(start: RefreshStart, folder: SeriesFolder, edit: FoldPatches) -> Draft:
    into = _own(start, edit.into, plain=True)
    folded = [_own(start, each, listed=True, plain=True) for each in edit.patches]
    gone = {each.name for each in folded}
    if into.name in gone:
        raise UsageError(f"{into.name} cannot be folded into itself")
    members = [each for each in start.patches if each.name in gone or each.name == into.name]
    first = start.patches.index(members[0])
    order = list(start.patches)
    if order[first : first + len(members)] != members:  # they are brought together first
        rest = [each for each in order if each not in members]
        at = sum(each not in members for each in order[: order.index(into)])
        # what came before it comes directly before it, so that it keeps its own base
        order = [*rest[:at], *members, *rest[at:]]
    _, slots = _reordered(start, order)
    changes = commit_changes(start.stack, start.patches)
    _require_change(into, changes)
    inside = [slot for slot in slots if slot.name == into.name or slot.name in gone]
    own = next(slot for slot in inside if slot.name == into.name)
    words = edit.message.strip("\n") or own.change.message
    whole = replace(
        own.change, before=inside[0].change.before, after=inside[-1].change.after, message=words
    )
    merged = [
        replace(slot, change=whole) if slot.name == into.name else slot
        for slot in slots
        if slot.name not in gone
    ]
    left = [each for each in start.patches if each.name not in gone]
    draft = finish_draft(start, folder, changes, merged, left=left)
    names = ", ".join(each.name for each in folded)
    return replace(draft, detail=f"{names} {_is(folded)} part of {into.name}")


def _split(start: RefreshStart, folder: SeriesFolder, edit: SplitPatch) -> Draft:
    patch = _own(start, edit.patch, listed=True, plain=True)
    name = _new_name(start, edit.name)
    changes = commit_changes(start.stack, start.patches)
    _require_change(patch, changes)
    kept = _kept_changes(patch, edit)
    before = start.patches[: start.patches.index(patch)]
    part = replace(patch, file=replace(patch.file, changes=kept))
    stack = _rebuilt(start, [*before, part], "choose other hunks")
    middle, change = stack.tree, changes[patch.name]
    if middle in (change.before, change.after):
        which = "all" if middle == change.before else "none"
        raise UsageError(f"{which} of {patch.name} would be in {name}", hint="choose a part of it")
    message = edit.message.strip("\n")
    message = message or name.removesuffix(".patch").replace("-", " ").capitalize()
    slots: list[StackSlot] = []
    for slot in _slots(start.patches, changes):
        if slot.name != patch.name:
            slots.append(slot)
            continue
        slots.append(replace(slot, change=replace(change, after=middle)))
        rest = CommitChange(middle, change.after, message, change.author)
        slots.append(StackSlot(name, rest, None))
    draft = finish_draft(start, folder, changes, slots)
    return replace(draft, detail=f"{name} has a part of {patch.name}")


def _kept_changes(patch: LoadedPatch, edit: SplitPatch) -> tuple[FileChange, ...]:
    """The changes that stay in the patch; UsageError for a file or hunk that it does not have."""
    paths = [each.path for each in patch_changes(patch.series_patch)]
    wanted: dict[str, set[int]] = {}
    for path, number in edit.hunks:
        wanted.setdefault(path, set()).add(number)
    unknown = sorted({*edit.files, *wanted} - {*paths})
    if unknown:
        hint = f"it changes {', '.join(paths)}"
        raise UsageError(f"{patch.name} does not change {', '.join(unknown)}", hint=hint)
    kept = []
    for path, change in zip(paths, patch.file.changes, strict=True):
        if path in edit.files:
            continue
        numbers = wanted.get(path, set())
        if over := sorted(numbers - {*range(1, len(change.hunks) + 1)}):
            what = f"{patch.name} has no hunk {over[0]} in {path}"
            raise UsageError(what, hint=f"it has {len(change.hunks)} there")
        hunks = tuple(each for at, each in enumerate(change.hunks, 1) if at not in numbers)
        if hunks or not numbers:
            kept.append(replace(change, hunks=hunks))
    return tuple(kept)


def _reordered(start: RefreshStart, order: Sequence[LoadedPatch]) -> tuple[Stack, list[StackSlot]]:
    """The stack of the same patches in another order; it must end in the same tree."""
    if list(order) == list(start.patches):
        return start.stack, _slots(order, commit_changes(start.stack, order))
    stack = _rebuilt(start, order, "move them together, or resolve it: git rebase -i, then refresh")
    if stack.tree != start.stack.tree:
        what = "in that order the patches would give other files"
        raise CannotEditSeriesError(
            Problem(what, hint="git rebase -i in the checkout, then refresh")
        )
    return stack, _slots(order, commit_changes(stack, order))


def _rebuilt(start: RefreshStart, patches: Sequence[LoadedPatch], hint: str) -> Stack:
    """The stack of these patches; CannotEditSeriesError, with each that does not apply."""
    stack = build_stack(start.reader, start.base, [each.series_patch for each in patches])
    failed = [
        Problem(f"{each.name} does not apply then: {clash.path}:{clash.line}")
        for each in stack.outcomes
        for clash in each.clashes[:1]
    ]
    if failed or not stack.clean:
        failed = failed or [Problem("the patches do not apply then")]
        raise CannotEditSeriesError(*failed[:-1], replace(failed[-1], hint=hint))
    write_objects(start.repository, stack.objects)
    return stack


def _slots(patches: Sequence[LoadedPatch], changes: Mapping[str, CommitChange]) -> list[StackSlot]:
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
        raise UsageError(Problem(what, patch.where, f"make it yours: patchkit vendor {patch.name}"))
    if listed and not isinstance(patch.origin, LocalSeries):
        what = f"{patch.name} is listed in the manifest itself"
        raise UsageError(Problem(what, str(patch.origin.where), "change its entry there"))
    if plain and patch.has_recipe:
        what = f"{patch.name} is made from a recipe"
        raise UsageError(Problem(what, patch.where, "change the recipe, then patchkit refresh"))
    return patch


def _require_change(patch: LoadedPatch, changes: Mapping[str, CommitChange]) -> None:
    if patch.name not in changes:
        raise UsageError(Problem(f"{patch.name} changes no file", patch.where, "edit it by hand"))


def _new_name(start: RefreshStart, given: str, old: str = "") -> str:
    """The name for a file that is to be made; UsageError if there can be none, or is one."""
    name = full_name(given)
    if not is_patch_name(name):
        hint = f"ASCII letters, digits and . _ + -, for example {slug(given)}.patch"
        raise UsageError(f"{name!a} is no patch name", hint=hint)
    taken = {each.casefold() for each in (*start.taken, *(each.name for each in start.patches))}
    if name == old or name.casefold() in taken - {old.casefold()}:
        raise UsageError(f"{name} is there already", hint="choose another name")
    return name


def _is(names: Sequence[object]) -> str:
    return "is" if len(names) == 1 else "are"
