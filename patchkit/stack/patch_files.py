"""Commits -> patch files: which bytes a patch has, given what its commit does now.

Text above the diff is the user's and kept to the byte. A diff that still fits, and gives what the
commit does, gets new line numbers and blob ids at most; any other is written in one canonical form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct

from patchkit.gitcmd.object_reader import ObjectReader, reading
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import diff_trees
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.diff_parse import announces, parse_diff, read_diff, split_lines
from patchkit.model.header import format_header
from patchkit.model.mail import reword
from patchkit.model.patch import Header, Identity, PatchFile
from patchkit.model.tree import Tree
from patchkit.stack.build import COMMITTER, SeriesPatch, patch_changes

_CONTEXT = ("-U3",)
_RENAMES = "-M50%"

_NUMBERS = re.compile(rb"^@@ -\d+(\S*) \+\d+")
_INDEX = re.compile(rb"^index ([0-9a-f]+)\.\.([0-9a-f]+)")


class Layout(Struct, frozen=True):
    """How a tree's paths are written in a patch file.

    `folders` ("python/", or "") stand between `a/` and the path: the folders that `strip` takes off
    beyond the first. Only what is below `subdirectory` of the tree can be written.
    """

    strip: int = 1
    subdirectory: str = ""
    folders: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """What git diff-tree must be told."""
        options = list(_CONTEXT)
        if self.strip == 1:
            options.append(_RENAMES)
        else:
            # "rename from" lines have no prefix, so no folder could be stripped off them
            options.append("--no-renames")
            for side, letter in (("src", "a"), ("dst", "b")):
                options.append(
                    f"--{side}-prefix={f'{letter}/{self.folders}' if self.strip else ''}"
                )
        if self.subdirectory:
            options.append(f"--relative={self.subdirectory.rstrip('/')}/")
        return tuple(options)


class CommitChange(Struct, frozen=True):
    """What a commit does: from one tree to another, with these words, by this author."""

    before: str  # tree
    after: str  # tree
    message: str  # without our trailer
    author: Identity


class OriginalFile(Struct, frozen=True):
    """The file that a patch was applied from, and what its commit did then.

    The trees are empty where it did not apply.
    """

    file: PatchFile
    change: CommitChange  # what its commit does


class PatchToWrite(Struct, frozen=True):
    """A patch file to write; `original` is None for a new patch.

    `canonical`: the diff is written, even if the original's says the same in another way.
    """

    change: CommitChange  # what its commit does
    original: OriginalFile | None = None
    layout: Layout = Layout()
    canonical: bool = False

    @property
    def same_trees(self) -> bool:
        """Whether the original's diff is right without a look at it."""
        if self.original is None or self.canonical:
            return False
        old = self.original.change
        return (old.before, old.after) == (self.change.before, self.change.after)


#: What a diff follows from: how it is written, the trees before and after.
_DiffKey: TypeAlias = tuple[Layout, str, str]


def export_patches(repository: Repository, wanted: Sequence[PatchToWrite]) -> list[bytes]:
    """The bytes of each patch file; those of the original where its commit does what it did."""
    pairs: list[_DiffKey] = []
    for each in wanted:
        if not each.same_trees:
            pairs.append((each.layout, each.change.before, each.change.after))
            if each.original is not None and each.original.change.before:
                old = each.original.change
                pairs.append((each.layout, old.before, old.after))
    diffs = _diffs(repository, pairs)
    with reading(repository) as reader:
        return [_header(each) + _body(reader, each, diffs) for each in wanted]


def canonical_diffs(
    repository: Repository, pairs: Sequence[tuple[str, str]], layout: Layout = Layout()
) -> list[bytes]:
    """The canonical diff of each pair of trees; b"" where nothing differs."""
    return diff_trees(repository, pairs, *layout.options)


def plain_diffs(repository: Repository, pairs: Sequence[tuple[str, str]]) -> list[bytes]:
    """The same, with a rename written as a removal and an addition."""
    return diff_trees(repository, pairs, *_CONTEXT, "--no-renames")


def layout_of(file: PatchFile, strip: int, subdirectory: str) -> Layout:
    """The layout that `file` is written in, as far as its first path tells."""
    if strip <= 1:
        return Layout(strip, subdirectory)
    found = re.search(rb"^(?:diff --git |--- |\+\+\+ )\"?[^/\s]+/((?:[^/\s]+/)*)", file.diff)
    folders = found[1].decode("utf-8", "surrogateescape").split("/") if found else []
    return Layout(strip, subdirectory, "".join(f"{name}/" for name in folders[: strip - 1]))


