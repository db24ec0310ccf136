"""Why a patch does not fit, as values: what `explain_stack` finds, what reports print; and, in
words, what to do next.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from shlex import quote

from msgspec import Struct

from patchkit.manifest.values import Component, LocalSeries, Manifest, OrderedFolder, PinnedPatch
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Preimage, Reason
from patchkit.model.similarity import SimilarLines
from patchkit.model.text import counted, listed
from patchkit.stack.series import LoadedPatch


class Cause(str, Enum):
    """What stands in a hunk's way, as far as one can tell."""

    CONTAINED = "contained"  # its result stands in the file already
    LINE_ENDS = "line-ends"  # the same lines, with other line ends
    WHITESPACE = "whitespace"  # the same lines but for blanks
    CHANGED = "changed"  # its lines are there, some of them are others now
    GONE = "gone"  # nothing like its lines was found
    ANCHORED = "anchored"  # it must stand at the start or end of the file, and its lines do not
    ORDER = "order"  # its lines are there, before those of an earlier hunk or inside it


class Mismatch(Struct, frozen=True):
    """Lines that a hunk expects and those that stand in their place; either may be empty.

    `expected_lines` has each expected line's number in the patch file; `found_at` is where the
    found lines start in the upstream file.
    """

    expected: tuple[bytes, ...]
    expected_lines: tuple[int, ...]
    found: tuple[bytes, ...]
    found_at: int

    @property
    def sides(self) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
        """The lines of both, with their numbers."""
        olds = list(zip(self.expected_lines, self.expected, strict=True))
        return olds, list(enumerate(self.found, self.found_at))


class HunkExplanation(Struct, frozen=True):
    """Why one hunk has no place.

    `number` counts the file's hunks from 1, `line` is where it stands in the patch file,
    `recorded` the line of the upstream file that it names. `place` is what is most like its lines
    now, in the file `place_path` (None: nothing is); `mismatches` where it differs; without
    a place they are of the recorded one.
    """

    number: int
    line: int
    recorded: int
    cause: Cause  # why it does not fit
    place_path: str
    place: SimilarLines | None
    mismatches: tuple[Mismatch, ...]


class MovedPath(Struct, frozen=True):
    """A path where the file may be now, from 0 to 1 how much of what the patch needs is there.

    `how`: "same contents", "same name", or "renamed by COMMIT".
    """

    path: str
    likeness: float  # from 0 to 1
    how: str


class FileExplanation(Struct, frozen=True):
    """Why a file change does not fit: of `hunks_total` hunks those in `hunks` have no place.

    `preimage` MATCHES: the file is the version that the patch was made against, so it is the patch
    that was edited. `contained`: undoing the whole change works, so it has been made already.
    """

    path: str  # as the patch names it
    reason: Reason
    preimage: Preimage
    line: int  # of the file's header in the patch file, from 1
    detail: str  # more words to what is wrong; "" for none
    contained: bool
    hunks_total: int
    hunks: tuple[HunkExplanation, ...]
    moves: tuple[MovedPath, ...]  # where the file may be now


class OtherBlob(Struct, frozen=True):
    """A file that was another one when the patch was made; ids as the patch and the tree say."""

    path: str  # as the patch names it
    expected: str  # the id that the patch names
    found: str  # the id that the tree has, "" for none


class Origin(Struct, frozen=True):
    """What the patch's `index` lines tell about the base it was made for.

    Of `known` files with such a line, `others` are another blob in the tree. `commit` is the pinned
    base where that has all of them: the patch was made for it without the patches before it; else
    None, as how much history is here must not show. `made_by` names patches whose result one of the
    blobs is.
    """

    known: int
    others: tuple[OtherBlob, ...]
    commit: CommitId | None = None
    made_by: tuple[str, ...] = ()


class PatchExplanation(Struct, frozen=True):
    """Why a patch does not apply.

    `contained`: the tree already has the whole change; `upstream`: so has the base. `files` are
    those that do not fit.
    """

    name: str  # its file's name in the series
    contained: bool
    files: tuple[FileExplanation, ...]
    origin: Origin
    upstream: bool = False
    strip: int | None = None  # the folders to take off its paths, where these are not the series'

    @property
    def hunks(self) -> tuple[HunkExplanation, ...]:
        """Every hunk that fails."""
        return tuple(hunk for file in self.files for hunk in file.hunks)


# What to do next about a patch that does not apply, in commands that can be typed as they are.


