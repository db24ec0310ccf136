"""Check: would every patch apply, and is it in order? Changes nothing, needs no checkout.

The verdict on a patch is the one that `apply` gives, by the same code. What comes on top: blobs
that the patch was not made against, lint, the series' files, the lock. Components are checked at
once; one's trouble stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem, expected
from patchkit.explain.diagnose import Results, explain_stack, find_origin, results_of
from patchkit.explain.explanation import (
    Origin,
    PatchExplanation,
    origin_lines,
    origin_words,
)
from patchkit.extension import CheckedStack, CheckRun, Finder, finders
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.guards.verify import (
    not_run_findings,
    parse_findings,
    run_findings,
    step_findings,
    well_formed_files,
)
from patchkit.manifest.values import Component, Manifest, PinnedPatch, RunStep
from patchkit.model.finding import Finding, Severity
from patchkit.model.lint import lint_patch
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.progress import Progress
from patchkit.model.repair import BLANKS_OF_BASE
from patchkit.model.text import listed
from patchkit.ops.check_report import (
    BrokenManifest,
    CheckReport,
    Chosen,
    ComponentCheck,
    PatchCheck,
    taken_strictly,
)
from patchkit.ops.version_matrix import find_matrices
from patchkit.parallel import in_parallel
from patchkit.stack.build import Stack, build_stack, patch_changes
from patchkit.stack.emptied import emptied_patches
from patchkit.stack.lock_differences import compare
from patchkit.stack.lockfile import load_lock, lock_component, recorded_in
from patchkit.stack.series import (
    LoadedPatch,
    LoadedSeries,
    load_series,
    named_recipe,
)
from patchkit.upstream.store import Store
from patchkit.workspace.checkout import HALT_REF, checkout_of

# What a check says beyond each patch: does the patched component still fit what it guards?
#
# Each guard is loaded where a component has it: most have none, and a check should feel instant.


def guard_findings(
    checked: CheckedStack, run: CheckRun, finders: Sequence[Finder]
) -> Iterator[Finding]:
    """What a person has to look at in a stack that applies."""
    yield from _parsing(checked, run.store)
    yield from _verify(checked, run)
    for finder in finders:
        yield from finder(checked)


def _parsing(checked: CheckedStack, store: Store) -> Iterator[Finding]:
    known = well_formed_files(store.cache, checked.manifest.path, checked.component.name)
    yield from parse_findings(checked.source, checked.stack, checked.patches, known)
    known.close()


def _verify(checked: CheckedStack, run: CheckRun) -> Iterator[Finding]:
    steps = checked.component.verify
    if not steps:
        return
    yield from step_findings(checked, steps)
    commands = [step for step in steps if isinstance(step, RunStep)]
    if not run.run:
        yield from not_run_findings(commands)
    elif commands:
        run.progress.step(checked.component.name, "running commands", local=True)
        yield from run_findings(checked, commands, run.store.stop)


class _Task(Struct, frozen=True):
    """A component to check; `series` is the error if its patches could not be read."""

    manifest: Manifest
    component: Component
    series: LoadedSeries | PatchkitError


class _Tools(Struct, frozen=True):
    """What every component's check needs; `results` name patches by the keys of `patches`."""

    store: Store
    progress: Progress
    strict: bool  # warnings and style are errors
    locked: bool  # patches that the lock does not have yet are errors
    of_run: CheckRun  # what extensions are given
    finders: Sequence[Finder]  # those of extensions
    results: Results
    patches: Mapping[str, LoadedPatch]
    workspace: Path | None  # whose checkouts may hold a conflict; None: not looked at
    known: Callable[[str, ComponentCheck], None]  # see `check_manifests`

    def missing(self, origin: Origin, earlier: Collection[str]) -> Origin:
        """The origin with places for keys, without patches that stand earlier in the series."""
        keys = [key for key in origin.made_by if key not in earlier]
        return replace(origin, made_by=tuple(self.patches[key].where for key in keys))


