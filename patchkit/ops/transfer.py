"""Patches on their way between a series and the world: taken in from elsewhere (`import`), and
written for other tools (`export`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry import carry_stack
from patchkit.disk.files import Contents, replace_file, write_folder
from patchkit.errors import BadInputError, ExitCode, Problem, UsageError
from patchkit.explain.diagnose import explain_stack, preimages
from patchkit.explain.explanation import PatchExplanation
from patchkit.gitcmd.commit_history import commit_with
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.manifest.values import Component, GitPin, LocalSeries, Manifest
from patchkit.model.header import format_header
from patchkit.model.mailinfo import format_author
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.patch import Header, HeaderForm, Identity, PatchFile
from patchkit.model.progress import Progress
from patchkit.model.text import counted
from patchkit.ops.built_stack import BuiltStack, require_clean
from patchkit.ops.bump import find_target, moved_to
from patchkit.ops.refresh import refresh_components
from patchkit.ops.refresh_input import IncomingPatches, RefreshOptions
from patchkit.ops.refresh_report import RefreshedComponent, RefreshReport, RefreshResult
from patchkit.ops.refresh_write import Change, write_changes
from patchkit.refresh.own_commits import own_commits
from patchkit.refresh.patch_plan import Draft, SeriesFolder, commit_changes, revisions
from patchkit.refresh.project_files import (
    Project,
    changed_files,
    files_of,
    foresee,
    imported_patch,
    other_uses,
    patch_names_in,
    with_imported,
)
from patchkit.refresh.series_edits import SeriesEdit, find_patch, follow_branch
from patchkit.stack.build import Stack, StackBuilder, build_stack, patch_changes
from patchkit.stack.damage import PatchRepair, repair_patch
from patchkit.stack.importing import ImportSource, readable, with_free_names
from patchkit.stack.lockfile import Lock, LockedComponent, Locks, load_lock, lock_component
from patchkit.stack.patch_files import canonical_diffs, plain_diffs, with_text
from patchkit.stack.series import (
    ImportedPatch,
    LoadedSeries,
    load_series,
    one_a_mail,
)
from patchkit.upstream.git import LATEST
from patchkit.upstream.history import History, open_history
from patchkit.upstream.store import Store, source_of
from patchkit.workspace import checkout_of, locked
from patchkit.workspace.enter import Stacked, enter_stack
from patchkit.workspace.operations import Operation

# Take patches from elsewhere into a component's series: as they are, or merged from the commit
# that they were made for.


class AdoptedPatch(Struct, frozen=True):
    """One patch: where it came from, its file in the project, and whether it applies there."""

    name: str  # its file's name in the series
    source: str  # a file, or a mail of a mailbox
    file: str
    status: Status


class AdoptReport(Struct, frozen=True):
    """What was taken in, in order, from a source of that `kind`.

    `series` is the series file; `written` is false for a dry run, and where a patch does not apply
    and `--force` was not given: nothing was written then. `explanations` say why it does not,
    `notes` what of the source was left out.
    """

    component: str  # its name
    kind: str
    series: str
    patches: tuple[AdoptedPatch, ...]  # in the order of application
    written: bool
    exit_code: ExitCode
    explanations: tuple[PatchExplanation, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    merged: RefreshedComponent | None = None  # what became of the series, with --3way
    repairs: tuple[PatchRepair, ...] = ()  # with --repair: what was damaged


def adopt_patches(
    manifest: Manifest,
    component: Component,
    found: ImportSource,
    *,
    store: Store,
    workspace: Path,
    progress: Progress,
    options: RefreshOptions,
    force: bool,
) -> AdoptReport:
    """Append the patches of a source to a component's series; nothing is overwritten.

    Nothing is written if a patch cannot be read, or, without `force`, does not apply. What the
    series has already is passed over; what of it cannot be read is in the notes. On disk: patch
    files, series, manifest and lock, all or none.
    """
    project = Project(manifest, component)
    home, seen = project.home, files_of(project)  # before they are read for good
    read = manifest, component, store, progress
    old = load_series(*read, partly=True)
    known = {patch.data for patch in old.patches}
    named = _named([p for p in found.patches if p.data not in known], project, old)
    whole = load_series(*read, partly=True, changed=found.mended)
    base, series = store.base(component, progress), with_imported(project, whole, named)
    with reading(store.repository(component)) as reader:
        stack = build_stack(reader, base, series.series_patches)
        stack, explanations = explain_stack(reader, stack, series.series_patches)
    names = [each.name for each in named]
    revised = revisions(old.patches, series.patches)
    draft = Draft(series.patches, revised, stack, (*project.listed, *names))
    writes = changed_files(project, draft, seen[manifest.path] or b"")
    others = foresee(other_uses(manifest, component, writes, store), writes, store, progress)
    _lock(project, stack, series, others.locks)
    fits = stack.clean and not others.problems
    allowed = (fits or force) and not (found.damaged or options.dry_run)
    names += [path.name for path in found.mended]
    if written := bool(names) and allowed:
        _write(project, workspace, names, writes=writes, locks=others.locks, seen=seen)
    return AdoptReport(
        component.name,
        found.kind,
        home.entry.path,
        _adopted(named, home, stack.outcomes),
        written,
        BadInputError.exit_code if found.damaged else ExitCode.OK if fits else ExitCode.FINDING,
        explanations,
        (*found.damaged, *others.problems),
        (*found.notes, *series.problems),
        repairs=found.repairs,
    )


def _lock(
    project: Project,
    stack: Stack,
    series: LoadedSeries,
    locks: dict[Path, dict[str, LockedComponent]],
) -> None:
    """Put what a series that applies comes to among the locks that are to be written."""
    if stack.clean and not series.problems:
        own = locks.setdefault(project.manifest.lock_path, {})
        own[project.component.name] = lock_component(stack, series)


def _adopted(
    patches: Sequence[ImportedPatch], home: SeriesFolder, outcomes: Iterable[PatchResult]
) -> tuple[AdoptedPatch, ...]:
    """What became of the patches, as far as that is known."""
    status = {each.name: each.status for each in outcomes}
    return tuple(
        AdoptedPatch(each.name, each.where, home.entry.beside(each.name), status[each.name])
        for each in patches
        if each.name in status
    )


def _write(
    project: Project,
    workspace: Path,
    names: Sequence[str],
    *,
    writes: Contents,
    locks: Locks,
    seen: Contents,
) -> None:
    """Write files of these patches, and entries of the locks there; the checkout stays."""
    checkout = checkout_of(workspace, project.manifest, project.component)
    with locked(checkout):
        there = {path: entries for path, entries in locks.items() if path.exists()}
        operation = Operation(project.component.name, f"import: {', '.join(names)}")
        change = Change(checkout, operation, writes, there, seen)
        write_changes(project.manifest.root, [change])


def _named(
    patches: Sequence[ImportedPatch], project: Project, old: LoadedSeries
) -> list[ImportedPatch]:
    home, listed = project.home, project.listed
    taken = {each.name for each in old.patches} | patch_names_in(home) | {*listed}
    named = with_free_names(patches, taken)
    numbered = home.renamed([*listed, *(each.name for each in named)], old.patches)
    return [replace(each, name=numbered.get(each.name, each.name)) for each in named]


# Damaged patches: as they were, where the tree that they are for leaves no doubt.


def repair_source(
    manifest: Manifest, component: Component, found: ImportSource, store: Store, progress: Progress
) -> ImportSource:
    """A source that nobody looked at yet with its patches mended, for their places at the series'
    end, or in it: then they are mended where they stand. What is refused is among the damaged ones.
    """
    series = load_series(manifest, component, store, progress, partly=True)
    numbered = (*enumerate(series.patches), *series.damaged)
    own = {each.path.resolve(): (number, each) for number, each in numbered if each.path}
    base, home = store.base(component, progress), Project(manifest, component).home
    patches, repairs, mended = list[ImportedPatch](), list[PatchRepair](), dict[Path, bytes]()
    with reading(store.repository(component)) as reader:
        builder = StackBuilder(reader, base)
        trees = builder.build(series.series_patches).trees
        for patch in found.patches:
            number, listed = own.get(Path(patch.where).resolve(), (-1, None))
            tree = trees[number] if listed is not None else builder.tree_id
            strip = (listed or patch).strip or 0
            view = TreeView(Overlay(reader, builder.objects), tree)
            repair = repair_patch(patch.data, view, patch.where, strip, component.subdirectory)
            repairs += [repair] if repair is not None else []
            whole = patch if repair is None else replace(patch, data=repair.data)
            if repair is not None and repair.problem is not None:
                continue
            if listed is None or listed.path is None:
                patches.append(whole)
                with suppress(BadInputError):
                    builder.push(imported_patch(whole, home).series_patch)
            elif repair is not None:
                mended[listed.path] = repair.data
    problems = tuple(each.problem for each in repairs if each.problem is not None)
    found = replace(found, patches=tuple(patches), damaged=(*found.damaged, *problems))
    return replace(readable(found, partly=True), mended=mended, repairs=tuple(repairs))


# Patches that were made for another commit: merged from there, as a bump merges the stack.


def merge_patches(
    manifest: Manifest,
    component: Component,
    found: ImportSource,
    *,
    base: str | None,
    store: Store,
    workspace: Path,
    progress: Progress,
    options: RefreshOptions,
) -> AdoptReport:
    """Merge the patches of a source into the series, from the commit that they were made for.

    That is `base`, or the one with the files of their `index` lines. A patch that the series has
    already is merged where it stands. On disk: as in `adopt_patches`, and the checkout moves; or it
    holds the first conflict, for `continue`, `skip` and `abort`.
    """
    if found.damaged:
        raise BadInputError(*found.damaged)
    project = Project(manifest, component)
    patches = _to_merge(found.patches, project, load_series(manifest, component, store, progress))
    made_for, unknown = _base_of(base, patches, project, store, progress)
    incoming = IncomingPatches(patches, made_for)
    wish = replace(options, stop=True, imported=incoming)

    refresh = partial(refresh_components, store=store, workspace=workspace, progress=progress)
    (done,) = refresh(manifest, [component], options=wish).components
    if done.result is RefreshResult.CONFLICTED and not options.dry_run:
        # a series that does not apply has no checkout yet: the conflict goes onto the bare base
        checkout = checkout_of(workspace, manifest, component)
        if not checkout.path.exists():
            pin, source = store.base(component, progress).commit, store.repository(component)
            enter_stack(checkout, Stacked(pin, pin, (), source, ()), when=options.when)
            (done,) = refresh(manifest, [component], options=wish).components
    return AdoptReport(
        component.name,
        found.kind,
        project.home.entry.path,
        _adopted(patches, project.home, done.carried),
        done.result is RefreshResult.CARRIED and not options.dry_run,
        done.exit_code,
        problems=done.problems,
        notes=(*found.notes, *unknown),
        merged=done,
    )


def _to_merge(
    patches: Sequence[ImportedPatch], project: Project, old: LoadedSeries
) -> tuple[ImportedPatch, ...]:
    """The patches under the names that they get, or have in the series already."""
    listed = {each.data: each for each in old.patches if each.path is not None}
    named = iter(_named([p for p in patches if p.data not in listed], project, old))
    return tuple(
        replace(patch, name=listed[patch.data].name, strip=listed[patch.data].strip)
        if patch.data in listed
        else next(named)
        for patch in patches
    )


def _base_of(
    named: str | None,
    patches: Sequence[ImportedPatch],
    project: Project,
    store: Store,
    progress: Progress,
) -> tuple[CommitId, tuple[Problem, ...]]:
    """The commit that is `named`, or has the files that the patches expect; else the pin, and a
    word of it.
    """
    component = project.component
    if named is not None:
        target = find_target(component, named, None, store, progress)
        moved = moved_to(project.manifest, component, target, store, progress)
        return store.base(moved, progress).commit, ()
    loaded = (imported_patch(each, project.home) for each in patches)
    wanted = dict(preimages(c for patch in loaded for c in patch_changes(patch.series_patch)))
    repository, pin = store.repository(component), store.base(component, progress).commit
    pins = {CommitId(each) for each in repository.refs("refs/patchkit/").values()}
    found = commit_with(repository, [pin, *sorted(pins - {pin})], wanted) if wanted else None
    if wanted and component.track and found is None:
        history = open_history(store, component, LATEST, progress)
        found = commit_with(history.repository, [history.tip], wanted, since=history.pin)
    if found is not None:
        if repository.commit(found) is None:
            store.base(replace(component, pin=GitPin(found)), progress)
        return found, ()
    files = counted(len(wanted), "file")
    what = f"no commit that is known here has the {files} that its `index` lines name"
    hint = "--base COMMIT (or a tag, a branch) names what it was made for"
    return pin, (Problem(what, patches[0].where if patches else "", hint),)


# A branch, such as a fork's, whose own commits the series follows.


def _branch(
    manifest: Manifest,
    component: Component,
    series: LocalSeries,
    store: Store,
    progress: Progress,
) -> tuple[History, History]:
    """The history of the branch that a series follows, and upstream's; both are kept together."""
    wanted = LATEST if component.track else str(component.pin)
    upstream = open_history(store, component, wanted, progress)
    source = upstream.repository.source
    fork = replace(
        component,
        source=source if series.of is None else source_of(manifest, series.of),
        pin=GitPin(upstream.pin),
        track=series.branch,
        where=series.where,
    )
    return open_history(store, fork, LATEST, progress, beside=source), upstream


