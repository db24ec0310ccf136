"""The oracle of the engine: what `git apply --cached` makes of a patch on a tree."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from patchkit.errors import BadInputError
from patchkit.gitcmd.process import sealed_environment
from patchkit.model.apply_changes import Applied, Blobs, apply_changes
from patchkit.model.mail import parse_patch
from patchkit.model.objects import (
    SUBMODULE_MODE,
    TREE_MODE,
    GitObject,
    TreeEntry,
    make_object,
    make_pack,
    make_tree,
)
from patchkit.model.outcome import Reason
from patchkit.model.tree import ObjectSource, Tree
from tests.support.repos import Upstream

#: Path -> (mode, contents); a submodule's contents are its commit id.
Snapshot = Mapping[str, tuple[int, bytes]]

_BROKEN_BINARY = (b"corrupt binary patch", b"unrecognized binary patch")


@dataclass
class Objects(ObjectSource):
    """An object store in memory."""

    known: dict[str, GitObject] = field(default_factory=dict)

    def add(self, kind: str, payload: bytes) -> str:
        made = make_object(kind, payload)
        self.known[made.oid] = made
        return made.oid

    def tree(self, files: Snapshot) -> str:
        """Add a whole tree; returns its id."""
        here: dict[str, TreeEntry] = {}
        below: dict[str, dict[str, tuple[int, bytes]]] = {}
        for path, (mode, data) in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = (mode, data)
            elif mode == SUBMODULE_MODE:
                here[name] = TreeEntry(mode, data.decode())
            else:
                here[name] = TreeEntry(mode, self.add("blob", data))
        for name, inner in below.items():
            here[name] = TreeEntry(TREE_MODE, self.tree(inner))
        return self.add("tree", make_tree(here).payload)

    def read(self, oid: str, kind: str) -> bytes:
        assert self.known[oid].kind == kind
        return self.known[oid].payload


def git_diff(before: Snapshot, after: Snapshot, *options: str) -> bytes:
    """What `git diff` writes for a change."""
    objects = Objects()
    old, new = objects.tree(before), objects.tree(after)
    with _repository(objects) as folder:
        return _git(folder, "diff-tree", "-r", "-p", *options, old, new).stdout


def git_verdict(files: Snapshot, patch: bytes, *options: str) -> str | None:
    """The tree that `git apply --cached` gives; None if it refuses."""
    objects = Objects()
    tree = objects.tree(files)
    # without the objects of the result, which git would take instead of the patch's payload
    with _repository(objects) as folder:
        _git(folder, "read-tree", tree)
        done = _git(folder, "apply", "--cached", *options, stdin=patch, check=False)
        # git stops reading at a broken binary hunk and applies what it has read so far: we refuse
        broken = any(complaint in done.stderr for complaint in _BROKEN_BINARY)
        if done.returncode or broken:
            return None
        return _git(folder, "write-tree").stdout.decode().strip()


def our_verdict(files: Snapshot, patch: bytes, strip: int = 1) -> str | None:
    """The tree that we give; None if we refuse."""
    try:
        changes = parse_patch(patch, name="x.patch", strip=strip).changes
    except BadInputError:
        return None
    applied = apply_to(files, patch, strip) if changes else None
    return applied.tree.write([]) if applied and applied.tree else None


def mailinfo(data: bytes) -> dict[str, str] | None:
    """What `git mailinfo -b` says, with the message; None where it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["git", "mailinfo", "-b", "msg", "patch"],
            cwd=folder,
            env=sealed_environment(),
            input=data,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            return None
        message = (Path(folder) / "msg").read_bytes().decode("utf-8", "surrogateescape")
    rows = done.stdout.decode("utf-8", "surrogateescape").split("\n")
    found = dict.fromkeys(("Author", "Email", "Subject", "Date"), "")
    found |= {name: value for name, _, value in (row.partition(": ") for row in rows) if name}
    return found | {"message": message}


def refused_on_purpose(patch: bytes) -> bool:
    """Whether we refuse a patch for a header of which git guesses what is meant.

    Nothing follows it, or it names a file as deleted and as there.
    """
    try:
        parse_patch(patch, name="x.patch")
    except BadInputError as error:
        guessed = "header of a file without any change", "header gives a deleted file a new name"
        return any(problem.what in guessed for problem in error.problems)
    return False


def fits_no_disk(files: Snapshot, patch: bytes) -> bool:
    """Whether we refuse a symlink that git puts into a tree, and no disk takes."""
    clashes = [clash for file in apply_to(files, patch).files for clash in file.clashes]
    return any(each.reason is Reason.UNSAFE and "symlink" in str(each.detail) for each in clashes)


def apply_to(files: Snapshot, patch: bytes, strip: int = 1) -> Applied:
    """What our engine makes of a patch on some files."""
    objects = Objects()
    tree = Tree(objects, objects.tree(files))
    return apply_changes(tree, Blobs(objects), parse_patch(patch, name="x", strip=strip).changes)


@contextmanager
def _repository(objects: Objects) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        upstream = Upstream.create(Path(folder) / "r.git")
        pack = make_pack(objects.known.values())
        (upstream.path / "objects/pack").mkdir()
        for ending, data in ((".pack", pack.data), (".idx", pack.index)):
            (upstream.path / f"objects/pack/pack-{pack.name}{ending}").write_bytes(data)
        yield upstream.path


def _git(
    folder: Path, *args: str, stdin: bytes = b"", check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", *args],
        cwd=folder,
        env=sealed_environment(),
        input=stdin,
        capture_output=True,
        check=check,
    )
