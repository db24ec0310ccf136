"""What upstream's own history says of a patch: that a commit between the pins made this change.

A line comparison of two files cannot tell a change that upstream took, and went on from, from one
that it never had: the next commit may have rewritten its lines. The history can. Which commits to
look at say the patch (`cherry picked from`, `Upstream-Status: Backport`, DEP-3's `Origin`), its
author and date, its subject, and its rarest line; whether one made the change says its own diff.

Invariant: no hunk is absorbed that the commit's diff does not have, and of a change that upstream
has by such a commit nothing is added again. A file all of whose hunks the commit has is absorbed;
of others the result may have none of the commit's lines that upstream's file lacks, or it is a
conflict, which says what is left of the patch.

Apart from `engine`, which alone asks it: one question to the history, with an invariant of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from stat import S_ISREG
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry.carried import (
    CarriedFile,
    CarryContext,
    accepted,
    conflict,
    has_lines,
)
from patchkit.model.apply_changes import Blobs
from patchkit.model.diff_parse import split_lines
from patchkit.model.evidence import count_of, evidence, has_words, is_piece
from patchkit.model.objects import TreeEntry
from patchkit.model.outcome import (
    Certainty,
    Fate,
    FileResult,
    PatchResult,
    Status,
    UpstreamPart,
    judged,
)
from patchkit.model.patch import FileChange, Header, Hunk, PatchFile
from patchkit.model.text import counted, listed
from patchkit.model.upstream_intent import commits_named, intent_of, requests_of

if TYPE_CHECKING:
    from patchkit.gitcmd.commit_history import ToldCommit

#: A function or class that a line defines, in C at the first column; a word of a message.
_DEFINED = re.compile(rb"(?m)\b(?:class|def|fn|func|struct)\s+(\w+)|^[A-Za-z_][^=;\n]*?(\w+)\(")
_WORD = re.compile(r"[\w./-]+")
_SHOWN = 3
_MOST_ASKED = 20  # commits that changed the line of best evidence

#: Path -> the lines of a commit's hunks, with their markers.
Lines = Mapping[str, Sequence[bytes]]


class UpstreamShare(Struct, frozen=True):
    """What a commit of upstream has of a patch: by path, which lines of the patch it lacks.

    `told` is the commit as "ID subject"; `added` counts the patch's added lines that are not blank,
    `known` those of them that the commit adds, too. `by_lines`: nothing but the lines ties them.
    """

    told: str
    #: Path -> its lines, with their marker, that the commit does not do.
    left: Mapping[str, tuple[bytes, ...]]
    #: Path -> lines that the commit adds, without blanks around.
    brought: Mapping[str, frozenset[bytes]]
    added: int
    known: int
    by_lines: bool = False

    @property
    def part(self) -> UpstreamPart:
        """How much is upstream."""
        return UpstreamPart(self.known, self.added, self.told)


def share_of(
    told: str, changes: Sequence[FileChange], commit: Lines, *, by_lines: bool = False
) -> UpstreamShare:
    """Compare a patch with a commit, hunk by hunk; `by_lines` asks for the lines around as well.

    Hunks are looked for in the file of the same path, and in all that the commit does for files
    that it knows by another name.
    """
    left: dict[str, tuple[bytes, ...]] = {}
    total = known = 0
    anywhere = [row for rows in commit.values() for row in (*rows, b" end of file")]
    for change in changes:
        theirs = commit.get(change.path, anywhere)
        there, places = Counter(_rows(theirs)), _places(theirs)
        rest: list[bytes] = []
        for hunk in change.hunks:
            rows = [row for row in hunk.lines if row[:1] in b"+-" and _bare(row[1:])]
            missing = [row for row in rows if not _take(there, row)]
            total += sum(row[:1] == b"+" for row in rows)
            known += sum(row[:1] == b"+" for row in rows) - sum(row[:1] == b"+" for row in missing)
            around = by_lines or not any(has_words(row[1:]) for row in rows)
            if missing or not all(
                any(_is_part(place, other, around=around) for other in places)
                for place in _places(hunk.lines)
            ):
                rest += missing or rows
        left[change.path] = tuple(rest) if change.hunks else (b"what is no text",)
    brought = {
        path: frozenset(_bare(row[1:]) for row in rows if row[:1] == b"+")
        for path, rows in commit.items()
    }
    return UpstreamShare(told, left, brought, total, known, by_lines)


class _Place(Struct, frozen=True):
    """Lines that stand together and go or come, and the lines above and below; no blanks."""

    above: bytes
    gone: tuple[bytes, ...]
    come: tuple[bytes, ...]
    below: bytes


def _places(lines: Sequence[bytes]) -> list[_Place]:
    """What the lines of hunks, with their markers, do place by place."""
    found: list[_Place] = []
    above, gone, come = b"", list[bytes](), list[bytes]()
    for row in (*_rows(lines), b" "):
        if row[:1] in b"-+":
            (gone if row[:1] == b"-" else come).append(row[1:])
            continue
        if gone or come:
            found.append(_Place(above, tuple(gone), tuple(come), row[1:]))
            gone, come = [], []
        above = row[1:]
    return found


def _is_part(one: _Place, other: _Place, *, around: bool) -> bool:
    """Whether the other place does all that this one does, in one piece each."""
    if around and (one.above, one.below) != (other.above, other.below):
        return False
    return is_piece(one.gone, other.gone) and is_piece(one.come, other.come)


def _take(there: Counter[bytes], row: bytes) -> bool:
    """Take a row out of those that are there, if it is one of them."""
    key = row[:1] + _bare(row[1:])
    there[key] -= 1
    return there[key] >= 0


def _bare(line: bytes) -> bytes:
    return b"".join(line.split())


def with_upstreams_word(
    context: CarryContext,
    patch: PatchFile,
    changes: Sequence[FileChange],
    files: Sequence[CarriedFile],
) -> list[CarriedFile]:
    """The carried files of a patch, as they are if upstream's history has a word in it.

    History is asked only of a patch that names a commit, or that is not simply at its lines.
    """
    commits = commits_named(patch.message)
    if not commits and all(_is_plain(carried.outcome) for carried in files):
        return list(files)
    share = _best_share(context, patch, commits, changes, files)
    found = [
        _with_share(context, change, file)
        if share is None
        else _by_its_word(context, share, change, file)
        for change, file in zip(changes, files, strict=True)
    ]
    return _held_to_the_message(context, patch, changes, found)


def _held_to_the_message(
    context: CarryContext,
    patch: PatchFile,
    changes: Sequence[FileChange],
    files: list[CarriedFile],
) -> list[CarriedFile]:
    """The files, what is left flagged where the message names what upstream has: a file, or a
    function or class behind the `@@` or in the lines of a hunk.
    """
    parts: tuple[set[str], set[str]] = set(), set()  # names in what is left, and in what is not
    for change, file in zip(changes, files, strict=True):
        absorbed = file.outcome.status is Status.ABSORBED
        taken = change.hunks if absorbed else _hunks_taken(context, change)
        parts[absorbed].update((change.path, _file_name(change.path)))
        for hunk in change.hunks:
            parts[hunk in taken].update(_names_of(hunk))
    left, gone = parts
    said = sorted((gone - left) & {word.strip(".,:;") for word in _WORD.findall(patch.message)})
    if not (left and said):
        return files
    told = f"the message names {listed(said, _SHOWN)}, which upstream has: say what is left"
    number = next(n for n, e in enumerate(files) if e.outcome.status is not Status.ABSORBED)
    outcome = files[number].outcome
    outcome = replace(outcome, reasons=(*outcome.reasons, told), review=files[number].carried)
    files[number] = accepted(context, replace(files[number], outcome=outcome))
    return files


def _names_of(hunk: Hunk) -> set[str]:
    named = _DEFINED.findall(b"\n".join((hunk.section, *(row[1:] for row in hunk.lines))))
    return {name.decode() for pair in named for name in pair if name}


def _is_plain(outcome: FileResult) -> bool:
    return outcome.status in (Status.UNCHANGED, Status.SHIFTED) and not outcome.review


def _best_share(
    context: CarryContext,
    patch: PatchFile,
    commits: tuple[str, ...],
    changes: Sequence[FileChange],
    files: Sequence[CarriedFile],
) -> UpstreamShare | None:
    """The commit that has most of the patch, of those that may be the patch's own."""
    past = context.past
    shares = (
        share_of(commit.name, changes, past.lines_of(commit.id))
        for commit in past.same_change(commits, patch.header or Header(""))
        if not commit.reverted_by
    )
    # half of its lines at least: a subject such as "Fix typo" is written more than once
    likely = [each for each in shares if each.known * 2 >= each.added]
    # of several, the first that has as much: the others took it from there
    best = min(reversed(likely), key=lambda each: sum(map(len, each.left.values())), default=None)
    whole = best is not None and not any(best.left.values())
    if whole:
        return best
    by_lines = _made_by_lines(context, changes, files)
    return next((share for commit, share in by_lines if not commit.reverted_by), best)


