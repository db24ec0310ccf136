"""Sites of the patched tree that a rule names and no patch covers, against the reviewed ones.

A recipe's rule is looked for in every file of its language, not only where it may edit: new code in
a folder that nobody thought of is what is looked for. A rule of a rule file, which never edits,
says by `files` where to look.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from enum import Enum
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Annotated

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.disk.files import read_plain
from patchkit.disk.result_cache import ResultCache, memory_path, read_as
from patchkit.errors import BadInputError, Problem
from patchkit.extensions.recipes.recipe_file import load_recipe
from patchkit.extensions.recipes.rule import LANGUAGES, CodeRule, Rule
from patchkit.extensions.recipes.rule_keys import ScanKeys
from patchkit.extensions.recipes.run import (
    Recipe,
    expectations,
    read_source,
    sites_in,
    without_files,
)
from patchkit.extensions.recipes.sites import Site, engine_version
from patchkit.gitcmd.first_parent import blobs_of
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.manifest.globs import Glob, Scope
from patchkit.manifest.keys import record_of
from patchkit.manifest.types import Complaint, Key, Number, Reason, Text
from patchkit.manifest.validate import Whole, read_file
from patchkit.manifest.values import Component, Location
from patchkit.manifest.write import flow_mapping
from patchkit.model.finding import Finding, Severity
from patchkit.model.names import AtLine
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, TreeEntry, TreeId
from patchkit.model.text import counted, listed
from patchkit.stack.generated import recipe_of
from patchkit.stack.series import LoadedPatch


class Scan(Struct, frozen=True):
    """What was found: sites in the order of paths and lines; those that a recipe allows are not.

    `rules` are the ids of all that was looked for, `files` counts the files that were read.
    """

    sites: tuple[Site, ...]
    rules: tuple[str, ...]
    files: int
    findings: tuple[Finding, ...] = ()  # rules that find nothing, whatever there is


def lint_rules(
    root: Path, paths: Sequence[str], patches: Iterable[LoadedPatch]
) -> tuple[Rule, ...]:
    """The rules of rule files and, to be looked for everywhere, of the recipes of patches.

    The second rule of one id is called after its file. BadInputError with all problems.
    """
    rules: list[Rule] = []
    for patch in patches:
        recipe = recipe_of(patch)
        if isinstance(recipe, Recipe):
            rules += map(_everywhere, recipe.all_rules)
    for path in paths:
        recipe = load_recipe(root / path, path, root=root)
        editing = [rule for rule in recipe.all_rules if rule.edits]
        if editing:
            hint = "a rule file only looks: delete fix, remove or replace, or make it a recipe"
            raise BadInputError(
                *(Problem(f"{rule.id} would edit", str(rule.where), hint) for rule in editing)
            )
        rules += recipe.all_rules
    ids: dict[str, Rule] = {}
    for rule in rules:
        file = rule.where.file.name.partition(".")[0]
        name = rule.id if rule.id not in ids else f"{file}:{rule.id}"
        ids.setdefault(name, rule if name == rule.id else replace(rule, id=name))
    return tuple(ids.values())


#: Sites of files that nobody asked for the last time are kept of so many.
_SPARE = 20_000


#: Raise it when the same rules could find something else in the same file.
_FORM = 4


def kept_sites(cache: Path, rules: Sequence[Rule]) -> ResultCache:
    """What is kept below the cache folder of the sites of rules."""
    return ResultCache(memory_path(cache, "sites", rules_facts(rules)), _SPARE)


def rules_facts(rules: Sequence[Rule]) -> list[object]:
    """What the sites of rules in a file follow from beside it."""
    return [_FORM, engine_version(), [repr(rule) for rule in rules]]


def sites_in_files(
    rules: Sequence[Rule],
    files: Mapping[str, TreeEntry],
    contents: Callable[[Sequence[TreeEntry]], Iterable[Mapping[str, bytes]]],
    notes: ResultCache,
) -> dict[str, Sequence[Site]]:
    """Path -> sites of a file by their places, in the order of paths; none in one that is binary.

    Those of known contents are in `notes`. `contents` brings files by their ids, some at a time;
    those that nobody gives are left out.
    """
    found: dict[str, Sequence[Site]] = {}
    fresh: dict[str, list[str]] = {}
    for path in sorted(files):
        sites = read_as(notes.known(f"{files[path].oid} {path}"), tuple[Site, ...])
        if sites is None:
            fresh.setdefault(files[path].oid, []).append(path)
        else:
            found[path] = sites
    for batch in contents([files[paths[0]] for paths in fresh.values()]):
        for oid, data in batch.items():
            for path in fresh[oid]:
                some = sites_in(rules, read_source(path, data), data) if b"\0" not in data else []
                found[path] = sorted(some, key=lambda site: (site.start, site.rule))
                notes.note(f"{oid} {path}", to_builtins(found[path]))
    return dict(sorted(found.items()))


def not_allowed(found: Mapping[str, Sequence[Site]]) -> tuple[Site, ...]:
    """The sites that no recipe allows."""
    return tuple(site for sites in found.values() for site in sites if site.allowed is None)


def scan_tree(cache: Path, source: Overlay, tree: TreeId, rules: Sequence[Rule]) -> Scan:
    """Every site of the rules in a tree; what is known of its files is kept below `cache`."""
    notes = kept_sites(cache, rules)
    files = files_looked_at(TreeView(source, tree).files(), rules)
    found = sites_in_files(rules, files, partial(_contents, source), notes)
    notes.close()
    idle = (rule for rule in rules if not any(map(rule.scope.covers, files)))
    return Scan(
        sites=not_allowed(found),
        rules=tuple(rule.id for rule in rules),
        files=len(found),
        findings=tuple(replace(each, code="residual-files") for each in without_files(idle)),
    )


def as_expected(cache: Path, tree: TreeView, rules: Sequence[Rule]) -> list[Finding]:
    """What rules say there is in a tree, and is not; kept as for `scan_tree`.

    MissingObjectError for a file whose contents no server has.
    """
    notes = kept_sites(cache, rules)
    files = files_looked_at(tree.files(), rules)

    def contents(entries: Sequence[TreeEntry]) -> Iterator[Mapping[str, bytes]]:
        yield dict(tree.source.read_many([each.oid for each in entries], "blob"))

    found = sites_in_files(rules, files, contents, notes)
    notes.close()
    sites = [*chain.from_iterable(found.values())]
    return [each for rule in rules for each in expectations(rule, sites, files)]


def _everywhere(rule: Rule) -> Rule:
    """The rule, looking in all files of its kind; where its own are gone, the recipe's run says."""
    rule = replace(rule, optional=rule.optional or "looked for everywhere")
    if isinstance(rule, CodeRule):
        kinds = tuple(f"**/*{ending}" for ending in LANGUAGES[rule.language])
        return replace(rule, files=kinds, ignores=(), fix=None, remove="")
    names = {glob.rpartition("/")[2] for glob in rule.scope.files}
    if names & {"*", "**"}:
        return rule
    return replace(rule, files=tuple(sorted(f"**/{name}" for name in names)), ignores=())


