"""What a branch did to some paths, commit by commit along first parents, from trees alone.

One `git log --raw` names the blobs before and after each change, so that no blob is read, nor even
has to be here, to know when a file changed.

Invariant: every commit is compared with its first parent alone, also a merge, which so lands all
that its branch did at once. The first parents of a tip are one line without gaps, and so between
two landings that follow each other each of the paths has one and the same entry. It is the line of
`git log --first-parent -m`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TypeAlias

from msgspec import Struct

from patchkit.gitcmd.repository import NOT_HERE, ZERO, Repository
from patchkit.model.names import short_id
from patchkit.model.objects import (
    SUBMODULE_MODE,
    CommitId,
    TreeEntry,
    decode_path,
    lines_of,
)

#: Path -> what is there; a path that is not in it holds nothing.
Entries = Mapping[str, TreeEntry]
#: What stands at each of the paths that were asked for; None for nothing.
Files: TypeAlias = Mapping[str, TreeEntry | None]

# So many versions are looked at one by one, the last first: a file may have had thousands.
_NEAR = 32
# 9999-12-31T23:59:59Z, the last moment that a date has a form for
_LAST_SECOND = 253_402_300_799

# no path begins with a slash, and neither do these texts behind their blank
_FORM = "%x00/%H%x00%P%x00%ct%x00 %an%x00 %s%x00"


class Commit(Struct, frozen=True):
    """A commit of the line; `date` is when it landed (the committer's), in UTC, ISO 8601."""

    id: CommitId  # in full
    date: str
    author: str  # a name, without the address
    subject: str  # the message's first line

    @property
    def name(self) -> str:
        """The commit as "ID subject"."""
        return f"{short_id(self.id)} {self.subject}"


class Landing(Struct, frozen=True):
    """A commit of git's log, with what it does to the paths that were asked for."""

    id: CommitId  # in full
    parents: tuple[CommitId, ...]  # in full, the first one first
    #: Date, author and subject as git has them.
    facts: Sequence[bytes]
    #: What stands at each path that it changes afterwards, None for nothing.
    touches: Files
    #: The blob that stood at each path before, None for nothing.
    before: Mapping[str, str | None]

    @property
    def commit(self) -> Commit:
        """The commit itself."""
        date, author, subject = self.facts
        return Commit(self.id, _iso(date), decode_path(author), decode_path(subject))

    @property
    def parent(self) -> CommitId:
        """The commit of the line before it; "" for none."""
        return self.parents[0] if self.parents else CommitId("")


class Line(Struct, frozen=True):
    """First-parent commits, oldest first, after the commit `start`.

    `follows`: that is the parent of the first one, which else has none.
    """

    start: CommitId
    commits: tuple[CommitId, ...]
    follows: bool = True


def first_parents(repository: Repository, since: str, tip: CommitId) -> Line:
    """The commits of the line of `tip` that `since` does not have."""
    arguments = ["rev-list", "--first-parent", "--reverse", "--parents", tip, f"^{since}"]
    rows = [row.split() for row in lines_of(repository.git(*arguments).out.decode())]
    if not rows:
        return Line(CommitId(tip), ())
    follows = len(rows[0]) > 1
    start = rows[0][1] if follows else since
    return Line(CommitId(start), tuple(CommitId(row[0]) for row in rows), follows)


def merge_base(repository: Repository, one: str, *others: str) -> CommitId | None:
    """A best common ancestor of a commit and all that others have, None if they share nothing."""
    done = repository.git("merge-base", one, *others, accept=(0, 1))
    return CommitId(done.out.decode().strip()) or None


def landings(repository: Repository, line: Line, paths: Collection[str]) -> tuple[Landing, ...]:
    """The commits of a line that change any of `paths`, oldest first."""
    if not line.commits:
        return ()
    # --sparse: all commits; without it git compares each one's trees twice
    options = ["--first-parent", "-m", "--sparse"]
    span = [line.commits[-1], *([f"^{line.start}"] if line.follows else [])]
    rows = read_log(repository, options, span, paths)[::-1]
    return tuple(row for row in rows if row.touches)


class Beginning(Struct, frozen=True):
    """Looks for the commit since which something holds of what stands at `paths`.

    Invariant: it holds at the commit that is named and not at its first parent; nor at another
    parent, unless it held on that whole branch before it left the line.
    """

    repository: Repository
    paths: Collection[str]
    holds: Callable[[Files], bool]
    bring: Callable[[Iterable[str]], object]  # gets the blobs that `holds` may read, the last first

    def on_line(self, since: str, tip: CommitId) -> Landing | None:
        """The commit of the line of `tip`, of those that `since` does not have.

        None where it does not hold at the tip, or held where the line starts.
        """
        line = first_parents(self.repository, since, tip)
        start = entries_at(self.repository, line.start, self.paths) if line.follows else {}
        found = landings(self.repository, line, self.paths)
        count = self.among(start, found)
        return found[count - 1] if count else None

    def among(self, start: Files, found: Sequence[Landing]) -> int | None:
        """With how many of these commits it begins to hold up to the last; 0: from `start` on.

        None where it does not hold after the last. Beyond some commits steps grow: what was gone
        for a while in between is not seen there.
        """

        states: list[Files] = [{path: start.get(path) for path in self.paths}]
        for landing in found:
            states.append({p: landing.touches.get(p, e) for p, e in states[-1].items()})
        self.bring(blobs_of(entry for state in reversed(states) for entry in state.values()))
        last = len(states) - 1
        if not self.holds(states[last]):
            return None
        since, step = last, 1  # it holds from here on
        while since and self.holds(states[max(0, since - step)]):
            since = max(0, since - step)
            step *= 2 if last - since > _NEAR else 1
        before = max(-1, since - step)
        while since - before > 1:
            middle = (since + before) // 2
            since, before = (middle, before) if self.holds(states[middle]) else (since, middle)
        return since

    def within(self, landing: Landing) -> Commit:
        """Of a commit since which it holds on a line: itself, or the one that it merged.

        A merge itself where no commit that it brought did it: the merge made it, or a branch had it
        all along.
        """
        for other in landing.parents[1:]:
            inner = self.on_line(landing.parent, other)
            if inner is not None:
                return self.within(inner)
        return landing.commit


def landed_with(repository: Repository, line: Line, commit: CommitId) -> int:
    """With how many commits of a line one that its start lacks came to it; 0: it did not."""
    out = repository.git("rev-list", "--ancestry-path", *line.commits[-1:], f"^{commit}").out
    came = {commit, *out.decode().split()}
    return next((n for n, each in enumerate(line.commits, 1) if each in came), 0)


def describe_commits(repository: Repository, ids: Iterable[str]) -> dict[CommitId, Commit]:
    """Each commit by its id."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    arguments = ["log", "--no-walk=unsorted", "--no-show-signature", "--encoding=UTF-8", "--stdin"]
    stdin = "".join(f"{each}\n" for each in wanted).encode()
    out = repository.git(*arguments, f"--format={_FORM}", stdin=stdin).out
    return {row.id: row.commit for row in map(_parse, _rows(out))}


def entries_at(
    repository: Repository, revision: str, paths: Collection[str], *, required: bool = True
) -> Entries:
    """What stands at `paths` in a commit: files, symlinks and submodules, never folders.

    Where that commit is not here GitFailureError, or nothing if it is not `required`.
    """
    if not paths:
        return {}
    listing = ("--literal-pathspecs", "ls-tree", "-z", revision, "--", *paths)
    out = repository.git(*listing).out if required else repository.ask(*listing, no=NOT_HERE) or b""
    rows = [row.split(b"\t", 1) for row in out.split(b"\0") if row]
    facts = {decode_path(path): meta.split() for meta, path in rows}
    return {
        path: TreeEntry(int(mode, 8), oid.decode())
        for path, (mode, kind, oid) in facts.items()
        if kind != b"tree"
    }


def blobs_of(entries: Iterable[TreeEntry | None]) -> dict[str, None]:
    """The ids of files, in order, each once; of submodules none."""
    return dict.fromkeys(e.oid for e in entries if e is not None and e.mode != SUBMODULE_MODE)


def missing_objects(repository: Repository, ids: Iterable[str]) -> frozenset[str]:
    """Those of the objects that are not in the repository, as two gits say."""
    wanted = sorted(set(ids))
    if repository.has_no_objects:
        return frozenset(wanted)
    for _ in range(2):
        if wanted:
            stdin = "".join(f"{each}\n" for each in wanted).encode()
            out = repository.git("cat-file", "--batch-check", stdin=stdin).out
            rows = (line.split() for line in lines_of(out.decode()))
            wanted = [row[0] for row in rows if row[-1] == "missing"]
    return frozenset(wanted)


def read_log(
    repository: Repository,
    options: Sequence[str],
    span: Sequence[str],
    paths: Collection[str],
    *,
    required: bool = True,
) -> list[Landing]:
    """The commits of a span that change `paths`, in git's order, newest first unless told.

    One git process for all paths. Where that history is not here GitFailureError, or nothing if it
    is not `required`.
    """
    if not paths:
        return []
    log = ["log", "--raw", "--no-abbrev", "--no-renames", "-z", f"--format={_FORM}"]
    log += ["--no-show-signature", "--encoding=UTF-8", *options, "--stdin", "--", *paths]
    log.insert(0, "--literal-pathspecs")
    revisions = "".join(f"{revision}\n" for revision in span).encode()
    if required:
        out = repository.git(*log, stdin=revisions).out
    else:
        out = repository.ask(*log, no=NOT_HERE, stdin=revisions) or b""
    return list(map(_parse, _rows(out)))


def _rows(out: bytes) -> list[bytes]:
    """A log in our form, commit by commit: most of them say nothing but who they are."""
    return out.split(b"\0/")[1:]


def _parse(row: bytes) -> Landing:
    # the id and four facts, then pairs of ":modes ids status" and path
    name, parents, date, author, subject, *rest = row.split(b"\0")
    touches: dict[str, TreeEntry | None] = {}
    before: dict[str, str | None] = {}
    fields = iter(rest)
    for field in fields:
        facts = field.lstrip(b"\n")
        if facts:
            path = decode_path(next(fields))
            _, mode, old, new, _ = facts[1:].decode().split()
            touches[path] = None if new == ZERO else TreeEntry(int(mode, 8), new)
            before[path] = None if old == ZERO else old
    return Landing(
        CommitId(name.decode()),
        tuple(map(CommitId, parents.decode().split())),
        (date, author[1:], subject[1:]),
        touches,
        before,
    )


def _iso(seconds: bytes) -> str:
    # a commit may name any date at all, or none
    known = min(max(int(seconds or b"0"), 0), _LAST_SECOND)
    moment = datetime.fromtimestamp(known, tz=timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