def _made_by_lines(
    context: CarryContext, changes: Sequence[FileChange], files: Sequence[CarriedFile]
) -> Iterator[tuple[ToldCommit, UpstreamShare]]:
    """The commits that do all that the patch does, where the best evidence changed, newest first.

    Nothing but lines ties them, so the lines around count as well, as for git's patch-id: the same
    lines in another function are another change.
    """
    asked = [
        (line, change, file)
        for marker in (b"+", b"-")
        for change, file in zip(changes, files, strict=True)
        for line in evidence(_changed(change, marker), *_texts(context, change, change.path))[:1]
    ]
    if not asked:
        return
    line, change, file = max(asked, key=lambda each: len(each[0]))
    past, before = context.past, _texts(context, change, change.path)[0]
    for path in dict.fromkeys((change.path, file.path)):
        versions = past.versions(path)
        counts = [count_of(line, data) for data in (before, *(data for _, data in versions))]
        steps = zip(versions, pairwise(counts), strict=True)
        brought = [name.partition(" ")[0] for (name, _), (old, new) in steps if old != new]
        for commit in past.same_change(tuple(brought[-_MOST_ASKED:]), Header("")):
            share = share_of(commit.name, changes, past.lines_of(commit.id), by_lines=True)
            if not any(share.left.values()):
                yield commit, share


