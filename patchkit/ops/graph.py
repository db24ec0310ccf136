"""Graph: which patches of a stack need which earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from patchkit.errors import ExitCode, PatchkitError, Problem, worst
from patchkit.manifest.values import Component, Manifest
from patchkit.model.line_history import PatchDependency
from patchkit.model.progress import Progress
from patchkit.ops.stacks import built_stack, require_clean
from patchkit.upstream.store import Store


class Dependency(Struct, frozen=True):
    """A patch needs `on`: for how many `lines` (0: only for a file as a whole), in which files."""

    on: str
    lines: int
    paths: tuple[str, ...]


class PatchNode(Struct, frozen=True):
    """A patch of the stack and what it needs; what it needs through others is left out."""

    name: str
    number: int
    needs: tuple[Dependency, ...]


class ComponentGraph(Struct, frozen=True):
    """The patches of a component in the order of its series, or why there is no graph."""

    component: str
    patches: tuple[PatchNode, ...] = ()
    problems: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class GraphReport(Struct, frozen=True):
    """The graphs of the components asked for."""

    manifest: str
    components: tuple[ComponentGraph, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The worst of all."""
        return worst(each.exit_code for each in self.components)


def graph_components(
    manifest: Manifest,
    components: Sequence[Component],
    store: Store,
    progress: Progress,
    *,
    every: bool = False,
) -> GraphReport:
    """The graph of each component; with `every`, also needs that follow from others."""
    graphs = [_graph(manifest, each, store, progress, every=every) for each in components]
    return GraphReport(manifest.name, tuple(graphs))


def _graph(
    manifest: Manifest, component: Component, store: Store, progress: Progress, *, every: bool
) -> ComponentGraph:
    try:
        with built_stack(manifest, component, store, progress) as built:
            require_clean(built, manifest)
            _, needs = built.attribute()
            names = [patch.name for patch in built.series.patches]
    except PatchkitError as error:
        return ComponentGraph(component.name, (), error.problems, error.exit_code)
    direct = {(n.number, n.on) for n in needs}
    kept = direct if every else reduced(direct)
    nodes = tuple(
        PatchNode(name, number, _dependencies(number, names, needs, kept))
        for number, name in enumerate(names, 1)
    )
    return ComponentGraph(component.name, nodes)


def reduced(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The edges of an acyclic graph (from, to) without those that follow from others."""
    targets: dict[int, set[int]] = {}
    for start, end in edges:
        targets.setdefault(start, set()).add(end)
    reach: dict[int, set[int]] = {}
    for node in sorted(targets):  # a patch needs earlier ones only
        ends = targets[node]
        reach[node] = ends.union(*(reach.get(end, set()) for end in ends))
    return {
        (start, end)
        for start, end in edges
        if not any(end in reach.get(other, ()) for other in targets[start] - {end})
    }


def _dependencies(
    number: int, names: Sequence[str], needs: Sequence[PatchDependency], kept: set[tuple[int, int]]
) -> tuple[Dependency, ...]:
    own = [need for need in needs if need.number == number and (number, need.on) in kept]
    return tuple(
        Dependency(
            names[on - 1],
            sum(need.lines for need in own if need.on == on),
            tuple(dict.fromkeys(need.path for need in own if need.on == on)),
        )
        for on in sorted({need.on for need in own})
    )
