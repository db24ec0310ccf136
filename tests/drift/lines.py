"""Small files and patches for branches that drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.drift.drift_report import PatchDrift
from patchkit.manifest.values import LocalSeries
from patchkit.model.finding import Landed
from patchkit.model.objects import CommitId
from patchkit.model.progress import Silent
from patchkit.ops.drift import ComponentDrift, look_for_drift
from patchkit.upstream.store import Store
from tests.support.components import WHERE, git_component, manifest_of
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch


def numbered(count: int = 30, **changed: str) -> str:
    """Lines l1, l2, ... of which some are others: numbered(5, l3="x")."""
    names = [f"l{number}" for number in range(1, count + 1)]
    return "".join(f"{changed.get(name, name)}\n" for name in names)


def edit(path: str, before: str, **changed: str) -> bytes:
    """A patch that changes lines of a numbered file: edit("a.py", numbered(), l6="ours")."""
    lines = before.split("\n")
    after = "\n".join(changed.get(line, line) for line in lines)
    return make_patch({path: before}, {path: after}, subject=f"Change {path}")


BASE = numbered()
OURS = edit("a.py", BASE, l6="ours")


def by(landed: Landed | None) -> str | None:
    """The commit that a report names, if it names one."""
    return landed.commit if landed else None


def states(patch: PatchDrift) -> list[tuple[str, int]]:
    """What becomes of a patch, and at which commits."""
    return [(each.status.value, each.first) for each in patch.intervals]


@dataclass
class Branch:
    """An upstream's main from a pin on, and patches of ours on the pin."""

    project: Project
    upstream: Upstream
    pin: str
    patches: Mapping[str, bytes]

    def becomes(self, subject: str = "Change a.py", /, **changed: str) -> CommitId:
        """A commit that makes a.py the base but for these lines."""
        return self.upstream.commit({"a.py": numbered(30, **changed)}, subject)

    def look(
        self, *, track: str = "main", to: str | None = None, offline: bool = False
    ) -> ComponentDrift:
        """What drift says about the patches; the cache is the project's own."""
        self.project.series("demo", self.patches)
        entry = LocalSeries("patches/demo/series", WHERE)
        component = git_component(self.upstream.url, self.pin, track=track, patches=(entry,))
        manifest = manifest_of(component, root=self.project.root)
        store = Store(self.project.root / "cache", offline=offline)
        report = look_for_drift([(manifest, manifest.components)], store, Silent(), to=to)
        (found,) = report.components
        return found

    def patch(self) -> PatchDrift:
        """What it says about the only patch."""
        (found,) = self.look().patches
        return found
