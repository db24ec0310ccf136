"""A git repository, bare or with a worktree, as domain answers, never as exit codes."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import unless_gone
from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.process import Finished, require_git, run_sealed
from patchkit.model.objects import CommitId, TreeId, lines_of

ZERO = "0" * 40
#: How git ends where a part of the history that it is asked about is not here.
NOT_HERE = (1, 128)

_HEAD = re.compile(rb"ref: refs/|[0-9a-f]{40}\s*\Z")
_ID = re.compile(rb"[0-9a-f]{40}")
_PLAIN = re.compile(r"(?!.*\.\.)(?:(?!\.)[\w.+@-]+/?)+")

# How long a git that was killed with us, or is about to end, may hold the lock of a ref.
_PATIENCE = 2.0


class RefChange(Struct, frozen=True):
    """One line of a ref transaction; `old` None: whatever it is; `new` None: delete."""

    name: str  # in full: refs/...
    new: str | None
    old: str | None = None  # ZERO: must not exist yet


class Repository(Struct, frozen=True):
    """A repository by its git directory; `work_tree` is None for a bare one. Both are absolute."""

    git_dir: Path  # where its objects and refs are
    work_tree: Path | None = None
    objects: Path | None = None  # where new objects go, and are looked for first; None: as usual

    def git(
        self,
        *args: str,
        stdin: bytes = b"",
        accept: Sequence[int] = (0,),
        index: Path | None = None,
    ) -> Finished:
        """Run a sealed git command here; `index` is an index file to use instead of the own one."""
        places = {"GIT_INDEX_FILE": index, "GIT_OBJECT_DIRECTORY": self.objects}
        return run_sealed(
            args,
            git_dir=self.git_dir,
            work_tree=self.work_tree,
            stdin=stdin,
            accept=accept,
            extra={name: str(place) for name, place in places.items() if place is not None},
        )

    def ask(self, *args: str, no: Sequence[int] = (1,), stdin: bytes = b"") -> bytes | None:
        """What git writes, None where it says that what it is asked about is not here.

        Invariant: nobody says "not here" who could not look. Mostly such a git says why
        (`run_sealed`); of a ref or an object in a file of its own that it cannot open it says
        nothing but `no`, the exit codes. So that is believed when two gits in turn say it.
        """
        for _ in range(2):
            done = self.git(*args, stdin=stdin, accept=(0, *no))
            if done.code == 0:
                return done.out
        return None

    @property
    def exists(self) -> bool:
        """Whether a repository is there that git takes for one."""
        if not (self.git_dir / "objects").is_dir():
            return False
        try:
            return _HEAD.match((self.git_dir / "HEAD").read_bytes()) is not None
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return False

    @property
    def has_no_objects(self) -> bool:
        """Whether no object was put here since it was made, so that git need not look for any."""
        folders = self.git_dir / "objects", self.git_dir / "objects/info"
        there = [path.name for each in folders if each.is_dir() for path in each.iterdir()]
        packs = self.git_dir / "objects/pack"
        return sorted(there) == ["info", "pack"] and not any(packs.iterdir())

    def resolve(self, revision: str) -> str | None:
        """The id of the object that `revision` names, None if it is not here."""
        out = self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", revision)
        return out.decode().strip() if out is not None else None

    def commit(self, revision: str) -> CommitId | None:
        """The id of the commit that `revision` leads to, None if it is not here."""
        found = self.resolve(revision + "^{commit}")
        return CommitId(found) if found is not None else None

    def tree(self, revision: str) -> TreeId | None:
        """The id of the tree that `revision` leads to, None if it is not here."""
        found = self.resolve(revision + "^{tree}")
        return TreeId(found) if found is not None else None

    def refs(self, prefix: str) -> dict[str, str]:
        """Ref name -> object id of all refs below `prefix` ("refs/patchkit/").

        Read where git keeps them: in files of their own, which come first, or as rows of the packed
        ones; git leaves out what it cannot open. It is asked where one of them is another ref's
        other name, or broken, and in another kind of store.
        """
        alone = _alone(self.git_dir, prefix) if self._has_files else None
        if alone is None:
            return self._listed(prefix)
        return dict(sorted((_packed(self.git_dir, prefix) | alone).items()))

    def ref(self, name: str) -> str | None:
        """The object that the ref of this full name names, None if there is none; see `refs`."""
        if not self._has_files:
            return self._listed(name).get(name)
        try:
            alone = (self.git_dir / name).read_bytes().strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return _packed(self.git_dir, name).get(name)
        return alone.decode() if _ID.fullmatch(alone) else self._listed(name).get(name)

    @property
    def _has_files(self) -> bool:
        """Whether its refs are files, in this folder."""
        return not any((self.git_dir / name).exists() for name in ("reftable", "commondir"))

    def _listed(self, prefix: str) -> dict[str, str]:
        out = self.git("for-each-ref", "--format=%(objectname) %(refname)", prefix).out
        rows = (row.split(" ", 1) for row in lines_of(out.decode("utf-8", "surrogateescape")))
        return {name: oid for oid, name in rows}

    def for_each_ref(self, layout: str, prefix: str, *options: str, hint: str) -> bytes:
        """What git says of each ref below `prefix`, in a layout of `git for-each-ref`.

        SurroundingsError with `hint` where one is damaged: git leaves it out and ends with 0.
        """
        done = self.git("for-each-ref", f"--format={layout}", *options, prefix)
        if "broken ref" in done.message:
            raise SurroundingsError(Problem(done.message, str(self.git_dir), hint))
        return done.out

    def update_refs(self, changes: Iterable[RefChange], *, reason: str) -> None:
        """Change all refs in one transaction, or none: GitFailureError if an old value differs."""
        lines = ["start"]
        for change in changes:
            verb = "delete" if change.new is None else "update"
            values = [v for v in (change.new, change.old) if v is not None]
            lines.append(" ".join([verb, change.name, *values]))
        lines += ["prepare", "commit", ""]
        self.git("update-ref", "--stdin", "-m", reason, stdin="\n".join(lines).encode())

    def free_refs(self, names: Iterable[str]) -> None:
        """Remove the locks of refs that a killed git left, once nobody can be at work on them.

        A git that is about to end is waited for; the caller keeps all others away.
        """
        locks = [self.git_dir / f"{name}.lock" for name in names]
        deadline = time.monotonic() + _PATIENCE
        while (left := [lock for lock in locks if lock.exists()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        for lock in left:
            lock.unlink(missing_ok=True)


def _alone(git_dir: Path, prefix: str) -> dict[str, str] | None:
    """The refs below `prefix` that are files of their own; None where one is not plain.

    Read before the packed ones: git packs a ref before it deletes the file.
    """
    found: dict[str, str] = {}
    for folder, _, names in os.walk(git_dir / prefix, onerror=unless_gone):
        for file in (Path(folder, name) for name in names if not name.endswith(".lock")):
            with suppress(FileNotFoundError):  # packed or deleted meanwhile
                oid = file.read_bytes().strip()
                name = file.relative_to(git_dir).as_posix()
                if not _ID.fullmatch(oid) or not _PLAIN.fullmatch(name):
                    return None
                found[name] = oid.decode()
    return found


def _packed(git_dir: Path, prefix: str) -> dict[str, str]:
    """The refs whose names begin so in the file of packed refs."""
    try:
        rows = (git_dir / "packed-refs").read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    begin = b" " + os.fsencode(prefix)
    return {os.fsdecode(row[41:]): row[:40].decode() for row in rows if row[40:].startswith(begin)}


def borrow_objects(git_dir: Path, folders: Iterable[Path]) -> None:
    """Let the repository at `git_dir` see the objects in other `objects` folders, too."""
    place = git_dir / "objects" / "info"
    place.mkdir(parents=True, exist_ok=True)
    # in quotes any name is one line
    rows = [b'"%b"\n' % b"".join(_quoted(byte) for byte in bytes(each)) for each in folders]
    (place / "alternates").write_bytes(b"".join(rows))


def _quoted(byte: int) -> bytes:
    plain = 0x20 <= byte < 0x7F and byte not in b'"\\'
    return bytes([byte]) if plain else b"\\%03o" % byte


def init_repository(git_dir: Path, *, work_tree: Path | None = None) -> Repository:
    """Make an empty repository without templates, so without hooks; harmless on an existing one.

    On disk: all of it at once, by one rename, where there is no worktree; what a kill left of an
    earlier one goes. Two of these at once in the same place are the caller's to prevent.
    """
    require_git()
    repository = Repository(git_dir, work_tree)
    if work_tree is not None:
        git_dir.mkdir(parents=True, exist_ok=True)
        # git looks at what the file system can do: case, links, bits of modes
        arguments = ["init", "--quiet", "--template=", "--initial-branch=patchkit"]
        run_sealed(arguments, git_dir=git_dir, work_tree=work_tree)
    elif not repository.exists:
        draft = git_dir.with_name(f"{git_dir.name}.new")
        for left in (draft, git_dir):
            shutil.rmtree(left, ignore_errors=True)
        try:
            draft.mkdir(parents=True)
            _fill_bare(draft)
            draft.rename(git_dir)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return repository


def _fill_bare(folder: Path) -> None:
    """What `git init --bare --template=` makes; without a worktree it asks the system nothing."""
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_bytes(b"ref: refs/heads/patchkit\n")
    settings = b"\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
    (folder / "config").write_bytes(b"[core]\n" + settings)
