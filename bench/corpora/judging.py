"""What we make of a recorded call, beside what git or GNU patch makes of the same bytes."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.corpora.recorder import read_files
from bench.corpora.recording import Case
from patchkit.errors import BadInputError
from patchkit.model.mail import parse_patch
from patchkit.model.objects import EXECUTABLE_MODE, SYMLINK_MODE
from tests.model.oracle import Objects, apply_to, git_verdict, our_verdict

Files = Mapping[str, tuple[int, bytes]]
#: What became of a case: "both apply", "both refuse", or one of the two.
BOTH, NEITHER, WE, THEY = "both apply", "both refuse", "only we apply", "only they apply"
OTHER = "both apply, another tree"
ORDER = (BOTH, NEITHER, WE, THEY, OTHER)


@dataclass
class Judged:
    """Counts of a suite by script and by what came out; the cases that differ, with why.

    `unheld` counts those whose files git itself holds in no index.
    """

    cases: Counter[tuple[str, str]] = field(default_factory=Counter)
    differ: list[tuple[Case, int, str, str]] = field(default_factory=list)
    unheld: int = 0

    def sum(self, outcome: str) -> int:
        """How many cases came out so."""
        return sum(count for (_, each), count in self.cases.items() if each == outcome)

    def total(self) -> int:
        """How many cases there were."""
        return self.cases.total()


def judge(
    cases: Iterable[Case],
    theirs: Callable[[Case, int], str | None],
    strips: Callable[[Case], Iterable[int]],
) -> Judged:
    """Ask both sides about every distinct case; a verdict is a tree, or None for a refusal."""
    found, seen = Judged(), set()
    for case in cases:
        for strip in strips(case):
            key = (case.patch, frozenset(case.files.items()), strip)
            if key in seen:
                continue
            seen.add(key)
            try:
                other = theirs(case, strip)
            except subprocess.CalledProcessError:
                found.unheld += 1
                continue
            one = our_verdict(case.files, case.patch, strip)
            outcome = _outcome(one, other)
            found.cases[case.script, outcome] += 1
            if outcome not in (BOTH, NEITHER):
                found.differ.append((case, strip, outcome, why(case, strip)))
    return found


def _outcome(ours: str | None, theirs: str | None) -> str:
    if ours == theirs:
        return NEITHER if ours is None else BOTH
    if ours is None or theirs is None:
        return THEY if ours is None else WE
    return OTHER


def why(case: Case, strip: int) -> str:
    """Why we refuse it, in our own words; "" if we do not."""
    try:
        changes = parse_patch(case.patch, name="x.patch", strip=strip).changes
    except BadInputError as error:
        return str(error.problems[0].what)
    if not changes:
        return "no change in it"
    applied = apply_to(case.files, case.patch, strip)
    if applied.tree is not None:
        return ""
    reasons = {clash.reason.value for file in applied.files for clash in file.clashes}
    return ", ".join(sorted(reasons))


def gits_strip(case: Case) -> Iterator[int]:
    """The -p of a call of `git apply`; 1 without one."""
    yield next(_given(case.argv), 1)


def patchs_strips(case: Case) -> Iterator[int]:
    """The -p of a call of GNU patch; without one it guesses, so 0 and 1."""
    given = list(_given(case.argv))
    yield from given[:1] or (0, 1)


def _given(argv: tuple[str, ...]) -> Iterator[int]:
    for word, after in zip(argv, (*argv[1:], "")[: len(argv)], strict=True):
        text = after if word in ("-p", "--strip") else word.removeprefix("--strip=")
        text = text.removeprefix("-p")
        if word.startswith(("-p", "--strip")) and text.isdigit():
            yield int(text)


def by_git(case: Case, strip: int) -> str | None:
    """What `git apply` makes of it, where no configuration has a say."""
    return git_verdict(case.files, case.patch, f"-p{strip}")


def by_patch(case: Case, strip: int) -> str | None:
    """What GNU patch makes of it when no fuzz is allowed."""
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above) / "files"
        _write(folder, case.files)
        command = ["patch", f"-p{strip}", "-F0", "-f", "-s", "--no-backup-if-mismatch"]
        done = subprocess.run(
            command, cwd=folder, input=case.patch, capture_output=True, check=False
        )
        files = dict(read_files(folder))
        return None if done.returncode else Objects().tree(files)


def as_git(case: Case, strip: int) -> bool:
    """Whether our verdict is that of `git apply`."""
    return our_verdict(case.files, case.patch, strip) == by_git(case, strip)


def _write(folder: Path, files: Files) -> None:
    folder.mkdir()
    for name, (mode, data) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode == SYMLINK_MODE:
            path.symlink_to(os.fsdecode(data))
        else:
            path.write_bytes(data)
            path.chmod(0o755 if mode == EXECUTABLE_MODE else 0o644)