def _changed(change: FileChange, marker: bytes) -> list[bytes]:
    """The lines that a change adds (`+`) or removes (`-`)."""
    return [row[1:] for hunk in change.hunks for row in hunk.lines if row[:1] == marker]


def _rows(lines: Sequence[bytes]) -> list[bytes]:
    return [line[:1] + _bare(line[1:]) for line in lines if _bare(line[1:])]


def _by_its_word(
    context: CarryContext, share: UpstreamShare, change: FileChange, file: CarriedFile
) -> CarriedFile:
    """One file of a patch of which a commit of upstream has some or all."""
    outcome = file.outcome
    left = share.left[change.path] or _beside_the_text(context, change, file)
    if not left:
        return accepted(context, _taken(context, share, change, file))
    if outcome.status is Status.ABSORBED or not share.added:
        return file
    doubled = _doubled(context, share, change, file) if file.carried else ()
    if file.carried and not doubled:
        reasons = (share.part.words, *outcome.reasons)
        found = replace(outcome, reasons=reasons, review=True, upstream=share.part)
        return replace(file, outcome=found)
    why = f"{share.part.words}; left of the patch: {_shown(left)}"
    outcome = replace(outcome, upstream=share.part)
    if not file.carried:
        return replace(file, outcome=replace(outcome, reasons=(why, *outcome.reasons)))
    again = f"carried, it would add again what upstream has: {_shown(doubled)}"
    refused = conflict(outcome, file.path, why, again)
    return replace(refused, marked=file.marked, sides=file.sides, blobs=file.blobs)


