"""`test`: upstream's own tests, with and without the patches: what broke of what passed.

    {"version": 1, "components": {"megatron-lm": {
        "base": "<commit>", "run": "<the command>",
        "unpatched": {"tests.unit.test_a::test_one": "passed"}, "patched": {...}}}}

Beside the manifest as `<name>.tests.json`, written by `--accept` only. Tests are named as JUnit
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
from patchkit.errors import (
    BadInputError,
    ExitCode,
    OfComponents,
    PatchkitError,
    Problem,
    SurroundingsError,
)
from patchkit.gitcmd.user_command import run_command
from patchkit.manifest.values import Component, Manifest, UpstreamTests
from patchkit.model.decoding import from_json
from patchkit.model.objects import CommitId
from patchkit.model.progress import Progress
from patchkit.model.text import counted
from patchkit.ops.built_stack import BuiltStack, built_stack, require_clean
from patchkit.upstream.store import Store
from patchkit.workspace.checkout import OWN_FOLDER, Checkout, locked_file
from patchkit.workspace.enter import Action, Stacked, enter_stack

_VERSION = 1
#: The variable that tells a command where its JUnit file goes.
VARIABLE = "PATCHKIT_JUNIT"
#: Two states may have a file of one size within one second: Python would take the bytecode of the
#: one for the other's.
FRESH = {"PYTHONDONTWRITEBYTECODE": "1"}

# What upstream's own tests came to.


class TestsResult(str, Enum):
    """What became of a component's tests."""

    LEARNT = "learnt"
    PASSED = "passed"  # whatever passed when it was learnt does so still
    BROKEN = "broken"
    NOT_LEARNT = "not learnt"  # run, with nothing to compare
    FAILED = "failed"  # not run to an end: see `problems`


class TestedComponent(Struct, frozen=True):
    """What a component's tests came to.

    `counts` are of the run with patches: outcome -> how many. `broken` passed when they were learnt
    and do not any more, `missing` of them are not run at all now; `broken_by_upstream` fail without
    the patches, too. `mended` did not pass when they were learnt. `only_patched` are, of
    `--accept`, those that fail with the patches and pass without.
    """

    name: str  # in the manifest
    result: TestsResult  # what they came to as a whole
    base: CommitId  # the upstream commit below the patches
    counts: Mapping[str, int]
    broken: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    broken_by_upstream: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    only_patched: tuple[str, ...] = ()
    exit_code: ExitCode = ExitCode.OK
    problems: tuple[Problem, ...] = ()


class TestReport(OfComponents, Struct, frozen=True):
    """What the components' tests came to; `record` is the file of what was learnt."""

    manifest: str  # its name
    record: Path
    components: tuple[TestedComponent, ...]


#: From best to worst.
_OUTCOMES = ("passed", "skipped", "failed")
_HINT = "create it with: patchkit check --only tests --accept"
_UNEXPLAINED = "the exit code counts: 0, or 1 to 125 where the file has a test that failed"


class Learnt(Struct, frozen=True, forbid_unknown_fields=True):
    """What one component's tests came to when they were learnt, by test."""

    base: CommitId  # the upstream commit on which they ran
    run: str  # the command
    unpatched: dict[str, str]  # test -> outcome without the patches
    patched: dict[str, str]  # test -> outcome with them


class _Record(Struct, frozen=True, forbid_unknown_fields=True):
    version: int  # of the file's format
    components: dict[str, Learnt]  # by name


class TestTools(Struct, frozen=True):
    """What running tests needs; `when` names saved work, `shown_on` takes what commands write."""

    store: Store
    workspace: Path  # the folder that holds the checkouts
    when: int
    shown_on: int | None
    progress: Progress


