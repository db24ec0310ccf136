"""New patch files for a stack that changed, and the proof that they give its trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.manifest.values import Component, LocalSeries, OrderedFolder
from patchkit.model.diff_parse import split_lines
from patchkit.model.mail import mails_of, parse_patch, says
from patchkit.model.objects import Base, TreeId
from patchkit.model.ordered_folder import are_numbered, in_order, new_names
from patchkit.model.patch import Identity, PatchFile
from patchkit.model.revision import Revision, compare_patches
from patchkit.refresh.assign import RoutedEdit, StackTrees, fold, read_changes
from patchkit.stack.build import SeriesPatch, Stack, build_stack, parse_commit
from patchkit.stack.patch_files import (
    CommitChange,
    Layout,
    OriginalFile,
    PatchToWrite,
    export_patches,
    layout_of,
)
from patchkit.stack.series import LoadedPatch


class StackSlot(Struct, frozen=True):
    """A place in the new stack: what its commit does, and the patch that it comes from, if any."""

    name: str  # of the patch file
    change: CommitChange  # what the commit does
    loaded: LoadedPatch | None  # the patch as it is now; None for a new one


class Revised(Struct, frozen=True):
    """One patch before and after; `old` or `new` is None where there is none."""

    name: str  # of the patch file
    revision: Revision
    old: LoadedPatch | None
    new: LoadedPatch | None


class Draft(Struct, frozen=True):
    """A new series, not written yet: its patches in order, and the stack that they build."""

    patches: tuple[LoadedPatch, ...]
    revised: tuple[Revised, ...]
    stack: Stack
    series: tuple[str, ...]  # the names that the series file lists then
    edits: tuple[RoutedEdit, ...] = ()  # where each piece of what was edited goes
    emptied: tuple[str, ...] = ()  # patches that change nothing any more
    dropped: tuple[str, ...] = ()  # patches whose commits are gone
    renamed: Mapping[str, str] = {}  # old name -> new one, in the series
    detail: str = ""  # what was done, of a verb on the series
    notes: tuple[Problem, ...] = ()  # what of it a person should look at


class NotReproducedError(PatchkitError):
    """Patch files that would not give the tree they were made from."""

    exit_code = ExitCode.FINDING


class SeriesFolder(Struct, frozen=True):
    """Where new patches go: the series' folder, and how their paths are to be read."""

    root: Path  # of the project
    entry: LocalSeries  # of the manifest, which names the series
    component: Component
    strip: int = 1  # of its new patches
    others: Mapping[str, str] = {}  # patches that are another version's, too: name -> which
    numbered_anew: bool = False  # all files of an ordered folder get other numbers

    @property
    def folder(self) -> Path:
        """The series' folder."""
        return self.root / self.entry.folder

    def at(self, patch: LoadedPatch, name: str) -> LoadedPatch:
        """The patch as another file of the series."""
        where = self.entry.beside(name)
        return replace(patch, name=name, path=self.root / where, where=where)

    def renamed(self, series: Sequence[str], old: Sequence[LoadedPatch]) -> dict[str, str]:
        """What else patches are to be called for their names to give this order; {} for a list.

        `old` are the patches as they are now. BadInputError where no names can.
        """
        if not isinstance(self.entry, OrderedFolder):
            return {}
        known = [each.name for each in old if isinstance(each.origin, LocalSeries)]
        if not are_numbered(known):
            return {}
        names = new_names(series, known, self.entry.order, anew=self.numbered_anew)
        made = [each.name for each in old if each.name in names and each.has_recipe]
        if made:
            what = f"{made[0]} is made from a recipe, and would need another name there"
            raise BadInputError(
                Problem(what, self.entry.beside(made[0]), "rename the recipe with it")
            )
        return names

    def name_of(
        self, name: str, old: Sequence[LoadedPatch], behind: LoadedPatch, *, instead: bool = False
    ) -> str:
        """What a new patch is called that stands behind another one, or in its place."""
        series = [each.name for each in old if isinstance(each.origin, LocalSeries)]
        at = series.index(behind.name) if behind.name in series else len(series)
        series[at if instead else at + 1 : at + 1] = [name]
        return self.renamed(series, old).get(name, name)

    def shared(self, patch: LoadedPatch) -> Problem:
        """That a file which another version takes as well would change."""
        what = f"{patch.name} is a patch of {self.others[patch.name]} as well, and would change"
        hint = f"patchkit edit {patch.name} --name other.patch  makes one for this version"
        return Problem(what, patch.where, hint)

    def as_named(self, patches: Sequence[LoadedPatch]) -> tuple[LoadedPatch, ...]:
        """The patches as the series gives them: those of a folder by their names."""
        if not isinstance(self.entry, OrderedFolder):
            return tuple(patches)
        listed = {each.name: each for each in patches if isinstance(each.origin, LocalSeries)}
        names = iter(in_order(listed, self.entry.order, where=str(self.entry.where)))
        return tuple(listed[next(names)] if each.name in listed else each for each in patches)

    def patch(self, name: str, data: bytes, file: PatchFile, strip: int) -> LoadedPatch:
        """A patch as the file of the series that it is to be."""
        where = self.entry.beside(name)
        return LoadedPatch(
            name=name,
            data=data,
            file=file,
            origin=self.entry,
            path=self.root / where,
            where=where,
            strip=strip,
            subdirectory=self.component.subdirectory,
        )