def refresh_from_branch(
    manifest: Manifest,
    component: Component,
    *,
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
) -> RefreshReport:
    """Bring the own commits of the branch that a component's series follows into its patch files.

    UsageError if it follows none, BadInputError if that is not there or is not on the pin. On disk:
    as `refresh_components`, and the lock has the branch's commit.
    """
    series = component.series
    if series is None or not series.branch:
        hint = "write `branch: NAME` beside its series, and `of: URL` of the fork that has it"
        raise UsageError(f"{component.name} follows no branch", hint=hint)
    history, upstream = _branch(manifest, component, series, store, progress)
    own = own_commits(history, upstream.tip)
    lock = load_lock(manifest.lock_path) or Lock({})
    known = lock.names.get(component.name, {})
    follow = partial(follow_branch, name=series.branch, branch=own, leave_out=options.partial)
    return refresh_components(
        manifest,
        [component],
        store=store,
        workspace=workspace,
        options=replace(
            options,
            series_edit=SeriesEdit("refresh --from-branch", follow),
            names={**known, f"heads/{series.branch}": history.tip},
        ),
        progress=progress,
    )


# Write a component's whole stack for other tools: a quilt series, or a mailbox for `git am`.
#
# What is written comes from the stack's trees, not from the patch files: every diff is exact on
# the one before, whatever the files' own form, strip level or place (files of other repositories
# too).


