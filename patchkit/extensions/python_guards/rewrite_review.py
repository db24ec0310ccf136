"""Whether rewrites of text still find what they look for, in the tree of the upstream that they
rewrite; nothing is run.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from fnmatch import filter as named_like
from itertools import combinations

from msgspec import Struct

from patchkit.errors import BadInputError
from patchkit.extensions.python_guards.guard_keys import MeantRewrite
from patchkit.extensions.python_guards.modules import Modules
from patchkit.extensions.python_guards.replacements import (
    definition_text,
    first_line,
    source_of,
)
from patchkit.extensions.python_guards.resolve import Resolver
from patchkit.extensions.python_guards.text_edits import (
    UNKNOWN,
    EditScript,
    Rewrite,
    SourceEdit,
    UnreadableEditError,
)
from patchkit.gitcmd.trees import TreeView
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.mail import parse_patch
from patchkit.model.patch import FileChange
from patchkit.model.revision import reverse_changes
from patchkit.model.text import listed
from patchkit.stack.build import SeriesPatch, patch_changes


class RewriteVerdict(str, Enum):
    """What became of an edit, from worst to best."""

    GONE = "gone"  # what it looks for, or where, is not there
    LINE = "line"  # what it looks for stands in another line than the one that it names
    COUNT = "count"  # it finds more, or less, than is meant
    TWICE = "twice"  # another rewrite changes the same lines
    UPSTREAM = "upstream"  # what it writes is there already
    BLIND = "blind"  # it names lines by nothing but their numbers
    UNKNOWN = "unknown"  # what it does, or where, is not plain to see
    FITS = "fits"


class JudgedEdit(Struct, frozen=True):
    """An edit, the file of the tree that it is for ("" for none), and what became of it.

    `why` says what is wrong; `lines` are those that it changes, from 1.
    """

    rewrite: Rewrite
    number: int  # of the edit in its script
    file: str
    verdict: RewriteVerdict
    why: str = ""
    lines: tuple[int, ...] = ()

    @property
    def anchor(self) -> str:
        """What it looks for, as it is written."""
        script = self.rewrite.script
        if script is not None:
            return script.edits[self.number].anchor
        return "a patch" if self.rewrite.patch is not None else self.rewrite.problem


class RewrittenPart(Struct, frozen=True):
    """The part of a file that a rewrite is given: a definition's lines, or the whole."""

    file: str
    text: str
    first: int = 1  # its first line in the file


class RewrittenTree:
    """A tree whose files are rewritten, and where in it what is written elsewhere leads.

    `names` are what a clone of it, or its packages, may be called.
    """

    def __init__(self, view: TreeView, names: Collection[str]) -> None:
        self.view = view
        self._paths = view.files()
        self._packages = {path[:-12] for path in self._paths if path.endswith("/__init__.py")}
        homes = {posixpath.dirname(each) for each in self._packages} - self._packages
        self._roots = sorted(root for root in homes | {""} if "/" not in root)
        self._tops = sorted(p for p in self._packages if posixpath.dirname(p) in self._roots)
        self._names = {*names, "site-packages", "dist-packages"}
        self._resolvers = [Resolver(Modules(self._paths, view.data, root)) for root in self._roots]

    def parts(self, target: str, *, is_name: bool) -> tuple[list[RewrittenPart], str]:
        """What a path or a dotted name is in this tree; and what of it is not there, "" if all is,
        or it is none of this tree's.
        """
        if is_name:
            return self._named(target)
        for suffix in self._suffixes(target):
            if there := self._files(suffix):
                return [RewrittenPart(path, self.text(path)) for path in there], ""
        suffixes = (each for each in self._suffixes(target) if self._is_inside(each))
        gone = next(suffixes, "")
        return [], f"there is no {gone}" if gone else ""

    def files_for(self, rewrites: Iterable[Rewrite]) -> set[str]:
        """The files that have to be read to judge these."""
        found: set[str] = set()
        for each in rewrites:
            if each.is_name:
                top = each.target.partition(".")[0]
                folders = tuple(posixpath.join(root, top) for root in self._roots)
                found |= {p for p in self._paths if p.endswith(".py") and p.startswith(folders)}
            for suffix in () if each.is_name else self._suffixes(each.target):
                found.update(self._files(suffix))
            found |= {path for path in _patched_paths(each) if path in self._paths}
        return found

    def is_called(self, folder: str) -> bool:
        """Whether a folder may be a clone of this tree, by its name."""
        return posixpath.basename(folder) in self._names

    def text(self, path: str) -> str:
        """A file's text."""
        return (self.view.data(path) or b"").decode("utf-8", "surrogateescape")

    def _suffixes(self, target: str) -> Iterator[str]:
        """What of a path may be one in the tree: behind what may be where the tree is."""
        parts = target.rpartition(UNKNOWN)[2].split("/")
        for number in range(len(parts)):
            before, suffix = parts[:number], "/".join(parts[number:])
            is_named = bool(before) and before[-1] in self._names
            if suffix and (is_named or (not any(before) and "/" in suffix.strip("/"))):
                yield suffix.strip("/")

    def _files(self, suffix: str) -> list[str]:
        inner = self._tops if suffix.count("/") > 1 else ()  # of a package whose name is not known
        for root in (*self._roots, *inner):
            path = posixpath.join(root, suffix)
            if path in self._paths:
                return [path]
        return named_like(self._paths, suffix.replace("/**", "/*")) if "*" in suffix else []

    def _is_inside(self, suffix: str) -> bool:
        """Whether a path leads into a package of the tree."""
        first, _, rest = suffix.partition("/")
        for root in self._roots:
            top = posixpath.join(root, first)
            if {top, posixpath.join(top, rest.partition("/")[0])} & self._packages and rest:
                return True
        return False

    def _named(self, name: str) -> tuple[list[RewrittenPart], str]:
        """The source of a dotted name."""
        for resolver in self._resolvers:
            first, *rest = name.split(".")
            top = resolver.modules.module(first)
            if top is not None and not top.path and rest:  # a folder that several upstreams share
                top = resolver.modules.module(f"{first}.{rest[0]}")
            if top is None:
                continue
            why = getattr(resolver.resolve(name)[0], "why", f"{name} is not in this tree")
            regions = [
                RewrittenPart(path, definition_text(self.text(path), node), first_line(node))
                for code in source_of(resolver, name)
                if (path := code.module.path) and (node := code.node) is not None
            ]
            return regions, "" if regions else why
        return [], ""