def check_manifests(
    chosen: Chosen,
    store: Store,
    progress: Progress,
    *,
    strict: bool = False,
    run: bool = False,
    today: date | None = None,
    jobs: int = 4,
    broken: Sequence[BrokenManifest] = (),
    locked: bool = True,
    workspace: Path | None = None,
    known: Callable[[str, ComponentCheck], None] = lambda _name, _check: None,
) -> CheckReport:
    """Check the chosen components of each manifest, `jobs` at once.

    `known` gets the verdict on the patches of each ("manifest: component"), which does not wait for
    what else is looked at.

    On disk: what the store fetches, nothing else. `broken` are manifests that could not be read;
    they go into the report. With `run` the commands of verify steps run, each in a scratch folder;
    `today` decides which reasons are over, None: none is. Unless `locked`, edits of local patches
    that the lock does not have yet are warnings. A conflict that waits in a checkout of `workspace`
    is a note.
    """
    pairs = [(manifest, component) for manifest, each in chosen for component in each]
    stop = store.stop.ask
    tasks = in_parallel(lambda pair: _load(*pair, store, progress), pairs, jobs=jobs, stop=stop)
    named = {patch.sha256: patch for task in tasks for patch in _series_patches(task)}
    results = results_of((sha, patch_changes(p.series_patch)) for sha, p in named.items())
    of_run = CheckRun(store, progress, run, today or date.min)
    tools = _Tools(
        store,
        progress,
        strict,
        locked,
        of_run,
        finders(of_run),
        results,
        named,
        workspace,
        known,
    )
    checks = in_parallel(lambda task: _check(task, tools), tasks, jobs=jobs, stop=stop)
    said = ((manifest.name, manifest.retired) for manifest, _ in chosen)
    retired = tuple(Problem(f"retired: {why}", name) for name, why in said if why)
    matrices = find_matrices(pairs, checks, store)
    return CheckReport(strict, checks, tuple(broken), retired, matrices)


def _load(manifest: Manifest, component: Component, store: Store, progress: Progress) -> _Task:
    try:
        series: LoadedSeries | PatchkitError = load_series(
            manifest, component, store, progress, partly=True
        )
    except PatchkitError as error:
        series = error
    return _Task(manifest, component, series)


def _check(task: _Task, tools: _Tools) -> ComponentCheck:
    component = task.component
    blank = ComponentCheck(task.manifest.name, component.name, str(component.pin), ExitCode.OK)
    try:
        if isinstance(task.series, PatchkitError):
            raise task.series
        tools.progress.step(component.name, "checking", local=True)
        check = _check_stack(blank, task, task.series, tools)
    except PatchkitError as error:
        problems = tuple(dict.fromkeys((*task.series.problems, *error.problems)))
        check = replace(blank, exit_code=error.exit_code, problems=problems)
    check = replace(check, findings=(*check.findings, *_waiting(task, tools.workspace)))
    tools.progress.finish(component.name, "failed" if check.problems else "checked")
    return check


def _check_stack(
    blank: ComponentCheck, task: _Task, series: LoadedSeries, tools: _Tools
) -> ComponentCheck:
    base = tools.store.base(task.component, tools.progress)
    with ObjectReader(tools.store.repository(task.component)) as reader:
        stack = build_stack(reader, base, series.series_patches)
        stack, explained = explain_stack(
            reader, stack, series.series_patches, results=tools.results
        )
        findings = tuple(_series_findings(series))
        complete = stack.clean and not series.problems
        patches = _check_patches(reader, stack, explained, task, series, tools)
        source = Overlay(reader, stack.objects)
        checked = CheckedStack(
            task.manifest,
            task.component,
            series.patches,
            _in_order(series, patches),
            stack,
            source,
        )
        if complete:
            findings += tuple(_lock_findings(task, stack, series, locked=tools.locked))
        check = replace(
            blank,
            base=base.commit,
            tree=stack.tree if complete else None,
            patches=patches,
            findings=findings,
            problems=tuple(_with_repairs(series, stack, source, task)),
        )
        tools.known(f"{check.manifest}: {check.name}", check)
        if complete:
            guards = guard_findings(checked, tools.of_run, tools.finders)
            check = replace(check, findings=(*findings, *guards))
    check = taken_strictly(check) if tools.strict else check
    return replace(check, exit_code=_exit_code(check))


