"""What a proposed merge of a file must hold, beyond what is asked of any merger's.

A merger is a program that a person chose and read; a proposal may be anything. So it says nothing
but what stands in the place of each conflict, and each line of a side that is not kept is named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from patchkit.carry.carried import MergeRequest
from patchkit.carry.external import counted_lines, refused
from patchkit.errors import Problem
from patchkit.guards.verify import parse_problem
from patchkit.model.diff_parse import split_lines
from patchkit.model.line_diff import diff_lines
from patchkit.model.merging.checks import names_unbound
from patchkit.model.merging.merge import compare_texts
from patchkit.model.merging.regions import Region, ThreeWay, common_ends
from patchkit.model.merging.scopes import misplaced
from patchkit.model.names import PYTHON
from patchkit.model.syntax import definitions
from patchkit.model.text import counted

#: The texts of a file are at most so many bytes larger than all of its sides.
_MORE = 1 << 20
SHOWN = 200  # characters of a line in a message
_HINT = "`dropped` names what is so on purpose"
_LINE = re.compile(r"\bline (\d+)")


def merged_text(
    request: MergeRequest, given: Sequence[str], named: Collection[str]
) -> tuple[bytes, Collection[str], list[Problem]]:
    """The file with what is given for its conflicts, the lines that are against a side, and what
    does not hold, each at its place; of laws that rest on each other the first that fails.

    `named` are such lines, without blanks around, of which the proposal says that it means it so.
    The engine asks once more what it asks of any merger: what that says is the last word.
    """
    path, sides = request.path, (request.base, request.upstream, request.patched)
    three = compare_texts(*sides)
    if len(given) != (wanted := len(three.conflicts)):
        what = f"has {counted(wanted, 'conflict')}, and {len(given)} are merged"
        return b"", (), [Problem(what, path, "one text for each, in their order")]
    if sum(map(len, given)) > _MORE + sum(map(len, sides)):
        return b"", (), [Problem("is far larger than its sides", path)]
    todo, texts, odd = iter(given), list[Sequence[bytes]](), dict[str, Problem]()
    for region in three.regions:
        lines: Sequence[bytes] | None = region.settled
        if lines is None:
            lines = _in_place(region, next(todo))
            odd |= _against_a_side(region, lines, f"{path}:{region.upstream_at + 1}")
        texts.append(lines)
    data = three.assemble(texts)
    problems = [problem for line, problem in odd.items() if line not in named]
    return data, odd, problems or [*_unsound(request, data)] or [*_moved(request, three, data)]


def _in_place(region: Region, text: str) -> Sequence[bytes]:
    """The lines of a region: what stands outside of its markers, and a text between them."""
    above, below = common_ends(region.upstream, region.patch)
    ended = text if text.endswith("\n") or not text else f"{text}\n"
    lines = split_lines(ended.encode("utf-8", "surrogatepass"))
    end = len(region.upstream) - below
    return (*region.upstream[:above], *lines, *region.upstream[end:])


def _against_a_side(region: Region, lines: Sequence[bytes], place: str) -> dict[str, Problem]:
    """The lines, blanks around them apart, of which there are too few or too many; "" where nothing
    is left of what both sides have.

    Invariant: what one side took away is gone, what one side brought is there, and the rest stays
    as often as it was.
    """
    sides = region.base, region.upstream, region.patch
    base, upstream, patch, found = map(counted_lines, (*sides, lines))
    if upstream and patch and not found:
        return {"": Problem("nothing is left of what both sides have", place)}
    away = (base - upstream) | (base - patch)
    least = (base - away) + ((upstream - base) | (patch - base))
    lost, kept = least - found, (found - least) & away
    odd = {line.decode("utf-8", "replace"): line in lost for line in lost | kept}
    return {
        line: Problem(
            f"the line `{line[:SHOWN]}` is {'gone' if is_gone else 'there still'}", place, _HINT
        )
        for line, is_gone in odd.items()
    }


def _unsound(request: MergeRequest, data: bytes) -> Iterator[Problem]:
    """What is said of a file by itself, and of any merger's."""
    said = parse_problem(request.path, data)
    if said := f"does not parse: {said}" if said else refused(request, data):
        line = _LINE.search(said)
        yield Problem(said, f"{request.path}:{line[1]}" if line else request.path)


def _moved(request: MergeRequest, three: ThreeWay, data: bytes) -> Iterator[Problem]:
    """What Python's own tables say of definitions, names and scopes."""
    path, old, here, own = request.path, request.base, request.upstream, request.patched
    if not path.endswith(PYTHON):
        return
    base, upstream, patch, merged = (definitions(text).keys() for text in (old, here, own, data))
    gone = ((upstream & patch) | (upstream - base) | (patch - base)) - merged
    edits = diff_lines(three.upstream, split_lines(data))
    scopes = misplaced(old, own, here, data, path=path, edits=edits)
    for said in (
        *(f"does not define {name} any more" for _, name in gone),
        *(f"uses a name that nothing defines: {name}" for name in names_unbound(path, three, data)),
        *(f"a line of the patch {other}" for other in scopes),
    ):
        yield Problem(said, path)
