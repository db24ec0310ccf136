"""Patches of what rewrites a component: each does to the tree what the rewrite does, and is made
only where that is proved, by what we know of the command or by running it on a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from shlex import join

from msgspec import Struct

from patchkit.disk.files import scratch_folder
from patchkit.errors import Problem
from patchkit.extensions.python_guards.assigned_functions import assigned_functions
from patchkit.extensions.python_guards.guard_keys import GuardKeys
from patchkit.extensions.python_guards.modules import Modules
from patchkit.extensions.python_guards.override_review import read_replacements, resolver_of
from patchkit.extensions.python_guards.resolve import Resolver
from patchkit.extensions.python_guards.rewrite_findings import (
    carried,
    carrier_of,
    describe,
    rewritten_tree,
)
from patchkit.extensions.python_guards.rewrite_review import (
    JudgedEdit,
    RewriteVerdict,
    RewrittenTree,
    review_rewrites,
)
from patchkit.extensions.python_guards.sed_script import SedScript
from patchkit.extensions.python_guards.text_edits import EditScript, Rewrite
from patchkit.gitcmd.object_reader import write_objects
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import TreeView
from patchkit.gitcmd.user_command import run_command
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import GitObject, TreeEntry, make_object
from patchkit.model.progress import Progress
from patchkit.model.tree import Tree
from patchkit.ops.built_stack import built_stack, require_clean
from patchkit.stack.build import COMMITTER
from patchkit.stack.importing import ImportSource, patches_of
from patchkit.stack.patch_files import CommitChange
from patchkit.stack.series import ImportedPatch
from patchkit.upstream.store import Store

_PATIENCE = 60.0  # seconds that a sed may take
#: What is no reason to leave a rewrite out.
_DOES = (RewriteVerdict.FITS, RewriteVerdict.BLIND, RewriteVerdict.COUNT)


class _NotProvedError(Exception):
    """Why no patch is made of a rewrite."""


class _Making(Struct):
    """The texts as the rewrites so far leave them, and the trees that they come to."""

    tree: RewrittenTree
    run: bool  # the user lets seds run
    after: Tree
    tree_id: str
    texts: dict[str, str] = {}
    objects: list[GitObject] = []
    changes: dict[str, CommitChange] = {}
    patches: list[ImportedPatch] = []
    notes: list[Problem] = []

    def add(self, rewrite: Rewrite, where: str) -> None:
        """Do a rewrite, and keep what it does as a change; a note where that is not proved."""
        assert rewrite.script is not None
        new: dict[str, str] = {}
        for part in self.tree.parts(rewrite.target, is_name=rewrite.is_name)[0]:
            text = self.texts.get(part.file) or self.tree.text(part.file)
            try:
                if not rewrite.is_name:
                    new[part.file] = self._proved(rewrite.script, text)
                elif text.count(part.text) == 1:
                    new[part.file] = text.replace(
                        part.text, self._proved(rewrite.script, part.text)
                    )
                else:
                    raise _NotProvedError("what it rewrites was changed by another rewrite")
            except _NotProvedError as error:
                self.notes.append(Problem(f"no patch was made: {error}", where))
                return
        changed = {file: text for file, text in new.items() if text != self.tree.text(file)}
        before = self.tree_id
        for file, text in changed.items():
            entry = self.after.entry(file)
            assert entry is not None
            blob = make_object("blob", text.encode("utf-8", "surrogateescape"))
            self.objects.append(blob)
            self.after = self.after.put(file, TreeEntry(entry.mode, blob.oid))
        self.tree_id = self.after.write(self.objects)
        self.texts |= changed
        if self.tree_id != before:
            message = _message(rewrite, where, [*changed])
            others = sum(key.partition(" (")[0] == where for key in self.changes)
            key = f"{where} ({others + 1})" if others else where
            self.changes[key] = CommitChange(before, self.tree_id, message, COMMITTER)

    def _proved(self, script: EditScript, text: str) -> str:
        """What a script makes of a text; _NotProvedError where that is not certain."""
        after = script.run(text).text
        if not isinstance(script, SedScript) or not self.run:
            if not script.exact:
                how = "--run asks sed" if isinstance(script, SedScript) else "a run decides on it"
                raise _NotProvedError(f"what it writes is not certain; {how}")
            return after
        with scratch_folder() as folder:
            file = Path(folder, "file")
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
            sed = join(["sed", "--sandbox", *script.options, "-i", "-e", script.source, "file"])
            alone = "if unshare -rn true 2>/dev/null; then exec unshare -rn"
            end = run_command(f"{alone} {sed}; fi; exec {sed}", folder, patience=_PATIENCE)
            if end.code != 0:
                raise _NotProvedError(f"sed {end.problem}: {end.output}")
            if script.exact and file.read_bytes() != after.encode("utf-8", "surrogateescape"):
                raise _NotProvedError("sed does something else than it says")
            return file.read_bytes().decode("utf-8", "surrogateescape")


def _message(rewrite: Rewrite, where: str, files: list[str]) -> str:
    script = rewrite.script
    assert script is not None
    edits = "\n".join(f"    {each.anchor}" for each in script.edits)
    how = "as sed does it" if isinstance(script, SedScript) else "as Python does it"
    reason = f"{rewrite.reason}\n\n" if rewrite.reason else ""
    name = rewrite.path.rpartition("/")[2]
    return (
        f"Change {files[0].rpartition('/')[2]} as {name}:{rewrite.line} does\n\n{reason}"
        f"Made of {where}, {how}:\n\n{edits}\n\n"
        "Upstream-Status: Inappropriate [was done while the program runs]\n"
    )


def rewrite_patches(
    manifest: Manifest, component: Component, store: Store, progress: Progress, *, run: bool
) -> ImportSource:
    """A patch of each rewrite of a component that does something, one upon the other.

    The notes say what none is made of. On disk: nothing; with `run` the rewrites' seds are run on
    copies. BadInputError where the component's stack is broken.
    """
    with built_stack(manifest, component, store, progress) as built:
        require_clean(built, manifest)
        tip = built.tip
        making = _Making(rewritten_tree(tip, component), run, tip.tree, tip.oid)
        for declared in component.added(GuardKeys).rewrites:
            with carrier_of(manifest, declared, store, progress) as (carrier, _):
                all_of = carried(declared, carrier)
            progress.step(component.name, "making patches of rewrites", local=True)
            judged = review_rewrites(all_of.rewrites, making.tree, declared.meant)
            for rewrite, edits in groupby(filter(_is_its_own, judged), attrgetter("rewrite")):
                where = describe(declared, rewrite)
                wrong = [each for each in edits if each.verdict not in _DOES]
                if wrong and wrong[0].verdict is not RewriteVerdict.UPSTREAM:
                    making.notes.append(Problem(f"no patch was made: {wrong[0].why}", where))
                elif rewrite.patch is not None and not wrong:
                    name = f"{Path(rewrite.path).name}-{rewrite.line}.patch"
                    making.patches.append(ImportedPatch(name, rewrite.patch, where))
                elif not wrong:
                    making.add(rewrite, where)
        for other, rewrite in _assigned(manifest, component, tip, store, progress):
            where = f"{other}: {rewrite.place}"
            if rewrite.script is None:
                making.notes.append(Problem(f"no patch was made: {rewrite.problem}", where))
            else:
                making.add(rewrite, where)
        with overlay(store.repository(component)) as trial:
            write_objects(trial, (*built.stack.objects, *making.objects))
            made = [*patches_of(trial, making.changes)]
    return ImportSource("rewrites", (*made, *making.patches), tuple(making.notes))


def _assigned(
    manifest: Manifest, component: Component, tip: TreeView, store: Store, progress: Progress
) -> Iterator[tuple[str, Rewrite]]:
    """What other components assign over functions of this one, each with the name of who does."""
    for other in manifest.components:
        for declared in other.added(GuardKeys).overrides:
            if declared.target != component.name:
                continue
            with built_stack(manifest, other, store, progress) as built:
                calls = read_replacements(declared, manifest.root, built.tip)
                own = Resolver(Modules(built.tip.files(), built.tip.data))
                target = resolver_of(declared, tip)
                for each in assigned_functions(calls, declared.packages, own, target):
                    yield other.name, each


def _is_its_own(edit: JudgedEdit) -> bool:
    """Whether a verdict is about an edit of a file of this component, for itself."""
    is_elsewhere = edit.verdict is RewriteVerdict.UNKNOWN and not edit.file
    return edit.verdict is not RewriteVerdict.TWICE and not is_elsewhere
