"""What drifts without a conflict: hunks and replaced functions, from pin to tip.

- Suspicions: git only looks at the lines of a hunk. Here the function around each hunk is compared,
  as the patch leaves it on the pin and at the tip. Lines that land in another function, and names
  that are gone, a carry to the tip flags.
- Moved targets: functions that another component replaces at run time, and that upstream has
  changed since.

Apart from `ops/line_drift.py`, which alone asks it: two searches, loaded only where one is needed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from patchkit.drift.describe import landed
from patchkit.drift.drift_report import Suspicion
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.model.diff_parse import split_lines
from patchkit.model.finding import Landed
from patchkit.model.merging.scopes import enclosing, find_enclosure
from patchkit.model.names import PYTHON
from patchkit.model.outcome import FileResult, PatchResult
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.syntax import FunctionNode, parse_python, signature_of
from patchkit.stack.build import SeriesPatch, StackBuilder, patch_changes
from patchkit.upstream.history import History

# Suspicions. How one file uses what it defines, by its words alone: which functions are called with
# which arguments, and which names occur at all.


_CALL = re.compile(rb"(?<![\w])([A-Za-z_]\w{2,})\s*\(")
_DEFINITION = re.compile(rb"\s*(?:async\s+def|def|class)\s+(\w+)")


def signatures(lines: Sequence[bytes]) -> dict[bytes, frozenset[str]]:
    """Function or class -> how it is called, in each of its definitions in the file.

    Empty for a file that cannot be parsed.
    """
    found: dict[bytes, set[str]] = {}
    for node in ast.walk(parse_python(b"".join(lines))[0]):
        name, called = "", ""
        if isinstance(node, FunctionNode):
            name, called = node.name, signature_of(node)
        elif isinstance(node, ast.ClassDef):
            made = [each for each in node.body if isinstance(each, FunctionNode)]
            name = node.name
            called = next((signature_of(each) for each in made if each.name == "__init__"), "")
        if called:
            found.setdefault(name.encode(), set()).add(called)
    return {name: frozenset(each) for name, each in found.items()}


def called_in(lines: Sequence[bytes]) -> set[bytes]:
    """The names that code calls; definitions do not count."""
    code = [line.partition(b"#")[0] for line in lines if not _DEFINITION.match(line)]
    return {name for line in code for name in _CALL.findall(line)}


def is_named(lines: Sequence[bytes], name: str) -> bool:
    """Whether the file names a function or class anywhere but where it is defined."""
    word = re.compile(rb"(?<!\w)" + re.escape(name.encode()) + rb"(?!\w)")
    for line in lines:
        defined = _DEFINITION.match(line)
        own = defined is not None and defined[1] == name.encode()
        if len(word.findall(line.partition(b"#")[0])) > own:
            return True
    return False


# Shorter names are everywhere.
_TELLING = 4


def find_suspicions(
    history: History, reader: ObjectReader, patches: Sequence[SeriesPatch]
) -> tuple[tuple[Suspicion, ...], ...]:
    """For each patch that applies on the pin and at the tip, what looks wrong at the tip."""
    pin = StackBuilder(reader, history.base(history.pin, reader))
    tip = StackBuilder(reader, history.base(history.tip, reader))
    found: list[tuple[Suspicion, ...]] = []
    for patch in patches:
        then, now = pin.push(patch), tip.push(patch)
        both = then.status.applies and now.status.applies
        looking = _HunkComparison(history, reader, pin, tip)
        found.append(tuple(looking.compare(patch, then, now)) if both else ())
    return tuple(found)


class _HunkComparison(Struct, frozen=True):
    history: History
    reader: ObjectReader  # reads the objects of both
    pin: StackBuilder  # the stack on the pin
    tip: StackBuilder  # the stack as far as it applies at the tip

    def compare(
        self, patch: SeriesPatch, then: PatchResult, now: PatchResult
    ) -> Iterator[Suspicion]:
        changes = patch_changes(patch)
        for change, before, after in zip(changes, then.files, now.files, strict=True):
            if change.hunks and change.path.endswith(PYTHON) and change.old_path is not None:
                yield from self._file(change, before, after)

    def _file(
        self, change: FileChange, before: FileResult, after: FileResult
    ) -> Iterator[Suspicion]:
        old, new = _lines(self.pin, change.path), _lines(self.tip, change.path)
        if old == new:
            return
        for number, hunk in enumerate(change.hunks):
            then = enclosing(old, _first_change(hunk) + before.offsets[number])
            now = enclosing(new, _first_change(hunk) + after.offsets[number])
            if then is not None and now is not None and then.name == now.name and then != now:
                what, by = (
                    f"{then.name} has changed around it",
                    self._around(change.path, then.name),
                )
                yield Suspicion(change.path, number + 1, hunk.line, "scope-changed", what, by)
        yield from self._unused(change, old, new, after)
        yield from self._called_otherwise(change, old, new)

    def _unused(
        self,
        change: FileChange,
        old: Sequence[bytes],
        new: Sequence[bytes],
        after: FileResult,
    ) -> Iterator[Suspicion]:
        """Patched functions that the file named elsewhere on the pin, and no more at the tip."""
        seen: set[str] = set()
        for number, hunk in enumerate(change.hunks):
            around = enclosing(new, _first_change(hunk) + after.offsets[number])
            name = around.name.rpartition(".")[2] if around is not None else ""
            if len(name) < _TELLING or name.startswith("__") or name in seen:
                continue
            seen.add(name)
            if is_named(old, name) and not is_named(new, name):
                what = f"{name}, which it patches, is not used in the file any more"
                by = self._who(change.path, partial(is_named, name=name))
                yield Suspicion(change.path, number + 1, hunk.line, "not-called", what, by)

    def _called_otherwise(
        self, change: FileChange, old: Sequence[bytes], new: Sequence[bytes]
    ) -> Iterator[Suspicion]:
        """Functions of the file that added lines call, and that take other arguments now."""
        calls = [called_in(hunk.added) for hunk in change.hunks]
        if not any(calls):
            return
        had, has = signatures(old), signatures(new)
        for name in sorted(set[bytes]().union(*calls)):
            if name in had and name in has and had[name] != has[name]:
                number = next(n for n, each in enumerate(calls) if name in each)
                line = change.hunks[number].line
                now = " or ".join(sorted(has[name]))
                what = f"{name.decode()} is called by added lines, and takes {now} now"
                by = self._who(change.path, partial(_signature, name=name))
                yield Suspicion(change.path, number + 1, line, "name-changed", what, by)

    def _around(self, path: str, name: str) -> Landed | None:
        """The first commit after which the function is another one than on the pin."""

        def lines_of(lines: Sequence[bytes]) -> object:
            around = find_enclosure(lines, name)
            return around.lines if around is not None else None

        return self._who(path, lines_of)

    def _who(self, path: str, probe: Callable[[Sequence[bytes]], object]) -> Landed | None:
        """The first commit whose file answers otherwise than the pin's."""
        found = self.history.landings([path])
        touched = [(each.commit, each.touches.get(path)) for each in found]
        oids = [entry.oid for _, entry in touched if entry is not None]
        first = probe(_lines(StackBuilder(self.reader, self.pin.base), path))
        versions = self.reader.read_present(oids)
        for commit, entry in touched:
            data = versions.get(entry.oid) if entry is not None else None
            if probe(split_lines(data or b"")) != first:
                return landed(self.history, commit)
        return None


def _lines(builder: StackBuilder, path: str) -> list[bytes]:
    entry = builder.tree.entry(path)
    return split_lines(builder.blobs.contents(entry.oid)) if entry is not None else []


def _first_change(hunk: Hunk) -> int:
    """The line, from 0, of the first one that the hunk changes, as it leaves the file."""
    context = next((n for n, line in enumerate(hunk.lines) if line[:1] != b" "), 0)
    return max(hunk.new_start - 1, 0) + context


def _signature(lines: Sequence[bytes], name: bytes) -> frozenset[str] | None:
    return signatures(lines).get(name)