class PlanContext(Struct, frozen=True):
    """What a plan is made against.

    `repository` has all objects of the old and the new stack, `source` reads them. `old` are the
    patches as they are now, `changes` what they do where they apply. `canonical`: as in
    PatchToWrite.
    """

    repository: Repository
    source: ObjectReader
    base: Base
    home: SeriesFolder  # where new patches go
    old: Sequence[LoadedPatch]
    changes: Mapping[str, CommitChange]
    canonical: bool = False


def commit_changes(stack: Stack) -> dict[str, CommitChange]:
    """What each patch's commit does in a stack, by the patch's name."""
    commits = {each.oid: each.payload for each in stack.objects if each.kind == "commit"}
    changes = {}
    before = stack.base.tree
    for outcome in stack.outcomes:
        if outcome.commit is not None and outcome.tree is not None:
            commit = parse_commit(outcome.commit, commits[outcome.commit])
            changes[outcome.name] = CommitChange(
                before, outcome.tree, commit.message, commit.author
            )
            before = outcome.tree
    return changes


def plan_patches(
    slots: Sequence[StackSlot], listed: Sequence[LoadedPatch], setting: PlanContext
) -> Draft:
    """The patch files of `slots`, verified: re-applied on the base each must give its tree.

    `listed` are the patches as they are now, less those that are taken off the series. Nothing is
    written. Raises NotReproducedError for a patch that would not give its tree.
    """
    full = [slot for slot in slots if slot.change.before != slot.change.after]
    emptied = tuple(slot.name for slot in slots if slot not in full)
    slots = _with_empty(listed, full)
    series = arrange(setting.home.component, listed, [slot.name for slot in slots])
    renamed = setting.home.renamed(series, setting.old)
    if renamed:
        slots, setting = _renamed(slots, setting, renamed)
        series = tuple(renamed.get(name, name) for name in series)
    written = {slot.name: _mails(slot, setting) for slot in slots if not _is_kept(slot)}
    data = iter(export_patches(setting.repository, list(chain(*written.values()))))
    exported = {name: b"".join(islice(data, len(mails))) for name, mails in written.items()}
    planned = [_patch(slot, exported.get(slot.name), setting.home) for slot in slots]
    patches = setting.home.as_named(planned)
    stack = build_stack(setting.source, setting.base, [each.series_patch for each in patches])
    if [*patches] != planned:
        _require_new(patches, planned, stack, full[-1].change.after, setting)
        series = arrange(setting.home.component, patches, [each.name for each in patches])
    else:
        for slot, patch, outcome in zip(slots, patches, stack.outcomes, strict=True):
            if slot.change.after not in (slot.change.before, outcome.tree):
                raise NotReproducedError(_wrong(patch, setting.home))
    changed = revisions(setting.old, patches)
    return Draft(patches, changed, stack, series, emptied=emptied, renamed=renamed)


def _renamed(
    slots: Sequence[StackSlot], setting: PlanContext, names: Mapping[str, str]
) -> tuple[list[StackSlot], PlanContext]:
    """The slots, and what their patches did, under other names."""
    home = setting.home
    moved = [
        replace(
            slot,
            name=names[slot.name],
            loaded=slot.loaded and home.at(slot.loaded, names[slot.name]),
        )
        if slot.name in names
        else slot
        for slot in slots
    ]
    changes = {names.get(name, name): change for name, change in setting.changes.items()}
    return moved, replace(setting, changes=changes)