def _diffs(repository: Repository, pairs: Sequence[_DiffKey]) -> dict[_DiffKey, bytes]:
    found: dict[_DiffKey, bytes] = {}
    for layout in {pair[0] for pair in pairs}:
        trees = sorted({(before, after) for one, before, after in pairs if one == layout})
        for pair, diff in zip(trees, canonical_diffs(repository, trees, layout), strict=True):
            found[layout, pair[0], pair[1]] = diff
    return found


def _body(reader: ObjectReader, wanted: PatchToWrite, diffs: dict[_DiffKey, bytes]) -> bytes:
    if wanted.original is None:
        return diffs[wanted.layout, wanted.change.before, wanted.change.after]
    old, was = wanted.original.file, wanted.original.change
    if wanted.same_trees:
        return old.diff + old.signature
    diff = diffs[wanted.layout, wanted.change.before, wanted.change.after]
    if wanted.canonical:
        diff = with_text(diff, old, old.strip)
    elif diff == diffs.get((wanted.layout, was.before, was.after)):
        diff = old.diff
    else:
        diff = _in_its_hunks(reader, wanted, old, diff)
    return diff + old.signature


def _in_its_hunks(reader: ObjectReader, wanted: PatchToWrite, old: PatchFile, diff: bytes) -> bytes:
    """The old diff with new numbers and ids, if it gives what the commit does; else `diff`.

    So hunks that fit stay, whichever algorithm made them, and with how much context.
    """
    layout, before = wanted.layout, Tree(reader, wanted.change.before)
    changes = patch_changes(SeriesPatch("", old, layout.strip, layout.subdirectory))
    blobs = Blobs(reader)
    blobs.load_files(before, changes)
    made = apply_changes(before, blobs, changes)
    if made.tree is None or made.tree.write([]) != wanted.change.after:
        return with_text(diff, old, old.strip)
    lines, first = split_lines(old.diff), old.preamble.count(b"\n") + 1
    canonical = {each.path: each for each in parse_diff(diff, strip=old.strip) if each.old_blob}
    for change, outcome in zip(old.changes, made.files, strict=True):
        for hunk, offset in zip(change.hunks, outcome.offsets, strict=True):
            new, line = hunk.new_start + offset, hunk.line - first
            # only a hunk at the file's first line may begin there
            starts = max(hunk.old_start + offset, min(hunk.old_start, new, 2)), new
            lines[line] = _NUMBERS.sub(rb"@@ -%d\1 +%d" % starts, lines[line])
        now = canonical.get(change.path, change)
        ids = [(blob or "").encode() for blob in (now.old_blob, now.new_blob)]
        for line in range(change.line - first, change.hunks[0].line - first if change.hunks else 0):
            if found := _INDEX.match(lines[line]):
                fitted = ids[0][: len(found[1])], ids[1][: len(found[2])]
                lines[line] = b"index %b..%b" % fitted + lines[line][found.end() :]
    return b"".join(lines)


def with_text(diff: bytes, old: PatchFile, strip: int = 1) -> bytes:
    """A diff with the text that stands between the files of the old one, above the same files.

    What stands above a file that the diff does not change goes to its end. `strip` is the diff's.
    """
    lines, first = split_lines(old.diff), old.preamble.count(b"\n") + 1
    texts: dict[str, bytes] = {}
    for change, following in pairwise(old.changes):
        piece = lines[change.line - first : following.line - first]
        end = read_diff(piece, strip=old.strip).end
        text = b"".join(line for line in piece[end:] if not announces(line))
        if text.strip():
            texts[following.path] = texts.get(following.path, b"") + text
    new = split_lines(diff)
    for change in reversed(parse_diff(diff, strip=strip) if texts else ()):
        new.insert(change.line - 1, texts.pop(change.path, b""))
    return b"".join((*new, *texts.values()))


def _header(wanted: PatchToWrite) -> bytes:
    change, old = wanted.change, wanted.original
    if old is None:
        return format_header(Header(change.message, named_author(change.author)))
    author = _author(change.author, old)
    before = Header(old.change.message, old.file.author)
    if (change.message, author) == (before.message, before.author):
        return old.file.preamble
    return reword(split_lines(old.file.preamble), before, Header(change.message, author))


def _author(author: Identity, old: OriginalFile) -> Identity | None:
    """Whom the header is to name: who it names already, unless the commit has got another author.

    An author or a date that the file does not give was made up for the commit (the date is the
    base's, and so another one on another base): it is not written down.
    """
    said = old.file.author
    was = old.change.author
    same_date = author.date == was.date or said is None or not said.date
    if (author.name, author.email) == (was.name, was.email) and same_date:
        return said
    return named_author(author)


def named_author(author: Identity) -> Identity | None:
    """An author as a header may name it; None for the one that patchkit puts in for want of one."""
    made_up = (author.name, author.email) == (COMMITTER.name, COMMITTER.email)
    return None if made_up else author
