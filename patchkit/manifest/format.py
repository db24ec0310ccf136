"""The manifest's format, declared once: every key, its shape and what it means.

The descriptions are shown by editors (through the JSON Schema) and printed in docs/manifest.md.
"""

from __future__ import annotations

import re

from patchkit.manifest.machine_fields import (
    ENVIRONMENT,
    IMAGE,
    LAUNCH,
    STEP,
    UPSTREAM_TESTS,
    VALUES,
)
from patchkit.manifest.types import (
    ARCHIVE_URL,
    COMMIT,
    COMPONENT,
    FOLDER_NAME_PATTERN,
    GIT_URL,
    INNER_FILE,
    INNER_FOLDER,
    LINE,
    PACKAGE,
    PATCH_FILE,
    PROSE,
    SERIES,
    SHA256,
    STRIP,
    VERSION_PATTERN,
    Choice,
    Complaint,
    DependentShape,
    Field,
    ListOf,
    MapOf,
    Number,
    Record,
    Text,
    check_folder_name,
    check_manifest_path,
    check_patch_name,
    check_track,
    check_version,
)
from patchkit.model.names import COMPONENT_NAME, PATCH_NAME

# The keys of a component by which patchkit sees that its patches still do what they are for.


_NAME_PART = r"[A-Za-z_*?\[\]][\w*?\[\]]*"
_PACKAGE = Text("a Python package's name", r"[A-Za-z_]\w*", example="megatron")
_TARGET = Text(
    "a dotted name", rf"{_NAME_PART}(?:\.{_NAME_PART})*", example="megatron.core.utils.log"
)
_CODE = Text("text", lines=True)


def check_files(text: str) -> Complaint | None:
    """What is wrong with a glob of files."""
    if text.startswith(("/", "./", "../")) or "\\" in text or text.endswith("/"):
        hint = "globs start at the root of the upstream: megatron/**/*.py"
        return Complaint("is not a glob from the root", hint)
    if not re.fullmatch(r"[^\[\]{}]*(?:(?:\[[^\]/]+\]|\{[^{}]*\})[^\[\]{}]*)*", text):
        return Complaint("is not a glob", "* ? ** [ab] {a,b}")
    return None


_FILES = ListOf(Text("a glob", check=check_files, example="megatron/**/*.py"), "glob")
_RULES = Text("a rule file", INNER_FILE.pattern, INNER_FILE.check)

_ABSENT = Record(
    "absent target",
    (
        Field("name", _TARGET, "The target, or a glob over targets.", required=True),
        Field("reason", PROSE, "Why it is not there, and needs not be.", required=True),
    ),
    "Targets that are not in the target's tree, on purpose.",
)

_OVERRIDES = Record(
    "overrides",
    (
        Field(
            "target",
            COMPONENT,
            "The component whose functions are replaced.",
            required=True,
            synonyms=("component", "of"),
        ),
        Field(
            "rule",
            _RULES,
            "A rule file (a recipe without `fix`) that finds the calls which replace something; "
            "`$TARGET` in its pattern stands for the argument that names what.",
            required=True,
            synonyms=("rules", "calls"),
        ),
        Field(
            "packages",
            ListOf(_PACKAGE, "package"),
            "The target's Python packages: names in others are not looked at.",
            required=True,
            synonyms=("package", "modules"),
        ),
        Field(
            "root",
            INNER_FOLDER,
            "Folder of the target's tree that its packages are in.",
            default="the root",
            synonyms=("directory", "folder"),
        ),
        Field(
            "absent",
            ListOf(_ABSENT, "target"),
            "Targets that need not be there, each with the reason.",
            synonyms=("additions", "missing", "allow"),
        ),
    ),
    "Functions of another component that this one replaces while it runs.",
)

_AFTER = Field(
    "after",
    Text("a patch's name", r"[^/]+\.patch"),
    "Look at the tree as it stands after this patch.",
    default="the last patch",
    synonyms=("patch",),
)
_NAME = Field("name", LINE, "What the step makes sure of, for messages.")


def _text_step(key: str, what: str) -> Record:
    return Record(
        key,
        (
            Field(key, _CODE, what, required=True),
            Field(
                "files",
                _FILES,
                "The files to look at, as globs.",
                required=True,
                synonyms=("file", "paths", "in"),
            ),
            _NAME,
            _AFTER,
            Field("optional", PROSE, "Why none of its files need be there."),
        ),
        what,
    )


