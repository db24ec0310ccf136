"""Where a stack's files are in a folder of installed packages, and what is to be written there.

Everything is planned on a `FolderView`: what is on disk, and over it what is to come. To apply a
layer again is to take it back in the view and put it there once more; what then differs from disk
is written in one transaction, or nothing is.

A file is patched only where it is the pin's (or has some of the patches already), or what the
layers below made of the pin's. RECORD tells of any other file whether it is the wheel's own.

Apart from `ops/installed.py`, its only user: all that is decided about single files of a folder.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from patchkit.disk.files import LARGEST_PATCH, files_in, read_plain
from patchkit.disk.transaction import runs, write_set
from patchkit.errors import Problem
from patchkit.installed.layer import (
    Before,
    Layer,
    LayerFile,
    LeftOut,
    Receipt,
    RecordBefore,
    bytes_of,
    digest_of,
    is_executable,
    packed,
    receipt_bytes,
    receipt_path,
    state_of,
    unpacked,
)
from patchkit.installed.wheel_record import Distribution, distributions, edited, restored
from patchkit.manifest.values import Component
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, TreeEntry
from patchkit.model.tree import ObjectSource, Tree
from patchkit.stack.build import SeriesPatch, Stack, patch_changes

#: Folders of an upstream that its packages are installed from, tried in this order.
_ROOTS = ("", "src", "python", "lib")
#: What a source tree has at its root, and no folder of installed packages.
_SOURCE_MARKS = ("pyproject.toml", "setup.py", "setup.cfg")


class FolderView:
    """A folder as it is on disk, with what is to be written over it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._disk: dict[str, bytes | None] = {}
        self._now: dict[str, bytes | None] = {}
        self._executable: dict[str, bool] = {}

    def read(self, path: str) -> bytes | None:
        """A file's bytes, None if there is none. OSError for what is no plain file."""
        if path in self._now:
            return self._now[path]
        if path not in self._disk:
            self._disk[path] = _bytes_at(self.root / path)
        return self._disk[path]

    def executable(self, path: str) -> bool:
        """Whether the file may be run."""
        return self._executable.get(path, runs(self.root / path))

    def state(self, path: str) -> str | None:
        """The state of a file, with its mode."""
        return state_of(self.read(path), executable=self.executable(path))

    def write(self, path: str, data: bytes | None, *, executable: bool | None = None) -> None:
        """Give a path other bytes, None for none, and with `executable` another mode."""
        self.read(path)
        self._now[path] = data
        if executable is not None:
            self._executable[path] = executable

    @property
    def changed(self) -> tuple[str, ...]:
        """The paths that are to be written, sorted."""
        return tuple(sorted(p for p, d in self._now.items() if d != self._disk[p] or self._runs(p)))

    def _runs(self, path: str) -> bool:
        """Whether a file that stays gets another mode."""
        there = self._now[path] is not None and self._disk[path] is not None
        return there and self.executable(path) is not runs(self.root / path)

    def bytecode(self, path: str) -> list[str]:
        """The compiled forms of a source file, on disk or to be written."""
        if not path.endswith(".py"):
            return []
        begin = _bytecode_begin(path)
        folder = begin.rpartition("/")[0]
        on_disk = (f"{folder}/{each.name}" for each in files_in(self.root / folder, "*.pyc"))
        return sorted(p for p in {*on_disk, *self._now} if p.startswith(begin) and p[-4:] == ".pyc")

    def commit(self) -> None:
        """Write everything in one transaction, or nothing; see write_set for the errors."""
        writes = {self.root / path: self._now[path] for path in self.changed}
        if writes:
            seen = {self.root / path: self._disk[path] for path in self.changed}
            executable = {
                self.root / path: mode
                for path, mode in self._executable.items()
                if self._now[path] is not None
            }
            write_set(self.root, writes, seen, executable=executable)


def _bytes_at(path: Path) -> bytes | None:
    try:
        return read_plain(path, most=LARGEST_PATCH)
    except (FileNotFoundError, NotADirectoryError):
        return None


# What a stack makes of each file.


class StackFile(Struct, frozen=True):
    """A file of the upstream, and its entries: without the stack, then after each of `patches`."""

    path: str  # in the upstream's tree
    patches: tuple[str, ...]
    entries: tuple[TreeEntry | None, ...]

    @property
    def plain(self) -> bool:
        """Whether it is an ordinary file all the time."""
        return self._modes <= {FILE_MODE, EXECUTABLE_MODE}

    @property
    def has_modes(self) -> bool:
        """Whether the stack says who may run it: it adds it executable, or changes its mode."""
        added = self.entries[0] is None and EXECUTABLE_MODE in self._modes
        return added or len(self._modes) > 1

    @property
    def _modes(self) -> set[int]:
        return {entry.mode for entry in self.entries if entry is not None}


