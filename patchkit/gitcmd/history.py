"""What a repository's history tells about paths and blobs, as far as it is here.

A cache may hold only the pinned commit (shallow), or no blobs of other commits: then these answer
None, never an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import decode_path

# Commits that touch the paths asked for; further back nobody made a patch for today's pin.
_COMMITS = "4000"
_FAILS = (0, 1, 128)


class Rename(Struct, frozen=True):
    """The commit that moved a file, and where to."""

    commit: str
    path: str


class Match(Struct, frozen=True):
    """The commit at which `matches` of the wanted blobs stand at their paths."""

    commit: str
    subject: str
    matches: int


class _Touch(Struct, frozen=True):
    path: str
    old: str
    new: str


def find_rename(
    repository: Repository,
    commit: str,
    path: str,
    bring: Callable[[Iterable[str]], object] = frozenset,
) -> Rename | None:
    """How the file `path`, gone at `commit`, left; follows several renames of it.

    `bring` is called with the blobs that have to be compared.
    """
    found: Rename | None = None
    for _ in range(5):
        step = _one_rename(repository, commit, found.path if found else path, bring)
        if step is None or (found is not None and step.commit == found.commit):
            break
        found = step
    return found


def best_match(
    repository: Repository, tips: Sequence[str], wanted: Mapping[str, str]
) -> Match | None:
    """The newest commit before one of `tips` at which most of `wanted` (path -> blob id, maybe
    abbreviated) hold; None if no blob of them is met in the history here.
    """
    best: tuple[int, str] | None = None
    for tip in tips:
        state = _blobs_at(repository, tip, wanted)
        for commit, matches in _matches(_touches(repository, tip, wanted), wanted, state):
            if matches and (best is None or matches >= best[0]):
                best = (matches, commit)
    if best is None:
        return None
    subject = repository.git("log", "-1", "--format=%s", best[1], accept=_FAILS).out
    return Match(best[1], subject.decode("utf-8", "replace").strip(), best[0])


def _one_rename(
    repository: Repository, tip: str, path: str, bring: Callable[[Iterable[str]], object]
) -> Rename | None:
    arguments = ["log", "-1", "--format=%H", "--diff-filter=D", "--no-renames", tip, "--", path]
    done = repository.git("--literal-pathspecs", *arguments, accept=_FAILS)
    commit = done.out.decode().strip()
    if not commit:
        return None
    bring(_moved_blobs(repository, commit))
    raw = repository.git(
        "diff-tree", "-r", "-z", "-M40%", "-l5000", "--diff-filter=R", commit, accept=_FAILS
    ).out
    fields = raw.decode("utf-8", "surrogateescape").split("\0")
    # after the commit's own id: ":modes ids R<score>", old path, new path
    for at, each in enumerate(fields):
        if each.startswith(":") and len(fields) > at + 2 and fields[at + 1] == path:
            return Rename(commit, fields[at + 2])
    return None


def _moved_blobs(repository: Repository, commit: str) -> Iterator[str]:
    """The blobs that a commit takes away, and those that it adds."""
    arguments = ["diff-tree", "-r", "-z", "--no-renames", "--diff-filter=AD", commit]
    out = repository.git(*arguments, accept=_FAILS).out
    rows = (row[1:].decode().split() for row in out.split(b"\0") if row.startswith(b":"))
    for _, _, old, new, status in rows:
        yield old if status == "D" else new


def _touches(
    repository: Repository, tip: str, paths: Mapping[str, str]
) -> list[tuple[str, list[_Touch]]]:
    """(commit, what it does to the paths), oldest first, along first parents."""
    done = repository.git(
        "--literal-pathspecs",
        "log",
        "--first-parent",
        "-m",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "-z",
        "--format=%x00commit %H",
        "-n",
        _COMMITS,
        tip,
        "--",
        *paths,
        accept=_FAILS,
    )
    return list(_parse_log(done.out))[::-1] if done.code == 0 else []


def _parse_log(out: bytes) -> Iterator[tuple[str, list[_Touch]]]:
    commit, touches = "", list[_Touch]()
    fields = iter(out.split(b"\0"))
    for each in fields:
        text = each.strip(b"\n")
        if text.startswith(b"commit "):
            if commit:
                yield commit, touches
            commit, touches = text[7:].decode(), []
        elif text.startswith(b":"):
            row = text.split()
            path = decode_path(next(fields, b""))
            touches.append(_Touch(path, row[2].decode(), row[3].decode()))
    if commit:
        yield commit, touches


def _blobs_at(repository: Repository, tip: str, paths: Iterable[str]) -> dict[str, str]:
    """Path -> blob id of those that are files at `tip`."""
    done = repository.git(
        "--literal-pathspecs", "ls-tree", "-r", "-z", tip, "--", *paths, accept=_FAILS
    )
    rows = [row.split(b"\t", 1) for row in done.out.split(b"\0") if row]
    return {decode_path(path): meta.split()[2].decode() for meta, path in rows}


def _matches(
    log: Sequence[tuple[str, list[_Touch]]], wanted: Mapping[str, str], state: dict[str, str]
) -> Iterator[tuple[str, int]]:
    for _, touches in reversed(log):
        state.update((touch.path, touch.old) for touch in touches)  # the oldest is put last
    for commit, touches in log:
        state.update((touch.path, touch.new) for touch in touches)
        yield commit, sum(state.get(path, "-").startswith(blob) for path, blob in wanted.items())