_VERIFY = Choice(
    "verify step",
    (
        _text_step("present", "A text that at least one of the files must have."),
        _text_step("absent", "A text that none of the files may have."),
        Record(
            "rules",
            (
                Field(
                    "rules",
                    _RULES,
                    "A rule file: what each rule finds must be as its `expect` says.",
                    required=True,
                ),
                _NAME,
                _AFTER,
            ),
            "Rules on syntax, by a file of their own.",
        ),
        Record(
            "run",
            (
                Field(
                    "run",
                    PROSE,
                    "Shell commands that must pass in a scratch checkout; only with "
                    "`patchkit check --run`.",
                    required=True,
                    synonyms=("command", "shell", "cmd"),
                ),
                _NAME,
                Field(
                    "directory",
                    INNER_FOLDER,
                    "Folder of the checkout to run in.",
                    default="the checkout's root",
                    synonyms=("cwd", "dir"),
                ),
                _AFTER,
            ),
            "A command that must pass.",
        ),
    ),
)

_RESIDUAL = Record(
    "residual",
    (
        Field(
            "rules",
            ListOf(_RULES, "rule file"),
            "Rule files (recipes without `fix`) whose sites are looked for, besides those of the "
            "recipes in the series.",
            synonyms=("rule", "lint"),
        ),
        Field(
            "baseline",
            INNER_FILE,
            "The file of reviewed sites.",
            default="residual.yml beside the series",
        ),
    ),
    "Sites that a rule names and no patch covers.",
)

_MODULE = Text(
    "a module's dotted name",
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*",
    example="megatron.core",
    written=True,
)
_MODULES = Text(
    "a module's dotted name, or a glob",
    rf"{_NAME_PART}(?:\.{_NAME_PART})*",
    example="sglang.srt.models.qwen3*",
)
_OUTSIDE = Text("a package's name, or a glob", _TARGET.pattern, example="torch_*")
_ENVIRONMENT_VARIABLE = Text("a Python name", r"[A-Za-z_]\w*", example="is_npu", written=True)

_DECLARED_CALL = Record(
    "declared call",
    (
        Field(
            "call",
            LINE,
            "What is called, as it is written: `model`, `self.bridge.load`.",
            required=True,
        ),
        Field("files", _FILES, "The files that have such calls, as globs.", required=True),
        Field(
            "to",
            _MODULE,
            "The function, class or method that they lead to, by its dotted name.",
            required=True,
            synonyms=("target", "is"),
        ),
    ),
    "Calls of something whose class the source does not show.",
)

_CONTRACTS = Record(
    "contracts",
    (
        Field(
            "packages",
            ListOf(_MODULE, "package"),
            "The Python packages that the component gives. Calls in them, into packages of other "
            "components with `contracts`, are held to the signatures there.",
            required=True,
            synonyms=("package", "modules"),
        ),
        Field(
            "root",
            INNER_FOLDER,
            "Folder of the tree that the packages are in.",
            default="the root",
            synonyms=("directory", "folder"),
        ),
        Field(
            "entries",
            ListOf(_MODULES, "module"),
            "Modules that the stack starts. If a component has some, only modules that these load "
            "are looked at, in all components, and imports of packages that nothing brings are "
            "reported.",
            default="all modules",
            synonyms=("entry", "start", "roots"),
        ),
        Field(
            "holds",
            ListOf(_ENVIRONMENT_VARIABLE, "name"),
            "Names of variables, attributes and functions that are true (or give true) on the "
            "machine: code behind `if not` of them is not looked at.",
            synonyms=("true", "assume"),
        ),
        Field(
            "fails",
            ListOf(_ENVIRONMENT_VARIABLE, "name"),
            "Names that are false (or give false) on the machine.",
            synonyms=("false",),
        ),
        Field(
            "calls",
            ListOf(_DECLARED_CALL, "call"),
            "Where calls lead of which the source does not show it.",
            synonyms=("receivers",),
        ),
        Field(
            "outside",
            ListOf(_OUTSIDE, "package"),
            "Python packages, or globs, that come from elsewhere: with another package, or with "
            "the machine. What the metadata and `environment.versions` name need not be listed.",
            synonyms=("requires", "given", "provided"),
        ),
        Field(
            "absent",
            ListOf(_ABSENT, "name"),
            "Modules, packages and functions that need not be there or fit, each with the reason.",
            synonyms=("missing", "allow", "except"),
        ),
    ),
    "What a component offers to the others, and how its calls into them are looked at.",
)

