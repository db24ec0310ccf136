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

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import (
    LARGEST_PATCH,
    FileAttributes,
    attributes_of,
    files_in,
    is_inside,
    read_plain,
)
from patchkit.disk.transaction import runs, write_set
from patchkit.errors import BadInputError, Problem
from patchkit.extensions.installed.layer import (
    EXECUTABLE,
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
    state_of,
    unpacked,
)
from patchkit.extensions.installed.wheel_record import Distribution, distributions, edited, restored
from patchkit.manifest.values import Component
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    GitObject,
    TreeEntry,
    TreeId,
    make_object,
)
from patchkit.model.tree import ObjectSource, Tree
from patchkit.stack.build import StackFile

#: Folders of an upstream that its packages are installed from, tried in this order.
_ROOTS = ("", "src", "python", "lib")
#: What a source tree has at its root, and no folder of installed packages.
_SOURCE_MARKS = ("pyproject.toml", "setup.py", "setup.cfg")


class FolderView(Struct, eq=False):
    """A folder as it is on disk, with what is to be written over it.

    `within` is the root of the image that it is in, out of which no link is followed.
    """

    root: Path
    within: Path | None = None
    _disk: dict[str, bytes | None] = {}
    _now: dict[str, bytes | None] = {}
    _executable: dict[str, bool] = {}
    _attributes: dict[str, FileAttributes] = {}

    def read(self, path: str) -> bytes | None:
        """A file's bytes, None if there is none. OSError for what is no plain file."""
        if path in self._now:
            return self._now[path]
        if path not in self._disk:
            place = self.root / path
            if self.within is not None and not is_inside(place, self.within):
                hint = "judge it inside of the image, as a folder"
                raise BadInputError(Problem("is a link out of the image", str(place), hint))
            self._disk[path] = _bytes_at(place)
        return self._disk[path]

    def is_link(self, path: str) -> bool:
        """Whether a path leads elsewhere, by a link of its own or above it."""
        place = self.root / path
        return place.is_symlink() or not is_inside(place.parent, self.root)

    def executable(self, path: str) -> bool:
        """Whether the file may be run."""
        return self._executable.get(path, runs(self.root / path))

    def state(self, path: str) -> str | None:
        """The state of a file, with its mode."""
        return state_of(self.read(path), executable=self.executable(path))

    def attributes(self, path: str) -> FileAttributes | None:
        """What the file has beside its bytes."""
        return self._attributes.get(path) or attributes_of(self.root / path)

    def states(self, path: str) -> list[str | None]:
        """The state in each form in which a layer may have it."""
        data, runs = self.read(path), EXECUTABLE * self.executable(path)
        return [None] if data is None else [f"{digest_of(data)}{runs}", f"{blob_id(data)}{runs}"]

    def write(
        self,
        path: str,
        data: bytes | None,
        *,
        executable: bool | None = None,
        attributes: FileAttributes | None = None,
    ) -> None:
        """Give a path other bytes, None for none, and with `executable` another mode.

        `attributes` are what it gets beside that.
        """
        self.read(path)
        self._now[path] = data
        self._attributes.pop(path, None)
        if executable is not None:
            self._executable[path] = executable
        if attributes is not None:
            self._attributes[path] = attributes

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

    def wheels(self) -> tuple[Distribution, ...]:
        """The wheels in the folder, with RECORD as it will be."""
        return distributions(self.root, self.read)

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
            given = {self.root / path: each for path, each in self._attributes.items()}
            write_set(self.root, writes, seen, executable=executable, attributes=given)


def blob_id(data: bytes) -> str:
    """The id that git gives a file of these bytes."""
    return make_object("blob", data).oid


def with_contents(
    tree: Tree, contents: Mapping[str, bytes | None], written: list[GitObject]
) -> TreeId:
    """The tree in which files have other contents, None for one that is gone; its new objects are
    added to `written`.
    """
    for path, data in contents.items():
        if data is None:
            tree = tree.remove(path)
            continue
        entry = tree.entry(path)
        written.append(make_object("blob", data))
        tree = tree.put(path, TreeEntry(entry.mode if entry else FILE_MODE, written[-1].oid))
    return tree.write(written)


def _bytes_at(path: Path) -> bytes | None:
    try:
        return read_plain(path, most=LARGEST_PATCH)
    except (FileNotFoundError, NotADirectoryError):
        return None


# Where they are.


