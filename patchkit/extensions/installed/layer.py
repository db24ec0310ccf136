"""A layer: what a stack makes of each file of an installed package; and its receipt.

A layer lists every state that a file goes through, by hash: without the stack, then after each
patch that touches it. So what is on a machine is judged by its bytes alone, without the manifest,
the cache or the network, and a receipt is never believed for what the files do not show.

    .patchkit/<manifest>.<component>.receipt.json      in the folder that was patched

A receipt holds the layer, and all that was there before: `--reverse` needs nothing else. Layers of
several manifests may be on one folder, in the order of `number`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from patchkit.disk.files import LARGEST_PATCH, FileAttributes, files_in, read_plain
from patchkit.errors import BadInputError, Problem
from patchkit.extensions.installed.wheel_record import RowEdit
from patchkit.model.decoding import from_json
from patchkit.model.names import can_be_a_file

#: Below the folder that was patched.
RECEIPTS = ".patchkit"
_ENDING = ".receipt.json"
_VERSION = 1
#: How many mistakes of a file are named.
MOST_MISTAKES = 20


#: What the state of an executable file ends with, where a patch changes that.
EXECUTABLE = "+x"


class LayerFile(Struct, frozen=True):
    """A file by its path in the folder, and its states; None: it is not there.

    A state is the SHA-256 of the bytes or, from a lock, their blob id, with EXECUTABLE where that
    counts: an installer may give files other modes than the upstream, so only a file whose mode the
    stack changes has modes. `states` begins with the file without the stack; state n+1 is the one
    after `patches[n]`.
    """

    path: str
    patches: tuple[str, ...]
    states: tuple[str | None, ...]

    @property
    def has_modes(self) -> bool:
        """Whether the states say what may be run."""
        return any(map(is_executable, self.states))

    def reached(self, found: Collection[str | None]) -> int | None:
        """The number of the state that is `found`, in any form; None for other bytes.

        Of equal ones it is the last. With the right bytes and another mode it is as before the
        patch that gave the mode.
        """
        plain = set(map(bytes_of, found))
        wanted = set(found) if self.has_modes else plain
        for number, state in reversed([*enumerate(self.states)]):
            if state in wanted:
                return number
        numbers = [n for n, state in enumerate(self.states) if bytes_of(state) in plain]
        if not numbers:
            return None
        number = numbers[-1]
        mode = is_executable(self.states[number])
        while number > 0 and is_executable(self.states[number]) is mode:
            number -= 1
        return number


class LeftOut(Struct, frozen=True):
    """A file that a patch changes and that is not installed: metadata, tests, documents."""

    patch: str
    path: str  # in the upstream's tree


class Layer(Struct, frozen=True):
    """What a component's stack makes of a folder.

    `base` is the stack's commit, `digest` the SHA-256 of what the lock says of it. `patches` are
    all of the series; paths of `left_out` are the upstream's.
    `reasons` say why files of the wheel's own that are not the pin's were patched as they were.
    """

    manifest: str  # its name
    component: str
    base: str
    digest: str
    patches: tuple[str, ...]
    files: tuple[LayerFile, ...]
    left_out: tuple[LeftOut, ...] = ()
    reasons: Mapping[str, str] = {}  # path -> reason

    @property
    def title(self) -> str:
        """`manifest/component`."""
        return f"{self.manifest}/{self.component}"


class Before(Struct, frozen=True):
    """A file as it was before the layer: its bytes by zlib, None if it was not there.

    `after` is the SHA-256 of what the layer put there, None for nothing. `executable` says whether
    it could be run; None where the layer did not change that. `attributes` is what else it had, of
    a file that the layer took away or changed the mode of.
    """

    path: str  # relative to the folder
    data: bytes | None  # compressed
    digest: str | None  # SHA-256 after the layer
    after: str | None
    executable: bool | None = None
    attributes: FileAttributes | None = None


class RecordBefore(Struct, frozen=True):
    """What became of a wheel's RECORD, by its path."""

    path: str
    edits: tuple[RowEdit, ...]  # of single rows, in the order of the file


