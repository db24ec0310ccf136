"""What a user can do about a checkout that was left alone because of work in it."""

from __future__ import annotations

import shlex
from pathlib import Path

from patchkit.errors import Problem
from patchkit.manifest.values import Component, Manifest
from patchkit.workspace import Cause, Entered, Refusal

_SHOWN = 8


def ways_out(
    manifest: Manifest, component: Component, checkout: Path, entered: Entered
) -> tuple[Problem, ...]:
    """Why a checkout was left alone and the ways out, as one problem; none if it was not."""
    refusal = entered.refusal
    if refusal is None:
        return ()
    git = f"git -C {shlex.quote(str(checkout))}"
    target = f"-m {manifest.name} -c {component.name}"
    hint = "\n".join(_hints(refusal, git, target, checkout))
    return (Problem(_what(refusal), component.name, hint),)


def _what(refusal: Refusal) -> str:
    names = _some(refusal.paths)
    if refusal.cause is Cause.EDITED:
        count = len(refusal.paths)
        what = f"{count} edited file{'s' * (count != 1)}"
        return f"{what}: {names}{f' ({refusal.detail})' * bool(refusal.detail)}"
    if refusal.cause is Cause.IN_THE_WAY:
        return f"untracked and in the way of the stack: {names}"
    if refusal.cause is Cause.UNSAVABLE:
        return f"in the way of the stack, and no commit can hold it: {names}"
    if refusal.cause is Cause.INTERRUPTED:
        changed = names or "its branch or its index"
        return f"an apply was killed half-way, and since then somebody changed {changed}"
    return refusal.detail


def _hints(refusal: Refusal, git: str, target: str, checkout: Path) -> list[str]:
    save = f"patchkit apply {target} --force  saves it under a ref and goes on"
    keep = [
        f"patchkit refresh {target}  takes it into the patches",
        f"patchkit diff {target}  shows it",
    ]
    if refusal.cause in (Cause.EDITED, Cause.AHEAD):
        return [*keep, save]
    if refusal.cause is Cause.CONFLICTED:
        return [f"finish or abort it; {git} status  tells how", save]
    if refusal.cause is Cause.FOREIGN:
        return _foreign_hints(refusal, git, target, checkout)
    if refusal.cause is Cause.IN_THE_WAY:
        return ["move it away", save]
    if refusal.cause is Cause.UNSAVABLE:
        return ["move it away"]
    return [f"{git} diff  shows what it holds", save]


def _foreign_hints(refusal: Refusal, git: str, target: str, checkout: Path) -> list[str]:
    if refusal.detail.startswith(("on branch", "HEAD")):
        return [
            f"{git} switch patchkit  goes back to the stack",
            f"patchkit apply {target} --force  does that and saves what is uncommitted",
        ]
    return [
        f"move {checkout} away, or choose another folder with --workspace",
        f"patchkit apply {target} --force  renames it and makes a new checkout",
    ]


def _some(paths: tuple[str, ...]) -> str:
    shown = ", ".join(paths[:_SHOWN])
    more = len(paths) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
