"""An editor that saves a file of a checkout while a command runs: what it saved must not be lost.

The tracer stops the command at a system call, the editor saves, and the command goes on. What the
editor saved must then be on disk, or under a ref that the output names; and still be so once the
same command was run again.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path

from bench.faults.calls import CHANGING, Fault
from bench.figures import sums_table

#: How a file is saved, or what else is done to it.
WAYS = (
    "renamed over",  # written beside, then renamed
    "in place",
    "appended",
    "open before",  # opened before the command began, written to now
    "same size and time",
    "deleted",
    "chmod",
    "staged only",  # git add, then the file as it was
    "assume-unchanged",
    "skip-worktree",
)
#: The moments: each call that changes something, or opens a file.
MOMENTS = Fault("editor", calls=frozenset(CHANGING), reading=True)

_REF = re.compile(r"refs/patchkit/saved/[^\s,;:]+")
_SKIPPED = ("objects", "logs")


@dataclass(frozen=True)
class Moment:
    """A scene, a way, a file below the checkout, and at which call the file is saved."""

    scene: str
    way: str
    path: str
    number: int

    def __str__(self) -> str:
        return (
            f"--scene {self.scene!r} --way {self.way!r} --file {self.path!r} --point {self.number}"
        )


@dataclass
class Edits:
    """What a run came to: `struck` counts (scene, way); `missed` are those where the file could not
    be saved at that moment, or only once the command was through with it.
    """

    seed: int
    struck: Counter[tuple[str, str]] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    broken: list[tuple[Moment, list[str]]] = field(default_factory=list)

    def sum(self) -> int:
        """How many edits there were."""
        return self.struck.total()

    def table(self) -> str:
        """A table in Markdown: a column for each way."""
        scenes = list(dict.fromkeys(scene for scene, _ in self.struck))
        sums = [sum(self.struck[name, way] for name in scenes) for way in WAYS]
        return sums_table(WAYS, sums, len(scenes))


class Editor:
    """Saves one file once; `saved` is what it wrote, None before."""

    def __init__(self, root: Path, checkout: Path, moment: Moment) -> None:
        self._root, self._checkout, self._moment = root, checkout, moment
        self._place = checkout / moment.path
        self._text = f"saved by an editor: {moment}\n".encode()
        self._descriptor = -1
        self.saved: bytes | None = None
        self._executable: bool | None = None

    def begin(self) -> None:
        """What is done before the command begins."""
        way = self._moment.way
        if way in ("assume-unchanged", "skip-worktree"):
            self._git("update-index", f"--{way}", "--", self._moment.path)
        elif way == "open before" and self._place.is_file() and not self._place.is_symlink():
            self._descriptor = os.open(self._place, os.O_WRONLY | os.O_APPEND)

    def save(self) -> None:
        """Do it; a file that cannot be saved now is left alone."""
        place, way = self._place, self._moment.way
        if place.is_symlink() or place.is_dir():
            return
        try:
            _SAVES[way](self, place)
        except OSError:
            return

    def end(self) -> None:
        """Let go of what is open."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def lost(self, said: str) -> Iterator[str]:
        """What of it is neither on disk nor under a ref that was named."""
        refs = _REF.findall(said)
        if self._executable is not None and not self._has_mode(refs):
            yield f"the mode of {self._moment.path} is lost"
        if self.saved is None or self._on_disk():
            return
        blob = sha1(b"blob %d\0%s" % (len(self.saved), self.saved)).hexdigest()
        if blob in self._git("ls-files", "--stage"):
            return
        # what `continue` and `refresh` were given is in the patches
        for ref in (*refs, "refs/heads/patchkit"):
            if blob in self._git("rev-list", "--objects", ref):
                return
        named = ", ".join(refs) or "no ref"
        yield f"what was saved in {self._moment.path} is nowhere; {named} was named"

    def _renamed(self, place: Path) -> None:
        beside = place.with_name(".editor~")
        beside.write_bytes(self._text)
        beside.replace(place)
        self.saved = self._text

    def _written(self, place: Path) -> None:
        with place.open("r+b" if place.exists() else "xb") as stream:
            stream.truncate()
            stream.write(self._text)
        self.saved = self._text

    def _appended(self, place: Path) -> None:
        before = place.read_bytes() if place.exists() else b""
        with place.open("ab") as stream:
            stream.write(self._text)
        self.saved = before + self._text

    def _late(self, _: Path) -> None:
        if self._descriptor < 0 or os.fstat(self._descriptor).st_nlink == 0:
            return  # it was replaced before the editor began to write
        size = os.fstat(self._descriptor).st_size
        with Path(f"/proc/self/fd/{self._descriptor}").open("rb") as stream:
            before = stream.read(size)
        os.write(self._descriptor, self._text)
        self.saved = before + self._text

    def _unseen(self, place: Path) -> None:
        status = place.stat()
        text = (self._text * (status.st_size // len(self._text) + 1))[: status.st_size]
        if len(text) < 40:
            return  # it would not be known again
        place.write_bytes(text)
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.saved = text

    def _deleted(self, place: Path) -> None:
        place.unlink()
        self.saved = b""
        self._text = b""

    def _chmod(self, place: Path) -> None:
        mode = place.stat().st_mode ^ 0o111
        place.chmod(mode)
        self._executable = bool(mode & 0o100)

    def _staged(self, place: Path) -> None:
        before = place.read_bytes() if place.exists() else None
        place.write_bytes(self._text)
        done = self._git("add", "--", self._moment.path)
        if before is None:
            place.unlink()
        else:
            place.write_bytes(before)
        if done == "":
            blob = sha1(b"blob %d\0%s" % (len(self._text), self._text)).hexdigest()
            self.saved = self._text if blob in self._git("ls-files", "--stage") else None

    @property
    def acted(self) -> bool:
        """Whether anything was saved."""
        return self.saved is not None or self._executable is not None

    def _on_disk(self) -> bool:
        if self.saved == b"":
            return True  # it was deleted
        for folder, folders, names in os.walk(self._root):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            for name in names:
                place = Path(folder, name)
                if place.is_file() and not place.is_symlink() and place.read_bytes() == self.saved:
                    return True
        return False

    def _has_mode(self, refs: list[str]) -> bool:
        place = self._place
        if place.is_file() and os.access(place, os.X_OK) == self._executable:
            return True
        wanted = "100755" if self._executable else "100644"
        for ref in refs:
            if self._git("ls-tree", ref, "--", self._moment.path).startswith(wanted):
                return True
        return False

    def _git(self, *args: str) -> str:
        command = ["git", "-c", "gc.auto=0", "-C", str(self._checkout), *args]
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
        return (done.stdout + done.stderr).decode("utf-8", "replace")


_SAVES: dict[str, Callable[[Editor, Path], None]] = {
    "renamed over": Editor._renamed,
    "in place": Editor._written,
    "appended": Editor._appended,
    "open before": Editor._late,
    "same size and time": Editor._unseen,
    "deleted": Editor._deleted,
    "chmod": Editor._chmod,
    "staged only": Editor._staged,
    "assume-unchanged": Editor._written,
    "skip-worktree": Editor._written,
}