def _beside_the_text(
    context: CarryContext, change: FileChange, file: CarriedFile
) -> tuple[bytes, ...]:
    """What a change does to a file's mode or path, as far as upstream has it otherwise."""
    here = context.here.entry(file.path)
    if change.new_path is None:
        if here is None:
            return ()
        # upstream moved the file, and did not delete it
        return (f"the deletion of {file.path}".encode("utf-8", "surrogateescape"),)
    if change.old_path not in (None, change.new_path):
        here = context.here.entry(change.new_path)
        if here is None:
            return (f"the new path {change.new_path}".encode("utf-8", "surrogateescape"),)
    mode = change.new_mode
    if here is not None and mode is not None and mode not in (change.old_mode, here.mode):
        return (f"the mode {mode:o}".encode(),)
    return ()


def _taken(
    context: CarryContext, share: UpstreamShare, change: FileChange, file: CarriedFile
) -> CarriedFile:
    """The file as upstream has it, whatever it made of the change since.

    Flagged if upstream's file lacks lines of the change now: upstream may have gone on from it, or
    have taken it back in part. Flagged, too, if nothing but the lines ties the patch to the commit
    and they are not simply there: the same lines may be wanted twice.
    """
    entry: TreeEntry | None = context.here.entry(file.path)
    gone = _gone(context, change, entry)
    told = file.outcome.absorbed_by or share.told
    reasons = [f"upstream made this very change ({told})"]
    if gone:
        reasons.append(f"upstream's file lacks {counted(gone, 'line')} of it now")
    plain = file.outcome.status is Status.ABSORBED and not file.outcome.review
    guessed = share.by_lines and not plain
    if guessed:
        reasons.append("the patch names no commit; judged by its lines alone")
    absorbed = replace(file.outcome, status=Status.ABSORBED, clashes=())
    outcome = replace(
        judged(absorbed, Certainty.LOOK if gone or guessed else None, tuple(reasons)),
        absorbed_by=told,
        carried_to=file.path if file.path != file.outcome.path else "",
    )
    return CarriedFile(outcome, file.path, entry)


# What became of a patch upstream, as bump, drift and `log --upstream` say it: by what is carried,
# and by the commits that may be the patch's own and change a file of a name that it changes.
def fate_of(
    context: CarryContext,
    patch: PatchFile,
    changes: Sequence[FileChange],
    files: Sequence[CarriedFile],
    outcome: PatchResult,
) -> Fate | None:
    """The fate of a patch that was carried.

    History is asked only of one whose header says something of its way, or that is not simply at
    its lines.
    """
    first = next(iter(outcome.absorbed_by), "")
    if outcome.status is Status.ABSORBED and not outcome.review:
        return Fate("landed", first)
    intent, _ = intent_of(patch.message)
    plain = all(map(_is_plain, outcome.files))
    named = commits_named(patch.message) or requests_of(patch.message)
    if plain and intent in ("", "never") and not named:
        return None
    made = _made_by(context, patch, changes)
    # that a commit has the same lines is why it is absorbed, and is to be looked at
    absorbed = outcome.status is Status.ABSORBED
    if not (made or absorbed):
        made = [commit for commit, _ in _made_by_lines(context, changes, files)]
    if not (made or absorbed):
        parts = [first, *(file.upstream.commit for file in outcome.files if file.upstream)]
        parts += [] if plain else [by for change in changes for by in _brought(context, change)]
        if any(parts):
            return Fate("landed in part", next(filter(None, parts)))
        if named or intent == "sent":
            made = _made_by(context, patch, changes, before=True)
    standing = [commit for commit in made if not commit.reverted_by]
    if absorbed:
        return Fate("landed", standing[-1].name) if standing else Fate("perhaps landed", first)
    if made:
        left = standing[-1].name if standing else made[0].reverted_by
        return Fate("landed differently" if standing else "reverted", left)
    return Fate("open") if intent == "sent" else None


def _made_by(
    context: CarryContext,
    patch: PatchFile,
    changes: Sequence[FileChange],
    *,
    before: bool = False,
) -> list[ToldCommit]:
    """The commits that may be a patch's own, newest first.

    They change a file of a name that the patch changes, as numbers and subjects come twice. That
    the author and the date are the same is not enough: who rebases writes many in one second.
    """
    past, names = context.past, {_file_name(change.path) for change in changes}
    asked = commits_named(patch.message)
    return [
        commit
        for commit in past.same_change(asked, Header(patch.message), before=before)
        if not names.isdisjoint(map(_file_name, past.paths_of(commit.id)))
    ]


