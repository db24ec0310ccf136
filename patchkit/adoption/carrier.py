"""A repository that carries patches: which files it has, and what stands in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from patchkit.disk.files import read_plain
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import git_folder

#: No person keeps a pin or a list in a larger file.
_LARGEST = 1 << 18
#: Folders that no carrier keeps its patches in.
_SKIPPED = frozenset({".git", ".venv", "node_modules", "workspace", "__pycache__"})


class Carrier:
    """The files below a folder, by their paths from it: what git tracks, else all."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[str, str] = {}

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The paths of ordinary files, sorted, without symbolic links."""
        tracked = [path for mode, _, path in self._rows if mode.startswith("100")]
        paths = tracked if self._repository is not None else self._walked()
        return tuple(sorted(path for path in paths if _is_plain(self.root / path)))

    @cached_property
    def submodules(self) -> dict[str, str]:
        """Path -> commit of the submodules in git's index."""
        return {path: oid for mode, oid, path in self._rows if mode == "160000"}

    @cached_property
    def remote(self) -> str:
        """The URL that relative ones of submodules start from, of `origin`."""
        if self._repository is None:
            return ""
        out = self._repository.ask("config", "remote.origin.url")
        return os.fsdecode(out or b"").strip()

    def text(self, path: str) -> str:
        """A file as text, "" for one that is too large or cannot be read."""
        if path not in self._texts:
            try:
                data = read_plain(self.root / path, most=_LARGEST, inside=self.root)
            except OSError:
                data = b""
            self._texts[path] = data.decode("utf-8", "replace")
        return self._texts[path]

    @cached_property
    def _repository(self) -> Repository | None:
        """The git repository that the folder is in."""
        for top in (self.root, *self.root.parents):
            if git_dir := git_folder(top):
                return Repository(git_dir, top)
        return None

    @cached_property
    def _rows(self) -> list[tuple[str, str, str]]:
        """Mode, object and path of everything in git's index below the folder."""
        if self._repository is None:
            return []
        out = self._repository.git("-C", str(self.root), "ls-files", "-s", "-z").out
        rows = out.decode("utf-8", "surrogateescape").split("\0")
        return [(row[:6], row[7:47], row.partition("\t")[2]) for row in rows if row]

    def _walked(self) -> Iterator[str]:
        for path in self.root.rglob("*"):
            below = path.relative_to(self.root)
            if _SKIPPED.isdisjoint(below.parts):
                yield below.as_posix()


def folder_of(path: str) -> str:
    """The folder that a path is in, "" for the carrier's own."""
    return path.rpartition("/")[0]


def folders_up(folder: str) -> Iterator[str]:
    """The folder, those that it is in, and at last the carrier's own, ""."""
    while folder:
        yield folder
        folder = folder_of(folder)
    yield ""


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
