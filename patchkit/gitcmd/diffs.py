"""Diffs between trees whose bytes depend on nothing but the trees.

Every setting of git that changes a diff's bytes is either pinned by an option or out of reach: git
runs in an empty repository of its own that only borrows the objects, so neither the repository's
configuration nor `info/attributes` nor a `.gitattributes` file is ever seen. Attributes would
choose the text behind `@@`, and which files count as binary, differently on each machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.process import run_sealed
from patchkit.gitcmd.repository import Repository

_PINNED = (
    "--full-index",  # abbreviated ids grow with the repository
    "--binary",
    "--diff-algorithm=histogram",
    "--indent-heuristic",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-relative",
    "--no-color",
    "--no-color-moved",
    "--no-ext-diff",
    "--no-textconv",
    "--no-function-context",
    "--submodule=short",
    "--ignore-submodules=none",
    "--no-rename-empty",  # an empty file is no evidence of where a change came from
    "-O/dev/null",  # not in the order of a diff.orderFile
    "-l5000",
)

_PINNED_CONFIG = (
    "core.bare=true",
    "core.bigFileThreshold=512m",  # what is larger counts as binary
    "core.looseCompression=1",  # the payload of binary changes; 1 is what git takes by default
    "core.abbrev=40",
    "diff.suppressBlankEmpty=false",
)


def diff_trees(
    repository: Repository, pairs: Sequence[tuple[str, str]], *options: str
) -> list[bytes]:
    """The diff of each pair of tree ids, in order, by one git process; b"" where nothing differs.

    `options` say what is not pinned: the context and whether renames are looked for.
    """
    if not pairs:
        return []
    lines = [f"{before} {after}\n" for before, after in pairs]
    command: list[str] = []
    for setting in _PINNED_CONFIG:
        command += ["-c", setting]
    command += ["diff-tree", "--stdin", "-r", "-p", *_PINNED, *options]
    with TemporaryDirectory(prefix="patchkit-") as folder:
        bare = _empty_repository(Path(folder))
        objects = {"GIT_OBJECT_DIRECTORY": str(objects_directory(repository))}
        out = run_sealed(command, git_dir=bare, stdin="".join(lines).encode(), extra=objects).out
    return _split(out, [line.encode() for line in lines])


def objects_directory(repository: Repository) -> Path:
    """Where the repository's objects are: its own folder, or that of the main one of a worktree."""
    common = repository.git_dir / "commondir"
    if common.is_file():
        return (repository.git_dir / common.read_text().strip() / "objects").resolve()
    return repository.git_dir / "objects"


def _empty_repository(folder: Path) -> Path:
    (folder / "refs").mkdir()
    (folder / "objects").mkdir()
    (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    return folder


def _split(out: bytes, separators: Sequence[bytes]) -> list[bytes]:
    # git puts "TREE TREE" on a line before each diff; no line of a diff can look like that, since
    # each starts with a marker, a keyword or a base85 length
    starts = []
    position = 0
    for separator in separators:
        if not out.startswith(separator, position):
            position = out.find(b"\n" + separator, position) + 1
            if position == 0:
                raise SurroundingsError("git diff-tree answers in an unknown form")
        starts.append((position, position + len(separator)))
        position += len(separator)
    ends = [start for start, _ in starts[1:]] + [len(out)]
    return [out[begin:end] for (_, begin), end in zip(starts, ends, strict=True)]
