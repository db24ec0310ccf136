"""What rules name at the tip and not at the pin.

Nothing conflicts where upstream writes new code. Only files that differ between pin and tip are
scanned, and few of their versions in between, from the newest back, until a site is not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import ResultCache, memory_path, read_as, recall_as, remember
from patchkit.drift.describe import landed_of
from patchkit.extension import WatchedLine
from patchkit.extensions.recipes.residual_sites import (
    SHOWN_TEXT,
    Fingerprint,
    ReviewState,
    Scanner,
    baseline_path,
    fingerprint,
    lint_rules,
    load_baseline,
    review_sites,
)
from patchkit.extensions.recipes.rule import Rule
from patchkit.extensions.recipes.rule_keys import ScanKeys
from patchkit.extensions.recipes.run import Recipe
from patchkit.extensions.recipes.sites import Site, engine_version
from patchkit.gitcmd.first_parent import Landing, blobs_of
from patchkit.gitcmd.trees import TreeView
from patchkit.model.finding import Finding, Landed, Severity
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, CommitId, TreeEntry
from patchkit.stack.generated import load_generator
from patchkit.upstream.history import HistoryReader, tree_of


def unseen_sites(line: WatchedLine) -> Iterable[Finding]:
    """What nobody has reviewed and no recipe takes care of, with the commits that brought it,
    by rule and file.
    """
    manifest, component, patches = line.manifest, line.component, line.patches
    rules = lint_rules(manifest.root, component.added(ScanKeys).residual.rules, patches)
    if not rules:
        return ()
    made = load_generator(patches).recipes.values()
    recipes = [each for each in made if isinstance(each, Recipe)]
    baseline = load_baseline(manifest.root, baseline_path(component))

    def unseen(all_found: Sequence[FoundSite]) -> Sequence[FoundSite]:
        found = [each for each in all_found if not made_by(each.site, recipes)]
        states = review_sites([each.site for each in found], baseline, date.min).sites
        pairs = zip(found, states, strict=True)
        return [each for each, s in pairs if each.is_new and s.state is ReviewState.NEW]

    new = find_new_sites(line.along, rules, line.store.cache, unseen)
    return _told(component.name, new, line.along)


def _told(component: str, found: Sequence[FoundSite], along: HistoryReader) -> Iterator[Finding]:
    ids = list(dict.fromkeys(CommitId(each.by) for each in found if each.by))
    by: dict[str, Landed] = dict(zip(ids, landed_of(along.history, ids), strict=True))
    for each in found:
        known_by, site = fingerprint(each.site), each.site
        within = f" in {known_by.within}" if known_by.within else ""
        yield Finding(
            Severity.WARNING,
            "new-site-upstream",
            f"{site.rule}: a new site{within}: {known_by.text}",
            f"{component}: {site.path}:{site.line}",
            by=by.get(each.by or ""),
            about=f"{site.rule}: {site.path}: {known_by.within}: {known_by.text}",
        )


#: Raise it when the same rules could find something else along the same line.
_SITES_FORM = 3

#: So many answers on files are kept where nobody asked for them.
_KEPT = 100_000
#: So many bytes behind a decorator have the name of what it is of.
_BEHIND = 200


class FoundSite(Struct, frozen=True):
    """A site at the tip, in a file that differs from the pin's.

    `is_new`: the pin has fewer of its kind. `by` is the commit since which it is there, "" where
    none of the line brought it, None where nobody asked.
    """

    site: Site
    is_new: bool
    by: str | None = None


#: Of all sites those whose commits are asked for.
PickSites: TypeAlias = Callable[[Sequence[FoundSite]], Sequence[FoundSite]]


def find_new_sites(
    along: HistoryReader, rules: Sequence[Rule], cache: Path, pick: PickSites
) -> Sequence[FoundSite]:
    """What `pick` picks of all sites at the tip in files that are others than at the pin.

    Each with the commit that brought it. What was found is kept below `cache`.
    """
    history = along.history
    line = [history.repository.git_dir.name, history.pin]
    looked_for = [engine_version(), [repr(rule) for rule in rules]]
    path = memory_path(cache, "new-sites", [_SITES_FORM, *line, history.tip, *looked_for])
    kept = recall_as(path, tuple[FoundSite, ...])
    if kept is not None and all(each.by is not None for each in pick(kept)):
        return pick(kept)
    # for the next tip: most of its files are those of this one
    notes_path = memory_path(cache, "new-sites", [_SITES_FORM, *line, history.fork, *looked_for])
    notes = ResultCache(notes_path, spare=_KEPT if kept is not None else 0)
    search = _SiteSearch(along, rules, notes)
    found = kept if kept is not None else tuple(search.find())
    by = search.commits([each.site for each in pick(found) if each.by is None])
    found = tuple(replace(each, by=by.get(fingerprint(each.site), each.by)) for each in found)
    notes.close()
    remember(path, [to_builtins(each) for each in found])
    return pick(found)


def made_by(site: Site, recipes: Iterable[Recipe]) -> bool:
    """Whether a recipe would edit the site when its patch is regenerated."""
    return any(
        rule.edits
        and rule.scope.covers(site.path)
        and site.rule in (rule.id, f"{rule.where.file.name.partition('.')[0]}:{rule.id}")
        for recipe in recipes
        for rule in recipe.all_rules
    )


class _SiteSearch(Struct, frozen=True):
    along: HistoryReader  # reads the commits of the line
    rules: Sequence[Rule]
    notes: ResultCache  # answers kept for the next run

    def find(self) -> Iterable[FoundSite]:
        """All sites at the tip in files that are others than at the pin."""
        pin, tip = self._files(self.along.history.pin), self._files(self.along.history.tip)
        now = self._sites({path: each for path, each in tip.items() if pin.get(path) != each})
        # what a site is known by has its path: other files of the pin have none of these
        known = self._known({path: pin[path] for site in now if (path := site.path) in pin})
        for site in now:
            known[fingerprint(site)] -= 1
            yield FoundSite(site, known[fingerprint(site)] < 0)

    def _files(self, commit: CommitId) -> dict[str, TreeEntry]:
        files = TreeView(self.along.reader, tree_of(self.along.reader, commit)).files()
        return {
            path: entry
            for path, entry in files.items()
            if entry.mode in (FILE_MODE, EXECUTABLE_MODE)
            and any(rule.scope.covers(path) for rule in self.rules)
        }

    def _known(self, files: Mapping[str, TreeEntry]) -> Counter[Fingerprint]:
        return Counter(map(fingerprint, self._sites(files)))

    def _sites(self, files: Mapping[str, TreeEntry]) -> list[Site]:
        """All sites in files, by their paths; those of known contents are known."""
        found = {path: self._noted(path, entry) for path, entry in files.items()}
        fresh: dict[str, list[str]] = {}
        for path in sorted(path for path, sites in found.items() if sites is None):
            fresh.setdefault(files[path].oid, []).append(path)
        scanner, entries = Scanner(self.rules), [files[paths[0]] for paths in fresh.values()]
        for contents in self.along.in_batches(entries):
            for oid, data in contents.items():
                for path in fresh[oid]:
                    sites = found[path] = scanner.sites(path, data)
                    key = _site_key(path, files[path])
                    self.notes.note(key, [to_builtins(each) for each in sites])
        return [site for path in sorted(files) for site in found[path] or ()]

    def _noted(self, path: str, entry: TreeEntry) -> Sequence[Site] | None:
        return read_as(self.notes.known(_site_key(path, entry), _is_list), tuple[Site, ...])

    def commits(self, fresh: Sequence[Site]) -> dict[Fingerprint, str]:
        """The commit since which there are more of each than on the pin, "" for none."""
        if not fresh:
            return {}
        history = self.along.history
        wanted: dict[str, set[Fingerprint]] = {}
        for site in fresh:
            wanted.setdefault(site.path, set()).add(fingerprint(site))
        now = self.along.entries(history.tip, wanted)
        asked = {path: f"by {_site_key(path, each)}" for path, each in now.items() if each}
        by: dict[Fingerprint, str] = {}
        line = frozenset(history.line().commits)
        for path, sites in sorted(wanted.items()):
            told = self.notes.known(asked[path], _brought_on(line))
            brought = {Fingerprint(*facts): commit for *facts, commit in told or ()}
            if sites <= brought.keys():
                by |= brought
                del wanted[path]
        for path, brought in self._looked_up(wanted):
            told = [[*to_builtins(site).values(), commit] for site, commit in brought.items()]
            self.notes.note(asked[path], told)
            by |= brought
        return by

    def _looked_up(
        self, wanted: Mapping[str, set[Fingerprint]]
    ) -> Iterator[tuple[str, dict[Fingerprint, str]]]:
        """Sites that are wanted in files, with their commits, file by file."""
        history, reader = self.along.history, self.along.reader
        pinned = self.along.entries(history.pin, wanted)
        known = self._known({path: entry for path, entry in pinned.items() if entry})
        found = history.landings(sorted(wanted))
        self.along.bring(blobs_of(e for each in found for e in each.touches.values()))
        for path, sites in wanted.items():
            versions = [each for each in found if path in each.touches]
            contents = reader.read_present(blobs_of(each.touches[path] for each in versions))
            named = {each.rule for each in sites}
            scanner = Scanner(rule for rule in self.rules if rule.id in named)
            file = SiteHistory(path, versions, contents, sites=sites, known=known, scanner=scanner)
            yield path, file.brought()


class SiteHistory:
    """The versions of a file, asked since when it has sites that it has at the last of them.

    Parsing a version takes a hundred times as long as looking for a site's text in it. Invariant: a
    version has what `_has` says, or it lies between two of the same run that have the same. A run
    are versions that follow each other in which the same lines, in the same functions, have the
    text of the sites; inside a run the rest is found by halving.
    """

    def __init__(
        self,
        path: str,
        versions: Sequence[Landing],
        contents: Mapping[str, bytes],
        *,
        sites: Collection[Fingerprint],
        known: Counter[Fingerprint],
        scanner: Scanner,
    ) -> None:
        self._path, self._versions, self._contents = path, versions, contents
        self._known, self._scanner = known, scanner
        self._texts = {site: _needle(site.text) for site in sites}
        sizes = {site: len(site.text) if " " in site.text else 0 for site in sites}
        self._asked = sorted({(self._texts[site], sizes[site]) for site in sites})
        self._there: dict[int, frozenset[Fingerprint]] = {}
        self._left = set(sites)
        self._by = dict.fromkeys(sorted(sites), "")

    def brought(self) -> dict[Fingerprint, str]:
        """For each site the oldest of the newest versions that all have it, "" for none."""
        marks = [self._mark(self._data(number)) for number in range(len(self._versions))]
        high = len(marks) - 1
        while high >= 0 and self._left:
            low = high
            while low and marks[low - 1] == marks[high]:
                low -= 1
            self._settle(low, high)
            high = low - 1
        return self._by

    def _settle(self, low: int, high: int) -> None:
        """Go through the versions from one to another, the newest first."""
        if not self._left:
            return
        if self._left & self._has(low) == self._left & self._has(high):
            self._left &= self._has(high)
            self._by.update(dict.fromkeys(self._left, self._versions[low].commit.id))
            return
        middle = (low + high) // 2
        self._settle(middle + 1, high)
        self._settle(low, middle)

    def _data(self, number: int) -> bytes:
        entry = self._versions[number].touches[self._path]
        return self._contents.get(entry.oid, b"") if entry is not None else b""

    def _has(self, number: int) -> frozenset[Fingerprint]:
        """The sites of which a version has more than the pin."""
        if number not in self._there:
            data = self._data(number)
            there: Counter[Fingerprint] = Counter()
            if any(text in data for text in self._texts.values()):
                there = Counter(map(fingerprint, self._scanner.sites(self._path, data)))
            more = frozenset(each for each in self._texts if there[each] > self._known[each])
            self._there[number] = more
        return self._there[number]

    def _mark(self, data: bytes) -> tuple[object, ...]:
        """What tells the runs apart, of one version."""
        mark: list[object] = []
        for text, size in self._asked:
            if not text:
                return (data,)
            at = data.find(text)
            while at >= 0:
                mark.append(_around(data, at, size))
                at = data.find(text, at + len(text))
            mark.append(None)
        return tuple(mark)


def _needle(text: str) -> bytes:
    """A text that stands in every file with a site of this text; b"" where none is known."""
    pieces = [each for each in text[:SHOWN_TEXT].split(" ") if each.isascii() and "?" not in each]
    return max(pieces, key=len, default="").encode()


def _around(data: bytes, at: int, size: int) -> tuple[bytes, ...]:
    """The line of a place, as much behind it as `size` may take, and what it stands in."""
    begin = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    line = data[begin : end if end >= 0 else None]
    if size or line.lstrip().startswith(b"@"):  # a decorator is of what stands behind it
        line = b" ".join(data[begin : begin + 2 * size + _BEHIND].split())
    top = max(data.rfind(word, 0, begin) for word in (b"\nclass ", b"\ndef ", b"\nasync def "))
    inner = max(
        data.rfind(word, max(top, 0), begin) for word in (b"\n    def ", b"\n    async def ")
    )
    return line.strip(), _line_at(data, top), _line_at(data, inner)


def _line_at(data: bytes, at: int) -> bytes:
    return data[at + 1 : data.find(b"\n", at + 1)] if at >= 0 else b""


def _site_key(path: str, entry: TreeEntry) -> str:
    return f"{entry.oid} {path}"


def _is_list(answer: Any) -> bool:
    return isinstance(answer, list)


def _brought_on(line: frozenset[str]) -> Callable[[Any], bool]:
    """Whether the commits that were named are on the line: a branch may have been rewritten."""
    return lambda told: isinstance(told, list) and all(row[-1] in {*line, ""} for row in told)
