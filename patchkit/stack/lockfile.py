"""The lock: what a manifest's stacks came to when they were last accepted.

    {"version": 1,
     "components": {
       "megatron-lm": {
         "base": {"commit": "...", "tree": "..."},
         "files": {"megatron/core/utils.py": {"": "100644 ...", "one.patch": "100644 ..."}},
         "patches": [{"name": "one.patch", "sha256": "...", "tree": "..."}],
         "tree": "..."}},
     "overrides": {
       "mindspeed": {"megatron-lm": {"<commit>": {
         "megatron.core.utils.log": {"kind": "function", "signature": "(a)", "body": "..."}}}}},
     "names": {"megatron-lm": {"core_v0.16.0": "<commit>"}}}

Beside the manifest as `<name>.lock.json`. `tree` of a patch is the tree after it, the last one the
result. `files` has mode and blob id of each file that a patch changes, in the base ("") and after
each patch that changes it, null for no file: by them `attest` knows the files of a machine that has
neither cache nor git. `apply` compares with the lock and writes it where there is none; `refresh`
and `bump` write it.
`overrides` is what somebody has reviewed of another component's code that a component replaces, by
the other's commit at which it was so; only `patchkit check --only overrides --accept` writes it,
everybody else keeps it. `names` has the commits of tags that stand where a pin does (`fetch` and
`bump` write them, the one before stays for `undo`), and as `heads/NAME` that of the branch which
`refresh --from-branch` read last. These keys are there only if something is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from msgspec import Meta, Struct, ValidationError, to_builtins

from patchkit.disk.files import read_plain, replace_file
from patchkit.errors import BadInputError, Problem
from patchkit.model.decoding import from_builtins
from patchkit.model.objects import CommitId, TreeEntry

if TYPE_CHECKING:
    from patchkit.stack.build import Stack, StackFile
    from patchkit.stack.series import LoadedSeries

_VERSION = 1

# So many digits of an id tell two of them apart for a person.

_HINT = "repair it from version control, or delete it, then `patchkit apply`"


_ObjectId = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z")]


class LockedPatch(Struct, frozen=True, forbid_unknown_fields=True):
    """A patch: its name, the SHA-256 of its bytes, the tree after it."""

    name: str  # of the patch file
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]  # of the patch file
    tree: _ObjectId  # after the patch


_Entry = Annotated[str, Meta(pattern=r"^1[0-7]{5} [0-9a-f]{40}\Z")]
#: Path -> "" for the base, or the name of a patch -> mode and blob id; None for no file.
LockedFiles = dict[str, dict[str, _Entry | None]]


class LockedComponent(Struct, frozen=True):
    """A component's stack: base commit and tree, patches in order, the tree it results in.

    `files` are those that the patches change.
    """

    commit: CommitId
    tree: str
    patches: tuple[LockedPatch, ...]
    result: str
    files: LockedFiles = {}

    @property
    def stack_files(self) -> tuple[StackFile, ...]:
        """What the patches make of each file."""
        from patchkit.stack.build import StackFile  # noqa: PLC0415 (most commands read no files)

        found = []
        for path, rows in self.files.items():
            names = [each.name for each in self.patches if each.name in rows]
            texts = [(rows.get(name) or "").split() for name in ("", *names)]
            entries = [TreeEntry(int(each[0], 8), each[1]) if each else None for each in texts]
            found.append(StackFile(path, tuple(names), tuple(entries)))
        return tuple(found)


def lock_digest(locked: LockedComponent | None) -> str:
    """The SHA-256 of a component's stack in a lock: two stacks are the same if theirs is."""
    fields = to_builtins(locked) or {}
    fields.pop("files", None)  # they follow from the others; receipts name a stack by this
    return sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


class ReviewedTarget(Struct, frozen=True):
    """Code that another component replaces, as it was when somebody looked at it.

    `commit` is the base commit at which it was so; the rest as in overrides.standing.Standing.
    """

    commit: str
    kind: str  # see TargetKind
    signature: str  # how it is called; "" for what cannot be
    body: str  # a hash of its code


#: Dotted name -> what was reviewed.
Reviewed = Mapping[str, ReviewedTarget]


#: A tag, or a short id -> its commit.
PinNames = Mapping[str, CommitId]


class Lock(Struct, frozen=True):
    """What a lock file says, by component.

    `overrides` maps (replacing component, target component) to what was reviewed of the target,
    `names` a component to the commits of the names that stand, or stood, where its pin does.
    """

    components: Mapping[str, LockedComponent]
    overrides: Mapping[tuple[str, str], Reviewed] = {}
    names: Mapping[str, PinNames] = {}


#: Lock file -> component -> what it is to say of that.
Locks: TypeAlias = Mapping[Path, Mapping[str, LockedComponent]]


def recorded_in(lock: Lock | None, name: str) -> LockedComponent | None:
    """What a lock, if there is one, says of a component, if it knows it."""
    return lock.components.get(name) if lock is not None else None


