"""Carry out what a refresh thought: all files together, then the branches of the checkouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.gitcmd.objects import write_objects
from patchkit.gitcmd.repository import ZERO, RefChange
from patchkit.lock import LockedComponent, load_lock, lock_bytes, merge_lock
from patchkit.ops.refresh_report import RefreshedComponent
from patchkit.stack import Stack
from patchkit.transaction import write_set
from patchkit.workspace import Checkout, Snapshot
from patchkit.workspace.move import Target, settle
from patchkit.workspace.save import free_saved_ref


@dataclass(frozen=True, slots=True)
class Move:
    """The branch of a checkout goes to a stack; `keep` is a stack that a ref must save first."""

    checkout: Checkout
    snapshot: Snapshot
    stack: Stack
    keep: Stack | None = None


@dataclass(frozen=True, slots=True)
class Thought:
    """A component thought through: its report, and what is still to be done.

    `writes` are files with their new bytes (None: removed), `locks` what lock files say then;
    `seen` are the files that this was thought from.
    """

    report: RefreshedComponent
    writes: Mapping[Path, bytes | None] = field(default_factory=dict)
    locks: Mapping[Path, Mapping[str, LockedComponent]] = field(default_factory=dict)
    move: Move | None = None
    seen: Mapping[Path, bytes | None] = field(default_factory=dict)


def carry_out(root: Path, thoughts: Sequence[Thought], *, when: int) -> list[Thought]:
    """Write all files of a project together, then move the checkouts; `when` names saved stacks.

    Raises SurroundingsError with nothing written. A checkout that cannot be moved once they are
    is a problem in its report: the next refresh finds the files and moves it.
    """
    writes: dict[Path, bytes | None] = {}
    seen: dict[Path, bytes | None] = {}
    locks: dict[Path, dict[str, LockedComponent]] = {}
    for thought in thoughts:
        writes.update(thought.writes)
        seen.update(thought.seen)
        for path, components in thought.locks.items():
            locks.setdefault(path, {}).update(components)
    for path, components in locks.items():
        seen[path] = path.read_bytes() if path.exists() else None
        writes[path] = lock_bytes(merge_lock(load_lock(path), components))
    if writes:
        write_set(root, writes, seen)
    return [_moved(thought, when) for thought in thoughts]


def _moved(thought: Thought, when: int) -> Thought:
    try:
        return _settled(thought, when)
    except PatchkitError as error:
        code, problems = error.exit_code, error.problems
    except OSError as error:
        code = ExitCode.ENVIRONMENT
        problems = (Problem(f"{error.filename}: {error.strerror or error}"),)
    name = thought.report.name
    behind = Problem(
        "the patch files are written, the checkout's branch is still behind them",
        name,
        "run patchkit refresh again",
    )
    told = tuple(replace(each, where=each.where or name) for each in problems)
    return replace(
        thought, report=replace(thought.report, exit_code=code, problems=(*told, behind))
    )


def _settled(thought: Thought, when: int) -> Thought:
    move, report = thought.move, thought.report
    if move is None:
        return thought
    repository = move.checkout.repository
    if move.keep is not None:
        write_objects(repository, move.keep.objects)
        ref = free_saved_ref(move.snapshot, when)
        change = RefChange(ref, move.keep.commit, ZERO)
        repository.update_refs([change], reason="patchkit: save before refresh")
        report = replace(report, saved=ref)
    target = Target(move.stack.base.commit, move.stack.commit)
    settle(move.checkout, move.snapshot, target, move.stack.objects)
    return replace(thought, report=report)