def stack_files(
    source: ObjectSource, stack: Stack, patches: Sequence[SeriesPatch]
) -> tuple[StackFile, ...]:
    """What each patch of a clean stack does to each file, by path."""
    chains: dict[str, list[tuple[str, TreeEntry | None]]] = {}
    base = Tree(source, stack.base.tree)
    for patch, outcome in zip(patches, stack.outcomes, strict=True):
        if outcome.tree is None:
            continue
        tree = Tree(source, outcome.tree)
        changes = patch_changes(patch)
        paths = {p for c in changes for p in (c.old_path, c.new_path) if p is not None}
        for path in paths:
            before = chains[path][-1][1] if path in chains else base.entry(path)
            if tree.entry(path) != before:
                chains.setdefault(path, []).append((patch.name, tree.entry(path)))
    return tuple(
        StackFile(path, tuple(n for n, _ in chain), (base.entry(path), *(e for _, e in chain)))
        for path, chain in sorted(chains.items())
    )


# Where they are.


class Whereabouts(Struct, frozen=True):
    """How paths of an upstream lead into a folder.

    `mapping` has pairs of folders, the upstream's and the one it is installed as, longest first;
    "" is the root. `owner` is the wheel that brought the files, `source` whether the folder is a
    source tree.
    """

    mapping: tuple[tuple[str, str], ...]
    owner: Distribution | None
    source: bool

    def installed(self, path: str) -> str | None:
        """The path in the folder; None for one that is not installed from there."""
        for upstream, here in self.mapping:
            if not upstream or path.startswith(f"{upstream}/"):
                rest = path[len(upstream) :].lstrip("/")
                return f"{here}/{rest}" if here else rest
        return None


def find_placement(
    view: FolderView, component: Component, files: Sequence[StackFile]
) -> Whereabouts | None:
    """How the stack's files lead into a folder; None where none of them is there.

    The manifest's `layout` decides. Without one that folder of the upstream is taken from which
    most of the files are installed: by RECORD where a wheel lists them, else by what is there.
    """
    wheels = distributions(view.root)
    old = [each.path for each in files if each.entries[0] is not None] or [f.path for f in files]
    best: tuple[int, Whereabouts] | None = None
    for mapping in _mappings(component):
        placement = Whereabouts(mapping, None, source=False)
        mapped = {p for p in map(placement.installed, old) if p is not None}
        lists = {each.folder: len(mapped & each.files) for each in wheels}
        owner = max(wheels, key=lambda each: lists[each.folder], default=None)
        if owner is not None and not lists[owner.folder]:
            owner = None
        there = lists[owner.folder] if owner else sum(_is_there(view.root, p) for p in mapped)
        if there and (best is None or there > best[0]):
            source = owner is None and any((view.root / m).exists() for m in _SOURCE_MARKS)
            best = there, Whereabouts(mapping, owner, source)
    return None if best is None else best[1]


def _mappings(component: Component) -> Iterator[tuple[tuple[str, str], ...]]:
    if component.layout:
        yield tuple(sorted(component.layout.items(), key=lambda pair: -len(pair[0])))
        return
    declared = component.contracts.root if component.contracts is not None else ""
    for root in dict.fromkeys((declared, *_ROOTS)):
        yield ((root, ""),)


def _is_there(root: Path, path: str) -> bool:
    return os.path.lexists(root / path)


def editable_home(root: Path, component: Component, files: Sequence[StackFile]) -> Path | None:
    """Where an editable install in the folder runs the stack's files from."""
    for each in distributions(root):
        home = each.editable
        if home is not None and find_placement(FolderView(home), component, files) is not None:
            return home
    return None


# From the stack to a layer, and onto the folder.


class Planned(Struct):
    """What a plan came to: the layer, its receipt in the view, or what is in the way of it."""

    layer: Layer
    receipt: Receipt | None = None
    problems: list[Problem] = field(default_factory=list)


def on_other_layers(
    view: FolderView,
    placement: Whereabouts,
    files: Sequence[StackFile],
    receipts: Sequence[Receipt],
    source: ObjectSource,
) -> dict[str, bytes]:
    """Upstream path -> bytes of files that the layers below made of the pin's own.

    Invariant: the lowest layer began with the pin's file, each other one with what the layer below
    it made, and what is there is what the last one made. Anything else is no base.
    """
    found: dict[str, bytes] = {}
    for file in files:
        path, entry = placement.installed(file.path), file.entries[0]
        state = digest_of(None if entry is None else source.read(entry.oid, "blob"))
        below = [f for r in receipts for f in r.layer.files if f.path == path]
        for each in below:
            first, last = bytes_of(each.states[0]), bytes_of(each.states[-1])
            state = last if first == state else "no base"
        data = view.read(path) if path is not None and below else None
        if data is not None and digest_of(data) == state:
            found[file.path] = data
    return found


