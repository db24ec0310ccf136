"""Patches from elsewhere: a folder, a list of patches, a mailbox, commits.

Each source gives patches with a wish for a name. A file that can be read as it is comes through to
the byte; only a mail in a transfer encoding, and what has no file yet, is rewritten.
"""

from __future__ import annotations

import email
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import files_in, read_given
from patchkit.errors import BadInputError, PatchkitError, Problem, UsageError
from patchkit.gitcmd.repository import Repository
from patchkit.manifest.values import LocalSeries, Location
from patchkit.model.header import format_header
from patchkit.model.mail import mails_of, parse_patch
from patchkit.model.names import is_listed_name, is_patch_name, new_name, slug
from patchkit.model.patch import Header
from patchkit.model.repair import without_returns
from patchkit.model.series_file import Series
from patchkit.stack.damage import PatchRepair
from patchkit.stack.patch_files import CommitChange, canonical_diffs, named_author
from patchkit.stack.patch_lists import parse_list
from patchkit.stack.series import ImportedPatch

_ENDINGS = (".patch", ".diff", ".txt", ".eml")
#: How names of files end that may list patches, of which no other format is known.
_LISTS = ("", ".conf")
_NUMBER = re.compile(r"^(?:v\d+-)?\d{2,5}[-_. ]+(?=[A-Za-z0-9])")
_FROM_LINE = re.compile(rb"^From .*\d\d:\d\d:\d\d.*\d{4}[^\n]*\n", re.MULTILINE)
_ENCODED = re.compile(
    rb"^Content-Transfer-Encoding:[ \t]*(?:base64|quoted-printable)", re.IGNORECASE | re.MULTILINE
)
#: How git format-patch begins the names of a series.
_NUMBERED = re.compile(r"(?:v\d+-)?(\d{1,9})[-_. ]")


class ImportSource(Struct, frozen=True):
    """What a source holds; `kind` is a word for it, `notes` say what was left out.

    `damaged` is what is wrong with patches that cannot be read. `mended` are files of the series
    itself as they were before they were damaged, `repairs` what was done.
    """

    kind: str
    patches: tuple[ImportedPatch, ...]  # in the order of application
    notes: tuple[Problem, ...] = ()
    damaged: tuple[Problem, ...] = ()
    mended: Mapping[Path, bytes] = {}
    repairs: tuple[PatchRepair, ...] = ()


def read_source(source: Path, *, strip: int, raw: bool = False) -> ImportSource:
    """The patches at a path that is no repository.

    `strip` leading folders go from the paths of a patch that a series says nothing of. With `raw`
    they are not looked at yet (see `readable`).

    UsageError if there is nothing to read, BadInputError if no patch of it can be read.
    """
    found = _raw(source)
    filled = (p if p.strip is not None else replace(p, strip=strip) for p in found.patches)
    found = replace(found, patches=tuple(filled))
    return found if raw else readable(found)


def with_free_names(
    patches: Sequence[ImportedPatch], taken: Collection[str]
) -> list[ImportedPatch]:
    """The patches with valid names that are neither in `taken` nor twice, whatever the case."""
    used = {name.casefold() for name in taken}
    named = []
    for patch in patches:
        kept = patch.listed and is_listed_name(patch.name)
        name = patch.name if kept else _valid_name(patch.name.rpartition("/")[2])
        if name.casefold() in used:
            name = new_name(name.removesuffix(".patch"), used)
        used.add(name.casefold())
        named.append(replace(patch, name=name))
    return named


def _valid_name(wish: str) -> str:
    stem = wish
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    stem = _NUMBER.sub("", stem)
    name = f"{stem}.patch"
    return name if is_patch_name(name) else f"{slug(stem)}.patch"


def _raw(source: Path) -> ImportSource:
    """What a source holds, not looked at yet."""
    if not source.exists():
        raise UsageError(f"{source}: no such file or folder")
    files = [source]
    if source.is_dir():
        files = [*files_in(source, "*"), source / "patches" / "series"]
    lists = [listed for path in files if (listed := list_at(path, meant=source.is_file()))]
    if source.is_file() and not lists:
        return ImportSource(*_file(source))
    if not lists:
        return ImportSource("folder", _folder(source))
    if len(lists) > 1:
        names = ", ".join(Path(entry.path).name for entry, _ in lists)
        hint = f"patchkit import {lists[0][0].path}  goes by that one"
        raise UsageError(Problem(f"several files list patches: {names}", str(source), hint))
    [(entry, series)] = lists
    notes = (*series.left_out, *series.unusable)
    if not series.names and not notes:
        raise UsageError(f"{source} lists no patch")
    return ImportSource("list of patches", tuple(_listed(entry, series)), notes)


def list_at(
    path: Path, *, meant: bool = False, target: str = "", root: Path | None = None
) -> tuple[LocalSeries, Series] | None:
    """What a file lists, and where its patches are; None if most of them are not there.

    What is `meant` is a list wherever they are, if its name tells the format. `root` is the folder
    that files which it includes may be in; by default its own.
    """
    where = Location((root or path.parent) / path.name, 1)
    entry = LocalSeries(str(path), where, target=target)
    meant = path.name == "series" or (meant and entry.kind != "quilt")
    if (entry.kind == "quilt" and path.suffix not in _LISTS) or not path.is_file():
        return None
    try:
        series = parse_list(read_given(path), entry)
    except BadInputError:
        if meant:
            raise
        return None
    folders = {
        folder: sum(Path(folder, name).is_file() for name in series.names)
        for folder in _folders_near(entry)
    }
    best = max(folders, key=lambda folder: folders[folder])
    entry = entry if best == entry.folder else replace(entry, within=best)
    return (entry, series) if meant or 2 * folders[best] > len(series.names) else None


