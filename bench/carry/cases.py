"""Case files: facts only (repositories, commits, blob ids, paths); the text is in local clones.

Two kinds are read. A *bump*: an old patch file of a project, the base it was made for, the new base
and the new patch file that the project's maintainers made of it, null if they gave it up. A
*carried change*: a commit, and the same change as its authors carried it to another base.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha1
from pathlib import Path
from typing import Any

from patchkit.gitcmd.object_reader import MissingObjectError, ObjectReader, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.process import GitFailureError
from patchkit.gitcmd.repository import Repository, init_repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, GitObject
from patchkit.model.tree import Overlay, Tree
from patchkit.stack.build import SeriesPatch, build_stack


class Kept(str, Enum):
    """What became of the patch's change of a file in the maintainers' hands."""

    SAME = "same"  # the same lines added and removed
    CHANGED = "changed"  # reworked for the new base, or for reasons of their own
    DROPPED = "dropped"  # the new patch leaves the file as upstream has it


@dataclass(frozen=True)
class Truth:
    """What the maintainers have at `path` on the new base; `source` is its path on the old one.

    `data` is None where they have no file. `again`: another case has the same contents.
    """

    source: str
    path: str
    data: bytes | None
    kept: Kept = Kept.SAME
    again: bool = False


@dataclass(frozen=True)
class Case:
    """One patch to carry, with the files to look at afterwards.

    `merges`: it was a merge of upstream into the branch whose change the patch is.
    """

    id: str
    group: str
    repository: Repository
    reader: ObjectReader
    old_base: Base
    new_base: Base
    patch: bytes
    truths: tuple[Truth, ...]
    whole: bool
    merges: bool = False

    @property
    def half(self) -> str:
        """`develop` or `validate`, by the case's name."""
        return "develop" if sha1(self.id.encode()).digest()[-1] % 2 else "validate"


class Clones:
    """Scratch repositories that borrow the objects of bare clones, DIR/OWNER+NAME/repo."""

    def __init__(self, mirrors: Sequence[Path], work: Path, names: Mapping[str, str]) -> None:
        self._mirrors, self._work, self._names = mirrors, work, names
        self._open: dict[str, tuple[Repository, ObjectReader]] = {}

    def open(self, name: str) -> tuple[Repository, ObjectReader] | None:
        """The scratch repository of a clone; None if the clone is not there."""
        clones = (each.resolve() / self._names[name] / "repo" for each in self._mirrors)
        clone = next((each for each in clones if (each / "objects").is_dir()), None)
        if clone is None:
            return None
        if name not in self._open:
            repository = init_repository(self._work / name)
            info = repository.git_dir / "objects" / "info"
            info.mkdir(parents=True, exist_ok=True)
            (info / "alternates").write_text(f"{clone / 'objects'}\n")
            self._open[name] = repository, ObjectReader(repository)
        return self._open[name]

    def close(self) -> None:
        """End the processes that read objects."""
        for _, reader in self._open.values():
            reader.close()

    def restart(self, name: str) -> None:
        """Let the reader see objects that were written since it was opened."""
        self._open[name][1].close()


def read_cases(
    path: Path, mirrors: Sequence[Path], work: Path, subset: str
) -> Iterator[Case | str]:
    """Every case of a file that has files of the subset; a sentence for one that can't be had.

    `mirrors`: folders with clones, of which the first that has one counts.
    """
    listed = json.loads(path.read_text())
    clones = Clones(mirrors, work, listed["mirrors"])
    try:
        for facts in listed["cases"]:
            wanted = [each for each in facts["files"] if _is_wanted(each, subset)]
            if wanted:
                yield _case(facts, wanted, clones, listed["mirrors"])
    finally:
        clones.close()


def _case(
    facts: Mapping[str, Any], wanted: list[Any], clones: Clones, names: Mapping[str, str]
) -> Case | str:
    needed = {facts.get("component") or facts["repo"], facts.get("source")} - {None}
    for name in sorted(needed):
        if clones.open(name) is None:
            return f"{facts['id']}: no clone of {names[name]}"
    make = _bump if "component" in facts else _change
    try:
        return make(facts, wanted, clones)
    except (GitFailureError, MissingObjectError) as error:
        return f"{facts['id']}: not in the clones: {error}".splitlines()[0]


