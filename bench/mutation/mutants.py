"""The mutants of a file, less those that no test should have to notice."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

#: What mutmut puts round a text, and the case it changes.
_MARK = re.compile("xx", re.IGNORECASE)
_NONE = re.compile(r"\bNone\b")
#: A text for people has a space in it; the name of an encoding has no case.
_PROSE = re.compile(r"""(["'])(?:(?!\1).)* (?:(?!\1).)*\1""")
_HINT = re.compile(r"""hint=\w*(?:"[^"]*")?|[,\s]""")
_ENCODING = re.compile(r"""["'](utf-8|ascii|latin-1|surrogateescape)["']""", re.IGNORECASE)


@dataclass(frozen=True)
class Mutant:
    """One mistake: mutmut's name for it, where it is, and the line before and after."""

    name: str
    function: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.function}: {self.before} -> {self.after}"


def mutants_of(tree: Path, path: Path) -> Iterator[Mutant]:
    """Every mutant of one file (relative to `tree`) that is worth a run."""
    mutated = mutate_file_contents(str(path), (tree / path).read_text(encoding="utf-8"))
    lines = mutated.code.splitlines()
    sources = {
        name: lines[span.start - 1 : span.end]
        for name, span in mutated.line_span_by_function_name.items()
    }
    for each in mutated.mutant_names:
        original = re.sub(r"__mutmut_\d+$", "__mutmut_orig", each)
        before, after = _difference(sources[original], sources[each])
        if not any(way(before, after) for way in _LEFT_OUT):
            name = get_mutant_name(path, each)
            yield Mutant(name, _readable(name), before, after)


def _difference(old: Sequence[str], mutated: Sequence[str]) -> tuple[str, str]:
    """What differs, each side as one line; the function's name, which mutmut changes, apart."""
    new = [re.sub(r"__mutmut_\d+\(", "__mutmut_orig(", line) for line in mutated]
    changes = [
        (old[a:b], new[c:d])
        for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, False).get_opcodes()
        if kind != "equal"
    ]
    return _line(part for part, _ in changes), _line(part for _, part in changes)


def _line(parts: Iterable[Sequence[str]]) -> str:
    return " ".join(" ".join(line for part in parts for line in part).split())


def _is_only_text(before: str, after: str) -> bool:
    if "hint=" in before and _HINT.sub("", before) == _HINT.sub("", after):
        return True
    if _plain(before) != _plain(after):
        return False
    return bool(_PROSE.search(before) or _ENCODING.search(before))


def _is_refused_by_types(before: str, after: str) -> bool:
    """None in place of a value, or a positional argument less: mypy's part, and it is checked."""
    if len(_NONE.findall(after)) > len(_NONE.findall(before)):
        return True
    if len(after) >= len(before):
        return False
    same = next(
        (at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]),
        len(after),
    )
    gone = before[same : same + len(before) - len(after)]
    return before[:same] + before[same + len(gone) :] == after and "=" not in gone


def _is_only_proof(before: str, after: str) -> bool:
    """`strict=True` says that two are of a length; where that holds, nothing goes without it."""
    return before.replace(", strict=True", ", ") == after or (
        before.replace("strict=True", "strict=False") == after
    )


_LEFT_OUT = (_is_only_text, _is_refused_by_types, _is_only_proof)


def _plain(line: str) -> str:
    return _MARK.sub("", line).lower()


def _readable(name: str) -> str:
    """`patchkit.model.hunks.place` out of mutmut's mangled name."""
    module, _, mangled = name.rpartition(".")
    plain = re.sub(r"__mutmut_\d+$", "", mangled).removeprefix("x_").removeprefix("xǁ")
    return f"{module}.{plain.replace('ǁ', '.')}"