def _require_new(
    patches: Sequence[LoadedPatch],
    planned: Sequence[LoadedPatch],
    stack: Stack,
    tree: str,
    setting: PlanContext,
) -> None:
    """Refuse names that give another order than was planned, unless no more is new than a patch
    whose place does not matter.
    """
    old = [each.name for each in setting.old]
    kept = [each.name for each in planned if each.name in old]
    same_order = kept == [each.name for each in patches if each.name in old]
    if same_order and stack.clean and stack.tree == tree:
        return
    wrong = next(one for one, other in zip(planned, patches, strict=True) if one != other)
    what = f"{wrong.name} would be applied at another place: its name says where"
    hint = "choose a name that sorts there, or list the patches in a series file"
    raise NotReproducedError(Problem(what, setting.home.entry.path, hint))


def _with_empty(patches: Sequence[LoadedPatch], full: Sequence[StackSlot]) -> list[StackSlot]:
    """The slots with the patches that never had a commit, behind the patch they stood behind."""
    slots = list(full)
    before: str | None = None
    for patch in patches:
        names = [slot.name for slot in slots]
        # a patch that a recipe fills for the first time has its slot already
        if not patch.file.changes and patch.name not in names:
            place = names.index(before) + 1 if before in names else 0
            slots.insert(
                place, StackSlot(patch.name, CommitChange("", "", "", Identity("", "")), patch)
            )
        before = patch.name
    return slots


def _is_kept(slot: StackSlot) -> bool:
    """Whether the file is not ours to write (another repository's), or has no commit."""
    return slot.loaded is not None and (
        slot.loaded.path is None or slot.change.before == slot.change.after
    )


def _wanted(slot: StackSlot, setting: PlanContext) -> PatchToWrite:
    layout = _layout(slot, setting)
    if slot.loaded is None:
        return PatchToWrite(slot.change, None, layout)
    file = slot.loaded.file
    change = setting.changes.get(slot.name)
    if change is None and file.message == slot.change.message:
        # it did not apply: only its words can be compared
        change = CommitChange("", "", slot.change.message, slot.change.author)
    original = OriginalFile(file, change) if change is not None else None
    return PatchToWrite(slot.change, original, layout, setting.canonical)


def _mails(slot: StackSlot, setting: PlanContext) -> list[PatchToWrite]:
    """What is to be written of a patch, or of each mail of a file of several; all text stays.

    What the file does beyond its mails goes to the mail whose lines it changes, as a refresh finds
    it, else to the last one that touches the file.
    """
    whole, loaded = _wanted(slot, setting), slot.loaded
    if loaded is None or whole.original is None or whole.same_trees:
        return [whole]
    mails = mails_of(loaded.file, loaded.where)
    if len(mails) == 1:
        return [whole]
    base = replace(setting.base, tree=TreeId(slot.change.before))
    series = [SeriesPatch("", mail, loaded.strip, loaded.subdirectory) for mail in mails]
    stack = build_stack(setting.source, base, series)
    write_objects(setting.repository, stack.objects)
    trees = [base.tree]
    for outcome in stack.outcomes:
        trees.append(outcome.tree or trees[-1])
    ground = StackTrees(setting.repository, setting.source, tuple(trees))
    placed = [
        (each.owner or max(each.history.numbers, default=1), each)
        for each in read_changes(ground, TreeId(slot.change.after))
    ]
    trees, objects = fold(setting.source, trees, placed, [slot.name] * len(mails))
    write_objects(setting.repository, objects)
    old = whole.original.change
    return [
        replace(
            whole,
            change=replace(old if at else slot.change, before=trees[at], after=trees[at + 1]),
            original=OriginalFile(mail, replace(old, before="")),
        )
        for at, mail in enumerate(mails)
    ]


def _layout(slot: StackSlot, setting: PlanContext) -> Layout:
    component = setting.home.component
    strip, folder = setting.home.strip, component.subdirectory
    if slot.loaded is not None:
        strip, folder = slot.loaded.strip, slot.loaded.subdirectory
        if slot.loaded.file.changes:
            return layout_of(slot.loaded.file, strip, folder)
        # a recipe's that is made for the first time: its folders are nobody's yet
    alike = next((each for each in setting.old if each.strip == strip and each.file.changes), None)
    if alike is not None:
        return layout_of(alike.file, strip, folder)
    return Layout(strip, folder, f"{component.name}/" * (strip - 1))


