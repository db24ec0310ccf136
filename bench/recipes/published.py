"""What a recipe makes of @jit_fuser, against the patch that slime published for NPUs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patchkit.extensions.recipes.recipe_file import load_recipe
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import Overlay
from patchkit.model.diff_parse import parse_diff
from patchkit.model.mail import parse_patch
from patchkit.model.objects import CommitId
from patchkit.model.patch import FileChange, Hunk
from patchkit.stack.build import SeriesPatch, build_stack
from patchkit.stack.generated import rewrite
from patchkit.stack.patch_files import Layout, canonical_diffs

_MEGATRON = "3714d81d418c9f1bca4594fc35f9e8289f652862"
#: The slime commit that holds the NPU patch, and the one whose base patch comes before it.
_NPU = "2432b3db2:docker/npu_patch/megatron.patch"
_BASE = "2418a7844abe4d490a1676dcf88fc3401adab362:docker/patch/v0.5.7/megatron.patch"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many hunks take decorators off, how many the recipe made in the same bytes, and others.

    `extra` are hunks that the recipe made and the published patch has not.
    """

    hunks: int
    mechanical: int
    same: int
    extra: int
    decorators: int

    def __str__(self) -> str:
        return (
            f"{self.mechanical} of {self.hunks} hunks take {self.decorators} decorators off; "
            f"{self.same} made by the recipe in the same bytes, {self.extra} beyond"
        )


def compare_published(megatron: Repository, slime: Path) -> Comparison:
    """Run the recipe where the published patch stands, after the base patch, hunk by hunk."""
    clone = Repository(slime.absolute())
    if not clone.exists:
        clone = Repository(slime.absolute() / ".git", slime.absolute())
    base, npu = (clone.git("show", name).out for name in (_BASE, _NPU))
    series = [SeriesPatch("base.patch", parse_patch(base, name="base.patch"), 1, "")]
    recipe = load_recipe(Path(__file__).with_name("published.recipe.yml"))
    with reading(megatron) as reader:
        stack = build_stack(reader, read_base(megatron, CommitId(_MEGATRON)), series)
        made = rewrite(Overlay(reader, stack.objects), stack.tree, recipe)
        with overlay(megatron) as trial:
            write_objects(trial, (*stack.objects, *made.objects))
            (diff,) = canonical_diffs(trial, [(stack.tree, made.tree_id)], Layout())
    changes = {change.path: change for change in parse_diff(diff)}
    ours = {_bytes(change, hunk) for change in changes.values() for hunk in change.hunks}
    theirs = [(change, hunk) for change in parse_patch(npu, name="").changes
              for hunk in change.hunks]  # fmt: skip
    mechanical = [(change, hunk) for change, hunk in theirs if _takes_off(hunk)]
    same = sum(
        _bytes(change, hunk) in ours and _same_blobs(change, changes[change.path])
        for change, hunk in mechanical
    )
    decorators = sum(line.startswith(b"-") for _, hunk in mechanical for line in hunk.lines)
    return Comparison(len(theirs), len(mechanical), same, len(ours) - same, decorators)


def _takes_off(hunk: Hunk) -> bool:
    removed = [line[1:].strip() for line in hunk.lines if line[:1] == b"-"]
    added = [line[1:].strip() for line in hunk.lines if line[:1] == b"+"]
    return set(removed) == {b"@jit_fuser"} and not any(added)


def _same_blobs(short: FileChange, full: FileChange) -> bool:
    """Whether the whole file is the same before and after, as the abbreviated ids say."""
    pairs = ((short.old_blob, full.old_blob), (short.new_blob, full.new_blob))
    return all(one and other and other.startswith(one) for one, other in pairs)


def _bytes(change: FileChange, hunk: Hunk) -> tuple[str, bytes]:
    """A hunk as it stands in the file, with what stands in its @@ line."""
    counts = (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count)
    return change.path, b"%d %d %d %d" % counts + hunk.section + b"".join(hunk.lines)