def _is_wanted(file: Mapping[str, Any], subset: str) -> bool:
    if subset in ("any", "whole"):
        return True
    if file.get("dup") or file.get("kind", "M") != "M" or file["cls"] != "pure":
        return False
    if subset == "moved":
        return bool(file.get("moved_to"))
    if "hard" in file:
        return subset == ("hard" if file["hard"] else "easy")
    return subset == ("trivial" if file.get("trivial") else "bumps")


def _change(facts: Mapping[str, Any], wanted: list[Any], clones: Clones) -> Case:
    opened = clones.open(facts["repo"])
    assert opened is not None
    repository, reader = opened
    old, new = (read_base(repository, facts[name]) for name in ("A_base", "B_base"))
    paths = [f":(literal){each['path']}" for each in wanted]
    patch = repository.git(
        *("diff", "--no-renames", "--full-index", "--binary", old.commit, facts["A"], "--", *paths)
    ).out
    truths = [_truth(each, reader.read(each["truth"], "blob")) for each in wanted]
    whole = all(each["cls"] == "pure" for each in facts["files"])
    merges = facts["kind"] == "merge" or bool(facts.get("ours"))
    return Case(
        facts["id"],
        facts["kind"],
        repository,
        reader,
        old,
        new,
        patch,
        tuple(truths),
        whole,
        merges,
    )


def _bump(facts: Mapping[str, Any], wanted: list[Any], clones: Clones) -> Case:
    opened, source = clones.open(facts["component"]), clones.open(facts["source"])
    assert opened is not None
    assert source is not None
    repository, reader = opened
    old, new = (
        _with_patches(repository, reader, source[1], facts[name])
        for name in ("old_base", "new_base")
    )
    clones.restart(facts["component"])
    patch = source[1].read(facts["old_patch"], "blob")
    # without one they gave the patch up
    given = [facts["new_patch"]] if facts["new_patch"] is not None else []
    theirs = build_stack(
        reader, new, [_series_patch("new", source[1].read(oid, "blob")) for oid in given]
    )
    made = Tree(Overlay(reader, theirs.objects), theirs.tree)
    truths = [_truth(each, _contents(reader, theirs.objects, made, each)) for each in wanted]
    whole = all(each["cls"] == "pure" for each in facts["files"])
    return Case(
        facts["id"], facts["group"], repository, reader, old, new, patch, tuple(truths), whole
    )


def _with_patches(
    repository: Repository, reader: ObjectReader, source: ObjectReader, facts: Mapping[str, Any]
) -> Base:
    """The base commit with the patches that stand before the one in question."""
    base = read_base(repository, facts["commit"])
    series = [_series_patch(str(n), source.read(oid, "blob")) for n, oid in enumerate(facts["pre"])]
    stack = build_stack(reader, base, series)
    write_objects(repository, stack.objects)
    return Base(stack.commit, stack.tree, base.date)


def _truth(file: Mapping[str, Any], data: bytes | None) -> Truth:
    kept = {"dropped": Kept.DROPPED, "landed": Kept.DROPPED, "pure": Kept.SAME}
    kept["pure_ws"] = Kept.SAME
    return Truth(
        file["path"],
        file.get("moved_to") or file["path"],
        data,
        kept.get(file["cls"], Kept.CHANGED),
        bool(file.get("dup")),
    )


def _contents(
    reader: ObjectReader, objects: Iterable[GitObject], tree: Tree, file: Mapping[str, Any]
) -> bytes | None:
    """The maintainers' file: their new patch on the new base."""
    entry = tree.entry(file.get("moved_to") or file["path"])
    if entry is None:
        return None
    assert entry.oid == file.get("truth", entry.oid)
    return Overlay(reader, objects).read(entry.oid, "blob")


def _series_patch(name: str, data: bytes) -> SeriesPatch:
    return SeriesPatch(f"{name}.patch", parse_patch(data, name=name))
