"""Move a component's pin: find what to move to, carry its patches there, write all of it together.

The patches are carried as by a refresh after an edit of the pin by hand; here the edit is made too,
and written in the same transaction. A checkout without edits goes to the new stack, or holds the
conflict that has to be resolved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import (
    BadInputError,
    ExitCode,
    PatchkitError,
    Problem,
    SurroundingsError,
    UsageError,
    worst,
)
from patchkit.extension import WatchedLine, silent_searches
from patchkit.gitcmd.workers import in_processes
from patchkit.manifest.edit import archive_urls, set_archive, set_pin
from patchkit.manifest.types import check_sha256, check_url, check_version, resolve_url
from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    Component,
    FilePin,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
    Location,
    Manifest,
    Pin,
    Source,
    SubmodulePin,
)
from patchkit.model.names import short_id
from patchkit.model.objects import Base, CommitId, lines_of
from patchkit.model.progress import Progress
from patchkit.ops.hints import in_columns
from patchkit.ops.refresh import refresh_components
from patchkit.ops.refresh_input import (
    BumpTarget,
    IncomingPatches,
    PinEdit,
    RefreshOptions,
)
from patchkit.ops.refresh_report import (
    BumpedComponent,
    BumpReport,
    NamedPin,
    RefreshedComponent,
    RefreshResult,
    bumped,
)
from patchkit.ops.resume import Waiting, arrive, find_halt, waiting_of, written_by
from patchkit.ops.undo import bump_reports, finish_killed
from patchkit.parallel import share_memory
from patchkit.refresh.project_files import other_manifests
from patchkit.stack.lockfile import load_lock, recorded_in
from patchkit.upstream.git import LATEST
from patchkit.upstream.history import find_commit
from patchkit.upstream.store import Store
from patchkit.workspace import checkout_of, inspect, locked
from patchkit.workspace.recover import recover

# The target: a name as its source understands it, and the pin that it means.


_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")


def find_target(
    component: Component, wanted: str, sha256: str | None, store: Store, progress: Progress
) -> BumpTarget:
    """What `wanted` is at the component's source now: a version, or what `find_commit` takes.

    Of an archive it is a URL, or a version that the URL is to have, and `sha256` goes with it.
    UsageError if there is no such thing.
    """
    if isinstance(component.source, ArchiveSource) and isinstance(component.pin, ArchivePin):
        return _archive_target(component, component.pin, wanted, sha256)
    if sha256 is not None:
        hint = "git and the package index say themselves what is behind a name"
        raise UsageError(Problem("--sha256 goes with an archive", component.name, hint))
    match component.source, component.pin:
        case GitSource(), GitPin() as pin:
            return _git_target(component, pin, wanted, store, progress)
        case IndexSource(project), IndexPin() as pin:
            lacking = "what the package index has is not in the cache"
            store.require_network(component.name, lacking, "run it without --offline")
            progress.step(component.name, "asking the package index")
            found = _index_pin(project, wanted)
            return BumpTarget(found, NamedPin(pin.version), NamedPin(found.version))
    what = "the pin does not match the source"
    raise UsageError(Problem(what, component.name, "patchkit check --only manifest  says more"))


_ENDING = re.compile(r"\.(?:tar\.\w+|t[gbx]z2?|zip)(?:[?#].*)?$")
_VERSION = re.compile(
    r"(?:^|[-_v])(\d+(?:\.\d+)*(?:[-.]?(?:a|b|rc|alpha|beta|pre|post|dev)\.?\d+)*)(?=$|[-_])"
)


def _version_in(url: str) -> str:
    """The version that the name of an archive's file says, "" for none."""
    found: list[str] = _VERSION.findall(_ENDING.sub("", url.rpartition("/")[2]))
    return found[-1] if found else ""


