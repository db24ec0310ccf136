"""What to do next about a patch that does not apply, in commands that can be typed as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

from patchkit.explain.values import Cause, PatchExplanation
from patchkit.manifest.values import Component, LocalSeries, Location, Manifest, PinnedPatch
from patchkit.series import LoadedPatch


def next_steps(
    explanation: PatchExplanation, patch: LoadedPatch, manifest: Manifest, component: Component
) -> tuple[str, ...]:
    """What to do, the best first; each of one line or several, commands on lines of their own."""
    if explanation.contained:
        entry = _entry(patch, manifest)
        return (f"drop it, the upstream has the whole change: delete {entry}",)
    steps = [
        *_contained_hunks(explanation, patch),
        *_renamed(explanation, patch, manifest),
        *_other_base(explanation, patch, component),
        *_by_hand(patch, manifest, component),
    ]
    if not steps:
        steps.append(f"take another version of {patch.name}: {_entry(patch, manifest)}")
    return (*steps, f"then see whether it fits:\n  patchkit check {_options(manifest, component)}")


def _contained_hunks(explanation: PatchExplanation, patch: LoadedPatch) -> Iterator[str]:
    there = [hunk for hunk in explanation.hunks if hunk.cause is Cause.CONTAINED]
    if there:
        lines = ", ".join(str(hunk.line) for hunk in there)
        many = "s" if len(there) > 1 else ""
        yield f"take out the hunk{many} at line{many} {lines} of the patch: made already"


def _renamed(
    explanation: PatchExplanation, patch: LoadedPatch, manifest: Manifest
) -> Iterator[str]:
    if explanation.renamed and isinstance(patch.origin, PinnedPatch):
        yield (
            f"take {patch.origin.path.rpartition('/')[2]} at a commit from before the renaming:\n"
            f"  `commit` and `sha256` of {_entry(patch, manifest)}"
        )
        return
    for name in explanation.renamed:
        old, new = (re.escape(each).replace("/", r"\/") for each in (name.expected, name.found))
        yield (
            f"write {name.found} for {name.expected} in the lines that it expects:\n"
            f"  sed -i '/^[ -]/s/\\b{old}\\b/{new}/g' {quote(patch.where)}"
        )


def _other_base(
    explanation: PatchExplanation, patch: LoadedPatch, component: Component
) -> Iterator[str]:
    origin = explanation.origin
    if origin.made_by:
        yield f"list before it what makes files that it expects: {' or '.join(origin.made_by)}"
    elif origin.commit is not None:
        yield (
            f"pin {component.name} to the commit for which it was made,\n"
            f"  {origin.commit},\n"
            f"or take a version of {patch.name} that was made for this pin"
        )


def _by_hand(patch: LoadedPatch, manifest: Manifest, component: Component) -> Iterator[str]:
    if isinstance(patch.origin, PinnedPatch):
        return
    checkout = f"workspace/{component.checkout or component.name}"
    yield (
        f"carry it over by hand: put # before {_entry(patch, manifest)}, then\n"
        f"  patchkit apply {_options(manifest, component)}\n"
        f"  git -C {quote(checkout)} apply --reject $PWD/{quote(patch.where)}\n"
        "  (edit: what does not fit is in *.rej files; git add new files)\n"
        f"  patchkit new NAME {_options(manifest, component)}"
    )


def _entry(patch: LoadedPatch, manifest: Manifest) -> str:
    """Where the patch is listed."""
    if isinstance(patch.origin, LocalSeries):
        return f"its line in {patch.origin.path}"
    return f"its entry at {_place(patch.origin.where, manifest)}"


def _place(where: Location, manifest: Manifest) -> str:
    try:
        return f"{where.file.relative_to(manifest.root).as_posix()}:{where.line}"
    except ValueError:
        return str(where)


def _options(manifest: Manifest, component: Component) -> str:
    return f"-m {quote(manifest.name)} -c {component.name}"
