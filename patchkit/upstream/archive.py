"""An archive by URL and SHA-256: fetched, read into memory, and made one commit, the same on every
machine.
"""

from __future__ import annotations

import posixpath
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from lzma import LZMAError
from pathlib import Path

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.manifest.types import plain_path
from patchkit.manifest.values import ArchiveSource
from patchkit.model.names import unsafe_path
from patchkit.model.objects import (
    EMPTY_TREE,
    EXECUTABLE_MODE,
    FILE_MODE,
    SYMLINK_MODE,
    CommitId,
    GitObject,
    TreeEntry,
    make_object,
    own_commit,
)
from patchkit.model.tree import Tree
from patchkit.upstream.fetching import Fetching
from patchkit.upstream.http import Http, download

# Unpacking: an archive as a list of files, in memory. What an archive says is not believed: a name
# that leaves the tree, a link that points out of it, a device, a second file of the same name, more
# bytes than a source tree ever has: all refused, every offender at once. Modes become 644 or 755,
# times and owners are dropped, and one folder around everything is taken off, so that the same
# archive gives the same files everywhere.


class Budget(Struct):
    """What no source tree reaches; an archive that does is refused before it fills the memory."""

    size: int = 2 << 30  # bytes, unpacked
    members: int = 200_000  # how many files, links and folders
    taken: int = 0  # bytes that members so far claim to hold
    count: int = 0  # those members

    def take(self, size: int) -> None:
        """Allow for one more member; BadInputError once it is too much."""
        self.taken += size
        self.count += 1
        if self.taken > self.size:
            raise BadInputError(f"the archive unpacks to more than {self.size >> 20} MiB")
        if self.count > self.members:
            raise BadInputError(f"the archive has more than {self.members} members")


class Member(Struct, frozen=True):
    """A file or a symbolic link (then `data` is its target) in an archive; `mode` is git's."""

    path: str  # in the archive
    mode: int
    data: bytes


def unpack(archive: Path, budget: Budget | None = None) -> tuple[Member, ...]:
    """The files of a tar (gz, xz, bz2) or zip archive, sorted by path, without the folder around.

    What is in the file counts, not its name. BadInputError with every unsafe member.
    """
    problems: list[Problem] = []
    try:
        read = _zip_members if zipfile.is_zipfile(archive) else _tar_members
        members = list(_checked(read(archive, budget or Budget()), problems))
    except _NOT_READABLE as error:
        raise BadInputError(f"{archive.name} is not a readable archive: {error}") from error
    members = _unwrapped(members)
    problems += _clashes(members)
    problems += _stray_links(members)
    if problems:
        raise BadInputError(*problems)
    return tuple(member for _, member in sorted({each.path: each for each in members}.items()))


_NOT_READABLE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    EOFError,
    NotImplementedError,  # a zip with a compression that Python does not know
    RuntimeError,  # a zip with a password
    ValueError,  # names that are no text, numbers that are none
    IndexError,  # a name that is empty
    struct.error,
    OSError,
)


def _checked(members: Iterator[Member | Problem], problems: list[Problem]) -> Iterator[Member]:
    """Members with a plain path; what is wrong with the others goes to `problems`."""
    for member in members:
        if isinstance(member, Problem):
            problems.append(member)
            continue
        path = plain_path(member.path)
        rooted = "/" + path if member.path.startswith("/") else path
        fault = unsafe_path(rooted, member.mode)
        if fault is not None:
            problems.append(Problem(f"{member.path}: {fault} in the archive"))
        else:
            yield Member(path, member.mode, member.data)


def _tar_members(archive: Path, budget: Budget) -> Iterator[Member | Problem]:
    files: dict[str, tarfile.TarInfo] = {}
    with tarfile.open(archive, "r:*", encoding="utf-8", errors="surrogateescape") as tar:
        for info in tar:
            budget.take(info.size)
            if info.isdir():
                continue
            if info.issym():
                target = info.linkname.encode("utf-8", "surrogateescape")
                yield Member(info.name, SYMLINK_MODE, target)
            elif info.isreg():
                files[info.name] = info
                yield _tar_file(tar, info.name, info)
            elif info.islnk() and info.linkname in files:  # a hard link becomes a copy
                budget.take(files[info.linkname].size)
                yield _tar_file(tar, info.name, files[info.linkname])
            elif info.islnk():
                yield Problem(f"{info.name}: hard link to {info.linkname}, no file before it")
            else:
                yield Problem(f"{info.name}: device or pipe in the archive")