def _archive_target(
    component: Component, pin: ArchivePin, wanted: str, sha256: str | None
) -> BumpTarget:
    file = component.pin_where.file
    urls = archive_urls(file.read_bytes(), component.name, file=file)
    old = _version_in(urls[0])
    if wanted == LATEST:
        what = "is an archive: there is nothing to look a new one up in"
        hint = "say --to VERSION --sha256 DIGITS, or the URL of the new one"
        raise UsageError(Problem(what, component.name, hint))
    if sha256 is None:
        hint = "`sha256sum FILE` prints it; compare it with what the project publishes"
        raise UsageError(Problem("--to of an archive needs --sha256", component.name, hint))
    if complaint := check_sha256(sha256):
        raise UsageError(Problem(f"--sha256 {sha256} {complaint.what}", hint=complaint.hint))
    if "/" in wanted:
        if complaint := check_url(wanted):
            raise UsageError(Problem(f"--to {wanted} {complaint.what}", hint=complaint.hint))
        urls = (wanted, *urls[1:])
    else:
        version = wanted.removeprefix("v")
        if not old or not re.fullmatch(r"\d[A-Za-z0-9.+_-]*", version):
            what = f"--to {wanted} is not a URL"
            what += "" if old else f", and {urls[0]} has no version to replace"
            raise UsageError(Problem(what, component.name, "--to URL --sha256 DIGITS"))
        place = re.compile(rf"(?<![0-9.]){re.escape(old)}(?![0-9])")
        urls = tuple(place.sub(version, each) for each in urls)
    new = ArchivePin(sha256)
    names = (NamedPin(str(pin), old, bool(old)), _version_in(urls[0]))
    return BumpTarget(new, names[0], NamedPin(str(new), names[1], bool(names[1])), urls)


def moved_to(
    manifest: Manifest,
    component: Component,
    target: BumpTarget,
    store: Store,
    progress: Progress,
) -> Component:
    """The component at its new pin, which is fetched; the old base is where the new one is."""
    if not target.archive:
        pin = target.pin
        if isinstance(pin, GitPin) and isinstance(component.pin, GitPin):
            pin = replace(component.pin, commit=pin.commit, name=pin.name)  # in its place
        moved = replace(component, pin=pin)
        store.base(moved, progress)
        return moved
    url, *mirrors = (resolve_url(each, manifest.root) for each in target.archive)
    source = ArchiveSource(url, tuple(mirrors))
    moved = replace(component, pin=target.pin, source=source)
    store.base(moved, progress)
    store.bring_base(component, moved, progress)
    return moved


def compare_link(source: Source, old: Pin, new: Pin) -> str:
    """Where upstream shows what is between two commits; "" where that is not plain."""
    found = _GITHUB.fullmatch(source.url) if isinstance(source, GitSource) else None
    return f"https://github.com/{found[1]}/compare/{old}...{new}" if found else ""


def _git_target(
    component: Component, pin: GitPin, wanted: str, store: Store, progress: Progress
) -> BumpTarget:
    old = pin.commit
    meaning = find_commit(store, component, wanted, progress)
    named, refs = meaning.named, meaning.refs
    tag = named.tag or (refs.tag_at(named.commit) if refs and named.branch else "")
    before = refs.tag_at(old) if refs else ""
    return BumpTarget(
        GitPin(named.commit, named.tag if pin.name else ""),
        NamedPin(old, before, lasting=bool(before)),
        NamedPin(named.commit, tag or named.branch, lasting=bool(tag)),
    )


def _index_pin(project: str, wanted: str) -> IndexPin:
    # imported here: it needs libraries that the others can do without
    from patchkit.upstream.index import newest_version, sdist_hash  # noqa: PLC0415

    version = newest_version(project) if wanted == LATEST else wanted
    complaint = check_version(version)
    if complaint is not None:
        hint = complaint.hint or "an index has versions only"
        raise UsageError(Problem(f"--to {version} {complaint.what}", hint=hint))
    return IndexPin(version, sdist_hash(project, version))


class WantedPin(Struct, frozen=True):
    """Where a pin is to go."""

    to: str  # a ref or version, of an archive also its URL
    sha256: str | None = None  # of an archive
    add: bool = False  # it is that of a new pin, which starts as a copy


