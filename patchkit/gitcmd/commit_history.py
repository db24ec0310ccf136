"""What a repository's history tells about paths, blobs and lines, as far as it is here: renames,
deletions, and the commits behind them.

A cache may hold only the pinned commit (shallow), or no blobs of other commits: then these answer
None or nothing, never an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.scratch import shallow_commits
from patchkit.model.names import short_id
from patchkit.model.objects import decode_path, lines_of

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


# The commits of a range that touched certain lines of a file: named beside a conflict.


_MOST_TOUCHES = "300"  # commits that touch one file
_NOTHING = "0" * 40


class Touch(Struct, frozen=True):
    """A commit that changed a file, from blob `old` to `new` (None: no file there).

    `told` is the commit as people name it: id, date, author, subject.
    """

    told: str
    old: str | None
    new: str | None

    @property
    def blobs(self) -> tuple[str, ...]:
        """The blobs that are there."""
        return tuple(each for each in (self.old, self.new) if each is not None)


def touches_of(repository: Repository, old: str, new: str, path: str) -> tuple[Touch, ...]:
    """The commits from `old` (exclusive) to `new` that changed a file, newest first.

    Nothing where that stretch of history is not here.
    """
    done = repository.git(
        *(
            "--literal-pathspecs",
            "log",
            "-n",
            _MOST_TOUCHES,
            "--raw",
            "--no-abbrev",
            "--no-renames",
        ),
        *("--format=%x00%H %as %an: %s", f"{old}..{new}"),
        *("--", path),
        accept=_FAILS,
    )
    text = done.out.decode("utf-8", "replace") if done.code == 0 else ""
    return tuple(_parse(text))


def that_touched(
    repository: Repository, touches: Collection[Touch], lines: Collection[bytes]
) -> tuple[Touch, ...]:
    """Those that added or removed one of `lines`, as far as their blobs are here."""
    wanted = frozenset(lines)
    oids = dict.fromkeys(oid for each in touches for oid in each.blobs)
    with reading(repository) as reader:
        texts = {
            oid: frozenset(line.strip() for line in lines_of(data))
            for oid, data in reader.read_present(list(oids)).items()
        }

    def changed(touch: Touch) -> frozenset[bytes]:
        old, new = (texts.get(each or "", frozenset()) for each in (touch.old, touch.new))
        return old ^ new

    known = (each for each in touches if all(oid in texts for oid in each.blobs))
    return tuple(each for each in known if changed(each) & wanted)


def _parse(text: str) -> Iterator[Touch]:
    for block in text.split("\0")[1:]:
        told, _, rest = block.partition("\n")
        commit, _, words = told.partition(" ")
        row = next((line.split() for line in lines_of(rest) if line.startswith(":")), None)
        if row is not None:
            old, new = (None if oid == _NOTHING else oid for oid in row[2:4])
            yield Touch(f"{short_id(commit)} {words}", old, new)


# The history between two commits, as carrying asks it. Every answer costs a git process, so nothing
# is asked before it is wanted, and each only once. Without that part of the history the answer is
# "unknown". So it is for a root commit, and for one at which a shallow repository was cut off:
# these seem to have added every file. The commits may come from another repository than the files.


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
