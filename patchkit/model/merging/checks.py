"""Look over a merged file as a reviewer would, before anybody relies on it.

All that a rule does must show in the differences: upstream's file must change by just the lines by
which the patch changed the old one, and the patched file by just upstream's. The rest are doubts:
names that the new lines use and upstream no longer has or nothing binds, the same thing defined by
both sides, a file that could be parsed and no longer can.
"""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import re
import symtable
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from hashlib import sha256
from typing import TypeVar

from patchkit.model.line_diff import Edit
from patchkit.model.merging.regions import Doubt, ThreeWay

_Answer = TypeVar("_Answer")

_NAME = re.compile(rb"[A-Za-z_]\w{2,}")
_TELLING = re.compile(rb"\w.*\w.*\w")
_DEFINITION = re.compile(
    rb"(?m)^[ \t]*(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|([A-Za-z_]\w*)[ \t]*:)"
)
_IMPORT = re.compile(rb"(?m)^[ \t]*(?:from|import)[ \t]")
# Upstream has these whether it uses them or not.
_ALWAYS_THERE = frozenset(name.encode() for name in (*keyword.kwlist, *dir(builtins)))
_STRING_OR_COMMENT = re.compile(rb"#.*|\"[^\"\n]*\"|'[^'\n]*'")

#: From this share of a file's added lines on, upstream is taken to have made the change itself.
MOST = 0.6
# Fewer lines than this happen to be new on both sides.
_ENOUGH = 2


#: Answers about files' contents that are kept: those of the sides of merges, which meet again and
#: again while a stack is carried to many versions of its files.
_KEPT = 4096


def _kept(ask: Callable[[bytes], _Answer]) -> Callable[[bytes], _Answer]:
    """The same question, asked once about the same contents, which are not held."""
    known: dict[bytes, _Answer] = {}

    @wraps(ask)
    def asked(data: bytes) -> _Answer:
        key = sha256(data).digest()
        if key not in known:
            if len(known) >= _KEPT:
                known.clear()
            known[key] = ask(data)
        return known[key]

    return asked


def lines_lost(
    base: Sequence[bytes],
    upstream: Sequence[bytes],
    patch: Sequence[bytes],
    merged: Sequence[bytes],
) -> bool:
    """Whether the merge lost or doubled a line: of the patch's change, or of upstream's.

    Compared as numbers of equal lines without their indentation (which may follow a move).
    """
    return _difference(upstream, merged) != _difference(base, patch)


def upstream_share(three: ThreeWay) -> float:
    """The part of the telling lines that the patch adds to the file and that upstream adds, too."""
    added = added_lines(three.base, three.patch, three.patch_edits)
    total = sum(added.values())
    if total < _ENOUGH:
        return 0.0
    return (
        sum((added & added_lines(three.base, three.upstream, three.upstream_edits)).values())
        / total
    )


def has_doubled_hunk(three: ThreeWay) -> bool:
    """Whether upstream adds what some edit of the patch adds, at another place.

    Only lines that the old file does not have at all are a sign, those that it repeats anyway
    happen to be added by both; they must be half of the edit, and upstream must add all of them.
    """
    come = added_lines(three.base, three.upstream, three.upstream_edits)
    for region in three.regions:
        for edit in region.patch_edits if region.patch != region.upstream else ():
            added = added_lines(three.base, three.patch, (edit,))
            if not added.keys() & come.keys():
                continue
            known = {line.strip() for line in three.base}
            novel = Counter({line: count for line, count in added.items() if line not in known})
            if novel and novel <= come and 2 * novel.total() >= added.total():
                return True
    return False


def added_lines(
    old: Sequence[bytes], new: Sequence[bytes], edits: Iterable[Edit]
) -> Counter[bytes]:
    """The telling lines that the edits add, less those that they take away."""
    come, gone = Counter[bytes](), Counter[bytes]()
    for edit in edits:
        come.update(_telling(new[edit.new_start : edit.new_end]))
        gone.update(_telling(old[edit.start : edit.end]))
    return come - gone


def names_gone(three: ThreeWay) -> tuple[str, ...]:
    """Names that the patch's new lines use, known to the old file and not to upstream's.

    A name that only the patch's own new lines bring along, and one that the patch took out of use
    itself, is not upstream's to keep.
    """
    used = names_used(
        line for edit in three.patch_edits for line in three.patch[edit.new_start : edit.new_end]
    )
    kept = names_used(line for edit in _between(three) for line in three.base[edit[0] : edit[1]])
    gone = (used & kept) - names_used(three.upstream)
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
    if not _compiles(merged):
        return (Doubt.DOES_NOT_PARSE,) if all(map(_compiles, before)) else ()
    if not _may_define_twice(before, merged):
        return ()
    repeated = {name: n for name, n in _definitions(merged).items() if n > 1}
    for known in map(_definitions, before):  # as one of the sides has it, perhaps
        repeated = {name: n for name, n in repeated.items() if n > known[name]}
    return (Doubt.DEFINED_TWICE,) if repeated else ()


