"""What a patched tree must hold: files that parsed before still do, and so for the steps of the
component's `verify`: what must be there, and what must not.

Apart from `ops/check.py`, its only user: a guard.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from patchkit.disk.result_cache import ResultCache, memory_path
from patchkit.extension import CheckedStack
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.manifest.values import RunStep, TextStep, VerifyStep
from patchkit.model.finding import Finding, Severity
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, SYMLINK_MODE, TreeId
from patchkit.model.progress import Stop
from patchkit.model.text import counted, listed
from patchkit.stack.build import Stack
from patchkit.stack.series import LoadedPatch

# Files that the stack touches and that could be parsed before must parse after. What parses is
# loaded where a file is not known to be in order.


def well_formed_files(cache: Path, manifest: Path, component: str) -> ResultCache:
    """The blobs of a component that are known to be in order: parsing outweighs all else."""
    about = [sys.version, _yaml_reader(), str(manifest), component]
    return ResultCache(memory_path(cache, "well-formed", about))


def parse_findings(
    source: Overlay, stack: Stack, patches: tuple[LoadedPatch, ...], known: ResultCache
) -> Iterator[Finding]:
    """Files that the stack broke, each at the last patch that touches it."""
    last: dict[str, LoadedPatch] = {}
    for patch, outcome in zip(patches, stack.outcomes, strict=True):
        last |= {file.path: patch for file in outcome.files if outcome.status.applies}
    before, after = TreeView(source, stack.base.tree), TreeView(source, stack.tree)
    for path, patch in sorted(last.items()):
        problem = _problem(after, path, known)
        if problem and not _problem(before, path, known):
            from patchkit.model.syntax import language_of  # noqa: PLC0415

            what = f"{path} is no {language_of(path)} with the stack applied: {problem}"
            hint = f"{patch.name} is the last patch that touches it"
            yield Finding(Severity.ERROR, "verify-parse", what, patch.where, hint)


def _problem(view: TreeView, path: str, known: ResultCache) -> str:
    """Why the file at a path is not what its name says; "" also where there is no file."""
    entry = view.tree.entry(path)
    if entry is None:
        return ""
    blob = f"{path[path.rfind('.') :]} {entry.oid}"
    if known.known(blob):
        return ""
    from patchkit.model.syntax import language_of  # noqa: PLC0415

    data = view.data(path) if language_of(path) is not None else b""
    problem = "" if data is None else parse_problem(path, data)
    # a problem is looked at again: memory or depth may have been short
    if data is not None and not problem:
        known.note(blob, answer=True)
    return problem


def parse_problem(path: str, data: bytes) -> str:
    """Why a file is not what its name says, "" if it is, or if that is not known."""
    from patchkit.model.syntax import language_of, syntax_problem  # noqa: PLC0415

    if language_of(path) == "YAML":
        from patchkit.manifest.yaml_nodes import yaml_problem  # noqa: PLC0415

        return yaml_problem(data)
    return syntax_problem(path, data)


def _yaml_reader() -> int:
    """What changes when another PyYAML is installed, without loading it."""
    found = find_spec("yaml")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).stat().st_mtime_ns


# The steps of `verify`.


#: So many places are named, the rest is counted.
_NAMED = 3


def step_findings(checked: CheckedStack, steps: Sequence[VerifyStep]) -> Iterator[Finding]:
    """What does not hold; commands are left out."""
    for step in steps:
        tree = checked.tree_after(step.after)
        if tree is None:
            have = ", ".join(each.name for each in checked.stack.outcomes) or "no patches"
            what = f"{step.title}: {step.after} is not in the stack"
            where = str(step.where)
            yield Finding(Severity.ERROR, "verify-after", what, where, f"it has {have}")
        elif isinstance(step, TextStep):
            yield from _text(step, checked.source, tree)


def _text(step: TextStep, source: Overlay, tree: TreeId) -> Iterator[Finding]:
    from patchkit.manifest.globs import Scope  # noqa: PLC0415

    files = TreeView(source, tree).contents(Scope(step.files).covers)
    where, title = str(step.where), step.title
    if not files:
        if not step.optional:
            what = f"{title}: no file is there that {' '.join(step.files)} names"
            hint = "has upstream moved them? Correct `files`, or give the reason by `optional:`"
            yield Finding(Severity.ERROR, "verify-files", what, where, hint)
        return
    places = list(_places(files, step.text.encode()))
    if step.wanted and not places:
        what = f"{title}: none of {counted(len(files), 'file')} has it"
        yield Finding(Severity.ERROR, "verify-present", what, where)
    elif places and not step.wanted:
        what = f"{title}: is at {listed(places, _NAMED)}"
        yield Finding(Severity.ERROR, "verify-absent", what, where)


def _places(files: Mapping[str, bytes], text: bytes) -> Iterator[str]:
    for path, data in files.items():
        plain = data.replace(b"\r\n", b"\n")
        position = plain.find(text)
        while position >= 0:
            yield f"{path}:{plain.count(chr(10).encode(), 0, position) + 1}"
            position = plain.find(text, position + len(text))


# Commands of `verify` steps, run in a scratch copy of the patched tree.
#
# They come from a manifest that somebody else may have written, so nothing here runs unless the
# user asks for it by a flag. A command that cannot be started, does not end or fails is a
# finding.


#: Seconds after which a command is ended.
PATIENCE = 900.0


def run_findings(checked: CheckedStack, steps: Sequence[RunStep], stop: Stop) -> Iterator[Finding]:
    """Run each command in a scratch copy of its own; what fails is a finding."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    from patchkit.gitcmd.user_command import run_command  # noqa: PLC0415

    for step in steps:
        tree = checked.tree_after(step.after)
        if tree is None:
            continue  # told by step_findings
        with TemporaryDirectory(prefix="patchkit-verify-") as folder:
            write_tree(checked.source, tree, Path(folder))
            where = Path(folder) / step.directory
            ended = run_command(step.run, where, patience=PATIENCE, stop=stop)
            output = ended.output.replace(f"{folder}/", "")
        if ended.problem:
            what = f"{step.title}: {ended.problem}" + (f": {output}" if output else "")
            yield Finding(Severity.ERROR, "verify-run", what, str(step.where))


def not_run_findings(steps: Sequence[RunStep]) -> Iterator[Finding]:
    """A note for each command that is not run."""
    for step in steps:
        what = f"not run: {step.title}"
        hint = "read it, then `patchkit check --run`"
        yield Finding(Severity.NOTE, "verify-not-run", what, str(step.where), hint)


def write_tree(source: Overlay, tree: TreeId, folder: Path) -> None:
    """Write a tree's files and symbolic links into an empty folder; submodules stay empty."""
    files = TreeView(source, tree).files()
    kinds = (FILE_MODE, EXECUTABLE_MODE, SYMLINK_MODE)
    wanted = {path: entry for path, entry in files.items() if entry.mode in kinds}
    blobs = dict(source.read_many(sorted({each.oid for each in wanted.values()}), "blob"))
    links: list[tuple[Path, bytes]] = []
    for name, entry in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.mode == SYMLINK_MODE:
            links.append((path, blobs[entry.oid]))
        else:
            path.write_bytes(blobs[entry.oid])
            path.chmod(0o755 if entry.mode == EXECUTABLE_MODE else 0o644)
    for path, target in links:  # last: nothing is written through one
        path.symlink_to(os.fsdecode(target))