# The line above a mail, as git mailsplit knows it.
_FROM_LINE = re.compile(rb"^From .*\d:\d\d.* \d{2,4}[^\n]*\n", re.MULTILINE)


#: Where in a folder patches go, in order, and the file that lists them with its text: given the
#: component's name and theirs.
LayOut: TypeAlias = Callable[[str, list[str]], tuple[list[str], str, str]]


class Form(Struct, frozen=True):
    """What to write: a folder as it is laid out, or one file: a mail per patch, or by `write`."""

    name: str  # as `--format` has it
    lay_out: LayOut | None = None
    write: Callable[[BuiltStack, Path], None] | None = None


def _series(component: str, names: list[str]) -> tuple[list[str], str, str]:
    return names, "series", "".join(f"{name}\n" for name in names)


QUILT, MBOX = Form("quilt", _series), Form("mbox")


class ExportReport(Struct, frozen=True):
    """What was written to `target`: the names of the `patches`, in order.

    `tree` is the tree that they give on `base`. `skipped` are patches that change no file,
    `unsendable` those in a mailbox whose own From: or Date: `git am` does not take. With --branch
    the `target` is the checkout, in which the branch is at `commit` now; `push` publishes it.
    """

    component: str  # its name
    form: str  # its name
    target: Path
    base: CommitId
    tree: TreeId
    patches: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    unsendable: tuple[str, ...] = ()
    branch: str = ""
    commit: CommitId | None = None
    push: str = ""  # a command for a shell
    exit_code: ExitCode = ExitCode.OK


