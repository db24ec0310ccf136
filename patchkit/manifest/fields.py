"""The manifest's format, declared once: every key, its shape and what it means.

The descriptions are shown by editors (through the JSON Schema) and printed in docs/manifest.md.
"""

from __future__ import annotations

from patchkit.manifest.guard_fields import GUARD_FIELDS
from patchkit.manifest.machine_fields import ENVIRONMENT, IMAGE, LAUNCH, STEP, VALUES
from patchkit.manifest.shapes import Choice, Field, ListOf, MapOf, Matching, Number, Record, Text
from patchkit.manifest.texts import (
    ARCHIVE_URL,
    COMMIT,
    COMPONENT,
    GIT_URL,
    INNER_FILE,
    INNER_FOLDER,
    PACKAGE,
    PATCH_FILE,
    PROSE,
    SERIES,
    SHA256,
    STRIP,
)
from patchkit.manifest.words import (
    FOLDER_NAME_PATTERN,
    VERSION_PATTERN,
    check_folder_name,
    check_manifest_path,
    check_patch_name,
    check_track,
    check_version,
)
from patchkit.model.names import COMPONENT_NAME, PATCH_NAME

#: The versions of the format that this program reads.
FORMAT_VERSION = 1

_GIT_MIRRORS = Field(
    "mirrors",
    ListOf(GIT_URL, "URL"),
    "Other URLs of the same upstream, tried in order when the first does not answer or does not "
    "have the pin.",
)

_SOURCE = Choice(
    "source",
    (
        Record(
            "git",
            (
                Field(
                    "git",
                    GIT_URL,
                    "URL of the upstream repository. The user's git configuration (insteadOf, "
                    "proxies, credentials) holds.",
                    required=True,
                ),
                _GIT_MIRRORS,
            ),
            "A git repository.",
        ),
        Record(
            "index",
            (
                Field(
                    "index",
                    PACKAGE,
                    "Name of a project whose source distribution is taken from the package index "
                    "that pip or uv is configured for.",
                    required=True,
                ),
            ),
            "A source distribution from the package index.",
        ),
        Record(
            "archive",
            (
                Field(
                    "archive",
                    ARCHIVE_URL,
                    "URL of a .tar.gz, .tar.xz, .tar.bz2 or .zip file.",
                    required=True,
                ),
                Field(
                    "mirrors", ListOf(ARCHIVE_URL, "URL"), "Other URLs of the same file, in order."
                ),
            ),
            "An archive by URL.",
        ),
    ),
)

_PIN = Matching(
    "pin",
    "source",
    {
        "git": COMMIT,
        "index": Record(
            "index pin",
            (
                Field(
                    "version",
                    Text("an exact version", VERSION_PATTERN, check_version, example="0.16.0"),
                    "The exact version, in quotes.",
                    required=True,
                ),
                Field(
                    "sha256", SHA256, "SHA-256 of the source distribution's file.", required=True
                ),
            ),
            "Version and hash of a source distribution.",
        ),
        "archive": Record(
            "archive pin",
            (Field("sha256", SHA256, "SHA-256 of the archive's file.", required=True),),
            "Hash of an archive.",
        ),
    },
)

_REVIEWED_FILE = Record(
    "reviewed file",
    (
        Field("file", INNER_FILE, "The file's path in the upstream.", required=True),
        Field("reason", PROSE, "Why the patch is right for the file at the pin.", required=True),
    ),
    "A file that was another one when the patch was made.",
)

_PINNED_FIELDS = (
    Field("path", INNER_FILE, "Path of the patch file in that repository.", required=True),
    Field("sha256", SHA256, "SHA-256 of the patch file.", required=True),
    Field(
        "name",
        Text("a patch name", PATCH_NAME.pattern, check_patch_name),
        "What the patch is called in its stack; needed where the file's own name is taken by "
        "another patch of the component, or is no patch name.",
        default="the file's name",
    ),
    Field(
        "strip",
        STRIP,
        "Leading folders to take off the paths in this patch.",
        default="the component's",
    ),
    Field(
        "other_base",
        ListOf(_REVIEWED_FILE, "reviewed file"),
        "Files that were others when the patch was made, each with the reason why it is right for "
        "the pin all the same. `check` warns of every such file that is not named here.",
    ),
)

