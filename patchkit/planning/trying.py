"""Carry a stack to the commits that a plan names, with all that a bump knows.

The forecast of a whole branch sees the files of the patches and where these went. A bump looks
further: recipes at all files in their scopes, and merging at those into which code was moved. So
what a plan says of a commit to go to is tried there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry import carry_stack
from patchkit.drift.along import Along, tree_of
from patchkit.drift.forecast import bring_scope
from patchkit.errors import BadInputError
from patchkit.gitcmd.between import Between
from patchkit.gitcmd.firstparent import entries_at
from patchkit.gitcmd.objects import MissingObjectError
from patchkit.memory import Notes
from patchkit.model.outcome import PatchOutcome, Status
from patchkit.model.resolution import Resolution
from patchkit.planning.following import Route
from patchkit.planning.profiling import farthest
from patchkit.planning.values import PatchForecast, Stretch, effort_of
from patchkit.recipes.generating import Generator
from patchkit.recipes.values import Recipe
from patchkit.stack import SeriesPatch

# So many commits are tried for one component; what is said of others is the forecast.
_MOST = 24


class Trial(Struct, frozen=True):
    """What a stack is carried with; `memory` is where the forecast's verdicts are kept."""

    along: Along
    patches: Sequence[SeriesPatch]
    recipes: Mapping[str, Recipe]
    remembered: Mapping[str, Resolution]
    memory: Path | None = None


def tried(stretches: Sequence[Stretch], route: Route, trial: Trial) -> tuple[Stretch, ...]:
    """The stretches, as carrying has those that reach farthest for some amount of work.

    And those behind each of them, which are said to take more.
    """
    ids = (route.line.start, *route.line.commits)
    told = list(stretches)
    notes = _notes(trial)
    for _ in range(_MOST):
        stretch = _to_try(told)
        if stretch is None:
            break
        patches = _asked(trial, notes, ids[stretch.last])
        told[told.index(stretch)] = _as_found(stretch, patches)
    if notes is not None:
        notes.close()
    return tuple(told)


def _to_try(stretches: Sequence[Stretch]) -> Stretch | None:
    """The next one to carry to, the newest first."""
    best = farthest(stretches)
    untried = [each for each in best if not each.tried]
    if not untried:
        ends = {each.last + 1 for each in best}
        untried = [each for each in stretches if each.first in ends and not each.tried]
    return untried[-1] if untried else None


def _as_found(stretch: Stretch, patches: tuple[PatchForecast, ...] | None) -> Stretch:
    if patches is None:
        return replace(stretch, tried=True)
    return replace(stretch, effort=effort_of(patches), patches=patches, tried=True)


def _notes(trial: Trial) -> Notes | None:
    """What trying commits came to; recipes are no part of the file's name, so not with these."""
    if trial.memory is None or trial.recipes:
        return None
    return Notes(trial.memory.with_suffix(".tried.json"))


def _asked(trial: Trial, notes: Notes | None, commit: str) -> tuple[PatchForecast, ...] | None:
    """What becomes of each patch at a commit; None, which is not kept, if that cannot be said."""
    kept = notes.known(commit) if notes is not None else None
    if kept is not None:
        return _told(kept)
    found = _carried(trial, commit)
    if notes is not None and found is not None:
        notes.note(commit, _rows(found))
    return found


def _rows(found: Iterable[PatchForecast]) -> list[list[object]]:
    return [[f.name, f.status.value, list(f.conflicts), list(f.review)] for f in found]


def _told(rows: list[list[Any]]) -> tuple[PatchForecast, ...]:
    return tuple(
        PatchForecast(name, Status(status), tuple(conflicts), tuple(review))
        for name, status, conflicts, review in rows
    )


def _carried(trial: Trial, commit: str) -> tuple[PatchForecast, ...] | None:
    """What a bump to the commit comes to; None where files for it cannot be had."""
    along = trial.along
    history = along.history
    generator = Generator(trial.recipes)
    past = _Bringing(
        Between(history.repository, history.pin, commit, lambda: history.repository, along.bring),
        along,
        commit,
    )
    try:
        if trial.recipes:
            bring_scope(along.reader, tree_of(along.reader, commit), generator, along.bring)
        report = carry_stack(
            along.reader,
            history.base(history.pin),
            history.base(commit),
            trial.patches,
            generator,
            past=past,
            remembered=trial.remembered,
        )
    except (MissingObjectError, BadInputError):
        return None
    return tuple(map(_forecast, report.outcomes))


def _forecast(outcome: PatchOutcome) -> PatchForecast:
    conflicts = tuple(each.path for each in outcome.files if each.status is Status.CONFLICTED)
    if outcome.status is Status.CONFLICTED and not conflicts:
        conflicts = (outcome.name,)  # its recipe gives nothing to be used
    review = tuple(each.path for each in outcome.files if each.review)
    return PatchForecast(outcome.name, outcome.status, conflicts, review)


class _Bringing(Struct, frozen=True):
    """A Past that brings the files that it names, before they are read."""

    past: Between
    along: Along
    commit: str

    def renamed(self, path: str) -> str | None:
        """See `carry.Past`."""
        return self._brought(self.past.renamed(path))

    def written_by(self, commit: str, like: str) -> tuple[str, ...]:
        """See `carry.Past`."""
        paths = self.past.written_by(commit, like)
        self._bring(paths)
        return paths

    def folder_renamed(self, folder: str) -> str | None:
        """See `carry.Past`."""
        return self.past.folder_renamed(folder)

    def deleted_by(self, path: str) -> str:
        """See `carry.Past`."""
        return self.past.deleted_by(path)

    def removed_by(self, path: str, line: bytes) -> str:
        """See `carry.Past`."""
        return self.past.removed_by(path, line)

    def brought_by(self, path: str, line: bytes) -> str:
        """See `carry.Past`: nobody reads the reasons."""
        return ""

    def changed_by(self, path: str) -> tuple[str, ...]:
        """See `carry.Past`: nobody reads the reasons."""
        return ()

    def _brought(self, path: str | None) -> str | None:
        if path is not None:
            self._bring((path,))
        return path

    def _bring(self, paths: Sequence[str]) -> None:
        if not paths:
            return
        history = self.along.history
        there = (entries_at(history.repository, c, paths) for c in (history.pin, self.commit))
        self.along.contents(entry for entries in there for entry in entries.values())
