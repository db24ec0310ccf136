"""What a user can do about a checkout that was left alone because of work in it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from patchkit.errors import Problem
from patchkit.manifest.values import Component, Manifest
from patchkit.model.text import counted, listed
from patchkit.workspace.enter import Entered, Refusal, RefusalCause
from patchkit.workspace.state import BUMP

_SHOWN = 8


def ways_out(
    manifest: Manifest, component: Component, checkout: Path, entered: Entered
) -> tuple[Problem, ...]:
    """Why a checkout was left alone and the ways out, as one problem; none if it was not."""
    refusal = entered.refusal
    if refusal is None:
        return ()
    target = manifest.options(component.name)
    ways = _ways(entered, refusal, target, shlex.quote(str(checkout)))
    return (Problem(_what(refusal), component.name, in_columns(ways)),)


def in_columns(ways: Sequence[tuple[str, str]]) -> str:
    """(what it does, what to type) as a hint, one line each."""
    width = max(len(what) for what, _ in ways) + 1
    return "\n".join(f"{what + ':':{width}} {command}".rstrip(": ") for what, command in ways)


def _what(refusal: Refusal) -> str:
    names = listed(refusal.paths, _SHOWN)
    if refusal.cause is RefusalCause.EDITED:
        count = len(refusal.paths)
        what = counted(count, "edited file")
        return f"{what}: {names}{f' ({refusal.detail})' * bool(refusal.detail)}"
    if refusal.cause is RefusalCause.IN_THE_WAY:
        return f"untracked and in the way of the stack: {names}"
    if refusal.cause is RefusalCause.UNSAVABLE:
        return f"in the way of the stack, and no commit can hold it: {names}"
    if refusal.cause is RefusalCause.INTERRUPTED:
        changed = names or "the branch or the index"
        return f"changed after an apply was interrupted: {changed}"
    return refusal.detail


def _ways(entered: Entered, refusal: Refusal, target: str, checkout: str) -> list[tuple[str, str]]:
    """(what it does, what to type) for each way out, the gentlest first."""
    save = ("save it under a ref and apply", f"patchkit apply {target} --force")
    match refusal.cause:
        case RefusalCause.EDITED | RefusalCause.EXTRA_COMMITS:
            return [
                ("record it in the patches", f"patchkit refresh {target}"),
                ("look at it", f"patchkit diff {target}"),
                save,
            ]
        case RefusalCause.CONFLICTED:
            return [*_conflict_ways(entered, target, checkout), save]
        case RefusalCause.IN_THE_WAY:
            return [("move it away", ""), save]
        case RefusalCause.UNSAVABLE:
            return [("move it away", "")]
        case RefusalCause.INTERRUPTED:
            return [("look at it", f"git -C {checkout} diff"), save]
        case RefusalCause.OTHER_BRANCH:
            return _foreign_ways(target, checkout, ours=entered.before.ours)


def _conflict_ways(entered: Entered, target: str, checkout: str) -> list[tuple[str, str]]:
    if entered.before.operation != BUMP:
        return [("see how to finish or abort it", f"git -C {checkout} status")]
    return [
        ("resolve it and go on", f"patchkit continue {target}"),
        ("go back to before the bump", f"patchkit abort {target}"),
    ]


def _foreign_ways(target: str, checkout: str, *, ours: bool) -> list[tuple[str, str]]:
    if ours:
        return [
            ("go back to the stack", f"git -C {checkout} switch patchkit"),
            ("save uncommitted work and go back", f"patchkit apply {target} --force"),
        ]
    return [
        ("move it away, or choose another folder", f"patchkit apply {target} --workspace DIR"),
        ("rename it and make a checkout in its place", f"patchkit apply {target} --force"),
    ]
