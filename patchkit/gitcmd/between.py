"""What happened to files between two commits: renames, deletions, the commits to name for it.

Every answer costs a git process, so nothing is asked before it is wanted, and each only once. A
repository without that stretch of history answers "unknown"; so it does of a commit without
parents, or at which a shallow one was cut off: these seem to have brought everything. So the
commits in between may come from another repository, which need not have any file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from patchkit.gitcmd.history import find_rename
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.staging import shallow_commits
from patchkit.gitcmd.touching import touches_of
from patchkit.model.names import short_id
from patchkit.model.objects import decode_path, lines_of

_FAILS = (0, 1, 128)
_SHOWN = "3"  # commits that changed a file
_MOST = 0.5  # of a folder's files must have gone to one other folder


class Between(Struct):
    """The range of commits from `old` (exclusive) to `new`.

    `repository` has these two. `history` gives the one that has those in between, by default the
    same; it is called when that is first asked for. `bring` brings blobs there.
    """

    repository: Repository
    old: str
    new: str
    history: Callable[[], Repository] | None = None
    bring: Callable[[Iterable[str]], object] = frozenset
    _past: Repository | None = None
    _direct: dict[str, str] | None = None
    _known: dict[str, str | None] = field(default_factory=dict)
    _commits: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    _brought: set[str] = field(default_factory=set)

    def renamed(self, path: str) -> str | None:
        """Where a file of the old commit is at the new one.

        By git's comparison of both trees; where they have grown too unlike, by the commit that
        moved the file, and the next one, to the end of the chain.
        """
        if path not in self._known:
            self._known[path] = self._renames().get(path) or self._by_chain(path)
        return self._known[path]

    def folder_renamed(self, folder: str) -> str | None:
        """Where most renamed files of a folder that is gone went to."""
        if self._has(self.new, folder) or not self._has(self.old, folder):
            return None
        homes = Counter(
            new.rpartition("/")[0]
            for old, new in self._renames().items()
            if old.rpartition("/")[0] == folder
        )
        if not homes:
            return None
        home, count = homes.most_common(1)[0]
        return home if count > sum(homes.values()) * _MOST else None

    def deleted_by(self, path: str) -> str:
        """The last commit that deleted the file, as "ID subject"; "" if unknown."""
        return next(iter(self._log("-1", "--no-renames", "--diff-filter=D", path=path)), "")

    def removed_by(self, path: str, line: bytes) -> str:
        """The last commit that took the line out of the file, as "ID subject"; "" if unknown."""
        return next(iter(self._touching(path, line)), "")

    def written_by(self, commit: str, like: str) -> tuple[str, ...]:
        """The files that a commit, as "ID subject", added or changed, with the ending of `like`."""
        oid = commit.partition(" ")[0]
        if not oid:
            return ()
        arguments = ["diff-tree", "-r", "-z", "--no-renames", "--diff-filter=AM", "--name-only"]
        done = self._with_past().git(*arguments, f"{oid}^", oid, accept=_FAILS)
        names = [decode_path(each) for each in done.out.split(b"\0") if each]
        return tuple(name for name in names if name.rpartition(".")[2] == like.rpartition(".")[2])

    def brought_by(self, path: str, line: bytes) -> str:
        """The first commit that brought the line into the file, as "ID subject"; "" if unknown."""
        return next(reversed(self._touching(path, line)), "")

    def changed_by(self, path: str) -> tuple[str, ...]:
        """The last commits that changed the file, newest first, as "ID subject"."""
        return self._log("-n", _SHOWN, "--no-renames", path=path)

    def _touching(self, path: str, line: bytes) -> tuple[str, ...]:
        """The commits that put the line in or took it out, newest first."""
        text = line.strip().decode("utf-8", "surrogateescape")
        if text and self.history is not None and path not in self._brought:
            self._brought.add(path)
            touches = touches_of(self._with_past(), self.old, self.new, path)
            self.bring(blob for each in touches for blob in each.blobs)
        return self._log("--no-renames", f"-S{text}", path=path) if text else ()

    def _with_past(self) -> Repository:
        """The repository that has the commits in between, if there is one."""
        if self._past is None:
            self._past = self.history() if self.history is not None else self.repository
        return self._past

    def _renames(self) -> dict[str, str]:
        if self._direct is None:
            self._direct = self._compare()
        return self._direct

    def _compare(self) -> dict[str, str]:
        done = self.repository.git(
            *("diff-tree", "-r", "-z", "-M50%", "-l5000", "--diff-filter=R", "--name-status"),
            *(self.old, self.new),
            accept=_FAILS,
        )
        fields = done.out.split(b"\0")
        names = [decode_path(each) for each in fields]
        return {names[at + 1]: names[at + 2] for at in range(0, len(names) - 2, 3)}

    def _by_chain(self, path: str) -> str | None:
        found = find_rename(self._with_past(), self.new, path, self.bring)
        return found.path if found is not None and self._has(self.new, found.path) else None

    def _has(self, commit: str, path: str) -> bool:
        return self.repository.resolve(f"{commit}:{path}") is not None

    def _log(self, *options: str, path: str) -> tuple[str, ...]:
        key = (*options, path)
        if key not in self._commits:
            past = self._with_past()
            done = past.git(
                *("--literal-pathspecs", "log", "--format=%H %P%x00%s", *options),
                *(f"{self.old}..{self.new}", "--", path),
                accept=_FAILS,
            )
            text = done.out.decode("utf-8", "replace") if done.code == 0 else ""
            cut = shallow_commits(past.git_dir)
            rows = [line.partition("\0")[::2] for line in lines_of(text)]
            known = ((ids.split(), subject) for ids, subject in rows)
            # the first id is the commit's own, the others its parents'
            self._commits[key] = tuple(
                f"{short_id(ids[0])} {subject}"
                for ids, subject in known
                if len(ids) > 1 and ids[0] not in cut
            )
        return self._commits[key]