class Whereabouts(Struct, frozen=True):
    """How paths of an upstream lead into a folder.

    `mapping` has pairs of folders, the upstream's and the one it is installed as, longest first;
    "" is the root. `wheels` are those that brought the files, by name, `source` whether the folder
    is a source tree. `problems` say why it cannot be known.
    """

    mapping: tuple[tuple[str, str], ...]
    wheels: tuple[Distribution, ...]
    source: bool = False
    problems: tuple[Problem, ...] = ()

    @property
    def title(self) -> str:
        """The wheels by name and version, "" for none."""
        return ", ".join(each.title for each in self.wheels)

    def installed(self, path: str) -> str | None:
        """The path in the folder; None for one that is not installed from there."""
        return _led(path, self.mapping)

    def upstream(self, path: str) -> str | None:
        """The path in the upstream's tree of one in the folder; None for one beside the mapping."""
        return _led(path, ((here, upstream) for upstream, here in self.mapping))

    def owner(self, path: str) -> Distribution | None:
        """The wheel that lists a path in its RECORD, or that a new file is to belong to.

        That is the one with files in its folder, or in the nearest folder above; of several the
        first by name.
        """
        listing = [each for each in self.wheels if path in each.rows]
        while not listing and (path := path.rpartition("/")[0]):
            listing = [each for each in self.wheels if each.has_folder(path)]
        return listing[0] if listing else None


def _led(path: str, mapping: Iterable[tuple[str, str]]) -> str | None:
    """Where the first folder that a path is in leads it; None if it is in none of them."""
    for folder, other in mapping:
        if not folder or path.startswith(f"{folder}/"):
            rest = path[len(folder) :].lstrip("/")
            return f"{other}/{rest}" if other else rest
    return None


def find_placement(
    view: FolderView,
    component: Component,
    files: Sequence[StackFile],
    roots: Iterable[str] = _ROOTS,
) -> Whereabouts | None:
    """How the stack's files lead into a folder; None where none of them is there.

    The manifest's `layout` decides. Without one it is that folder of the upstream from which one
    wheel has files, by its RECORD; a second folder or wheel that has others is a problem. Where no
    wheel lists any it is the folder of which most files are there, unless two have as many.
    `roots` are the folders that are tried.
    """
    old = [each.path for each in files if each.entries[0] is not None] or [f.path for f in files]
    wheels, marks = view.wheels(), [(view.root / m).exists() for m in _SOURCE_MARKS]
    found = list[tuple[Whereabouts, set[str]]]()
    for mapping in _mappings(component, roots):
        way = Whereabouts(mapping, ())
        paths = {path: here for path in old if (here := way.installed(path)) is not None}
        found += (
            (replace(way, wheels=(wheel,)), {p for p in paths if paths[p] in wheel.rows})
            for wheel in wheels
        )
        there = {path for path in paths if os.path.lexists(view.root / paths[path])}
        found.append((replace(way, source=any(marks)), there))
    listed = [each for each in found if each[0].wheels and each[1]]
    chosen = listed or found
    best, most = max(chosen, key=lambda each: len(each[1]))
    ties = [
        each
        for each in chosen
        if not component.layout
        and (each[1] - most or each[0].mapping != best.mapping)
        and (listed or len(each[1]) == len(most))
    ]
    if not most:
        return None
    if ties:
        places = (
            f"{way.installed(min(paths))} {way.title}" for way, paths in [(best, most), *ties]
        )
        what = f"files of its patches are in several places: {', '.join(map(str.strip, places))}"
        return replace(best, problems=(Problem(what, component.name, _LAYOUT),))
    return replace(best, wheels=tuple(wheel for way, _ in listed for wheel in way.wheels))


_LAYOUT = "say under `layout` in the manifest which folder of the upstream is installed as which"


def place_files(
    view: FolderView,
    placement: Whereabouts,
    files: Sequence[StackFile],
    known: Collection[str] = (),
) -> tuple[list[tuple[StackFile, str]], list[LeftOut], list[Problem]]:
    """The files with their paths in the folder; those that are not installed; and the problems.

    `known` are paths that are installed in any case. A problem is a file that a wheel has, byte for
    byte, where the placement does not lead.
    """
    listed = {path for each in view.wheels() for path in each.rows}
    placed, left_out, problems = list[tuple[StackFile, str]](), list[LeftOut](), list[Problem]()
    for file in files:
        path = placement.installed(file.path)
        if path is not None and (path in known or _is_installed(view, placement, file, path)):
            placed.append((file, path))
            continue
        left_out += (LeftOut(patch, file.path) for patch in file.patches)
        parts, ids = file.path.split("/"), [each.oid for each in file.entries if each]
        for here in listed & {"/".join(parts[n:]) for n in range(len(parts))}:
            if (data := view.read(here)) and blob_id(data) in ids:
                problems.append(Problem(f"{here} is {file.path}, and has no place", "", _LAYOUT))
    return placed, left_out, problems