def accepted_files(
    view: FolderView,
    placement: Whereabouts,
    files: Sequence[StackFile],
    accepted: Collection[str],
    given_back: Collection[str],
) -> dict[str, bytes]:
    """Upstream path -> bytes of files that are not the pin's and are to be patched as they are.

    Only of the wheel's own: RECORD must say that nobody edited one since, or the file is one of
    those that were `given_back` in the view as they were before they were patched.
    """
    found: dict[str, bytes] = {}
    for file in files:
        path = placement.installed(file.path)
        wanted = path in accepted or path in given_back
        data = view.read(path) if path is not None and wanted else None
        if path is None or data is None or placement.owner is None:
            continue
        if path in given_back or placement.owner.is_own(path, data):
            found[file.path] = data
    return found


def put_layer(
    view: FolderView,
    placement: Whereabouts,
    blank: Layer,
    files: Sequence[StackFile],
    source: ObjectSource,
    *,
    number: int,
) -> Planned:
    """Put a stack's files into the view, with receipt and RECORD, unless something is in the way.

    `blank` is the layer without files; they are filled in.
    """
    planned = Planned(blank)
    layer_files, left_out, before = list[LayerFile](), list[LeftOut](), list[Before]()
    changes: dict[str, bytes | None] = {}
    for file in files:
        path = placement.installed(file.path)
        if path is None or not _is_installed(view, placement, file, path):
            left_out += (LeftOut(patch, file.path) for patch in file.patches)
            continue
        contents = [None if e is None else source.read(e.oid, "blob") for e in file.entries]
        states = _states(view, path, file, contents)
        layer_files.append(LayerFile(path, file.patches, states))
        problem = _obstacle(view, placement, file, path, states)
        if problem is not None:
            planned.problems.append(problem)
        elif view.state(path) != states[-1] if file.has_modes else view.read(path) != contents[-1]:
            changes[path] = contents[-1]
            counts = view.read(path) is not None and (file.has_modes or contents[-1] is None)
            was = view.executable(path) if counts else None
            before.append(packed(path, view.read(path), contents[-1], executable=was))
            run = is_executable(states[-1]) if file.has_modes else None
            view.write(path, contents[-1], executable=run)
    planned.layer = Layer(
        blank.manifest, blank.component, blank.base, blank.tree, blank.digest, blank.patches,
        tuple(layer_files), tuple(left_out), blank.accepted, blank.reasons,
    )  # fmt: skip
    if not planned.problems:
        for code in [code for path in changes for code in view.bytecode(path)]:
            if view.read(code) is not None:
                before.append(packed(code, view.read(code), None))
                changes[code] = None
                view.write(code, None)
        records = tuple(_record(view, placement.owner, changes))
        planned.receipt = Receipt(1, number, planned.layer, tuple(before), records)
        view.write(planned.receipt.name, receipt_bytes(planned.receipt))
    return planned


def _states(
    view: FolderView, path: str, file: StackFile, contents: Sequence[bytes | None]
) -> tuple[str | None, ...]:
    """The states of a file. Of the first one the mode is what the installer gave it."""
    if not file.has_modes:
        return tuple(map(digest_of, contents))
    modes = [entry is not None and entry.mode == EXECUTABLE_MODE for entry in file.entries]
    if contents[0] is not None and view.read(path) == contents[0]:
        modes[0] = view.executable(path)
    pairs = zip(contents, modes, strict=True)
    return tuple(state_of(data, executable=mode) for data, mode in pairs)


def _record(
    view: FolderView, owner: Distribution | None, changes: Mapping[str, bytes | None]
) -> Iterator[RecordBefore]:
    """Keep the wheel's RECORD true."""
    data = view.read(owner.record) if owner is not None else None
    if owner is not None and data is not None:
        new, edits = edited(data, owner.record, changes)
        if edits:
            view.write(owner.record, new)
            yield RecordBefore(owner.record, edits)


