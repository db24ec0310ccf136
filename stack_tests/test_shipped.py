"""What ships fits together: manifests, series, patch files, locks. Needs no network."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest
from unidiff.patch import PatchSet

from patchkit.manifest.load import load_manifest
from patchkit.manifest.values import LocalPatch, LocalSeries, Manifest
from patchkit.model.header import format_header
from patchkit.model.mail import parse_patch
from patchkit.model.patch import FileChange
from patchkit.model.series_file import parse_series
from patchkit.stack.lockfile import load_lock
from stack_tests.conftest import ROOT

MANIFESTS = sorted((ROOT / "manifests").glob("*.yaml"))
PATCHES = sorted((ROOT / "patches").rglob("*.patch"))


def local_patches(manifest: Manifest) -> dict[str, dict[str, Path]]:
    """Component -> name -> file of every patch that is in this project."""
    found: dict[str, dict[str, Path]] = {}
    for component in manifest.components:
        files = found.setdefault(component.name, {})
        for entry in component.patches:
            if isinstance(entry, LocalSeries):
                series = ROOT / entry.path
                names = parse_series(series.read_bytes(), name=entry.path).names
                files.update({name: series.parent / name for name in names})
            elif isinstance(entry, LocalPatch):
                files[Path(entry.path).name] = ROOT / entry.path
    return found


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_locks_know_the_patches_as_they_are(path: Path) -> None:
    manifest = load_manifest(path)
    lock = load_lock(manifest.lock_path)
    assert lock is not None
    for component, files in local_patches(manifest).items():
        locked = {patch.name: patch.sha256 for patch in lock.components[component].patches}
        for name, file in files.items():
            assert locked[name] == sha256(file.read_bytes()).hexdigest(), file


def test_every_patch_is_in_a_series() -> None:
    listed = {
        file
        for path in MANIFESTS
        for files in local_patches(load_manifest(path)).values()
        for file in files.values()
    }
    assert listed == set(PATCHES)


def test_the_table_has_every_patch_and_no_other() -> None:
    page = ROOT / "patches" / "README.md"
    linked = re.findall(r"\]\(([^)]+\.patch)\)", page.read_text(encoding="utf-8"))
    assert sorted(linked) == sorted(str(path.relative_to(page.parent)) for path in PATCHES)


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_headers_say_why(path: Path) -> None:
    patch = parse_patch(path.read_bytes(), name=path.name)
    assert patch.header is not None
    subject, _, body = patch.header.message.partition("\n\n")
    assert len(subject) <= 72
    assert "\nUpstream-Status: " in body
    assert max(map(len, body.splitlines())) <= 80
    assert patch.preamble == format_header(patch.header)
    assert all(change.old_blob and len(change.old_blob) == 40 for change in patch.changes)


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_second_reader_sees_the_same_changes(path: Path) -> None:
    ours = {
        change.path: _counts(change)
        for change in parse_patch(path.read_bytes(), name=path.name).changes
    }
    theirs = {file.path: (file.added, file.removed) for file in PatchSet.from_filename(str(path))}
    assert ours == theirs


def _counts(change: FileChange) -> tuple[int, int]:
    markers = [line[:1] for hunk in change.hunks for line in hunk.lines]
    return markers.count(b"+"), markers.count(b"-")
