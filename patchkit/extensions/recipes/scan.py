"""Sites that rules name and no patch covers, against the baseline: accepted, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import bytes_at
from patchkit.disk.transaction import write_set
from patchkit.errors import ExitCode, OfComponents, UsageError
from patchkit.extensions.recipes.residual_sites import (
    ResidualSite,
    Review,
    ReviewState,
    Scan,
    baseline_bytes,
    baseline_path,
    lint_rules,
    load_baseline,
    review_sites,
    scan_tree,
    with_reviewed,
)
from patchkit.extensions.recipes.rule_keys import ScanKeys
from patchkit.manifest.globs import Scope, check_glob
from patchkit.manifest.values import Component, Manifest
from patchkit.model.finding import Finding
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack, require_clean
from patchkit.upstream.store import Store


class ResidualOptions(Struct, frozen=True):
    """What to look at, and what to record.

    `paths` are globs, `rules` ids of rules; () for all. `accept`: record the chosen sites, with
    `reason`. `record`: note new ones as known. `today` decides what is over.
    """

    today: date
    paths: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    accept: bool = False
    record: bool = False
    reason: str = ""


class ComponentResidual(Struct, frozen=True):
    """The sites of one component that no patch covers.

    `rules` are the ids of all that was looked for in `files` files; `sites` those that were asked
    for. `new`, `expired`, `known` and `reviewed` count all sites, `unmatched` has the
    places of entries that match none; `accepted` and `recorded` what was written there.
    """

    component: str
    baseline: str
    rules: tuple[str, ...]
    files: int
    sites: tuple[ResidualSite, ...]
    new: int
    expired: int
    known: int
    reviewed: int
    unmatched: tuple[str, ...]
    accepted: int = 0
    recorded: int = 0
    findings: tuple[Finding, ...] = ()  # rules none of whose files is there

    @property
    def exit_code(self) -> ExitCode:
        """A finding where a person has to look."""
        return ExitCode.FINDING if self.new or self.expired or self.findings else ExitCode.OK


class ResidualReport(OfComponents, Struct, frozen=True):
    """Every component that has rules to look for."""

    manifest: str  # its name
    components: tuple[ComponentResidual, ...]


def find_residual(
    manifest: Manifest,
    components: Sequence[Component],
    options: ResidualOptions,
    store: Store,
    progress: Progress,
) -> ResidualReport:
    """Look through the patched trees of the components that have rules.

    On disk: with `accept` or `record` the baselines, all or none. BadInputError if a rule,
    baseline or stack is broken; UsageError for the id of a rule that none has.
    """
    _require_sense(options)
    found: list[ComponentResidual] = []
    writes, seen = dict[Path, bytes | None](), dict[Path, bytes | None]()
    for component in components:
        scan = _scanned(manifest, component, store, progress)
        if scan is None:
            continue
        path = manifest.root / baseline_path(component)
        seen[path] = bytes_at(path)
        baseline = load_baseline(manifest.root, baseline_path(component))
        before = after = review_sites(scan.sites, baseline, options.today)
        if options.accept or options.record:
            chosen = [site for site in before.sites if _is_chosen(site, options)]
            changed = with_reviewed(baseline, chosen, options.reason)
            after = review_sites(scan.sites, changed, options.today)
            if changed != baseline:
                writes[path] = baseline_bytes(changed)
        found.append(_judged(component, scan, before, after, options))
    known = {rule for each in found for rule in each.rules}
    if unknown := [rule for rule in options.rules if rule not in known]:
        hint = f"there are {', '.join(sorted(known))}" if known else ""
        raise UsageError(*(f"{rule}: no such rule" for rule in unknown), hint=hint)
    if writes:
        write_set(manifest.root, writes, seen)
    return ResidualReport(manifest.name, tuple(found))


def _scanned(
    manifest: Manifest, component: Component, store: Store, progress: Progress
) -> Scan | None:
    """The sites of one component; None if it has no rule."""
    with built_stack(manifest, component, store, progress) as built:
        named = component.added(ScanKeys).residual.rules
        rules = lint_rules(manifest.root, named, built.series.patches)
        if not rules:
            return None
        require_clean(built, manifest)
        progress.step(component.name, "scanning", local=True)
        scan = scan_tree(store.cache, built.source, built.stack.tree, rules)
    progress.finish(component.name, "scanned")
    return scan


def _judged(
    component: Component, scan: Scan, before: Review, after: Review, options: ResidualOptions
) -> ComponentResidual:
    counts = {state: after.count(state) for state in ReviewState}
    return ComponentResidual(
        component=component.name,
        baseline=baseline_path(component),
        rules=scan.rules,
        files=scan.files,
        sites=tuple(site for site in after.sites if _is_chosen(site, options)),
        new=counts[ReviewState.NEW],
        expired=counts[ReviewState.EXPIRED],
        known=counts[ReviewState.KNOWN],
        reviewed=counts[ReviewState.REVIEWED],
        unmatched=tuple(str(each.where) for each in after.unmatched),
        accepted=counts[ReviewState.REVIEWED] - before.count(ReviewState.REVIEWED),
        recorded=max(counts[ReviewState.KNOWN] - before.count(ReviewState.KNOWN), 0),
        findings=scan.findings,
    )


def _is_chosen(site: ResidualSite, options: ResidualOptions) -> bool:
    if options.rules and site.rule not in options.rules:
        return False
    return not options.paths or Scope(options.paths).covers(site.path)


def _require_sense(options: ResidualOptions) -> None:
    for glob in options.paths:
        complaint = check_glob(glob)
        if complaint is not None:
            raise UsageError(f"{glob} {complaint.what}", hint=complaint.hint)
    if options.record and (options.accept or options.reason.strip()):
        hint = "--record notes sites without a review; --accept --reason ... reviewed ones"
        raise UsageError("--record takes no reason", hint=hint)
    if options.accept and not options.reason.strip():
        raise UsageError("--accept needs a reason", hint='--reason "why these may stay"')
