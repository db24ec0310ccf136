"""What becomes of a component's patches where its base, or what their recipes give, is another.

The checkout has no say in it: it holds nothing of its own. Upstream's history is asked here, for
carrying and for the commits that are named beside a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from pathlib import Path
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry.carried import CarryOptions, Merger
from patchkit.disk.result_cache import memory_path, recall_packed, remember_packed
from patchkit.errors import ExitCode, PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.commit_history import Between, Touch, that_touched
from patchkit.gitcmd.object_reader import ObjectReader, reading, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.process import GitFailureError, NoAnswerError
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.scratch import overlay
from patchkit.manifest.values import Component, GitPin, SubmodulePin
from patchkit.model.finding import Finding
from patchkit.model.names import short_id
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.patch import Hunk
from patchkit.model.progress import Progress
from patchkit.model.revision import Revision
from patchkit.ops.hints import conflict_ways, in_columns
from patchkit.ops.refresh_input import (
    NotRefreshedError,
    RefreshInput,
    RefreshOptions,
    edited_before,
    refuse,
    to_take,
    unknown_base,
    with_findings,
)
from patchkit.ops.refresh_report import (
    Halted,
    NamedPin,
    PatchHead,
    RefreshedComponent,
    RefreshResult,
)
from patchkit.ops.resume import (
    NewConflict,
    Resumed,
    Waiting,
    can_stop_in,
    halted_report,
    pin_text,
    resume,
    seen_files,
)
from patchkit.refresh.carry_onto import FixedPatchesError, draft_carry
from patchkit.refresh.conflict import (
    Conflict,
    Decision,
    external_decisions,
    first_conflict,
    load_resolutions,
    new_resolutions,
)
from patchkit.refresh.patch_plan import Draft, commit_changes
from patchkit.stack.build import build_stack, patch_changes, series_paths
from patchkit.stack.patch_files import CommitChange
from patchkit.stack.series import LoadedPatch
from patchkit.stack.series_facts import rule_facts, series_facts
from patchkit.upstream.history import History, open_history
from patchkit.upstream.store import Store
from patchkit.workspace import CheckoutState

# Upstream's history between two pins. The upstream's repository in the store has the two pins and
# nothing in between. The history is brought when it is first asked for, and where that fails
# this is reported: it is a help, no more. A git that fails on what is here is no such case.


_SHOWN = 5


class UpstreamPast(Struct, dict=True):
    """The history of a component's upstream from the commit `old` to its pin.

    `unknown` says why it is not known, "" as long as nothing went wrong. `is_whole` turns false
    when a server lacks one of its files; `asked` is true when there is nothing left to ask for.
    """

    store: Store
    component: Component
    old: CommitId
    progress: Progress
    #: The files that the patches name.
    paths: Sequence[str] = ()
    unknown: str = ""
    is_whole: bool = True
    _hint: str = ""
    asked: bool = False

    @cached_property
    def past(self) -> Between:
        """What happened in between, for the carry engine; it goes without where it must."""
        cache = self.store.repository(self.component)
        new = self.store.base(self.component, self.progress).commit
        return Between(cache, self.old, new, lambda: self.reader, self.bring, self.paths)

    @cached_property
    def history(self) -> History | None:
        """The history; None where there is none, or it cannot be fetched."""
        pin = self.component.pin
        if self.asked or not isinstance(pin, GitPin):
            return None
        try:
            at_old = replace(self.component, pin=GitPin(CommitId(self.old)))
            history = open_history(self.store, at_old, pin.commit, self.progress)
            # BadInputError where no way leads from pin to pin
            return history if history.fork else None
        except (GitFailureError, NoAnswerError):
            raise
        except PatchkitError as error:
            self._note(error)
            return None

    def bring(self, blobs: Iterable[str]) -> None:
        """Bring files of the history, as far as they can be had."""
        history = self.history
        if history is None:
            return
        try:
            self.is_whole &= not history.repository.bring(blobs)
        except (GitFailureError, NoAnswerError):
            raise
        except PatchkitError as error:
            self._note(error)

    def touches(self, path: str, lines: Collection[bytes]) -> tuple[Touch, ...]:
        """The commits that changed a file, newest first; of `lines` those that touched them.

        None where no line is evidence.
        """
        history = self.history
        touches = self.past.touches(path) if history is not None else ()
        if history is None or not lines:
            return touches
        self.bring(oid for each in touches for oid in each.blobs)
        return that_touched(history.repository, touches, lines)

    def note(self) -> tuple[Problem, ...]:
        """What the user should know of a carry that had to go without."""
        if not self.unknown:
            return ()
        what = (
            f"upstream's history is not known, so no renames or moves are followed: {self.unknown}"
        )
        return (Problem(what, self.component.name, self._hint),)

    def close(self) -> None:
        """End the git that reads the history, if one runs."""
        if "reader" in vars(self):
            self.reader.close()

    @cached_property
    def reader(self) -> ObjectReader:
        """Reads the commits in between, as far as they are here; whoever has it read closes it."""
        history = self.history
        cache = self.store.repository(self.component)
        return ObjectReader(cache if history is None else history.repository)

    def _note(self, error: PatchkitError) -> None:
        self.unknown = "; ".join(each.what for each in error.problems)
        away = isinstance(error, SurroundingsError)
        self._hint = "run it again where the upstream can be reached" if away else ""


def with_upstream(conflict: Conflict, upstream: UpstreamPast) -> Conflict:
    """The conflict with the commits that touched its lines, or a word why none are named."""
    named = ((each, upstream.touches(each.path, each.lines)[:_SHOWN]) for each in conflict.files)
    files = tuple(
        replace(each, upstream=tuple(t.told for t in touches), lines=frozenset())
        for each, touches in named
    )
    return replace(conflict, files=files, unknown=upstream.unknown)


class Carried(Struct, frozen=True):
    """New patches in `draft`, and the files that remember how conflicts were resolved.

    `resumed` is the conflict from which it went on, None if there was none.
    """

    report: RefreshedComponent
    draft: Draft
    resumed: Resumed | None = None
    resolutions: Mapping[Path, bytes] = {}


class _Verdicts(Struct, frozen=True):
    """What became of the patches, and what recipes found on the way."""

    carried: tuple[PatchResult, ...]
    findings: tuple[Finding, ...] = ()


class _Tried(Struct, frozen=True):
    """What carrying came to with the decisions so far: a draft, or a conflict.

    `conflict` is the first, None in a dry run, and where recipes are to be corrected.
    """

    verdicts: _Verdicts
    decisions: Mapping[str, Decision] = {}
    draft: Draft | None = None
    conflict: Conflict | None = None
    resolutions: Mapping[Path, bytes] = {}  # files to write


def carry_patches(found: RefreshInput, old: CommitId) -> Carried | NewConflict:
    """The patches for the base of `found`, made from those for the commit `old`; or a conflict
    for the checkout.

    NotRefreshedError where they cannot be carried, and no conflict may go there.
    """
    options = found.options
    resumed = resume(found) if options.step is not None else None
    notes: tuple[Problem, ...] = ()
    if resumed is None and not found.snapshot.state.movable:
        notes = (edited_before(found, imports=options.imported is not None),)
        # a dry run asks what becomes of the patches, and leaves the checkout alone in any case
        if not options.dry_run:
            refuse(found.report, *notes)
    if found.cache.commit(old) is None:
        raise SurroundingsError(unknown_base(found, old))
    upstream, kept = _upstream(found, old), _kept(found, old)
    try:
        known = recall_packed(kept, _Verdicts) if kept is not None else None
        tried = _Tried(known) if known is not None else _try(found, upstream, resumed, kept)
    except FixedPatchesError as error:
        hint = to_take(found, error.rewritten)
        fixed = replace(found.report, carried=error.report.outcomes)
        problems = (replace(each, hint=each.hint or hint) for each in error.problems)
        raise NotRefreshedError(fixed, *problems) from None
    by_hand = {name: each for name, each in tried.decisions.items() if not each.by}
    report = replace(
        found.report,
        carried=tried.verdicts.carried,
        series=heads_of(found.series.patches),
        left_out=tuple(name for name, each in by_hand.items() if each.leaves_out),
        resolved=tuple(name for name, each in by_hand.items() if not each.leaves_out),
        saved=resumed.work.saved if resumed is not None else "",
        notes=(*upstream.note(), *notes),
    )
    report = with_findings(report, tried.verdicts.findings)
    if found.generator_problems:
        raise NotRefreshedError(replace(report, carried=()), *found.generator_problems)
    if tried.draft is None:
        return _stopped(found, upstream, report, tried, resumed)
    detail = f"{short_id(old)} -> {short_id(found.base.commit)}"
    there = found.snapshot.state is not CheckoutState.ABSENT
    later = "the checkout is there" if there else f"patchkit apply {found.target}  makes a checkout"
    report = replace(
        report,
        result=RefreshResult.CARRIED,
        dropped=tried.draft.dropped,
        detail=detail if options.dry_run else f"{detail}; {later}",
    )
    return Carried(report, tried.draft, resumed, tried.resolutions)


def heads_of(patches: Sequence[LoadedPatch]) -> tuple[PatchHead, ...]:
    """What each patch of a series is and where it changes the base.

    A hunk's lines are those of the stack below it. Earlier hunks on the file that stand above have
    moved them by what they added, so that is taken off, from the last hunk to the first.
    """
    heads: list[PatchHead] = []
    earlier: dict[str, list[Hunk]] = {}
    for patch in patches:
        changes = patch_changes(patch.series_patch)
        places = [
            (path, _before(first, earlier.get(path, ())), _before(last, earlier.get(path, ())))
            for change in changes
            if (path := change.old_path) is not None
            for first, last in map(_span, change.hunks)
        ]
        for change in changes:
            if change.old_path is not None:
                earlier.setdefault(change.old_path, []).extend(change.hunks)
        heads.append(PatchHead(patch.name, patch.file.subject, patch.where, tuple(places)))
    return tuple(heads)


def _span(hunk: Hunk) -> tuple[int, int]:
    return hunk.old_start, hunk.old_start + max(hunk.old_count, 1) - 1


def _before(line: int, earlier: Sequence[Hunk]) -> int:
    for hunk in reversed(earlier):
        if hunk.new_start + hunk.new_count <= line:
            line -= hunk.new_count - hunk.old_count
    return line


def _upstream(found: RefreshInput, old: CommitId) -> UpstreamPast:
    """What there is to know of upstream between a commit and the base of `found`."""
    patches = found.series.patches
    paths = series_paths([each.series_patch for each in patches])
    upstream = UpstreamPast(found.store, found.component, old, found.progress, paths)
    upstream.asked = any(each.into for each in patches)  # no commit of upstream's has them
    return upstream


def _kept(found: RefreshInput, old: CommitId) -> Path | None:
    """Where a dry run keeps what conflicts, for later ones: it follows from patches, commits,
    resolutions and recipes, if all of the history was there. None where more than that decides.
    """
    options, patches = found.options, found.series.patches
    plain = replace(options, when=0, began=0, careful=False, stop=False)
    if plain != RefreshOptions(0, dry_run=True) or found.manifest.mergers:
        return None
    facts = series_facts(
        found.cache.git_dir.name, old, patches, load_resolutions(found.project.home)
    )
    rules = rule_facts(found.generator.recipes if found.generator is not None else {})
    facts += [found.base.commit, options.careful, rules]
    return memory_path(found.store.cache, "trials", facts)


def _try(
    found: RefreshInput, upstream: UpstreamPast, resumed: Resumed | None, kept: Path | None
) -> _Tried:
    """Carry everything with the decisions so far; what does not fit may be left out.

    What conflicts is kept at `kept`.
    """
    options = found.options
    decisions = dict(resumed.waiting.decisions) if resumed is not None else {}
    sources = [found.cache, *([found.checkout.repository] if resumed is not None else [])]
    # a patch is left out only where `undo` can bring it back: it knows by the checkout
    may_leave_out = options.partial and (options.dry_run or can_stop_in(found.snapshot, resumed))
    home, patches = found.project.home, found.series.patches
    ours = [each.name for each in patches if each.path is not None] if may_leave_out else []
    past = upstream.past
    with overlay(*sources) as trial, reading(trial) as reader, closing(upstream):
        bases = (read_base(found.cache, upstream.old, reader), found.base)
        made = _made_for(trial, reader, bases[0], found) if options.imported is not None else {}
        carrying = CarryOptions(
            past=past,
            careful=options.careful,
            remembered=load_resolutions(home),
            leave_out=ours,
            merger=_merger(found),
            made_on=made,
        )
        rules = found.generator
        carry = partial(
            draft_carry, reader, bases, patches, home, generator=rules, decisions=decisions
        )
        if options.propose is not None:
            draft, report = options.propose(found, resumed, reader, carry, carrying)
        else:
            draft, report = carry(options=carrying)
        decisions |= external_decisions(report)
        decisions |= {name: Decision(TreeId(onto), None) for name, onto in report.left_out.items()}
        findings = rules.findings if rules is not None else ()
        verdicts = _Verdicts(report.outcomes, findings)
        if draft is not None:
            files = new_resolutions(trial, reader, home, decisions)
            return _Tried(verdicts, decisions, draft, resolutions=files)
        stops = not (options.dry_run or found.generator_problems)
        conflict = first_conflict(reader, report, patches) if stops else None
        sure = upstream.is_whole and not (upstream.unknown or found.generator_problems)
        if kept is not None and sure:
            remember_packed(kept, verdicts)
        return _Tried(verdicts, decisions, conflict=conflict)


def _made_for(
    trial: Repository, reader: ObjectReader, base: Base, found: RefreshInput
) -> dict[str, CommitChange]:
    """What imported patches do on the commit that they were made for.

    That is without the series, if they apply so; else with the patches that stand before them.
    Those of the series that do not fit the pin are taken for as old. What does not apply at that
    commit either is left out: it goes in as it is, or is in conflict as a whole.
    """
    patches, imported = found.series.patches, found.options.imported
    names = set(imported.names) if imported is not None else set[str]()
    stack = build_stack(reader, found.base, [each.series_patch for each in patches])
    names |= {each.name for each in stack.outcomes if each.status.fails}
    chosen = [each for each in patches if each.name in names and each.path is not None]
    made: dict[str, CommitChange] = {}
    for series in (patches, chosen):
        stack = build_stack(reader, base, [each.series_patch for each in series])
        write_objects(trial, stack.objects)
        made |= commit_changes(stack)
    return {each.name: made[each.name] for each in chosen if each.name in made}


def _merger(found: RefreshInput) -> Merger | None:
    """Who is asked about files in conflict, if the manifest names anybody."""
    if not found.manifest.mergers:
        return None
    from patchkit.ops.mergers import merger_of  # noqa: PLC0415  most manifests name none

    return merger_of(found.manifest.mergers, run=found.options.run)


def _stopped(
    found: RefreshInput,
    upstream: UpstreamPast,
    report: RefreshedComponent,
    tried: _Tried,
    resumed: Resumed | None,
) -> NewConflict:
    """A conflict, where it may be put into the checkout."""
    options, conflict, old = found.options, tried.conflict, upstream.old
    verdicts = zip(found.series.patches, report.carried, strict=True)
    if next(e for e, came in verdicts if came.status is Status.CONFLICTED).path is None:
        unfit = {each.name for each in report.carried if not each.status.applies}
        theirs = [e for e in found.series.patches if e.name in unfit and e.path is None]
        what = "belongs to another repository, and does not fit the new pin"
        *problems, last = (Problem(f"{each.name} {what}", each.where) for each in theirs)
        hint = to_take(found, [each.name for each in theirs])
        raise NotRefreshedError(report, *problems, replace(last, hint=hint))
    if conflict is None or not options.stop or not can_stop_in(found.snapshot, resumed):
        pin = "the new pin" if options.imported is None else "the pin"
        raise NotRefreshedError(
            report, Problem(f"patches do not fit {pin}", report.name, _way_out(found, old))
        )
    conflict = with_upstream(conflict, upstream)
    halted = halted_report(found, conflict)
    waiting = _waiting(found, old, conflict, halted, tried.decisions)
    ways = conflict_ways(found.target, "resolve it there, then", proposed=bool(halted.proposed))
    what = f"stopped at {halted.patch}: its conflict is in {halted.checkout}"
    report = replace(
        report,
        result=RefreshResult.CONFLICTED,
        exit_code=ExitCode.HALTED,
        halted=halted,
        problems=(Problem(what, report.name, in_columns(ways)),),
        notes=(),  # the conflict tells
    )
    return NewConflict(found, report, conflict, waiting, resumed)


def _waiting(
    found: RefreshInput,
    old: CommitId,
    conflict: Conflict,
    halted: Halted,
    decisions: Mapping[str, Decision],
) -> Waiting:
    """What the checkout is to remember of a conflict."""
    pin, options = found.pin, found.options
    return Waiting(
        manifest=found.manifest.name,
        component=found.component.name,
        old_base=old,
        old=pin.target.old if pin is not None else NamedPin(old),
        new=pin.target.new if pin is not None else NamedPin(found.base.commit),
        pin=pin_text(pin.target.pin, pin.target.archive) if pin is not None else None,
        careful=options.careful,
        run=options.run,
        patch=conflict.patch.name,
        onto=conflict.onto,
        halted=halted,
        seen=seen_files(found),
        keys=conflict.keys,
        decisions=decisions,
        flagged=conflict.flagged,
        imported=options.imported.patches if options.imported is not None else (),
    )


def _way_out(found: RefreshInput, old: CommitId) -> str:
    """What to do about a conflict that was not put into the checkout."""
    options = found.options
    name, manifest = found.component.name, found.manifest.name
    if can_stop_in(found.snapshot, None):
        if options.dry_run:
            return "without --dry-run, the checkout gets the conflict, to be resolved there"
        if not options.stop:
            bump = f"patchkit bump {name} -m {manifest} --to latest"
            return f"nothing was written; {bump}  puts it into the checkout"
    again = [("make a checkout", f"patchkit apply {found.target}"), ("then bump again", "")]
    if options.imported is not None:
        again[1] = ("then import again", "")
    elif found.pin is None:
        again = [("put the pin back", old)]
        if isinstance(pin := found.component.pin, GitPin):
            place = quote(str(found.component.pin_where.file))
            way = f"sed -i s/{pin.name or pin}/{old}/ {place}"
            if isinstance(pin, SubmodulePin):
                way = f"git update-index --cacheinfo 160000,{old},{quote(pin.submodule)}"
            again = [("put the pin back", way)]
            again += [("then make a checkout", f"patchkit apply {found.target}")]
            again += [("then bump it", f"patchkit bump {name} -m {manifest} --to {pin}")]
    return "nothing was written. To have the conflict in a checkout:\n" + in_columns(again)


def regenerate_patches(found: RefreshInput) -> Carried | None:
    """The patches that recipes give now; None if they are the ones that are there.

    A checkout that was edited comes first: its edits are for the patches as they are.
    """
    if found.generator is None or not found.snapshot.state.movable:
        return None
    generator, bases = found.generator.again(), (found.base, found.base)
    patches, home = found.series.patches, found.project.home
    with overlay(found.cache) as trial, reading(trial) as reader:
        draft, verdicts = draft_carry(reader, bases, patches, home, generator=generator)
    if generator.problems:
        raise NotRefreshedError(found.report, *generator.problems)
    if draft is None or all(each.revision is Revision.UNCHANGED for each in draft.revised):
        return None
    report = replace(
        found.report,
        result=RefreshResult.REGENERATED,
        carried=verdicts.outcomes,
        dropped=draft.dropped,
    )
    return Carried(with_findings(report, generator.findings), draft)
