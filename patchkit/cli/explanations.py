"""What was found, as a person reads it, and why a patch does not apply: what each hunk expects,
what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Piece, Terminal, cut, pieces, room
from patchkit.explain.explanation import Cause, statements
from patchkit.model.names import short_id
from patchkit.model.objects import lines_of
from patchkit.model.text import counted, shown
from patchkit.report.findings import CLASHES

if TYPE_CHECKING:
    from patchkit.explain.explanation import HunkExplanation, Mismatch, PatchExplanation
    from patchkit.model.finding import Finding
    from patchkit.ops.version_matrix import VersionMatrix
    from patchkit.report.findings import Outcome

# What stands before code, how many lines of a hunk one reads.
_MARGIN = 18
_LINES = 8
#: How many places of one cause a terminal names; --json has all.
_PLACES = 6


def print_matrices(terminal: Terminal, matrices: Iterable[VersionMatrix]) -> None:
    """Which pin has which patches, where a component has several."""
    for matrix in matrices:
        terminal.product()
        terminal.table(matrix.rows)


def print_each(terminal: Terminal, findings: Iterable[Finding]) -> None:
    """What was found, one by one."""
    for finding in findings:
        terminal.product()
        terminal.product([word(finding.severity), f"  {finding}"])
        terminal.product(["  ", Painted("hint:", Paint.PLACE), f" {finding.hint}"])


def print_findings(terminal: Terminal, outcomes: Iterable[Outcome], *, named: bool = True) -> None:
    """What was found of each component, if `named` below its name.

    What could not be read goes to stderr.
    """
    for of, group in groupby(outcomes, key=lambda each: each.of):
        listed = list(group)
        explanations = {each.name: each.explanation for each in listed}
        found = [(f, each.name) for each in listed for f in each.findings if f.code != "problem"]
        if found:
            terminal.product()
        if found and named:
            terminal.product(Painted(of, Paint.STRONG))
        alike: dict[tuple[str, ...], list[tuple[Finding, str]]] = {}
        for finding, name in found:
            by = finding.by.commit if finding.by is not None else ""
            said = (finding.severity.value, finding.code, finding.what, finding.hint, by)
            alike.setdefault(said, []).append((finding, name))
        for pairs in alike.values():
            _print_alike(terminal, [finding for finding, _ in pairs])
            finding, name = pairs[0]
            if (why := explanations[name]) is not None and finding.code in CLASHES:
                print_explanation(terminal, why, indent=4)
            print_hint(terminal, finding.hint)


def _print_alike(terminal: Terminal, findings: Sequence[Finding]) -> None:
    """Findings that say the same of several places, or one with its details."""
    first, *more = findings
    sign = word(first.severity)
    if more:
        terminal.product(["  ", sign, f"  {len(findings)} places:"])
        rows = [(each.where, *each.lines[:1]) for each in findings[:_PLACES]]
        terminal.table(rows, indent=6)
        if len(findings) > _PLACES:
            terminal.product(f"      and {len(findings) - _PLACES} more")
    elif first.where:
        terminal.product(["  ", sign, "  ", first.where])
    what: Sequence[Piece] = ["    "] if first.where or more else ["  ", sign, "  "]
    terminal.product([*what, first.what])
    if first.by is not None:
        name = short_id(first.by.commit)
        commit = Painted(name, Paint.PLACE)
        terminal.product(["      by ", commit, str(first.by).removeprefix(name)])
    for line in first.lines if not more else ():
        terminal.product(f"      {line}")


def print_hint(terminal: Terminal, hint: str) -> None:
    """What to do about a finding; lines of its own stand below one another."""
    for number, line in enumerate(lines_of(hint)):
        head = Painted("hint:", Paint.PLACE) if number == 0 else "     "
        terminal.product(["    ", head, f" {line}"])


def print_explanation(
    terminal: Terminal, explanation: PatchExplanation, *, indent: int = 2
) -> None:
    """Print why a patch does not apply, below a line that names it."""
    for each in statements(explanation):
        left = indent + 2 * each.depth
        head, colon, rest = each.text.partition(": ")
        if each.depth == 0 and colon:
            paint = Paint.NOTICE if head == "why" else Paint.STRONG
            terminal.product([" " * left, Painted(head, paint), f": {rest}"])
        else:
            terminal.product([" " * left, each.text])
        if each.hunk is not None:
            for line in _mismatch_lines(each.hunk, room() - _MARGIN - left):
                terminal.product([" " * left, *pieces(line)])


def _mismatch_lines(hunk: HunkExplanation, space: int) -> Iterator[Line]:
    rows = [row for each in hunk.mismatches for row in _rows(each)][:_LINES]
    blanks = hunk.cause is Cause.WHITESPACE
    texts = _fitted([_visible(data, blanks=blanks) for _, _, data in rows], space)
    for (label, number, _), text in zip(rows, texts, strict=True):
        paint = Paint.REMOVED if label == "expected" else Paint.ADDED
        shown_text = text if number else "(nothing)"
        yield [f"  {label:<8} {number or '':>5}  ", Painted(shown_text, paint)]
    total = sum(len(each.expected) + len(each.found) for each in hunk.mismatches)
    if more := total - sum(number > 0 for _, number, _ in rows):
        yield f"  and {counted(more, 'more line')}"


def _rows(mismatch: Mismatch) -> list[tuple[str, int, bytes]]:
    """Lines of either side; the number is 0 where that side has none.

    They stand for one another, line by line, where there are as many; else both begin.
    """
    sides = [
        [(label, number, line) for number, line in side] or [(label, 0, b"")]
        for label, side in zip(("expected", "found"), mismatch.sides, strict=True)
    ]
    olds, news = sides
    if len(olds) != len(news):
        return [*olds[: _LINES // 2], *news[: _LINES // 2]]
    return [row for pair in zip(olds, news, strict=True) for row in pair]


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