#: So many files are in memory together.
_READ_AT_ONCE = 100


def files_looked_at(
    files: Mapping[str, TreeEntry | None], rules: Sequence[Rule]
) -> dict[str, TreeEntry]:
    """The ordinary files that a rule looks at."""
    return {
        path: entry
        for path, entry in files.items()
        if entry is not None
        and entry.mode in (FILE_MODE, EXECUTABLE_MODE)
        and any(rule.scope.covers(path) for rule in rules)
    }


def _contents(source: Overlay, entries: Sequence[TreeEntry]) -> Iterator[Mapping[str, bytes]]:
    """The contents of files by id, some at a time; without those that no server has."""
    oids = list(blobs_of(entries))
    for at in range(0, len(oids), _READ_AT_ONCE):
        yield dict(_present(source, oids[at : at + _READ_AT_ONCE]))


def _present(source: Overlay, oids: Sequence[str]) -> Iterable[tuple[str, bytes]]:
    try:
        return list(source.read_many(oids, "blob"))
    except MissingObjectError:
        if len(oids) == 1:
            return []
    return [row for oid in oids for row in _present(source, [oid])]


# The file of reviewed sites, beside the series:
#
#     version: 1
#     areas:
#       - {rule: "*", path: "tests/**", reason: not run on NPUs}
#     sites:
#       - {rule: cuda, path: core/a.py, within: A.f, text: "'cuda'", reason: x, until: "2027-06-30"}
#     known:
#       - {rule: cuda, path: core/b.py, text: "'cuda'"}
#
# A site is known by its rule, path, the function around it and its text, not by its line, so that
# edits elsewhere in the file do not bring it back. `count` says how many alike there are (1 where
# it is absent). An entry whose `until` is past counts no more. What is `known` was there when it
# was recorded, and nobody has looked at it. patchkit rewrites the file when it adds to it:
# comments are lost, reasons are not.