def next_steps(
    explanation: PatchExplanation,
    patch: LoadedPatch,
    manifest: Manifest,
    component: Component,
    *,
    repinned: bool,
) -> tuple[str, ...]:
    """What to do, the best first; each of one line or several, commands on lines of their own.

    `repinned`: the pin was moved, and the lock knows the base that the patches are for.
    """
    target = manifest.options(component.name)
    if explanation.contained:
        whose = "the upstream" if explanation.upstream else "an earlier patch"
        way = f"delete {_entry(patch, manifest)}"
        if patch.path is not None:
            way = f"\n  patchkit drop {quote(patch.name)} {target}"
        return (f"drop it, {whose} has the whole change: {way}",)
    if explanation.strip is not None:
        return (_other_strip(explanation.strip, patch, manifest), _check(target))
    ways = list(_line_ends(explanation, patch)) or [
        *(_carried(patch, target) if repinned else _merged(patch, component, target)),
        *_other_base(explanation, component),
    ]
    if not ways:
        ways.append(f"take another version of {patch.name}: {_entry(patch, manifest)}")
    return (ways[0], *(f"or {way}" for way in ways[1:]), _check(target))


def _check(target: str) -> str:
    return f"then check that it applies:\n  patchkit check {target}"


def _other_strip(strip: int, patch: LoadedPatch, manifest: Manifest) -> str:
    if isinstance(patch.origin, OrderedFolder):
        return f"say how many folders go off its patches' paths, in the component: strip: {strip}"
    how = f"{patch.name} -p{strip}" if isinstance(patch.origin, LocalSeries) else f"strip: {strip}"
    return f"say how many folders go off its paths, in {_entry(patch, manifest)}: {how}"


def _merged(patch: LoadedPatch, component: Component, target: str) -> Iterator[str]:
    """As a bump would, or by hand where no commit is found that has its files."""
    if patch.path is None:
        return
    where, checkout = quote(patch.where), f"workspace/{component.checkout or component.name}"
    yield (
        "merge it, keeping its author; by hand if no commit with its files is found:"
        f"\n  patchkit import {where} --3way {target}"
        f"\n  git -C {quote(checkout)} apply --reject $PWD/{where}"
        f"\n  patchkit continue {target}  once the conflict in {checkout} is resolved"
    )


def _carried(patch: LoadedPatch, target: str) -> Iterator[str]:
    if patch.path is not None:
        yield f"carry the patches to the new pin:\n  patchkit refresh {target}"


def _line_ends(explanation: PatchExplanation, patch: LoadedPatch) -> Iterator[str]:
    """The patch with the ends that the files' lines have, where nothing else is wrong with it."""
    hunks = explanation.hunks
    if isinstance(patch.origin, PinnedPatch) or not hunks:
        return
    if not all(hunk.cause is Cause.LINE_ENDS for hunk in hunks):
        return
    pairs = [each for hunk in hunks for each in hunk.mismatches]
    if all(line.endswith(b"\r\n") for each in pairs for line in each.expected):
        what, script = "LF, as its files have", r"s/\r$//"
    elif all(line.endswith(b"\r\n") for each in pairs for line in each.found):
        what, script = "CRLF, as its files have", r"/^@@/,/^diff /{/^-- $/!{/^[ +-]/s/$/\r/}}"
    else:
        return
    yield f"end its lines in {what}:\n  sed -i '{script}' {quote(patch.where)}"


def _other_base(explanation: PatchExplanation, component: Component) -> Iterator[str]:
    origin = explanation.origin
    if origin.made_by:
        yield f"list before it what makes files that it expects: {' or '.join(origin.made_by)}"
    elif origin.commit is not None:
        yield (
            f"it was made for {component.name}'s pin without the patches before it:\n"
            "  leave out what they do already, or list it before them"
        )


def _entry(patch: LoadedPatch, manifest: Manifest) -> str:
    """Where the patch is listed."""
    if isinstance(patch.origin, LocalSeries) and patch.origin.folder != patch.origin.path:
        return f"its line in {patch.origin.path}"
    return f"its entry at {patch.origin.where.below(manifest.root)}"


# What an explanation says, in sentences that every report shares.


#: How many files that differ from those that the patch was made for are named.
_BLOBS = 4


class Statement(Struct, frozen=True):
    """A sentence of an explanation, `depth` below the one before it that is less deep.

    `hunk` is the one that it is about, whose lines are to be shown beside those that stand there.
    """

    text: str
    depth: int = 0
    hunk: HunkExplanation | None = None


def statements(explanation: PatchExplanation) -> Iterator[Statement]:
    """All that is to be said: each file with its hunks, then what they have in common."""
    for file in explanation.files:
        yield Statement(f"{file.path}: {file_words(file)}")
        if file.contained:
            yield Statement("already applied", 1)
            continue
        for move in file.moves:
            share = f"{percent(move.likeness)} of what the patch needs"
            yield Statement(f"now perhaps {move.path} ({move.how}, {share})", 1)
        for hunk in file.hunks:
            yield from _of_hunk(hunk, file)
    yield from (Statement(text, depth) for text, depth in _reasons(explanation))


