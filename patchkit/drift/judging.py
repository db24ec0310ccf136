"""What a series comes to on one state of the files that it touches; remembered by their ids.

Only these files matter to the verdict, so it is a function of what stands at their paths. A patch
is cut into units, groups of changes whose paths have nothing to do with one another; each unit is
judged once for each state of its own paths, however many commits have that state. Later patches
meet what earlier ones leave. The verdicts are those of `apply_changes`: git apply's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct, field

from patchkit.drift.parts import related
from patchkit.drift.supplied import SuppliedSource
from patchkit.gitcmd.objects import MissingObjectError
from patchkit.model.apply import Blobs, apply_changes
from patchkit.model.fewfiles import few_files
from patchkit.model.objects import SUBMODULE_MODE, GitObject, TreeEntry
from patchkit.model.outcome import Clash, FileOutcome, Reason, Status
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.reverse import reverse_changes
from patchkit.model.tree import ObjectSource, ObstructedError, Tree
from patchkit.stack import SeriesPatch, patch_changes

#: What stands at each path; None for nothing.
State: TypeAlias = Mapping[str, TreeEntry | None]


class HunkFault(Struct, frozen=True):
    """A hunk without a place, or a file change that does not fit as a whole (hunk 0).

    `line` is where it stands in the patch file. `absorbed`: what it makes stands in the file.
    """

    path: str
    hunk: int
    line: int
    reason: Reason
    absorbed: bool = False


class UnitVerdict(Struct, frozen=True):
    """What became of a unit: `after` is what stands at its paths then, None if it does not fit."""

    status: Status
    after: State | None
    faults: tuple[HunkFault, ...] = ()
    contained: bool = False


class PatchVerdict(Struct, frozen=True):
    """What became of a patch, with the hunks that have no place.

    `carried` is what the carry engine makes of one that does not apply.
    """

    status: Status
    faults: tuple[HunkFault, ...] = ()
    carried: Status | None = None


#: One for each patch of a series.
Verdicts: TypeAlias = tuple[PatchVerdict, ...]

#: Adds what the carry engine makes of the patches that do not apply on a commit with that state.
Carry: TypeAlias = Callable[[str, State, Verdicts], Verdicts]


class Unit(Struct, frozen=True):
    """Changes of one patch that must be judged together, and all paths that they look at."""

    changes: tuple[FileChange, ...]
    paths: tuple[str, ...]

    @property
    def is_single(self) -> bool:
        """Whether it is one change, which can start from nothing that another one makes."""
        return len(self.changes) == 1


class _Layer(Struct):
    """A patch in its series and what it has made of its paths, as things stand."""

    units: tuple[Unit, ...]
    paths: frozenset[str]
    last: list[UnitVerdict | None]
    homes: Mapping[str, int]
    verdict: PatchVerdict = field(default_factory=lambda: PatchVerdict(Status.EMPTY))
    after: State = field(default_factory=dict)

    def units_of(self, dirty: Collection[str]) -> Sequence[int]:
        """The units to judge anew: those of the paths, and those that never were."""
        new = (number for number, known in enumerate(self.last) if known is None)
        return sorted({self.homes[path] for path in dirty if path in self.homes} | set(new))


class SeriesJudge(SuppliedSource):
    """A series on a state that moves on; `update` says what changed and what that means."""

    def __init__(self, source: ObjectSource, patches: Sequence[SeriesPatch]) -> None:
        super().__init__(source)
        self._memory: dict[tuple[int, tuple[TreeEntry | None, ...]], UnitVerdict] = {}
        self._layers = [_layer(patch_changes(patch)) for patch in patches]
        users = Counter(path for layer in self._layers for path in layer.paths)
        self._shared = {path for path, count in users.items() if count > 1}
        self._state: dict[str, TreeEntry | None] = {}
        #: Asked about every state in which a patch does not apply.
        self.carry: Carry | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that some patch looks at."""
        return tuple(sorted({path for layer in self._layers for path in layer.paths}))

    @property
    def count(self) -> int:
        """How many patches the series has."""
        return len(self._layers)

    def update(self, touches: State, commit: str = "") -> Verdicts:
        """Judge the state after a change of some paths; paths never named hold nothing.

        `commit` is the one that has it.
        """
        known = self._state
        dirty = {p for p, entry in touches.items() if p not in known or known[p] != entry}
        self._state.update(touches)
        for number, layer in enumerate(self._layers):
            if not layer.units or dirty.isdisjoint(layer.paths):
                continue
            before = layer.after
            self._judge(number, layer, dirty)
            dirty |= _differing(before, layer.after)
        verdicts = tuple(layer.verdict for layer in self._layers)
        if self.carry is None or all(v.status is not Status.CONFLICTED for v in verdicts):
            return verdicts
        return self.carry(commit, self._state, verdicts)

    def _judge(self, number: int, layer: _Layer, dirty: set[str]) -> None:
        for at in layer.units_of(dirty):
            layer.last[at] = self._unit(layer.units[at], number)
        units = [unit for unit in layer.last if unit is not None]
        status = _status(units)
        # a change whose lines repeat may find a second place at an offset: being there comes first
        if status is not Status.UNCHANGED and self._holds(number, layer, units):
            status = Status.ABSORBED
        layer.verdict = PatchVerdict(status, tuple(f for unit in units for f in unit.faults))
        layer.after = {}
        if status.applies:
            layer.after = {path: e for unit in units for path, e in (unit.after or {}).items()}

    def _holds(self, number: int, layer: _Layer, units: Sequence[UnitVerdict]) -> bool:
        """Whether all that the patch makes is there already."""
        fitting = [
            unit
            for unit, verdict in zip(layer.units, units, strict=True)
            if verdict.status is Status.UNCHANGED
        ]
        there = all(unit.contained for unit in units if unit.status is not Status.UNCHANGED)
        return there and all(self._contained(unit, number) for unit in fitting)

    def _unit(self, unit: Unit, number: int) -> UnitVerdict:
        met = tuple(self._met(path, number) for path in unit.paths)
        key = (id(unit), met)
        if key not in self._memory:
            self._memory[key] = self._tried(unit, dict(zip(unit.paths, met, strict=True)))
        return self._memory[key]

    def _contained(self, unit: Unit, number: int) -> bool:
        """Whether what a unit that fits makes stands there all the same."""
        tree = self._tree({path: self._met(path, number) for path in unit.paths})
        return tree is not None and _undoes(tree, Blobs(self), unit, in_place=True)

    def _met(self, path: str, number: int) -> TreeEntry | None:
        """What patch `number` meets at a path."""
        for layer in reversed(self._layers[:number]):
            if path in layer.after:
                return layer.after[path]
        return self._state.get(path)

    def _tried(self, unit: Unit, met: State) -> UnitVerdict:
        tree = self._tree(met)
        if tree is None:  # a file where another path needs a folder
            fault = HunkFault(unit.changes[0].path, 0, unit.changes[0].line, Reason.EXISTS)
            return UnitVerdict(Status.CONFLICTED, None, (fault,))
        blobs = Blobs(self)
        try:
            # nobody starts from what this makes of files that no other patch looks at
            trial = unit.is_single and self._shared.isdisjoint(unit.paths)
            applied = apply_changes(tree, blobs, unit.changes, terse=True, trial=trial)
            if applied.tree is None:
                faults = tuple(_faults(tree, blobs, unit, applied.files))
                contained = _undoes(tree, blobs, unit)
                return UnitVerdict(Status.CONFLICTED, None, faults, contained)
        except MissingObjectError:  # a file that no server gives
            change = unit.changes[0]
            fault = HunkFault(change.path, 0, change.line, Reason.MISSING)
            return UnitVerdict(Status.CONFLICTED, None, (fault,))
        after = {path: applied.tree.entry(path) for path in unit.paths}
        self._keep(applied.blobs, after)
        if all(each.status is Status.UNCHANGED for each in applied.files):
            return UnitVerdict(Status.UNCHANGED, after)
        contained = _undoes(tree, blobs, unit, in_place=True)
        return UnitVerdict(Status.SHIFTED, after, contained=contained)

    def _keep(self, blobs: Sequence[GitObject], after: State) -> None:
        """Keep what another patch may start from."""
        shared = {e.oid for path, e in after.items() if e is not None and path in self._shared}
        self._made.update((blob.oid, blob.payload) for blob in blobs if blob.oid in shared)

    def _tree(self, state: State) -> Tree | None:
        """A tree of just these paths; None where a file stands in for another's folder."""
        try:
            return few_files(self._source, state)
        except ObstructedError:
            return None


