"""What a CI job asks: do the patches apply to their pins, and how long will they?

Here the work on many manifests is also cut into jobs, and their results are joined into one.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, ExitCode, Problem, worst
from patchkit.manifest.find import FOLDER
from patchkit.manifest.values import Component, Manifest
from patchkit.ops.check_report import (
    BrokenManifest,
    CheckReport,
    Chosen,
    ComponentCheck,
)
from patchkit.ops.drift import ComponentDrift, DriftReport
from patchkit.ops.version_matrix import VersionMatrix
from patchkit.parallel import return_memory, share_memory


class CiReport(Struct, frozen=True):
    """A check and a drift of the same manifests.

    With `drift_allowed` what the tracked branches did is reported, and fails nothing.
    """

    check: CheckReport
    drift: DriftReport
    drift_allowed: bool = False

    @property
    def versions(self) -> tuple[VersionMatrix, ...]:
        """Which pin has which patches, where a component has several: now, and at the tips."""
        drift = (replace(each, component=f"{each.component} drift") for each in self.drift.versions)
        return (*self.check.versions, *drift)

    @property
    def exit_code(self) -> ExitCode:
        """The worst of both."""
        drift = self.drift.exit_code
        if self.drift_allowed and drift is ExitCode.FINDING:
            drift = ExitCode.OK
        return worst([self.check.exit_code, drift])


def check_and_drift(
    check: Callable[[], CheckReport],
    look: Callable[..., DriftReport],
    *,
    drift_allowed: bool,
    checked: Callable[[CheckReport], None],
    drifted: Callable[[str, ComponentDrift], None],
) -> CiReport:
    """What a check and a look at drift say, which are done at once.

    `check` is `check_manifests` with all its arguments; `look` is `look_for_drift`, which gets
    `known` and `first` here. `checked` gets what the check found before `drifted` gets any
    component's drift.
    """
    share_memory()
    found: CheckReport | None = None
    early: list[tuple[str, ComponentDrift]] = []  # known before the check is
    telling = Lock()

    def check_first() -> None:
        nonlocal found
        report = check()
        return_memory()
        with telling:
            found = report
            checked(report)
            for name, drift in early:
                drifted(name, drift)

    def tell(name: str, drift: ComponentDrift) -> None:
        with telling:
            if found is None:
                early.append((name, drift))
            else:
                drifted(name, drift)

    drift = look(known=tell, first=check_first)
    assert found is not None
    return CiReport(found, drift, drift_allowed)


# Joining the results of the jobs of a CI matrix: one report, one exit code, no job missing.


class Share(Struct, frozen=True):
    """One run's result, by the name of its file; a run that ended in an error has none."""

    name: str
    check: CheckReport | None = None  # None where the run was another one
    drift: DriftReport | None = None  # None where the run was another one
    drift_allowed: bool = False  # --allow-drift of that run
    failed: BrokenManifest | None = None  # the error in which it ended, None for none
    expected: tuple[str, ...] = ()  # of a matrix: what its jobs look at (`Job.looks_at`)


def merge_reports(shares: Sequence[Share]) -> CiReport:
    """One report of all shares; what is expected and in none of them is a problem of its own.

    Drift fails nothing only where every share that looked for it says so. BadInputError for a
    component that two shares looked at.
    """
    checks = [share.check for share in shares if share.check is not None]
    drifts = [share.drift for share in shares if share.drift is not None]
    _require_once(shares)
    read = [share.check or share.drift for share in shares]
    # every job that could not read a manifest says the same of it
    broken = dict.fromkeys(each for found in read if found is not None for each in found.broken)
    failed = [share.failed for share in shares if share.failed is not None]
    missing = _missing(shares)
    check = CheckReport(
        strict=any(each.strict for each in checks),
        components=(*(c for each in checks for c in each.components), *missing),
        broken=(*broken, *failed),
        retired=tuple(dict.fromkeys(why for each in checks for why in each.retired)),
        versions=tuple(matrix for each in checks for matrix in each.versions),
    )
    drift = DriftReport(
        components=tuple(c for each in drifts for c in each.components),
        versions=tuple(matrix for each in drifts for matrix in each.versions),
    )
    allowed = [share.drift_allowed for share in shares if share.drift is not None]
    return CiReport(check, drift, bool(allowed) and all(allowed))


def _require_once(shares: Sequence[Share]) -> None:
    problems = []
    for kind in ("check", "drift"):
        seen: Counter[tuple[str, str]] = Counter()
        for share in shares:
            found = share.check if kind == "check" else share.drift
            for each in found.components if found is not None else ():
                key = (each.manifest, each.name)
                seen[key] += 1
                if seen[key] == 2:
                    what = f"{each.manifest}: {each.name} is in another file, too"
                    problems.append(Problem(what, share.name, "give each job's result once"))
    if problems:
        raise BadInputError(*problems)


def _missing(shares: Sequence[Share]) -> Iterator[ComponentCheck]:
    """What no share looked at: a job that died leaves no result, and must not pass for good."""
    read = [found for share in shares for found in (share.check, share.drift) if found is not None]
    seen = {f"{each.manifest}: {each.name}" for found in read for each in found.components}
    unread = {each.manifest for found in read for each in found.broken}
    for each in dict.fromkeys(each for share in shares for each in share.expected):
        manifest, _, component = each.partition(": ")
        if each not in seen and manifest not in unread:
            hint = "its job did not come to an end: see its log"
            problem = Problem("no file has a result for it", each, hint)
            environment = ExitCode.ENVIRONMENT
            yield ComponentCheck(manifest, component, "", environment, problems=(problem,))