def _mappings(component: Component, roots: Iterable[str]) -> Iterator[tuple[tuple[str, str], ...]]:
    if component.layout:
        yield tuple(sorted(component.layout.items(), key=lambda pair: -len(pair[0])))
        return
    declared: str = getattr(component.more.get("contracts"), "root", "")
    for root in dict.fromkeys((declared, *roots)):
        yield ((root, ""),)


def editable_home(root: Path, component: Component, files: Sequence[StackFile]) -> Path | None:
    """Where an editable install in the folder runs the stack's files from."""
    for each in FolderView(root).wheels():
        home = each.editable
        if home is not None and find_placement(FolderView(home), component, files) is not None:
            return home
    return None


# From the stack to a layer, and onto the folder.


class Planned(Struct):
    """What a plan came to: the layer, its receipt in the view, or what is in the way of it."""

    layer: Layer
    receipt: Receipt | None = None
    problems: list[Problem] = []


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
) -> dict[str, bytes]:
    """Upstream path -> bytes of files that are not the pin's and are to be patched as they are.

    Only of the wheel's own: RECORD must say that nobody edited one since.
    """
    found: dict[str, bytes] = {}
    for file in files:
        path = placement.installed(file.path)
        if path is None or path not in accepted:
            continue
        data, owner = view.read(path), placement.owner(path)
        if data is not None and owner is not None and owner.is_own(path, data):
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
    placed, left_out, problems = place_files(view, placement, files)
    planned = Planned(blank, problems=problems)
    layer_files, before = list[LayerFile](), list[Before]()
    changes: dict[str, bytes | None] = {}
    for file, path in placed:
        contents = [None if e is None else source.read(e.oid, "blob") for e in file.entries]
        states = _states(view, path, file, contents)
        layer_files.append(LayerFile(path, file.patches, states))
        problem = _obstacle(view, placement, file, path, states)
        if problem is not None:
            planned.problems.append(problem)
        elif view.state(path) != states[-1] if file.has_modes else view.read(path) != contents[-1]:
            changes[path] = contents[-1]
            counts = view.read(path) is not None and (file.has_modes or contents[-1] is None)
            was, given = (view.executable(path), view.attributes(path)) if counts else (None, None)
            args = path, view.read(path), contents[-1]
            before.append(packed(*args, executable=was, attributes=given))
            run = is_executable(states[-1]) if file.has_modes else None
            view.write(path, contents[-1], executable=run)
    planned.layer = replace(blank, files=tuple(layer_files), left_out=tuple(left_out))
    if not planned.problems:
        for code in [code for path in changes for code in view.bytecode(path)]:
            if view.read(code) is not None:
                data, given = view.read(code), view.attributes(code)
                before.append(packed(code, data, None, attributes=given))
                changes[code] = None
                view.write(code, None)
        new = {path for file, path in placed if file.entries[0] is None}
        records = tuple(_records(view, placement, changes, new))
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


def _records(
    view: FolderView,
    placement: Whereabouts,
    changes: Mapping[str, bytes | None],
    new: Collection[str],
) -> Iterator[RecordBefore]:
    """Keep the RECORD of each wheel true: of what it lists, and of new files that are its own."""
    for wheel in placement.wheels:
        data = view.read(wheel.record)
        own = {
            path: changes[path]
            for path in changes
            if path in wheel.rows or (path in new and placement.owner(path) is wheel)
        }
        if data is not None and own:
            text, edits = edited(data, wheel.record, own)
            view.write(wheel.record, text)
            yield RecordBefore(wheel.record, edits)


def _is_installed(view: FolderView, placement: Whereabouts, file: StackFile, path: str) -> bool:
    """Whether a file belongs into the folder.

    Of a wheel: what RECORD lists, and new files in folders of it. Else what is there, and what is
    in a folder that is there; in a source tree everything.
    """
    on_disk = os.path.lexists(view.root / path)
    if placement.source or on_disk or view.read(path) is not None:
        return True
    if placement.wheels:
        owner = placement.owner(path)
        return owner is not None and (file.entries[0] is None or path in owner.rows)
    return "/" in path and (view.root / path.partition("/")[0]).is_dir()