def review_rewrites(
    rewrites: Sequence[Rewrite], tree: RewrittenTree, meant: Sequence[MeantRewrite]
) -> list[JudgedEdit]:
    """What becomes of the rewrites that are for this tree; those of one file are done in its order,
    and may need each other.
    """
    texts: dict[tuple[str, RewrittenPart], str] = {}  # as earlier ones of a file left it
    found: list[JudgedEdit] = []
    for rewrite in rewrites:
        declared = [each for each in meant if is_meant(each, rewrite)]
        if any(each.reason for each in declared):
            continue
        if rewrite.patch is not None:
            found += _patched(rewrite, tree)
            continue
        placed = next((each.path for each in declared if each.path), rewrite.target)
        regions, why = tree.parts(placed, is_name=rewrite.is_name and placed == rewrite.target)
        if rewrite.script is None:
            file = next((each.file for each in regions), "")
            if file or tree.is_called(rewrite.target) or not rewrite.target.strip(f"{UNKNOWN}/"):
                found.append(JudgedEdit(rewrite, 0, file, RewriteVerdict.UNKNOWN, rewrite.problem))
        elif why:
            found.append(JudgedEdit(rewrite, 0, "", RewriteVerdict.GONE, why))
        elif not regions and not rewrite.target.strip(f"{UNKNOWN}/"):
            what = "which file it edits is not plain to see"
            found.append(JudgedEdit(rewrite, 0, "", RewriteVerdict.UNKNOWN, what))
        else:
            found += _edited(rewrite, rewrite.script, regions, texts, declared)
    return [*found, *_meeting(found, tree)]


def is_meant(meant: MeantRewrite, rewrite: Rewrite) -> bool:
    """Whether an entry of the manifest is about a rewrite: it has the text, or its own is in it."""
    anchors = (
        [each.anchor for each in rewrite.script.edits] if rewrite.script else [rewrite.problem]
    )
    return any(meant.anchor in each for each in (*anchors, rewrite.target))


def _edited(
    rewrite: Rewrite,
    script: EditScript,
    regions: Sequence[RewrittenPart],
    texts: dict[tuple[str, RewrittenPart], str],
    declared: Sequence[MeantRewrite],
) -> Iterator[JudgedEdit]:
    """What becomes of each edit in the regions, of which it need fit but one."""
    for number, edit in enumerate(script.edits):
        judged: list[JudgedEdit] = []
        for region in regions:
            text = texts.get((rewrite.path, region), region.text)
            try:
                lines = script.run(region.text).lines[number] or script.run(text).lines[number]
                verdict, why = _judged(script, number, region.text, lines)
                verdict, why = _declared(edit, region, lines, declared) or (verdict, why)
            except UnreadableEditError as error:
                lines, verdict, why = (), RewriteVerdict.UNKNOWN, str(error)
            there = tuple(line + region.first - 1 for line in lines)
            judged.append(JudgedEdit(rewrite, number, region.file, verdict, why, there))
        best = [each for each in judged if each.verdict is not RewriteVerdict.GONE]
        yield from best or judged[:1]
    for region in regions:
        key = rewrite.path, region
        try:
            texts[key] = script.run(texts.get(key, region.text)).text
        except UnreadableEditError:
            continue


