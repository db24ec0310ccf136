"""Log: the stack of each component, patch by patch, and which of them are in the checkout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.errors import ExitCode, PatchkitError, Problem, worst
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import CommitId
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.patch import PatchFile
from patchkit.model.progress import Progress
from patchkit.ops.stacks import BuiltStack, built_stack
from patchkit.stack.build import StackCommit, read_stack
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.store import Store
from patchkit.workspace import Checkout, checkout_of, inspect


class LoggedPatch(Struct, frozen=True):
    """A patch of a stack.

    `status` is the verdict on it, `checkout` whether the checkout has it: "applied", "changed" (as
    another commit), "missing", or "" where there is no checkout. `commit` is None where it does
    not apply. `added` and `removed` count lines.
    """

    number: int
    name: str
    where: str
    subject: str
    author: str
    status: Status
    checkout: str
    commit: CommitId | None
    files: int
    added: int
    removed: int


class OwnCommit(Struct, frozen=True):
    """A commit of the checkout that no patch file has."""

    commit: CommitId
    subject: str


class ComponentLog(Struct, frozen=True):
    """A component: its base, its patches in order, commits on top, or what kept us from looking."""

    component: str
    pin: str
    base: CommitId | None = None
    patches: tuple[LoggedPatch, ...] = ()
    commits: tuple[OwnCommit, ...] = ()
    problems: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class LogReport(Struct, frozen=True):
    """The stacks of the components asked for."""

    manifest: str
    components: tuple[ComponentLog, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The worst of all."""
        return worst(each.exit_code for each in self.components)


def log_components(
    manifest: Manifest,
    components: Sequence[Component],
    *,
    workspace: Path,
    store: Store,
    progress: Progress,
) -> LogReport:
    """The stack of each component; writes nothing but what the store fetches."""
    logs = [_log(manifest, each, workspace, store, progress) for each in components]
    return LogReport(manifest.name, tuple(logs))


def count_lines(file: PatchFile) -> tuple[int, int]:
    """(added, removed) lines of a patch."""
    lines = [line[:1] for c in file.changes for hunk in c.hunks for line in hunk.lines]
    return lines.count(b"+"), lines.count(b"-")


def _log(
    manifest: Manifest, component: Component, workspace: Path, store: Store, progress: Progress
) -> ComponentLog:
    blank = ComponentLog(component.name, str(component.pin))
    try:
        commits = _commits(checkout_of(workspace, manifest, component))
        with built_stack(manifest, component, store, progress) as built:
            return _logged(blank, built, commits)
    except PatchkitError as error:
        return ComponentLog(
            component.name, blank.pin, problems=error.problems, exit_code=error.exit_code
        )


def _commits(checkout: Checkout) -> tuple[StackCommit, ...] | None:
    """The commits on the checkout's base, None where there is no checkout of ours."""
    snapshot = inspect(checkout)
    if not snapshot.ours or snapshot.base is None or snapshot.head is None:
        return None
    return read_stack(checkout.repository, snapshot.base, snapshot.head)


def _logged(
    blank: ComponentLog, built: BuiltStack, commits: Sequence[StackCommit] | None
) -> ComponentLog:
    present = None if commits is None else {each.patch: each.id for each in commits if each.patch}
    rows = zip(built.series.patches, built.stack.outcomes, strict=True)
    names = {patch.name for patch in built.series.patches}
    return ComponentLog(
        component=blank.component,
        pin=blank.pin,
        base=built.stack.base.commit,
        patches=tuple(
            _logged_patch(number, patch, outcome, present)
            for number, (patch, outcome) in enumerate(rows, 1)
        ),
        commits=tuple(
            OwnCommit(each.id, each.subject) for each in commits or () if each.patch not in names
        ),
    )


def _logged_patch(
    number: int, patch: LoadedPatch, outcome: PatchResult, present: Mapping[str, str] | None
) -> LoggedPatch:
    header = patch.file.header
    added, removed = count_lines(patch.file)
    return LoggedPatch(
        number=number,
        name=patch.name,
        where=patch.where,
        subject=header.subject if header else "",
        author=header.author.name if header and header.author else "",
        status=outcome.status,
        checkout=_presence(patch.name, outcome, present),
        commit=outcome.commit,
        files=len(patch.file.changes),
        added=added,
        removed=removed,
    )


def _presence(name: str, outcome: PatchResult, present: Mapping[str, str] | None) -> str:
    if present is None or outcome.status is Status.EMPTY:
        return ""
    if name not in present:
        return "missing"
    return "applied" if present[name] == outcome.commit else "changed"
