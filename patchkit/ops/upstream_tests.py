"""`test`: upstream's own tests, with and without the patches: what broke of what passed.

    {"version": 1, "components": {"megatron-lm": {
        "base": "<commit>", "run": "<the command>",
        "unpatched": {"tests.unit.test_a::test_one": "passed"}, "patched": {...}}}}

Beside the manifest as `<name>.tests.json`, written by `--learn` only. Tests are named as JUnit
names them: class, two colons, name. A name that stands for several has the worst of their results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import msgspec
from msgspec import Struct, to_builtins

from patchkit.disk.files import LARGEST_PATCH, read_plain, replace_file
from patchkit.errors import BadInputError, ExitCode, Problem, SurroundingsError, UsageError
from patchkit.machine.user_command import run_command
from patchkit.manifest.values import Component, Manifest, UpstreamTests
from patchkit.model.progress import Progress
from patchkit.ops.bisect import FRESH, own_checkout, stand
from patchkit.ops.stacks import BuiltStack, built_stack, require_clean
from patchkit.upstream.store import Store
from patchkit.workspace.checkout import OWN_FOLDER, locked_file
from patchkit.workspace.enter import Stacked

_VERSION = 1
#: The variable that tells a command where its JUnit file goes.
VARIABLE = "PATCHKIT_JUNIT"

#: From best to worst.
_OUTCOMES = ("passed", "skipped", "failed")
_HINT = "it is written by: patchkit test --learn"


class TestsResult(str, Enum):
    """What became of a component's tests."""

    LEARNT = "learnt"
    PASSED = "passed"  # whatever passed when it was learnt does so still
    BROKEN = "broken"
    NOT_LEARNT = "not learnt"  # run, with nothing to compare


class TestedComponent(Struct, frozen=True):
    """What a component's tests came to.

    `counts` are of the run with patches: outcome -> how many. `broken` passed when they were learnt
    and do not any more, `missing` of them are not run at all now; `broken_by_upstream` fail without
    the patches, too. `mended` did not pass when they were learnt. `only_patched` are, of `--learn`,
    those that fail with the patches and pass without.
    """

    name: str
    result: TestsResult
    base: str
    counts: Mapping[str, int]
    broken: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    broken_by_upstream: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    only_patched: tuple[str, ...] = ()


class TestReport(Struct, frozen=True):
    """What the components' tests came to; `record` is the file of what was learnt."""

    manifest: str
    record: Path
    components: tuple[TestedComponent, ...]

    @property
    def exit_code(self) -> ExitCode:
        """A finding where a test broke that passed, or where nothing was learnt and one fails."""
        bad = any(
            each.result is TestsResult.BROKEN
            or (each.result is TestsResult.NOT_LEARNT and each.counts.get("failed"))
            for each in self.components
        )
        return ExitCode.FINDING if bad else ExitCode.OK


class Learnt(Struct, frozen=True, forbid_unknown_fields=True):
    """What one component's tests came to when they were learnt, by test."""

    base: str
    run: str
    unpatched: dict[str, str]
    patched: dict[str, str]