_VERSION = 1

#: A longer text of a site is cut, and told apart by a hash.
_SHOWN_TEXT = 100

_HEAD = """\
# Sites that a person has looked at, and below `known` those that nobody has. `patchkit check
# --only sites --accept --reason ...` rewrites this file: comments are lost, reasons are not.
"""


class Fingerprint(Struct, frozen=True, order=True):
    """What a site is known by."""

    path: str  # of the file
    rule: str  # the id of the rule that names the site
    within: str  # the function or class around it
    text: str  # the site's text, blanks folded, a long one cut


def check_date(text: str) -> Complaint | None:
    """What is wrong with a date."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return Complaint("is no date", 'write it in quotes: "2027-06-30"')
    return None


_Why = Annotated[Reason, "Why it may stay."]
_Until = Annotated[
    Annotated[
        date,
        Text(
            "a date",
            r"\d{4}-\d{2}-\d{2}",
            check_date,
            example='"2027-06-30"',
            meant=lambda text, _: date.fromisoformat(text),
        ),
    ]
    | None,
    "Until when.",
]


class ReviewedSite(Struct, frozen=True, kw_only=True):
    """A site, or several alike, that nobody has looked at."""

    where: Location  # the entry in the file of reviewed sites
    rule: Annotated[str, Text("a rule's id"), "The rule that names it."]
    path: Annotated[str, Text("a path"), "The file."]
    within: Annotated[str, Text("a qualified name"), "The function or class around it."] = ""
    text: Annotated[str, Text("text"), "The line found there."]
    count: Annotated[int, Number(1, 100_000), Key(default="1"), "How many alike."] = 1
    reason: str = ""  # "": it is known, not reviewed
    until: date | None = None  # None: the reason holds for ever


class _AcceptedSite(ReviewedSite, frozen=True, kw_only=True):
    """A site that may stay."""

    reason: _Why
    until: _Until = None


class ReviewedArea(Struct, frozen=True, kw_only=True):
    """All sites of a rule ("*": any) in the files of a glob."""

    where: Location  # the entry in the file of reviewed sites
    rule: Annotated[str, Text("a rule's id, or *"), "The rule, * for all."]
    path: Annotated[Glob, "The files."]
    reason: _Why
    until: _Until = None

    def covers(self, site: Site) -> bool:
        """Whether the site is in it."""
        return self.rule in ("*", site.rule) and Scope((self.path,)).covers(site.path)


def baseline_path(component: Component) -> str:
    """The component's baseline, relative to the project: what it says, or beside its series."""
    if baseline := component.added(ScanKeys).residual.baseline:
        return baseline
    series = component.series
    folder = series.folder if series else f"patches/{component.name}"
    return f"{folder}/residual.yml" if folder else "residual.yml"


class Baseline(Struct, frozen=True):
    """What was reviewed, or is known."""

    sites: tuple[ReviewedSite, ...] = ()  # single ones
    areas: tuple[ReviewedArea, ...] = ()  # whole files, by glob


def fingerprint(site: Site) -> Fingerprint:
    """What a site is known by: blanks and line breaks in its text do not count."""
    text = re.sub(r"\s+", " ", site.text).strip()
    text = "".join(each if each.isprintable() else "?" for each in text)
    if len(text) > _SHOWN_TEXT:
        text = f"{text[:_SHOWN_TEXT]}... {sha256(text.encode()).hexdigest()[:8]}"
    return Fingerprint(site.path, site.rule, site.within, text)


def may_have(data: bytes, site: Fingerprint) -> bool:
    """Whether a file with these contents may have a site.

    Not where a word of the site's text, or a name that is around it, is not in there.
    """
    words = [*site.within.split("."), *(site.text.split() if len(site.text) <= _SHOWN_TEXT else ())]
    return all(word.encode() in data for word in words if word.isascii() and "?" not in word)


# -- reading -----------------------------------------------------------------------------------


