"""What an explanation says of a hunk or a file, in words that every report shares."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.explain.values import (
    Cause,
    FileExplanation,
    HunkExplanation,
    PatchExplanation,
    RenamedName,
)
from patchkit.model.counting import counted
from patchkit.model.outcome import Preimage, Reason

_REASONS = {
    Reason.MISSING: "is not in the tree",
    Reason.EXISTS: "is in the tree already",
    Reason.MODE: "is of another type",
    Reason.BINARY: "a binary change that does not fit",
    Reason.UNSAFE: "must not be written",
    Reason.CONTEXT: "does not hold what the patch expects",
}


def file_words(file: FileExplanation) -> str:
    """Why a file change does not fit, to be read after the file's path."""
    if file.reason is not Reason.CONTEXT or not file.hunks:
        return f"{file.detail or _REASONS[file.reason]} (line {file.line} of the patch)"
    return f"{len(file.hunks)} of {hunks_words(file.hunks_total)} without a place"


def hunk_words(hunk: HunkExplanation, file: FileExplanation) -> str:
    """Why a hunk has no place."""
    place = place_words(hunk, file)
    return {
        Cause.CONTAINED: "what it makes stands in the file already",
        Cause.LINE_ENDS: f"the same lines {place}, with other line ends (CRLF or LF)",
        Cause.WHITESPACE: f"the same lines {place} but for blanks",
        Cause.REWORDED: f"{place}, with other names",
        Cause.CHANGED: f"nearest {place}{_alike(hunk)}",
        Cause.MOVED: f"its lines are {place}{_alike(hunk)}",
        Cause.GONE: "nothing like its lines is in the file",
        Cause.ANCHORED: _anchor(hunk, place),
        Cause.ORDER: f"its lines are {place}, where an earlier hunk is",
    }[hunk.cause]


def place_words(hunk: HunkExplanation, file: FileExplanation) -> str:
    """Where what is most like a hunk stands, in another file perhaps."""
    if hunk.place is None:
        return ""
    where = f"at line {hunk.place.start}"
    return where if hunk.place_path == file.path else f"in {hunk.place_path} {where}"


def renamed_words(name: RenamedName, explanation: PatchExplanation) -> Iterator[str]:
    """How much a renaming explains, one line each."""
    share = f"{name.hunks} of {hunks_words(len(explanation.hunks))}"
    files = counted(len(name.files), "file")
    yield f"in {name.lines} lines of {files}; this alone explains {share}"
    if name.expected_exists is False:
        yield f"there is no {name.expected} in the tree: it was renamed after this pin,"
        yield "or the renaming went over the patch file, too"


def edited_files(explanation: PatchExplanation) -> tuple[str, ...]:
    """Files that are the very ones the patch was made against: it is the patch that was edited."""
    return tuple(
        file.path
        for file in explanation.files
        if file.preimage is Preimage.MATCHES and file.reason is Reason.CONTEXT
    )


def hunks_words(count: int) -> str:
    """ "1 hunk", "2 hunks"."""
    return counted(count, "hunk")


def _anchor(hunk: HunkExplanation, place: str) -> str:
    end = "start" if hunk.recorded <= 1 else "end"
    return f"must stand at the {end} of the file; its lines are {place}"


def percent(share: float) -> str:
    """A share in whole per cent; what is not all is never said to be 100 %."""
    return f"{min(round(share * 100), 100 if share >= 1 else 99)}%"


def _alike(hunk: HunkExplanation) -> str:
    return "" if hunk.place is None else f", {percent(hunk.place.similarity)} alike"
