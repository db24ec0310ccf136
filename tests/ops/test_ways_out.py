"""No state without a way out: random walks of a person's commands, edits and kills, and from where
each ends, the hints as they are printed.

A hint is typed as it stands. Within three steps the checkout is clean, with every edit in it or in
a patch; or the hint names a decision, with a command for each answer: each is tried.
"""

from __future__ import annotations

import random
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.commands import Ran
from tests.support.laws import share
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, git_in, make_patch
from tests.workspace.killing import killed_at

pytestmark = pytest.mark.slow

#: So many commands may follow from one hint to the next before the checkout is clean.
_STEPS = 3
#: So many commands in all, with those that answer a question.
_MOST = 12
_SAVES = 5  # saved states of the project, as another person's commits

#: A person who picks one of these asks for work to be taken away.
_TAKES_AWAY = ("skip", "abort", "undo", "drop", "--force", "--accept")
#: Forms of `undo` that undo nothing.
_OF_SAVED = re.compile(r" undo --show\b")
_LOOKS = ("status", "diff", "show", "check", "log", "--dry-run", "-n")


def _text(changes: dict[int, str]) -> str:
    return "".join(changes.get(number, f"line {number}\n") for number in range(1, 31))


_BASE = {"a": _text({}), "b": _text({})}
#: What each patch of the stack changes: one place of a file.
_PLACES = [("a", 5), ("a", 15), ("b", 10)]
#: Upstream's versions: nothing that matters, a conflict with the second patch, and with the third.
_VERSIONS = [{}, {"a": {1: "new 1\nnew\n"}}, {"a": {1: "x\n", 15: "theirs\n"}}]
_VERSIONS.append({"a": {1: "x\n", 15: "theirs\n"}, "b": {10: "theirs\n", 29: "y\n"}})