class _Exported(Struct, frozen=True):
    """A patch to write: its file, with another diff."""

    name: str  # of the file
    commit: CommitId  # of the stack
    file: PatchFile
    diff: bytes

    @property
    def text(self) -> bytes:
        """The user's text above the diff, to the byte; nothing is added where there is none."""
        return self.file.preamble + self.diff + self.file.signature

    def mail(self, author: Identity | None) -> bytes:
        """The same as a mail for `git am`, by `author` where the patch names none.

        What is no mail yet gets the lines that make it one, above the text that it has.
        """
        author = self.file.author or author
        text = self.file.preamble.lstrip(b"\r\n")
        gap = self.file.preamble[: len(self.file.preamble) - len(text)]
        own = _FROM_LINE.match(text)
        # as `git format-patch` begins: mail programs and `git am` know by it what this is
        first = f"From {self.commit} Mon Sep 17 00:00:00 2001\n".encode()
        head, text = (own[0], text[own.end() :]) if own else (first, text)
        if self.file.form is not HeaderForm.MAIL:
            subject = self.file.subject.strip() or self.name.removesuffix(".patch")
            head += format_header(Header(subject, author))
        elif self.file.author is None and author is not None:
            head += f"From: {format_author(author)}\n".encode("utf-8", "surrogateescape")
        # a mailbox is cut wherever such a line stands
        text = _FROM_LINE.sub(rb">\g<0>", text + self.diff)
        return gap + head + text + self.file.signature + b"\n"

    @property
    def sendable(self) -> bool:
        """Whether git am takes the fields that the patch has: address and date."""
        author = self.file.author
        if self.file.form is not HeaderForm.MAIL or author is None:
            return True
        dated = re.search(rb"^Date:", self.file.preamble, re.MULTILINE | re.IGNORECASE)
        return bool(author.email) and (not dated or bool(author.date))


