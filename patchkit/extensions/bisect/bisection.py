"""`bisect`: which commit of upstream's beneath a stack breaks a command.

Which patch does, git tells in a checkout, where each is a commit. Each state is built in memory and
put into one checkout of its own below the workspace's own folder; the user's checkouts are not
touched. Verdicts are written down after every run, so that a search that was stopped goes on where
it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.disk.result_cache import recall_as, remember
from patchkit.errors import ExitCode, PatchkitError, SurroundingsError
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.first_parent import describe_commits
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.user_command import run_command
from patchkit.manifest.values import Component, GitPin, Manifest
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId
from patchkit.model.progress import Progress
from patchkit.model.resolution import Resolution
from patchkit.ops.built_stack import BuiltStack, built_stack, require_clean
from patchkit.ops.upstream_tests import FRESH, own_checkout, stand
from patchkit.refresh.conflict import load_resolutions
from patchkit.refresh.patch_plan import SeriesFolder
from patchkit.stack.generated import load_generator
from patchkit.upstream.history import History, open_history
from patchkit.upstream.store import Store
from patchkit.workspace.checkout import OWN_FOLDER, Checkout, locked_file
from patchkit.workspace.enter import Stacked

#: As git bisect has it: the state cannot be judged.
_SKIP = 125


class TrialVerdict(str, Enum):
    """What the command said of a state."""

    GOOD = "good"  # exit code 0
    BAD = "bad"
    SKIPPED = "skipped"  # exit code 125, or the state cannot be made


class BisectAnswer(str, Enum):
    """What a search came to."""

    FOUND = "found"  # the first bad state is known
    AMONG = "among"  # one of some: those between cannot be judged
    ALWAYS = "always"  # it fails at the pin
    NEVER = "never"  # it passes at the newest commit
    UNKNOWN = "unknown"  # the newest commit cannot be judged


class TrialState(Struct, frozen=True):
    """A commit of upstream's with the stack on it: `name` is what it is called."""

    id: CommitId
    name: str
    title: str  # the commit's subject


class JudgedState(Struct, frozen=True):
    """A state that was judged in this search; `known`: by an earlier run of it."""

    name: str  # of the commit
    verdict: TrialVerdict  # what the command said
    known: bool = False
    why: str = ""  # where it could not be judged; else ""


class BisectReport(Struct, frozen=True):
    """What a search found.

    `first_bad` are the names of which one breaks the command: one name, several where those between
    cannot be judged, none for the others. `title` is that commit's subject; `last_good` the state
    before, "" where that is the pin. `states` is how many there are, `judged` what was tried, in
    order.
    """

    manifest: str  # its name
    component: str  # its name
    command: str  # what was run
    answer: BisectAnswer  # whether one was found, or why not
    first_bad: tuple[str, ...]
    title: str
    last_good: str
    states: int
    judged: tuple[JudgedState, ...]
    checkout: Path  # the folder in which the command ran

    @property
    def exit_code(self) -> ExitCode:
        """OK where the command passes everywhere, a finding else."""
        return ExitCode.OK if self.answer is BisectAnswer.NEVER else ExitCode.FINDING


def first_bad(
    count: int, judge: Callable[[int], TrialVerdict]
) -> tuple[BisectAnswer, tuple[int, int]]:
    """Search states 0 to `count` - 1 for the first bad one; (answer, (last good, first bad)).

    The last state is judged first, then the first. Invariant: `low` is good and `high` is bad;
    between them only skipped states are known. A skipped middle is left for its nearest neighbours,
    the older one first; where all between are skipped, the answer is AMONG. That one change broke
    it, and no other mended it, is taken for granted, as with git bisect.
    """
    judge, high = cache(judge), count - 1
    last = judge(high)
    if last is not TrialVerdict.BAD:
        good = last is TrialVerdict.GOOD
        return (BisectAnswer.NEVER if good else BisectAnswer.UNKNOWN), (high, high)
    if high == 0 or judge(0) is TrialVerdict.BAD:
        return BisectAnswer.ALWAYS, (0, 0)
    low, skipped = 0, set[int]()
    while left := [n for n in range(low + 1, high) if n not in skipped]:
        middle = min(left, key=lambda n: (abs(2 * n - low - high), n))
        verdict = judge(middle)
        if verdict is TrialVerdict.SKIPPED:
            skipped.add(middle)
        elif verdict is TrialVerdict.GOOD:
            low = middle
        else:
            high = middle
    answer = BisectAnswer.FOUND if high - low == 1 else BisectAnswer.AMONG
    return answer, (low, high)


def bisect_stack(
    manifest: Manifest,
    component: Component,
    command: str,
    *,
    upstream: str,
    store: Store,
    workspace: Path,
    when: int,
    shown_on: int | None,
    progress: Progress,
) -> BisectReport:
    """Search the commits from a component's pin to `upstream` for the one that makes `command`
    fail, each with the stack carried to it.

    `upstream` is a name as for `bump --to`. On disk: a checkout and a list of verdicts in the
    workspace's own folder; the list goes once there is an answer. KeyboardInterrupt leaves it.
    `shown_on` is a descriptor for what the command writes.
    """
    folder = workspace.absolute() / OWN_FOLDER / "bisect"
    lock = folder.with_name(f"bisect-{manifest.name}-{component.name}.lock")
    with (
        locked_file(lock, folder),
        built_stack(manifest, component, store, progress) as built,
    ):
        require_clean(built, manifest)
        carrying = _carrying(manifest, built, upstream, store, progress)
        name = f"{manifest.name}+{component.name}"
        checkout = own_checkout(workspace, "bisect", name)
        key = sha256(json.dumps([command, built.stack.tree]).encode()).hexdigest()
        notes = _Notes.of(folder, name, key)
        trials = _Trials(carrying, command, checkout, notes, when, shown_on)
        return _report(trials, manifest, component, progress)


