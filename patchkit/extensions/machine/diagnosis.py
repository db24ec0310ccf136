"""Compare this machine with what a manifest asks for, and the manifest with its components.

Changes nothing and asks no network: of components, only what is in the cache is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.errors import BadInputError, ExitCode, SurroundingsError
from patchkit.extensions.machine.ascend import AscendHost
from patchkit.extensions.machine.compatibility import (
    FINDINGS,
    RELOCK,
    Diagnosis,
    MachineVerdict,
    diagnose_packages,
    diagnose_profile,
    diagnose_python,
    diagnose_software,
    diagnose_variables,
    diagnose_wishes,
)
from patchkit.extensions.machine.lock import (
    ARCHITECTURES,
    EnvironmentLock,
    rendered_locks,
)
from patchkit.extensions.machine.site_values import GivenValue, resolve_site
from patchkit.extensions.machine.topic import Topic
from patchkit.extensions.machine.wishes import read_wishes
from patchkit.gitcmd.process import MINIMUM_GIT, require_git
from patchkit.gitcmd.target_python import TargetPython, ask_python, run_program
from patchkit.manifest.values import (
    SYSTEM_SOFTWARE,
    Environment,
    Manifest,
    normal_name,
    whole_environment,
)
from patchkit.model.names import filled, referred
from patchkit.model.objects import lines_of
from patchkit.model.progress import Progress
from patchkit.upstream.requirements import followed
from patchkit.upstream.store import Store


class MachineView(Struct, frozen=True):
    """How to look at this machine: the Python, where the checkouts are, and what is there."""

    python: str
    workspace: Path
    host: AscendHost  # with the shell's variables


class DoctorReport(Struct, frozen=True):
    """What was looked at, in order; `python` is the Python whose packages were.

    A diagnosis says what the manifest wants and what was found; `uncertain` is what could not be
    found out, and `note` what is known and harmless: neither is a finding.
    """

    manifest: str
    python: str
    diagnoses: tuple[Diagnosis, ...] = ()  # in the order of the manifest

    @property
    def exit_code(self) -> ExitCode:
        """FINDING for anything wrong or missing."""
        found = any(diagnosis.verdict in FINDINGS for diagnosis in self.diagnoses)
        return ExitCode.FINDING if found else ExitCode.OK


def examine(
    manifest: Manifest,
    view: MachineView,
    store: Store,
    progress: Progress,
    *,
    topics: Sequence[Topic] = tuple(Topic),
    given: Sequence[GivenValue] = (),
) -> DoctorReport:
    """Look at the topics. Raises BadInputError for site values that cannot be."""
    environment = whole_environment(manifest)
    found: list[Diagnosis] = []
    if Topic.SYSTEM in topics or Topic.PACKAGES in topics:
        found += _programs(manifest, environment, view, topics)
    if Topic.VARIABLES in topics:
        found += _variables(manifest, environment, view, given)
    if Topic.METADATA in topics:
        found += _metadata(manifest, store, progress)
    return DoctorReport(manifest.name, view.python, tuple(dict.fromkeys(found)))


def _programs(
    manifest: Manifest, environment: Environment, view: MachineView, topics: Sequence[Topic]
) -> Iterator[Diagnosis]:
    python = ask_python(view.python)
    if Topic.SYSTEM in topics:
        yield from _git()
        for name, specifier in environment.versions.items():
            if normal_name(name) == "python":
                yield diagnose_python(specifier, python, view.python)
            elif normal_name(name) in SYSTEM_SOFTWARE:
                yield diagnose_software(normal_name(name), specifier, view.host)
    if Topic.PACKAGES in topics:
        if isinstance(python, TargetPython):
            yield from diagnose_packages(environment, python)
            if environment.versions:
                yield from _pip_check(manifest, environment, python)
        else:
            yield Diagnosis(
                Topic.PACKAGES,
                "packages",
                MachineVerdict.UNCERTAIN,
                "installed packages",
                python,
                view.python,
                "name the Python of the stack with --python",
            )


#: A line of `pip check`: whose requirement it is, and of what.
_BROKEN = re.compile(r"(\S+) \S+ (?:requires|has requirement) ([\w.-]+)")


def _pip_check(
    manifest: Manifest, environment: Environment, python: TargetPython
) -> Iterator[Diagnosis]:
    """What `pip check` says of the packages of a Python.

    A note where the manifest wants it so: it leaves the package out, or installs the component
    that asks for it with --no-deps.
    """
    left = {normal_name(name) for name in environment.unsupported}
    alone = {
        normal_name(component.name)
        for component in manifest.components
        if not followed(component.install)
    }

    def verdict(line: str) -> MachineVerdict:
        broken = _BROKEN.match(line)
        meant = broken and (normal_name(broken[1]) in alone or normal_name(broken[2]) in left)
        return MachineVerdict.NOTE if meant else MachineVerdict.WRONG

    answer = run_program([python.path, "-m", "pip", "check"])
    if isinstance(answer, str) or not answer.stdout:
        why = answer if isinstance(answer, str) else answer.stderr.strip().rpartition("\n")[2]
        found = {why: MachineVerdict.UNCERTAIN}
    elif answer.returncode == 0:
        found = {"no conflict": MachineVerdict.OK}
    else:
        found = {line: verdict(line) for line in lines_of(answer.stdout)}
    for what, how in found.items():
        yield Diagnosis(Topic.PACKAGES, "pip check", how, found=what)


def _git() -> Iterator[Diagnosis]:
    """What is wrong with the git that patchkit runs; nothing if it will do."""
    wanted = ">=" + ".".join(map(str, MINIMUM_GIT))
    try:
        require_git()
    except SurroundingsError as error:
        problem = error.problems[0]
        yield Diagnosis(
            Topic.SYSTEM, "git", MachineVerdict.MISSING, wanted, problem.what, advice=problem.hint
        )


def _variables(
    manifest: Manifest,
    environment: Environment,
    view: MachineView,
    given: Sequence[GivenValue],
) -> Iterator[Diagnosis]:
    values = dict(resolve_site(manifest, given).values)
    values["workspace"] = str(view.workspace)

    def known(text: str) -> str | None:
        return filled(text, values) if all(n in values for n in referred(text)) else None

    variables = {name: known(text) for name, text in environment.variables.items()}
    paths = {
        name: [folder for written in folders if (folder := known(written)) is not None]
        for name, folders in environment.paths.items()
    }
    yield from diagnose_variables(variables, paths, view.host.environment)


def _metadata(manifest: Manifest, store: Store, progress: Progress) -> Iterator[Diagnosis]:
    """What is asked for beside the locks that are rendered; without one, beside the manifest."""
    environment = whole_environment(manifest)
    yield from diagnose_profile(environment.versions, manifest.path.name)
    wishes = read_wishes(manifest, store, progress)
    for problem in wishes.unknown:
        told = (MachineVerdict.UNCERTAIN, "", problem.what, "", problem.hint)
        yield Diagnosis(Topic.METADATA, problem.where, *told)
    try:
        python = wishes.python()
    except BadInputError as error:
        yield Diagnosis(Topic.METADATA, "python", MachineVerdict.WRONG, found=str(error))
        return
    locks = [*rendered_locks(manifest.root / "rendered" / manifest.name)]
    for lock in locks or [EnvironmentLock(ARCHITECTURES[0], python)]:
        if not (lock.python and wishes.allow(lock.python)):
            wanted = environment.versions.get("python", "")
            found = f"{lock.file} is for Python {lock.python or '?'}"
            told = (MachineVerdict.WRONG, wanted, found, "", RELOCK)
            yield Diagnosis(Topic.METADATA, "python", *told)
            continue
        markers = {
            "python_version": lock.python,
            "python_full_version": f"{lock.python}.0",
            "sys_platform": "linux",
            "platform_system": "Linux",
            "platform_machine": lock.architecture,
            "extra": "",
        }
        yield from diagnose_wishes(wishes, environment.unsupported, lock, markers)
