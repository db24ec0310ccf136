"""What rules name at the tip and not at the pin.

Nothing conflicts where upstream writes new code. Only files that differ between pin and tip are
scanned, and of their versions in between those that halving comes to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial

from msgspec import Struct

from patchkit.disk.result_cache import ResultCache
from patchkit.drift.describe import landed_of
from patchkit.extension import WatchedLine
from patchkit.extensions.recipes.residual_sites import (
    Fingerprint,
    ReviewState,
    baseline_path,
    files_looked_at,
    fingerprint,
    kept_sites,
    lint_rules,
    load_baseline,
    not_allowed,
    review_sites,
    sites_in_files,
)
from patchkit.extensions.recipes.rule import Rule
from patchkit.extensions.recipes.rule_keys import ScanKeys
from patchkit.extensions.recipes.run import Recipe
from patchkit.extensions.recipes.sites import Site
from patchkit.gitcmd.trees import TreeView
from patchkit.model.finding import Finding, Severity
from patchkit.model.objects import CommitId, TreeEntry
from patchkit.stack.generated import load_generator
from patchkit.upstream.history import HistoryReader, VersionOnLine, first_with, tree_of


def unseen_sites(line: WatchedLine) -> Iterator[Finding]:
    """What nobody has reviewed and no recipe takes care of, with the commits that brought it,
    by rule and file.
    """
    manifest, component, patches = line.manifest, line.component, line.patches
    rules = lint_rules(manifest.root, component.added(ScanKeys).residual.rules, patches)
    if not rules:
        return
    made = load_generator(patches).recipes.values()
    recipes = [each for each in made if isinstance(each, Recipe)]
    baseline = load_baseline(manifest.root, baseline_path(component))
    history = line.along.history
    notes = kept_sites(line.store.cache, rules)
    search = SiteSearch(line.along, rules, notes)
    found = [(site, new) for site, new in search.find() if not made_by(site, recipes)]
    states = review_sites([site for site, _ in found], baseline, date.min).sites
    pairs = zip(found, states, strict=True)
    unseen = [site for (site, new), s in pairs if new and s.state is ReviewState.NEW]
    by = search.commits(unseen)
    notes.close()
    ids = list(dict.fromkeys(commit for commit in by.values() if commit))
    landed = dict(zip(ids, landed_of(history, ids), strict=True))
    for site in unseen:
        known_by = fingerprint(site)
        within = f" in {known_by.within}" if known_by.within else ""
        yield Finding(
            Severity.WARNING,
            "new-site-upstream",
            f"{site.rule}: a new site{within}: {known_by.text}",
            f"{component.name}: {site.path}:{site.line}",
            by=landed.get(by[known_by]),
            about=f"{site.rule}: {site.path}: {known_by.within}: {known_by.text}",
        )


def made_by(site: Site, recipes: Iterable[Recipe]) -> bool:
    """Whether a recipe would edit the site when its patch is regenerated."""
    return any(
        rule.edits
        and rule.scope.covers(site.path)
        and site.rule in (rule.id, f"{rule.where.file.name.partition('.')[0]}:{rule.id}")
        for recipe in recipes
        for rule in recipe.all_rules
    )


class SiteSearch(Struct, frozen=True):
    """The sites of rules at the tip of a line, and the commits that brought them."""

    along: HistoryReader  # reads the commits of the line
    rules: Sequence[Rule]
    notes: ResultCache  # sites of files, kept for the next run

    def find(self) -> Iterator[tuple[Site, bool]]:
        """All sites at the tip in files that are others than at the pin, and whether a site is new:
        the pin has fewer of its kind.
        """
        pin, tip = self._files(self.along.history.pin), self._files(self.along.history.tip)
        now = self._sites({path: each for path, each in tip.items() if pin.get(path) != each})
        # what a site is known by has its path: other files of the pin have none of these
        known = self._known({path: pin[path] for site in now if (path := site.path) in pin})
        for site in now:
            known[fingerprint(site)] -= 1
            yield site, known[fingerprint(site)] < 0

    def _files(self, commit: CommitId) -> dict[str, TreeEntry]:
        tree = TreeView(self.along.reader, tree_of(self.along.reader, commit))
        return files_looked_at(tree, self.rules)

    def _known(self, files: Mapping[str, TreeEntry]) -> Counter[Fingerprint]:
        return Counter(map(fingerprint, self._sites(files)))

    def _sites(self, files: Mapping[str, TreeEntry]) -> tuple[Site, ...]:
        """All sites in files, by their paths."""
        return not_allowed(sites_in_files(self.rules, files, self.along.in_batches, self.notes))

    def commits(self, sites: Iterable[Site]) -> dict[Fingerprint, CommitId]:
        """The commit since which there are more of a site than on the pin, "" for none."""
        wanted: dict[str, set[Fingerprint]] = {}
        for site in map(fingerprint, sites):
            wanted.setdefault(site.path, set()).add(site)
        pinned = self.along.entries(self.along.history.pin, wanted)
        known = self._known({path: entry for path, entry in pinned.items() if entry})
        by: dict[Fingerprint, CommitId] = {}
        for path, versions in self.along.versions(wanted):
            for site in wanted[path]:
                first = first_with(versions, partial(self._has_more, site, known[site]))
                by[site] = CommitId("") if first is None else first.id
        return by

    def _has_more(self, site: Fingerprint, count: int, version: VersionOnLine) -> bool:
        """Whether a version of the site's file has it more than so many times."""
        entry = version.entry
        return entry is not None and self._known({site.path: entry})[site] > count
