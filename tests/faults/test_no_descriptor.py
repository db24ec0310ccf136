"""Questions to git while a descriptor is lacking: nobody who could not look says "not there"."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.faults.calls import fault_of
from bench.faults.tracing import Tracer, unavailable
from patchkit.disk.files import files_in
from patchkit.errors import SurroundingsError
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.first_parent import missing_objects
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.pins import is_damaged, is_sound
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import CommitId
from patchkit.model.patch import Header
from patchkit.stack.build import read_stack
from tests.faults.test_faults import POINTS, SEED
from tests.support.repos import Upstream

pytestmark = pytest.mark.slow

NO_DESCRIPTOR = fault_of("no-descriptor")
ABSENT = "1" * 40


class Asked:
    """A repository whose objects and refs are files of their own, but for one packed ref.

    In `new` the file deep/old.txt of `old` is new.txt, and a.txt has another line.
    """

    def __init__(self, upstream: Upstream) -> None:
        text = "".join(f"line {n}\n" for n in range(20))
        self.old = CommitId(upstream.commit({"a.txt": "1\n", "deep/old.txt": text}))
        moved = {"deep/old.txt": None, "new.txt": text, "a.txt": "2\n"}
        self.new = CommitId(upstream.commit(moved))
        self.blob = str(upstream.resolve(f"{self.new}:a.txt"))
        upstream.branch("deep/side", self.old)
        upstream.git("pack-refs", "--all")
        upstream.branch("alone", self.old)
        self.repository = Repository(upstream.path)

    def between(self) -> Between:
        """What lies between both commits, not asked yet."""
        return Between(self.repository, self.old, self.new)

    def present(self) -> dict[str, bytes]:
        """What is here of a blob that is and one that is not."""
        with reading(self.repository) as reader:
            return reader.read_present([self.blob, ABSENT])


QUESTIONS: dict[str, Callable[[Asked], object]] = {
    "exists": lambda asked: asked.repository.exists,
    "ref as commit": lambda asked: asked.repository.commit("refs/heads/alone"),
    "path": lambda asked: asked.repository.resolve("HEAD:a.txt"),
    "ref": lambda asked: asked.repository.ref("refs/heads/alone"),
    "packed ref": lambda asked: asked.repository.ref("refs/heads/deep/side"),
    "refs": lambda asked: asked.repository.refs("refs/"),
    "present": lambda asked: asked.present(),
    "missing": lambda asked: missing_objects(asked.repository, [asked.blob, ABSENT]),
    "renamed": lambda asked: asked.between().renamed("deep/old.txt"),
    "removed": lambda asked: asked.between().since(
        ["a.txt"], lambda data: b"1" not in (data or b"")
    ),
    "same change": lambda asked: asked.between().same_change((asked.new,), Header("")),
    "lines": lambda asked: asked.between().lines_of(asked.new),
    "damaged": lambda asked: is_damaged(asked.repository, "refs/heads/alone"),
    "folder": lambda asked: files_in(asked.repository.git_dir / "objects" / asked.old[:2], "*"),
    "stack": lambda asked: read_stack(asked.repository, asked.old, asked.new),
    "sound": lambda asked: is_sound(asked.repository, "refs/heads/alone"),
}


def _wrong(question: Callable[[], object], place: Path) -> dict[int, str]:
    """Struck point -> the answer, where that is neither an error nor the right one."""
    if why := unavailable():
        pytest.skip(why)
    right = repr(question())
    answer = os.open(place, os.O_RDWR | os.O_CREAT)

    def work() -> int:
        os.ftruncate(answer, 0)
        try:
            said = repr(question())
        except (OSError, SurroundingsError):
            said = right
        os.pwrite(answer, said.encode(), 0)
        return 0

    points = range(1, Tracer(None, 0).run(work).points(NO_DESCRIPTOR) + 1)
    wrong = {}
    for point in random.Random(SEED).sample(points, min(POINTS, len(points))):
        Tracer(NO_DESCRIPTOR, point).run(work)
        said = os.pread(answer, 1 << 20, 0).decode()
        if said != right:
            wrong[point] = said
    os.close(answer)
    return wrong


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_git_that_cannot_open_a_file_says_no_of_nothing(
    upstream: Upstream, tmp_path: Path, name: str
) -> None:
    asked = Asked(upstream)
    assert not _wrong(lambda: QUESTIONS[name](asked), tmp_path / "answer")
