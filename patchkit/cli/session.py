"""What a command works with, from options, environment and place: terminal, manifest, components,
store, checkouts; each is opened when it is first asked for.

Only this package reads environment variables of patchkit's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from patchkit.cli.project import (
    cache_folder,
    load,
    manifest_path,
    named_manifest,
    own_manifests,
    project_folder,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode, PatchkitError, UsageError

if TYPE_CHECKING:
    from patchkit.cli.display import Answers
    from patchkit.manifest.values import Component, Manifest
    from patchkit.model.progress import Progress
    from patchkit.ops.check_report import BrokenManifest
    from patchkit.upstream.store import Store


class _Report(Protocol):
    @property
    def exit_code(self) -> ExitCode: ...


Result = TypeVar("Result", bound=_Report)
_Answer = TypeVar("_Answer")
#: What stands behind a command or an option: nothing, a word, or several.
_Words = str | Sequence[str] | None


class Session:
    """What a command works with; made of the options that its `takes` names.

    `names` are words without an option: components, or a manifest where -m names none and no
    component is called like that; `manifests` are such words where no
    components are taken. `own` are the command's own options, which a hint may name.
    """

    def __init__(
        self,
        *,
        names: _Words = None,
        manifests: _Words = None,
        manifest: _Words = None,
        component: _Words = None,
        workspace: Path | None = None,
        cache: Path | None = None,
        offline: bool = True,
        json: bool = False,
        quiet: bool = False,
        own: Collection[str] = (),
    ) -> None:
        self.terminal = Terminal(quiet=quiet, json=json)
        self._manifests = [*_listed(manifests), *_listed(manifest)]
        self._names = [*_listed(names), *_listed(component)]
        self._workspace = workspace
        self._cache = cache
        self._offline = offline
        self._own = own

    # --- what it works on

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest: of -m, of the first word, of this checkout, or the only one there is."""
        return load(self.manifest_path, self._cache)

    @cached_property
    def manifest_path(self) -> Path:
        """Its file."""
        if len(self._manifests) > 1:
            raise UsageError(f"one manifest at a time: {', '.join(self._manifests)}")
        if self._manifests:
            return manifest_path(self._manifests[0])
        found = _manifest_of_checkout() or _only_manifest()
        named = named_manifest(self._names[0]) if self._names else None
        if named and (found is None or not load(found, self._cache).named(self._names[0])):
            self._names.pop(0)
            return named
        if found is None:
            from patchkit.cli.words import several_manifests

            raise several_manifests(self._names, self._own, self._cache)
        return found

    @property
    def possible_paths(self) -> Sequence[Path]:
        """The files of which one may be the manifest, where none can be read to know."""
        if self._manifests:
            return [manifest_path(name) for name in self._manifests]
        named = [path for path in map(named_manifest, self._names) if path is not None]
        return named or own_manifests()

    def prefer(self, fits: Callable[[Manifest], bool]) -> None:
        """Where nothing says which of several manifests is meant, take the only one that `fits`."""
        try:
            self.manifest_path  # noqa: B018 - kept once it is known
        except UsageError:
            from patchkit.cli.words import readable_manifests

            paths = () if self._manifests else own_manifests()
            found = [
                manifest
                for manifest in readable_manifests(paths, self._cache)
                if all(map(manifest.named, self._names)) and fits(manifest)
            ]
            if len(found) != 1:
                raise
            self.manifest_path = found[0].path

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The components that are named, in the manifest's order; all if none is.

        Raises UsageError that names every unknown one.
        """
        manifest = self.manifest  # takes its name off `_names`
        if not self._names:
            return manifest.components
        unknown = [name for name in self._names if not manifest.named(name)]
        if unknown:
            from patchkit.cli.words import no_component

            raise no_component(unknown, [manifest], self._own, manifest.path.name)
        return _chosen(manifest, self._names)

    def check_patch(self, word: str) -> None:
        """UsageError unless `word` means a patch of one of the components' series."""
        from patchkit.cli.words import listed_patches
        from patchkit.model.names import pick_patch

        listed = [list(listed_patches(self.manifest, each)) for each in self.components]
        for names in listed:
            with suppress(UsageError):
                pick_patch(word, names)
                return
        pick_patch(word, [name for names in listed for name in names])

    @property
    def names(self) -> Sequence[str]:
        """The components that were named, empty where all are meant; read the manifest first."""
        return self._names

    @property
    def asked(self) -> tuple[str | None, Sequence[str]]:
        """The manifest's name and the words for components as they were given; nothing is read."""
        return (Path(self._manifests[0]).stem if self._manifests else None), self._names

    @cached_property
    def component(self) -> Component:
        """The component that is named, whose checkout this is, or the only one there is."""
        manifest = self.manifest
        if len(self._names) > 1:
            raise UsageError(f"one component at a time: {', '.join(self._names)}")
        several, what = self.components, f"{manifest.path.name} has several components"
        if self._names:
            what = f"{self._names[0]} has several pins"
        found = self.here if not self._names else None
        if found is None and len(several) > 1:
            have = ", ".join(component.name for component in several)
            raise UsageError(what, hint=f"name one with -c: {have}")
        return found or several[0]

    def component_with(self, *patches: str) -> Component:
        """The component; where nothing says which, the only one whose series has all of these."""
        if not self._names and self.here is None:
            from patchkit.cli.words import owners_of

            owners = (set(owners_of(patch, [self.manifest])) for patch in patches)
            if len(having := set[str].intersection(*owners)) == 1:
                self._names = [*having]
        return self.component

    @property
    def here(self) -> Component | None:
        """The component whose checkout this folder is in."""
        if project_folder() == Path():
            return None
        from patchkit.workspace.checkout import checkout_of

        here = Path.cwd()
        for each in self.manifest.components:
            if here.is_relative_to(checkout_of(self.workspace, self.manifest, each).path.resolve()):
                return each
        return None

    @cached_property
    def manifest_paths(self) -> tuple[Path, ...]:
        """The files of a repeatable -m, of words that name manifests; all of manifests/ without."""
        if self._manifests:
            return tuple(dict.fromkeys(manifest_path(name) for name in self._manifests))
        found = tuple(own_manifests())
        named = [(name, named_manifest(name)) for name in self._names]
        words = {name for name, path in named if path is not None}
        if words:
            from patchkit.cli.words import components_in, readable_manifests

            words -= {*components_in(readable_manifests(found, self._cache))}
            chosen = [path for name, path in named if path is not None and name in words]
            self._names = [name for name in self._names if name not in words]
            found = tuple(chosen) or found
        if not found:
            raise _no_manifest()
        return found

    def open_manifests(
        self,
    ) -> tuple[list[tuple[Manifest, Sequence[Component]]], list[BrokenManifest]]:
        """The manifests with the components asked for, and those that cannot be read.

        Raises UsageError that names every component which none of them has.
        """
        from patchkit.ops.check_report import BrokenManifest

        manifests, broken = [], []
        for path in self.manifest_paths:
            try:
                manifests.append(load(path, self._cache))
            except PatchkitError as error:
                broken.append(BrokenManifest(path.stem, error.exit_code, error.problems))
        names = self._names
        if not names:
            return [(manifest, manifest.components) for manifest in manifests], broken
        unknown = [
            name for name in names if not any(manifest.named(name) for manifest in manifests)
        ]
        if unknown and not broken:
            from patchkit.cli.words import no_component

            raise no_component(unknown, manifests, self._own)
        chosen = [(manifest, _chosen(manifest, names)) for manifest in manifests]
        return [(manifest, components) for manifest, components in chosen if components], broken

    @cached_property
    def store(self) -> Store:
        """The upstreams in the cache."""
        from patchkit.upstream.store import Store

        return Store(cache_folder(self._cache), offline=self._offline)

    @cached_property
    def workspace(self) -> Path:
        """The folder with the checkouts."""
        return self._workspace or project_folder().resolve() / "workspace"

    # --- what it says

    def progress(self) -> AbstractContextManager[Progress]:
        """A listener for the operation in the block, as fits the terminal."""
        from patchkit.cli.display import showing_progress

        return showing_progress(self.terminal)

    @contextmanager
    def answers(
        self,
        names: Sequence[str],
        show: Callable[[Terminal, _Answer], None],
        *,
        shown: bool = True,
    ) -> Iterator[Answers[_Answer]]:
        """What is called with each component's name and answer as soon as it is known: `show`
        prints it, and on ^C what is known stays printed. It prints nothing, and says so by its own
        `shown`, where not `shown`, and with --json and --quiet.
        """
        from patchkit.cli.display import Answers

        shown = shown and not (self.terminal.json or self.terminal.quiet)
        answers = Answers(self.terminal, names, show, shown=shown)
        try:
            yield answers
        except KeyboardInterrupt:
            answers.interrupted()
            raise

    def report(
        self, command: str, result: Result, render: Callable[[Terminal, Result], None]
    ) -> ExitCode:
        """Print a result in the form asked for; hands its exit code back."""
        return self.terminal.report(command, result, result.exit_code, render)


