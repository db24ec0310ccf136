"""Cut the work on many manifests into jobs that a CI system runs at once."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, ExitCode, Problem, worst
from patchkit.manifest.find import FOLDER
from patchkit.manifest.values import Component, Manifest
from patchkit.ops.check_report import BrokenManifest

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
    broken: tuple[BrokenManifest, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The worst of the broken manifests."""
        return worst(each.exit_code for each in self.broken)


def plan_jobs(
    chosen: Sequence[tuple[Manifest, Sequence[Component]]],
    broken: Sequence[BrokenManifest] = (),
    *,
    folder: Path,
    most: int = MOST_JOBS,
    only: Sequence[str] = (),
) -> MatrixReport:
    """One job for each component; where these are more than `most`, manifests share jobs whole.

    `folder` is where the jobs will run; `only` are the components that were asked for, () for all.
    """
    asked = {manifest.path: _asked(manifest, folder) for manifest, _ in chosen}
    pairs = [(manifest, component) for manifest, each in chosen for component in each]
    if len(pairs) <= most:
        jobs = tuple(_component_job(m, component, asked[m.path]) for m, component in pairs)
    else:
        jobs = tuple(_manifests_job(share, asked, only) for share in _shares(chosen, most))
    return MatrixReport(_with_names(jobs), tuple(broken))


def _component_job(manifest: Manifest, component: Component, asked: str) -> Job:
    return Job(
        name=f"{manifest.name}-{component.name}",
        manifest=asked,
        component=component.name,
        options=f"--manifest {asked} --component {component.name}",
        looks_at=(f"{manifest.name}: {component.name}",),
        cache_like=_like([component]),
        cache=_like([component]) + _digest([_contents(component)]),
    )


def _manifests_job(
    share: Sequence[tuple[Manifest, Sequence[Component]]],
    asked: Mapping[Path, str],
    only: Sequence[str],
) -> Job:
    components = [component for _, each in share for component in each]
    more = f"-and-{len(share) - 1}-more" if len(share) > 1 else ""
    return Job(
        name=f"{share[0][0].name}{more}",
        manifest=asked[share[0][0].path] if len(share) == 1 else "",
        component="",
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


def _shares(
    chosen: Sequence[tuple[Manifest, Sequence[Component]]], most: int
) -> Iterator[Sequence[tuple[Manifest, Sequence[Component]]]]:
    """The manifests in at most `most` runs of neighbours, each with about as many components."""
    total = sum(len(each) for _, each in chosen)
    share: list[tuple[Manifest, Sequence[Component]]] = []
    done = made = 0
    for number, pair in enumerate(chosen):
        share.append(pair)
        done += len(pair[1])
        left = len(chosen) - number - 1
        if done * most >= total * (made + 1) or left < most - made - 1:
            yield share
            share, made = [], made + 1
    if share:
        yield share


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