def _obstacle(
    view: FolderView,
    placement: Whereabouts,
    file: StackFile,
    path: str,
    states: Sequence[str | None],
) -> Problem | None:
    """Why a file cannot be given what the stack makes of it."""
    if not file.plain:
        return Problem(f"{path}: a patch makes a link or a submodule of it", "", _BY_CHECKOUT)
    if view.is_link(path):
        hint = "it leads to a file that others use: install the package with copies"
        return Problem(f"{path} is a link", "", hint)
    data = view.read(path)
    if digest_of(data) in map(bytes_of, states):
        return None
    if data is None:
        return Problem(f"{path} is not there", "", "install the package again")
    if states[0] is None and len(states) == 2:
        return Problem(f"{path} is there already, and is another file than the patch adds")
    return stranger(placement.owner(path), path, data)


def stranger(owner: Distribution | None, path: str, data: bytes) -> Problem:
    """What RECORD tells of a file that is neither the pin's nor patched."""
    own = None if owner is None else owner.is_own(path, data)
    if owner is None or own is None:
        hint = "put the files of the pin there, without edits"
        return Problem(f"{path} is neither the file of the pin nor patched", "", hint)
    if own:
        what = f"{path} of {owner.title} is not the file of the pin"
        hint = "install the version that the manifest pins, or move the pin; a file that is made"
        hint += " when the wheel is built: `differing` in the manifest"
        return Problem(what, "", hint)
    what = f"{path} was edited since {owner.title} was installed"
    return Problem(what, "", "reinstall the package, without the edit")


_BY_CHECKOUT = "use a checkout: `patchkit apply`"


# And back.


def take_back(
    view: FolderView,
    receipt: Receipt,
    others: Iterable[Receipt],
    *,
    stale: bool = False,
    known: Collection[str] = (),
) -> list[Problem]:
    """Take a layer back in the view; what is in the way, and then the view is not to be used.

    Of a `stale` one only the receipt goes. `known` are blob ids of files that the stack makes now:
    what was edited there, and came into the patches, is put back as what the layer made.
    """
    view.write(receipt.name, None)
    if stale:
        return []
    problems: list[Problem] = []
    begins = set[str]()  # of the names of compiled forms of what is given back
    for each in receipt.before:
        if _is_bytecode(each.path):
            continue
        data = view.read(each.path)
        found = digest_of(data)
        if found == each.after or (data is not None and blob_id(data) in known):
            begins.add(_bytecode_begin(each.path))
            for code in view.bytecode(each.path):
                view.write(code, None)
            _give_back(view, each)
        elif found != each.digest:
            problems.append(_not_ours(each.path, receipt, others))
    for each in receipt.before:
        ends = [n for n, char in enumerate(each.path, 1) if char == "."]
        if _is_bytecode(each.path) and any(each.path[:end] in begins for end in ends):
            _give_back(view, each)
    for record in receipt.records:
        data = view.read(record.path)
        if data is not None:
            view.write(record.path, restored(data, record.edits))
    return problems


def _give_back(view: FolderView, each: Before) -> None:
    view.write(each.path, unpacked(each), executable=each.executable, attributes=each.attributes)


def is_stale(view: FolderView, receipt: Receipt) -> bool:
    """Whether an installer put everything that the layer changed there again, or removed it."""
    wheels = view.wheels()
    # neither what it took away, compiled forms among it, nor of what only the mode changed
    changed = [each for each in receipt.before if each.after not in (None, each.digest)]
    return bool(changed) and all(_is_reinstalled(view.read(b.path), b, wheels) for b in changed)


def _is_reinstalled(data: bytes | None, before: Before, wheels: Sequence[Distribution]) -> bool:
    if digest_of(data) == before.after:
        return False
    listing = [wheel for wheel in wheels if before.path in wheel.rows]
    if data is None:
        return not listing
    own = any(wheel.is_own(before.path, data) for wheel in listing)
    return own or digest_of(data) == before.digest


def _not_ours(path: str, receipt: Receipt, others: Iterable[Receipt]) -> Problem:
    for each in others:
        if each.number > receipt.number and each.original(path) is not None:
            hint = "reverse that first: it was applied on top"
            return Problem(f"{path} was changed by {each.layer.title}", "", hint)
    hint = f"put it back as it was, or reinstall the package and delete {receipt.name}"
    return Problem(f"{path} is not as patchkit left it", "", hint)


def _is_bytecode(path: str) -> bool:
    return path.endswith(".pyc") and "__pycache__/" in path


def _bytecode_begin(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}__pycache__/{name.removesuffix('.py')}."
