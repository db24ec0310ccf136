"""Carry a series to one commit, with all that a bump to it knows: its answer ahead of time.

It is the carry that `patchkit bump` makes: the same engine, resolutions, recipes and history of the
upstream. What drift says of the tip, and plan of the commits that it names, is read off it.
"""

from __future__ import annotations

from msgspec import Struct, to_builtins

from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.disk.result_cache import ResultCache, read_as
from patchkit.drift.drift_report import PatchForecast, forecast_of
from patchkit.drift.walk import WatchedSeries
from patchkit.errors import BadInputError
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.first_parent import blobs_of, entries_at
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.trees import TreeView
from patchkit.model.objects import CommitId
from patchkit.stack.build import series_paths
from patchkit.stack.generated import Generator
from patchkit.upstream.history import HistoryReader, tree_of


class Trial(Struct, frozen=True):
    """Carries `series` along a history; `trials` has what was carried before."""

    along: HistoryReader
    series: WatchedSeries
    trials: ResultCache

    def carry_to(self, commit: CommitId) -> tuple[PatchForecast, ...] | None:
        """What a bump to the commit comes to; None where files for it cannot be fetched."""
        found = read_as(self.trials.known(commit), tuple[PatchForecast, ...])
        if found is None:
            found = self._carried(commit)
            if found is not None:
                self.trials.note(commit, to_builtins(found))
                self.trials.close()
        return found

    def _carried(self, commit: CommitId) -> tuple[PatchForecast, ...] | None:
        along, series = self.along, self.series
        history = along.history
        generator = Generator(series.recipes)
        repository = history.repository
        pin, paths = history.pin, series_paths(series.patches)
        ends = pin, commit, lambda: along.reader
        past = _FetchingPast(repository, *ends, bring=along.bring, paths=paths, along=along)
        old, new = (history.base(each, along.reader) for each in (history.pin, commit))
        for end in (pin, commit):
            along.bring(blobs_of(entries_at(repository, end, paths).values()))
        try:
            if series.recipes:
                _bring_scope(along, commit, generator)
            report = carry_stack(
                along.reader,
                old,
                new,
                series.patches,
                CarryOptions(generator, past=past, remembered=series.remembered),
            )
        except (MissingObjectError, BadInputError):
            return None
        return tuple(map(forecast_of, report.outcomes))


def _bring_scope(along: HistoryReader, commit: CommitId, generator: Generator) -> None:
    """Bring all files of a commit at which recipes look."""
    files = TreeView(along.reader, tree_of(along.reader, commit)).files()
    recipes = generator.recipes.values()
    along.bring(
        blobs_of(
            entry for path, entry in files.items() if any(recipe.covers(path) for recipe in recipes)
        )
    )


class _FetchingPast(Between, kw_only=True):
    """A Past that brings the files that it names, before they are read."""

    along: HistoryReader

    def renamed(self, path: str) -> str | None:
        """See `carry.Past`."""
        there = super().renamed(path)
        if there is not None:
            for commit in (self.old, self.new):
                self.along.contents(entries_at(self.repository, commit, [there]).values())
        return there