class _BaselineFile(Struct, frozen=True, kw_only=True):
    """The file of reviewed sites."""

    version: Annotated[int, Number(_VERSION, _VERSION), "The format: 1."]
    areas: Annotated[tuple[ReviewedArea, ...], "Files of which all sites may stay."] = ()
    sites: Annotated[tuple[_AcceptedSite, ...], "Sites one by one."] = ()
    known: Annotated[tuple[ReviewedSite, ...], "Sites that were not reviewed yet."] = ()


def load_baseline(root: Path, name: str) -> Baseline:
    """The baseline in a file of the project, an empty one if there is no such file.

    BadInputError with every problem.
    """
    try:
        data = read_plain(root / name, inside=root)
    except FileNotFoundError:
        return Baseline()
    except OSError as error:
        raise BadInputError(Problem(str(error.strerror), name)) from error
    _, file = read_file(data, Path(name), record_of(_BaselineFile), Whole("the baseline"))
    assert isinstance(file, _BaselineFile)
    sites = (*file.sites, *file.known)
    return Baseline(sites, file.areas)


# -- writing -----------------------------------------------------------------------------------


def baseline_bytes(baseline: Baseline) -> bytes:
    """The baseline as it stands in its file: sorted, one entry a line."""
    lines = [_HEAD, f"version: {_VERSION}\n"]
    areas = sorted(
        {
            _line({"rule": each.rule, "path": each.path}, each.reason, each.until)
            for each in baseline.areas
        }
    )
    lines += ["areas:\n", *areas] if areas else []
    entries = sorted(_merged(baseline.sites), key=lambda each: (known_by(each), each.reason))
    for key, some in (
        ("sites", [each for each in entries if each.reason]),
        ("known", [each for each in entries if not each.reason]),
    ):
        lines += [f"{key}:\n", *map(_site_line, some)] if some else []
    return "".join(lines).encode()


def _merged(sites: Iterable[ReviewedSite]) -> Iterable[ReviewedSite]:
    """One entry where several say the same."""
    found: dict[tuple[Fingerprint, str, date | None], ReviewedSite] = {}
    for each in sites:
        key = (known_by(each), each.reason, each.until)
        known = found.get(key)
        found[key] = each if known is None else replace(each, count=known.count + each.count)
    return found.values()


def _site_line(entry: ReviewedSite) -> str:
    fields: dict[str, str | int] = {"rule": entry.rule, "path": entry.path}
    fields |= {"within": entry.within} if entry.within else {}
    fields["text"] = entry.text
    fields |= {"count": entry.count} if entry.count > 1 else {}
    return _line(fields, entry.reason, entry.until)


def _line(fields: dict[str, str | int], reason: str, until: date | None) -> str:
    more = {"reason": " ".join(reason.split())} if reason else {}
    more |= {"until": until.isoformat()} if until is not None else {}
    return f"  - {flow_mapping({**fields, **more})}\n"


# Sites as they are now against the baseline: new ones, expired reasons, entries for nothing.


class ReviewState(str, Enum):
    """What is known of a site."""

    NEW = "new"
    EXPIRED = "expired"  # it was reviewed, for a time that is over
    KNOWN = "known"  # it was there when the baseline was begun; nobody has looked at it
    REVIEWED = "reviewed"


class ResidualSite(AtLine, Struct, frozen=True):
    """A site that no patch covers, and the reason why it may stay (or might)."""

    rule: str  # its id
    path: str  # of the file in the patched tree
    line: int  # from 1
    within: str  # the function or class around it
    text: str  # as in its Fingerprint
    state: ReviewState  # what the baseline says of it
    reason: str = ""


class Review(Struct, frozen=True):
    """Every site, judged, and the entries that match none (any more)."""

    sites: tuple[ResidualSite, ...]
    unmatched: tuple[ReviewedSite | ReviewedArea, ...]  # entries that no site answers to

    def count(self, state: ReviewState) -> int:
        """How many sites are in a state."""
        return sum(site.state is state for site in self.sites)


