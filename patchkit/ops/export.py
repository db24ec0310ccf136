"""Write a component's whole stack for other tools: a quilt series, or a mailbox for `git am`.

What is written comes from the stack's trees, not from the patch files: every diff is exact on the
one before, whatever the files' own form, strip level or place (files of other repositories too).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct

from patchkit.atomic import replace_file, write_folder
from patchkit.errors import BadInputError, ExitCode, Problem, UsageError
from patchkit.export import Deed, canonical_diffs, plain_diffs
from patchkit.gitcmd.objects import reading, write_objects
from patchkit.gitcmd.overlay import overlay
from patchkit.manifest.values import Component, Manifest
from patchkit.model.mail import format_header
from patchkit.model.patch import Header
from patchkit.model.progress import Progress
from patchkit.refresh.planning import deeds_of
from patchkit.series import load_series
from patchkit.stack import build_stack
from patchkit.store import Store

# What `git format-patch` writes, so that mail programs and `git am` know what this is.
_FROM_LINE = "From %s Mon Sep 17 00:00:00 2001\n"


class Form(str, Enum):
    """What to write."""

    QUILT = "quilt"  # a folder with a series file and patches
    MBOX = "mbox"  # one file, a mail per patch


class ExportReport(Struct, frozen=True):
    """What was written to `target`: the names of the `patches`, in order.

    `tree` is the tree that they give on `base`. `skipped` are patches that change no file.
    """

    component: str
    form: Form
    target: Path
    base: str
    tree: str
    patches: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class _Exported(Struct, frozen=True):
    name: str
    commit: str
    deed: Deed
    diff: bytes

    @property
    def text(self) -> bytes:
        return format_header(Header(self.deed.message, self.deed.author)) + self.diff


def export_component(
    manifest: Manifest,
    component: Component,
    form: Form,
    target: Path,
    *,
    store: Store,
    progress: Progress,
) -> ExportReport:
    """Write a component's stack to `target`, which must not be there yet (or be an empty folder).

    Raises BadInputError where a patch does not apply, or cannot be written in that form.
    """
    _require_free(form, target)
    base = store.base(component, progress)
    series = load_series(manifest, component, store, progress)
    repository = store.repository(component)
    with overlay(repository) as trial, reading(trial) as reader:
        stack = build_stack(reader, base, series.series_patches)
        if not stack.clean:
            bad = next(each for each in stack.outcomes if not each.status.applies)
            hint = f"patchkit check {manifest.options(component.name)}"
            raise BadInputError(Problem(f"{bad.name} does not apply", component.name, hint))
        write_objects(trial, stack.objects)
        deeds = deeds_of(stack, series.patches)
        pairs = [(deed.before, deed.after) for deed in deeds.values()]
        # GNU patch, which quilt runs, takes a rename apart wrongly where no line changes
        diffs = plain_diffs(trial, pairs) if form is Form.QUILT else canonical_diffs(trial, pairs)
    commits = {each.name: each.commit or "" for each in stack.outcomes}
    exported = [
        _Exported(name, commits[name], deed, diff)
        for (name, deed), diff in zip(deeds.items(), diffs, strict=True)
    ]
    _WRITERS[form](target, exported)
    return ExportReport(
        component.name,
        form,
        target,
        base.commit,
        stack.tree,
        tuple(deeds),
        tuple(each.name for each in series.patches if each.name not in deeds),
    )


def _require_free(form: Form, target: Path) -> None:
    empty = form is Form.QUILT and target.is_dir() and not any(target.iterdir())
    if (target.exists() or target.is_symlink()) and not empty:
        raise UsageError(f"{target} is there already", hint="name a new place")


def _write_quilt(target: Path, patches: Sequence[_Exported]) -> None:
    problems = [
        Problem(f"{each.name} changes a binary file, which quilt cannot do", hint="use --mbox")
        for each in patches
        if b"\nGIT binary patch\n" in each.diff
    ]
    if problems:
        raise BadInputError(*problems)
    series = {"series": "".join(f"{each.name}\n" for each in patches).encode()}
    write_folder(target, {each.name: each.text for each in patches} | series)


def _write_mbox(target: Path, patches: Sequence[_Exported]) -> None:
    mails = ((_FROM_LINE % each.commit).encode() + each.text + b"\n" for each in patches)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, b"".join(mails), named=True)


_WRITERS = {Form.QUILT: _write_quilt, Form.MBOX: _write_mbox}