def _judged(
    script: EditScript, number: int, text: str, lines: Sequence[int]
) -> tuple[RewriteVerdict, str]:
    """What becomes of an edit that changes these lines of a text."""
    edit = script.edits[number]
    new, rows = edit.new, text.split("\n")
    named = [rows[each - 1] for each in edit.numbers if each <= len(rows)]
    among = any(new in row for row in named) if edit.numbers else len(new.strip()) > 7
    if new and among and new in text and (not lines or edit.anchor in new):
        return RewriteVerdict.UPSTREAM, "what it writes is there already"
    if lines and edit.blind:
        return RewriteVerdict.BLIND, "nothing but their numbers says which lines it means"
    found = script.anywhere(number, text)
    if lines and edit.most is not None and len(found) > edit.most:
        return RewriteVerdict.COUNT, f"it changes {edit.most} of {len(found)} places: {_at(found)}"
    if lines:
        return RewriteVerdict.FITS, ""
    if found and edit.numbers:
        return RewriteVerdict.LINE, f"what it looks for is not there, but in {_at(found)}"
    return RewriteVerdict.GONE, "what it looks for is not there"


def _at(lines: Sequence[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} {listed([str(each) for each in lines], 4)}"


def _declared(
    edit: SourceEdit, region: RewrittenPart, lines: Sequence[int], declared: Iterable[MeantRewrite]
) -> tuple[RewriteVerdict, str] | None:
    """What the manifest's words of an edit come to, None where it has none for it."""
    rows = region.text.split("\n")
    for each in declared:
        if each.anchor not in edit.anchor:
            continue
        if each.text and lines and each.text not in rows[lines[0] - 1]:
            return RewriteVerdict.LINE, f"line {lines[0]} says {rows[lines[0] - 1].strip()!r}"
        if each.hits is not None and len(lines) != each.hits:
            return RewriteVerdict.COUNT, f"it changes {len(lines)} lines, {each.hits} are meant"
        if lines and (each.text or each.hits is not None):
            return RewriteVerdict.FITS, ""
    return None


def _patched(rewrite: Rewrite, tree: RewrittenTree) -> Iterator[JudgedEdit]:
    """Whether a patch that a command applies still does, or is there already."""
    changes = _changes(rewrite)
    paths = _patched_paths(rewrite)
    there = [path for path in paths if tree.view.tree.entry(path) is not None]
    folder = posixpath.basename(rewrite.target.rpartition(UNKNOWN)[2])
    is_own = len(there) == len(paths) and any("/" in path for path in paths)
    if not paths and tree.is_called(folder):
        why = "the patch that it applies cannot be read"
        yield JudgedEdit(rewrite, 0, "", RewriteVerdict.UNKNOWN, why)
    if not there or not (tree.is_called(folder) if folder else is_own):
        return
    view = tree.view
    verdict, why = RewriteVerdict.FITS, ""
    if apply_changes(view.tree, Blobs(view.source), changes).tree is None:
        backwards = apply_changes(view.tree, Blobs(view.source), reverse_changes(changes))
        is_there = backwards.tree is not None
        verdict = RewriteVerdict.UPSTREAM if is_there else RewriteVerdict.GONE
        why = "its patch is there already" if is_there else "its patch does not apply"
    yield JudgedEdit(rewrite, 0, there[0], verdict, why)


def _changes(rewrite: Rewrite) -> tuple[FileChange, ...]:
    try:
        file = parse_patch(rewrite.patch or b"", name=rewrite.place)
    except BadInputError:
        return ()
    return patch_changes(SeriesPatch(rewrite.place, file))


def _patched_paths(rewrite: Rewrite) -> list[str]:
    changes = _changes(rewrite) if rewrite.patch is not None else ()
    return [change.old_path or change.new_path or "" for change in changes]


def _meeting(found: Sequence[JudgedEdit], tree: RewrittenTree) -> Iterator[JudgedEdit]:
    """The rewrites that change lines which another one changes in another way, so that it matters
    which of them is first.
    """
    by_file: dict[str, list[JudgedEdit]] = {}
    for each in found:
        if each.verdict is RewriteVerdict.FITS and each.rewrite.script is not None:
            by_file.setdefault(each.file, []).append(each)
    for one, other in (pair for each in by_file.values() for pair in combinations(each, 2)):
        first, second = one.rewrite.script, other.rewrite.script
        if first is None or second is None or first == second or not {*one.lines} & {*other.lines}:
            continue
        text = tree.text(one.file)
        alone = first.run(text).text, second.run(text).text
        if text not in alone and second.run(alone[0]).text != first.run(alone[1]).text:
            why = f"it changes lines that {one.rewrite.place} changes, too: which is first matters"
            yield JudgedEdit(
                other.rewrite, other.number, other.file, RewriteVerdict.TWICE, why, other.lines
            )