def _layer(changes: Sequence[FileChange]) -> _Layer:
    units = tuple(split_into_units(changes))
    paths = frozenset(path for unit in units for path in unit.paths)
    homes = {path: number for number, unit in enumerate(units) for path in unit.paths}
    return _Layer(units, paths, [None] * len(units), homes)


def split_into_units(changes: Sequence[FileChange]) -> Iterator[Unit]:
    """Group changes that share a path, or of which one's path is a folder of another's."""
    sets = [{p for p in (each.old_path, each.new_path) if p is not None} for each in changes]
    groups = related(sets)
    members: dict[int, list[int]] = {}
    for number in range(len(changes)):
        members.setdefault(groups.find(number), []).append(number)
    for numbers in members.values():
        paths = set[str]().union(*(sets[number] for number in numbers))
        yield Unit(tuple(changes[number] for number in numbers), tuple(sorted(paths)))


def _undoes(tree: Tree, blobs: Blobs, unit: Unit, *, in_place: bool = False) -> bool:
    """Whether the tree is as the unit leaves it; at other line numbers, too, unless `in_place`."""
    if not all(_may_hold(tree, blobs, change) for change in unit.changes):
        return False
    back = reverse_changes(unit.changes)
    undone = apply_changes(tree, blobs, back, terse=True, trial=unit.is_single)
    shifted = any(each.status is Status.SHIFTED for each in undone.files)
    return undone.tree is not None and not (in_place and shifted)