@dataclass
class Walk:
    """A project, what the person did to it, and how to go back to a state of it."""

    root: Path
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    told: list[str] = field(default_factory=list)
    edits: int = 0
    dropped: bool = False  # patches, by git
    given_up: set[str] = field(default_factory=set)  # edits over which the person wrote others
    last: Ran | None = None

    def __post_init__(self) -> None:
        upstream = Upstream.create(self.root / "upstream.git")
        self.pins = []
        for number, version in enumerate(_VERSIONS):
            files = {name: _text(version.get(name, {})) for name in "ab"}
            self.pins.append(upstream.commit(files))
            upstream.tag(f"v{number}", self.pins[-1])
        self.project = Project(self.root / "project")
        patches = {}
        changed: dict[str, dict[int, str]] = {"a": {}, "b": {}}
        for number, (name, line) in enumerate(_PLACES):
            before = {each: _text(changed[each]) for each in "ab"}
            changed[name][line] = f"patch {number}\n"
            after = {each: _text(changed[each]) for each in "ab"}
            patches[f"p{number}.patch"] = make_patch(before, after, subject=f"Patch {number}")
        self.project.component("demo", upstream, self.pins[0], patches)
        self.saves = [self._project_files()]
        self.run("apply")

    @property
    def checkout(self) -> Path:
        return self.project.checkout("demo")

    def run(self, *argv: str) -> Ran:
        self.last = self.project.run(*argv)
        self.told.append(f"$ patchkit {shlex.join(argv)}  # {self.last.code}\n{self.last.err}")
        return self.last

    def git(self, *argv: str) -> None:
        if self.checkout.is_dir():
            command = ["git", "-C", str(self.checkout), *argv]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.told.append(f"$ git {shlex.join(argv)}  # {done.returncode}")

    def _project_files(self) -> dict[str, bytes]:
        return self.project.files() | self.project.files("manifests")

    # What a person does.

    def act(self, name: str) -> None:
        """One of all that a person may do; what it says of a refusal is looked at."""
        self.told.append(f"- {name}")
        self.last = None
        _ACTS[name](self)
        self._look()

    def _look(self) -> None:
        if self.last is not None:
            check(self.last)

    def edit(self) -> None:
        """Change a line of a file: beside a patch's, in it, or far away."""
        name = self.chance.choice("ab")
        file = self.checkout / name
        if not file.is_file():
            return
        rows = file.read_text().splitlines(keepends=True)
        at = self.chance.choice([0, 4, 9, 14, 15, 22, len(rows) - 1])
        self.edits += 1
        rows[min(at, len(rows)) : at + 1] = [f"edit {self.edits};\n"]
        self._write(file, "".join(rows))
        self.told.append(f"edit {self.edits} in {name}:{at + 1}")

    def add(self) -> None:
        if self.checkout.is_dir():
            self.edits += 1
            self._write(self.checkout / f"new{self.edits % 3}", f"edit {self.edits};\n")
            self.git("add", f"new{self.edits % 3}")

    def _write(self, file: Path, text: str) -> None:
        before = file.read_text() if file.is_file() else ""
        self.given_up |= _edits(before) - _edits(text)
        file.write_text(text)

    def commit(self) -> None:
        self.git("commit", "-qam", f"Commit {self.edits}")

    def reset(self, commit: str) -> None:
        """Drop commits of the stack, with what they hold."""
        self.git("reset", "-q", "--hard", commit)
        self.dropped = True

    def verb(self) -> None:
        series = self.project.root / "patches/demo/series"
        names = series.read_text().split() if series.exists() else []
        if not names:
            return
        one, other = self.chance.choice(names), self.chance.choice(names)
        self.run(
            *self.chance.choice(
                [
                    ("drop", one),
                    ("edit", one, "--name", f"name{self.chance.randrange(9)}"),
                    ("move", one, "--to", str(self.chance.randint(1, len(names)))),
                    ("fold", one, "--to", other),
                    ("edit", one, "--message", f"Words {self.chance.randrange(9)}"),
                    ("refresh", "--patch", one),
                ]
            )
        )

    def bump(self) -> None:
        self.run("bump", "demo", "--to", f"v{self.chance.randrange(len(self.pins))}")

    def pin(self) -> None:
        file = self.project.root / "manifests/demo.yaml"
        pin = self.chance.choice(self.pins)
        file.write_text(re.sub("[0-9a-f]{40}", pin, file.read_text()))
        self.told.append(f"pin: {pin}")

    def patch_by_hand(self) -> None:
        files = sorted((self.project.root / "patches/demo").glob("*.patch"))
        if files:
            file = self.chance.choice(files)
            self.edits += 1
            text = re.sub(r"(?m)^\+patch \d", f"+edit {self.edits};", file.read_text())
            file.write_text(text)
            self.told.append(f"edit {self.edits} in {file.name}")

    def save_project(self) -> None:
        self.saves = [*self.saves, self._project_files()][-_SAVES:]
        self.told.append("project saved")

    def load_project(self) -> None:
        """What `git pull` or `git switch` in the project does."""
        number = self.chance.randrange(len(self.saves))
        for path in self._project_files():
            (self.project.root / path).unlink()
        write_files(self.project.root, self.saves[number])
        self.told.append(f"project loaded: {number}")

    def import_one(self) -> None:
        name = f"imported{self.chance.randrange(3)}.patch"
        after = _BASE | {"b": _text({20: f"import {name}\n"})}
        write_files(self.root, {name: make_patch(_BASE, after, subject="Import")})
        self.run("import", str(self.root / name), "-c", "demo")

    def delete(self) -> None:
        shutil.rmtree(self.checkout, ignore_errors=True)
        self.told.append("checkout deleted")

    def killed(self) -> None:
        argv = self.chance.choice(
            ["refresh", "bump demo --to v2", "apply --force", "undo", "continue", "new killed"]
        )
        point = self.chance.randint(1, 90)
        killed_at(point, partial(self.project.run, *argv.split()))
        self.told.append(f"killed at {point}: {argv}")

    def resolve(self) -> None:
        """What conflicts becomes both sides."""
        if not self.checkout.is_dir():
            return
        for file in self.checkout.iterdir():
            before = text = file.read_text() if file.is_file() else ""
            text = re.sub(r"(?ms)^\|{7} .*?^=======\n", "", text)
            settled = re.sub(r"(?m)^(<{7}|>{7}|={7}|\|{7}).*\n", "", text)
            if settled != before:
                file.write_text(settled)
        self.git("add", "--update")
        self.told.append("resolved")

    # What the law says.

    def present(self, *, dropped: bool = False) -> set[str]:
        """The edits that are in the checkout or in a patch."""
        texts = [data.decode() for data in self.project.files().values() if not dropped]
        if self.checkout.is_dir():
            for file in self.checkout.iterdir():
                texts += [file.read_text()] if file.is_file() else []
        if (self.checkout / ".git").is_dir():  # or on a branch of the person's
            grep = "git for-each-ref --format='%(objectname)' refs/heads | xargs git grep -h edit"
            done = _shell(grep, self.checkout)
            texts.append(done.stdout.decode())
        return _edits("".join(texts))

    def clean(self) -> bool:
        return self.project.run("status", "--strict", "-q").code == 0

    def state(self) -> object:
        refs = git_in(self.checkout, "show-ref") if (self.checkout / ".git").is_dir() else b""
        files = [(file.name, file.read_bytes()) for file in self._files()]
        return self._project_files(), refs, files

    def _files(self) -> Iterator[Path]:
        if self.checkout.is_dir():
            yield from (each for each in sorted(self.checkout.iterdir()) if each.is_file())

    def leave(self) -> None:
        """Follow hints from here until the checkout is clean."""
        ran, steps = self.last, 0
        edits = self.present(dropped=self.dropped) - self.given_up
        seen: list[tuple[object, str]] = []
        back: set[str] = set()  # answers that lead back: once is enough
        for _ in range(_MOST):
            if self.clean():
                break
            if ran is not None and by_hand(ran):
                return
            ways = hints(ran)
            if not ways:
                ran = self.run("status")
                ways = hints(ran)
            assert ways, "no way is named"
            ways = [each for each in ways if each not in back] or ways
            way = ways[0] if len(ways) == 1 else self.chance.choice(ways)
            looks = any(each in way for each in _LOOKS)
            steps = steps + (not looks) if len(ways) == 1 else 0
            ran = self._type(way, edits)
            if " abort " in way or (" undo " in way and not _OF_SAVED.search(way)):
                back.add(way)
                seen.clear()
            here = (self.state(), way)
            assert here not in seen or looks, f"a loop: {way}"
            seen.append(here)
            assert steps <= _STEPS, "no clean state in three steps"
        assert self.clean(), "no clean state"
        assert edits <= self.present(), f"gone: {edits - self.present()}"

    def _type(self, way: str, edits: set[str]) -> Ran | None:
        """A command line as it is printed; a person resolves what is to be resolved before it."""
        if " continue " in way or " add " in way:
            self.resolve()
        if any(each in way for each in _TAKES_AWAY) and not _OF_SAVED.search(way):
            edits.clear()
        assert not re.search(r"\b[A-Z]{3,}\b", way.replace(str(self.root), "")), (
            f"to fill in: {way}"
        )
        if way.startswith("patchkit "):
            ran = self.run(*shlex.split(way)[1:])
            check(ran)
            assert ran.code != 2, f"does not run: {way}\n{ran.err}"
            return ran
        done = subprocess.run(
            way, cwd=self.project.root, shell=True, capture_output=True, check=False
        )
        self.told.append(f"$ {way}  # {done.returncode}")
        assert done.returncode in (0, 1), f"does not run: {way}\n{done.stderr.decode()}"
        return None


