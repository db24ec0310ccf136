"""What rules name at the tip and not at the pin.

Nothing conflicts where upstream writes new code. Only files that differ between pin and tip are
scanned, and of their versions in between those that halving comes to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial

from msgspec import Struct

from patchkit.disk.result_cache import ResultCache, code_digest
from patchkit.drift.describe import landed
from patchkit.extension import WatchedLine
from patchkit.extensions.recipes.residual_sites import (
    Baseline,
    Fingerprint,
    ReviewState,
    baseline_path,
    files_looked_at,
    fingerprint,
    kept_sites,
    lint_rules,
    load_baseline,
    may_have,
    not_allowed,
    review_sites,
    rules_facts,
    sites_in_files,
)
from patchkit.extensions.recipes.rule import Rule
from patchkit.extensions.recipes.rule_keys import ScanKeys
from patchkit.extensions.recipes.run import Recipe
from patchkit.extensions.recipes.sites import Site
from patchkit.gitcmd.trees import tree_changes
from patchkit.manifest.globs import Scope
from patchkit.model.finding import Finding, Landed, Severity
from patchkit.model.objects import TreeEntry
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
    code = code_digest("extensions/recipes", "model", "upstream")
    known_by = [component.name, repr(baseline), [recipe.facts for recipe in recipes]]
    facts = [code, *rules_facts(rules), *known_by]
    yield from line.known_or_found(facts, partial(_unseen_sites, line, rules, recipes, baseline))


def _unseen_sites(
    line: WatchedLine, rules: Sequence[Rule], recipes: Sequence[Recipe], baseline: Baseline
) -> Iterator[Finding]:
    notes = kept_sites(line.store.cache, rules)
    search = SiteSearch(line.along, rules, notes)
    now = search.find(Scope(tuple(area.path for area in baseline.areas if area.rule == "*")))
    left = [site for site in now if not made_by(site, recipes)]
    states = zip(left, review_sites(left, baseline, date.min).sites, strict=True)
    fresh = {site for site, reviewed in states if reviewed.state is ReviewState.NEW}
    pinned = search.known({site.path for site in fresh})
    unseen, met = list[Site](), Counter[Fingerprint]()
    for site in now:  # of many alike, those that are more than at the pin
        met[fingerprint(site)] += 1
        if site in fresh and met[fingerprint(site)] > pinned[fingerprint(site)]:
            unseen.append(site)
    by = search.commits(unseen, pinned)
    notes.close()
    for site in unseen:
        known_by = fingerprint(site)
        within = f" in {known_by.within}" if known_by.within else ""
        yield Finding(
            Severity.WARNING,
            "new-site-upstream",
            f"{site.rule}: a new site{within}: {known_by.text}",
            f"{line.component.name}: {site.path}:{site.line}",
            by=by[known_by],
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

    def find(self, passed: Scope) -> tuple[Site, ...]:
        """All sites at the tip in files that are others than at the pin, but for those `passed`."""
        history = self.along.history
        trees = (tree_of(self.along.reader, commit) for commit in (history.pin, history.tip))
        changed = tree_changes(history.repository, *trees)
        return self._sites({e.path: e.new for e in changed if not passed.covers(e.path)})

    def known(self, paths: Collection[str]) -> Counter[Fingerprint]:
        """How many sites of each kind the files at paths have at the pin."""
        return self._counted(self.along.entries(self.along.history.pin, paths))

    def _counted(self, files: Mapping[str, TreeEntry | None]) -> Counter[Fingerprint]:
        return Counter(map(fingerprint, self._sites(files)))

    def _sites(self, files: Mapping[str, TreeEntry | None]) -> tuple[Site, ...]:
        """All sites in files, by their paths."""
        there = files_looked_at(files, self.rules)
        return not_allowed(sites_in_files(self.rules, there, self.along.in_batches, self.notes))

    def commits(
        self, sites: Iterable[Site], pinned: Mapping[Fingerprint, int]
    ) -> Mapping[Fingerprint, Landed | None]:
        """The commit since which there are more of a site than on the pin."""
        by = dict[Fingerprint, Landed | None].fromkeys(map(fingerprint, sites))
        for path, versions in self.along.versions({site.path for site in by}):
            for site in by:
                if site.path == path:
                    first = first_with(versions, partial(self._has_more, site, pinned[site]))
                    by[site] = landed(self.along.history, first) if first else None
        return by

    def _has_more(self, site: Fingerprint, count: int, version: VersionOnLine) -> bool:
        """Whether a version of the site's file has it more than so many times."""
        if not may_have(version.data or b"", site):
            return False
        return self._counted({site.path: version.entry})[site] > count
