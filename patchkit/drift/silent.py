"""Patches that still apply, and perhaps no longer do their job.

Git only looks at the lines of a hunk. Here the function around each hunk is compared, as the patch
leaves it on the pin and at the tip: it may have changed, the hunk may have landed in another one,
and names that the patch uses may be gone from the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchkit.drift.telling import landed
from patchkit.drift.values import Landed, Suspicion
from patchkit.gitcmd.firstparent import landings
from patchkit.gitcmd.objects import ObjectReader
from patchkit.histories import History
from patchkit.model.diff import split_lines
from patchkit.model.enclosing import enclosing, find_enclosure, names_in
from patchkit.model.outcome import FileOutcome, PatchOutcome
from patchkit.model.patch import FileChange, Hunk
from patchkit.stack import SeriesPatch, StackBuilder, patch_changes

_PYTHON = (".py", ".pyi")


def find_suspicions(
    history: History, reader: ObjectReader, patches: Sequence[SeriesPatch]
) -> tuple[tuple[Suspicion, ...], ...]:
    """For each patch that applies on the pin and at the tip, what looks wrong at the tip."""
    pin = StackBuilder(reader, history.base(history.pin))
    tip = StackBuilder(reader, history.base(history.tip))
    found: list[tuple[Suspicion, ...]] = []
    for patch in patches:
        then, now = pin.push(patch), tip.push(patch)
        both = then.status.applies and now.status.applies
        looking = _Looking(history, reader, pin, tip)
        found.append(tuple(looking.compare(patch, then, now)) if both else ())
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Looking:
    history: History
    reader: ObjectReader
    pin: StackBuilder
    tip: StackBuilder

    def compare(
        self, patch: SeriesPatch, then: PatchOutcome, now: PatchOutcome
    ) -> Iterator[Suspicion]:
        changes = patch_changes(patch)
        for change, before, after in zip(changes, then.files, now.files, strict=True):
            if change.hunks and change.path.endswith(_PYTHON) and change.old_path is not None:
                yield from self._file(change, before, after)

    def _file(
        self, change: FileChange, before: FileOutcome, after: FileOutcome
    ) -> Iterator[Suspicion]:
        old, new = _lines(self.pin, change.path), _lines(self.tip, change.path)
        if old == new:
            return
        for number, hunk in enumerate(change.hunks):
            shown = Suspicion(change.path, number + 1, hunk.line, "", "")
            then = enclosing(old, _first_change(hunk) + before.offsets[number])
            now = enclosing(new, _first_change(hunk) + after.offsets[number])
            was, is_now = then.name if then else "", now.name if now else ""
            if was != is_now:
                what = f"lands in {is_now or 'no function'}, was made in {was or 'none'}"
                yield shown.saying("another-scope", what, self._who(change.path, was))
            elif then is not None and now is not None and then.lines != now.lines:
                what = f"{was} has changed around it"
                yield shown.saying("scope-changed", what, self._who(change.path, was))
        yield from _lost_names(change, old, new)

    def _who(self, path: str, name: str) -> Landed | None:
        """The first commit after which the function is another one than on the pin."""
        found = landings(self.history.repository, self.history.fork, self.history.tip, [path])
        touched = [(each.commit, each.touches.get(path)) for each in found]
        oids = [entry.oid for _, entry in touched if entry is not None]
        start = self.pin.base.tree
        first = self._at(start, path, name)
        versions = self.reader.read_present(oids)
        for commit, entry in touched:
            data = versions.get(entry.oid) if entry is not None else None
            around = find_enclosure(split_lines(data or b""), name)
            if (around.lines if around is not None else None) != first:
                return landed(self.history, commit)
        return None

    def _at(self, tree: str, path: str, name: str) -> tuple[bytes, ...] | None:
        base = StackBuilder(self.reader, self.pin.base)
        assert base.tree_id == tree
        around = find_enclosure(_lines(base, path), name)
        return around.lines if around is not None else None


def _lines(builder: StackBuilder, path: str) -> list[bytes]:
    entry = builder.tree.entry(path)
    return split_lines(builder.blobs.contents(entry.oid)) if entry is not None else []


def _first_change(hunk: Hunk) -> int:
    """The line, from 0, of the first one that the hunk changes, as it leaves the file."""
    context = next((n for n, line in enumerate(hunk.lines) if line[:1] != b" "), 0)
    return max(hunk.new_start - 1, 0) + context


def _lost_names(
    change: FileChange, old: Sequence[bytes], new: Sequence[bytes]
) -> Iterator[Suspicion]:
    """Names that added lines use, which the rest of the file had on the pin and has no more."""
    added = [line[1:] for hunk in change.hunks for line in hunk.lines if line[:1] == b"+"]
    ours = set(added)
    had = names_in([line for line in old if line not in ours])
    has = names_in([line for line in new if line not in ours])
    for name in sorted(names_in([_code(line) for line in added]) & had - has):
        hunk = next(h for h in change.hunks if any(name in line[1:] for line in h.lines))
        number = change.hunks.index(hunk) + 1
        what = f"{name.decode()} is used by added lines, and gone from the rest of the file"
        yield Suspicion(change.path, number, hunk.line, "name-gone", what)


def _code(line: bytes) -> bytes:
    return line.partition(b"#")[0]
