"""An applied stack of small patches, and what users do to its checkout."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.support.commands import Ran
from tests.support.projects import Project, reference
from tests.support.repos import Content, Upstream, git_in, make_patch


def lines(changes: Mapping[int, str] | None = None, count: int = 40) -> str:
    """`count` lines "line 1" ...; some of them replaced by other text."""
    return "".join(
        (changes or {}).get(number, f"line {number}\n") for number in range(1, count + 1)
    )


#: What each patch of the small stack makes of a.txt and b.txt.
ONE = {5: "five\n", 6: "six\n"}
TWO = {**ONE, 20: "twenty\nand more\n"}
STATES: tuple[dict[str, Content], ...] = (
    {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()},
    {"a.txt": lines(ONE)},
    {"a.txt": lines(TWO)},
    {"b.txt": lines({10: "ten\n"}), "added.txt": "new\nfile\n"},
)
NAMES = ("one.patch", "two.patch", "three.patch")


def small_patches() -> dict[str, bytes]:
    """one.patch and two.patch change a.txt, three.patch changes b.txt and adds added.txt."""
    patches = {}
    before: dict[str, Content] = {}
    for name, state, after in zip(NAMES, STATES, STATES[1:], strict=False):
        before = before | state
        subject = f"Patch {name.removesuffix('.patch')}"
        patches[name] = make_patch(before, after, subject=subject, body="For a test.")
    return patches


def published(folder: Path) -> dict[str, object]:
    """The entry of a manifest for one.patch in another repository, which is made in `folder`."""
    trainer = Upstream.create(folder / "trainer.git")
    return reference(trainer, "one.patch", small_patches()["one.patch"])


Kind = TypeVar("Kind", bound="Stacked")


@dataclass
class Stacked:
    """A project whose component `demo` is applied."""

    project: Project
    checkout: Path

    @classmethod
    def of(
        cls: type[Kind], project: Project, upstream: Upstream, patches: Mapping[str, bytes]
    ) -> Kind:
        """Apply `patches` on the base of the small stack."""
        pin = upstream.commit(STATES[0], "The base")
        project.component("demo", upstream, pin, patches)
        return cls.applied(project)

    @classmethod
    def applied(cls: type[Kind], project: Project, name: str = "demo") -> Kind:
        """Apply what the project has."""
        project.prepare("apply").ok()
        return cls(project, project.checkout(name))

    def run(self, *argv: str) -> Ran:
        return self.project.run(*argv)

    def prepare(self, *argv: str) -> Ran:
        return self.project.prepare(*argv)

    def untouched(self) -> AbstractContextManager[None]:
        """Assert that what is done meanwhile changes nothing of project and checkout."""
        return self.project.untouched()

    def git(self, *argv: str) -> str:
        return git_in(self.checkout, *argv).decode().strip()

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace text in a file of the checkout."""
        file = self.checkout / path
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        file.write_text(text.replace(old, new))

    def patch(self, name: str) -> bytes:
        return (self.project.root / "patches" / "demo" / name).read_bytes()

    @property
    def series(self) -> list[str]:
        rows = (row.split("#")[0] for row in self.patch("series").decode().splitlines())
        return [row.strip() for row in rows if row.strip()]

    def settled(self) -> None:
        """Assert that the checkout is at the stack of the files: apply and refresh do nothing."""
        assert self.git("status", "--porcelain", "--untracked-files=no") == ""
        before = self.everything()
        assert "unchanged" in self.run("apply").ok().out
        assert "unchanged" in self.run("refresh").ok().out
        assert self.everything() == before

    def everything(self) -> tuple[object, ...]:
        """All that a refresh may change: patches, manifests and lock, refs."""
        return self.project.files(), self.project.files("manifests"), self.git("show-ref")

    def changed(self, before: Mapping[str, bytes]) -> list[str]:
        """The files of patches/ that are not as they were; "-" before removed ones."""
        after = self.project.files()
        names = [name for name in after if after[name] != before.get(name)]
        return sorted(
            [name.removeprefix("patches/demo/") for name in names]
            + [f"-{name.removeprefix('patches/demo/')}" for name in before if name not in after]
        )
