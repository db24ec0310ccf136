"""What verdicts on a series of patches follow from, for the keys by which they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from patchkit.disk.result_cache import code_digest
from patchkit.model.objects import CommitId
from patchkit.stack.series import LoadedPatch

if TYPE_CHECKING:  # an answer that is kept whole loads nothing that would find it
    from patchkit.model.resolution import Resolution
    from patchkit.stack.generated import PatchRecipe

#: The code whose rules the verdicts are.
_ENGINE = (
    "carry",
    "model",
    "model/merging",
    "drift",
    "explain",
    "gitcmd",
    "refresh",
    "stack",
)


def series_facts(
    upstream: str,
    pin: CommitId,
    patches: Sequence[LoadedPatch],
    remembered: Mapping[str, Resolution],
) -> list[object]:
    """What it follows from, beside a commit to carry to, what patches without recipes come to."""
    series = [[e.name, e.sha256, e.strip, e.subdirectory, e.into] for e in patches]
    decided = repr(sorted(remembered.items(), key=lambda item: item[0])).encode()
    return [code_digest(*_ENGINE), sha256(decided).hexdigest(), upstream, pin, series]


def rule_facts(recipes: Mapping[str, PatchRecipe]) -> Mapping[str, str]:
    """What it follows from what recipes make."""
    return {name: recipe.facts for name, recipe in sorted(recipes.items())}