def run_upstream_tests(
    manifest: Manifest,
    components: Sequence[Component],
    tools: TestTools,
    *,
    learn: bool,
    junit: Path | None,
) -> TestReport:
    """Run the tests of the components that have some, with their patches.

    With `learn` without them, too, and both are written to the record. Else a test that broke is
    run without the patches, to see whose fault it is. A component whose command writes no JUnit
    file, or ends badly without a failed test in it, or whose stack cannot be built, is FAILED; the
    others go on. On disk: checkouts in the
    workspace's own folder; with `junit` what the commands wrote, as one file.
    """
    path = manifest.path.with_name(f"{manifest.name}.tests.json")
    record = read_record(path)
    rows, written = list[TestedComponent](), dict[str, bytes]()
    for component in components:
        if component.upstream_tests is None:
            continue
        run = _Run(manifest, component, tools, written)
        try:
            row, learnt = run.all(record.get(component.name), learn=learn)
        except (BadInputError, SurroundingsError) as error:
            rows.append(_failed(component.name, error))
            continue
        rows.append(row)
        if learn:
            record[component.name] = learnt
    if any(each.result is TestsResult.LEARNT for each in rows):
        data = to_builtins(_Record(_VERSION, dict(sorted(record.items()))))
        replace_file(path, json.dumps(data, indent=1, sort_keys=True).encode() + b"\n")
    if junit is not None and written:
        replace_file(junit, merged_junit(written), named=True)
    return TestReport(manifest.name, path, tuple(rows))


def own_checkout(workspace: Path, purpose: str, name: str) -> Checkout:
    """A checkout of patchkit's own for a purpose, below the workspace's own folder."""
    folder = workspace.absolute() / OWN_FOLDER / purpose
    return Checkout(folder, folder / name, name)


def stand(checkout: Checkout, stacked: Stacked, when: int) -> None:
    """Bring a checkout of patchkit's own to a stack, whatever a command did to it."""
    checkout.workspace.mkdir(parents=True, exist_ok=True)
    entered = enter_stack(checkout, stacked, when=when, force=True)
    if entered.action is Action.REFUSED:
        hint = f"delete {checkout.path}: it is patchkit's own"
        raise SurroundingsError(f"{checkout.path} cannot be moved", hint=hint)


class _Run(Struct, frozen=True):
    manifest: Manifest
    component: Component
    tools: TestTools  # what running tests needs
    #: Component -> the JUnit file of its patched run; filled.
    written: dict[str, bytes]

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
        failed = counted(_counts(outcomes).get("failed", 0), "test")
        if not ended.is_verdict or (ended.code and "failed" not in outcomes.values()):
            what = f"the command {ended.problem}, and its JUnit file has {failed} that failed"
            raise SurroundingsError(Problem(what, str(tests.where), _UNEXPLAINED))
        if patched:
            self.written[name] = data
        return outcomes


def _failed(name: str, error: PatchkitError) -> TestedComponent:
    return TestedComponent(
        name,
        TestsResult.FAILED,
        CommitId(""),
        {},
        exit_code=error.exit_code,
        problems=error.problems,
    )


def _learnt(name: str, now: Learnt) -> TestedComponent:
    only = tuple(
        test
        for test, outcome in sorted(now.unpatched.items())
        if outcome == "passed" and now.patched.get(test) != "passed"
    )
    counts = _counts(now.patched)
    return TestedComponent(name, TestsResult.LEARNT, now.base, counts, only_patched=only)


def _compared(name: str, now: Learnt, learnt: Learnt | None) -> TestedComponent:
    counts = _counts(now.patched)
    if learnt is None:
        code = ExitCode.FINDING if counts.get("failed") else ExitCode.OK
        return TestedComponent(name, TestsResult.NOT_LEARNT, now.base, counts, exit_code=code)
    broken = _broken(learnt, now.patched)
    mended = (
        t for t, o in now.patched.items() if o == "passed" and learnt.patched.get(t) == "failed"
    )
    return TestedComponent(
        name,
        TestsResult.BROKEN if broken else TestsResult.PASSED,
        now.base,
        counts,
        exit_code=ExitCode.FINDING if broken else ExitCode.OK,
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


def merged_junit(files: Mapping[str, bytes]) -> bytes:
    """One JUnit file of several: component -> file. The only one stays as it is.

    Suites are named after component and suite; of the cases nothing changes.
    """
    if len(files) == 1:
        return next(iter(files.values()))
    merged = ElementTree.Element("testsuites")
    for component, data in files.items():
        root = ElementTree.fromstring(data)
        for suite in [root] if root.tag == "testsuite" else root.findall("testsuite"):
            suite.set("name", ": ".join(filter(None, (component, suite.get("name")))))
            merged.append(suite)
    text: bytes = ElementTree.tostring(merged, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


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
        record = from_json(read_plain(path), _Record)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise BadInputError(Problem(f"cannot be read: {error}", str(path), _HINT)) from error
    if record.version != _VERSION:
        raise BadInputError(Problem(f"version {record.version}", str(path), _HINT))
    return dict(record.components)