def _listed(given: _Words) -> list[str]:
    return [given] if isinstance(given, str) else list(given or ())


def _chosen(manifest: Manifest, names: Sequence[str]) -> tuple[Component, ...]:
    """The components that are named, in the manifest's order."""
    chosen = [component for name in names for component in manifest.named(name)]
    return tuple(each for each in manifest.components if each in chosen)


def _manifest_of_checkout() -> Path | None:
    """The manifest that the checkout was made for which this folder is in."""
    project = project_folder()
    if project == Path():
        return None
    from patchkit.workspace.checkout import read_purpose

    root, here = project.resolve(), Path.cwd()
    for folder in (here, *here.parents):
        if folder == root:
            break
        if (purpose := read_purpose(folder / ".git" / "patchkit")) is not None:
            return named_manifest(purpose.manifest)
    return None


def _only_manifest() -> Path | None:
    """The manifest of manifests/; None where there are several. UsageError if there is none."""
    found = own_manifests()
    if not found:
        raise _no_manifest()
    return found[0] if len(found) == 1 else None


def _no_manifest() -> UsageError:
    return UsageError(
        "no manifest in ./manifests, nor in a folder above",
        hint="`patchkit init NAME --git URL --ref TAG` starts one; elsewhere: --manifest or -C DIR",
    )


def moment() -> datetime:
    """Now in UTC; $SOURCE_DATE_EPOCH, where it is set, for reports that can be made again."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    fixed = given.isascii() and given.isdigit() and len(given) < 12
    seconds = int(given) if fixed else time.time()
    return datetime.fromtimestamp(seconds, tz=timezone.utc)