def review_sites(sites: Sequence[Site], baseline: Baseline, today: date) -> Review:
    """Judge the sites in their order: of many alike, the first `count` are the reviewed ones."""
    entries: dict[Fingerprint, list[ReviewedSite]] = {}
    for entry in baseline.sites:
        entries.setdefault(known_by(entry), []).append(entry)
    used: Counter[int] = Counter()
    areas: set[int] = set()
    judged = []
    for site in sites:
        found: ReviewedSite | ReviewedArea | None = None
        for entry in entries.get(fingerprint(site), ()):
            if used[id(entry)] < entry.count:
                used[id(entry)] += 1
                found = entry
                break
        for area in baseline.areas:
            if area.covers(site):
                areas.add(id(area))
                # nobody looked at the site, or for a time that is over: any area says more of it
                if found is None or not found.reason or _is_past(found, today):
                    found = area
        judged.append(_judged(site, found, today))
    unmatched = [each for each in baseline.sites if not used[id(each)]]
    return Review(
        tuple(judged), (*unmatched, *(each for each in baseline.areas if id(each) not in areas))
    )


#: Of an entry that is not in the file yet.
_NOWHERE = Location(Path(), 0)


def with_reviewed(baseline: Baseline, sites: Sequence[ResidualSite], reason: str) -> Baseline:
    """The baseline with further sites; what was said of them before, and is over, is dropped.

    Without a reason they become known; what is known already, or was reviewed, stays as it is.
    """
    done = (
        (ReviewState.REVIEWED,)
        if reason
        else (ReviewState.REVIEWED, ReviewState.EXPIRED, ReviewState.KNOWN)
    )
    chosen = [site for site in sites if site.state not in done]
    added = [
        ReviewedSite(
            where=_NOWHERE, rule=s.rule, path=s.path, within=s.within, text=s.text, reason=reason
        )
        for s in chosen
    ]
    expired = {known_by(site) for site in chosen if site.state is ReviewState.EXPIRED}
    looked_at = Counter(known_by(site) for site in chosen if site.state is ReviewState.KNOWN)
    kept = []
    for each in baseline.sites:
        if not each.reason:
            now = min(looked_at[known_by(each)], each.count)
            looked_at[known_by(each)] -= now
            kept += [replace(each, count=each.count - now)] if now < each.count else []
        elif known_by(each) not in expired or each.until is None:
            kept.append(each)
    return Baseline((*kept, *added), baseline.areas)


def _judged(site: Site, entry: ReviewedSite | ReviewedArea | None, today: date) -> ResidualSite:
    known_by = fingerprint(site)
    state = ReviewState.NEW
    if entry is not None:
        current = ReviewState.REVIEWED if entry.reason else ReviewState.KNOWN
        state = ReviewState.EXPIRED if _is_past(entry, today) else current
    reason = "" if entry is None else entry.reason
    return ResidualSite(site.rule, site.path, site.line, site.within, known_by.text, state, reason)


def _is_past(entry: ReviewedSite | ReviewedArea, today: date) -> bool:
    return entry.until is not None and entry.until < today


def known_by(site: ResidualSite | ReviewedSite) -> Fingerprint:
    """The fingerprint of a site in the tree, or in the file of reviewed ones."""
    return Fingerprint(site.path, site.rule, site.within, site.text)


# What `patchkit check` says about residual sites: one finding for each rule.


#: So many places are named, the rest is counted.
_NAMED = 3

_TOLD = {
    ReviewState.NEW: ("new", "no patch covers"),
    ReviewState.EXPIRED: ("expired", "a reason that is over covers"),
}


def residual_findings(review: Review, name: str, command: str) -> Iterator[Finding]:
    """What somebody has to look at; `name` is the baseline's, `command` lists all."""
    for state, (code, what) in _TOLD.items():
        for rule in dict.fromkeys(site.rule for site in review.sites):
            found = [s for s in review.sites if s.rule == rule and s.state is state]
            if found:
                many = f"{counted(len(found), 'site')} that {what}"
                places = [f"{s.place} in {s.within}" if s.within else s.place for s in found]
                text = f"{rule}: {many}: {listed(places, _NAMED)}"
                hint = f"`{command}` lists them; `--accept --reason ...` allows them"
                yield Finding(Severity.WARNING, f"residual-{code}", text, name, hint)
    if review.unmatched:
        count = len(review.unmatched)
        text = f"{count} entr{'y matches' if count == 1 else 'ies match'} no site any more"
        places = [str(each.where) for each in review.unmatched]
        hint = f"take out {listed(places, _NAMED)}"
        yield Finding(Severity.WARNING, "residual-unmatched", text, name, hint)
