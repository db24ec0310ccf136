"""What a user can do about a checkout that was left alone because of work in it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from patchkit.errors import Problem
from patchkit.manifest.values import Component, Manifest
from patchkit.model.names import short_id
from patchkit.model.text import counted, listed
from patchkit.workspace.enter import Entered, Refusal, RefusalCause
from patchkit.workspace.state import CheckoutState, Snapshot

_SHOWN = 8


def ways_out(
    manifest: Manifest, component: Component, checkout: Path, entered: Entered
) -> tuple[Problem, ...]:
    """Why a checkout was left alone and the ways out, as one problem; none if it was not."""
    refusal = entered.refusal
    if refusal is None:
        return ()
    target = manifest.options(component.name)
    ways = _ways(entered, refusal, target, checkout)
    return (Problem(_what(refusal), component.name, in_columns(ways)),)


def in_columns(ways: Sequence[tuple[str, str]]) -> str:
    """(what it does, what to type) as a hint, one line each."""
    width = max(len(what) for what, _ in ways) + 1
    return "\n".join(f"{what + ':':{width}} {command}".rstrip(": ") for what, command in ways)


def conflict_ways(target: str, resolve: str, *, proposed: bool) -> list[tuple[str, str]]:
    """(what it does, what to type) for each way on from a conflict that waits.

    `resolve` says where the conflict is, `proposed` whether there is a merge to take.
    """
    take = ("or take what is proposed", f"patchkit continue --accept {target}")
    return [
        (resolve, f"patchkit continue {target}"),
        *([take] if proposed else []),
        ("or leave out the patch", f"patchkit skip {target}"),
        ("or go back", f"patchkit abort {target}"),
    ]


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


def _ways(entered: Entered, refusal: Refusal, target: str, checkout: Path) -> list[tuple[str, str]]:
    """(what it does, what to type) for each way out, the gentlest first."""
    git = f"git -C {shlex.quote(str(checkout))}"
    save = ("save it under a ref and apply", f"patchkit apply {target} --force")
    match refusal.cause:
        case RefusalCause.EDITED | RefusalCause.EXTRA_COMMITS:
            return [
                ("record it in the patches", f"patchkit refresh {target}"),
                ("look at it", f"{git} diff refs/patchkit/applied"),
                save,
            ]
        case RefusalCause.CONFLICTED:
            return [*ways_on(entered.before, target, checkout), save]
        case RefusalCause.IN_THE_WAY:
            return [("move it away", ""), save]
        case RefusalCause.UNSAVABLE:
            return [("move it away", "")]
        case RefusalCause.INTERRUPTED:
            return [("look at it", f"{git} diff"), save]
        case RefusalCause.OTHER_BRANCH:
            return ways_on(entered.before, target, checkout)


def ways_on(
    snapshot: Snapshot, target: str, checkout: Path, *, proposed: bool = False
) -> list[tuple[str, str]]:
    """(what it does, what to type) from a conflict, or from another branch; none from elsewhere.

    `proposed` says whether there is a merge to take.
    """
    git = f"git -C {shlex.quote(str(checkout))}"
    match snapshot.operation:
        case "bump" | "import":
            resolve = f"resolve the conflict in {checkout}, then"
            return conflict_ways(target, resolve, proposed=proposed)
        case "conflict":
            return [
                (f"resolve it in {checkout}, then", f"{git} add --update"),
                ("and take it up", f"patchkit refresh {target}"),
                ("or go back", f"patchkit undo {target}"),
            ]
        case "":
            elsewhere = snapshot.state is CheckoutState.OTHER_BRANCH
            return _ways_back(snapshot, target, checkout) if elsewhere else []
    return [("see how to finish or abort it", f"{git} status")]


def _ways_back(snapshot: Snapshot, target: str, checkout: Path) -> list[tuple[str, str]]:
    """From another branch, or from what is no checkout of ours."""
    if not snapshot.ours:
        beside = shlex.quote(f"{checkout.parent}-2")
        return [
            ("make a checkout elsewhere", f"patchkit apply {target} --workspace {beside}"),
            ("or rename it, and make one in its place", f"patchkit apply {target} --force"),
        ]
    git = f"git -C {shlex.quote(str(checkout))}"
    detached = snapshot.branch is None
    keep = [f"{git} switch --create work-{short_id(str(snapshot.head))}"] if detached else []
    keep += [f"{git} commit --all -m 'My edits'"] if snapshot.edited else []
    back = f"{git} switch patchkit"
    if (not snapshot.edited and snapshot.head in (snapshot.base, snapshot.applied)) or not keep:
        return [("go back to the stack", back)]
    return [("keep what is there on a branch", " && ".join(keep)), ("then go back", back)]
