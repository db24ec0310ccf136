"""Look over a merged file as a reviewer would, before anybody relies on it.

All that a rule does must show in the differences: upstream's file must change by just the lines by
which the patch changed the old one, and the patched file by just upstream's. The rest are doubts:
names that the new lines use and upstream no longer has or nothing binds, the same thing defined by
both sides, a file that could be parsed and no longer can.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from patchkit.model.line_diff import Edit
from patchkit.model.merging.regions import Doubt, ThreeWay, added_lines, common_ends
from patchkit.model.names import PYTHON
from patchkit.model.syntax import definitions, kept, pieces_of, syntax_problem, unbound_names

_NAME = re.compile(rb"\.?[A-Za-z_]\w{2,}")
_WORD = re.compile(rb"[^\W\d]\w*")
#: A line of an import; a function with its parameters, up to one that has a type or a value; a name
#: that a line assigns, or that a loop counts with.
_BOUND = re.compile(
    rb"(?m)^[ \t]*(?:(?:from|import)\b.*|(?:async[ \t]+)?def\b[^):=]*"
    rb"|(?:for[ \t]+)?\w+(?=[ \t]*=(?!=)|[ \t]+in\b))"
)
#: A word that does not stand right behind a dot.
_NO_ATTRIBUTE = re.compile(rb"(?<![\w.])[^\W\d]\w*")
#: A line that defines a function or class, annotates a name, or imports names: see `_defined`.
_DEFINITION = re.compile(
    rb"(?m)^([ \t]*)(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|([A-Za-z_]\w*)[ \t]*:[ \t]*[^\s#]"
    rb"|(?:from[ \t][^\n#]*?[ \t])?import\b[ \t]*(\((?:[^)#]|#[^\n]*)*\)|(?:[^\\\n]|\\.|\\\n)*))"
)
# Upstream has these whether it uses them or not.
_ALWAYS_THERE = frozenset(name.encode() for name in (*keyword.kwlist, *dir(builtins)))
# What values of its own types have: `copy` of a list tells nothing of the file.
_OWN = dict, list, set, str, bytes
_METHODS = frozenset(f".{name}".encode() for kind in _OWN for name in dir(kind))
_STRING_OR_COMMENT = re.compile(rb"#.*|\"[^\"\n]*\"|'[^'\n]*'")

_PROSE = (".md", ".rst", ".adoc")
# Languages with C's comments.
_LIKE_C = (".c", ".h", ".cc", ".cpp", ".cu", ".cuh", ".hpp", ".go", ".java", ".js", ".rs", ".ts")
# What begins a text of several lines that is no code, and what ends it; strings are passed over.
_ENDS_TEXT = {b'"""': b'"""', b"'''": b"'''", b"/*": b"*/", b"//": b"\n"}
_TEXT_MARKS = re.compile(rb"\"\"\"|'''")
_COMMENT_MARKS = re.compile(rb"/\*|\*/|//|\n|\"(?:[^\"\\\n]|\\.)*\"")

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
    return _difference(upstream, merged) != _difference(base, patch)


def upstream_share(three: ThreeWay) -> float:
    """The part of the telling lines that the patch adds to the file and that upstream adds, too."""
    added = added_lines(three.base, three.patch, three.patch_edits)
    if added.total() < _ENOUGH:
        return 0.0
    return (added & three.come).total() / added.total()


def doubled_hunk(three: ThreeWay) -> list[bytes]:
    """What some edit of the patch adds that upstream adds, too, at another place.

    Only lines that the old file does not have at all are a sign, those that it repeats anyway
    happen to be added by both; they must be half of the edit, and upstream must add all of them.
    """
    come = three.come
    for region in three.regions:
        for edit in region.patch_edits if region.patch != region.upstream else ():
            added = added_lines(three.base, three.patch, (edit,))
            if not added.keys() & come.keys():
                continue
            novel = novel_of(added, three)
            if novel and novel <= come and 2 * novel.total() >= added.total():
                return list(novel)
    return []


def novel_of(added: Counter[bytes], three: ThreeWay) -> Counter[bytes]:
    """Those of some lines, without blanks around, that the old file does not have at all."""
    return Counter({line: count for line, count in added.items() if line not in three.known})


def names_gone(path: str, three: ThreeWay) -> tuple[str, ...]:
    """Names that the patch's new lines use, known to the old file and not to upstream's.

    A name that only the patch's own new lines bring along, and one that the patch took out of use
    itself, is not upstream's to keep. The words of prose, docstrings and comments are no names.
    """
    if path.endswith(_PROSE):
        return ()
    used = _names_added(three, three.patch)
    kept = names_used(line for edit in _between(three) for line in three.base[edit[0] : edit[1]])
    gone = (used & kept) - names_used(three.upstream)
    if gone:
        gone &= _names_added(three, code_alone(path, three.patch))
    return tuple(sorted(name.decode("ascii", "replace") for name in gone))


def _names_added(three: ThreeWay, patch: Sequence[bytes]) -> set[bytes]:
    """Names in the new lines that these do not bind themselves."""
    lines = b"".join(x for e in three.patch_edits for x in patch[e.new_start : e.new_end])
    return names_used([lines]) - names_used(_BOUND.findall(lines))


def code_alone(path: str, lines: Sequence[bytes]) -> Sequence[bytes]:
    """Lines of Python without what is in strings that may go over several; of C without comments.

    No parser, which half a file would not pass: three quotes in a comment count, too.
    """
    if not path.endswith((*PYTHON, *_LIKE_C)):
        return lines
    marks = _TEXT_MARKS if path.endswith(PYTHON) else _COMMENT_MARKS
    found, ends = [], b""
    for line in lines:
        code, at = b"", 0
        for mark in marks.finditer(line):
            if not ends and mark[0] in _ENDS_TEXT:
                code, ends = code + line[at : mark.start()], _ENDS_TEXT[mark[0]]
            elif ends == mark[0]:
                ends = b""
            else:
                continue
            at = mark.end()
        found.append(code if ends else code + line[at:])
    return found


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
    if syntax_problem(path, merged):
        return () if any(syntax_problem(path, side) for side in before) else (Doubt.DOES_NOT_PARSE,)
    if not path.endswith(".py") or not _may_define_twice(before, merged):
        return ()
    repeated = {name: n for name, n in definitions(merged).items() if n > 1}
    for each in before:  # as one of the sides has it, perhaps
        known = definitions(each) if repeated else {}
        repeated = {name: n for name, n in repeated.items() if n > known[name]}
    return (Doubt.DEFINED_TWICE,) if repeated else ()


def _difference(
    old: Sequence[bytes], new: Sequence[bytes]
) -> tuple[Counter[bytes], Counter[bytes]]:
    """The lines that are there more often, and less often, without their indentation."""
    start, end = common_ends(old, new)
    before, after = (
        Counter(line.strip() for line in each[start : len(each) - end]) for each in (old, new)
    )
    del before[b""], after[b""]
    return after - before, before - after


def names_used(lines: Iterable[bytes]) -> set[bytes]:
    """The names in lines of code, but for Python's own, those in comments and in short strings, and
    the methods that values of Python's own have, and each test.
    """
    found = set(_NAME.findall(_STRING_OR_COMMENT.sub(b"", b"".join(lines)))) - _METHODS
    names = {name.removeprefix(b".") for name in found if not name.startswith(b".assert")}
    return names - _ALWAYS_THERE


def _may_define_twice(before: Sequence[bytes], merged: bytes) -> bool:
    """Whether a name has a definition here that each side lacks: a quick no for most files."""
    found = _defined(merged)
    return bool(set.intersection(*({row[-1] for row in found - _defined(side)} for side in before)))


def _defined(data: bytes) -> Counter[tuple[bytes, ...]]:
    """What seems to be defined, annotated or imported: more is found than is so."""
    found = Counter[tuple[bytes, ...]]()
    for each in pieces_of(data):
        found.update(_defined_in(each))
    return found


@kept
def _defined_in(data: bytes) -> Counter[tuple[bytes, ...]]:
    """Each name with what tells its scope: the first definition of the piece, the last one above,
    how deep it stands.
    """
    found, first, last = Counter[tuple[bytes, ...]](), b"", b""
    for depth, name, annotated, imported in _DEFINITION.findall(data):
        names = [name or annotated] if name or annotated else _WORD.findall(imported)
        found.update((first, last, depth, each) for each in names)
        first, last = first or name, name or last
    return found


# Names that a merged Python file uses and nothing in it binds: one side takes a name away, the
# other one uses it in new lines; git's own merge is clean then.


def names_unbound(path: str, three: ThreeWay, merged: bytes) -> tuple[str, ...]:
    """Names without a binding in `merged` that have one, or are not used, on each side."""
    if not path.endswith(".py") or not _may_lose_a_binding(three, merged):
        return ()
    names = unbound_names(merged)
    for side in (three.patch, three.upstream):  # the patch's is known of other versions
        there = unbound_names(b"".join(side)) if names else None
        names = None if names is None or there is None else names - there
    return tuple(sorted(names or ()))


def _may_lose_a_binding(three: ThreeWay, merged: bytes) -> bool:
    """Whether a name that one side takes away is in the other's new lines: mostly none is."""
    up, own = three.upstream_edits, three.patch_edits
    words = _taken(three.base, up) & _brought(three.patch, own)
    words |= _taken(three.base, own) & _brought(three.upstream, up)
    words -= _ALWAYS_THERE
    return bool(words) and not words.isdisjoint(_NO_ATTRIBUTE.findall(merged))


def _taken(base: Sequence[bytes], edits: Iterable[Edit]) -> set[bytes]:
    return {word for e in edits for line in base[e.start : e.end] for word in _WORD.findall(line)}


def _brought(side: Sequence[bytes], edits: Iterable[Edit]) -> set[bytes]:
    lines = (line for e in edits for line in side[e.new_start : e.new_end])
    return {word for line in lines for word in _WORD.findall(line)}
