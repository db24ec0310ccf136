"""The lock: what a manifest's stacks came to when they were last accepted.

    {"version": 1,
     "components": {
       "megatron-lm": {
         "base": {"commit": "...", "tree": "..."},
         "patches": [{"name": "one.patch", "sha256": "...", "tree": "..."}],
         "tree": "..."}},
     "overrides": {
       "mindspeed": {"megatron-lm": {"<commit>": {
         "megatron.core.utils.log": {"kind": "function", "signature": "(a)", "body": "..."}}}}}}

Beside the manifest as `<name>.lock.json`. `tree` of a patch is the tree after it, the last one the
result. `apply` compares with it and writes it where there is none; `refresh` and `bump` write it.
`overrides` is what somebody has reviewed of another component's code that a component replaces, by
the other's commit at which it was so; only `patchkit overrides --accept` writes it, everybody else
keeps it. The key is there only if something is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from patchkit.disk.files import read_plain, replace_file
from patchkit.errors import BadInputError, Problem
from patchkit.model.names import COMMIT_ID, SHA256, short_id
from patchkit.model.objects import CommitId, TreeId

if TYPE_CHECKING:
    from patchkit.stack.build import Stack
    from patchkit.stack.series import LoadedSeries

_VERSION = 1

# So many digits of an id tell two of them apart for a person.

_HINT = "repair it from version control, or delete it and run patchkit apply"


class LockedPatch(Struct, frozen=True):
    """A patch: its name, the SHA-256 of its bytes, the tree after it."""

    name: str
    sha256: str  # of the patch file
    tree: str


class LockedComponent(Struct, frozen=True):
    """A component's stack: base commit and tree, patches in order, the tree it results in."""

    commit: CommitId
    tree: str
    patches: tuple[LockedPatch, ...]
    result: str


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


class Lock(Struct, frozen=True):
    """What a lock file says, by component.

    `overrides` maps (replacing component, target component) to what was reviewed of the target.
    """

    components: Mapping[str, LockedComponent]
    overrides: Mapping[tuple[str, str], Reviewed] = field(default_factory=dict)


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
    return LockedComponent(stack.base.commit, stack.base.tree, tuple(patches), tree)


class LockDifference(Struct, frozen=True):
    """One difference between the lock and what a stack comes to now."""

    what: str  # what is there, and what the lock says
    edit: str = ""  # the edit of patch files or series behind it, "" for none: "one.patch edited"
    patch: str = ""  # the patch whose bytes or presence differ; "" for the base, or the order
    is_base: bool = False  # the commit that the patches go on

    def is_local(self, series: LoadedSeries) -> bool:
        """Whether it is an edit of the project's own patch files, or of a series.

        Not so a pin, what an upstream or another repository's patch came to, or the result.
        """
        fixed = {each.name for each in series.patches if each.path is None}
        return bool(self.edit) and self.patch not in fixed


def compare(recorded: LockedComponent, actual: LockedComponent) -> tuple[LockDifference, ...]:
    """What differs between the lock and what a stack comes to now."""
    return tuple(_differences(recorded, actual))


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
            hint = f"take either side (git checkout --theirs {path.name}), then patchkit apply"
            what = "has git's conflict markers: a merge of it is not resolved"
            raise BadInputError(Problem(what, f"{path}:{marks[0]}", hint)) from error
        where = f"{path}:{error.lineno}"
        raise BadInputError(Problem(f"not JSON: {error.msg}", where, _HINT)) from error
    except _ShapeError as error:
        raise BadInputError(Problem(str(error), str(path), _HINT)) from error
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise BadInputError(Problem(f"not a lock: {error}", str(path), _HINT)) from error


def lock_bytes(lock: Lock) -> bytes:
    """The lock as it stands in its file: the same bytes for the same lock."""
    document: dict[str, object] = {
        "version": _VERSION,
        "components": {name: _plain(each) for name, each in lock.components.items()},
    }
    if lock.overrides:
        document["overrides"] = _plain_overrides(lock.overrides)
    return json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"


def write_lock(path: Path, lock: Lock) -> bool:
    """Make the file hold the lock, by one rename; False if it does already (nothing is written)."""
    data = lock_bytes(lock)
    if path.exists() and path.read_bytes() == data:
        return False
    replace_file(path, data)
    return True


def merge_lock(
    lock: Lock | None, done: Mapping[str, LockedComponent], *, drop: Collection[str] = ()
) -> Lock:
    """The lock with some components put in and others dropped; the rest stays."""
    kept = Lock({}) if lock is None else lock
    components = {n: c for n, c in {**kept.components, **done}.items() if n not in drop}
    overrides = {pair: each for pair, each in kept.overrides.items() if not {*pair} & {*drop}}
    return Lock(components, overrides)


def _differences(recorded: LockedComponent, actual: LockedComponent) -> Iterator[LockDifference]:
    if recorded.commit != actual.commit:
        now, then = short_id(actual.commit), short_id(recorded.commit)
        yield LockDifference(f"the base is {now}, the lock says {then}", is_base=True)
    elif recorded.tree != actual.tree:
        now, then = short_id(actual.tree), short_id(recorded.tree)
        yield LockDifference(f"the base's tree is {now}, the lock says {then}")
    found = list(_patch_differences(recorded.patches, actual.patches))
    yield from found
    # where base and patches agree, so does the result, or the lock was not written by us
    if not found and recorded.tree == actual.tree and recorded.result != actual.result:
        now, then = short_id(actual.result), short_id(recorded.result)
        yield LockDifference(f"the resulting tree is {now}, the lock says {then}")