class Receipt(Struct, frozen=True):
    """What was done to a folder. `number` is the layer's place in the order: 1 lies lowest."""

    version: int  # of this file's format
    number: int
    layer: Layer
    before: tuple[Before, ...]
    records: tuple[RecordBefore, ...] = ()  # one for each wheel whose files changed

    @property
    def name(self) -> str:
        """Its path below the folder."""
        return receipt_path(self.layer.manifest, self.layer.component)

    def original(self, path: str) -> Before | None:
        """What was at a path before."""
        return next((each for each in self.before if each.path == path), None)


def receipt_path(manifest: str, component: str) -> str:
    """Where the receipt of a layer is, below the folder."""
    return f"{RECEIPTS}/{quote(manifest, safe='')}.{component}{_ENDING}"


def receipt_bytes(receipt: Receipt) -> bytes:
    """A receipt as it stands in its file."""
    return msgspec.json.format(msgspec.json.encode(receipt), indent=1) + b"\n"


def receipts_in(root: Path) -> tuple[Receipt, ...]:
    """The receipts in a folder, lowest layer first; BadInputError if one cannot be believed."""
    found, problems = list[Receipt](), list[Problem]()
    for path in files_in(root / RECEIPTS, f"*{_ENDING}"):
        try:
            receipt = read_receipt(read_plain(path, most=LARGEST_PATCH))
            wrong = [*_mistakes(receipt, path.name)]
            found.append(receipt)
        except (OSError, ValueError) as error:
            wrong = [str(error)]
        if len(wrong) > MOST_MISTAKES:
            wrong[MOST_MISTAKES:] = [f"{len(wrong) - MOST_MISTAKES} more mistakes"]
        hint = "not a patchkit receipt, or modified: reinstall the package, then delete it"
        problems += (Problem(each, str(path), hint) for each in wrong)
    if problems:
        raise BadInputError(*problems)
    return tuple(sorted(found, key=lambda each: (each.number, each.name)))


def read_receipt(data: bytes) -> Receipt:
    """A receipt from the bytes of its file; ValueError if it is none."""
    try:
        receipt = from_json(data, Receipt)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if receipt.version != _VERSION:
        raise ValueError(f"version {receipt.version}; this patchkit knows {_VERSION}")
    return receipt


def _mistakes(receipt: Receipt, name: str) -> Iterator[str]:
    layer, room = receipt.layer, LARGEST_PATCH
    if Path(receipt.name).name != name:
        yield f"it is the receipt of {layer.title}"
    named: tuple[LayerFile | Before | RecordBefore, ...]
    named = (*layer.files, *receipt.before, *receipt.records)
    for path in (each.path for each in named):
        if not can_be_a_file(path) or path.startswith(f"{RECEIPTS}/"):
            yield f"{path!r} is not a path in the folder"
    for file in layer.files:
        if len(file.states) != len(file.patches) + 1:
            yield f"{file.path}: {len(file.states)} states"
    for each in receipt.before:
        try:
            data = unpacked(each, room)
        except ValueError as error:
            yield str(error)
            continue
        room -= len(data or b"")
        if room < 0:
            yield f"{each.path}: what was there before is more than {LARGEST_PATCH >> 20} MiB"
            return
        if digest_of(data) != each.digest:
            yield f"{each.path}: what was there before is damaged"


def packed(
    path: str,
    before: bytes | None,
    after: bytes | None,
    *,
    executable: bool | None = None,
    attributes: FileAttributes | None = None,
) -> Before:
    """What a receipt keeps of a file."""
    data = None if before is None else zlib.compress(before, 9)
    return Before(path, data, digest_of(before), digest_of(after), executable, attributes)


def unpacked(each: Before, most: int = LARGEST_PATCH) -> bytes | None:
    """The bytes that were there before, of which one more than `most`; ValueError if damaged."""
    if each.data is None:
        return None
    try:
        return zlib.decompressobj().decompress(each.data, most + 1)
    except zlib.error as error:
        raise ValueError(f"{each.path}: {error}") from error