def _hunks_taken(context: CarryContext, change: FileChange) -> list[Hunk]:
    """The hunks all of whose lines are in upstream's file, as far as their lines tell."""
    _, text = _texts(context, change, change.path)
    return [
        hunk
        for hunk in change.hunks
        if b"".join(hunk.postimage) in text and evidence(hunk.added, text)
    ]


def _brought(context: CarryContext, change: FileChange) -> Iterator[str]:
    """The commits that brought the hunks that upstream's file has."""
    for hunk in _hunks_taken(context, change):
        lines = b"".join(hunk.postimage)
        yield context.past.since([change.path], partial(has_lines, lines))


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _text_of(blobs: Blobs, entry: TreeEntry | None) -> bytes | None:
    """The contents of a plain file; None for anything else."""
    return blobs.contents(entry.oid) if entry is not None and S_ISREG(entry.mode) else None


def _gone(context: CarryContext, change: FileChange, here: TreeEntry | None) -> int:
    """How many telling lines that the change adds upstream's file does not have."""
    come = Counter(_bare(line) for line in _changed(change, b"+") if has_words(line))
    there = split_lines(_text_of(context.blobs, here) or b"")
    return (come - Counter(map(_bare, there))).total()


def _doubled(
    context: CarryContext, share: UpstreamShare, change: FileChange, file: CarriedFile
) -> tuple[bytes, ...]:
    """Telling lines that the result adds to upstream's file, and that the commit had added."""
    here = context.here.entry(file.path)
    if file.blob is None or here is None:
        return ()
    before = Counter(map(_bare, split_lines(context.blobs.contents(here.oid))))
    brought = share.brought.get(change.path, frozenset())
    found = []
    for line in split_lines(file.blob.payload):
        bare = _bare(line)
        if before[bare] > 0:
            before[bare] -= 1
        elif bare in brought and has_words(line):
            found.append(b"+" + line)
    return tuple(found)


def _with_share(context: CarryContext, change: FileChange, file: CarriedFile) -> CarriedFile:
    """A conflict or a flagged file, with how many of its added lines upstream has by now."""
    outcome = file.outcome
    added = [line for line in _changed(change, b"+") if _bare(line)]
    if file.carried and not outcome.review:
        return file
    texts = _texts(context, change, file.path)
    # what upstream's file has more often than the old base's, as upstream spaces it
    before, there = (Counter(map(_bare, split_lines(text))) for text in texts)
    come = (there - before) & Counter(map(_bare, added))
    found = evidence((line for line in split_lines(texts[1]) if _bare(line) in come), *texts)
    known = come.total()
    # a few are in any two changes of one file
    if not found or known * 2 < len(added):
        return file
    places = [each for each in (file.path, change.old_path) if each]
    now = count_of(found[0], texts[1])
    asked = places, lambda data: count_of(found[0], data or b"") >= now
    part = UpstreamPart(known, len(added), context.past.since(*asked))
    without = "" if part.commit else context.past.lacks(*asked)
    at = [line.strip() for line in split_lines(texts[1])].index(found[0]) + 1
    said = f"{part.words}{f' ({without})' if without else ''}, as in its line {at}"
    flag = f"{said}: see that nothing stands twice"
    reasons = (*outcome.reasons, flag) if file.carried else (said, *outcome.reasons)
    return replace(file, outcome=replace(outcome, upstream=part, reasons=reasons))


def _texts(context: CarryContext, change: FileChange, path: str) -> tuple[bytes, bytes]:
    """A file at the old base, and upstream's at `path`; b"" for what is no plain file."""
    before = context.before.entry(change.old_path) if change.old_path is not None else None
    here = context.here.entry(path)
    return _text_of(context.old_blobs, before) or b"", _text_of(context.blobs, here) or b""


def _shown(lines: Sequence[bytes]) -> str:
    texts = [line.decode("utf-8", "replace").rstrip() for line in lines]
    return listed(texts, _SHOWN, between="; ")
