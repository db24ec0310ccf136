"""Look over a merged file as a reviewer would, before anybody relies on it.

All that a rule does must show in the differences: upstream's file must change by just the lines by
which the patch changed the old one, and the patched file by just upstream's. The rest are doubts:
names that the new lines use and upstream no longer has, the same thing defined by both sides, a
file that could be parsed and no longer can.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

from patchkit.model.merging.regions import ThreeWay
from patchkit.model.merging.values import Doubt

_NAME = re.compile(rb"[A-Za-z_]\w{2,}")
_TELLING = re.compile(rb"\w.*\w.*\w")
_STRING_OR_COMMENT = re.compile(rb"#.*|\"[^\"]*\"|'[^']*'")

#: From this share of a file's added lines on, upstream is taken to have made the change itself.
MOST = 0.6
# Fewer lines than this happen to be new on both sides.
_ENOUGH = 2


def lines_lost(
    base: Sequence[bytes],
    upstream: Sequence[bytes],
    patch: Sequence[bytes],
    merged: Sequence[bytes],
) -> bool:
    """Whether the merge lost or doubled a line: of the patch's change, or of upstream's.

    Compared as numbers of equal lines without their indentation (which may follow a move).
    """
    b, u, p, m = (
        Counter(line.strip() for line in each) for each in (base, upstream, patch, merged)
    )
    for counter in (b, u, p, m):
        del counter[b""]
    return (m - u, u - m) != (p - b, b - p)


def upstream_share(three: ThreeWay) -> float:
    """The part of the telling lines that the patch adds to the file and that upstream adds, too."""
    added = _net(three.base, three.patch)
    total = sum(added.values())
    if total < _ENOUGH:
        return 0.0
    return sum((added & _net(three.base, three.upstream)).values()) / total


def has_doubled_hunk(three: ThreeWay) -> bool:
    """Whether upstream adds what some edit of the patch adds, at another place.

    Only lines that the old file does not have at all are a sign, those that it repeats anyway
    happen to be added by both; they must be half of the edit, and upstream must add all of them.
    """
    known = _telling(three.base)
    come = _telling(three.upstream) - known
    for region in three.regions:
        for edit in region.patch_edits if region.patch != region.upstream else ():
            new = three.patch[edit.new_start : edit.new_end]
            added = _net(three.base[edit.start : edit.end], new)
            novel = Counter({line: count for line, count in added.items() if line not in known})
            if novel and novel <= come and 2 * novel.total() >= added.total():
                return True
    return False


def names_gone(three: ThreeWay) -> tuple[str, ...]:
    """Names that the patch's new lines use, known to the old file and not to upstream's.

    A name that only the patch's own new lines bring along, and one that the patch took out of use
    itself, is not upstream's to keep.
    """
    used = _names(
        line for edit in three.patch_edits for line in three.patch[edit.new_start : edit.new_end]
    )
    kept = _names(line for edit in _between(three) for line in three.base[edit[0] : edit[1]])
    gone = (used & kept) - _names(three.upstream)
    return tuple(sorted(name.decode("ascii", "replace") for name in gone))


def _between(three: ThreeWay) -> Iterable[tuple[int, int]]:
    """The stretches of the base that the patch leaves as they are."""
    at = 0
    for edit in three.patch_edits:
        yield at, edit.start
        at = edit.end
    yield at, len(three.base)


def file_doubts(path: str, before: Sequence[bytes], merged: bytes) -> tuple[Doubt, ...]:
    """What is wrong with the merged file as such; `before` are files that should be sound, too.

    A kind of file that we cannot parse, or one that did not parse before, is not judged.
    """
    if path.endswith(".json"):
        sound = all(_is_json(each) for each in before)
        return (Doubt.DOES_NOT_PARSE,) if sound and not _is_json(merged) else ()
    if not path.endswith(".py"):
        return ()
    tree = _parse(merged)
    if tree is None:
        sound = all(_parse(each) is not None for each in before)
        return (Doubt.DOES_NOT_PARSE,) if sound else ()
    repeated = {name: count for name, count in _definitions(tree).items() if count > 1}
    if repeated:  # as one of the sides has it, perhaps
        for each in map(_parse, before):
            known = _definitions(each)
            repeated = {name: n for name, n in repeated.items() if n > known[name]}
    return (Doubt.DEFINED_TWICE,) if repeated else ()


def _net(old: Sequence[bytes], new: Sequence[bytes]) -> Counter[bytes]:
    return _telling(new) - _telling(old)


def _telling(lines: Sequence[bytes]) -> Counter[bytes]:
    return Counter(line.strip() for line in lines if _TELLING.search(line))


def _names(lines: Iterable[bytes]) -> set[bytes]:
    return {name for line in lines for name in _NAME.findall(_STRING_OR_COMMENT.sub(b"", line))}


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(data: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
            # repeated arguments, `return` outside of a function: only the compiler sees them
            compile(tree, "file", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree


def _definitions(tree: ast.Module | None) -> Counter[tuple[str, str]]:
    """(scope, name) of every function, class and annotated field, with how often it is there."""
    found = Counter[tuple[str, str]]()
    todo: list[tuple[str, Sequence[ast.stmt]]] = [("", tree.body if tree is not None else ())]
    while todo:
        scope, body = todo.pop()
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                # an overload, a property's setter: told apart by their decorators
                marks = ",".join(ast.dump(each) for each in node.decorator_list)
                found[scope, f"{node.name} {marks}"] += 1
                todo.append((f"{scope}.{node.name}", node.body))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[scope, node.target.id] += 1
    return found