def bump_components(
    manifest: Manifest,
    names: Sequence[str],
    wanted: WantedPin,
    *,
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
    known: Callable[[str, BumpedComponent], None],
) -> BumpReport:
    """Move components of `manifest` to `wanted`: see `find_target`.

    Several move each to LATEST: one that cannot is a problem in its report, and those without a
    `track` are named there. On disk, for each: the pin, the patches and the lock, all or none; then
    the checkout moves. Of one component raises UsageError for a `wanted` that is not there, and
    BadInputError where the pin cannot be edited. `known` gets each as soon as it is moved; a dry
    run looks for calls that upstream breaks after all of them.
    """
    options = replace(options, stop=len(names) == 1)
    several = len(names) > 1
    named = {name: manifest.component(name) for name in names}
    untracked = [n for n, each in named.items() if several and each is not None and not each.track]

    def bumping_of(name: str) -> _Bumping:
        now = manifest if options.dry_run else _read_again(manifest)
        component = now.component(name)
        assert component is not None
        return _Bumping(now, component, store, workspace, options, progress)

    def move(name: str) -> BumpedComponent:
        bumping = bumping_of(name)
        row = bumping.told(wanted) if several else bumping.to(wanted)
        known(name, row)
        return row

    def tell(bumping: _Bumping, row: BumpedComponent) -> None:
        known(bumping.component.name, row)

    share_memory()
    moving = [name for name in names if name not in untracked]
    apart = partial(in_processes, progress=progress, stop=store.stop)
    if several and options.dry_run:
        rows = apart(partial(_Bumping.told, wanted=wanted), [*map(bumping_of, moving)], told=tell)
    else:  # the pins that are written are in one file
        rows = tuple(map(move, moving))
    if options.dry_run:
        rows = apart(_with_calls, [(bumping_of(row.name), row) for row in rows])
    moved = any(each.moved for each in rows) and not options.dry_run
    notes = _stale_rendering(manifest) if moved else ()
    return BumpReport(manifest.name, options.dry_run, rows, tuple(untracked), tuple(notes))


def _read_again(manifest: Manifest) -> Manifest:
    """The manifest with the pins that were moved since it was read."""
    from patchkit.manifest.load import load_manifest  # noqa: PLC0415 (YAML and the format)

    return load_manifest(manifest.path)


def resume_bump(
    manifest: Manifest,
    component: Component,
    *,
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
) -> BumpReport:
    """Go on from the conflict that the component's checkout holds, by the step of `options`.

    On disk: either the next conflict in the checkout; or pin, patches and lock, and the checkout at
    the new stack. CannotGoOnError, with nothing changed, if there is none, or it is not resolved.
    """
    checkout = checkout_of(workspace, manifest, component)
    halt = find_halt(checkout, manifest, component)
    waiting = waiting_of(halt)
    where = component.pin_where.below(manifest.root)
    row = BumpedComponent(component.name, waiting.old, waiting.new, where, RefreshResult.CARRIED)
    row = replace(row, imported=tuple(each.name for each in waiting.imported))
    if (written := written_by(manifest, checkout, halt)) is not None:
        saved = arrive(checkout, halt, written, options.when)
        # a kill came after the files were written: what they came to is recorded
        known = [] if row.imported else [r for _, r in bump_reports(checkout, str(component.pin))]
        row = replace(known[0] if known else row, arrived=True, saved=saved)
        return BumpReport(manifest.name, False, (row,))
    bumping = _Bumping(manifest, component, store, workspace, _going_on(options, waiting), progress)
    edit, moved = None, component
    if waiting.wanted is not None:
        target = BumpTarget(waiting.wanted, waiting.old, waiting.new, waiting.archive)
        edit = _edit_of(manifest, component, target, waiting.old_base, store)
        moved = moved_to(manifest, component, target, store, progress)
        row = replace(row, link=compare_link(component.source, component.pin, moved.pin))
    base = store.cached_base(moved)
    row = replace(row, bases=(waiting.old_base, base.commit if base is not None else CommitId("")))
    done, row = bumping.carry(replace(row, arrived=True), moved, edit)
    names = [each.name for each in done.carried]
    earlier = names[: names.index(waiting.patch)] if waiting.patch in names else ()
    row = replace(row, earlier=tuple(earlier), arrived=row.moved)
    notes = tuple(_stale_rendering(manifest)) if row.moved else ()
    return BumpReport(manifest.name, dry_run=False, components=(row,), notes=notes)


