"""New code of the kind that patches take care of: what rules name at the tip and not at the pin.

Nothing conflicts where upstream writes something anew, so nobody hears of it. Only files that
differ between pin and tip are scanned, and their versions in between from the newest back, until
the site is not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from patchkit.disk.result_cache import ResultCache, memory_path, recall, remember
from patchkit.gitcmd.first_parent import Landing, landings
from patchkit.gitcmd.tree_view import Terrain
from patchkit.guards.residual.baseline import Fingerprint, fingerprint
from patchkit.guards.residual.scan import scan_files
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, TreeEntry
from patchkit.recipes.rule import Recipe, Rule
from patchkit.recipes.sites import Site
from patchkit.upstream.history import Along, tree_of

#: Raise it when the same rules could find something else along the same line.
_FORM = 2


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
    line = [history.repository.git_dir.name, history.pin, history.fork]
    looked_for = [version("ast-grep-py"), [repr(rule) for rule in rules]]
    path = memory_path(cache, "new-sites", [_FORM, *line, history.tip, *looked_for])
    kept = _kept(recall(path))
    if kept is None:
        # for the next tip: most of its files are those of this one
        notes = ResultCache(memory_path(cache, "new-sites", [_FORM, *line, *looked_for]))
        kept = tuple(_Looking(along, rules, notes).find())
        notes.close()
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
    notes: ResultCache

    def find(self) -> Iterable[FoundSite]:
        pin, tip = self._files(self.along.history.pin), self._files(self.along.history.tip)
        changed = {path: entry for path, entry in tip.items() if pin.get(path) != entry}
        before = {path: pin[path] for path in changed if path in pin}
        now, then = self._sites(changed), self._sites(before)
        known = Counter(map(fingerprint, then))
        fresh = []
        for site in now:
            known[fingerprint(site)] -= 1
            if known[fingerprint(site)] < 0:
                fresh.append(site)
        by = self._commits(fresh, Counter(map(fingerprint, then)), changed)
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

    def _sites(self, files: Mapping[str, TreeEntry]) -> list[Site]:
        """All sites in files, by their paths; those of known contents are known."""
        kept = {
            path: self.notes.known(_asked(path, entry), _is_list) for path, entry in files.items()
        }
        fresh = {path: entry for path, entry in files.items() if kept[path] is None}
        contents = self.along.contents(fresh.values())
        found: list[Site] = []
        for path, entry in sorted(files.items()):
            known = kept[path]
            sites = self._scan({path: entry}, contents) if known is None else map(_site, known)
            found += sites
            if known is None and entry.oid in contents:
                self.notes.note(_asked(path, entry), [to_builtins(each) for each in sites])
        return found

    def _scan(
        self, files: Mapping[str, TreeEntry], contents: Mapping[str, bytes]
    ) -> tuple[Site, ...]:
        pairs = ((path, contents.get(entry.oid)) for path, entry in sorted(files.items()))
        return scan_files(pairs, self.rules).sites

    def _commits(
        self,
        fresh: Sequence[Site],
        known: Counter[Fingerprint],
        changed: Mapping[str, TreeEntry],
    ) -> dict[Fingerprint, str]:
        """The commit since which there are more of each than on the pin."""
        history = self.along.history
        wanted: dict[str, set[Fingerprint]] = {}
        for site in fresh:
            wanted.setdefault(site.path, set()).add(fingerprint(site))
        by: dict[Fingerprint, str] = {}
        line = frozenset(history.line().commits)
        for path in sorted(wanted):
            told = self.notes.known(f"by {_asked(path, changed[path])}", _is_on(line))
            if told is not None:
                by |= {Fingerprint(*facts): commit for *facts, commit in told}
                del wanted[path]
        found = landings(history.repository, history.fork, history.tip, sorted(wanted))
        contents = self.along.contents(e for each in found for e in each.touches.values())
        for path, open_ones in wanted.items():
            versions = [each for each in found if path in each.touches]
            brought = self._back(path, versions, contents, open_ones, known)
            told = [[*to_builtins(site).values(), commit] for site, commit in brought.items()]
            self.notes.note(f"by {_asked(path, changed[path])}", told)
            by |= brought
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


def _asked(path: str, entry: TreeEntry) -> str:
    return f"{entry.oid} {path}"


def _is_list(answer: Any) -> bool:
    return isinstance(answer, list)


def _is_on(line: frozenset[str]) -> Callable[[Any], bool]:
    """Whether the commits that were named are on the line: a branch may have been rewritten."""
    return lambda told: isinstance(told, list) and all(row[-1] in line for row in told)


def _site(data: Any) -> Site:
    return Site(**{**data, "cut": tuple(data["cut"])})


def _kept(data: Any) -> tuple[FoundSite, ...] | None:
    try:
        return tuple(
            FoundSite(
                _site(each["site"]),
                each["is_new"],
                each["by"],
            )
            for each in data
        )
    except (KeyError, TypeError):
        return None
