"""A component with two patches, and the folder of installed packages that they are put into."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.extensions.installed.wheels import contents
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch
from tests.support.stacked import lines as text_lines


def lines(changes: dict[int, str] | None = None) -> str:
    """Forty lines of Python."""
    return "".join(f"line = {each!r}\n" for each in text_lines(changes or {}).splitlines())


CORE = "python/demo/core.py"
BASE = {
    "python/demo/__init__.py": "",
    CORE: lines(),
    "python/demo/gone.py": "gone = 1\n",
    "python/demo/other.py": lines(),
    "python/pyproject.toml": '[project]\nname = "demo"\n',
}
WHEEL = {path.removeprefix("python/"): text for path, text in BASE.items() if path.endswith(".py")}
#: What the patches make of core.py.
ONE, BOTH = lines({5: "five\n"}), lines({5: "five\n", 15: "fifteen\n"})
TWO: Files = {
    CORE: BOTH,
    "python/demo/gone.py": None,
    "python/demo/deep/new.py": "new = 1\n",
    "python/pyproject.toml": '[project]\nname = "demo-npu"\n',
}
FIRST = {"one.patch": make_patch(BASE, {CORE: ONE}, subject="One")}
PATCHES = FIRST | {"two.patch": make_patch({**BASE, CORE: ONE}, TWO, subject="Two")}


@dataclass(frozen=True)
class Site:
    """A folder of installed packages, and the project whose stacks are put there."""

    folder: Path
    project: Project

    def __truediv__(self, path: str) -> Path:
        return self.folder / path

    def files(self) -> dict[str, bytes]:
        """Path -> bytes of all files."""
        return contents(self.folder)

    def component(self, upstream: Upstream, base: Files, change: Files, **keys: Any) -> None:
        """Make the manifest's component one patch of these files."""
        pin = upstream.commit(base, parents=())
        self.project.component(
            "demo", upstream, pin, {"one.patch": make_patch(base, change)}, **keys
        )

    def install(self, *words: str) -> Ran:
        """`patchkit install` there."""
        return self.project.run("install", str(self.folder), *words)

    def reverse(self) -> Ran:
        """`patchkit install --reverse` there."""
        return self.install("--reverse")

    def told(self, *words: str) -> Ran:
        """What is there by the word of its receipts."""
        return self.project.run("check", "--only", "installed", str(self.folder), *words)

    def attest(self, *words: str) -> Ran:
        """What is there by the bytes of the manifest's stack."""
        return self.told("-m", "demo", *words)

    def receipt(self) -> Path:
        """The only receipt."""
        (found,) = (self / ".patchkit").iterdir()
        return found
