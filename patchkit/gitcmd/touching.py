"""Which commits of a range touched certain lines of a file: who to ask about a conflict."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from patchkit.gitcmd.objects import reading
from patchkit.gitcmd.repository import Repository
from patchkit.model.names import short_id
from patchkit.model.objects import lines_of

_FAILS = (0, 1, 128)
_MOST = "300"  # commits that touch one file
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
        *("--literal-pathspecs", "log", "-n", _MOST, "--raw", "--no-abbrev", "--no-renames"),
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
