"""What `check` and `drift` say of text that is rewritten: what looks for something in vain."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.disk.files import read_plain, unless_gone
from patchkit.disk.result_cache import code_digest, memory_path, recall_as, remember
from patchkit.extension import CheckedStack, CheckRun, WatchedLine
from patchkit.extensions.python_guards.guard_keys import GuardKeys, Rewrites
from patchkit.extensions.python_guards.line_findings import Question, since
from patchkit.extensions.python_guards.rewrite_review import (
    JudgedEdit,
    RewriteVerdict,
    RewrittenTree,
    is_meant,
    review_rewrites,
)
from patchkit.extensions.python_guards.rewriters import RewriterFiles, read_rewrites
from patchkit.extensions.python_guards.text_edits import UNKNOWN, Rewrite
from patchkit.gitcmd.first_parent import blobs_of
from patchkit.gitcmd.trees import TreeView
from patchkit.manifest.globs import Scope
from patchkit.manifest.values import Component, GitSource, Manifest
from patchkit.model.finding import Finding, Severity
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack
from patchkit.upstream.history import tree_of
from patchkit.upstream.store import Store

#: They may do anything to what they test.
_TESTS = ("**/test_*.py", "**/conftest.py")
_MEANT = "say what is meant under `rewrites.meant`"
_ERRORS = (RewriteVerdict.GONE, RewriteVerdict.LINE)
_HINTS = {
    RewriteVerdict.GONE: "adapt it, or delete it; `meant` with a `reason` lets it be",
    RewriteVerdict.LINE: "give it the line that it means, or the text that stands there",
    RewriteVerdict.COUNT: f"make what it looks for longer, or {_MEANT}: `hits`",
    RewriteVerdict.TWICE: "make one of both, or a patch",
    RewriteVerdict.UPSTREAM: "delete it: upstream, or a patch, has what it writes",
    RewriteVerdict.BLIND: f"{_MEANT}: `text` that stands in the first of these lines",
    RewriteVerdict.UNKNOWN: f"{_MEANT}: the `path` of the file, or a `reason` to let it be",
    RewriteVerdict.FITS: "look at the line by hand",
}


class CarriedRewrites(Struct, frozen=True):
    """What one entry of the manifest leads to: rewrites, and what is not to be read."""

    declared: Rewrites
    rewrites: Sequence[Rewrite]
    findings: Sequence[Finding]


@contextmanager
def carrier_of(
    manifest: Manifest, declared: Rewrites, store: Store, progress: Progress
) -> Iterator[tuple[RewriterFiles, object]]:
    """The files that an entry names, and what they follow from; fetches the component that has them
    if the project has not.
    """
    covers = Scope(declared.files, _TESTS).covers
    other = manifest.component(declared.carrier) if declared.carrier else None
    if other is None:
        paths = sorted(_project_files(manifest.root))
        own = RewriterFiles(paths, [*filter(covers, paths)], partial(_own, manifest.root))
        contents = {each: sha256(own.read(each) or b"").hexdigest() for each in own.chosen}
        yield own, [paths, contents]
        return
    with built_stack(manifest, other, store, progress) as built:
        paths = sorted(built.tip.files())
        yield RewriterFiles(paths, [*filter(covers, paths)], built.tip.data), built.stack.tree


def _project_files(root: Path) -> Iterator[str]:
    """The files of a project, but for other repositories in it, and hidden folders."""
    for folder, folders, names in os.walk(root, onerror=unless_gone):
        here = Path(folder)
        folders[:] = [n for n in folders if n[0] != "." and not (here / n / ".git").exists()]
        yield from ((here / name).relative_to(root).as_posix() for name in names)


def _own(root: Path, path: str) -> bytes | None:
    try:
        return read_plain(root / path, inside=root)
    except OSError:
        return None


def carried(declared: Rewrites, carrier: RewriterFiles) -> CarriedRewrites:
    """What the files of an entry rewrite."""
    rewrites, findings = read_rewrites(carrier)
    if not carrier.chosen:
        what, hint = "`rewrites` names no file that is there", "correct `files`, or `from`"
        findings.append(Finding(Severity.ERROR, "rewrite-files", what, str(declared.where), hint))
    return CarriedRewrites(declared, rewrites, findings)


def rewritten_tree(view: TreeView, component: Component) -> RewrittenTree:
    """A component's tree, under all names that it may have elsewhere."""
    source = component.source
    url = source.url if isinstance(source, GitSource) else ""
    return RewrittenTree(view, {component.family, Path(url).name.removesuffix(".git")})


def rewrite_findings(checked: CheckedStack, run: CheckRun) -> Iterator[Finding]:
    """Rewrites of a component that do not do what is meant, in its tree with its patches."""
    manifest, component, tip = checked.manifest, checked.component, checked.stack.tree
    for declared in component.added(GuardKeys).rewrites:
        with carrier_of(manifest, declared, run.store, run.progress) as (carrier, state):
            facts = [code_digest("extensions/python_guards"), state, tip, repr(declared)]
            path = memory_path(run.store.cache, "rewrites", facts)
            found = recall_as(path, tuple[Finding, ...])
            if found is None:
                tree = rewritten_tree(TreeView(checked.source, tip), component)
                found = tuple(_findings(carried(declared, carrier), tree))
                remember(path, to_builtins(found))
        yield from found


