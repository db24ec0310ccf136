"""A history to look along: its line, what stands at a commit, and files that have to be brought."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct

from patchkit.gitcmd.objects import MissingObjectError, ObjectReader
from patchkit.histories import History
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry
from patchkit.model.tree import Tree

#: Brings the blobs that are about to be read.
Bring = Callable[[Iterable[str]], None]


class Along(Struct, frozen=True):
    """A history, what reads its objects, and what brings files that are not here."""

    history: History
    reader: ObjectReader
    bring: Bring

    def entries(self, commit: str, paths: Collection[str]) -> dict[str, TreeEntry | None]:
        """What stands at paths in a commit, None for nothing; read by the git that runs anyway."""
        tree = Tree(self.reader, tree_of(self.reader, commit))
        return {path: tree.entry(path) for path in paths}

    def has(self, commit: str) -> bool:
        """Whether a commit is here."""
        try:
            self.reader.commit(commit)
        except MissingObjectError:
            return False
        return True

    def contents(self, entries: Iterable[TreeEntry | None]) -> Mapping[str, bytes]:
        """The contents of files by id, brought if need be; without those that nobody gives."""
        wanted = blobs_of(entries)
        found = self.reader.read_present(wanted)
        lacking = wanted.keys() - found.keys()
        if lacking:
            self.bring(lacking)
            self.reader.close()  # the running git need not see new packs
            found |= self.reader.read_present(lacking)
        return found


def blobs_of(entries: Iterable[TreeEntry | None]) -> dict[str, None]:
    """The ids of files, in order, each once; of submodules none."""
    return dict.fromkeys(e.oid for e in entries if e is not None and e.mode != SUBMODULE_MODE)


def tree_of(reader: ObjectReader, commit: str) -> str:
    """The id of a commit's tree."""
    return reader.commit(commit)[5:45].decode("ascii")