def _edits(text: str) -> set[str]:
    return set(re.findall(r"edit \d+;", text))


def _shell(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(line, cwd=folder, shell=True, capture_output=True, check=False)


def hints(ran: Ran | None) -> list[str]:
    """The command lines that an output names, in order."""
    found: list[str] = []
    inside = False
    for line in ran.err.splitlines() if ran else []:
        inside = line.startswith("hint: ") or (inside and line.startswith("      "))
        command = re.search(r"(?:^ *|: +|; or |or |run )((?:patchkit|git|mv|sed) [^;]*)", line)
        later = re.match(r"(?:hint: | {6})(?:then|and) ", line)  # once the one before is done
        if inside and command and not later:
            found.append(command[1].split("  ")[0].strip())
    # what `check` says is next stands in its report
    for line in ran.out.splitlines() if ran and ran.argv[0] == "check" else []:
        if line.strip().startswith(("patchkit refresh ", "patchkit apply ")):
            found.append(line.strip())
    return list(dict.fromkeys(found))


def by_hand(ran: Ran) -> bool:
    """Whether it says of a patch that does not apply what a person can do with it."""
    return ran.argv[0] == "check" and "patchkit refresh --new NAME" in ran.out


def check(ran: Ran) -> None:
    """A refusal names a way on; nothing is a bug."""
    assert ran.code in (0, 1, 2, 3, 4, 5), ran.err
    told = "hint: " in ran.err or "  hint: " in ran.out
    assert ran.code in (0, 2) or told, f"no hint: {ran.argv} {ran.code}\n{ran.err}"


def _command(*argv: str) -> Callable[[Walk], object]:
    return lambda walk: walk.run(*argv)


_ACTS: dict[str, Callable[[Walk], object]] = {
    "apply": _command("apply"),
    "force": _command("apply", "--force"),
    "refresh": _command("refresh"),
    "new": lambda walk: walk.run("refresh", "--new", f"mine{walk.chance.randrange(9)}"),
    "continue": _command("continue"),
    "take": _command("continue", "--accept"),
    "skip": _command("skip"),
    "abort": _command("abort"),
    "undo": _command("undo"),
    "detach": lambda walk: walk.git("switch", "-q", "--detach", "refs/patchkit/base"),
    "bare": lambda walk: walk.reset("refs/patchkit/base"),
    "one less": lambda walk: walk.reset("HEAD~"),
    "amend": lambda walk: walk.git("commit", "-qa", "--amend", "--no-edit"),
    "edit": Walk.edit,
    "edit more": Walk.edit,
    "add": Walk.add,
    "commit": Walk.commit,
    "verb": Walk.verb,
    "bump": Walk.bump,
    "bump more": Walk.bump,
    "pin": Walk.pin,
    "patch by hand": Walk.patch_by_hand,
    "save project": Walk.save_project,
    "load project": Walk.load_project,
    "import": Walk.import_one,
    "delete": Walk.delete,
    "killed": Walk.killed,
    "resolve": Walk.resolve,
}


@settings(max_examples=share(200), phases=[Phase.explicit, Phase.generate, Phase.shrink])
@given(acts=st.lists(st.sampled_from([*_ACTS]), min_size=1, max_size=7), seed=st.integers(0, 2**16))
def test_hints_lead_out_of_each_state(acts: list[str], seed: int) -> None:
    """From where a walk ends, each answer of each question leads to a clean checkout."""
    with tempfile.TemporaryDirectory() as folder:
        walk = Walk(Path(folder), random.Random(seed))
        try:
            for act in acts:
                walk.act(act)
            walk.told.append("- and out")
            walk.leave()
        except AssertionError as error:
            raise AssertionError(f"{error}\n\n" + "\n".join(walk.told)) from None
