"""Write a component's whole stack for other tools: a quilt series, or a mailbox for `git am`.

What is written comes from the stack's trees, not from the patch files: every diff is exact on the
one before, whatever the files' own form, strip level or place (files of other repositories too).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import replace_file, write_folder
from patchkit.errors import BadInputError, ExitCode, Problem, UsageError
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.scratch import overlay
from patchkit.manifest.values import Component, Manifest
from patchkit.model.header import format_header
from patchkit.model.mailinfo import format_author
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.patch import Header, HeaderForm, Identity, PatchFile
from patchkit.model.progress import Progress
from patchkit.refresh.patch_plan import commit_changes
from patchkit.stack.build import build_stack
from patchkit.stack.patch_files import canonical_diffs, plain_diffs
from patchkit.stack.series import load_series
from patchkit.upstream.store import Store

# The line above a mail, as git mailsplit knows it.
_FROM_LINE = re.compile(rb"^From .*\d:\d\d.* \d{2,4}[^\n]*\n", re.MULTILINE)


def _from_line(commit: str) -> bytes:
    """What `git format-patch` writes, so that mail programs and `git am` know what this is."""
    return f"From {commit} Mon Sep 17 00:00:00 2001\n".encode()


class Form(str, Enum):
    """What to write."""

    QUILT = "quilt"  # a folder with a series file and patches
    MBOX = "mbox"  # one file, a mail per patch


class ExportReport(Struct, frozen=True):
    """What was written to `target`: the names of the `patches`, in order.

    `tree` is the tree that they give on `base`. `skipped` are patches that change no file,
    `unsendable` those in a mailbox whose own From: or Date: `git am` does not take.
    """

    component: str
    form: Form
    target: Path
    base: CommitId
    tree: TreeId
    patches: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    unsendable: tuple[str, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class _Exported(Struct, frozen=True):
    """A patch to write: its file, with another diff."""

    name: str
    commit: str
    file: PatchFile
    diff: bytes

    @property
    def text(self) -> bytes:
        """The user's text above the diff, to the byte; nothing is added where there is none."""
        return self.file.preamble + self.diff + self.file.signature

    def mail(self, author: Identity | None) -> bytes:
        """The same as a mail for `git am`, by `author` where the patch names none.

        What is no mail yet gets the lines that make it one, above the text that it has.
        """
        header = self.file.header
        if header is not None and header.author is not None:
            author = header.author
        text = self.file.preamble.lstrip(b"\r\n")
        gap = self.file.preamble[: len(self.file.preamble) - len(text)]
        own = _FROM_LINE.match(text)
        head, text = (own[0], text[own.end() :]) if own else (_from_line(self.commit), text)
        if self.file.form is not HeaderForm.MAIL:
            head += format_header(Header(self._subject, author))
        elif header is not None and header.author is None and author is not None:
            head += f"From: {format_author(author)}\n".encode("utf-8", "surrogateescape")
        # a mailbox is cut wherever such a line stands
        text = _FROM_LINE.sub(rb">\g<0>", text)
        return gap + head + text + self.diff + self.file.signature + b"\n"

    @property
    def sendable(self) -> bool:
        """Whether git am takes the fields that the patch has: address and date."""
        header = self.file.header
        if self.file.form is not HeaderForm.MAIL or header is None or header.author is None:
            return True
        dated = re.search(rb"^Date:", self.file.preamble, re.MULTILINE | re.IGNORECASE)
        return bool(header.author.email) and (not dated or bool(header.author.date))

    @property
    def _subject(self) -> str:
        subject = self.file.header.subject.strip() if self.file.header is not None else ""
        return subject or self.name.removesuffix(".patch")


def export_component(
    manifest: Manifest,
    component: Component,
    form: Form,
    target: Path,
    *,
    author: Identity | None = None,
    store: Store,
    progress: Progress,
) -> ExportReport:
    """Write a component's stack to `target`, which must not be there yet (or be an empty folder).

    `author` is whose the patches of a mailbox are that name no author. Raises BadInputError where a
    patch does not apply, or cannot be written in that form.
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
        changes = commit_changes(stack, series.patches)
        pairs = [(change.before, change.after) for change in changes.values()]
        # GNU patch, which quilt runs, takes a rename apart wrongly where no line changes
        diffs = plain_diffs(trial, pairs) if form is Form.QUILT else canonical_diffs(trial, pairs)
    commits = {each.name: each.commit or "" for each in stack.outcomes}
    files = {each.name: each.file for each in series.patches}
    exported = [
        _Exported(name, commits[name], files[name], diff)
        for name, diff in zip(changes, diffs, strict=True)
    ]
    if form is Form.QUILT:
        _write_quilt(target, exported)
    else:
        _write_mbox(target, exported, author)
    return ExportReport(
        component.name,
        form,
        target,
        base.commit,
        stack.tree,
        tuple(changes),
        tuple(each.name for each in series.patches if each.name not in changes),
        tuple(each.name for each in exported if form is Form.MBOX and not each.sendable),
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


def _write_mbox(target: Path, patches: Sequence[_Exported], author: Identity | None) -> None:
    headers = ((each.name, each.file.header) for each in patches)
    hint = "name one above its diff (From: or Author:), or for all such: --author 'NAME <ADDRESS>'"
    problems = [
        Problem(f"{name} names no author, without which git am takes no mail", hint=hint)
        for name, header in headers
        if author is None and (header is None or header.author is None)
    ]
    if problems:
        raise BadInputError(*problems)
    mails = (each.mail(author) for each in patches)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, b"".join(mails), named=True)