def _going_on(options: RefreshOptions, waiting: Waiting) -> RefreshOptions:
    """How to go on: as the bump that stopped was asked to."""
    return replace(
        options,
        careful=waiting.careful,
        run=waiting.run,
        stop=True,
        imported=IncomingPatches(waiting.imported, waiting.old_base) if waiting.imported else None,
    )


class _Bumping(Struct, frozen=True):
    manifest: Manifest
    component: Component
    store: Store
    workspace: Path  # the folder that holds the checkouts
    options: RefreshOptions  # of the command line
    progress: Progress

    @property
    def where(self) -> str:
        return self.component.pin_where.below(self.manifest.root)

    def told(self, wanted: WantedPin) -> BumpedComponent:
        """The row of one of several, whose errors are its own."""
        try:
            return self.to(wanted)
        except PatchkitError as error:
            return _failed(self, wanted.to, error)

    def to(self, wanted: WantedPin) -> BumpedComponent:
        component, store = self.component, self.store
        target = find_target(component, wanted.to, wanted.sha256, store, self.progress)
        if wanted.add and not self.options.dry_run:
            from patchkit.ops.new_pin import start_pin  # noqa: PLC0415 (most pins are there)

            began = self.options.began
            made = start_pin(self.manifest, component, wanted.to, self.workspace, began)
            added = replace(self, manifest=made[0], component=made[1])
            return added.to(replace(wanted, add=False))
        row = BumpedComponent(
            component.name,
            target.old,
            target.new,
            self.where,
            RefreshResult.UNCHANGED,
            link=compare_link(component.source, component.pin, target.pin),
        )
        pin = component.pin
        # a name was asked for with the new pin; where that was its id, a tag may have moved
        known = replace(pin, name="") if isinstance(pin, GitPin) else pin
        old = store.base(replace(component, pin=known), self.progress)
        moved = moved_to(self.manifest, component, target, store, self.progress)
        new = store.base(moved, self.progress)
        recorded = recorded_in(load_lock(self.manifest.lock_path), component.name)
        start, is_there = old.commit, new.commit == old.commit
        if is_there and recorded is not None and recorded.commit != start:
            # somebody wrote the pin, or a bump was killed: the patches are still behind it
            start, row = recorded.commit, replace(row, old=NamedPin(recorded.commit))
        if start == new.commit:
            checkout = checkout_of(self.workspace, self.manifest, component)
            if checkout.path.exists() and not self.options.dry_run:
                with locked(checkout):
                    recover(checkout)
                    here, when = inspect(checkout), self.options.when
                    finish_killed(self.manifest, component, checkout, here, when)
            return row
        self._require_same_files(moved)
        edit = (
            _edit_of(self.manifest, component, target, start, self.store) if not is_there else None
        )
        row = replace(row, bases=(start, new.commit))
        older = tuple(self._older(moved, old, new))
        # from the patches as they are: before they are written, but no dry run waits for it
        broken = () if self.options.dry_run else tuple(self.broken_calls(new.commit))
        done, row = self.carry(row, moved, edit)
        arrived = row.moved and done.checkout.exists() and not self.options.dry_run
        return replace(row, arrived=arrived, notes=(*older, *row.notes, *broken))

    def carry(
        self, row: BumpedComponent, moved: Component, edit: PinEdit | None
    ) -> tuple[RefreshedComponent, BumpedComponent]:
        """Carry the patches to the new pin; what became of them, and that in the bump's report."""
        (done,) = refresh_components(
            with_component(self.manifest, moved),
            [moved],
            store=self.store,
            workspace=self.workspace,
            options=self.options,
            progress=self.progress,
            pin=edit,
            bump=row if not row.imported else None,
        ).components
        notes = _notes(edit, self.manifest) if done.files and edit is not None else ()
        row = bumped(row, done)
        row = replace(row, notes=(*row.notes, *notes))
        if not (self.options.partial and done.left_out):
            return done, row
        # a bump that lost some did not go well
        what = f"left out, as they do not fit the new pin: {', '.join(done.left_out)}"
        hint = "without --skip-conflicts it stops at each, to be resolved"
        code = worst([done.exit_code, ExitCode.FINDING])
        problems = (*row.problems, Problem(what, done.name, hint))
        return done, replace(row, exit_code=code, problems=problems)

    def _require_same_files(self, moved: Component) -> None:
        """Patches that others take out of the component must be the same files at its new pin."""
        problems: list[Problem] = []
        manifest = with_component(self.manifest, moved)
        for component in manifest.components:
            for entry in component.references:
                if entry.component == moved.name:
                    try:
                        self.store.pinned_file(manifest, component, entry, self.progress)
                    except BadInputError as error:
                        problems += error.problems
        if problems:
            raise BadInputError(*problems)

    def _older(self, moved: Component, old: Base, new: Base) -> Iterator[Problem]:
        """A word where the new pin is an ancestor of the old one."""
        from patchkit.ops.refresh_carry import UpstreamPast  # noqa: PLC0415

        past = UpstreamPast(self.store, moved, old.commit, self.progress).past
        # the dates come first: to know ancestors the history is fetched
        if int(new.date.split()[0]) <= int(old.date.split()[0]) and past.goes_back:
            yield Problem("goes back: the new pin is an ancestor of the old one", moved.name)

    def broken_calls(self, commit: CommitId) -> Iterator[Problem]:
        """What the way to a commit breaks without a conflict, each with the commit that did it.

        Fetches the history between the two. A pin without history (a package index's, an archive's)
        gives nothing here: `check` looks at it as soon as it has moved.
        """
        component, named = self.component, silent_searches().items()
        searches = {n: e for n, e in named if e.breaks and e.watches(self.manifest, component)}
        if not searches or not isinstance(component.pin, GitPin):
            return
        from patchkit.gitcmd.object_reader import ObjectReader  # noqa: PLC0415
        from patchkit.upstream.history import HistoryReader, open_history  # noqa: PLC0415

        for words, search in searches.items():
            try:
                history = open_history(self.store, component, commit, self.progress)
                with ObjectReader(history.repository) as reader:
                    along = HistoryReader(history, reader)
                    about = (self.manifest, component, (), along, self.store, self.progress)
                    found = list(search.find(WatchedLine(*about)))
            except (BadInputError, SurroundingsError) as error:
                what = f"{words} were not looked at: {error.problems[0].what}"
                hint = f"patchkit check {self.manifest.options()}  once it has moved"
                yield Problem(what, component.name, hint)
                continue
            for each in found:
                by = each.by
                since = f", since {short_id(by.commit)} {by.subject}" if by is not None else ""
                yield Problem(f"upstream breaks a call: {each.what}{since}", each.where)