def _tar_file(tar: tarfile.TarFile, name: str, info: tarfile.TarInfo) -> Member:
    stream = tar.extractfile(info)
    data = stream.read() if stream is not None else b""
    if len(data) != info.size:
        raise EOFError("it ends in the middle of a file")
    return Member(name, _mode(info.mode), data)


def _zip_members(archive: Path, budget: Budget) -> Iterator[Member | Problem]:
    with zipfile.ZipFile(archive) as folder:
        for info in folder.infolist():
            budget.take(info.file_size)
            if info.is_dir():
                continue
            mode = info.external_attr >> 16
            # reads no more than the size that it declares, and checks the CRC
            data = folder.read(info)
            if stat.S_ISLNK(mode):
                yield Member(info.filename, SYMLINK_MODE, data)
            elif stat.S_IFMT(mode) in (0, stat.S_IFREG):
                yield Member(info.filename, _mode(mode), data)
            else:
                yield Problem(f"{info.filename}: device or pipe in the archive")


def _mode(permissions: int) -> int:
    return EXECUTABLE_MODE if permissions & 0o111 else FILE_MODE


def _unwrapped(members: list[Member]) -> list[Member]:
    """Without the folder that everything is in, if there is one."""
    tops = {member.path.partition("/")[0] for member in members}
    if len(tops) != 1 or any("/" not in member.path for member in members):
        return members
    return [Member(m.path.partition("/")[2], m.mode, m.data) for m in members]


def _clashes(members: list[Member]) -> Iterator[Problem]:
    """Two files at one path, a file where others need a folder, a link that hides by its case."""
    seen: dict[str, Member] = {}
    links = {m.path.casefold(): m.path for m in members if m.mode == SYMLINK_MODE}
    folders = {folder for member in members for folder in _folders(member.path)}
    for member in members:
        first = seen.setdefault(member.path, member)
        if first != member:
            yield Problem(f"{member.path}: twice in the archive, with different contents")
        if member.path in folders:
            yield Problem(f"{member.path}: both a file and a folder in the archive")
        # where case does not count, writing the one would go through the other
        for part in (member.path, *_folders(member.path)):
            link = links.get(part.casefold())
            if link is not None and link != part:
                yield Problem(f"{member.path}: differs only in case from the link {link}")


def _stray_links(members: list[Member]) -> Iterator[Problem]:
    for member in members:
        if member.mode == SYMLINK_MODE:
            target = member.data.decode("utf-8", "surrogateescape")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(member.path), target))
            if not target or target.startswith("/") or place.split("/")[0] == "..":
                yield Problem(f"{member.path}: link to {target}, out of the archive")


def _folders(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


# The commit: the same archive gives the same id on every machine. Author, committer and date are
# fixed, the message says what was unpacked. Every file is kept, also PKG-INFO and the like: what
# the base holds is what a user of the archive has.


# The date is the oldest that a zip archive can hold; any would do, but it may never change.
_WHEN = 315532800


def commit_archive(archive: Path, message: str, repository: Repository) -> CommitId:
    """Write the archive's files as a commit without parents; its id. On disk: one pack, no ref."""
    objects: list[GitObject] = []
    files = Tree(ObjectReader(repository), EMPTY_TREE)
    for member in unpack(archive):
        objects.append(make_object("blob", member.data))
        files = files.put(member.path, TreeEntry(member.mode, objects[-1].oid))
    tree = files.write(objects)
    commit = own_commit(tree, (), message, when=_WHEN)
    write_objects(repository, [*objects, commit])
    return CommitId(commit.oid)


def fetch_archive(
    source: ArchiveSource, digest: str, repository: Repository, fetching: Fetching
) -> CommitId:
    """Download and unpack the archive into `repository`; the base commit's id.

    Its URL is not in the commit: a mirror's copy gives the same base.
    """
    urls, message = (source.url, *source.mirrors), f"Archive\n\nsha256: {digest}\n"
    return fetch_unpacked(Http(), urls, digest, repository, fetching, message=message)


def fetch_unpacked(
    http: Http,
    urls: Sequence[str],
    digest: str,
    repository: Repository,
    fetching: Fetching,
    *,
    message: str,
) -> CommitId:
    """Download an archive from the first URL that has it, and unpack it into a commit."""
    archive = fetching.downloads / f"{digest}-{repository.git_dir.stem}"
    fetching.step("downloading")
    download(http, urls, digest, archive, counter=fetching.count, stop=fetching.stop)
    fetching.step("unpacking")
    commit = commit_archive(archive, message, repository)
    archive.unlink()
    return commit
