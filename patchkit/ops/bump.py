"""Move a component's pin: find what to move to, carry its patches there, write all of it together.

The patches are carried by `refresh`, as after an edit of the pin by hand; here the edit is made,
and written in the same transaction. The checkout stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem, UsageError
from patchkit.gitcmd.urls import readable_url
from patchkit.manifest.edit import set_pin
from patchkit.manifest.find import FOLDER, manifests_in
from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import (
    Component,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
    Manifest,
    Pin,
    PinnedPatch,
    Source,
)
from patchkit.manifest.words import check_version
from patchkit.model.names import COMMIT_ID
from patchkit.model.progress import Progress
from patchkit.ops.bump_report import BumpedComponent, BumpReport, NamedPin, sorted_patches
from patchkit.ops.refresh import RefreshOptions, refresh_components
from patchkit.ops.refresh_carrying import PinEdit
from patchkit.ops.refresh_report import RefreshedComponent, Result
from patchkit.sources.refs import find_ref, list_refs
from patchkit.store import Store

#: Stands for what `track` names.
LATEST = "latest"

_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")


@dataclass(frozen=True, slots=True)
class Target:
    """The pin to move to, with the names by which both pins are known."""

    pin: Pin
    old: NamedPin
    new: NamedPin


def bump_components(
    manifest: Manifest,
    names: Sequence[str],
    wanted: str,
    *,
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
) -> BumpReport:
    """Move components of `manifest` to `wanted`: see `find_target`.

    Several move each to LATEST: one that cannot is a problem in its report, and those without a
    `track` are named there. On disk, for each: the pin, the patches and the lock, all or none; no
    checkout. Of one component raises UsageError for a `wanted` that is not there, and BadInputError
    where the pin cannot be edited.
    """
    rows: list[BumpedComponent] = []
    untracked: list[str] = []
    for name in names:
        # a pin that the one before moved stands in the same file
        manifest = load_manifest(manifest.path)
        component = manifest.component(name)
        assert component is not None
        if len(names) > 1 and component.track is None:
            untracked.append(name)
            continue
        bumping = _Bumping(manifest, component, store, workspace, options, progress)
        try:
            rows.append(bumping.to(wanted))
        except PatchkitError as error:
            if len(names) == 1:
                raise
            rows.append(_failed(bumping, wanted, error))
    notes = _stale_rendering(manifest) if any(each.moved for each in rows) else ()
    return BumpReport(manifest.name, options.dry_run, tuple(rows), tuple(untracked), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Bumping:
    manifest: Manifest
    component: Component
    store: Store
    workspace: Path
    options: RefreshOptions
    progress: Progress

    @property
    def where(self) -> str:
        place = self.component.pin_where
        return f"{_shown(place.file, self.manifest.root)}:{place.line}"

    def to(self, wanted: str) -> BumpedComponent:
        component, store = self.component, self.store
        target = find_target(component, wanted, store, self.progress)
        row = BumpedComponent(
            component.name,
            target.old,
            target.new,
            self.where,
            Result.UNCHANGED,
            link=compare_link(component.source, component.pin, target.pin),
        )
        old = store.base(component, self.progress)
        moved = replace(component, pin=target.pin)
        if store.base(moved, self.progress).commit == old.commit:
            return row
        after = with_component(self.manifest, moved)
        _require_same_files(after, moved, store, self.progress)
        edit = _edit_of(self.manifest, component, target, old.commit)
        refreshed = refresh_components(
            after,
            [moved],
            store=store,
            workspace=self.workspace,
            options=self.options,
            progress=self.progress,
            pin=edit,
        )
        return _told(row, refreshed.components[0], edit, self.manifest)


def find_target(component: Component, wanted: str, store: Store, progress: Progress) -> Target:
    """What `wanted` is at the component's source now; asks the network unless it is a commit id.

    `wanted` is a branch, tag, tag pattern, commit id, version, or LATEST. UsageError if there is no
    such thing.
    """
    match component.source, component.pin:
        case GitSource() as source, GitPin(old):
            return _git_target(component, source, old, wanted, store, progress)
        case IndexSource(project), IndexPin() as pin:
            store.require_network(component.name, "what the package index has is not in the cache")
            progress.step(component.name, "asking the package index")
            found = _index_pin(project, wanted)
            return Target(found, NamedPin(pin.version), NamedPin(found.version))
    hint = "write its new URL and sha256 into the manifest, then patchkit refresh"
    what = "is an archive: there is nothing to look a new one up in"
    raise UsageError(Problem(what, component.name, hint))


def compare_link(source: Source, old: Pin, new: Pin) -> str:
    """Where upstream shows what is between two commits; "" where that is not plain."""
    found = _GITHUB.fullmatch(source.url) if isinstance(source, GitSource) else None
    return f"https://github.com/{found[1]}/compare/{old}...{new}" if found else ""


def with_component(manifest: Manifest, component: Component) -> Manifest:
    """The manifest with `component` in the place of the one of that name."""
    rows = (component if each.name == component.name else each for each in manifest.components)
    return replace(manifest, components=tuple(rows))


def _git_target(  # noqa: PLR0917
    component: Component,
    source: GitSource,
    old: str,
    wanted: str,
    store: Store,
    progress: Progress,
) -> Target:
    if wanted == LATEST:
        wanted = component.track or ""
        if not wanted:
            hint = "name a tag, branch or commit, or write `track` into the manifest"
            raise UsageError(
                Problem("has no `track` that latest could stand for", component.name, hint)
            )
    if COMMIT_ID.fullmatch(wanted):
        return Target(GitPin(wanted), NamedPin(old), NamedPin(wanted))
    store.require_network(component.name, f"what {wanted} is upstream now is not in the cache")
    progress.step(component.name, f"asking {readable_url(source.url)}")
    refs = list_refs(source, store.stop)
    name, commit = find_ref(refs, wanted)
    branch = name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else ""
    tag = refs.tag_at(commit) if branch else name.removeprefix("refs/tags/")
    before = refs.tag_at(old)
    return Target(
        GitPin(commit),
        NamedPin(old, before, lasting=bool(before)),
        NamedPin(commit, tag or branch, lasting=bool(tag)),
    )


def _index_pin(project: str, wanted: str) -> IndexPin:
    # imported here: it needs libraries that the others can do without
    from patchkit.sources.index import newest_version, sdist_hash  # noqa: PLC0415

    version = newest_version(project) if wanted == LATEST else wanted
    complaint = check_version(version)
    if complaint is not None:
        hint = complaint.hint or "an index has versions only"
        raise UsageError(Problem(f"--to {version} {complaint.what}", hint=hint))
    return IndexPin(version, sdist_hash(project, version))


def _edit_of(manifest: Manifest, component: Component, target: Target, old: str) -> PinEdit:
    """The edit of the file that has the pin; refused where other manifests have it from there."""
    file, place = _file_of_pin(manifest, component), str(component.pin_where)
    sharing = sorted(_also_pinned_there(manifest, component))
    if sharing:
        what = f"the pin of {component.name} is also that of {', '.join(sharing)}"
        hint = f"write a pin of its own into {manifest.path.name}, or move all of them by hand"
        raise BadInputError(Problem(what, place, hint))
    before = file.read_bytes()
    if set_pin(before, component.name, component.pin, file=file) != before:
        raise BadInputError(Problem("the pin has just been changed", place, "run it again"))
    after = set_pin(before, component.name, target.pin, file=file)
    names = f"-m {manifest.name} -c {component.name}"
    way_out = (
        f"nothing was written. By hand: put pin {_in_full(target.pin)} into {file.name}:"
        f"{component.pin_where.line},\n`patchkit check {names}` says where patches do not fit;"
        " edit them, then patchkit refresh"
    )
    return PinEdit(file, before, after, old, way_out)


def _also_pinned_there(manifest: Manifest, component: Component) -> Iterator[str]:
    """The other manifests of the project whose pin stands at the same place."""
    for path in manifests_in(manifest.root / FOLDER):
        if path.absolute() == manifest.path.absolute():
            continue
        try:
            other = load_manifest(path).component(component.name)
        except PatchkitError:
            continue  # `check` reports it
        if other is not None and other.pin_where.file.samefile(component.pin_where.file):
            yield path.name


def _file_of_pin(manifest: Manifest, component: Component) -> Path:
    """The file, under the one name by which all that plan changes in it know it."""
    file = component.pin_where.file
    return manifest.path if file.samefile(manifest.path) else file.absolute()


def _require_same_files(
    manifest: Manifest, moved: Component, store: Store, progress: Progress
) -> None:
    """Patches that others take out of the component must be the same files at its new pin."""
    problems: list[Problem] = []
    for component in manifest.components:
        for entry in component.patches:
            if isinstance(entry, PinnedPatch) and entry.component == moved.name:
                try:
                    store.pinned_file(manifest, component, entry, progress)
                except BadInputError as error:
                    problems += error.problems
    if problems:
        raise BadInputError(*problems)


def _failed(bumping: _Bumping, wanted: str, error: PatchkitError) -> BumpedComponent:
    component = bumping.component
    bumping.progress.finish(component.name, Result.FAILED.value)
    problems = (replace(each, where=each.where or component.name) for each in error.problems)
    # what is wrong is the manifest's `track`, not the command line
    code = ExitCode.BAD_INPUT if error.exit_code is ExitCode.USAGE else error.exit_code
    return BumpedComponent(
        component.name,
        NamedPin(_short(component.pin)),
        NamedPin("", (component.track or "") if wanted == LATEST else wanted),
        bumping.where,
        Result.FAILED,
        code,
        problems=tuple(problems),
    )


def _told(
    row: BumpedComponent, done: RefreshedComponent, edit: PinEdit, manifest: Manifest
) -> BumpedComponent:
    written = bool(done.files)
    return replace(
        row,
        result=done.result,
        exit_code=done.exit_code,
        patches=sorted_patches(done.carried, done.patches),
        files=done.files,
        notes=tuple(_notes(edit, manifest)) if written else (),
        findings=done.findings,
        problems=done.problems,
    )


def _notes(edit: PinEdit, manifest: Manifest) -> Iterator[Problem]:
    rows = zip(edit.before.splitlines(), edit.after.splitlines(), strict=True)
    for number, (before, after) in enumerate(rows, 1):
        comment = re.search(rb"\s(#.*)$", after) if before != after else None
        if comment is not None:
            text = comment[1].decode("utf-8", "replace")
            place = f"{_shown(edit.file, manifest.root)}:{number}"
            yield Problem(f"the comment beside the pin stays as it is: {text}", place)


def _stale_rendering(manifest: Manifest) -> Iterator[Problem]:
    if (manifest.root / "rendered" / manifest.name).is_dir():
        hint = f"patchkit render -m {manifest.name}"
        yield Problem("was rendered for the old pin", f"rendered/{manifest.name}", hint)


def _short(pin: Pin) -> str:
    return pin.version if isinstance(pin, IndexPin) else str(pin)


def _in_full(pin: Pin) -> str:
    return f"{pin.version}, sha256 {pin.sha256}" if isinstance(pin, IndexPin) else str(pin)


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