def _may_hold(tree: Tree, blobs: Blobs, change: FileChange) -> bool:
    """Whether all lines that the change leaves behind stand there in one piece each: a quick no."""
    if change.new_path is None:
        return tree.entry(change.path) is None
    data = _contents(tree, blobs, change.new_path)
    return data is not None and all(_result(hunk) in data for hunk in change.hunks)


def _faults(
    tree: Tree, blobs: Blobs, unit: Unit, files: Sequence[FileOutcome]
) -> Iterator[HunkFault]:
    for change, outcome in zip(unit.changes, files, strict=True):
        for clash in outcome.clashes:
            absorbed = _is_absorbed(tree, blobs, change, clash)
            yield HunkFault(clash.path, clash.hunk, clash.line, clash.reason, absorbed)


def _is_absorbed(tree: Tree, blobs: Blobs, change: FileChange, clash: Clash) -> bool:
    """Whether the result of one clashing hunk, or of a whole change, stands there."""
    if change.new_path is None:
        return tree.entry(change.path) is None
    if not clash.hunk:
        return _undoes(tree, blobs, Unit((change,), ()))
    hunk = change.hunks[clash.hunk - 1]
    if not any(line[:1] == b"+" and line[1:].strip() for line in hunk.lines):
        return False  # that lines are gone is no sign that somebody took them out as we did
    data = _contents(tree, blobs, change.new_path)
    result = _result(hunk)
    at = data.find(result) if data is not None else -1
    while data is not None and at > 0 and data[at - 1 : at] != b"\n":
        at = data.find(result, at + 1)
    return at >= 0


def _contents(tree: Tree, blobs: Blobs, path: str) -> bytes | None:
    entry = tree.entry(path)
    readable = entry is not None and entry.mode != SUBMODULE_MODE
    return blobs.contents(entry.oid) if entry is not None and readable else None


def _result(hunk: Hunk) -> bytes:
    return _joined(hunk.lines)


@lru_cache(maxsize=4096)
def _joined(lines: tuple[bytes, ...]) -> bytes:
    """What a hunk leaves: the same at every commit."""
    return b"".join(line[1:] for line in lines if line[:1] != b"-")


def _status(units: Sequence[UnitVerdict]) -> Status:
    kinds = {unit.status for unit in units}
    for status in (Status.CONFLICTED, Status.SHIFTED, Status.UNCHANGED):
        if status in kinds:
            return status
    return Status.EMPTY


def _differing(one: State, other: State) -> set[str]:
    return {path for path in {*one, *other} if one.get(path) != other.get(path)}