def lock_component(stack: Stack, series: LoadedSeries) -> LockedComponent:
    """What the lock has to say about a clean stack, built from `series`."""
    tree = stack.base.tree
    patches = []
    for outcome, patch in zip(stack.outcomes, series.patches, strict=True):
        tree = outcome.tree or tree  # a patch that changes nothing has no tree of its own
        patches.append(LockedPatch(patch.name, patch.sha256, tree))
    files: LockedFiles = {}
    for file in stack.files:
        states = [(entry and f"{entry.mode:o} {entry.oid}") or None for entry in file.entries]
        files[file.path] = dict(zip(("", *file.patches), states, strict=True))
    return LockedComponent(stack.base.commit, stack.base.tree, tuple(patches), tree, files)


def load_lock(path: Path) -> Lock | None:
    """The lock in a file; None if there is no such file, BadInputError if it cannot be read."""
    try:
        text = read_plain(path).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(Problem(f"cannot be read: {error}", str(path), _HINT)) from error
    try:
        return _parse(json.loads(text))
    except json.JSONDecodeError as error:
        marks = [n for n, line in enumerate(text.split("\n"), 1) if line.startswith("<<<<<<< ")]
        if marks:
            hint = f"take either side (`git checkout --theirs {path.name}`), then `patchkit apply`"
            what = "has git's conflict markers: a merge of it is not resolved"
            raise BadInputError(Problem(what, f"{path}:{marks[0]}", hint)) from error
        where = f"{path}:{error.lineno}"
        raise BadInputError(Problem(f"not JSON: {error.msg}", where, _HINT)) from error
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise BadInputError(Problem(f"not a lock: {error}", str(path), _HINT)) from error


def lock_bytes(lock: Lock) -> bytes:
    """The lock as it stands in its file: the same bytes for the same lock."""
    components: dict[str, object] = {
        name: _Component(_Base(each.commit, each.tree), each.patches, each.result, each.files)
        for name, each in lock.components.items()
    }
    document = _Document(_VERSION, components, names=lock.names)
    for (name, target), reviewed in lock.overrides.items():
        commits = document.overrides.setdefault(name, {}).setdefault(target, {})
        for each, row in reviewed.items():
            commits.setdefault(row.commit, {})[each] = _Review(row.kind, row.signature, row.body)
    return json.dumps(to_builtins(document), indent=2, sort_keys=True).encode() + b"\n"


def write_lock(path: Path, lock: Lock) -> bool:
    """Make the file hold the lock, by one rename; False if it does already (nothing is written)."""
    data = lock_bytes(lock)
    if path.exists() and path.read_bytes() == data:
        return False
    replace_file(path, data)
    return True


def merge_lock(
    lock: Lock | None,
    done: Mapping[str, LockedComponent],
    *,
    drop: Collection[str] = (),
    names: Mapping[str, PinNames] = MappingProxyType({}),
) -> Lock:
    """The lock with some components, and the names of pins, put in and others dropped; the rest
    stays, and of a component with new names those of branches.
    """
    kept = Lock({}) if lock is None else lock
    components = {n: c for n, c in {**kept.components, **done}.items() if n not in drop}
    overrides = {pair: each for pair, each in kept.overrides.items() if not {*pair} & {*drop}}
    named = {n: each for n, each in kept.names.items() if n not in drop}
    for name, new in names.items():
        branches = {n: c for n, c in kept.names.get(name, {}).items() if n.startswith("heads/")}
        named[name] = {**branches, **new}
    return Lock(components, overrides, named)


# The file, as JSON has it.


class _Base(Struct, frozen=True, forbid_unknown_fields=True):
    commit: _ObjectId  # that the patches go on
    tree: _ObjectId  # of that commit


class _Component(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    base: _Base  # the upstream
    patches: tuple[LockedPatch, ...]  # in the order of the series
    tree: _ObjectId  # after the last patch
    files: LockedFiles  # that the patches change


class _Review(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str  # as in ReviewedTarget
    signature: str  # as in ReviewedTarget
    body: str  # as in ReviewedTarget


class _Document(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    version: int  # of the format
    components: dict[str, object]  # of each the _Component
    #: Replacing component -> target -> commit -> dotted name -> what was reviewed.
    overrides: dict[str, dict[str, dict[_ObjectId, dict[str, _Review]]]] = {}
    #: Component -> name -> commit.
    names: Mapping[str, Mapping[str, _ObjectId]] = {}


_Part = TypeVar("_Part", _Document, _Component)


def _parse(document: object) -> Lock:
    """The lock; ValueError if it is none."""
    version = document.get("version", _VERSION) if isinstance(document, dict) else _VERSION
    if version != _VERSION:
        raise ValueError(f"version {version} of the lock; this patchkit knows {_VERSION}")
    found = _converted(document, _Document, "the lock")
    overrides = {
        (name, target): {
            each: ReviewedTarget(commit, row.kind, row.signature, row.body)
            for commit, names in commits.items()
            for each, row in names.items()
        }
        for name, targets in found.overrides.items()
        for target, commits in targets.items()
    }
    components = {}
    for name, part in found.components.items():
        each = _converted(part, _Component, name)
        commit = CommitId(each.base.commit)
        components[name] = LockedComponent(
            commit, each.base.tree, each.patches, each.tree, each.files
        )
    return Lock(components, overrides, found.names)  # type: ignore[arg-type]


def _converted(document: object, kind: type[_Part], name: str) -> _Part:
    try:
        return from_builtins(document, kind)
    except ValidationError as error:
        raise ValueError(f"{name}: {error}") from error
