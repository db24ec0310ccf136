"""Pins of a cache repository: the ref that keeps one, and the proof that it is whole.

The ref is written when the last object is in place. Beside it a receipt notes the base and the
size of every pack, so that the next command knows with a few `stat` calls, and no git process,
that the pin is here and nobody took a pack away. Without a receipt that fits, git looks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from patchkit.disk.files import files_in
from patchkit.errors import SurroundingsError
from patchkit.gitcmd.process import NoAnswerError
from patchkit.gitcmd.repository import RefChange, Repository
from patchkit.model.objects import (
    LONGEST_TARGET,
    Base,
    CommitId,
    TreeId,
    decode_path,
    lines_of,
)

if TYPE_CHECKING:
    from patchkit.model.tree import ObjectSource

# Repositories from which blobs are left out on purpose, and how to get exactly those.
#
# Only a throw-away repository (`scratch.staging`) is ever one that git may fetch for: with
# `extensions.partialClone` it fetches whatever it misses, at any moment, without a word. And only
# where the server speaks protocol v2: with a dumb server behind it, git 2.39 looks for each
# object by a git that looks for each object, without end. A blob that no server could give is
# listed in a file of ours; a checkout without it is a partial clone of nobody.


# The lines of a repository's configuration with which git fetches from the remote `upstream` what
# is missing; the URL follows.
_PARTIAL = b"""\
[core]
\trepositoryformatversion = 1
[extensions]
\tpartialClone = upstream
[remote "upstream"]
\tpromisor = true
"""

# The remote that is said to have what no server gives.
_NOBODY = "no-server-has-it"


def make_partial(repository: Repository, url: str) -> str:
    """Let a throw-away `repository` fetch from `url` with a filter; the name of the remote.

    The lines are written here: `git config` takes a process for each of them.
    """
    config = repository.git_dir / "config"
    before = config.read_bytes().partition(_PARTIAL)[0]
    quoted = os.fsencode(url).replace(b"\\", rb"\\").replace(b'"', rb"\"")
    config.write_bytes(b'%s%s\turl = "%s"\n' % (before, _PARTIAL, quoted))
    return "upstream"


def missing_in_tree(repository: Repository, commit: CommitId) -> tuple[str, ...]:
    """The objects of this commit's tree (not of its parents') that are not in `repository`."""
    out = repository.git("rev-list", "--objects", "--no-walk", "--missing=print", commit).out
    return tuple(line[1:].decode() for line in lines_of(out) if line.startswith(b"?"))


def note_absent(repository: Repository, blobs: Collection[str]) -> None:
    """Remember in `repository` that no server gives these blobs."""
    if blobs:
        path = repository.git_dir / "patchkit-absent"
        known = absent_blobs(repository) | frozenset(blobs)
        draft = path.with_suffix(".draft")
        draft.write_text("".join(f"{oid}\n" for oid in sorted(known)))
        draft.replace(path)


def absent_blobs(repository: Repository) -> frozenset[str]:
    """The blobs that `note_absent` recorded; empty for nearly every repository."""
    try:
        return frozenset((repository.git_dir / "patchkit-absent").read_text().split())
    except FileNotFoundError:
        return frozenset()


def bear_absent(repository: Repository, source: Repository) -> None:
    """Let the user's own git (gc, fsck, commit) work where blobs of `source` are missing for good.

    Such a repository is a partial clone to git: what the packs of `source` refer to need not be
    there. All of them are marked, or a `git gc` would drop what only an unmarked one holds. The
    remote that would have the rest has no URL: nothing is ever fetched, a command that cannot do
    without a missing blob says so. Does nothing if `source` lacks none.
    """
    if not absent_blobs(source):
        return
    for pack in files_in(source.git_dir / "objects" / "pack", "pack-*.pack"):
        ours = repository.git_dir / "objects" / "pack" / pack.name
        if ours.exists():
            ours.with_suffix(".promisor").touch()
    for key in ("promisor", "skipFetchAll"):
        repository.git("config", f"remote.{_NOBODY}.{key}", "true")


def paths_of(repository: Repository, revision: str, blobs: Collection[str]) -> tuple[str, ...]:
    """The paths of `blobs` in a commit, which may be missing themselves."""
    if not blobs:
        return ()
    return tuple(path for _, oid, path in _files(repository, revision) if oid in blobs)


def unfit_file(repository: Repository, commit: CommitId) -> tuple[str, str] | None:
    """(path, what is wrong) of a file of a commit that no disk takes; None if all can be written.

    A file that is missing is not judged. The repository must be one that fetches nothing.
    """
    files = [file for file in _files(repository, commit) if file[0] != "160000"]  # a submodule
    asked = "".join(f"{oid}\n" for _, oid, _ in files).encode()
    out = repository.git("cat-file", "--batch-check", stdin=asked).out
    for (mode, _, path), row in zip(files, lines_of(out.decode()), strict=True):
        _, kind, size = f"{row} 1".split()[:3]  # what is missing has no size
        if kind not in ("blob", "missing"):
            return path, f"a file with the id of a {kind}"
        if mode == "120000" and not 0 < int(size) <= LONGEST_TARGET:
            return path, f"symlink with a target of {size} bytes"
    return None


def _files(repository: Repository, revision: str) -> list[tuple[str, ...]]:
    """(mode, id, path) of all that is no folder."""
    out = repository.git("ls-tree", "-r", "-z", "--full-tree", revision).out
    rows = (row.partition("\t") for row in decode_path(out).split("\0")[:-1])
    return [(*facts.split()[::2], path) for facts, _, path in rows]


#: Below this are the refs of all pins.
PINS = "refs/patchkit/pins/"


def read_pin(repository: Repository, ref: str) -> Base | None:
    """The pinned commit if it is here with all its files, else None."""
    receipt = _read_receipt(_receipt_path(repository, ref))
    if receipt is not None and receipt[1].items() <= _packs(repository).items():
        return receipt[0] if repository.exists else None
    try:
        return _examine(repository, ref)
    except NoAnswerError:
        raise
    except SurroundingsError:  # a repository that git cannot read holds no pin
        return None


def write_pin(repository: Repository, ref: str, base: Base) -> None:
    """Record that the base's commit is here and whole; the last step of every fetch.

    The caller keeps all others away from the ref.
    """
    repository.free_refs([ref])
    try:
        repository.update_refs([RefChange(ref, base.commit)], reason="patchkit: fetched")
    except BaseException:
        repository.free_refs([ref])  # ^C ends that git, too
        raise
    _write_receipt(repository, ref, base)


# The head of a commit whose committer has a date as git writes them: what it says is what git's log
# says.
_HEAD = re.compile(
    rb"tree ([0-9a-f]{40})\n(?:parent [0-9a-f]{40}\n)*author [^\n]*\n"
    rb"committer [^\n<>]*<[^\n<>]*> ((?:0|[1-9][0-9]{0,9}) (?:\+[0-9]{4}|-(?!0000)[0-9]{4}))\n"
)


def read_base(repository: Repository, commit: CommitId, source: ObjectSource | None = None) -> Base:
    """The base that a commit is; GitFailureError if it is not here.

    A `source` of the repository's objects is asked before another git; MissingObjectError then.
    """
    head = _HEAD.match(source.read(commit, "commit")) if source is not None else None
    if head is not None:
        return Base(CommitId(commit), TreeId(head[1].decode()), head[2].decode())
    form = "--format=%T%n%cd"
    out = repository.git("log", "-1", "--no-show-signature", "--date=raw", form, commit).out
    tree, date = lines_of(out.decode("ascii"))
    return Base(CommitId(commit), TreeId(tree), date)


def is_damaged(repository: Repository, ref: str) -> bool:
    """Whether some recorded pin is not whole any more, or git can't read the repository, whoever
    looks: what is damaged is thrown away.

    A repository that never held a pin is not damaged.
    """
    return all(_looks_damaged(repository, ref) for _ in range(2))


def _looks_damaged(repository: Repository, ref: str) -> bool:
    packs = _packs(repository).items()
    receipts = [_read_receipt(path) for path in files_in(_receipt_folder(repository), "*.json")]
    stale = any(receipt is None or not receipt[1].items() <= packs for receipt in receipts)
    if not repository.exists:
        return bool(receipts) or bool(packs)
    try:
        recorded = repository.refs(PINS) if stale else [ref] if repository.ref(ref) else []
        return any(_examine(repository, each) is None for each in recorded)
    except NoAnswerError:
        raise
    except SurroundingsError:
        return True


def is_sound(repository: Repository, ref: str) -> bool:
    """Whether every pack holds what its checksums say, and the pin, if it is here, is whole."""
    packs = files_in(repository.git_dir / "objects" / "pack", "pack-*.idx")
    if packs and repository.ask("verify-pack", *map(str, packs)) is None:
        return False
    return not is_damaged(repository, ref)


def _examine(repository: Repository, ref: str) -> Base | None:
    commit = repository.commit(ref) if repository.exists and repository.ref(ref) else None
    if commit is None:
        return None
    if not absent_blobs(repository).issuperset(missing_in_tree(repository, commit)):
        return None
    base = read_base(repository, commit)
    _write_receipt(repository, ref, base)
    return base


def _packs(repository: Repository) -> dict[str, int]:
    """The size of every pack and index, by name."""
    folder = repository.git_dir / "objects" / "pack"
    sizes: dict[str, int] = {}
    for path in (*files_in(folder, "pack-*.pack"), *files_in(folder, "pack-*.idx")):
        with suppress(FileNotFoundError):  # gone since it was listed
            sizes[path.name] = path.stat().st_size
    return sizes


def _receipt_folder(repository: Repository) -> Path:
    return repository.git_dir / "patchkit-pins"


def _receipt_path(repository: Repository, ref: str) -> Path:
    return _receipt_folder(repository) / (ref.rpartition("/pins/")[2].replace("/", "_") + ".json")


def _read_receipt(path: Path) -> tuple[Base, dict[str, int]] | None:
    try:
        noted = json.loads(path.read_bytes())
        return Base(noted["commit"], noted["tree"], noted["date"]), dict(noted["packs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_receipt(repository: Repository, ref: str, base: Base) -> None:
    """Best effort: without a receipt git is asked, as on a disk that can only be read."""
    path = _receipt_path(repository, ref)
    noted = {
        "commit": base.commit,
        "tree": base.tree,
        "date": base.date,
        "packs": _packs(repository),
    }
    draft = path.with_name(f"{path.stem}.{os.urandom(6).hex()}.draft")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        draft.write_text(json.dumps(noted, indent=2, sort_keys=True) + "\n")
        draft.replace(path)