def _with_repairs(
    series: LoadedSeries, stack: Stack, source: Overlay, task: _Task
) -> Iterator[Problem]:
    """What is wrong with the series, with how to mend what is damaged for certain."""
    hints = {
        patch.where: _repair_hint(patch, TreeView(source, stack.trees[number]), task)
        for number, patch in series.damaged
    }
    for each in series.problems:
        hint = hints.get(each.where.rpartition(":")[0])
        yield replace(each, hint=hint) if hint else each


def _repair_hint(patch: LoadedPatch, view: TreeView, task: _Task) -> str:
    """How to mend a damaged patch for the tree of `view`; "" where that is not certain."""
    from patchkit.stack.damage import repair_patch  # most are whole

    repair = repair_patch(patch.data, view, patch.where, patch.strip, patch.subdirectory)
    if repair is None or repair.problem is not None:
        return ""
    if patch.path is None:
        where = patch.listed_at(task.manifest.root)
        if BLANKS_OF_BASE in repair.mends:
            return ""
        return f"at {where}, beside its sha256: `repair: [{', '.join(repair.mends)}]`"
    target = task.manifest.options(task.component.name)
    return f"patchkit import --repair {quote(patch.where)} {target}  mends it"


def _waiting(task: _Task, workspace: Path | None) -> Iterator[Finding]:
    """The conflict that waits in the component's checkout: the check of its patches hides none."""
    if workspace is None:
        return
    code, checkout = "waiting", checkout_of(workspace, task.manifest, task.component)
    try:
        if not checkout.git_dir.is_dir() or checkout.repository.ref(HALT_REF) is None:
            return
        from patchkit.ops.resume import waiting_problem

        problem = waiting_problem(task.manifest, task.component, checkout)
    except (PatchkitError, OSError) as error:
        code, (problem, *_) = "waiting-unseen", expected(error, task.component.name).problems
    if problem is not None:
        yield Finding(Severity.NOTE, code, problem.what, problem.where, problem.hint)


def _in_order(series: LoadedSeries, checks: Sequence[PatchCheck]) -> tuple[LoadedPatch, ...]:
    """The patches of whose recipes nothing is wrong."""

    def is_wrong(finding: Finding) -> bool:
        return finding.code.startswith("recipe") and finding.severity is Severity.ERROR

    pairs = zip(series.patches, checks, strict=True)
    return tuple(patch for patch, check in pairs if not any(map(is_wrong, check.findings)))


def _check_patches(  # noqa: PLR0917
    reader: ObjectReader,
    stack: Stack,
    explained: Sequence[PatchExplanation],
    task: _Task,
    series: LoadedSeries,
    tools: _Tools,
) -> tuple[PatchCheck, ...]:
    explanations = {each.name: each for each in explained}
    overlay = Overlay(reader, stack.objects)
    checks: list[PatchCheck] = []
    tree, earlier = stack.base.tree, set[str]()
    for patch, outcome in zip(series.patches, stack.outcomes, strict=True):
        origin = None
        if outcome.made_for_another_base:
            view = TreeView(overlay, tree)
            changes = patch_changes(patch.series_patch)
            origin = tools.missing(find_origin(view, changes, results=tools.results), earlier)
        mend = ""
        if outcome.status in (Status.CONFLICTED, Status.EMPTY):
            mend = _repair_hint(patch, TreeView(overlay, tree), task)
        check = PatchCheck(
            patch.name,
            patch.where,
            outcome,
            origin,
            findings=(
                *_outcome_findings(patch, outcome, origin, mend),
                *_generated(patch, outcome, overlay, tree),
                *lint_patch(patch.file, name=patch.where, ours=patch.path is not None),
            ),
            listed=patch.listed_at(task.manifest.root),
        )
        explanation = explanations.get(patch.name)
        if explanation is not None:
            origin = tools.missing(explanation.origin, earlier)
            explanation = replace(explanation, origin=origin)
            check = _explained(check, explanation, patch, task, stack.base.commit)
            if mend:
                check = replace(check, next_steps=(f"it is damaged: {mend}",))
        checks.append(check)
        earlier.add(patch.sha256)
        tree = outcome.tree or tree
    return tuple(checks)