def _patch_differences(
    recorded: Sequence[LockedPatch], actual: Sequence[LockedPatch]
) -> Iterator[LockDifference]:
    """Patches that came, went or changed, by name; then their order, as one difference."""
    old, new = ({each.name: each for each in rows} for rows in (recorded, actual))
    for name in old:
        if name not in new:
            yield LockDifference(
                f"{name} is in the lock and not in the series", f"{name} removed", name
            )
    for name, patch in new.items():
        if name not in old:
            yield LockDifference(f"{name} is not in the lock", f"{name} added", name)
        elif patch.sha256 != old[name].sha256:
            now, then = short_id(patch.sha256), short_id(old[name].sha256)
            what = f"{name} has changed: sha256 {now}, the lock says {then}"
            yield LockDifference(what, f"{name} edited", name)
    before = [name for name in old if name in new]
    after = [name for name in new if name in old]
    moved = next((pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]), None)
    if moved is not None:
        what = f"the patches are in another order: {moved[1]} now comes before {moved[0]}"
        yield LockDifference(what, f"reordered: {moved[1]} now before {moved[0]}")


def _plain(component: LockedComponent) -> dict[str, object]:
    return {
        "base": {"commit": component.commit, "tree": component.tree},
        "patches": [
            {"name": patch.name, "sha256": patch.sha256, "tree": patch.tree}
            for patch in component.patches
        ],
        "tree": component.result,
    }


def _plain_overrides(overrides: Mapping[tuple[str, str], Reviewed]) -> dict[str, object]:
    document: dict[str, dict[str, dict[str, dict[str, object]]]] = {}
    for (name, target), reviewed in overrides.items():
        commits = document.setdefault(name, {}).setdefault(target, {})
        for target_name, each in reviewed.items():
            fields = {"kind": each.kind, "signature": each.signature, "body": each.body}
            commits.setdefault(each.commit, {})[target_name] = fields
    return dict(document)


class _ShapeError(Exception):
    """Not a lock; says what and where."""


def _parse(document: object) -> Lock:
    has_overrides = isinstance(document, dict) and "overrides" in document
    keys = {"version", "components", *(["overrides"] if has_overrides else [])}
    top = _object(document, "the lock", keys)
    if top["version"] != _VERSION:
        raise _ShapeError(f"version {top['version']} of the lock; this patchkit knows {_VERSION}")
    components = top["components"]
    if not isinstance(components, dict):
        raise _ShapeError("components is not an object")
    locked = {name: _component(name, each) for name, each in components.items()}
    return Lock(locked, dict(_overrides(top.get("overrides", {}))))


def _overrides(document: object) -> Iterator[tuple[tuple[str, str], Reviewed]]:
    for name, targets in _entries(document, "overrides"):
        for target, commits in _entries(targets, f"overrides.{name}"):
            where = f"overrides.{name}.{target}"
            reviewed: dict[str, ReviewedTarget] = {}
            for commit, names in _entries(commits, where):
                _hex(commit, where, 40)
                for each, fields in _entries(names, where):
                    reviewed[each] = _reviewed(f"{where}: {each}", commit, fields)
            yield (name, target), reviewed


def _reviewed(where: str, commit: str, document: object) -> ReviewedTarget:
    fields = _object(document, where, {"kind", "signature", "body"})
    kind, signature, body = (fields[key] for key in ("kind", "signature", "body"))
    if not isinstance(kind, str) or not isinstance(signature, str) or not isinstance(body, str):
        raise _ShapeError(f"{where}: kind, signature and body are strings")
    return ReviewedTarget(commit, kind, signature, body)


def _entries(document: object, where: str) -> Iterable[tuple[str, object]]:
    if not isinstance(document, dict):
        raise _ShapeError(f"{where} is not an object")
    return document.items()


def _component(name: str, document: object) -> LockedComponent:
    fields = _object(document, name, {"base", "patches", "tree"})
    base = _object(fields["base"], f"{name}.base", {"commit", "tree"})
    patches = fields["patches"]
    if not isinstance(patches, list):
        raise _ShapeError(f"{name}.patches is not an array")
    return LockedComponent(
        commit=CommitId(_hex(base["commit"], f"{name}.base.commit", 40)),
        tree=TreeId(_hex(base["tree"], f"{name}.base.tree", 40)),
        patches=tuple(_patch(f"{name}.patches[{i}]", each) for i, each in enumerate(patches)),
        result=_hex(fields["tree"], f"{name}.tree", 40),
    )


def _patch(where: str, document: object) -> LockedPatch:
    fields = _object(document, where, {"name", "sha256", "tree"})
    name = fields["name"]
    if not isinstance(name, str):
        raise _ShapeError(f"{where}.name is not a string")
    sha256 = _hex(fields["sha256"], f"{where}.sha256", 64)
    return LockedPatch(name, sha256, TreeId(_hex(fields["tree"], f"{where}.tree", 40)))


def _object(document: object, where: str, keys: set[str]) -> dict[str, object]:
    if not isinstance(document, dict) or set(document) != keys:
        raise _ShapeError(f"{where} is not an object with the keys {', '.join(sorted(keys))}")
    return document


def _hex(value: object, where: str, length: int) -> str:
    pattern = COMMIT_ID if length == 40 else SHA256
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _ShapeError(f"{where} is not {length} lower-case hex digits")
    return value
