"""`python -m bench.carry.picks CLONE OLD NEW`: does a patch that upstream took leave the series?

Commits between two releases are picked onto the old one, as a distribution backports them, and
carried to the new one, which has them all: each should be absorbed, none doubled. `--known-by` is
what a patch keeps of its commit: its name (`cherry picked from`), only author, date and subject, or
nothing but its lines.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.errors import BadInputError
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.repository import Repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.model.outcome import PatchResult, Status
from patchkit.stack.build import SeriesPatch

_HEADERS = {
    "name": "From: {author}\nDate: {date}\nSubject: {subject}\n\n"
    "{body}\n\n(cherry picked from commit {id})\n---\n",
    "author": "From: {author}\nDate: {date}\nSubject: {subject}\n\n{body}\n---\n",
    "lines": "From: Me <me@example.com>\nSubject: Our own words\n\nA reason.\n---\n",
}


class _Clone:
    """A bare clone that borrows the objects of another one, and an index of its own."""

    def __init__(self, clone: Path, work: Path) -> None:
        self.path = work / "clone"
        command = ["git", "clone", "--quiet", "--shared", "--bare", str(clone), str(self.path)]
        subprocess.run(command, check=True)
        self._environment = {**os.environ, "GIT_INDEX_FILE": str(work / "index")}

    def git(self, *words: str, given: bytes = b"") -> bytes | None:
        """What git prints; None where it fails."""
        done = subprocess.run(
            ["git", "-C", str(self.path), *words],
            input=given,
            capture_output=True,
            env=self._environment,
            check=False,
        )
        return done.stdout if done.returncode == 0 else None

    def text(self, *words: str) -> str:
        """The same as text, "" where git fails."""
        return (self.git(*words) or b"").decode("utf-8", "replace").strip()

    def base(self, name: str) -> Base:
        """A commit as a base."""
        commit = self.text("rev-parse", f"{name}^{{commit}}")
        tree = self.text("rev-parse", f"{commit}^{{tree}}")
        return Base(
            CommitId(commit),
            TreeId(tree),
            self.text("log", "-1", "--format=%cd", "--date=raw", commit),
        )

    def picked(self, commit: str, onto: Base, known_by: str) -> bytes | None:
        """A commit as a patch for `onto`; None where it does not apply there, or does nothing."""
        diff = self.git("diff-tree", "-p", "--full-index", "--binary", f"{commit}^", commit)
        self.git("read-tree", onto.commit)
        if diff is None or self.git("apply", "--cached", "--3way", "-", given=diff) is None:
            return None
        tree = "" if self.text("ls-files", "-u") else self.text("write-tree")
        if tree in ("", onto.tree):
            return None
        facts = self.text("log", "-1", "--format=%an <%ae>%x00%aD%x00%s%x00%b", commit).split("\0")
        told = dict(zip(("author", "date", "subject", "body"), facts, strict=True))
        head = _HEADERS[known_by].format(id=commit, **told)
        made = self.git("diff-tree", "-p", "--full-index", "--binary", onto.tree, tree) or b""
        return head.encode() + made


def measure(
    clone: _Clone, old: Base, new: Base, commits: list[str], known_by: str
) -> Iterator[tuple[str, PatchResult, float]]:
    """(commit, what its patch comes to, CPU seconds) of each that can be picked."""
    repository = Repository(clone.path)
    for commit in commits:
        data = clone.picked(commit, old, known_by)
        try:
            patch = parse_patch(data or b"", name="x.patch")
        except BadInputError:
            continue
        if not patch.changes:
            continue
        past = Between(repository, old.commit, new.commit)
        began = time.process_time()
        with reading(repository) as reader:
            report = carry_stack(
                reader, old, new, [SeriesPatch("x.patch", patch)], CarryOptions(past=past)
            )
        yield commit, report.outcomes[0], time.process_time() - began


def main() -> None:
    """Pick, carry, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--known-by", choices=[*_HEADERS], default="name")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="patchkit-picks-") as work:
        clone = _Clone(wish.clone, Path(work))
        old, new = clone.base(wish.old), clone.base(wish.new)
        commits = clone.text("rev-list", "--no-merges", f"{old.commit}..{new.commit}").split()
        Random(wish.seed).shuffle(commits)
        counts: Counter[str] = Counter()
        seconds = 0.0
        for commit, outcome, spent in measure(clone, old, new, commits, wish.known_by):
            counts[f"{outcome.status.value}{', flagged' if outcome.review else ''}"] += 1
            seconds += spent
            if outcome.status is not Status.ABSORBED:
                why = next((reason for file in outcome.files for reason in file.reasons), "")
                print(f"{outcome.status.value}  {commit[:10]}  {why}")
            if counts.total() == wish.number:
                break
    print(*(f"{count} {word}" for word, count in counts.most_common()), sep=", ")
    print(f"{seconds / max(1, counts.total()):.3f} s of CPU time for each, git's not counted")


if __name__ == "__main__":
    main()