# Cut the work on many manifests into jobs that a CI system runs at once.


#: So many jobs a CI system takes in one matrix: GitHub 256, GitLab 200.
MOST_JOBS = 200

#: A new one makes every job begin with an empty cache.
_CACHE_FORM = "patchkit-1"


class Job(Struct, frozen=True):
    """A part of the work: one component of one manifest, or several whole manifests.

    `name` is unique and fit for a file's name; `options` are those of `patchkit ci`. `looks_at` has
    a "MANIFEST: COMPONENT" for each component of it. `cache` is a key for what the job fetches: the
    same as long as its pins are; `cache_like` is how keys of jobs on the same upstreams begin.
    `manifest` and `component` are "" where it has several.
    """

    name: str
    manifest: str
    component: str
    options: str
    looks_at: tuple[str, ...]
    cache: str
    cache_like: str


class MatrixReport(Struct, frozen=True):
    """All jobs, and the manifests that could not be read: no job looks at these."""

    jobs: tuple[Job, ...]
    broken: tuple[BrokenManifest, ...] = ()  # manifests that could not be read

    @property
    def exit_code(self) -> ExitCode:
        """The worst of the broken manifests."""
        return worst(each.exit_code for each in self.broken)


def plan_jobs(
    chosen: Chosen,
    broken: Sequence[BrokenManifest],
    *,
    folder: Path,
    most: int,
    only: Sequence[str],
    pins_apart: bool,
) -> MatrixReport:
    """One job for each component; where these are more than `most`, manifests share jobs whole.

    `folder` is where the jobs will run; `only` are the components that were asked for, () for all.
    The pins of one component are shown side by side, and so have one job unless `pins_apart`.
    """
    asked = {manifest.path: _asked(manifest, folder) for manifest, _ in chosen}
    kin = attrgetter("name" if pins_apart else "family")
    parts = [(m, list(pins)) for m, each in chosen for _, pins in groupby(each, kin)]
    if len(parts) <= most:
        jobs = tuple(
            _job([part], asked, [pin.name for pin in part[1]], _called(part[1])) for part in parts
        )
    else:
        jobs = tuple(_job(share, asked, only) for share in _shares(chosen, most))
    return MatrixReport(_with_names(jobs), tuple(broken))


def _job(share: Chosen, asked: Mapping[Path, str], only: Sequence[str], component: str = "") -> Job:
    """What looks at some whole manifests, or at one `component` of one."""
    components = [component for _, each in share for component in each]
    more = f"-and-{len(share) - 1}-more" if len(share) > 1 else ""
    return Job(
        name=f"{share[0][0].name}{f'-{component}' if component else more}",
        manifest=asked[share[0][0].path] if len(share) == 1 else "",
        component=component,
        options=" ".join(
            [
                *(f"--manifest {asked[manifest.path]}" for manifest, _ in share),
                *(f"--component {name}" for name in only),
            ]
        ),
        looks_at=tuple(f"{manifest.name}: {c.name}" for manifest, each in share for c in each),
        cache_like=_like(components),
        cache=_like(components) + _digest(map(_contents, components)),
    )


def _called(pins: Sequence[Component]) -> str:
    """What a component is called, at one pin or at several."""
    return pins[0].name if len(pins) == 1 else pins[0].family


def _shares(chosen: Chosen, most: int) -> Iterator[Chosen]:
    """The manifests in at most `most` runs of neighbours, each with as many."""
    size = -(-len(chosen) // most)
    return (chosen[at : at + size] for at in range(0, len(chosen), size))


def _asked(manifest: Manifest, folder: Path) -> str:
    """How `--manifest` names it in `folder`: by name where that is enough, else by path."""
    inside = manifest.path.is_relative_to(folder)
    path = manifest.path.relative_to(folder) if inside else manifest.path
    asked = manifest.name if path.parent == Path(FOLDER) else path.as_posix()
    if re.search(r"[^\w./+=@:-]", asked, re.ASCII):
        what = f"{asked} has characters in its name that a job's options cannot pass on"
        raise BadInputError(Problem(what, hint="letters, digits and . _ - are good in any system"))
    return asked


def _with_names(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs with names that fit a file's, each another one."""
    seen: Counter[str] = Counter()
    named = []
    for job in jobs:
        name = re.sub(r"[^a-z0-9._-]+", "-", job.name.lower()).strip("-.")
        seen[name] += 1
        named.append(replace(job, name=f"{name}-{seen[name]}" if seen[name] > 1 else name))
    return tuple(named)


def _like(components: Sequence[Component]) -> str:
    upstreams = sorted({repr(component.source) for component in components})
    return f"{_CACHE_FORM}-{_digest(upstreams)}-"


def _contents(component: Component) -> str:
    """What of a component decides on what is fetched for it."""
    files = [(each.commit, each.path, each.sha256) for each in component.references]
    return repr((component.pin, component.track, files))


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogateescape")).hexdigest()[:12]
