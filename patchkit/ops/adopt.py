"""Adopt patch sets where they lie: a manifest of what a carrier has, with its own lists and pins.

Only the manifest is written, and the lock of tags that stand where pins do. A proposal counts by
its verdict: the patches are applied to the pin.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.adoption.carrier import Carrier
from patchkit.adoption.patch_sets import PatchSet, patch_sets
from patchkit.adoption.proposal import Adoption, propose
from patchkit.adoption.upstreams import Upstream
from patchkit.disk.transaction import recover, write_set
from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem, UsageError
from patchkit.gitcmd.object_reader import reading
from patchkit.manifest.find import FOLDER, manifests_in
from patchkit.manifest.load import inspect_manifest, load_manifest
from patchkit.manifest.values import GitSource, PinnedPatch
from patchkit.manifest.write import yaml_text
from patchkit.model.names import COMMIT_ID, is_component_name
from patchkit.model.objects import CommitId
from patchkit.model.progress import Progress
from patchkit.ops.manifest import (
    AskRefs,
    UpstreamOptions,
    choose_upstream,
    component_name_of,
    manifest_files,
    manifest_path,
    render_component,
)
from patchkit.stack.build import build_stack
from patchkit.stack.lockfile import lock_bytes, merge_lock
from patchkit.stack.series import load_series
from patchkit.upstream.git import list_refs
from patchkit.upstream.store import Store

#: Of a tag, what no version begins in.
_BEFORE_VERSION = re.compile(r".*[^\d.]")
#: How many upstreams are tried for one set.
_MOST_TRIED = 5
#: What is shorter is a name, and neither a commit id nor a hash.
_FULL = 40


class AdoptedComponent(Struct, frozen=True):
    """A component of the new manifest: how many of its patches apply at the pin.

    `where` is the place of the pin, as file:line, `value` what stands there, `problems` why patches
    do not apply.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"entry"})

    name: str
    url: str
    where: str
    value: str
    commit: CommitId
    sets: tuple[PatchSet, ...]
    patches: int
    applied: int
    problems: tuple[Problem, ...]
    entry: Mapping[str, object]  # what the manifest says of it


class Adopted(Struct, frozen=True):
    """What a carrier has. `manifest` is the file that says so, which is not `written` where there
    is nothing to say, or for a dry run; `notes` are about sets that are not in it, `older` are
    those for another version than the newest.
    """

    manifest: str
    components: tuple[AdoptedComponent, ...]
    notes: tuple[Problem, ...]
    older: tuple[PatchSet, ...]
    written: bool

    @property
    def exit_code(self) -> ExitCode:
        """FINDING where a patch does not apply, or no upstream is known for it."""
        whole = all(row.applied == row.patches for row in self.components)
        return ExitCode.OK if whole and not self.notes else ExitCode.FINDING


#: Chooses among upstreams that are as likely for a set, or None for none of them.
Choose = Callable[[PatchSet, Sequence[Upstream]], "Upstream | None"]


def adopt(
    root: Path,
    folder: str,
    name: str,
    *,
    store: Store,
    progress: Progress,
    choose: Choose | None,
    dry_run: bool,
) -> Adopted:
    """Write manifests/NAME.yaml for the patch sets in `folder` and below, "" for all of `root`.

    UsageError where there is none, or the manifest is there already.
    """
    recover(root)
    path = manifest_path(root, name)
    carrier = Carrier(root)
    sets = patch_sets(carrier, folder, _adopted_already(root))
    if not sets:
        hint = "patch sets are folders of .patch or .diff files, with or without a list of them"
        what = "no patch is here that no manifest has"
        raise UsageError(Problem(what, folder or str(root), hint))
    proposal = propose(carrier, sets)
    notes = [_homeless(*left) for left in proposal.homeless]
    rows: list[AdoptedComponent] = []
    ask = cache(list_refs)  # a repository is asked once
    lists = Counter(one.sets[0].path for one in proposal.adoptions if one.sets[0].target)
    for adoption in proposal.adoptions:
        called = _free_name(adoption, rows, several=lists[adoption.sets[0].path] > 1)
        trials = _Trials(path, called, store, progress, ask)
        trial = _best(trials, adoption, choose)
        if isinstance(trial, Problem):
            notes.append(trial)
        else:
            rows.append(trial)
    written = bool(rows) and not dry_run
    if written:
        entries = _components({row.name: row.entry for row in rows})
        texts = "".join(
            yaml_text({name: entry}) if "pins" in entry else render_component(name, entry)
            for name, entry in entries.items()
        )
        files, seen = manifest_files(root, path, f"the patches of {path.stem}", texts)
        if tags := {row.name: {row.value: row.commit} for row in rows if len(row.value) < _FULL}:
            lock = merge_lock(None, {}, names=tags)
            files[path.with_name(f"{path.stem}.lock.json")] = lock_bytes(lock)
        write_set(root, files, seen)
    shown = path.relative_to(root).as_posix()
    return Adopted(shown, tuple(rows), tuple(notes), proposal.older, written)


def _components(entries: Mapping[str, object]) -> dict[str, Any]:
    """Components as a manifest has them: those called NAME@LABEL are the pins of one."""
    found: dict[str, Any] = {}
    for name, entry in entries.items():
        family, _, label = name.partition("@")
        if label:
            found.setdefault(family, {"pins": {}})["pins"][label] = entry
        else:
            found[name] = entry
    return found


