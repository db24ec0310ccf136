"""An explanation as a person reads it: which hunk, what it expects, what is there, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from patchkit.cli.terminal import Line, Paint, Painted, Terminal, cut, room
from patchkit.explain.explanation import (
    Cause,
    edited_files,
    file_words,
    hunk_words,
    percent,
    place_words,
)
from patchkit.model.names import short_id
from patchkit.model.objects import lines_of
from patchkit.model.text import counted, listed, shown

if TYPE_CHECKING:
    from patchkit.explain.explanation import (
        FileExplanation,
        HunkExplanation,
        Mismatch,
        MovedPath,
        Origin,
        PatchEdit,
        PatchExplanation,
    )

# What stands before code, how many lines of a hunk one reads.
_MARGIN = 22
_LINES = 8
_BLOBS = 4


def print_explanation(terminal: Terminal, explanation: PatchExplanation) -> None:
    """Print why a patch does not apply, below a line that names the patch."""
    for line in explanation_lines(explanation):
        terminal.product(line)


def print_steps(terminal: Terminal, steps: Sequence[str]) -> None:
    """Print what to do next, as `next_steps` says it."""
    for index, step in enumerate(steps):
        head = Painted("next", Paint.PLACE) if index == 0 else "    "
        for number, line in enumerate(lines_of(step)):
            terminal.product(["  ", head if number == 0 else "    ", "  ", line])


def explanation_lines(explanation: PatchExplanation, *, shift: int = 0) -> Iterator[Line]:
    """The lines of an explanation: each file with its hunks, then what they have in common.

    They fit the terminal when they are shifted so far to the right.
    """
    space = room() - shift
    for file in explanation.files:
        yield from _file_lines(file, space)
    if explanation.contained:
        yield ["  ", Painted("why", Paint.NOTICE), "   the tree already has the whole change"]
    yield from _edited_lines(edited_files(explanation))
    yield from _edit_lines(explanation.edit)
    if explanation.strip is not None:
        folders = counted(explanation.strip, "folder")
        why = f"   its files are there, to the byte, with {folders} off its paths"
        yield ["  ", Painted("why", Paint.NOTICE), why]
    elif not explanation.contained:
        yield from _origin_lines(explanation.origin)


def _origin_lines(origin: Origin) -> Iterator[Line]:
    if origin.commit is not None:
        why = "   made for this base without the patches before it, which change "
        paths = listed([each.path for each in origin.others], _BLOBS)
        yield ["  ", Painted("why", Paint.NOTICE), f"{why}{paths}"]
    elif origin.others:
        were = "file differs" if origin.known == 1 else "files differ"
        count = f"{len(origin.others)} of {origin.known} {were}"
        yield [
            "  ",
            Painted("why", Paint.NOTICE),
            f"   made for another base: {count}",
        ]
        yield from origin_lines(origin)


def origin_lines(origin: Origin) -> Iterator[Line]:
    """Which files were others when a patch was made, and which patches make them."""
    for other in origin.others[:_BLOBS]:
        found = short_id(other.found) or "none"
        yield f"          {short_id(other.expected)} expected, {found} found: {other.path}"
    if len(origin.others) > _BLOBS:
        yield f"          and {len(origin.others) - _BLOBS} more"
    for name in origin.made_by:
        yield f"        {name} makes such files: is it missing before this one?"


def _file_lines(file: FileExplanation, space: int) -> Iterator[Line]:
    words = file_words(file)
    if len(file.path) + len(words) + 4 <= space:
        yield ["  ", Painted(file.path, Paint.STRONG), f": {words}"]
    else:
        yield ["  ", Painted(file.path, Paint.STRONG), ":"]
        yield f"    {words}"
    if file.contained:
        yield "    already applied"
        return
    yield from (_move_line(move) for move in file.moves)
    for hunk in file.hunks:
        yield from _hunk_lines(hunk, file, space)


def _move_line(move: MovedPath) -> Line:
    share = f"{percent(move.likeness)} of what the patch needs"
    return ["    now perhaps ", Painted(move.path, Paint.PLACE), f" ({move.how}, {share})"]


def _hunk_lines(hunk: HunkExplanation, file: FileExplanation, space: int) -> Iterator[Line]:
    here = hunk.place_path == file.path
    if not here and hunk.place is not None and not hunk.mismatches:
        yield f"    hunk {hunk.number} (patch line {hunk.line}): fits {place_words(hunk, file)}"
        return
    head = f"    hunk {hunk.number} (patch line {hunk.line}, file line {hunk.recorded}): "
    words = hunk_words(hunk, file)
    if len(head) + len(words) <= space:
        yield head + words
    else:
        yield head.rstrip()
        yield f"      {words}"
    if hunk.cause in (Cause.CONTAINED, Cause.LINE_ENDS):
        return
    yield from _mismatch_lines(hunk, space - _MARGIN)
    if hunk.added > 1 and hunk.present >= 0.6 * hunk.added:
        yield f"      {hunk.present} of the {hunk.added} lines that it adds are in the file already"


def _mismatch_lines(hunk: HunkExplanation, space: int) -> Iterator[Line]:
    side_by_side = _both_starts if hunk.cause is Cause.GONE else _rows
    rows = [row for each in hunk.mismatches for row in side_by_side(each)]
    blanks = hunk.cause is Cause.WHITESPACE
    texts = _fitted([_visible(row.data, blanks=blanks) for row in rows[:_LINES]], space)
    for row, text in zip(rows, texts, strict=False):
        paint = Paint.REMOVED if row.label == "expected" else Paint.ADDED
        yield [f"      {row.label:<8} {row.number or '':>5}  ", Painted(text or row.instead, paint)]
    total = sum(len(each.expected) + len(each.found) for each in hunk.mismatches)
    more = total - sum(row.number > 0 for row in rows[:_LINES])
    if more:
        yield f"      and {counted(more, 'more line')}"


class _Row(Struct, frozen=True):
    """A line of either side; `number` is 0 where that side has none."""

    label: str  # "expected" or "found"
    number: int
    data: bytes  # the line's bytes

    @property
    def instead(self) -> str:
        return "" if self.number else "(nothing)"


def _both_starts(mismatch: Mismatch) -> list[_Row]:
    """How both sides begin, where they have nothing in common."""
    olds, news = _sides(mismatch)
    return [*olds[: _LINES // 2], *news[: _LINES // 2]]


def _rows(mismatch: Mismatch) -> list[_Row]:
    olds, news = _sides(mismatch)
    if len(olds) != len(news):
        return [*olds, *news]
    # they stand for one another, line by line
    return [row for pair in zip(olds, news, strict=True) for row in pair]


def _sides(mismatch: Mismatch) -> tuple[list[_Row], list[_Row]]:
    numbered = zip(mismatch.expected_lines, mismatch.expected, strict=True)
    olds = [_Row("expected", number, line) for number, line in numbered]
    found = enumerate(mismatch.found, mismatch.found_at)
    news = [_Row("found", number, line) for number, line in found]
    return olds or [_Row("expected", 0, b"")], news or [_Row("found", 0, b"")]


def _visible(data: bytes, *, blanks: bool) -> str:
    if not blanks:
        return shown(data).expandtabs(4)
    text = data.decode("utf-8", "surrogateescape").removesuffix("\n")
    return text.replace("\t", "→").replace(" ", "·")


def _fitted(texts: Sequence[str], space: int) -> list[str]:
    """The lines without their common indentation, cut to the width."""
    filled = [text for text in texts if text.strip()]
    indent = min((len(text) - len(text.lstrip()) for text in filled), default=0)
    return [cut(text[indent:], space) for text in texts]


def _edited_lines(edited: Sequence[str]) -> Iterator[Line]:
    if edited:
        which = "these files are the versions" if len(edited) > 1 else f"{edited[0]} is the version"
        yield [
            "  ",
            Painted("why", Paint.NOTICE),
            f"   {which} that the patch was made against",
        ]
        yield "        (its index lines name these blobs): the patch file was edited since"


def _edit_lines(edit: PatchEdit | None) -> Iterator[Line]:
    if edit is not None:
        yield [
            "  ",
            Painted("why", Paint.NOTICE),
            "   its repository changed it, and before that it fits: by",
        ]
        yield [
            "        ",
            Painted(short_id(edit.commit), Paint.STRONG),
            f" {edit.date[:10]} {edit.author}",
        ]
        yield ["        ", cut(edit.subject, room() - _MARGIN)]
