"""What to do next about a patch that does not apply, in commands that can be typed as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

from patchkit.explain.values import Cause, PatchExplanation
from patchkit.manifest.values import Component, LocalSeries, Manifest, PinnedPatch
from patchkit.series import LoadedPatch


def next_steps(
    explanation: PatchExplanation, patch: LoadedPatch, manifest: Manifest, component: Component
) -> tuple[str, ...]:
    """What to do, the best first; each is a line or two, commands between backticks."""
    if explanation.contained:
        return (f"drop it: the upstream has the whole change. {_drop(patch)}",)
    steps = [*_contained_hunks(explanation, patch), *_renamed(explanation, patch)]
    steps += _other_base(explanation, patch, component)
    if not isinstance(patch.origin, PinnedPatch):
        steps.append(_by_hand(patch, manifest, component))
    check = f"patchkit check -m {manifest.name} -c {component.name}"
    return (*steps, f"see whether it fits: `{check}`")


def _drop(patch: LoadedPatch) -> str:
    if isinstance(patch.origin, LocalSeries):
        return f"Delete its line in {patch.origin.path}"
    return f"Delete its entry at {patch.origin.where}"


def _contained_hunks(explanation: PatchExplanation, patch: LoadedPatch) -> Iterator[str]:
    there = [hunk for hunk in explanation.hunks if hunk.cause is Cause.CONTAINED]
    if there:
        lines = ", ".join(str(hunk.line) for hunk in there)
        many = "s" if len(there) > 1 else ""
        yield f"take out the hunk{many} at line{many} {lines} of {patch.where}: it is there already"


def _renamed(explanation: PatchExplanation, patch: LoadedPatch) -> Iterator[str]:
    for name in explanation.renamed:
        what = f"{name.found} for {name.expected}"
        if isinstance(patch.origin, PinnedPatch):
            entry = patch.origin
            yield (
                f"take {entry.path} at a commit from before the renaming:"
                f" `commit` and `sha256` at {entry.where}"
            )
            return
        pattern = re.escape(name.expected).replace("/", r"\/")
        command = f"sed -i '/^[ -]/s/\\b{pattern}\\b/{name.found.replace('/', chr(92) + '/')}/g'"
        yield f"write {what} in its context: `{command} {quote(patch.where)}`"


def _other_base(
    explanation: PatchExplanation, patch: LoadedPatch, component: Component
) -> Iterator[str]:
    origin = explanation.origin
    if origin.made_by:
        names = " or ".join(origin.made_by)
        yield f"list {names} before it: some of its files are as that patch leaves them"
    elif origin.commit is not None:
        yield (
            f"pin {component.name} to {origin.commit}, for which it was made"
            f" ({origin.commit_matches} of {origin.known} files match),"
            f" or take a {patch.name} made for this pin"
        )


def _by_hand(patch: LoadedPatch, manifest: Manifest, component: Component) -> str:
    return (
        f"or carry it over by hand: {_set_aside(patch)}, `patchkit apply -m {manifest.name}"
        f" -c {component.name}`, then in the checkout `git apply --reject` the patch and edit"
    )


def _set_aside(patch: LoadedPatch) -> str:
    place = patch.origin.path if isinstance(patch.origin, LocalSeries) else str(patch.origin.where)
    return f"put # before {patch.name} in {place}"
