"""What a repository's history tells about paths, blobs and lines, as far as it is here: renames,
deletions, and the commits behind them.

A cache may hold only the pinned commit (shallow), or no blobs of other commits: then these answer
None or nothing, never an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

from msgspec import Struct

from patchkit.errors import BadInputError
from patchkit.gitcmd.first_parent import (
    Beginning,
    Commit,
    Entries,
    Files,
    Landing,
    Line,
    blobs_of,
    entries_at,
    first_parents,
    landings,
    read_log,
)
from patchkit.gitcmd.object_reader import MissingObjectError, ObjectReader, reading
from patchkit.gitcmd.repository import NOT_HERE, ZERO, Repository
from patchkit.gitcmd.scratch import shallow_commits
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.diff_parse import parse_diff
from patchkit.model.evidence import count_of, evidence
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId, decode_path
from patchkit.model.patch import Header, Identity
from patchkit.model.upstream_intent import (
    commits_named,
    request_number,
    requests_named,
    requests_of,
)

# Commits that touch the paths asked for; further back nobody made a patch for today's pin.
_COMMITS = "4000"
# As git's merges: any two empty files are alike, so that none is taken for another.
_RENAMED = ("--no-rename-empty", "--diff-filter=R", "--name-status")
# So many renames of one file are followed.
_STEPS = 5


def commit_with(
    repository: Repository, tips: Sequence[CommitId], wanted: Mapping[str, str], since: str = ""
) -> CommitId | None:
    """The newest commit before one of `tips` at which all of `wanted` (path -> blob id, maybe
    abbreviated) hold; None if the history here has none. Of several tips an earlier one comes
    first. Commits that `since` has are not looked at.
    """
    for tip in tips:
        there = entries_at(repository, tip, list(wanted), required=False)
        state = {path: entry.oid for path, entry in there.items()}  # after the commit in hand
        options = ["--first-parent", "-m", "-n", _COMMITS]
        span = [tip, f"^{since}"] if since else [tip]
        for row in read_log(repository, options, span, list(wanted), required=False):
            if all(state.get(path, "-").startswith(blob) for path, blob in wanted.items()):
                return row.id
            state.update((path, old or ZERO) for path, old in row.before.items())
    return None


def renames_in(repository: Repository, old: str, new: str) -> dict[str, str]:
    """Old path -> new one of the files that moved from one commit to a near one."""
    options = ("-r", "-z", "-M40%", "-l5000", *_RENAMED)
    return _renames(repository.ask("diff-tree", *options, old, new, no=NOT_HERE) or b"")


def common_home(homes: Iterable[str]) -> str | None:
    """The folder to which most files of another one went, of the paths to which they went."""
    counts = Counter(home.rpartition("/")[0] for home in homes)
    home, count = next(iter(counts.most_common(1)), (None, 0))
    return home if count > sum(counts.values()) * _MOST else None


def moved_blobs(repository: Repository, old: str, new: str) -> dict[str, None]:
    """The files that are gone or new from one commit to another: which moved follows from them."""
    changes = tree_changes(repository, old, new, required=False)
    return blobs_of(each.old or each.new for each in changes if not (each.old and each.new))


def _renames(out: bytes) -> dict[str, str]:
    """Old path -> new one, of `diff-tree -z --name-status`: status, old, new."""
    names = [decode_path(each) for each in out.split(b"\0")]
    return {names[at + 1]: names[at + 2] for at in range(0, len(names) - 2, 3)}


# The commits of a range that touched certain lines of a file: named beside a conflict.


_MOST_BROUGHT = 300  # versions of one file are fetched to be read, or of several at once


class Touch(Struct, frozen=True):
    """A commit that changed a file."""

    commit: Commit
    #: The blob before it; None: no file there.
    old: str | None
    #: The blob after it; None: it deleted the file.
    new: str | None

    @property
    def name(self) -> str:
        """The commit as "ID subject"."""
        return self.commit.name

    @property
    def told(self) -> str:
        """The commit with its date and author."""
        commit = self.commit
        day = commit.date[:10]
        return f"{short_id(commit.id)} {day} {commit.author}: {commit.subject}"

    @property
    def blobs(self) -> tuple[str, ...]:
        """The blobs that are there."""
        return tuple(each for each in (self.old, self.new) if each is not None)


def that_touched(
    repository: Repository, touches: Sequence[Touch], lines: Collection[bytes]
) -> tuple[Touch, ...]:
    """Those, newest first, that added or removed evidence among `lines`, as far as they are here.

    None where no line is evidence beside the oldest version of the file and the newest.
    """
    with reading(repository) as reader:
        texts = {"": b"", **reader.read_present({oid for each in touches for oid in each.blobs})}
    known = [each for each in touches if texts.keys() >= {*each.blobs}]
    ends = (known[-1].old, known[0].new) if known else ()
    wanted = evidence(lines, *(texts[each or ""] for each in ends))

    def changed(touch: Touch) -> bool:
        old, new = texts[touch.old or ""], texts[touch.new or ""]
        return any(count_of(line, old) != count_of(line, new) for line in wanted)

    return tuple(filter(changed, known))


# The history between two commits, as carrying asks it. One raw walk names the commits and blobs of
# all files that are asked about; which of them touched a line follows from the blobs, as `git log
# -S` has it: the line's text occurs more or less often after a commit than before. Nothing is
# walked before it is wanted. Without that part of the history the answer is "unknown". So it is for
# a root commit, and for one at which a shallow repository was cut off: these seem to have added
# every file.
# The commits may come from another repository than the files.


_SHOWN = 3  # commits that changed a file
_MOST = 0.5  # of a folder's files must have gone to one other folder


_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,40})")
_UNDOES = re.compile(r'^(revert|reapply) "(.*)"$')
_MARK = re.compile(r"^(?:\[[^]]*\]\s*)+|\s*\((?:#\d+|!\d+)\)$")
#: How many commits up to the pin are searched for one by which a patch may have landed.
_RECENT = "20000"
#: So many words make a subject that nobody else writes by chance.
_WORDS = 3


class ToldCommit(Struct, frozen=True):
    """A commit and what is written above its change; `date` is the author's, in seconds.

    `reverted_by` is the commit that takes it back, as "ID subject", "" if none does.
    """

    id: str  # in full
    email: str  # of the author, in lower case
    date: str
    subject: str  # the first line of its message
    plain: str  # the subject without marks
    reverted_by: str = ""
    #: The request that it came by, as its subject says.
    request: int | None = None
    #: What its message names below the subject: requests, and commits that it was made from.
    requests: frozenset[int] = frozenset()
    made_from: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The commit as "ID subject"."""
        return f"{short_id(self.id)} {self.subject}"