GUARD_FIELDS = (
    Field(
        "contracts",
        _CONTRACTS,
        "Take part in contracts: `check` reports calls into other components that do not fit.",
        synonyms=("interfaces", "calls", "api"),
    ),
    Field(
        "overrides",
        ListOf(_OVERRIDES, "target"),
        "Other components whose functions this one replaces while it runs: `check` tells when they "
        "are gone, or are not what was reviewed.",
        synonyms=("monkey-patches", "replaces"),
    ),
    Field(
        "verify",
        ListOf(_VERIFY, "step"),
        "What must hold once the patches are applied. That files which parsed still do is always "
        "looked at.",
        synonyms=("tests", "assert", "guard"),
    ),
    Field(
        "residual",
        _RESIDUAL,
        "What to look for in the whole patched tree.",
        synonyms=("lint", "scan"),
    ),
)


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

_PIN = DependentShape(
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
        "another patch of the component, or is not a valid patch name.",
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

_DIFFERING = Record(
    "differing files",
    (
        Field("files", _FILES, "The files, as globs over the upstream's paths.", required=True),
        Field("reason", PROSE, "Why the wheel's are not the pin's, and may be.", required=True),
    ),
    "Files that a wheel has in another form than the pin, on purpose.",
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
            "layout",
            MapOf(
                Text("a folder", INNER_FOLDER.pattern, INNER_FOLDER.check, example="python/sglang"),
                INNER_FOLDER,
            ),
            "Folders of the upstream, and what each is called where the package is installed: for "
            "`apply --into` and `attest`. `.` is the root.",
            default="found: the root, `src`, `python` or `lib`",
            synonyms=("installed", "package-dir", "package_dir", "mapping"),
        ),
        Field(
            "differing",
            ListOf(_DIFFERING, "files"),
            "Files that are made when the wheel is built, and so are not the pin's: `apply --into` "
            "patches the wheel's own, by RECORD, where the patch fits exactly.",
            synonyms=("accept-differing", "accept_differing", "generated", "accepted"),
        ),
        Field(
            "patches",
            ListOf(_PATCH, "patch entry"),
            "The stack, in order: what is listed first is applied first.",
            synonyms=("series", "patch", "stack"),
        ),
        Field("install", ListOf(STEP, "step"), "How to install the patched checkout."),
        Field(
            "upstream_tests",
            UPSTREAM_TESTS,
            "Tests of upstream's own that the patched component is to pass; run by `patchkit test` "
            "only.",
            synonyms=("test", "unit_tests", "pytest"),
        ),
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

_MERGER = Record(
    "merger",
    (
        Field(
            "files",
            _FILES,
            "The files that it can merge, as globs.",
            required=True,
            synonyms=("file", "paths", "in"),
        ),
        Field(
            "run",
            PROSE,
            "A shell command that reads the files named by $PATCHKIT_BASE, $PATCHKIT_UPSTREAM and "
            "$PATCHKIT_PATCHED, and writes $PATCHKIT_RESULT.",
            required=True,
            synonyms=("command", "cmd", "shell", "driver"),
        ),
        Field("name", LINE, "What results are flagged with.", default="the command's first word"),
        Field("seconds", Number(1, 3600), "It is ended after as many.", default="60"),
    ),
    "A command that is asked for files in conflict; run only with `--run`.",
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
            "upon",
            ListOf(Text("a manifest's name", r"[^/\\\s]+", example="vendor"), "manifest"),
            "Manifests beside this one whose stacks lie beneath it in one workspace or folder of "
            "installed packages, the lowest first: `check` says what both change, and which wins.",
            synonyms=("on", "above", "layers", "on_top_of"),
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
            "mergers",
            ListOf(_MERGER, "merger"),
            "Commands that `bump --run` and `refresh --run` ask for files in conflict; of several "
            "for a file the first.",
            synonyms=("merger", "merge", "merge-drivers", "resolvers"),
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