def digest_of(data: bytes | None) -> str | None:
    """The SHA-256 of a file's bytes, None for no file."""
    return None if data is None else sha256(data).hexdigest()


def state_of(data: bytes | None, *, executable: bool) -> str | None:
    """The state of a file, with its mode."""
    digest = digest_of(data)
    return digest + EXECUTABLE if digest is not None and executable else digest


def bytes_of(state: str | None) -> str | None:
    """The SHA-256 in a state."""
    return None if state is None else state.removesuffix(EXECUTABLE)


def is_executable(state: str | None) -> bool:
    """Whether a state says that the file may be run."""
    return state is not None and state.endswith(EXECUTABLE)


# What of a layer is live in a folder.


class PatchPresence(str, Enum):
    """Whether what a patch does is in a folder's files."""

    LIVE = "live"  # every file has it
    MISSING = "not live"  # no file has it
    PARTLY = "partly live"  # some files have it
    UNKNOWN = "unknown"  # a file of it is neither the patched nor the base file
    LEFT_OUT = "left out"  # none of its files is installed


class AttestedPatch(Struct, frozen=True):
    """A patch, and the files because of which it is not simply live."""

    name: str  # its file's name in the series
    presence: PatchPresence  # how much of it is in the folder
    files: tuple[str, ...] = ()


class AttestedLayer(Struct, frozen=True):
    """What of a layer is in a folder.

    `neither` are files that are in no state of the layer's.
    """

    layer: Layer
    patches: tuple[AttestedPatch, ...]  # in the order of the series
    neither: tuple[str, ...]

    @property
    def live(self) -> bool:
        """Whether every patch with an installed file is live."""
        good = (PatchPresence.LIVE, PatchPresence.LEFT_OUT)
        return not self.neither and all(each.presence in good for each in self.patches)


def attest_layers(
    layers: Sequence[Layer], states: Callable[[str], Collection[str | None]]
) -> Iterator[AttestedLayer]:
    """Judge layers on one folder, lowest first, by what is there: `states` has it in all forms.

    Invariant: from the top down, `seen` is what a layer's files must be as the layers above found
    them. Where a layer above is in any state of its own, that is its state 0; else what is there.
    A layer that does not change a file's mode found the one that is there.
    """
    seen = {file.path: states(file.path) for layer in layers for file in layer.files}
    judged: list[AttestedLayer] = []
    for layer in reversed(layers):
        reached = {each.path: each.reached(seen[each.path]) for each in layer.files}
        judged.append(_attested(layer, reached))
        for each in layer.files:
            if reached[each.path] is not None:
                first, mode = each.states[0], any(map(is_executable, seen[each.path]))
                kept = first is not None and mode and not each.has_modes
                seen[each.path] = [f"{first}{EXECUTABLE}" if kept else first]
    yield from reversed(judged)


def _attested(layer: Layer, reached: Mapping[str, int | None]) -> AttestedLayer:
    touched: dict[str, list[LayerFile]] = {name: [] for name in layer.patches}
    for file in layer.files:
        for name in file.patches:
            touched.setdefault(name, []).append(file)
    patches = tuple(_presence(name, touched[name], reached) for name in layer.patches)
    neither = tuple(path for path, state in reached.items() if state is None)
    return AttestedLayer(layer, patches, neither)


def _presence(
    name: str, touched: Sequence[LayerFile], reached: Mapping[str, int | None]
) -> AttestedPatch:
    if not touched:
        return AttestedPatch(name, PatchPresence.LEFT_OUT)
    unknown = tuple(each.path for each in touched if reached[each.path] is None)
    if unknown:
        return AttestedPatch(name, PatchPresence.UNKNOWN, unknown)
    without = tuple(
        each.path for each in touched if (reached[each.path] or 0) <= each.patches.index(name)
    )
    if not without:
        return AttestedPatch(name, PatchPresence.LIVE)
    presence = PatchPresence.MISSING if len(without) == len(touched) else PatchPresence.PARTLY
    return AttestedPatch(name, presence, without)