def _generated(
    patch: LoadedPatch, outcome: PatchResult, overlay: Overlay, tree: TreeId
) -> tuple[Finding, ...]:
    """What is wrong with a patch that has a recipe; `tree` is the one that it is applied to."""
    if not patch.has_recipe:
        return ()
    # most stacks have no recipe, and a check should feel instant
    from patchkit.stack.generated import check_generated

    return check_generated(patch, outcome, overlay, tree)


def _explained(
    check: PatchCheck,
    explanation: PatchExplanation,
    patch: LoadedPatch,
    task: _Task,
    base: CommitId,
) -> PatchCheck:
    from patchkit.explain.explanation import next_steps

    recorded = recorded_in(load_lock(task.manifest.lock_path), task.component.name)
    repinned = recorded is not None and recorded.commit != base
    steps = next_steps(explanation, patch, task.manifest, task.component, repinned=repinned)
    if named_recipe(patch.file) and patch.path is not None:
        target = task.manifest.options(task.component.name)
        steps = (f"patchkit refresh {target}  regenerates it from its recipe",)
    return replace(check, explanation=explanation, next_steps=steps)


def _outcome_findings(
    patch: LoadedPatch, outcome: PatchResult, origin: Origin | None, mend: str
) -> Iterator[Finding]:
    reviewed = patch.origin.other_base if isinstance(patch.origin, PinnedPatch) else ()
    others = {other.path for other in origin.others} if origin is not None else set[str]()
    if origin is not None and others - {file.path for file in reviewed}:
        hint = ""
        if origin.made_by:
            hint = f"{listed(origin.made_by, 3)} makes such files: is it missing before this one?"
        what = "applies, but was made for another base"
        lines = (origin_words(origin), *origin_lines(origin))
        yield Finding(Severity.WARNING, "another-base", what, patch.where, hint, lines)
    for file in reviewed if outcome.tree is not None else ():
        if file.path not in others:
            what = f"other_base lists {file.path}, which is the version that the patch expects"
            hint, where = "remove it from the list", str(file.where)
            yield Finding(Severity.WARNING, "other-base-over", what, where, hint)
    for each in outcome.files:
        if each.review:
            what = f"{each.path}: {'; '.join(each.reasons)}"
            hint = "check that it is the right place; if so, write it as git does: patchkit refresh"
            yield Finding(Severity.WARNING, "another-scope", what, patch.where, hint)
    if outcome.status is Status.EMPTY:
        hint = mend or "remove it from the list"
        yield Finding(Severity.WARNING, "empty-patch", "changes no file", patch.where, hint)


def _series_findings(series: LoadedSeries) -> Iterator[Finding]:
    what = "is not listed in the series beside it"
    hint = "list it there, or put a `#` line with its name and the reason, or delete it"
    for path in series.unlisted:
        yield Finding(Severity.WARNING, "unlisted-patch", what, path, hint)


def _lock_findings(
    task: _Task, stack: Stack, series: LoadedSeries, *, locked: bool
) -> Iterator[Finding]:
    lock = load_lock(task.manifest.lock_path)
    recorded = recorded_in(lock, task.component.name)
    if recorded is None:
        return
    target = task.manifest.options(task.component.name)
    apply = f"patchkit apply {target}"
    differences = compare(recorded, lock_component(stack, series))
    emptied = emptied_patches(recorded, series.patches, target)
    open_to_apply = not emptied and all(each.is_local(series) for each in differences)
    accepts = "" if emptied else f"{apply} --accept  accepts it"
    for problem in emptied:
        yield Finding(Severity.ERROR, "emptied-patch", problem.what, problem.where, problem.hint)
    for each in differences:
        taken = open_to_apply and not locked
        yield Finding(
            Severity.WARNING if taken else Severity.ERROR,
            "lock",
            each.what,
            f"{task.manifest.lock_path.name}: {task.component.name}",
            f"{apply}  records it" if open_to_apply else accepts,
        )


def _exit_code(check: ComponentCheck) -> ExitCode:
    fails = any(patch.status.fails for patch in check.patches)
    found = any(finding.severity is Severity.ERROR for finding in check.all_findings)
    if check.problems:
        return BadInputError.exit_code
    return ExitCode.FINDING if fails or found else ExitCode.OK


def _series_patches(task: _Task) -> tuple[LoadedPatch, ...]:
    return task.series.patches if isinstance(task.series, LoadedSeries) else ()