def _is_installed(view: FolderView, placement: Whereabouts, file: StackFile, path: str) -> bool:
    """Whether a file belongs into the folder.

    Of a wheel: what RECORD lists, and new files in folders of it. Else what is there, and what is
    in a folder that is there; in a source tree everything.
    """
    owner, top = placement.owner, path.partition("/")[0]
    if placement.source or (owner is not None and path in owner.files):
        return True
    if _is_there(view.root, path) or view.read(path) is not None:
        return True
    if owner is not None:
        return file.entries[0] is None and owner.has_folder(top)
    return "/" in path and (view.root / top).is_dir()


def _obstacle(
    view: FolderView,
    placement: Whereabouts,
    file: StackFile,
    path: str,
    states: Sequence[str | None],
) -> Problem | None:
    """Why a file cannot be given what the stack makes of it."""
    place = view.root / path
    if not file.plain:
        return Problem(f"{path}: a patch makes a link or a submodule of it", "", _BY_CHECKOUT)
    if place.is_symlink() or not _inside(view.root, place.parent):
        hint = "it leads to a file that others use: install the package with copies"
        return Problem(f"{path} is a link", "", hint)
    data = view.read(path)
    if digest_of(data) in map(bytes_of, states):
        return None
    if data is None:
        return Problem(f"{path} is not there", "", "install the package again")
    if states[0] is None and len(states) == 2:
        return Problem(f"{path} is there already, and is another file than the patch adds")
    return _stranger(placement.owner, path, data)


def _stranger(owner: Distribution | None, path: str, data: bytes) -> Problem:
    """What RECORD tells of a file that is neither the pin's nor patched."""
    own = None if owner is None else owner.is_own(path, data)
    if owner is None or own is None:
        hint = "put the files of the pin there, without edits"
        return Problem(f"{path} is neither the file of the pin nor patched", "", hint)
    if own:
        what = f"{path} of {owner.title} is not the file of the pin"
        hint = "install the version that the manifest pins, or move the pin; a file that is made"
        hint += (
            f" when the wheel is built: --accept-differing {path}, or `differing` in the manifest"
        )
        return Problem(what, "", hint)
    what = f"{path} was edited since {owner.title} was installed"
    return Problem(what, "", "reinstall the package, without the edit")


_BY_CHECKOUT = "use a checkout: patchkit apply without --into"


def _inside(root: Path, folder: Path) -> bool:
    top = os.path.realpath(root)
    return os.path.commonpath([top, os.path.realpath(folder)]) == top


# And back.


def take_back(view: FolderView, receipt: Receipt, others: Iterable[Receipt]) -> list[Problem]:
    """Take a layer back in the view; what is in the way, and then the view is not to be used."""
    sources = [each for each in receipt.before if not _is_bytecode(each.path)]
    problems: list[Problem] = []
    for each in sources:
        found = digest_of(view.read(each.path))
        if found == each.after:
            _give_back(view, receipt, each)
        elif found != each.digest:
            problems.append(_not_ours(each.path, receipt, others))
    for record in receipt.records:
        data = view.read(record.path)
        if data is not None:
            view.write(record.path, restored(data, record.edits))
    view.write(receipt.name, None)
    return problems


def _give_back(view: FolderView, receipt: Receipt, each: Before) -> None:
    for code in view.bytecode(each.path):
        view.write(code, None)
    view.write(each.path, unpacked(each), executable=each.executable)
    for code in view.bytecode(each.path) + [b.path for b in receipt.before]:
        original = receipt.original(code)
        if original is not None and _is_bytecode(code) and _belongs(code, each.path):
            view.write(code, unpacked(original))


def is_stale(view: FolderView, receipt: Receipt) -> bool:
    """Whether nothing of what the layer put there is there any more: a reinstalled package."""
    changed = [each for each in receipt.before if each.digest != each.after]  # not only its mode
    sources = [each for each in changed if not _is_bytecode(each.path)]
    return bool(sources) and all(digest_of(view.read(b.path)) != b.after for b in sources)


def _not_ours(path: str, receipt: Receipt, others: Iterable[Receipt]) -> Problem:
    for each in others:
        if each.number > receipt.number and each.original(path) is not None:
            hint = "reverse that first: it was applied on top"
            return Problem(f"{path} was changed by {each.layer.title}", "", hint)
    hint = (
        f"put it back as it was, or reinstall the package and delete"
        f" {receipt_path(receipt.layer.manifest, receipt.layer.component)}"
    )
    return Problem(f"{path} is not as patchkit left it", "", hint)


def _is_bytecode(path: str) -> bool:
    return path.endswith(".pyc") and "__pycache__/" in path


def _belongs(code: str, path: str) -> bool:
    return code.startswith(_bytecode_begin(path))


def _bytecode_begin(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}__pycache__/{name.removesuffix('.py')}."
