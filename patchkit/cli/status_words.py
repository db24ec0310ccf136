"""Every status word that is printed, with its symbol and colour; the one place for both."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from patchkit.cli.terminal import Paint, Painted

if TYPE_CHECKING:
    from patchkit.model.outcome import Status

#: status value -> (symbol, colour). Values of several enums; equal words mean equal things.
_LOOKS: dict[str, tuple[str, Paint]] = {
    # a patch on a base (model.outcome.Status)
    "unchanged": ("✓", Paint.GOOD),
    "shifted": ("✓", Paint.GOOD),
    "merged": ("~", Paint.NOTICE),
    "regenerated": ("~", Paint.NOTICE),
    "absorbed": ("-", Paint.NOTICE),
    "empty": ("-", Paint.NOTICE),
    "conflicted": ("✗", Paint.BAD),
    "skipped": ("·", Paint.FAINT),
    "flagged": ("!", Paint.NOTICE),
    "resolved": ("!", Paint.NOTICE),
    "left out": ("-", Paint.NOTICE),
    "waiting": ("!", Paint.NOTICE),
    "undone": ("✓", Paint.GOOD),
    "redone": ("✓", Paint.GOOD),
    # a checkout
    "missing": ("·", Paint.FAINT),
    "unpatched": ("·", Paint.FAINT),
    "applied": ("✓", Paint.GOOD),
    "edited": ("~", Paint.NOTICE),
    "extra commits": ("~", Paint.NOTICE),
    "absent": ("·", Paint.FAINT),
    "other branch": ("✗", Paint.BAD),
    "interrupted": ("✗", Paint.BAD),
    # what was done
    "created": ("✓", Paint.GOOD),
    "moved": ("✓", Paint.GOOD),
    "differs": ("✗", Paint.BAD),
    "ok": ("✓", Paint.GOOD),
    "cached": ("✓", Paint.GOOD),
    "fetched": ("✓", Paint.GOOD),
    "written": ("✓", Paint.GOOD),
    "fresh": ("✓", Paint.GOOD),
    "stale": ("~", Paint.NOTICE),
    "leftover": ("-", Paint.NOTICE),
    "foreign": ("✗", Paint.BAD),  # a rendered file that patchkit did not make
    "context": ("~", Paint.NOTICE),
    "changed": ("!", Paint.NOTICE),
    "added": ("+", Paint.GOOD),
    "dropped": ("-", Paint.BAD),
    "refreshed": ("✓", Paint.GOOD),
    "carried": ("✓", Paint.GOOD),
    "ambiguous": ("?", Paint.NOTICE),
    "message": ("!", Paint.NOTICE),
    "content": ("!", Paint.NOTICE),
    "removed": ("-", Paint.BAD),
    "imported": ("✓", Paint.GOOD),
    "exported": ("✓", Paint.GOOD),
    "refused": ("✗", Paint.BAD),
    "failed": ("✗", Paint.BAD),
    # a test of upstream's (ops.upstream_tests)
    "broken": ("✗", Paint.BAD),
    "mended": ("✓", Paint.GOOD),
    "learnt": ("✓", Paint.GOOD),
    "passed": ("✓", Paint.GOOD),
    "not learnt": ("!", Paint.NOTICE),
    # a state of a search, and its answer (ops.bisect)
    "good": ("✓", Paint.GOOD),
    "bad": ("✗", Paint.BAD),
    "found": ("✗", Paint.BAD),
    "among": ("?", Paint.NOTICE),
    "always": ("✗", Paint.BAD),
    "never": ("✓", Paint.GOOD),
    # an installed package
    "live": ("✓", Paint.GOOD),
    "not live": ("✗", Paint.BAD),
    "partly live": ("✗", Paint.BAD),
    "unknown": ("?", Paint.BAD),
    "reversed": ("✓", Paint.GOOD),
    "reinstalled": ("-", Paint.NOTICE),
    "as its receipt says": ("?", Paint.NOTICE),
    "held": ("·", Paint.FAINT),
    # code that another component replaces (overrides.review.Verdict)
    "gone": ("✗", Paint.BAD),
    "not there": ("✗", Paint.BAD),
    "signature": ("✗", Paint.BAD),
    "body": ("!", Paint.NOTICE),
    "new": ("+", Paint.NOTICE),
    "settled": ("✓", Paint.GOOD),
    "declared": ("·", Paint.FAINT),
    "same": ("✓", Paint.GOOD),
    "uncertain": ("?", Paint.NOTICE),
    # calls from one component into another
    "missing module": ("✗", Paint.BAD),
    "missing package": ("✗", Paint.BAD),
    "missing name": ("✗", Paint.BAD),
    "wrong arguments": ("✗", Paint.BAD),
    "crossed arguments": ("✗", Paint.BAD),
    "names nothing": ("✗", Paint.BAD),
    "bound": ("✓", Paint.GOOD),
    "explained": ("·", Paint.FAINT),
    "open": ("?", Paint.NOTICE),
    "unused": ("!", Paint.NOTICE),
    "unmatched": ("✗", Paint.BAD),
    "wrong": ("✗", Paint.BAD),
    "note": ("·", Paint.FAINT),
    "expired": ("!", Paint.NOTICE),
    "known": ("·", Paint.FAINT),
    "reviewed": ("✓", Paint.GOOD),
    "error": ("✗", Paint.BAD),
    "warning": ("!", Paint.NOTICE),
}


#: What is said of a patch that stays as it is, where the question is whether it applies.
_VERDICTS = {"unchanged": "applies", "shifted": "applies at an offset"}


def word(status: Enum | str, text: str = "") -> Painted:
    """A status as symbol and word, coloured; `text` stands in for the word."""
    value = str(status.value) if isinstance(status, Enum) else status
    symbol, paint = _LOOKS[value]
    return Painted(f"{symbol} {text or value}", paint)


def verdict(status: Status) -> Painted:
    """Whether a patch applies, where it stands."""
    return word(status, _VERDICTS.get(status.value, ""))
