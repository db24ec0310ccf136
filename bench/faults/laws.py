"""What must hold after a command that was struck: nothing lost or half, the next run works."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.faults.calls import REMOVES, Fault
from bench.faults.sandbox import Sandbox, Scene
from bench.faults.tracing import Traced
from patchkit.disk.files import JOURNAL, UNFINISHED

Kind = TypeVar("Kind")

_SAVED = "refs/patchkit/saved/"
#: What only a mistake of ours says.
BUG = ("Traceback (most recent call last)", "this is a bug", "Fatal Python error")
_JOURNALS = (
    JOURNAL,
    f"site/{JOURNAL}",
    "workspace/*/.git/patchkit/move/journal.json",
    "workspace/.patchkit/*/*/.git/patchkit/move/journal.json",
)
#: Names of what is unfinished: nothing of it may be left by a command that could tidy up.
_TIDYING = frozenset(REMOVES.values())
_UNFINISHED = (f"*{UNFINISHED}", "*.lock", "move", "*.new", "tmp_pack*", "shallow.*.patchkit")


@dataclass(frozen=True)
class State:
    """What users and later commands see. `project` is every file of it but the checkouts, and its
    git's index; `files`, `refs` and `index` are the checkouts', by their paths; saved work is not
    in here, as its names have the time in them.
    """

    project: dict[str, bytes]
    files: dict[str, bytes]
    refs: dict[str, str]
    index: bytes


def state_of(box: Sandbox) -> State:
    """The state of the project in a sandbox."""
    root = box.project.root
    everything = dict(_files(root))
    if (root / ".git").is_dir():
        everything["git's index"] = _git(root, "ls-files", "--stage")
    checkouts = [path for path in sorted(root.glob("workspace/*")) if (path / ".git").is_dir()]
    refs: dict[str, str] = {}
    index = b""
    for each in checkouts:
        rows = _git(each, "for-each-ref", "--format=%(refname) %(objectname)").decode()
        kept = [row.split(" ") for row in rows.splitlines() if _SAVED not in row]
        refs |= {f"{each.relative_to(root)}/{name}": oid for name, oid in kept}
        refs[f"{each.relative_to(root)}/HEAD"] = (each / ".git" / "HEAD").read_text()
        index += _git(each, "ls-files", "--stage", "-t") + _git(each, "status", "--porcelain")
    return State(
        {name: data for name, data in everything.items() if not name.startswith("workspace/")},
        {name: data for name, data in everything.items() if name.startswith("workspace/")},
        refs,
        index,
    )


class Laws:
    """The laws for one scene: `old` and `new` are the states before it and after it, `between`
    those with a part of the work done, whole in itself.
    """

    def __init__(self, box: Sandbox, scene: Scene, old: State, new: State, code: int) -> None:
        self.box, self.scene, self.old, self.new, self.code = box, scene, old, new, code
        self.between: list[State] = []

    def broken(self, fault: Fault, traced: Traced) -> list[str]:
        """What does not hold now, right after the struck run and before any other."""
        found = list(self._said(fault, traced))
        found += [f"wrote {path}" for path in traced.written if not self._allowed(path)]
        now = state_of(self.box)
        if not fault.kills and traced.code not in (0, 130):
            self._pages(now)
        found += self._half_way(now, strict=not fault.kills and not self._journals())
        found += self._lost(now)
        if not fault.kills and traced.code == self.code == 0 and now != self.new:
            found.append(f"exit 0, and {_difference(now, self.new)}")
        # a signal in the middle of tidying up leaves what was about to go
        tidying = traced.struck in _TIDYING or self._journals()
        if fault.tidies and not fault.lasting and not tidying:
            found += [f"left behind: {path}" for path in self._unfinished()]
        return found

    def broken_later(self) -> list[str]:
        """What does not hold once the command has been run again, undisturbed."""
        box, found = self.box, []
        # git's own, when it was killed as well: the next one says to remove it
        (box.project.root / ".git/index.lock").unlink(missing_ok=True)
        code = box.run(self.scene.argv)
        out, err = box.said()
        now = state_of(box)
        # what is done already cannot be done again
        right = {self.code} | (self.scene.done if now == self.new else set())
        if code not in right:
            found.append(f"the next run ends with {code}: {err.strip() or out.strip()}")
        found += [f"the next run says: {err}" for bug in BUG if bug in err]
        if now != self.new:
            found.append(f"after the next run {_difference(now, self.new)}")
        found += self._lost(now)
        found += [f"journal left: {path}" for path in self._journals()]
        return found + list(self._unsound())

    def files_of_demo(self) -> list[str]:
        """Every file that the checkout `demo` has before or after, by its path in there."""
        begin = "workspace/demo/"
        names = self.old.files.keys() | self.new.files.keys()
        return sorted(name.removeprefix(begin) for name in names if name.startswith(begin))

    def broken_by_edit(self, traced: Traced) -> list[str]:
        """What does not hold after a run in which somebody saved a file, but for that file."""
        found = list(self._said(Fault("editor"), traced))
        found += [f"wrote {path}" for path in traced.written if not self._allowed(path)]
        found += [f"journal left: {path}" for path in self._journals()]
        found += [f"left behind: {path}" for path in self._unfinished()]
        return found + list(self._unsound())

    def _said(self, fault: Fault, traced: Traced) -> Iterator[str]:
        out, err = self.box.said()
        if traced.hung:
            yield "it hangs"
        for bug in BUG:
            if bug in err or bug in out:
                yield f"it says: {err}{out}"
        if fault.kills:
            return
        if traced.code < 0 or traced.code == 70:
            yield f"exit {traced.code}: {err}"
        if fault.signal and traced.code not in (130, self.code):
            yield f"exit {traced.code} after a signal: {err}"
        if traced.code not in (0, 130) and "error:" not in err and traced.code != self.code:
            yield f"exit {traced.code} without an error message: {err or out}"

    def _allowed(self, path: str) -> bool:
        box = self.box
        return path == "/dev/tty" or Path(path).is_relative_to(box.work)

    def _pages(self, now: State) -> None:
        """After an exit code that says of a failure, a whole page may tell of it: a bump that
        failed is reviewed, too. After exit 0 a page is what the run without a fault writes.
        """
        for path in self.scene.pages:
            data = now.project.get(path)
            if data is not None and data.rstrip().endswith(b"</html>"):
                now.project[path] = self.new.project[path]

    def _half_way(self, now: State, *, strict: bool) -> Iterator[str]:
        """Paths that hold neither old nor new; or, with `strict`, a set that is neither."""
        right = (self.old, *self.between, self.new)
        names = {name.split("/")[1] for each in (*right, now) for name in each.files}
        pages = self.scene.pages
        for path in pages:
            if now.project.get(path) not in [each.project.get(path) for each in right]:
                yield f"{path} is not whole"
        sets = [([_apart(each.project, pages) for each in right], _apart(now.project, pages))]
        # each checkout is all or nothing, by itself
        sets += [([_below(each.files, n) for each in right], _below(now.files, n)) for n in names]
        for whole, actual in sets:
            for path, data in actual.items():
                if data not in [each.get(path) for each in whole] and Path(path).name != JOURNAL:
                    yield f"{path} is neither old nor new"
            if strict and actual not in whole:
                wrong = _difference_of(actual, whole[0]), _difference_of(actual, whole[-1])
                yield f"a mixture: {wrong[0]}; {wrong[1]}"
        for name in names if strict else ():
            refs = _below(now.refs, name)
            if refs not in [_below(each.refs, name) for each in right]:
                yield f"refs of {name} are neither old nor new: {refs}"

    def _lost(self, now: State) -> Iterator[str]:
        if (now.files, now.refs) == (self.old.files, self.old.refs):
            return  # a resolution of an earlier conflict is in the halt, until the wait ends
        checkout = self.box.project.checkout("demo")
        for path, data in self.scene.mine.items():
            if now.files.get(f"workspace/demo/{path}") != data and not _saved(checkout, path, data):
                yield f"{path} of the user's is lost"

    def _journals(self) -> list[Path]:
        root = self.box.project.root
        return [path for pattern in _JOURNALS for path in root.glob(pattern)]

    def _unfinished(self) -> list[str]:
        box = self.box
        # a folder that ^C met when it was just being made has nobody who knows its name
        left = box.temporary.iterdir()
        found = [path for path in left if not path.is_dir() or any(path.iterdir())]
        for pattern in _UNFINISHED:
            found += [path for path in box.work.rglob(pattern) if not _is_flock(path)]
        found += list((box.cache / "scratch").glob("*"))
        return [str(path.relative_to(box.work)) for path in found]

    def _unsound(self) -> Iterator[str]:
        for path in [
            *self.box.project.root.glob("workspace/*/.git"),
            *self.box.cache.glob("repos/*"),
        ]:
            done = subprocess.run(
                ["git", "--git-dir", str(path), "fsck", "--connectivity-only", "--no-dangling"],
                capture_output=True,
                check=False,
            )
            if done.returncode != 0:
                yield f"git fsck of {path.name}: {done.stderr.decode()}"


def _apart(items: dict[str, bytes], pages: tuple[str, ...]) -> dict[str, bytes]:
    return {name: data for name, data in items.items() if name not in pages}


def _below(items: dict[str, Kind], checkout: str) -> dict[str, Kind]:
    return {name: each for name, each in items.items() if name.split("/")[1] == checkout}


def _is_flock(path: Path) -> bool:
    """Lock files of filelock's: they stay, and hold nobody up."""
    return path.suffix == ".lock" and path.parent.name in ("locks", ".patchkit")