def _report(
    trials: _Trials, manifest: Manifest, component: Component, progress: Progress
) -> BisectReport:
    states = trials.carrying.states

    def judge(number: int) -> TrialVerdict:
        left = max(1, (len(states) - 1).bit_length() + 2 - len(trials.judged))
        what = f"trying {states[number].name}, some {left} runs left"
        progress.step(component.name, what, local=True)
        return trials.judge(number)

    answer, (low, high) = first_bad(len(states), judge)
    trials.notes.forget()
    found = states[low + 1 : high + 1]
    return BisectReport(
        manifest=manifest.name,
        component=component.name,
        command=trials.command,
        answer=answer,
        first_bad=tuple(each.name for each in found),
        title=found[0].title if len(found) == 1 else "",
        last_good=states[low].name if low and found else "",
        states=len(states),
        judged=tuple(trials.judged),
        checkout=trials.checkout.path,
    )


# States, and what stands in the checkout for each.


class _Carrying(Struct, frozen=True):
    """The states of a branch beyond the pin, the stack carried to each."""

    manifest: Manifest
    built: BuiltStack  # the series on its base
    history: History
    store: Store
    progress: Progress
    states: tuple[TrialState, ...]

    def make(self, number: int) -> Stacked | str:
        """The carried stack, or why it cannot be carried there."""
        component, commit = self.built.component, self.states[number].id
        series, old = self.built.series, self.built.stack.base
        moved = replace(component, pin=GitPin(commit))
        try:
            base = self.store.base(moved, self.progress)
            repository = self.store.repository(component)
            along = self.history.repository
            with ObjectReader(repository) as reader, ObjectReader(along) as between:
                past = Between(repository, old.commit, commit, lambda: between, along.bring)
                report = carry_stack(
                    reader,
                    old,
                    base,
                    series.series_patches,
                    CarryOptions(
                        load_generator(series.patches), past=past, remembered=self._remembered
                    ),
                )
        except PatchkitError as error:
            return str(error)
        if not report.clean:
            names = [each.name for each in report.outcomes if each.status.fails]
            return f"{names[0]} does not carry to it"
        stack = report.stack
        return Stacked(commit, stack.commit, stack.objects, repository)

    @property
    def _remembered(self) -> Mapping[str, Resolution]:
        entry = self.built.component.series
        if entry is None:
            return {}
        return load_resolutions(SeriesFolder(self.manifest.root, entry, self.built.component))


def _carrying(
    manifest: Manifest, built: BuiltStack, upstream: str, store: Store, progress: Progress
) -> _Carrying:
    component = built.component
    history = open_history(store, component, upstream, progress)
    commits = [history.pin, *history.line.commits]
    about = describe_commits(history.repository, commits)
    states = tuple(
        TrialState(each, short_id(each) if number else "the pin", about[each].subject)
        for number, each in enumerate(commits)
    )
    return _Carrying(manifest, built, history, store, progress, states)


# The checkout in which states are judged, and what is known of them.


class _Notes(Struct):
    """Verdicts of a search that goes on, in a file; those of another search are forgotten."""

    path: Path
    key: str  # of the search: another one is another search
    verdicts: dict[str, TrialVerdict]

    @classmethod
    def of(cls, folder: Path, name: str, key: str) -> _Notes:
        """What an earlier run of the same search noted; nothing where that cannot be read."""
        path = folder / f"{name}.json"
        kept = recall_as(path, tuple[str, dict[str, TrialVerdict]])
        return cls(path, key, kept[1] if kept is not None and kept[0] == key else {})

    def add(self, state: str, verdict: TrialVerdict) -> None:
        """Note a verdict, on disk before anything else is done."""
        self.verdicts[state] = verdict
        remember(self.path, to_builtins([self.key, self.verdicts]))

    def forget(self) -> None:
        """The search is over."""
        self.path.unlink(missing_ok=True)


class _Trials(Struct):
    carrying: _Carrying  # the states in order, the first one good
    command: str  # of the shell; exit code 0 is good
    checkout: Checkout
    notes: _Notes  # verdicts of earlier runs
    when: int  # names saved work, in seconds since the epoch
    shown_on: int | None  # file descriptor for what the command writes; None: nowhere
    judged: list[JudgedState] = []  # in the order of judging

    def judge(self, number: int) -> TrialVerdict:
        """Run the command in a state, unless that was done before."""
        state = self.carrying.states[number]
        verdict = self.notes.verdicts.get(state.id)
        if verdict is not None:
            if all(each.name != state.name for each in self.judged):
                self.judged.append(JudgedState(state.name, verdict, known=True))
            return verdict
        verdict, why = self._tried(number)
        self.judged.append(JudgedState(state.name, verdict, why=why))
        self.notes.add(state.id, verdict)
        return verdict

    def _tried(self, number: int) -> tuple[TrialVerdict, str]:
        stacked = self.carrying.make(number)
        if isinstance(stacked, str):
            return TrialVerdict.SKIPPED, stacked
        stand(self.checkout, stacked, self.when)
        ended = run_command(
            self.command, self.checkout.path, variables=FRESH, shown_on=self.shown_on
        )
        if not ended.is_verdict:
            hint = (
                "it must end with 0 for good, 125 for a state to skip, another code to 124 for bad"
            )
            raise SurroundingsError(f"the command {ended.problem}: no verdict", hint=hint)
        if ended.code == _SKIP:
            return TrialVerdict.SKIPPED, "the command says so"
        return (TrialVerdict.BAD if ended.code else TrialVerdict.GOOD), ""