def plain_subject(subject: str) -> str:
    """A subject without what mail and forges put around it, in lower case."""
    return " ".join(_MARK.sub("", subject.strip()).lower().split())


def _told(blocks: Sequence[str]) -> Iterator[ToldCommit]:
    """The commits, newest first; one whose revert is reverted stands again.

    A revert names the commit by its id, or by its subject in quotes.
    """
    by_id: dict[str, str] = {}
    by_subject: dict[str, str] = {}
    for block in blocks:
        oid, email, date, subject, body = block.split("\n", 4)
        plain = plain_subject(subject)
        by = by_subject.pop(plain, "")
        by = next((name for start, name in by_id.items() if oid.startswith(start)), by)
        ties = request_number(subject), requests_named(body), commits_named(body)
        commit = ToldCommit(oid, email.lower(), date, subject, plain, by, *ties)
        if not by:
            by_id |= dict.fromkeys(_REVERTS.findall(body), commit.name)
            if found := _UNDOES.match(plain):
                undone = found[2] if found[1] == "revert" else f'revert "{found[2]}"'
                by_subject[plain_subject(undone)] = commit.name
        yield commit


class Between(Struct, dict=True):
    """The range of commits from `old` (exclusive) to `new`; `repository` has these two."""

    repository: Repository
    old: CommitId
    new: CommitId
    #: Gives what reads the repository with the commits in between; None: `repository` has them, and
    #: is opened for each question.
    history: Callable[[], ObjectReader] | None = None
    #: Brings blobs there.
    bring: Callable[[Iterable[str]], object] = frozenset
    #: The files that will be asked about: all are looked for in one walk.
    paths: Collection[str] = ()
    _moved: dict[str, dict[str, str]] = {}
    _touches: dict[str, tuple[Touch, ...]] = {}
    #: The versions of one file, the last that was asked about.
    _read: tuple[str, dict[str, bytes] | None] = ("", None)
    _brought: set[str] = set()  # files whose versions were brought
    _opened: set[str] = set()  # commits whose moved files were brought
    #: By paths: what stood at them where the first parents of `new` leave `old`, what changed it.
    _lines: dict[frozenset[str], tuple[Entries, Sequence[Landing]]] = {}

    def touches(self, path: str) -> tuple[Touch, ...]:
        """The commits that changed a file, newest first; none where that history is not here."""
        if path not in self._touches:
            asked = {path, *self.paths} - self._touches.keys()
            self._touches |= self._walk(asked)
        return self._touches[path]

    def _walk(self, paths: Collection[str]) -> dict[str, tuple[Touch, ...]]:
        past = self._past
        cut = shallow_commits(past.git_dir)
        found: dict[str, list[Touch]] = {path: [] for path in paths}
        span = [self.new, f"^{self.old}"]
        for row in read_log(past, [], span, sorted(paths), required=False):
            if row.parents and row.id not in cut:
                commit = row.commit
                for path, entry in row.touches.items():
                    if path not in found:  # a folder stood where a file is asked for
                        continue
                    new = entry.oid if entry is not None else None
                    found[path].append(Touch(commit, row.before[path], new))
        return {path: tuple(each) for path, each in found.items()}

    def renamed(self, path: str) -> str | None:
        """Where a file of the old commit is at the new one.

        By git's comparison of both trees; where they have grown too unlike, by the commit that
        moved the file, and the next one, to the end of the chain.
        """
        return self._renames.get(path) or self._by_chain(path)

    def folder_renamed(self, folder: str) -> str | None:
        """Where most renamed files of a folder that is gone went to."""
        if self._has(self.new, folder) or not self._has(self.old, folder):
            return None
        renames = self._renames.items()
        return common_home(new for old, new in renames if old.rpartition("/")[0] == folder)

    @cached_property
    def goes_back(self) -> bool:
        """Whether `new` is an ancestor of `old`."""
        ends = self.new, self.old
        return self._past.ask("merge-base", "--is-ancestor", *ends, no=NOT_HERE) is not None

    def deleted_by(self, path: str) -> str:
        """The last commit that deleted the file, as "ID subject"; "" if unknown."""
        return next((each.name for each in self.touches(path) if each.new is None), "")

    def since(self, paths: Sequence[str], holds: Callable[[bytes | None], bool]) -> str:
        """The commit since which something holds of a file, as "ID subject"; see `carry.Past`."""
        if not self._is_joined:
            return ""
        past = self._past

        def bring(blobs: Iterable[str]) -> None:
            self.bring(list(blobs)[:_MOST_BROUGHT])

        with self._reading() as reader:

            def held(files: Files) -> bool:
                entry = next(filter(None, map(files.get, paths)), None)
                return holds(None if entry is None else reader.blob(entry.oid))

            asked = Beginning(past, paths, held, bring)
            start, found = self._line_of(paths)
            try:
                count = asked.among(start, found)
                commit = asked.within(found[count - 1]) if count else None
            except MissingObjectError:  # too many versions, or one that no server gives
                return ""
        return commit.name if commit is not None else ""

    def lacks(self, paths: Sequence[str], holds: Callable[[bytes | None], bool]) -> str:
        """The commit of `old` that `new` lacks, since which something does not hold there."""
        name = self._back.since(paths, lambda data: not holds(data))
        return f"without {name}" if name else ""

    @cached_property
    def _back(self) -> Between:
        """The range from `new` to `old`, of a base on another branch."""
        return Between(self.repository, self.new, self.old, self.history, self.bring, self.paths)

    def _line_of(self, paths: Collection[str]) -> tuple[Entries, Sequence[Landing]]:
        """What stood at paths where the first parents of `new` leave `old`, and what changed it."""
        # a file that moved is walked for alone: much faster than for all of them again
        asked = frozenset(self.paths if {*self.paths}.issuperset(paths) else paths)
        if asked not in self._lines:
            past, line = self._past, self._first_parents
            start = entries_at(past, line.start, asked) if line.follows else {}
            self._lines[asked] = start, landings(past, line, asked)
        start, found = self._lines[asked]
        return start, [each for each in found if not each.touches.keys().isdisjoint(paths)]

    @cached_property
    def _first_parents(self) -> Line:
        return first_parents(self._past, self.old, self.new)

    def changed_by(self, path: str) -> tuple[str, ...]:
        """The last commits that changed the file, newest first, as "ID subject"."""
        return tuple(each.name for each in self.touches(path)[:_SHOWN])

    def same_change(
        self, named: tuple[str, ...], header: Header, *, before: bool = False
    ) -> tuple[ToldCommit, ...]:
        """The commits that may have made a patch's very change; see `carry.Past`."""
        wanted = plain_subject(header.message.partition("\n")[0])
        requests = requests_of(header.message)
        author = header.author or Identity("", "")
        written = author.email.lower(), author.date.partition(" ")[0]
        telling = len(wanted.split()) >= _WORDS
        commits = self._recent if before else self._all_commits
        found = tuple(
            commit
            for commit in commits
            if commit.id.startswith(named)
            or (telling and commit.plain == wanted)
            or (all(written) and (commit.email, commit.date) == written)
            or commit.request in requests
        )
        return found or tuple(
            commit
            for commit in commits
            if requests & commit.requests or any(oid.startswith(named) for oid in commit.made_from)
        )

    def paths_of(self, commit: str) -> frozenset[str]:
        """The paths at which a commit differs from its first parent."""
        files = tree_changes(self._past, f"{commit}^", commit, required=False)
        return frozenset(file.path for file in files)

    def lines_of(self, commit: str) -> Mapping[str, Sequence[bytes]]:
        """Path -> the lines of a commit's hunks, with marker; nothing where files are not here."""
        pair = (f"{commit}^", commit)
        files = tree_changes(self._past, *pair, required=False)
        self.bring(side.oid for file in files for side in (file.old, file.new) if side)
        options = ("-p", "-U3", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
        out = self._past.ask("diff-tree", "-r", "--full-index", *options, *pair, no=NOT_HERE)
        try:
            changes = parse_diff(out or b"")
        except BadInputError:  # a name that we refuse: nothing can be said of this commit
            return {}
        return {e.path: [row for hunk in e.hunks for row in hunk.lines] for e in changes}

    def versions(self, path: str) -> tuple[tuple[str, bytes], ...]:
        """("ID subject", contents) after each commit that changed the file; see `carry.Past`."""
        touches = self.touches(path)
        texts = self._versions(path)
        newest = ((each.name, (texts or {}).get(each.new or "")) for each in touches)
        return tuple((name, data) for name, data in newest if data is not None)[::-1]

    @cached_property
    def _is_joined(self) -> bool:
        """Whether both commits have an ancestor in common, as far as the history is here."""
        return self._past.ask("merge-base", self.old, self.new, no=NOT_HERE) is not None

    @cached_property
    def _all_commits(self) -> tuple[ToldCommit, ...]:
        """Every commit of the range, newest first."""
        return self._log(f"{self.old}..{self.new}")

    @cached_property
    def _recent(self) -> tuple[ToldCommit, ...]:
        """The newest commits of both ends: what reverts one of `old` may have come since."""
        return self._log("-n", _RECENT, self.old, self.new)

    def _log(self, *span: str) -> tuple[ToldCommit, ...]:
        out = self._past.ask(
            "log",
            "--no-show-signature",
            "--encoding=UTF-8",
            "-z",
            "--format=%H%n%ae%n%at%n%s%n%b",
            *span,
            no=NOT_HERE,
        )
        blocks = (out or b"").decode("utf-8", "replace").split("\0")
        return tuple(_told([block for block in blocks if block]))

    def _versions(self, path: str) -> dict[str, bytes] | None:
        """All versions of a file by their blobs; None where one cannot be fetched."""
        if self._read[0] != path:
            touches = self.touches(path)
            self._bring_versions(path)
            oids = {oid for each in touches for oid in each.blobs}
            with self._reading() as reader:
                found = reader.read_present(oids)
            self._read = path, (found if found.keys() == oids else None)
        return self._read[1]

    def _bring_versions(self, path: str) -> None:
        """Bring a file's versions, and with those of the second one those of all that have few.

        Most of a fetch of some files is the round trip: one for each file that is asked about would
        be the longest part of a carry over a network. All versions of all files are too much.
        """
        if path in self._brought:
            return
        others = self._touches.keys() - self._brought - {path} if len(self._brought) == 1 else ()
        blobs = dict.fromkeys(self._newest_blobs(path))
        self._brought.add(path)
        for name in sorted(others, key=lambda each: len(self._touches[each])):
            blobs |= dict.fromkeys(self._newest_blobs(name))
            if len(blobs) > _MOST_BROUGHT:
                break
            self._brought.add(name)
        self.bring(blobs)

    def _newest_blobs(self, path: str) -> Iterator[str]:
        return (oid for each in self._touches[path][:_MOST_BROUGHT] for oid in each.blobs)

    @cached_property
    def _past(self) -> Repository:
        """The repository that has the commits in between, if there is one."""
        return self.history().repository if self.history is not None else self.repository

    def _reading(self) -> AbstractContextManager[ObjectReader]:
        return nullcontext(self.history()) if self.history is not None else reading(self._past)

    @cached_property
    def _renames(self) -> dict[str, str]:
        options = ("-r", "-z", "-M50%", "-l5000", *_RENAMED)
        out = self.repository.ask("diff-tree", *options, self.old, self.new, no=NOT_HERE)
        return _renames(out or b"")

    def _by_chain(self, path: str) -> str | None:
        """The end of the renames that follow each other, each in the commit that deleted a file."""
        home, last = path, ""
        for _ in range(_STEPS):
            commit = self._deletion(home)
            moved = self._renames_in(commit).get(home) if commit else None
            if moved is None or commit == last:
                break
            home, last = moved, commit
        return home if last and self._has(self.new, home) else None

    def _has(self, commit: CommitId, path: str) -> bool:
        return self.repository.resolve(f"{commit}:{path}") is not None

    def _deletion(self, path: str) -> CommitId:
        touches = self.touches(path)
        return next((each.commit.id for each in touches if each.new is None), CommitId(""))

    def _renames_in(self, commit: CommitId) -> dict[str, str]:
        if commit not in self._moved:
            past = self._past
            if commit not in self._opened:
                # with those of the commits that took away other files, which are asked about next
                commits = {commit, *map(self._deletion, self.paths)} - {"", *self._opened}
                self.bring(blob for oid in commits for blob in moved_blobs(past, f"{oid}^", oid))
                self._opened |= commits
            self._moved[commit] = renames_in(past, f"{commit}^", commit)
        return self._moved[commit]
