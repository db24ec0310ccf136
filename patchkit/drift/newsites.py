"""New code of the kind that patches take care of: what rules name at the tip and not at the pin.

Nothing conflicts where upstream writes something anew, so nobody hears of it. Only files that
differ between pin and tip are scanned, and their versions in between from the newest back, until
the site is not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from patchkit.drift.along import Along, tree_of
from patchkit.explain.terrain import Terrain
from patchkit.gitcmd.firstparent import Landing, landings
from patchkit.memory import memory_path, recall, remember
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, TreeEntry
from patchkit.recipes.sites import Site
from patchkit.recipes.values import Recipe, Rule
from patchkit.residual.baseline import Fingerprint, fingerprint
from patchkit.residual.scanning import scan_files

#: Raise it when the same rules could find something else along the same line.
_FORM = 1


class FoundSite(Struct, frozen=True):
    """A site at the tip, in a file that differs from the pin's.

    `is_new`: the pin has fewer of its kind. `by` is the commit since which it is there, "" where
    none of the line brought it.
    """

    site: Site
    is_new: bool
    by: str = ""


def find_new_sites(along: Along, rules: Sequence[Rule], cache: Path) -> tuple[FoundSite, ...]:
    """All sites at the tip in files that are others than at the pin; kept below `cache`."""
    history = along.history
    facts = [history.repository.git_dir.name, history.pin, history.fork, history.tip]
    looked_for = [version("ast-grep-py"), [repr(rule) for rule in rules]]
    path = memory_path(cache, "new-sites", [_FORM, *facts, *looked_for])
    kept = _kept(recall(path))
    if kept is None:
        kept = tuple(_Looking(along, rules).find())
        remember(path, [to_builtins(each) for each in kept])
    return kept


def made_by(site: Site, recipes: Iterable[Recipe]) -> bool:
    """Whether a recipe would edit the site when its patch is made anew."""
    return any(
        rule.edits
        and rule.scope.covers(site.path)
        and site.rule in (rule.id, f"{rule.where.file.name.partition('.')[0]}:{rule.id}")
        for recipe in recipes
        for rule in recipe.all_rules
    )


class _Looking(Struct, frozen=True):
    along: Along
    rules: Sequence[Rule]

    def find(self) -> Iterable[FoundSite]:
        pin, tip = self._files(self.along.history.pin), self._files(self.along.history.tip)
        changed = {path: entry for path, entry in tip.items() if pin.get(path) != entry}
        before = {path: pin[path] for path in changed if path in pin}
        contents = self.along.contents((*changed.values(), *before.values()))
        now, then = self._scan(changed, contents), self._scan(before, contents)
        known = Counter(map(fingerprint, then))
        fresh = []
        for site in now:
            known[fingerprint(site)] -= 1
            if known[fingerprint(site)] < 0:
                fresh.append(site)
        by = self._commits(fresh, Counter(map(fingerprint, then)))
        is_new = set(map(id, fresh))
        return [FoundSite(s, id(s) in is_new, by.get(fingerprint(s), "")) for s in now]

    def _files(self, commit: str) -> dict[str, TreeEntry]:
        files = Terrain(self.along.reader, tree_of(self.along.reader, commit)).files()
        return {
            path: entry
            for path, entry in files.items()
            if entry.mode in (FILE_MODE, EXECUTABLE_MODE)
            and any(rule.scope.covers(path) for rule in self.rules)
        }

    def _scan(
        self, files: Mapping[str, TreeEntry], contents: Mapping[str, bytes]
    ) -> tuple[Site, ...]:
        pairs = ((path, contents.get(entry.oid)) for path, entry in sorted(files.items()))
        return scan_files(pairs, self.rules).sites

    def _commits(
        self, fresh: Sequence[Site], known: Counter[Fingerprint]
    ) -> dict[Fingerprint, str]:
        """The commit since which there are more of each than on the pin."""
        paths = sorted({site.path for site in fresh})
        history = self.along.history
        found = landings(history.repository, history.fork, history.tip, paths)
        contents = self.along.contents(e for each in found for e in each.touches.values())
        wanted: dict[str, set[Fingerprint]] = {}
        for site in fresh:
            wanted.setdefault(site.path, set()).add(fingerprint(site))
        by: dict[Fingerprint, str] = {}
        for path, open_ones in wanted.items():
            versions = [each for each in found if path in each.touches]
            by |= self._back(path, versions, contents, open_ones, known)
        return by

    def _back(
        self,
        path: str,
        versions: Sequence[Landing],
        contents: Mapping[str, bytes],
        wanted: set[Fingerprint],
        known: Counter[Fingerprint],
    ) -> dict[Fingerprint, str]:
        """For each site the oldest of the newest versions that all have it."""
        by: dict[Fingerprint, str] = {}
        left = set(wanted)
        for landing in reversed(versions):
            entry = landing.touches[path]
            sites = self._scan({path: entry}, contents) if entry is not None else ()
            there = Counter(map(fingerprint, sites))
            left = {each for each in left if there[each] > known[each]}
            if not left:
                break
            by |= dict.fromkeys(left, landing.commit.id)
        return by


def _kept(data: Any) -> tuple[FoundSite, ...] | None:
    try:
        return tuple(
            FoundSite(
                Site(**{**each["site"], "cut": tuple(each["site"]["cut"])}),
                each["is_new"],
                each["by"],
            )
            for each in data
        )
    except (KeyError, TypeError):
        return None