def _of_hunk(hunk: HunkExplanation, file: FileExplanation) -> Iterator[Statement]:
    place = _place_words(hunk, file)
    if hunk.place is not None and hunk.place_path != file.path and not hunk.mismatches:
        yield Statement(f"hunk {hunk.number} (patch line {hunk.line}): fits {place}", 1)
        return
    head = f"hunk {hunk.number} (patch line {hunk.line}, file line {hunk.recorded})"
    same = hunk.cause in (Cause.CONTAINED, Cause.LINE_ENDS)
    yield Statement(f"{head}: {_hunk_words(hunk, place)}", 1, None if same else hunk)


def _reasons(explanation: PatchExplanation) -> Iterator[tuple[str, int]]:
    edited = [
        file.path
        for file in explanation.files
        if file.preimage is Preimage.MATCHES and file.reason is Reason.CONTEXT
    ]
    if explanation.contained:
        yield "why: the tree already has the whole change", 0
    if edited:
        which = "these files are the versions" if edited[1:] else f"{edited[0]} is the version"
        yield f"why: {which} that the patch was made against", 0
        yield "(its index lines name these blobs): the patch file was edited since", 1
    if explanation.strip is not None:
        folders = counted(explanation.strip, "folder")
        yield f"why: its files are there, to the byte, with {folders} off its paths", 0
    elif not explanation.contained:
        origin = explanation.origin
        if origin.commit is not None:
            paths = listed([each.path for each in origin.others], _BLOBS)
            what = "made for this base without the patches before it, which change"
            yield f"why: {what} {paths}", 0
        elif origin.others:
            yield f"why: made for another base: {origin_words(origin)}", 0
            yield from ((line, 1) for line in origin_lines(origin))


def origin_words(origin: Origin) -> str:
    """How many files were others when a patch was made."""
    were = "file differs" if origin.known == 1 else "files differ"
    return f"{len(origin.others)} of {origin.known} {were}"


def origin_lines(origin: Origin) -> Iterator[str]:
    """Which files were others when a patch was made."""
    for other in origin.others[:_BLOBS]:
        found = short_id(other.found) or "none"
        yield f"{short_id(other.expected)} expected, {found} found: {other.path}"
    if len(origin.others) > _BLOBS:
        yield f"and {len(origin.others) - _BLOBS} more"


_REASONS = {
    Reason.MISSING: "is not in the tree",
    Reason.EXISTS: "is in the tree already",
    Reason.MODE: "is of another type",
    Reason.BINARY: "a binary change that does not fit",
    Reason.UNSAFE: "must not be written",
    Reason.CONTEXT: "does not contain what the patch expects",
}


def file_words(file: FileExplanation) -> str:
    """Why a file change does not fit, to be read after the file's path."""
    if file.reason is not Reason.CONTEXT or not file.hunks:
        return f"{file.detail or _REASONS[file.reason]} (line {file.line} of the patch)"
    hunks = "hunk" if file.hunks_total == 1 else "hunks"
    return f"{len(file.hunks)} of {file.hunks_total} {hunks} failed"


def _hunk_words(hunk: HunkExplanation, place: str) -> str:
    """Why a hunk failed."""
    words = {
        Cause.CONTAINED: "the file has this change already",
        Cause.LINE_ENDS: f"the same lines {place}, with other line ends (CRLF or LF)",
        Cause.WHITESPACE: f"the same lines {place} except for whitespace",
        Cause.CHANGED: f"closest match {place}{_alike(hunk)}",
        Cause.GONE: "no similar lines in the file",
        Cause.ANCHORED: _anchor(hunk, place),
        Cause.ORDER: f"its lines are {place}, where an earlier hunk is",
    }
    return words[hunk.cause]


def _place_words(hunk: HunkExplanation, file: FileExplanation) -> str:
    """Where what is most like a hunk stands, in another file perhaps."""
    if hunk.place is None:
        return ""
    where = f"at line {hunk.place.start}"
    return where if hunk.place_path == file.path else f"in {hunk.place_path} {where}"


def _anchor(hunk: HunkExplanation, place: str) -> str:
    end = "start" if hunk.recorded <= 1 else "end"
    return f"belongs at the {end} of the file; its lines are {place}"


def percent(share: float) -> str:
    """A share in whole per cent; what is not all is never said to be 100 %."""
    return f"{min(round(share * 100), 100 if share >= 1 else 99)}%"


def _alike(hunk: HunkExplanation) -> str:
    return "" if hunk.place is None else f" ({percent(hunk.place.similarity)} similar)"
