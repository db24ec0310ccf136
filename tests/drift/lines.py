"""Small files and patches for branches that drift."""

from __future__ import annotations

from patchkit.manifest.values import Component, LocalSeries, Manifest
from patchkit.model.progress import Silent
from patchkit.ops.drift import ComponentDrift, look_for_drift
from patchkit.upstream.store import Store
from tests.support.components import WHERE, git_component, manifest_of
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch


def numbered(count: int = 12, **changed: str) -> str:
    """Lines l1, l2, ... of which some are others: numbered(5, l3="x")."""
    names = [f"l{number}" for number in range(1, count + 1)]
    return "".join(f"{changed.get(name, name)}\n" for name in names)


def edit(path: str, before: str, **changed: str) -> bytes:
    """A patch that changes lines of a numbered file: edit("a.py", numbered(), l6="ours")."""
    lines = before.split("\n")
    after = "\n".join(changed.get(line, line) for line in lines)
    return make_patch({path: before}, {path: after}, subject=f"Change {path}")


def look(
    project: Project,
    upstream: Upstream,
    pin: str,
    patches: dict[str, bytes],
    *,
    track: str = "main",
    to: str | None = None,
    offline: bool = False,
) -> ComponentDrift:
    """What drift says about these patches; the cache is the project's own."""
    project.series("demo", patches)
    entry = LocalSeries("patches/demo/series", WHERE)
    component: Component = git_component(upstream.url, pin, track=track, patches=(entry,))
    manifest: Manifest = manifest_of(component, root=project.root)
    store = Store(project.root / "cache", offline=offline)
    chosen = [(manifest, manifest.components)]
    report = look_for_drift(chosen, store, Silent(), to=to)
    (found,) = report.components
    return found