_PATCH = Choice(
    "patch entry",
    (
        Record(
            "series",
            (
                Field(
                    "series",
                    SERIES,
                    "A series file of this project (quilt's format): all its patches, in its "
                    "order. At most one per component; this is where `refresh` writes.",
                    required=True,
                ),
            ),
            "All patches of a series file.",
        ),
        Record(
            "patch",
            (
                Field(
                    "patch",
                    PATCH_FILE,
                    "One patch file of this project.",
                    required=True,
                ),
            ),
            "One patch file.",
        ),
        Record(
            "component",
            (
                Field(
                    "component",
                    COMPONENT,
                    "Another component of this manifest with a git source; the file is taken from "
                    "there, at its pin.",
                    required=True,
                ),
                *_PINNED_FIELDS,
            ),
            "A file in another component, at its pin; fetched and verified, never copied.",
        ),
        Record(
            "git",
            (
                Field("git", GIT_URL, "URL of the repository that has the patch.", required=True),
                Field("commit", COMMIT, "The full commit id to take it from.", required=True),
                *_PINNED_FIELDS,
            ),
            "A file in another repository, at a commit; fetched and verified, never copied.",
        ),
    ),
)

_COMPONENT_RECORD = Record(
    "component",
    (
        Field("description", PROSE, "What this upstream is here for."),
        Field(
            "source",
            _SOURCE,
            "Where the upstream comes from.",
            required=True,
            synonyms=("git", "url", "repo", "repository", "upstream", "index", "archive"),
        ),
        Field(
            "pin",
            _PIN,
            "Exactly what is taken: a full commit id (git), version and sha256 (index), or "
            "sha256 (archive). Never a branch or a range.",
            required=True,
            synonyms=("commit", "rev", "revision", "ref", "sha", "version", "tag"),
        ),
        Field(
            "track",
            Text("a branch, tag or pattern", r"[^\s~^:\\/-][^\s~^:\\]*", check_track),
            "Branch, tag or pattern of tags that `bump` and `drift` look at; not used by `apply`.",
            synonyms=("branch", "follow"),
        ),
        Field(
            "checkout",
            Text("a folder name", FOLDER_NAME_PATTERN, check_folder_name),
            "Folder of the checkout in the workspace.",
            default="the component's name",
            synonyms=("path", "folder", "directory", "dir", "dest"),
        ),
        Field(
            "strip",
            STRIP,
            "Leading folders to take off the paths in patches, as `patch -p`.",
            default="1",
            synonyms=("p", "level", "strip-level"),
        ),
        Field(
            "subdirectory",
            INNER_FOLDER,
            "Folder of the upstream that patches' paths start from (after `strip`).",
            default="the root",
        ),
        Field(
            "patches",
            ListOf(_PATCH, "patch entry"),
            "The stack, in order: what is listed first is applied first.",
            synonyms=("series", "patch", "stack"),
        ),
        Field("install", ListOf(STEP, "step"), "How to install the patched checkout."),
        Field(
            "environment",
            ENVIRONMENT,
            "What this component needs beyond the manifest's.",
            synonyms=("env",),
        ),
        *GUARD_FIELDS,
    ),
    "One upstream.",
)

MANIFEST = Record(
    "manifest",
    (
        Field("version", Number(FORMAT_VERSION, FORMAT_VERSION), "The format: 1.", required=True),
        Field("description", PROSE, "What this stack is."),
        Field(
            "extends",
            ListOf(
                Text("a manifest's path", r"(?![/~])[^\\]+\.ya?ml", check_manifest_path), "file"
            ),
            "Shared parts, by paths from this file's folder; what this file says wins.",
            synonyms=("include", "import", "inherits", "base", "parts"),
        ),
        Field(
            "environment",
            ENVIRONMENT,
            "What the whole stack runs in.",
            synonyms=("env", "versions", "variables", "unsupported"),
        ),
        Field("values", VALUES, "What each site decides, by name.", synonyms=("site", "settings")),
        Field("image", IMAGE, "What the Dockerfile starts from.", synonyms=("docker",)),
        Field(
            "launch",
            MapOf(Text("a launch's name", COMPONENT_NAME.pattern, example="grpo-8b"), LAUNCH),
            "Ways to start the stack, by name: each becomes a script.",
            synonyms=("launches", "run", "start"),
        ),
        Field(
            "components",
            MapOf(COMPONENT, _COMPONENT_RECORD, minimum=1),
            "The upstreams by name, in the order in which they are shown and installed.",
            required=True,
            synonyms=("upstreams", "projects", "repos", "repositories"),
        ),
    ),
)
