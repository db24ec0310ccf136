"""A published set on its pin: how far we get, how far `git apply` gets, and to which tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.corpora.judging import BOTH, NEITHER
from bench.corpora.published import Clone, Set, published
from patchkit.errors import BadInputError
from patchkit.gitcmd.object_reader import MissingObjectError, reading
from patchkit.gitcmd.repository import Repository, borrow_objects, init_repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import CommitId
from patchkit.model.outcome import PatchResult, Preimage
from patchkit.stack.build import Base, SeriesPatch, build_stack


@dataclass(frozen=True)
class Verdict:
    """How many patches of a set apply, in their order; the tree after the last one that does; and
    why the next one does not. `other`: a patch applies, to files it was not made against.
    """

    applied: int
    tree: str
    why: str = ""
    other: bool = False


@dataclass
class Found:
    """What came of all sets: counts by where the pin is from and the outcome, refusals with why."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: list[tuple[Set, str]] = field(default_factory=list)
    differ: list[str] = field(default_factory=list)
    unpinned: int = 0
    lacking: int = 0
    other: int = 0

    def total(self) -> int:
        """How many sets both sides judged."""
        return self.counts.total() + len(self.differ)


def judge_published(
    slime: Clone,
    upstreams: Mapping[str, Clone],
    clones: Iterable[Clone],
    folder: Path,
    *,
    tell: Callable[[str], object],
) -> Found:
    """Put every published set on its pin, by us and by git."""
    bench, found = Bench(folder, clones), Found()
    for each in published(slime, upstreams):
        if not each.pin:
            found.unpinned += 1
            continue
        tell(f"{each.commit} {each.date} {each.folder} {each.component}")
        patches = [(path.rpartition("/")[2], slime.blob(oid)) for path, oid in each.patches]
        base = bench.base(each.pin)
        ours, gits = bench.ours(base, patches), bench.gits(base, patches)
        if ours is None or gits is None:
            found.lacking += 1
        elif (ours.applied, ours.tree) != (gits.applied, gits.tree):
            found.differ.append(f"{each.commit} {each.folder} {each.component}: {ours}, {gits}")
        else:
            _count(found, each, ours, whole=ours.applied == len(patches))
    return found


def _count(found: Found, each: Set, ours: Verdict, *, whole: bool) -> None:
    found.counts[each.source, BOTH if whole else NEITHER] += 1
    found.other += whole and ours.other
    if not whole:
        found.refused.append((each, ours.why))


class Bench:
    """A repository that borrows the objects of some clones; `lacking` tells what they lack."""

    def __init__(self, folder: Path, clones: Iterable[Clone]) -> None:
        self.repository: Repository = init_repository(folder / "all.git")
        dirs = [clone.git("rev-parse", "--absolute-git-dir") for clone in clones]
        borrow_objects(self.repository.git_dir, [Path(each) / "objects" for each in dirs])
        self._index = folder / "index"

    def ours(self, base: Base, patches: list[tuple[str, bytes]]) -> Verdict | None:
        """What we make of patches (name, bytes); None if a clone lacks what we need."""
        read: list[SeriesPatch] = []
        corrupt = ""
        for name, data in patches:
            try:
                read.append(SeriesPatch(name, parse_patch(data, name=name)))
            except BadInputError as error:
                corrupt = f"{error.problems[0].where}: {error.problems[0].what}"
                break
        try:
            with reading(self.repository) as reader:
                stack = build_stack(reader, base, read)
        except MissingObjectError:
            return None
        sound = 0
        for outcome in stack.outcomes:
            if not outcome.status.applies:
                return Verdict(sound, stack.tree, told(outcome))
            sound += 1
        other = any(
            file.preimage is Preimage.DIFFERS for each in stack.outcomes for file in each.files
        )
        return Verdict(sound, stack.tree, corrupt, other)

    def gits(self, base: Base, patches: list[tuple[str, bytes]]) -> Verdict | None:
        """The same by `git apply --cached`."""
        git = self.repository.git
        git("read-tree", base.tree, index=self._index)
        for number, (_, data) in enumerate(patches):
            done = git("apply", "--cached", stdin=data, accept=(0, 1, 128), index=self._index)
            if done.code:
                if "unable to read" in done.message or "read the current" in done.message:
                    return None
                return Verdict(number, self._tree(), done.message.splitlines()[0])
        return Verdict(len(patches), self._tree())

    def base(self, commit: str) -> Base:
        """A commit as a base."""
        tree = self.repository.tree(commit)
        assert tree is not None
        return Base(CommitId(commit), tree, "0 +0000")

    def _tree(self) -> str:
        done = self.repository.git("write-tree", "--missing-ok", index=self._index)
        return done.out.decode().strip()


def told(outcome: PatchResult) -> str:
    """How a patch clashes, in facts: files, hunks and reasons."""
    files = [file for file in outcome.files if file.clashes]
    reasons = sorted({clash.reason for file in files for clash in file.clashes}, key=str)
    words = ", ".join(reason.value for reason in reasons)
    places = sum(len(file.clashes) for file in files)
    of = f"{len(files)} of {len(outcome.files)} files"
    return f"{outcome.name}: {of}, {places} place{'s' * (places != 1)}: {words}"
