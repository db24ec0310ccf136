"""What clashes at the commit that broke a patch, in the words of `explain`."""

from __future__ import annotations

from msgspec.structs import replace

from patchkit.drift.along import Bring
from patchkit.drift.judging import State
from patchkit.explain.explaining import explain_patch
from patchkit.explain.terrain import Overlay, Terrain
from patchkit.explain.values import Origin, PatchExplanation
from patchkit.gitcmd.firstparent import removed_and_added
from patchkit.histories import History
from patchkit.model.objects import SUBMODULE_MODE, GitObject
from patchkit.model.outcome import PatchOutcome, Reason, Status
from patchkit.model.tree import ObjectSource, Tree
from patchkit.stack import SeriesPatch, StackBuilder

# So many files that a commit adds are looked into for one that it takes away.
_CANDIDATES = 40


def explain_clash(
    history: History,
    source: ObjectSource,
    patch: SeriesPatch,
    *,
    commit: str,
    met: State,
    bring: Bring,
) -> PatchExplanation | None:
    """Why a patch does not apply on `commit`, where it meets `met`; None if it does.

    That is what earlier patches leave there; `source` has it. `bring` is asked for files into which
    one that vanished may have been renamed.
    """
    base = history.base(commit)
    tree, objects = Tree(source, base.tree), list[GitObject]()
    for path, entry in met.items():
        if tree.entry(path) != entry:
            tree = tree.remove(path) if entry is None else tree.put(path, entry)
    base = replace(base, tree=tree.write(objects))
    builder = StackBuilder(Overlay(source, objects), base)
    outcome = builder.push(patch)
    if outcome.status is not Status.CONFLICTED:
        return None
    _bring_renamed(history, commit, outcome, bring)
    terrain = Terrain(Overlay(source, (*objects, *builder.objects)), builder.tree_id)
    explained = explain_patch(terrain, patch, outcome, base=commit)
    # which files were others when the patch was made is no news: the branch moves on
    return replace(explained, origin=Origin(0, ()))


def _bring_renamed(history: History, commit: str, outcome: PatchOutcome, bring: Bring) -> None:
    """Bring what the commit adds that looks like a file which it takes away."""
    gone = [clash.path for clash in outcome.clashes if clash.reason is Reason.MISSING]
    if not gone:
        return
    removed, added = removed_and_added(history.repository, commit)
    wanted: list[str] = []
    for path in gone:
        if path in removed:
            kind, name = _kind(path), path.rpartition("/")[2]
            like = [other for other in added if _kind(other) == kind]
            like.sort(key=lambda other: other.rpartition("/")[2] != name)
            wanted += like[:_CANDIDATES]
    bring(added[path].oid for path in wanted if added[path].mode != SUBMODULE_MODE)


def _kind(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2]
