"""Read objects from a repository through one `git cat-file --batch`, write them as one pack."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.process import (
    NoAnswerError,
    require_uninterrupted,
    sealed_command,
    sealed_environment,
)
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import (
    GitObject,
    TreeEntry,
    TreeId,
    Treeish,
    make_pack,
    parse_tree,
)

# How many requests may be in the pipe unanswered: each is 41 bytes, and a pipe holds 64 KiB.
_IN_FLIGHT = 512

# Files pass through in few pieces; a system that knows no such size, or allows less, ignores it.
_PIPE = 1 << 20


# By itself git holds 96 MiB of what it has unpacked, and maps whole packs for as long as it runs:
# 6,000 files of SGLang's history took 167 MiB and 0.6 s, with these limits 33 MiB and 1.0 s.
_LIMITS = ("core.deltaBaseCacheLimit=16m", "core.packedGitWindowSize=1m", "core.packedGitLimit=16m")

_HINT = "if it is the cache's: patchkit fetch --verify"


class MissingObjectError(SurroundingsError):
    """An object that should be in the repository and is not."""


class ObjectReader:
    """Objects of one repository by id; a context manager, for one thread at a time.

    Trees are kept once parsed, blobs are not. The git process is started at the first read.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._process: subprocess.Popen[bytes] | None = None
        self._trees: dict[str, dict[str, TreeEntry]] = {}

    def __enter__(self) -> ObjectReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the git process, if one runs."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def blob(self, oid: str) -> bytes:
        """The contents of a blob."""
        return self.read(oid, "blob")

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """The entries of a tree."""
        if oid not in self._trees:
            self._trees[oid] = parse_tree(self.read(oid, "tree"))
        return self._trees[oid]

    def commit(self, oid: str) -> bytes:
        """The payload of a commit object."""
        return self.read(oid, "commit")

    def root(self, oid: Treeish) -> TreeId:
        """The tree of a commit; of a tree, or of what is not here, its own id."""
        try:
            return TreeId(self.commit(oid).split(b"\n", 1)[0].removeprefix(b"tree ").decode())
        except MissingObjectError:
            return TreeId(oid)

    def read(self, oid: str, kind: str) -> bytes:
        """The payload of one object; MissingObjectError if it is absent or of another kind.

        A git that cannot open a pack says "missing", too: an object counts as absent if a second
        git says so. NoAnswerError if git ends, or the second one finds the object.
        """
        ((_, payload),) = self.read_many([oid], kind)
        return payload

    def read_many(self, oids: Collection[str], kind: str) -> Iterator[tuple[str, bytes]]:
        """(id, payload) of many objects of one kind, in order, without waiting for each answer."""
        for batch in self._batches(oids):
            # read whole before the first is handed out: a caller may stop half-way
            yield from [(oid, self._answer(oid, kind)) for oid in batch]

    def read_present(self, oids: Collection[str]) -> dict[str, bytes]:
        """The blobs among these that are here, by id; one is not where two gits say so."""
        found = self._read_present(dict.fromkeys(oids))
        lacking = [each for each in dict.fromkeys(oids) if each not in found]
        if lacking:
            self.close()
            found |= self._read_present(lacking)
        return found

    def _read_present(self, oids: Iterable[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for batch in self._batches(oids):
            for oid in batch:
                fields = self._fields()
                if len(fields) == 3:  # else "ID missing"
                    found[oid] = self._payload(int(fields[2]))
        return found

    def _batches(self, oids: Iterable[str]) -> Iterator[Sequence[str]]:
        """The ids as git is asked for them, each batch before its answers are read."""
        queue = list(oids)
        for start in range(0, len(queue), _IN_FLIGHT):
            batch = queue[start : start + _IN_FLIGHT]
            self._ask(batch)
            yield batch

    def _fields(self) -> list[bytes]:
        """The line that begins an answer; a git that says nothing has ended."""
        fields = self._pipes()[1].readline().split()
        if not fields:
            raise self._unreadable()
        return fields

    def _ask(self, oids: Sequence[str]) -> None:
        stdin = self._pipes()[0]
        try:
            stdin.write("".join(f"{oid}\n" for oid in oids).encode())
            stdin.flush()
        except BrokenPipeError:
            raise self._unreadable() from None

    def _payload(self, size: int) -> bytes:
        stdout = self._pipes()[1]
        payload = stdout.read(size)
        if len(payload) < size or not stdout.read(1):  # git ends where it cannot open it any more
            raise self._unreadable()
        return payload

    def _unreadable(self) -> NoAnswerError:
        process = self._process
        self._give_up()
        if process is not None:
            require_uninterrupted(process)
        what = f"git cannot read {self.repository.git_dir}"
        return NoAnswerError(what, hint=f"run it again; {_HINT}")

    def _give_up(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError):
                process.communicate()

    def _answer(self, oid: str, kind: str) -> bytes:
        fields = self._fields()
        if len(fields) != 3:
            if self.repository.git("cat-file", "-e", oid, accept=(0, 1)).code == 0:
                raise self._unreadable()
            self.close()
            what = f"object {oid} is missing from {self.repository.git_dir}"
            raise MissingObjectError(what, hint=_HINT)
        payload = self._payload(int(fields[2]))
        if fields[1].decode() != kind:
            raise MissingObjectError(f"object {oid} is a {fields[1].decode()}, not a {kind}")
        return payload

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            limits = (part for each in _LIMITS for part in ("-c", each))
            self._process = subprocess.Popen(
                sealed_command([*limits, "cat-file", "--batch"], self.repository.git_dir),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=sealed_environment(),
                cwd="/",
                pipesize=_PIPE,
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        return stdin, stdout


@contextmanager
def reading(repository: Repository) -> Iterator[ObjectReader]:
    """An ObjectReader whose process ends with the block."""
    with ObjectReader(repository) as reader:
        yield reader


def write_objects(repository: Repository, objects: Iterable[GitObject], *, name: str = "") -> None:
    """Write all objects as one pack, called after its contents, or as given; harmless where some
    are there already.

    On disk: one pack and its index below objects/pack, the index last, so both or neither count.
    """
    unique = {each.oid: each for each in objects}
    if not unique:
        return
    pack = make_pack(unique.values())
    folder = repository.git_dir / "objects" / "pack"
    folder.mkdir(parents=True, exist_ok=True)
    for ending, data in ((".pack", pack.data), (".idx", pack.index)):
        _put_file(folder / f"pack-{name or pack.name}{ending}", data)


def _put_file(path: Path, data: bytes) -> None:
    if path.exists():
        return  # named after its contents
    # such names `git gc` sweeps away after a kill
    temporary = path.with_name(f"tmp_pack_{os.urandom(6).hex()}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o444)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