def _files(root: Path) -> Iterator[tuple[str, bytes]]:
    own = root / "workspace" / ".patchkit"  # verdicts and locks; receipts of packages do count
    for folder, folders, names in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if name != ".git" and not name.endswith(UNFINISHED) and Path(folder, name) != own
        ]
        for path in [Path(folder, name) for name in [*names, *folders]]:
            relative = path.relative_to(root).as_posix()
            if path.is_symlink():
                yield relative, b"-> " + os.fsencode(path.readlink())
            elif path.is_file() and not path.name.endswith(UNFINISHED):
                yield relative, path.read_bytes() + b"\0executable" * os.access(path, os.X_OK)


def _saved(checkout: Path, path: str, data: bytes) -> bool:
    if not (checkout / ".git").is_dir():
        return False
    kept = _git(checkout, "rev-list", f"--glob={_SAVED}").decode().split()  # a stack, or edits
    return any(_git(checkout, "cat-file", "blob", f"{oid}:{path}") == data for oid in kept)


def _git(folder: Path, *args: str) -> bytes:
    command = ["git", "-c", "gc.auto=0", "-C", str(folder), *args]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run(command, capture_output=True, check=False, env=environment).stdout


def _difference(one: State, other: State) -> str:
    parts = (
        _difference_of(one.project, other.project),
        _difference_of(one.files, other.files),
        "" if one.refs == other.refs else f"refs {one.refs} for {other.refs}",
        "" if one.index == other.index else "the index differs",
    )
    return "; ".join(part for part in parts if part)


def _difference_of(one: dict[str, bytes], other: dict[str, bytes]) -> str:
    names = [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]
    signs = ("-" if name not in one else "+" if name not in other else "!" for name in names)
    return " ".join(sign + name for sign, name in zip(signs, names, strict=True))