class _Trials(Struct, frozen=True):
    """Applies sets to what an upstream's pin says."""

    path: Path  # of the manifest to be
    name: str  # of the component
    store: Store
    progress: Progress
    ask: AskRefs

    def of(self, adoption: Adoption, upstream: Upstream) -> AdoptedComponent:
        """The verdict at an upstream; PatchkitError where its pin cannot be had."""
        if upstream.kind == "git":
            upstream = self._tagged(upstream)
        entry: dict[str, object] = {
            "source": {upstream.kind: upstream.url},
            "pin": dict(upstream.pin),
        }
        pin: object = entry["pin"]
        if upstream.kind == "git":
            asked = UpstreamOptions(git=upstream.url, ref=upstream.value)
            named = choose_upstream(asked, self.ask)
            pin = str(named.pin)
            entry |= {"track": named.track} if named.track else {}
        entry["patches"] = [dict(found.entry) for found in adoption.sets]
        trials = [self._applied(adoption, upstream, entry, pin)]
        if not trials[0].applied:
            trials.append(self._applied(adoption, upstream, {**entry, "strip": 0}, pin))
        return max(trials, key=lambda trial: trial.applied)

    def _tagged(self, upstream: Upstream) -> Upstream:
        """The upstream by its tag, where a version stands without what tags have before it."""
        version = upstream.value
        if COMMIT_ID.fullmatch(version):
            return upstream
        tags = self.ask(GitSource(upstream.url), "").tags
        parts = (tag.removesuffix(version) for tag in tags if tag.endswith(version))
        fitting = sorted(filter(_BEFORE_VERSION.fullmatch, parts), key=len)
        if version in tags or not fitting:
            return upstream
        pin = (*upstream.pin, ("tag", f"{fitting[0]}*"))
        return replace(upstream, value=fitting[0] + version, pin=pin)

    def _applied(
        self, adoption: Adoption, upstream: Upstream, entry: Mapping[str, object], pin: object
    ) -> AdoptedComponent:
        tried = {"version": 1, "components": _components({self.name: {**entry, "pin": pin}})}
        manifest = inspect_manifest(self.path, yaml_text(tried).encode()).require()
        [component] = manifest.components
        base = self.store.base(component, self.progress)
        series = load_series(manifest, component, self.store, self.progress, partly=True)
        with reading(self.store.repository(component)) as reader:
            stack = build_stack(reader, base, series.series_patches)
        problems = [*series.problems]
        for patch, outcome in zip(series.patches, stack.outcomes, strict=True):
            if not outcome.status.applies:
                hint = f"patchkit check -m {self.path.stem} -c {self.name}  says why"
                problems.append(Problem("does not apply at the pin", patch.where, hint))
        return AdoptedComponent(
            name=self.name,
            url=upstream.url,
            where=upstream.where,
            value=upstream.value,
            commit=base.commit,
            sets=adoption.sets,
            patches=len(stack.outcomes) + len(series.problems),
            applied=sum(outcome.status.applies for outcome in stack.outcomes),
            problems=tuple(problems),
            entry=entry,
        )


def _best(trials: _Trials, adoption: Adoption, choose: Choose | None) -> AdoptedComponent | Problem:
    """The first of the likely upstreams to which all patches apply; else the one that is chosen.

    A problem where none can be had, or none was chosen.
    """
    tried: dict[str, AdoptedComponent] = {}
    failed: list[Problem] = []
    likely = (adoption.upstream, *adoption.others)[:_MOST_TRIED]
    for upstream in likely:
        try:
            trial = trials.of(adoption, upstream)
        except PatchkitError as error:
            failed += error.problems
            continue
        if trial.applied == trial.patches:
            return trial
        if trial.applied or not failed:  # else it is more likely for one that cannot be had
            tried[upstream.where] = trial
    left = [upstream for upstream in likely if upstream.where in tried]
    chosen: Upstream | None = next(iter(left), None)
    if choose is not None and len(left) > 1:
        chosen = choose(adoption.sets[0], left)
    if chosen is not None:
        return tried[chosen.where]
    what = failed[0].what if failed else "no upstream was chosen"
    return replace(_homeless(adoption.sets[0], adoption.upstream.url), what=what)


def _adopted_already(root: Path) -> set[str]:
    """The lists, folders and patches that manifests of the project have."""
    known = set[str]()
    for path in manifests_in(root / FOLDER):
        with suppress(BadInputError):
            for component in load_manifest(path).components:
                own = (e for e in component.patches if not isinstance(e, PinnedPatch))
                known |= {entry.path for entry in own}
    return known


def _free_name(adoption: Adoption, rows: Sequence[AdoptedComponent], *, several: bool) -> str:
    """A component name: the upstream's, and where that is taken, with the sets' folders.

    Of a list for `several` versions all are pins of one component, called after the version.
    """
    first = adoption.sets[0]
    label = f"@{first.target}" if several and is_component_name(f"a@{first.target}") else ""
    others = (row for row in rows if not label or row.sets[0].path != first.path)
    taken = {row.name.partition("@")[0] for row in others}
    plain = component_name_of(adoption.upstream.name) or "upstream"
    folders = first.folder.replace("/", "-")
    numbered = (f"{plain}-{number}" for number in count(2))
    names = chain([plain, component_name_of(f"{plain}-{folders}")], numbered)
    return next(f"{name}{label}" for name in names if name and name not in taken)


def _homeless(patches: PatchSet, url: str) -> Problem:
    """Why a set is not in the manifest, and how it comes in."""
    what = "no file near it says for which commit it is" + (f", of {url}" if url else "")
    hint = "patchkit add --help  says how their upstream is added"
    return Problem(what, patches.path, hint)
