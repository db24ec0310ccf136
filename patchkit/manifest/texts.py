"""Kinds of text that several keys of the manifest have."""

from __future__ import annotations

from patchkit.manifest.shapes import Number, Text
from patchkit.manifest.urls import ARCHIVE_PATTERN, GIT_PATTERN, check_url
from patchkit.manifest.words import (
    COMMIT_PATTERN,
    PACKAGE_PATTERN,
    SHA256_PATTERN,
    check_commit,
    check_component_name,
    check_file_path,
    check_inner_path,
    check_package,
    check_patch_path,
    check_series_path,
    check_sha256,
)
from patchkit.model.names import COMPONENT_NAME, PATCH_NAME

LINE = Text("one line of text")
PROSE = Text("text", lines=True)
COMMIT = Text("a full commit id", COMMIT_PATTERN, check_commit)
SHA256 = Text("a SHA-256", SHA256_PATTERN, check_sha256)
GIT_URL = Text("a git URL", GIT_PATTERN, check_url, example="https://host/project.git")
ARCHIVE_URL = Text("an archive's URL", ARCHIVE_PATTERN, check_url, example="https://host/a.tar.gz")
PACKAGE = Text("a package name", PACKAGE_PATTERN, check_package, example="megatron-core")
COMPONENT = Text("a component name", COMPONENT_NAME.pattern, check_component_name)
# Begins with no / ~ or -, has no `..` between slashes and no backslash.
_INWARDS = r"(?![/~-])(?!(?:.*/)?\.\.(?:/|$))"
INNER_FOLDER = Text("a folder", rf"{_INWARDS}[^\\]*", check_inner_path, empty=True)
INNER_FILE = Text("a file's path", rf"{_INWARDS}[^\\]*[^/\\]", check_file_path)
SERIES = Text("a series file", rf"(?!.*\.patch$){INNER_FILE.pattern}", check_series_path)
PATCH_FILE = Text("a patch file", rf"{_INWARDS}(?:[^\\]*/)?{PATCH_NAME.pattern}", check_patch_path)
STRIP = Number(0, 16)
