"""`python -m bench.carry.mine OWNER/NAME --mirrors DIR --kind KIND`: make cases from a history.

What is printed is a case file for `bench.carry.run`: facts only, the text stays in the clone. Five
kinds of changes that somebody carried by hand, so that what they committed is the truth:

- *merges*: both parents changed a file; the side that changed fewer files is the patch
- *rebases*: a commit whose author, date and subject another commit has, too, on an older parent
- *picks*: a commit that names the one it was picked from
- *reverts*: the undoing of a commit, some commits later
- *landed*: a picked change carried onto the line where it was made, which has it: the truth is that
  nothing is left to do; some commits later what came of it stands in another form

A file that only one side changed, or both alike, is left out. `cls` says what was done with a
change: kept as it was (pure), dropped, reworked, or upstream already (landed). `hard`: git's
three-way merge conflicts.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from pathlib import Path
from stat import S_IFDIR, S_ISDIR
from typing import Any

from patchkit.gitcmd.object_reader import MissingObjectError, ObjectReader
from patchkit.gitcmd.repository import Repository
from patchkit.model.diff_parse import split_lines
from patchkit.model.merging.regions import compare_three
from patchkit.model.objects import CommitId, TreeEntry, TreeId

_PICKED = re.compile(r"cherry[ -]picked from commit ([0-9a-f]{40})")
_REVERTED = re.compile(r"This reverts commit ([0-9a-f]{40})")
_LATER = (0, 50, 400)  # commits after a change landed
_MOST_FILES = 300  # of a change: more is no patch
_VERSIONS = 8  # of a commit that was rebased time and again
_MISSING = (0, 1, 128)
_PLAIN = 0o100644


@dataclass(frozen=True)
class Carry:
    """A change from `base` to `tip`, carried from `base` to `onto`, where `result` came of it.

    `ours`: it is a merge of `onto` into the branch of `tip`, whose lines come first by convention.
    """

    kind: str
    base: str
    tip: str
    onto: str
    result: str
    ours: bool = False


@dataclass
class Mine:
    """One clone, looked through."""

    name: str
    repository: Repository
    reader: ObjectReader
    seed: int = 1
    seen: set[tuple[str, ...]] = field(default_factory=set)
    _line: tuple[str, ...] = ()
    _places: dict[str, int] = field(default_factory=dict)

    def log(self, *options: str) -> list[tuple[str, list[str], str]]:
        """(id, parents, body) of all commits that the options choose, in no order."""
        out = self.repository.git("log", "--all", "-z", "--format=%H%n%P%n%b", *options).out
        records = (each.split("\n", 2) for each in out.decode("utf-8", "replace").split("\0"))
        commits = [(each[0], each[1].split(), each[2]) for each in records if len(each) == 3]
        random.Random(self.seed).shuffle(commits)
        return commits

    def parent(self, commit: str) -> str | None:
        """The parent of a commit that has just one, and is here."""
        try:
            head = self.reader.commit(commit).partition(b"\n\n")[0].split(b"\n")
        except MissingObjectError:
            return None
        ids = [line[7:].decode() for line in head if line.startswith(b"parent ")]
        return ids[0] if len(ids) == 1 else None

    def merge_base(self, one: str, other: str) -> str | None:
        """The merge base of two commits that have just one."""
        done = self.repository.git("merge-base", "--all", one, other, accept=_MISSING)
        ids = done.out.decode().split()
        return ids[0] if len(ids) == 1 else None

    def has(self, tip: str, commit: str) -> bool:
        """Whether a commit is in the history of another one."""
        asked = ("merge-base", "--is-ancestor", commit, tip)
        return self.repository.git(*asked, accept=_MISSING).code == 0

    def later(self, commit: str, steps: int) -> str | None:
        """The commit so many steps after, on the first-parent line of HEAD."""
        if not self._line:
            out = self.repository.git("rev-list", "--first-parent", "HEAD").out.decode()
            self._line = tuple(out.split())
            self._places = {oid: number for number, oid in enumerate(self._line)}
        at = self._places.get(commit)
        return None if at is None or at < steps else self._line[at - steps]

    def changed(self, old: str, new: str) -> dict[str, tuple[str, str]]:
        """Path -> (old blob, new blob) of the plain files that differ."""
        found: dict[str, tuple[str, str]] = {}
        waiting = [("", *(self.reader.root(CommitId(each)) for each in (old, new)))]
        while waiting:
            folder, one, other = waiting.pop()
            before, after = (self.reader.tree(oid) for oid in (one, other))
            for name, was in before.items():
                now = after.get(name)
                if now is None or now.oid == was.oid or now.mode != was.mode:
                    continue
                if S_ISDIR(was.mode):
                    waiting.append((f"{folder}{name}/", TreeId(was.oid), TreeId(now.oid)))
                elif was.mode == _PLAIN:
                    found[f"{folder}{name}"] = (was.oid, now.oid)
        return found

    def plain(self, tree: TreeId, path: str) -> str:
        """The blob of a plain file in a tree; "" where none is."""
        entry: TreeEntry | None = TreeEntry(S_IFDIR, tree)
        for each in path.split("/"):
            if entry is None or not S_ISDIR(entry.mode):
                return ""
            entry = self.reader.tree(TreeId(entry.oid)).get(each)
        return entry.oid if entry is not None and entry.mode == _PLAIN else ""

    def case(self, carry: Carry, *, with_clean: bool) -> dict[str, Any] | None:
        """The facts of a case; None if it has no file to look at."""
        own = self.changed(carry.base, carry.tip)
        if len(own) > _MOST_FILES or not own:
            return None
        onto, result = (self.reader.root(CommitId(each)) for each in (carry.onto, carry.result))
        files = []
        for path, (old, patched) in sorted(own.items()):
            upstream = self.plain(onto, path)
            blobs = (old, patched, upstream, self.plain(result, path) or upstream)
            if upstream not in ("", old, patched) and blobs not in self.seen:
                facts = self._file(path, blobs, carry.kind)
                self.seen.add(blobs)
                if facts is not None and (facts["hard"] or with_clean):
                    files.append(facts)
        commits = {"A": carry.tip, "A_base": carry.base, "B": carry.result, "B_base": carry.onto}
        key = f"{self.name}-{carry.kind}-{carry.tip[:8]}-{carry.result[:8]}"
        named = {"id": key, "repo": self.name, "kind": carry.kind, "ours": carry.ours}
        return {**named, **commits, "files": files} if files else None

    def _file(
        self, path: str, blobs: tuple[str, str, str, str], kind: str
    ) -> dict[str, Any] | None:
        texts = self.reader.read_present(blobs)
        if len(texts) < len(set(blobs)) or any(b"\0" in each for each in texts.values()):
            return None
        old, patched, upstream, truth = (split_lines(texts[each]) for each in blobs)
        names = ("pre_old", "post_old", "pre_new", "truth")
        facts = {"path": path, **dict(zip(names, blobs, strict=True))}
        facts["cls"] = "landed" if kind == "landed" else what_became(old, patched, upstream, truth)
        return {**facts, "hard": bool(compare_three(old, upstream, patched).conflicts)}


def merges(mine: Mine) -> Iterator[Carry]:
    """Merges of two, each with the smaller side as the patch."""
    for commit, parents, _ in mine.log("--merges"):
        base = mine.merge_base(*parents) if len(parents) == 2 else None
        if base is None:
            continue
        sides = sorted(parents, key=lambda each: (len(mine.changed(base, each)), each))
        yield Carry("merges", base, sides[0], sides[1], commit, sides[0] == parents[0])


def rebases(mine: Mine) -> Iterator[Carry]:
    """Commits of one author, date and subject on two parents: the same change on a newer base."""
    twins: dict[tuple[str, ...], list[tuple[int, str, str]]] = {}
    form = "--format=%H%x00%P%x00%ct%x00%an%x00%at%x00%s"
    out = mine.repository.git("log", "--all", "--no-merges", form).out
    # a subject may have one of the other characters that end a line for Python
    for line in out.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        commit, parents, committed, *key = line.split("\0")
        if parents and " " not in parents:
            twins.setdefault(tuple(key), []).append((int(committed), commit, parents))
    groups = [sorted(each) for each in twins.values() if len(each) > 1]
    # A topic that was rebuilt every day has hundreds of versions: each topic once, over some of
    # them, as nearer bases seldom conflict; then the neighbours.
    pairs = [tuple(each[:_VERSIONS]) for each in groups]
    near = [pair for each in groups for pair in pairwise(each) if len(each) > len(pair)]
    for some in (pairs, near):
        random.Random(mine.seed).shuffle(some)
    for versions in chain(pairs, near):
        (_, old, before), (_, new, onto) = versions[0], versions[-1]
        # what is in the new base by the same commit was not carried there, but changed once more
        if before != onto and not any(mine.has(onto, commit) for _, commit, _ in versions[:-1]):
            yield Carry("rebases", before, old, onto, new)


def picks(mine: Mine) -> Iterator[Carry]:
    """Commits that name the one they were picked from."""
    for commit, parents, body in mine.log("-i", "-E", "--grep=cherry[ -]picked from commit"):
        found = _PICKED.findall(body)
        base = mine.parent(found[0]) if len(found) == 1 and len(parents) == 1 else None
        if base is not None:
            yield Carry("picks", base, found[0], parents[0], commit)


def reverts(mine: Mine) -> Iterator[Carry]:
    """Commits that undo an earlier one."""
    for commit, parents, body in mine.log("--grep=This reverts commit"):
        found = _REVERTED.findall(body)
        undone = mine.parent(found[0]) if len(found) == 1 and len(parents) == 1 else None
        if undone is not None and parents[0] != found[0]:
            yield Carry("reverts", found[0], undone, parents[0], commit)


def landed(mine: Mine) -> Iterator[Carry]:
    """Picked changes where they were made: just landed, and some commits later."""
    for pick in picks(mine):
        for steps in _LATER:
            here = mine.later(pick.tip, steps)
            if here is not None:
                yield Carry("landed", pick.onto, pick.result, here, here)


KINDS = {each.__name__: each for each in (merges, rebases, picks, reverts, landed)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a case file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("repository", help="OWNER/NAME")
    parser.add_argument("--mirrors", type=Path, required=True, help="bare clones OWNER+NAME/repo")
    parser.add_argument("--kind", choices=KINDS, action="append", help="may be repeated")
    parser.add_argument("--most", type=int, default=200, help="cases of each kind")
    parser.add_argument("--tries", type=int, default=1000, help="changes looked at for a kind")
    parser.add_argument("--clean", type=int, default=4, help="every N-th with clean files")
    parser.add_argument("--seed", type=int, default=1, help="another one chooses other changes")
    options = parser.parse_args(arguments)
    folder = options.repository.replace("/", "+")
    repository = Repository(options.mirrors.resolve() / folder / "repo")
    with ObjectReader(repository) as reader:
        name = options.repository.rpartition("/")[2].lower()
        mine = Mine(name, repository, reader, options.seed)
        kinds = options.kind or list(KINDS)
        found = chain.from_iterable(_some(mine, kind, options) for kind in kinds)
        print(json.dumps({"mirrors": {mine.name: folder}, "cases": list(found)}, indent=0))


def _some(mine: Mine, kind: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The cases of one kind, until there are enough or nothing is left to look at."""
    found: list[dict[str, Any]] = []
    for number, carry in enumerate(islice(KINDS[kind](mine), options.tries)):
        case = mine.case(carry, with_clean=number % options.clean == 0)
        found += [case] if case is not None else []
        if len(found) == options.most:
            break
    return found


def what_became(
    old: list[bytes], patched: list[bytes], upstream: list[bytes], truth: list[bytes]
) -> str:
    """What was done with a change from `old` to `patched`: dropped, pure or reworked."""
    if truth == upstream:
        return "dropped"
    return "pure" if _net(old, patched) == _net(upstream, truth) else "reworked"


def _net(old: list[bytes], new: list[bytes]) -> tuple[Counter[bytes], Counter[bytes]]:
    """The lines that are there more often, and less often."""
    return Counter(new) - Counter(old), Counter(old) - Counter(new)


if __name__ == "__main__":
    main()