def _with_calls(moved: tuple[_Bumping, BumpedComponent]) -> BumpedComponent:
    """The row of a dry run, with what the move breaks without a conflict."""
    bumping, row = moved
    broken = bumping.broken_calls(row.bases[1]) if row.bases[1] else ()
    return replace(row, notes=(*row.notes, *broken))


def with_component(manifest: Manifest, component: Component) -> Manifest:
    """The manifest with `component` in the place of the one of that name."""
    rows = (component if each.name == component.name else each for each in manifest.components)
    return replace(manifest, components=tuple(rows))


def _edit_of(
    manifest: Manifest, component: Component, target: BumpTarget, old: CommitId, store: Store
) -> PinEdit:
    """The edit of the file that has the pin; refused where other manifests have it from there."""
    place = str(component.pin_where)
    sharing = list(_also_pinned_there(manifest, component, store))
    if sharing:
        others = [each.path.name if each != manifest else c.name for each, c in sharing]
        what = f"the pin of {component.name} is also that of {', '.join(others)}"
        users = [(manifest, component), *sharing]
        refreshes = [f"patchkit refresh {each.options(c.name)}" for each, c in users]
        ways = [
            (f"write a pin of its own into {manifest.path.name}", ""),
            ("or write the new one there, and carry all", refreshes[0]),
            *(("", each) for each in refreshes[1:]),
        ]
        raise BadInputError(Problem(what, place, in_columns(ways)))
    pin = component.pin
    if isinstance(pin, FilePin | SubmodulePin):
        return _edit_in_place(manifest, pin, target, old)
    file = component.pin_where.file
    # under the one name by which all that plan changes in it know it
    file = manifest.path if file.samefile(manifest.path) else file.absolute()
    before = file.read_bytes()
    if set_pin(before, component.name, component.pin, file=file) != before:
        raise BadInputError(Problem("the pin has just been changed", place, "run it again"))
    tags = [each.name if each.lasting else "" for each in (target.old, target.new)]
    after = set_pin(before, component.name, target.pin, file=file, tags=tags)
    if target.archive:
        after = set_archive(after, component.name, target.archive, file=file)
    return PinEdit({file: (before, after)}, target, old)