class _Record(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    components: dict[str, Learnt]


class TestTools(Struct, frozen=True):
    """What running tests needs; `when` names saved work, `shown_on` takes what commands write."""

    store: Store
    workspace: Path
    when: int
    shown_on: int | None
    progress: Progress


def run_upstream_tests(
    manifest: Manifest,
    components: Sequence[Component],
    tools: TestTools,
    *,
    learn: bool,
    junit: Path | None = None,
) -> TestReport:
    """Run the tests of the components that have some, with their patches.

    With `learn` without them, too, and both are written to the record. Else a test that broke is
    run without the patches, to see whose fault it is. On disk: checkouts in the workspace's own
    folder; with `junit` what the last command wrote. UsageError where no component has tests,
    SurroundingsError where a command writes no JUnit file.
    """
    chosen = [each for each in components if each.upstream_tests is not None]
    if not chosen:
        hint = "say how to run them under `upstream_tests:` of a component"
        raise UsageError(f"{manifest.path.name}: no tests of upstream's are named", hint=hint)
    path = manifest.path.with_name(f"{manifest.name}.tests.json")
    record = read_record(path)
    rows = []
    for component in chosen:
        run = _Run(manifest, component, tools, junit)
        row, learnt = run.all(record.get(component.name), learn=learn)
        rows.append(row)
        if learn:
            record[component.name] = learnt
    if learn:
        data = to_builtins(_Record(_VERSION, dict(sorted(record.items()))))
        replace_file(path, json.dumps(data, indent=1, sort_keys=True).encode() + b"\n")
    return TestReport(manifest.name, path, tuple(rows))


class _Run(Struct, frozen=True):
    manifest: Manifest
    component: Component
    tools: TestTools
    junit: Path | None

    def all(self, learnt: Learnt | None, *, learn: bool) -> tuple[TestedComponent, Learnt]:
        tools, name = self.tools, self.component.name
        lock = tools.workspace.absolute() / OWN_FOLDER / f"tests-{self.manifest.name}-{name}.lock"
        tests = self.component.upstream_tests
        assert tests is not None
        with (
            locked_file(lock, lock.with_suffix("")),
            built_stack(self.manifest, self.component, tools.store, tools.progress) as built,
        ):
            require_clean(built, self.manifest)
            patched = self._outcomes(built, tests, patched=True)
            base = built.stack.base.commit
            before = _broken(learnt, patched) if learnt and not learn else ()
            unpatched = self._outcomes(built, tests, patched=False) if learn or before else {}
        now = Learnt(base, tests.run, unpatched, patched)
        return (_learnt(name, now) if learn else _compared(name, now, learnt)), now

    def _outcomes(
        self, built: BuiltStack, tests: UpstreamTests, *, patched: bool
    ) -> dict[str, str]:
        """Run the command, with the patches or without; test -> outcome."""
        tools, stack, name = self.tools, built.stack, self.component.name
        checkout = own_checkout(tools.workspace, "tests", f"{self.manifest.name}+{name}")
        tip = stack.commit if patched else stack.base.commit
        repository = tools.store.repository(self.component)
        stand(checkout, Stacked(stack.base.commit, tip, stack.objects, repository), tools.when)
        how = "with the patches" if patched else "without the patches"
        tools.progress.step(name, f"running upstream's tests {how}", local=True)
        with TemporaryDirectory(prefix="patchkit-test-") as folder:
            file = Path(folder) / "junit.xml"
            ended = run_command(
                tests.run,
                checkout.path / tests.directory,
                variables={**FRESH, **tests.variables, VARIABLE: str(file)},
                shown_on=tools.shown_on,
            )
            try:
                data = read_plain(file, most=LARGEST_PATCH)
                outcomes = read_junit(data)
            except (OSError, ValueError) as error:
                why = f"{ended.problem or 'ends well'}, and writes no JUnit: {error}"
                hint = f'let it write to ${VARIABLE}: pytest --junitxml="${VARIABLE}"'
                where = str(tests.where)
                raise SurroundingsError(Problem(f"the command {why}", where, hint)) from error
        if patched and self.junit is not None:
            replace_file(self.junit, data, named=True)
        return outcomes


def _learnt(name: str, now: Learnt) -> TestedComponent:
    only = tuple(
        test
        for test, outcome in sorted(now.unpatched.items())
        if outcome == "passed" and now.patched.get(test) != "passed"
    )
    counts = _counts(now.patched)
    return TestedComponent(name, TestsResult.LEARNT, now.base, counts, only_patched=only)


def _compared(name: str, now: Learnt, learnt: Learnt | None) -> TestedComponent:
    if learnt is None:
        return TestedComponent(name, TestsResult.NOT_LEARNT, now.base, _counts(now.patched))
    broken = _broken(learnt, now.patched)
    mended = (
        t for t, o in now.patched.items() if o == "passed" and learnt.patched.get(t) == "failed"
    )
    return TestedComponent(
        name,
        TestsResult.BROKEN if broken else TestsResult.PASSED,
        now.base,
        _counts(now.patched),
        broken=broken,
        missing=tuple(each for each in broken if each not in now.patched),
        broken_by_upstream=tuple(each for each in broken if now.unpatched.get(each) != "passed"),
        mended=tuple(sorted(mended)),
    )


def _broken(learnt: Learnt, now: Mapping[str, str]) -> tuple[str, ...]:
    """What passed when it was learnt and does not now."""
    passed = (test for test, outcome in learnt.patched.items() if outcome == "passed")
    return tuple(sorted(test for test in passed if now.get(test) != "passed"))


def _counts(outcomes: Mapping[str, str]) -> dict[str, int]:
    found = list(outcomes.values())
    return {each: found.count(each) for each in _OUTCOMES if each in found}


def read_junit(data: bytes) -> dict[str, str]:
    """Test -> "passed", "skipped" or "failed" (errors, too), of JUnit XML; ValueError if none.

    Entities are refused: no writer of JUnit needs any, and a few may stand for any number of bytes.
    """
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ValueError("it has a document type")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, LookupError, RecursionError) as error:
        raise ValueError(f"no XML: {error}") from error
    if root.tag not in ("testsuites", "testsuite"):
        raise ValueError(f"its root is {root.tag!r}")
    found: dict[str, str] = {}
    for case in root.iter("testcase"):
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        marks = {each.tag for each in case}
        outcome = "failed" if marks & {"failure", "error"} else "passed"
        outcome = "skipped" if outcome == "passed" and "skipped" in marks else outcome
        found[name] = max(found.get(name, "passed"), outcome, key=_OUTCOMES.index)
    return found


def read_record(path: Path) -> dict[str, Learnt]:
    """What was learnt, by component; nothing without a file. BadInputError if it is damaged."""
    try:
        record = msgspec.json.decode(read_plain(path), type=_Record)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise BadInputError(Problem(f"cannot be read: {error}", str(path), _HINT)) from error
    if record.version != _VERSION:
        raise BadInputError(Problem(f"version {record.version}", str(path), _HINT))
    return dict(record.components)