def _findings(all_of: CarriedRewrites, tree: RewrittenTree) -> Iterator[Finding]:
    yield from all_of.findings
    declared = all_of.declared
    for edit in review_rewrites(all_of.rewrites, tree, declared.meant):
        if edit.verdict is not RewriteVerdict.FITS:
            yield _finding(edit, declared)
    for entry in declared.meant:
        if not any(is_meant(entry, rewrite) for rewrite in all_of.rewrites):
            what, where = f"no rewrite has `{entry.anchor}`", str(entry.where)
            yield Finding(Severity.WARNING, "rewrite-unused", what, where, "delete the entry")


def _finding(edit: JudgedEdit, declared: Rewrites) -> Finding:
    where = describe(declared, edit.rewrite)
    severity = Severity.ERROR if edit.verdict in _ERRORS else Severity.WARNING
    if edit.verdict is RewriteVerdict.UNKNOWN and not edit.file:
        severity = Severity.NOTE
    return Finding(
        severity, f"rewrite-{edit.verdict.value}", _words(edit), where, _HINTS[edit.verdict],
        about=f"{declared.carrier} rewrites {edit.file}: {edit.anchor}",
    )  # fmt: skip


def describe(declared: Rewrites, rewrite: Rewrite) -> str:
    """Where a rewrite is written, with the component that has the file."""
    return f"{declared.carrier}: {rewrite.place}" if declared.carrier else rewrite.place


def _words(edit: JudgedEdit) -> str:
    anchor = " ".join(edit.anchor.split())
    shown = anchor if len(anchor) <= 60 else f"{anchor[:57]}..."
    target = edit.rewrite.target.replace(UNKNOWN, "?")
    return f"{edit.file or target}: `{shown}`: {edit.why}"


# Along the line to a newer commit: what fits at the pin, and does not there.


class _Standing(Struct, frozen=True):
    """What becomes of an edit in a tree; `says` are the lines there that it names by numbers, None
    if it does nothing.
    """

    edit: JudgedEdit
    says: Sequence[bytes] | None


class _Moved(Struct, frozen=True):
    """The rewrites of one entry, on their way to newer trees."""

    carried: CarriedRewrites
    component: Component

    def standings(
        self, view: TreeView, rewrites: Sequence[Rewrite]
    ) -> dict[tuple[Rewrite, int], _Standing]:
        """What becomes of each edit of the rewrites in a tree."""
        found: dict[tuple[Rewrite, int], _Standing] = {}
        tree = rewritten_tree(view, self.component)
        for each in review_rewrites(rewrites, tree, self.carried.declared.meant):
            script, says = each.rewrite.script, None
            if each.verdict in _GOOD:
                is_named = script is not None and script.edits[each.number].numbers
                says = [view.lines(each.file)[n - 1] for n in each.lines] if is_named else []
            found[each.rewrite, each.number] = _Standing(each, says)
        return found

    def question(self, old: _Standing) -> Question:
        """The file that decides, and what is asked of a tree."""

        def is_moved(view: TreeView) -> bool:
            rewrite = old.edit.rewrite
            new = self.standings(view, [rewrite]).get((rewrite, old.edit.number))
            return new is not None and new.says != old.says

        return old.edit.file, is_moved


_GOOD = (RewriteVerdict.FITS, RewriteVerdict.BLIND)


def moved_rewrites(line: WatchedLine) -> Iterator[Finding]:
    """What rewrites look for at the pin, and find no more at the tip."""
    along, component = line.along, line.component
    reader, history = along.reader, along.history
    pinned, tip = (TreeView(reader, tree_of(reader, c)) for c in (history.pin, history.tip))
    line.progress.step(component.name, "looking for what is rewritten", local=True)
    for declared in component.added(GuardKeys).rewrites:
        with carrier_of(line.manifest, declared, line.store, line.progress) as (carrier, _):
            all_of = carried(declared, carrier)
        for view in (pinned, tip):
            paths = rewritten_tree(view, component).files_for(all_of.rewrites)
            along.bring(blobs_of(view.files()[path] for path in sorted(paths)))
        moving = _Moved(all_of, component)
        known, now = (moving.standings(view, all_of.rewrites) for view in (pinned, tip))
        moved = [
            (old, now[key])
            for key, old in known.items()
            if old.says is not None and key in now and now[key].says != old.says
        ]
        questions = [moving.question(old) for old, _ in moved]
        for (_, new), by in zip(moved, since(along, pinned, questions), strict=True):
            found, verdict, more = _finding(new.edit, declared), new.edit.verdict.value, ""
            if new.says is not None:
                verdict, more = "line", "the line that it names is another"
            yield replace(
                found,
                severity=Severity.WARNING,
                code=f"rewrite-{verdict}-upstream",
                what=f"{found.what}{more}",
                by=by,
            )