def _edit_in_place(
    manifest: Manifest, pin: FilePin | SubmodulePin, target: BumpTarget, old: CommitId
) -> PinEdit:
    """The edit of a pin that stands where other tools read it."""
    from patchkit.manifest.pin_places import with_pin  # noqa: PLC0415 (most pins are not there)

    new = target.pin
    assert isinstance(new, GitPin)
    names = {each.name: each.commit for each in (pin, new) if each.name} if new.name else {}
    link = {pin.submodule: (old, new.commit)} if isinstance(pin, SubmodulePin) else {}
    return PinEdit(with_pin(manifest.root, pin, new), target, old, link, names)


def _also_pinned_there(
    manifest: Manifest, component: Component, store: Store
) -> Iterator[tuple[Manifest, Component]]:
    """The other components of the project, mostly in other manifests, with a pin at that place."""
    places = _places(manifest, component)
    for other in (manifest, *other_manifests(manifest, store)):
        for each in other.components:
            is_same = other is manifest and each.name == component.name
            if not is_same and places & _places(other, each):
                yield other, each


def _places(manifest: Manifest, component: Component) -> set[tuple[str, int, int]]:
    """Where a pin stands: files, with line and column; a submodule's folder."""
    pin, wheres = component.pin, [component.pin_where]
    if isinstance(pin, FilePin | SubmodulePin):
        wheres += [each.where for each in pin.also]
    places = {(os.path.realpath(each.file), each.line, each.column) for each in wheres}
    if isinstance(pin, SubmodulePin):
        places.add((str(manifest.root / pin.submodule), 0, 0))
    return places


def _failed(bumping: _Bumping, wanted: str, error: PatchkitError) -> BumpedComponent:
    component = bumping.component
    bumping.progress.finish(component.name, RefreshResult.FAILED.value)
    problems = (replace(each, where=each.where or component.name) for each in error.problems)
    # what is wrong is the manifest's `track`, not the command line
    code = ExitCode.BAD_INPUT if error.exit_code is ExitCode.USAGE else error.exit_code
    return BumpedComponent(
        component.name,
        NamedPin(str(component.pin)),
        NamedPin("", (component.track or "") if wanted == LATEST else wanted),
        bumping.where,
        RefreshResult.FAILED,
        code,
        problems=tuple(problems),
    )


def _notes(edit: PinEdit, manifest: Manifest) -> Iterator[Problem]:
    for file, sides in edit.files.items():
        rows = zip(*map(lines_of, sides), strict=True)
        for number, (before, after) in enumerate(rows, 1):
            comment = re.search(rb"\s(#.*)$", after) if before != after else None
            if comment is not None and before.endswith(comment[0]):
                text = comment[1].decode("utf-8", "replace")
                place = Location(file, number).below(manifest.root)
                yield Problem(f"the comment beside the pin stays as it is: {text}", place)


def _stale_rendering(manifest: Manifest) -> Iterator[Problem]:
    if (manifest.root / "rendered" / manifest.name).is_dir():
        hint = f"patchkit export --format machine {manifest.options()}"
        yield Problem("was rendered for the old pin", f"rendered/{manifest.name}", hint)