def _difference(
    old: Sequence[bytes], new: Sequence[bytes]
) -> tuple[Counter[bytes], Counter[bytes]]:
    """The lines that are there more often, and less often, without their indentation."""
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = (
        Counter(line.strip() for line in each[start : len(each) - end]) for each in (old, new)
    )
    del before[b""], after[b""]
    return after - before, before - after


def _telling(lines: Sequence[bytes]) -> Iterator[bytes]:
    return (line.strip() for line in lines if _TELLING.search(line))


def names_used(lines: Iterable[bytes]) -> set[bytes]:
    """The names in lines of code, but for Python's own, those in comments and in short strings."""
    found = set(_NAME.findall(_STRING_OR_COMMENT.sub(b"", b"".join(lines))))
    return found - _ALWAYS_THERE


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


@_kept
def _compiles(data: bytes) -> bool:
    """Whether the compiler takes it: it sees more than the parser, such as repeated arguments."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "file", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _parse(data: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _may_define_twice(before: Sequence[bytes], merged: bytes) -> bool:
    """Whether something is defined more often, in whatever scope: a quick no for most files."""
    imports = [len(_IMPORT.findall(each)) for each in (merged, *before)]
    if imports[0] > min(imports[1:]):
        return True
    sides = [Counter(_DEFINITION.findall(each)) for each in before]
    return any(
        count > 1 and count > min(side[name] for side in sides)
        for name, count in Counter(_DEFINITION.findall(merged)).items()
    )


@_kept
def _definitions(data: bytes) -> Counter[tuple[str, str]]:
    """(scope, name) of what is defined, annotated or imported, with how often it is there."""
    tree = _parse(data)
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
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = (each.asname or each.name for each in node.names)
                found.update((scope, f"import {name}") for name in names)
    return found


# Names that a merged Python file uses and nothing in it binds: a NameError later. One side takes a
# name away, the other one uses it in new lines; git's own merge is clean then. The compiler's own
# tables of scopes tell, so that a name that another function binds is no help, and strings,
# comments and attributes are no names.


#: Bound in every module, besides the built-in ones.
_MODULE = frozenset(("__file__", "__path__", "__builtins__", "__annotations__", "__class__"))
_BOUND = frozenset(dir(builtins)) | _MODULE
_WORD = re.compile(rb"[^\W\d]\w*")
_EVERYTHING = re.compile(rb"(?m)^[ \t]*from[ \t]+\S+[ \t]+import[ \t]*\*")


def names_unbound(path: str, three: ThreeWay, merged: bytes) -> tuple[str, ...]:
    """Names without a binding in `merged` that have one, or are not used, on each side."""
    if not path.endswith(".py") or not _may_lose_a_binding(three):
        return ()
    sides = [unbound_names(b"".join(side)) for side in (three.upstream, three.patch)]
    result = unbound_names(merged)
    if result is None or any(side is None for side in sides):
        return ()
    return tuple(sorted(result.difference(*(side for side in sides if side is not None))))


@_kept
def unbound_names(data: bytes) -> frozenset[str] | None:
    """The names that have no binding in their scopes; None if nobody can say.

    That is a file that does not parse, or that imports everything of another module.
    """
    if _EVERYTHING.search(data):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # it takes bytes as `compile` does, a line that names their encoding included
            module = symtable.symtable(data, "file", "exec")  # type: ignore[arg-type]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    bound, used = set[str](), set[str]()
    todo = [module]
    while todo:
        scope = todo.pop()
        todo += scope.get_children()
        for symbol in scope.get_symbols():
            everywhere = scope is module or symbol.is_declared_global()
            if everywhere and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
            if symbol.is_referenced() and (scope is module or symbol.is_global()):
                used.add(symbol.get_name())
    return frozenset(used - bound - _BOUND)


def _may_lose_a_binding(three: ThreeWay) -> bool:
    """Whether a word that one side takes away is in the other's new lines: mostly none is."""
    up, own = three.upstream_edits, three.patch_edits
    return bool(
        _taken(three.base, up) & _brought(three.patch, own)
        or _taken(three.base, own) & _brought(three.upstream, up)
    )


def _taken(base: Sequence[bytes], edits: Iterable[Edit]) -> set[bytes]:
    return {word for e in edits for line in base[e.start : e.end] for word in _WORD.findall(line)}


def _brought(side: Sequence[bytes], edits: Iterable[Edit]) -> set[bytes]:
    lines = (line for e in edits for line in side[e.new_start : e.new_end])
    return {word for line in lines for word in _WORD.findall(line)}