def _patch(slot: StackSlot, data: bytes | None, home: SeriesFolder) -> LoadedPatch:
    if slot.loaded is not None and (
        data is None or data == slot.loaded.data or slot.loaded.name in home.others
    ):
        return slot.loaded
    assert data is not None
    if slot.loaded is not None:
        file = parse_written(data, slot.loaded.where, slot.loaded.file.strip, slot.change)
        return replace(slot.loaded, data=data, file=file)
    strip = home.strip
    file = parse_written(data, home.entry.beside(slot.name), strip, slot.change)
    return home.patch(slot.name, data, file, strip)


def parse_written(data: bytes, where: str, strip: int, change: CommitChange) -> PatchFile:
    """A patch file that was just made; NotReproducedError if its message would not come back."""
    file = parse_patch(data, name=where, strip=strip)
    if file.header is not None and not says(split_lines(file.preamble), change.message):
        raise NotReproducedError(
            Problem(
                "its message would not come back from a patch file as it is",
                where,
                "reword the commit: git commit --amend",
            )
        )
    return file


def _wrong(patch: LoadedPatch, home: SeriesFolder) -> Problem:
    if patch.name in home.others:
        return home.shared(patch)
    if patch.path is None:
        return Problem(
            f"{patch.name} belongs to another repository and cannot be rewritten",
            patch.where,
            "put the edit into a patch of the series: --patch NAME or --rest NAME",
        )
    folder = f"{patch.subdirectory}/" if patch.subdirectory else ""
    hint = f"are there files outside of {folder} among the edits?" if folder else ""
    return Problem(f"{patch.name} would not give the tree it was made from", patch.where, hint)


def revisions(old: Sequence[LoadedPatch], new: Sequence[LoadedPatch]) -> tuple[Revised, ...]:
    """What became of each patch."""
    before = {each.name: each for each in old}
    after = {each.name for each in new}
    rows = [_compared(before.get(each.name), each) for each in new]
    rows += [
        Revised(each.name, Revision.REMOVED, each, None) for each in old if each.name not in after
    ]
    return tuple(rows)


def _compared(old: LoadedPatch | None, new: LoadedPatch) -> Revised:
    if old is None:
        return Revised(new.name, Revision.ADDED, None, new)
    return Revised(new.name, compare_patches(old.file, new.file), old, new)


# The order of the commits against the entries of the manifest. Patches that the manifest lists one
# by one, or takes from other repositories, have their places there; only those of the series file
# may come, go and change places.


def arrange(
    component: Component, patches: Sequence[LoadedPatch], order: Sequence[str]
) -> tuple[str, ...]:
    """The patches that the series file lists if they are to be in this order.

    `patches` are those of the manifest now. A component without a series gets it at its end.
    Raises BadInputError with everything that only an edit of the manifest could bring about.
    """
    fixed = [each for each in patches if not isinstance(each.origin, LocalSeries)]
    problems = [_gone(each) for each in fixed if each.name not in order]
    kept = [name for name in order if name in {each.name for each in fixed}]
    wanted = [each.name for each in fixed if each.name in order]
    if kept != wanted:
        problems.append(
            Problem(
                f"{', '.join(kept)} are in a different order than in the manifest",
                str(component.where),
                "change the order of the entries in the manifest, then `patchkit apply`",
            )
        )
    elif not problems:
        problems += _misplaced(component, order, fixed)
    if problems:
        raise BadInputError(*problems)
    return tuple(name for name in order if name not in kept)


def _gone(patch: LoadedPatch) -> Problem:
    return Problem(
        f"{patch.name} has no commit in the stack any more",
        patch.where,
        "take its entry off the manifest, or bring the commit back (git reflog)",
    )


def _misplaced(
    component: Component, order: Sequence[str], fixed: Sequence[LoadedPatch]
) -> Iterator[Problem]:
    """Patches of the series that stand on the wrong side of the manifest's other entries."""
    names = [each.name for each in fixed]
    entries, series = component.patches, component.series
    first = len(entries) if series is None else entries.index(series)
    lowest = order.index(names[first - 1]) if first else -1
    highest = order.index(names[first]) if first < len(names) else len(order)
    for place, name in enumerate(order):
        if name not in names and not lowest < place < highest:
            other = names[first - 1] if place < lowest else names[first]
            yield Problem(
                f"{name} is on the wrong side of {other}",
                str(component.where),
                "the series is one entry of the manifest: move the commit, or the entry",
            )