def _folders_near(entry: LocalSeries) -> list[str]:
    """Where a list's patches may be: as it says, in a folder beside it, or in rpm's."""
    outer = Path(entry.path).parent
    inner = [str(path) for path in files_in(outer, "*") if path.is_dir()]
    return [entry.folder, *inner, str(outer.parent / "SOURCES")]


def _listed(entry: LocalSeries, series: Series) -> Iterator[ImportedPatch]:
    """The patches of a list, whose names may have folders."""
    for row in series.entries:
        path = Path(entry.folder, row.name)
        yield ImportedPatch(row.name, read_given(path), row.name, row.strip, listed=True)


def _file(source: Path) -> tuple[str, tuple[ImportedPatch, ...]]:
    data = read_given(source)
    starts = [match.start() for match in _FROM_LINE.finditer(data)]
    if not starts or starts[0] != 0:
        return "patch", (ImportedPatch(source.name, data, str(source)),)
    ends = [*starts[1:], len(data)]
    mails = [without_returns(data[start:end]) for start, end in zip(starts, ends, strict=True)]
    return "mailbox", tuple(
        ImportedPatch("", mail, f"{source} (mail {number})") for number, mail in enumerate(mails, 1)
    )


def _folder(folder: Path) -> tuple[ImportedPatch, ...]:
    there = {
        path.name: path
        for path in folder.iterdir()
        if path.is_file() and path.suffix in (".patch", ".diff")
    }
    names = [*there] if len(there) < 2 else by_number(there)
    if names is None:
        hint = f"name them in {folder / 'series'} as they apply, one a line"
        raise UsageError(
            Problem("nothing says in which order its patches apply", str(folder), hint)
        )
    if not names:
        raise UsageError(f"{folder} holds no .patch or .diff file")
    return tuple(ImportedPatch(name, read_given(there[name]), str(there[name])) for name in names)


def by_number(names: Collection[str]) -> list[str] | None:
    """Names in the order of the numbers that each begins with; None where these give none."""
    numbers = {name: int(m[1]) for name in names if (m := _NUMBERED.match(name))}
    distinct = len({*numbers.values()}) == len(names)
    return sorted(numbers, key=numbers.__getitem__) if distinct else None


def readable(source: ImportSource, *, partly: bool = False) -> ImportSource:
    """Its patches, decoded where need be; BadInputError if none can be read, unless `partly`."""
    found: list[ImportedPatch] = []
    problems = [*source.damaged]
    for patch in source.patches:
        try:
            found += _checked(patch)
        except PatchkitError as error:
            problems += error.problems if partly else map(_to_repair, error.problems)
    if problems and not found and not partly:
        raise BadInputError(*problems)
    return replace(source, patches=tuple(found), damaged=tuple(problems))


def _to_repair(problem: Problem) -> Problem:
    hint = f"{problem.hint}; or " if problem.hint else ""
    return replace(problem, hint=f"{hint}import it with --repair, which mends what is certain")


def _checked(patch: ImportedPatch) -> Iterator[ImportedPatch]:
    """The patch, or each mail of it; the first one keeps its name."""
    if _ENCODED.search(patch.data[:8192]):
        patch = replace(patch, data=_decoded(patch.data))
    file = parse_patch(patch.data, name=patch.where, strip=patch.strip or 0)
    if not file.changes and not patch.listed:
        raise BadInputError(Problem("holds no diff", patch.where))
    for mail in mails_of(file, patch.where):
        yield replace(patch, name=patch.name or f"{slug(mail.subject)}.patch", data=mail.data)
        patch = replace(patch, name="", listed=False)


def _decoded(mail: bytes) -> bytes:
    """A mail whose body is in a transfer encoding as one that is not."""
    head, _, _ = mail.partition(b"\n\n")
    message = email.message_from_bytes(_FROM_LINE.sub(b"", mail, count=1))
    body = message.get_payload(decode=True)
    assert isinstance(body, bytes)
    kept = [
        line
        for line in re.split(rb"\n(?![ \t])", head)
        if not line.lower().startswith((b"content-transfer-encoding:", b"from "))
    ]
    return b"\n".join(kept) + b"\n\n" + body


def patches_of(
    repository: Repository, changes: Mapping[str, CommitChange]
) -> Iterator[ImportedPatch]:
    """What commits do, by their ids, as patches; none for one that does nothing."""
    pairs = [(change.before, change.after) for change in changes.values()]
    diffs = canonical_diffs(repository, pairs)
    for (oid, change), diff in zip(changes.items(), diffs, strict=True):
        if diff:
            data = format_header(Header(change.message, named_author(change.author))) + diff
            yield ImportedPatch(f"{slug(change.message.partition(chr(10))[0])}.patch", data, oid)
