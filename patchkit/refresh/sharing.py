"""Patch files that other stacks use, too: what a change of them does there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import PatchkitError, Problem
from patchkit.gitcmd.objects import reading
from patchkit.lock import LockedComponent, lock_component
from patchkit.manifest.find import FOLDER, manifests_in
from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import Component, LocalPatch, LocalSeries, Manifest
from patchkit.model.mail import parse_patch
from patchkit.model.progress import Progress
from patchkit.model.series import parse_series
from patchkit.series import LoadedPatch, LoadedSeries, load_series
from patchkit.stack import build_stack
from patchkit.store import Store


class OtherUse(Struct, frozen=True):
    """A component, of this manifest or another, that takes one of the changed files."""

    manifest: Manifest
    component: Component

    def __str__(self) -> str:
        return f"{self.component.name} of {self.manifest.path.name}"


class Consequences(Struct, frozen=True):
    """What a change does to the others: why it must not be, or what their locks say then."""

    problems: tuple[Problem, ...]
    locks: tuple[tuple[OtherUse, LockedComponent], ...]


def other_uses(
    manifest: Manifest, component: Component, changed: Mapping[Path, bytes | None]
) -> tuple[OtherUse, ...]:
    """Who else takes a file that `component` of `manifest` is about to change.

    Manifests that cannot be loaded are passed over: `check` reports them.
    """
    found = []
    for each in _manifests(manifest):
        for other in each.components:
            same = each.path == manifest.path and other.name == component.name
            if not same and _takes(each, other, changed):
                found.append(OtherUse(each, other))
    return tuple(found)


def foresee(
    uses: Sequence[OtherUse],
    changed: Mapping[Path, bytes | None],
    store: Store,
    progress: Progress,
) -> Consequences:
    """Try the changed files in every stack that takes them, at its own pin."""
    problems: list[Problem] = []
    locks: list[tuple[OtherUse, LockedComponent]] = []
    for use in uses:
        try:
            locks.append((use, _tried(use, changed, store, progress)))
        except PatchkitError as error:
            problems += error.problems
    return Consequences(tuple(problems), tuple(locks))


def _manifests(manifest: Manifest) -> Iterator[Manifest]:
    paths = dict.fromkeys(manifests_in(manifest.root / FOLDER))
    for path in paths:
        if path.absolute() == manifest.path:
            continue
        try:
            yield load_manifest(path)
        except PatchkitError:
            continue
    yield manifest


def _takes(manifest: Manifest, component: Component, changed: Mapping[Path, bytes | None]) -> bool:
    paths = {
        manifest.root / each.path
        for each in component.patches
        if isinstance(each, LocalPatch | LocalSeries)
    }
    return bool(paths & changed.keys()) or any(
        _lists(manifest, component, each) for each in changed
    )


def _lists(manifest: Manifest, component: Component, path: Path) -> bool:
    """Whether the component's series, which stands beside the file, lists it."""
    entry = component.series
    file = manifest.root / entry.path if entry is not None else None
    if entry is None or file is None or file.parent != path.parent or not file.is_file():
        return False
    return path.name in parse_series(file.read_bytes(), name=entry.path).names


def _tried(
    use: OtherUse, changed: Mapping[Path, bytes | None], store: Store, progress: Progress
) -> LockedComponent:
    base = store.cached_base(use.component)
    if base is None:
        raise PatchkitError(
            Problem(
                "uses the same patches, and its upstream is not here to try them",
                str(use),
                f"patchkit fetch {use.manifest.options()}, or --fork",
            )
        )
    series = load_series(use.manifest, use.component, store, progress)
    after = replace(series, patches=tuple(_patches(use, series, changed)))
    with reading(store.repository(use.component)) as reader:
        stack = build_stack(reader, base, after.series_patches)
    for outcome in stack.outcomes:
        if not outcome.status.applies:
            raise PatchkitError(
                Problem(
                    f"{outcome.name} would not apply there any more",
                    str(use),
                    "--fork gives this component patch files of its own",
                )
            )
    return lock_component(stack, after)


def _patches(
    use: OtherUse, series: LoadedSeries, changed: Mapping[Path, bytes | None]
) -> Iterator[LoadedPatch]:
    root = use.manifest.root
    for entry in use.component.patches:
        mine = [each for each in series.patches if each.origin == entry]
        text = changed.get(root / entry.path) if isinstance(entry, LocalSeries) else None
        if not isinstance(entry, LocalSeries) or text is None:
            yield from (_with_change(use, each, changed) for each in mine)
            continue
        by_name = {each.name: each for each in mine}
        folder = entry.path.rpartition("/")[0]
        for line in parse_series(text, name=entry.path).entries:
            known = by_name.get(line.name)
            if known is not None:
                yield _with_change(use, known, changed)
            else:
                where = f"{folder}/{line.name}" if folder else line.name
                data = changed[root / where] or b""
                strip = use.component.strip if line.strip is None else line.strip
                yield LoadedPatch(
                    name=line.name,
                    data=data,
                    file=parse_patch(data, name=where, strip=strip),
                    origin=entry,
                    path=root / where,
                    where=where,
                    strip=strip,
                    subdirectory=use.component.subdirectory,
                )


def _with_change(
    use: OtherUse, patch: LoadedPatch, changed: Mapping[Path, bytes | None]
) -> LoadedPatch:
    if patch.path is None or patch.path not in changed:
        return patch
    data = changed[patch.path]
    if data is None:
        raise PatchkitError(
            Problem(
                f"would lose {patch.name}, which goes away",
                str(use),
                "--fork gives this component patch files of its own",
            )
        )
    return replace(patch, data=data, file=parse_patch(data, name=patch.where, strip=patch.strip))