def export_component(
    manifest: Manifest,
    component: Component,
    form: Form,
    target: Path,
    *,
    author: Identity | None,
    patch: str | None,
    store: Store,
    progress: Progress,
) -> ExportReport:
    """Write a component's stack to `target`, which must not be there yet (or be an empty folder).

    `author` is whose the mails are that name none. A `patch` goes alone with those that it needs,
    onto upstream's newest commit. BadInputError where one does not apply, or cannot be written so.
    """
    _require_free(form, target)
    base = store.base(component, progress)
    loaded = load_series(manifest, component, store, progress).patches
    patches = tuple(one_a_mail(loaded))
    with overlay(store.repository(component)) as trial, reading(trial) as reader:
        stack = build_stack(reader, base, [each.series_patch for each in patches])
        built = BuiltStack(component, LoadedSeries(patches), stack, Overlay(reader, stack.objects))
        require_clean(built, manifest)
        built = _for_upstream(manifest, built, patch, store, progress)
        if form.write is not None:
            form.write(built, target)
        stack = built.stack
        write_objects(trial, stack.objects)
        changes = commit_changes(stack)
        pairs = [(change.before, change.after) for change in changes.values()]
        # GNU patch, which the others run, takes a rename apart wrongly where no line changes
        diffs = (plain_diffs if form.lay_out else canonical_diffs)(trial, pairs)
    commits = {each.name: each.commit or CommitId("") for each in stack.outcomes}
    files = {each.name: each.file for each in built.series.patches}
    exported = [
        _Exported(name, commits[name], files[name], with_text(diff, files[name]))
        for name, diff in zip(changes, diffs, strict=True)
    ]
    _write_patches(form, target, exported, component, author)
    return ExportReport(
        component.name,
        form.name,
        target,
        stack.base.commit,
        stack.tree,
        tuple(changes),
        tuple(name for name in files if name not in changes),
        tuple(each.name for each in exported if form == MBOX and not each.sendable),
    )


def _for_upstream(
    manifest: Manifest, built: BuiltStack, given: str | None, store: Store, progress: Progress
) -> BuiltStack:
    """The patch that is meant, behind those that it needs, on upstream's newest commit; or all."""
    if given is None:
        return built
    patches, component = built.series.patches, built.component
    wanted = {patches.index(find_patch(patches, given)) + 1}
    for need in reversed(built.needs()):  # each needs earlier ones only
        if need.number in wanted:
            wanted.add(need.on)
    series = LoadedSeries(tuple(e for number, e in enumerate(patches, 1) if number in wanted))
    tip = find_target(component, LATEST, None, store, progress)
    newest = store.base(moved_to(manifest, component, tip, store, progress), progress)
    report = carry_stack(built.source, built.stack.base, newest, series.series_patches)
    built = replace(built, series=series, stack=report.stack)
    require_clean(built, manifest, "drift")
    return built


def _require_free(form: Form, target: Path) -> None:
    empty = form.lay_out and target.is_dir() and not any(target.iterdir())
    if (target.exists() or target.is_symlink()) and not empty:
        raise UsageError(f"{target} is there already", hint="name a new place")


def _write_patches(
    form: Form,
    target: Path,
    patches: Sequence[_Exported],
    component: Component,
    author: Identity | None,
) -> None:
    if form.lay_out:
        laid_out = form.lay_out(component.name, [each.name for each in patches])
        _write_folder(target, patches, laid_out)
    elif form == MBOX:
        _write_mbox(target, patches, author)


def _write_folder(
    target: Path, patches: Sequence[_Exported], laid_out: tuple[list[str], str, str]
) -> None:
    """A folder with the patches, and with the list of them that the form has."""
    problems = [
        Problem(
            f"{each.name} changes a binary file, which GNU patch cannot do", hint="use -o FILE.mbox"
        )
        for each in patches
        if b"\nGIT binary patch\n" in each.diff
    ]
    if problems:
        raise BadInputError(*problems)
    places, list_file, text = laid_out
    files = {place: each.text for place, each in zip(places, patches, strict=True)}
    write_folder(target, {**files, list_file: text.encode("utf-8", "surrogateescape")})


def _write_mbox(target: Path, patches: Sequence[_Exported], author: Identity | None) -> None:
    hint = "name one above its diff (From: or Author:), or for all such: --author 'NAME <ADDRESS>'"
    problems = [
        Problem(f"{each.name} names no author, without which git am takes no mail", hint=hint)
        for each in patches
        if author is None and each.file.author is None
    ]
    if problems:
        raise BadInputError(*problems)
    mails = (each.mail(author) for each in patches)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, b"".join(mails), named=True)
