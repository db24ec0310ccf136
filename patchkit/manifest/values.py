"""What a manifest says, as frozen values; and with that what it may say.

Each key is declared here, once, by the annotation of a field (types.py says how to read it): the
reader and its messages, the writer, the JSON Schema and the reference are made of that.
Annotations are values here, not texts: all of them are needed when a manifest is read.

Local paths are POSIX paths relative to `Manifest.root`, already checked not to leave it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Annotated, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.globs import Glob
from patchkit.manifest.types import (
    FILE_PATTERN,
    FOLDER_NAME_PATTERN,
    FOLDER_PATTERN,
    GROUP_PATTERN,
    PACKAGE_PATTERN,
    PATCH_PATTERN,
    SPECIFIER_PATTERN,
    VALUE_PATTERN,
    ArchiveUrl,
    ByName,
    Commit,
    ComponentName,
    Follows,
    GitUrl,
    InnerFile,
    InnerFolder,
    Key,
    Line,
    Number,
    OneOf,
    PackageName,
    Prose,
    Reason,
    Sha256,
    Strip,
    Text,
    Variable,
    Word,
    Written,
    also,
    check_component_name,
    check_file_path,
    check_folder_name,
    check_inner_path,
    check_manifest_path,
    check_patch_name,
    check_patch_path,
    check_pattern,
    check_pin_label,
    check_series_path,
    check_specifier,
    check_track,
    check_value_name,
    check_version,
    plain_path,
)
from patchkit.model.names import COMPONENT_NAME, MEND, PATCH_NAME, PIN_LABEL
from patchkit.model.objects import CommitId

Keys = TypeVar("Keys", bound=Struct)


class Location(Struct, frozen=True):
    """A place in a manifest, 1-based; prints as file:line."""

    file: Path
    line: int
    column: int = 1  # from 1, in characters

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def below(self, root: Path) -> str:
        """The place as file:line, seen from `root` where the file is below it."""
        return f"{path_below(self.file, root)}:{self.line}"


def path_below(path: Path, root: Path) -> str:
    """The path seen from `root` where it is below it, else as it is."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


# Where a component comes from, and exactly what is taken.


class GitSource(Struct, frozen=True):
    """A git repository."""

    url: Annotated[
        GitUrl,
        Key("git"),
        "URL of the upstream repository. The user's git configuration (insteadOf, proxies, "
        "credentials) holds.",
    ]
    mirrors: Annotated[
        tuple[GitUrl, ...],
        "Other URLs of the same upstream, tried in order when the first does not answer or does "
        "not have the pin.",
    ] = ()


class IndexSource(Struct, frozen=True):
    """A source distribution from the package index."""

    project: Annotated[
        PackageName,
        Key("index"),
        "Name of a project whose source distribution is taken from the package index that pip or "
        "uv is configured for.",
    ]


class ArchiveSource(Struct, frozen=True):
    """An archive by URL."""

    url: Annotated[ArchiveUrl, Key("archive"), "URL of a .tar.gz, .tar.xz, .tar.bz2 or .zip file."]
    mirrors: Annotated[tuple[ArchiveUrl, ...], "Other URLs of the same file, in order."] = ()


class GitPin(Struct, frozen=True):
    """A full commit id."""

    commit: Annotated[Commit, Key(""), "The commit."]
    name: str = ""  # the tag or short id that stands there, "" where that is the commit itself

    def __str__(self) -> str:
        return self.commit


_PinFile = Annotated[InnerFile, "A file of the project that has the pin."]
_PlaceName = Text("a name", r"[^\s\"'=:]+")


class FilePlace(GitPin, frozen=True, kw_only=True):
    """A place in a file: told by at most one key, without one the file's only line."""

    commit: CommitId = CommitId("")  # what the place says, once it was read
    where: Location  # the entry in the manifest
    file: _PinFile
    arg: Annotated[Annotated[str, _PlaceName], "Name of an ARG or ENV of a Dockerfile."] = ""
    variable: Annotated[
        Annotated[str, _PlaceName],
        "Name of a variable or a field: `NAME = value` of a Makefile, a script or a PKGBUILD, "
        "`NAME: value` of YAML, JSON or a spec, `{% set NAME = ... %}` of a conda recipe.",
    ] = ""
    cmake: Annotated[
        Annotated[str, _PlaceName],
        "What CMake declares with a GIT_TAG (FetchContent_Declare, ExternalProject_Add), sets, or "
        "has from vcpkg by OUT_SOURCE_PATH.",
    ] = ""
    deps: Annotated[
        Annotated[str, _PlaceName], "A variable, or a dependency's folder, of gclient's DEPS."
    ] = ""
    key: Annotated[
        Annotated[str, Text("keys")],
        "The keys that lead to a value of a YAML or JSON file, with dots between; of a list the "
        "number, from 0.",
    ] = ""
    pattern: Annotated[
        Annotated[str, Text("a regular expression", check=check_pattern)],
        "A regular expression with one group, which is the value; ^ and $ match at every line.",
    ] = ""
    tag: Annotated[
        Annotated[str, Text("a tag with one *", r"[^\s*]*\*[^\s*]*", example="v*")],
        Key(default="*"),
        "The tag of a version that stands there without what tags have around it: `v*`.",
    ] = ""

    def names(self, value: str) -> str:
        """The tag or commit that a value stands for."""
        return self.tag.replace("*", value) or value


_AlsoPinned = Annotated[
    tuple[FilePlace, ...], "Places that must say the same; `bump` writes all of them."
]


class FilePin(FilePlace, frozen=True, kw_only=True):
    """A commit that stands in a file of the project, where other tools read it."""

    file: _PinFile
    also: _AlsoPinned = ()


class SubmodulePin(GitPin, frozen=True, kw_only=True):
    """The commit of a submodule, as the index of the project's repository has it."""

    commit: CommitId = CommitId("")  # once it was read
    where: Location  # the entry in the manifest
    submodule: Annotated[
        InnerFile, "Folder of a submodule of the project: its commit in git's index is the pin."
    ]
    also: _AlsoPinned = ()


_PinPlace = Annotated[FilePin | SubmodulePin, OneOf("place of a pin")]


class IndexPin(Struct, frozen=True):
    """Version and hash of a source distribution."""

    version: Annotated[
        str,
        Text("an exact version", "[vV]?[0-9][0-9A-Za-z.!+_-]*", check_version, example="0.16.0"),
        "The exact version, in quotes.",
    ]
    sha256: Annotated[Sha256, "SHA-256 of the source distribution's file."]

    def __str__(self) -> str:
        return self.version


class ArchivePin(Struct, frozen=True):
    """Hash of an archive."""

    sha256: Annotated[Sha256, "SHA-256 of the archive's file."]

    def __str__(self) -> str:
        return f"sha256:{self.sha256}"


Source: TypeAlias = Annotated[GitSource | IndexSource | ArchiveSource, OneOf("source")]
Pin: TypeAlias = Annotated[
    GitPin | IndexPin | ArchivePin,
    OneOf(
        "pin",
        (
            Annotated[GitPin, OneOf("a full commit id, or its place", (GitPin, _PinPlace))],
            IndexPin,
            ArchivePin,
        ),
    ),
    Follows("source", ("git", "index", "archive")),
]


# The patches of a component.


class LocalPatch(Struct, frozen=True):
    """One patch file."""

    path: Annotated[
        str,
        Text(
            "a patch file",
            PATCH_PATTERN,
            check_patch_path,
            meant=plain_path,
        ),
        Key("patch"),
        "One patch file of this project.",
    ]
    where: Location  # the entry in the manifest

    @property
    def patch_name(self) -> str:
        """What the patch is called in its stack."""
        return self.path.rpartition("/")[2]


#: Endings of files whose format they tell.
_DIALECTS = {
    "zephyr/patches.yml": "west",
    "portfile.cmake": "vcpkg",
    "meta.yaml": "conda",
    "patch.cfg": "cef",
    ".json": "bazel",
    ".yml": "conan",
    ".yaml": "conan",
    ".bb": "bitbake",
    ".bbappend": "bitbake",
    ".inc": "bitbake",
    ".spec": "rpm",
}
#: Where patches stand beside the files of some.
FOLDER_BESIDE = "patches/"
_BESIDE = ("bazel", "cef", "conan", "west")


class LocalSeries(Struct, frozen=True):
    """All patches of a series file."""

    path: Annotated[
        str,
        Text(
            "a series file", rf"(?!.*\.patch$){FILE_PATTERN}", check_series_path, meant=plain_path
        ),
        Key("series"),
        "A file of this project that lists patches: all its patches, in its order. At most one per "
        "component; this is where `refresh` writes.",
    ]
    where: Location  # the entry in the manifest
    dialect: Annotated[
        str,
        Text("a format", "bazel|bitbake|cef|conan|conda|quilt|rpm|vcpkg|west", example="conan"),
        Key(default="by the file's name"),
        "The file's format: `bazel` (a registry's source.json, any .json), `conan` (conandata.yml, "
        "any .yml or .yaml), `cef` (patch.cfg), `bitbake` (SRC_URI of .bb, .bbappend, .inc), `rpm` "
        "(.spec), `vcpkg` (portfile.cmake), `conda` (meta.yaml), `west` (zephyr/patches.yml), "
        "`quilt` (all others).",
    ] = ""
    within: Annotated[
        InnerFolder | None,
        Key(default="`patches/` beside a file of bazel, cef, conan and west, else the file's own"),
        "The folder of this project that the names in the file start from.",
    ] = None
    target: Annotated[
        Line,
        Key(default="the only one"),
        "The version, or west's module, whose patches are meant, where the file has lists for "
        "several; of guards (`+slime a.patch`) the symbols that hold.",
        also("version"),
    ] = ""
    branch: Annotated[
        str,
        Text("a branch", r"[^\s~^:\\/*?\[-][^\s~^:\\*?\[]*", check_track),
        "A branch whose own commits these patches are, such as a fork's: "
        "`refresh --from-branch` takes them from there. Nothing else reads it.",
    ] = ""
    of: Annotated[
        GitUrl | None,
        "URL of the repository that has the branch, where that is not upstream's own.",
    ] = None

    @property
    def kind(self) -> str:
        """The file's format."""
        told = (kind for end, kind in _DIALECTS.items() if self.path.endswith(end))
        return self.dialect or next(told, "quilt")

    @property
    def folder(self) -> str:
        """The folder that the patches' names start from, "" for the project's root."""
        outer, mark, _ = self.path.rpartition("/")
        beside = f"{outer}{mark}{FOLDER_BESIDE}" if self.kind in _BESIDE else outer
        return (beside if self.within is None else self.within).rstrip("/")

    def beside(self, name: str) -> str:
        """The path of a patch of that name."""
        return f"{self.folder}/{name}" if self.folder else name

    def place(self, line: int) -> Location:
        """Where a patch is listed: a line of the file."""
        return Location(Path(self.path), line)


class OrderedFolder(LocalSeries, frozen=True, kw_only=True):
    """All patches of a folder, in the order of their names."""

    path: Annotated[
        str,
        Text("a folder", FOLDER_PATTERN, check_inner_path, meant=plain_path),
        Key("folder"),
        "A folder of this project whose .patch and .diff files say their order by their names. In "
        "the place of a series file: `refresh` writes here.",
    ]
    order: Annotated[
        str,
        Text("an order", "number|name|path", example="name"),
        "`number`: by the number that each name begins with; `name`: as `LC_ALL=C` sorts them, "
        "and so does `git am FOLDER/*`; `path`: the same, with the files of all inner folders.",
    ]
    dialect: str = "quilt"
    target: str = ""

    @property
    def folder(self) -> str:
        """The folder itself."""
        return self.path

    def place(self, line: int) -> Location:
        """No file lists it: the entry in the manifest."""
        return self.where


class ReviewedFile(Struct, frozen=True):
    """A file that was another one when the patch was made."""

    path: Annotated[InnerFile, Key("file"), "The file's path in the upstream."]
    reason: Annotated[Reason, "Why the patch is right for the file at the pin."]
    where: Location  # the entry in the manifest


class PinnedPatch(Struct, frozen=True):
    """A file in another pinned repository, fetched and verified, never copied in.

    Either `component` (of the same manifest, at its pin) or `git` and `commit` say where.
    `strip` is None where the component's applies.
    """

    path: Annotated[InnerFile, "Path of the patch file in that repository."]
    sha256: Annotated[Sha256, "SHA-256 of the patch file."]
    where: Location  # the entry in the manifest
    name: Annotated[
        Annotated[str, Text("a patch name", PATCH_NAME.pattern, check_patch_name)] | None,
        Key(default="the file's name"),
        "What the patch is called in its stack; needed where the file's own name is taken by "
        "another patch of the component, or is not a valid patch name.",
    ] = None
    strip: Annotated[
        Strip | None,
        Key(default="the component's"),
        "Leading folders to take off the paths in this patch.",
    ] = None
    other_base: Annotated[
        tuple[ReviewedFile, ...],
        "Files that were others when the patch was made, each with the reason why it is right for "
        "the pin all the same. `check` warns of every such file that is not named here.",
    ] = ()
    repair: Annotated[
        tuple[Annotated[str, Text("a mend", MEND.pattern, example="last newline")], ...],
        "What is damaged in that file and mended when it is read, after its SHA-256: `last "
        "newline`, `line ends` (CRLF), `entities` (of HTML), `non-breaking spaces`, `indentation`, "
        "`context spaces`, or `counts of line N`, the number of an @@ line. What can be read in "
        "two ways, or is whole, is refused. `check` says which.",
    ] = ()
    component: str | None = None
    git: str | None = None
    commit: Commit | None = None

    @property
    def patch_name(self) -> str:
        """What the patch is called in its stack."""
        return self.name or self.path.rpartition("/")[2]


class ComponentPatch(PinnedPatch, frozen=True, kw_only=True):
    """A file in another component, at its pin; fetched and verified, never copied."""

    component: Annotated[
        ComponentName,
        "Another component of this manifest with a git source; the file is taken from there, at "
        "its pin.",
    ]


class RepositoryPatch(PinnedPatch, frozen=True, kw_only=True):
    """A file in another repository, at a commit; fetched and verified, never copied."""

    git: Annotated[GitUrl, "URL of the repository that has the patch."]
    commit: Annotated[Commit, "The full commit id to take it from."]


PatchEntry: TypeAlias = Annotated[
    LocalPatch | LocalSeries | PinnedPatch,
    OneOf("patch entry", (LocalSeries, OrderedFolder, LocalPatch, ComponentPatch, RepositoryPatch)),
]


# Commands.


Directory = Annotated[
    InnerFolder,
    Key(default="the checkout's root"),
    "Folder of the checkout to run in.",
    also("cwd", "dir", "folder", "workdir"),
]
_Command = also("command", "shell", "cmd")
_Variables = Mapping[Variable, Annotated[str, Text("text", r"[^\n\r]*", empty=True)]]


class InstallStep(Struct, frozen=True):
    """One step of the installation, or of what is run before a launch."""

    run: Annotated[Prose, "Shell commands.", _Command]
    name: Annotated[Line, Key(default="the command"), "What the step does, for the output."] = ""
    directory: Directory = ""


class UpstreamTests(Struct, frozen=True):
    """How to run tests of upstream's own."""

    run: Annotated[
        Prose,
        "A shell command that runs the tests and writes JUnit XML to $PATCHKIT_JUNIT: "
        '`python -m pytest --junitxml="$PATCHKIT_JUNIT" tests/unit`.',
        _Command,
    ]
    where: Location  # the entry in the manifest
    directory: Directory = ""
    variables: Annotated[
        _Variables,
        "Environment variables to set for it. Paths are as the command sees them.",
        also("env", "environment"),
    ] = {}


class ExternalMerger(Struct, frozen=True):
    """A command that is asked for files in conflict; run only with `--run`."""

    files: Annotated[
        tuple[Glob, ...], "The files that it can merge, as globs.", also("file", "paths", "in")
    ]
    run: Annotated[
        Prose,
        "A shell command that reads the files named by $PATCHKIT_BASE, $PATCHKIT_UPSTREAM and "
        "$PATCHKIT_PATCHED, and writes $PATCHKIT_RESULT.",
        also("command", "cmd", "shell", "driver"),
    ]
    where: Location  # the entry in the manifest
    name: Annotated[
        Line, Key(default="the command's first word"), "What results are flagged with."
    ] = ""
    seconds: Annotated[int, Number(1, 3600), Key(default="60"), "It is ended after as many."] = 0

    @property
    def title(self) -> str:
        """What messages call it: its name, else its command's first word, without folders."""
        words = self.run.split()
        return self.name or (words[0].rpartition("/")[2] if words else "merger")


# By which patchkit sees that patches still do what they are for.


RuleFile = Annotated[str, Text("a rule file", FILE_PATTERN, check_file_path, meant=plain_path)]


class VerifyStep(Struct, frozen=True, kw_only=True):
    """What must hold of the tree after the patch `after`, "" for the last."""

    where: Location  # the entry in the manifest
    name: Annotated[Line, "What the step makes sure of, for messages."] = ""
    after: Annotated[
        str,
        Text("a patch's name", r"[^/]+\.patch"),
        Key(default="the last patch"),
        "Look at the tree as it stands after this patch.",
        also("patch"),
    ] = ""

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.name


_Code = Annotated[str, Text("text", lines=True, code=True)]


class TextStep(VerifyStep, frozen=True, kw_only=True):
    """A text that must be in one of the files, or (`wanted` False) in none."""

    text: str
    wanted: bool
    files: Annotated[
        tuple[Glob, ...], "The files to look at, as globs.", also("file", "paths", "in")
    ]
    optional: Annotated[Reason, "Why none of its files need be there."] = ""

    @property
    def title(self) -> str:
        """Its name, else what it looks for."""
        kind = "present" if self.wanted else "absent"
        return self.name or f"{kind}: {self.text.partition(chr(10))[0]}"


class PresentText(TextStep, frozen=True, kw_only=True):
    """A text that at least one of the files must have."""

    text: Annotated[_Code, Key("present"), "A text that at least one of the files must have."]
    wanted: bool = True


class AbsentText(TextStep, frozen=True, kw_only=True):
    """A text that none of the files may have."""

    text: Annotated[_Code, Key("absent"), "A text that none of the files may have."]
    wanted: bool = False


class RunStep(VerifyStep, frozen=True, kw_only=True):
    """A command that must pass."""

    run: Annotated[
        Prose,
        "Shell commands that must pass in a scratch checkout; only with `patchkit check --run`.",
        _Command,
    ]
    directory: Directory = ""

    @property
    def title(self) -> str:
        """Its name, else the command."""
        return self.name or self.run.strip().partition("\n")[0]


# What the files for a machine are made of. A text that "may have site values" has them as
# `${name}` (model/names.py).


class Environment(Struct, frozen=True):
    """What a stack runs in."""

    versions: Annotated[
        Mapping[
            Annotated[str, Text("a name", PACKAGE_PATTERN, example="torch-npu")],
            Annotated[
                str,
                Text("a version specifier", SPECIFIER_PATTERN, check_specifier, example="==2.8.0"),
            ],
        ],
        "What must be there, as version specifiers: python, cann, hdk or a package's name.",
    ] = {}
    scripts: Annotated[
        tuple[Word, ...],
        "Shell scripts that set up more, such as CANN's set_env.sh: env.sh sources them, in order, "
        "before it sets the variables. May have site values.",
        also("source", "setup"),
    ] = ()
    variables: Annotated[_Variables, "Environment variables to set. May have site values."] = {}
    paths: Annotated[
        Mapping[Variable, tuple[Word, ...]],
        "Folders to put before what a variable like PYTHONPATH has already. May have site values.",
        also("path", "prepend"),
    ] = {}
    unsupported: Annotated[
        Mapping[PackageName, Prose],
        "Packages known not to work here, each with the reason.",
    ] = {}


class SiteValue(Struct, frozen=True):
    """What a site decides: given by `--set @FILE` or `--set NAME=VALUE` of
    `export --format machine`, used as `${NAME}`. `${workspace}`, the folder of the checkouts, is
    always there.

    Without a `default` (None) it must be given.
    """

    name: str  # as ${NAME} refers to it
    description: Annotated[Line, "What it is, for whoever has to give it."]
    where: Location  # its name in the manifest
    default: Annotated[
        Written | None,
        "What it is where nothing else is said. Without one, it must be given.",
    ] = None


class Image(Struct, frozen=True):
    """What the Dockerfile starts from."""

    base: Annotated[
        str,
        Text(
            "an image",
            # registry/name:tag@digest, any part of which may be a site value
            r"(?:[A-Za-z0-9._/:@-]|\$\{[a-z][a-z0-9_]*\})+",
            example="ascendai/cann:8.5.0-a3-ubuntu22.04-py3.11",
        ),
        "The image to build on, with its tag. May have site values.",
        also("from", "name"),
    ]
    packages: Annotated[
        tuple[
            Annotated[
                str,
                Text(
                    "a system package",
                    r"[a-z0-9][a-z0-9+.-]*(?:=[A-Za-z0-9.+:~-]+)?",
                    example="git",
                ),
            ],
            ...,
        ],
        "System packages to install, as apt names them.",
        also("apt"),
    ] = ()


ArgumentValue: TypeAlias = Annotated[
    Written | tuple[Written, ...], OneOf("text, or a list of texts")
]


class Ray(Struct, frozen=True):
    """The Ray that a launch runs on: one that runs already, else one that ends with the launch."""

    npus: Annotated[Written, Key(default="0"), "NPUs of each machine. May have site values."] = "0"
    machines: Annotated[
        ArgumentValue,
        Key(default="1"),
        "How many machines; of several numbers the sum. May have site values.",
    ] = "1"


class Launch(Struct, frozen=True, kw_only=True):
    """One way to start the stack: a script of its own.

    It runs in `directory` of the checkout of `component` (None: in the workspace).
    """

    name: str  # unique in the manifest
    where: Location  # its name in the manifest
    description: Annotated[Prose, "What is run, for the head of the script."] = ""
    component: Annotated[
        ComponentName | None,
        Key(default="none: it runs in the workspace"),
        "The component in whose checkout it runs.",
    ] = None
    directory: Annotated[
        InnerFolder,
        Key(default="the checkout's root"),
        "Folder in there to run in.",
        also("cwd", "dir", "folder", "workdir"),
    ] = ""
    variables: Annotated[
        _Variables,
        "Environment variables of this launch alone. May have site values.",
        also("env", "environment"),
    ] = {}
    before: Annotated[
        tuple[InstallStep, ...],
        "What is run first, such as making the data: where the command runs, unless a step names "
        "its `directory`.",
    ] = ()
    needs: Annotated[
        tuple[Word, ...],
        "Files and folders without which it does not start; those that a step of `before` uses are "
        "looked for after the steps. May have site values.",
    ] = ()
    ray: Annotated[Ray | None, "The Ray that it runs on."] = None
    command: Annotated[
        Word,
        "The command, as shell words; the arguments follow it.",
        also("run", "program", "cmd"),
    ]
    arguments: Annotated[
        Mapping[
            Annotated[str, Text("a group's name", GROUP_PATTERN, example="optimizer")],
            Mapping[
                Annotated[
                    str,
                    Text(
                        "an argument's name",
                        r"(?:-{1,2}[A-Za-z0-9]|[+~]{0,2}[A-Za-z_])[A-Za-z0-9_./@:-]*",
                        example="--lr",
                    ),
                ],
                ArgumentValue,
            ],
        ],
        "The arguments, in groups. A name that begins with - is followed by its value, or by each "
        "of a list, or stands alone if it is empty; any other becomes NAME=VALUE. May have site "
        "values.",
        also("args", "parameters", "params"),
    ] = {}


# The whole.


#: The version of the format that this program reads.
FORMAT_VERSION = 1


class DifferingFiles(Struct, frozen=True):
    """Files that a wheel has in another form than the pin, on purpose."""

    files: Annotated[tuple[Glob, ...], "The files, as globs over the upstream's paths."]
    reason: Annotated[Reason, "Why the wheel's are not the pin's, and may be."]
    where: Location  # the entry in the manifest


class Extended(Struct, frozen=True, kw_only=True):
    """What extensions can add keys to."""

    more: Mapping[str, object] = {}  # the values of these keys

    def added(self, kind: type[Keys]) -> Keys:
        """The values of the keys that an extension declares so."""
        return kind(**{key: self.more[key] for key in kind.__struct_fields__ if key in self.more})


class AtPin(Extended, frozen=True, kw_only=True):
    """What a component has at one of its pins."""

    pin_where: Annotated[Location, Key("pin")]  # what a bump edits
    source: Annotated[
        Source,
        "Where the upstream comes from.",
        also("git", "url", "repo", "repository", "upstream", "index", "archive"),
    ]
    pin: Annotated[
        Pin,
        "Exactly what is taken: a full commit id (git), version and sha256 (index), or sha256 "
        "(archive). Never a branch or a range.",
        also("commit", "rev", "revision", "ref", "sha", "version", "tag"),
    ]
    track: Annotated[
        Annotated[str, Text("a branch, tag or pattern", r"[^\s~^:\\/-][^\s~^:\\]*", check_track)]
        | None,
        "Branch, tag or pattern of tags that `bump` and `drift` look at; not used by `apply`.",
        also("branch", "follow"),
    ] = None
    checkout: Annotated[
        str,
        Text("a folder name", FOLDER_NAME_PATTERN, check_folder_name),
        Key(default="the component's name"),
        "Folder of the checkout in the workspace.",
        also("path", "folder", "directory", "dir", "dest"),
    ] = ""
    strip: Annotated[
        Strip,
        Key(default="1", always=True),
        "Leading folders to take off the paths in patches, as `patch -p`.",
        also("p", "level", "strip-level"),
    ] = 1
    subdirectory: Annotated[
        InnerFolder,
        Key(default="the root"),
        "Folder of the upstream that patches' paths start from (after `strip`).",
    ] = ""
    layout: Annotated[
        Mapping[
            Annotated[
                str,
                Text(
                    "a folder",
                    FOLDER_PATTERN,
                    check_inner_path,
                    example="python/sglang",
                    meant=plain_path,
                ),
            ],
            InnerFolder,
        ],
        Key(default="found: the root, `src`, `python` or `lib`"),
        "Folders of the upstream, and what each is called where the package is installed: for "
        "`install` and `attest`. `.` is the root.",
        also("installed", "package-dir", "package_dir", "mapping"),
    ] = {}
    differing: Annotated[
        tuple[DifferingFiles, ...],
        "Files that are made when the wheel is built, and so are not the pin's: `install` "
        "patches the wheel's own, by RECORD, where the patch fits exactly.",
        also("accept-differing", "accept_differing", "generated", "accepted"),
    ] = ()
    patches: Annotated[
        tuple[PatchEntry, ...],
        "The stack, in order: what is listed first is applied first.",
        also("series", "patch", "stack"),
    ] = ()
    install: Annotated[tuple[InstallStep, ...], "How to install the patched checkout."] = ()
    upstream_tests: Annotated[
        UpstreamTests | None,
        "Tests of upstream's own that the patched component is to pass; run by "
        "`patchkit check --only tests`.",
        also("test", "unit_tests", "pytest"),
    ] = None
    environment: Annotated[
        Environment, "What this component needs beyond the manifest's.", also("env")
    ] = Environment()
    verify: Annotated[
        tuple[
            Annotated[VerifyStep, OneOf("verify step", (PresentText, AbsentText, RunStep))],
            ...,
        ],
        "What must hold once the patches are applied. That files which parsed still do is always "
        "looked at.",
        also("tests", "assert", "guard"),
    ] = ()


class Component(AtPin, frozen=True, kw_only=True):
    """One upstream, at a pin: `sglang`, or `sglang@v0.5.9` where it has several."""

    name: str  # unique in the manifest
    where: Location  # its name in the manifest
    description: Annotated[Prose, "What this upstream is here for."] = ""
    pins: Annotated[
        Mapping[Annotated[str, Text("a label", PIN_LABEL, check_pin_label)], AtPin],
        "In the place of `pin`, where patches are kept for several versions: each by a name of its "
        "own, with the keys that differ there. It is the component NAME@LABEL; `-c NAME` is all.",
        also("versions"),
    ] = {}  # as written: each is a component of its own once it is read

    def __post_init__(self) -> None:
        if not self.checkout:
            force_setattr(self, "checkout", self.name)

    @property
    def family(self) -> str:
        """What it is called whatever its pin."""
        return self.name.partition("@")[0]

    @property
    def label(self) -> str:
        """What tells its pin from others of the family, "" where it has one."""
        return self.name.partition("@")[2]

    @property
    def series(self) -> LocalSeries | None:
        """Its series, None if the manifest names none; no manifest is taken that names two."""
        return next((each for each in self.patches if isinstance(each, LocalSeries)), None)

    @property
    def references(self) -> tuple[PinnedPatch, ...]:
        """Its patches that stay in another pinned repository."""
        return tuple(each for each in self.patches if isinstance(each, PinnedPatch))


class Manifest(Extended, frozen=True, kw_only=True):
    """A whole manifest, `extends` resolved."""

    path: Path
    #: The project: the parent of `manifests/` if the file is in such a folder, else its own folder.
    root: Path
    name: str  # the file's without its ending
    version: Annotated[int, Number(FORMAT_VERSION, FORMAT_VERSION), "The format: 1."]
    description: Annotated[Prose, "What this stack is."] = ""
    retired: Annotated[
        Prose,
        "Why this stack goes no further, and until where it holds. `check` says it.",
        also("deprecated", "obsolete", "note"),
    ] = ""
    extends: Annotated[
        tuple[
            Annotated[
                str,
                Text("a manifest's path", r"(?![/~])[^\\]+\.ya?ml", check_manifest_path),
            ],
            ...,
        ],
        "Shared parts, by paths from this file's folder; what this file says wins.",
        also("include", "import", "inherits", "base", "parts"),
    ] = ()
    environment: Annotated[
        Environment,
        "What the whole stack runs in.",
        also("env", "versions", "variables", "unsupported"),
    ] = Environment()
    values: Annotated[
        tuple[SiteValue, ...],
        ByName(Text("a value's name", VALUE_PATTERN, check_value_name, example="model_path")),
        "What each site decides, by name.",
        also("site", "settings"),
    ] = ()
    image: Annotated[Image | None, "What the Dockerfile starts from.", also("docker")] = None
    launches: Annotated[
        tuple[Launch, ...],
        ByName(Text("a launch's name", COMPONENT_NAME.pattern, example="grpo-8b")),
        Key("launch"),
        "Ways to start the stack, by name: each becomes a script.",
        also("launches", "run", "start"),
    ] = ()
    mergers: Annotated[
        tuple[ExternalMerger, ...],
        "Commands that `bump --run` and `refresh --run` ask for files in conflict; of several for "
        "a file the first.",
        also("merger", "merge", "merge-drivers", "resolvers"),
    ] = ()
    components: Annotated[
        tuple[Component, ...],
        ByName(Text("a component name", COMPONENT_NAME.pattern, check_component_name), 1),
        Key(always=True),
        "The upstreams by name, in the order in which they are shown and installed.",
        also("upstreams", "projects", "repos", "repositories"),
    ]

    def component(self, name: str) -> Component | None:
        """The component of that name."""
        return next((each for each in self.components if each.name == name), None)

    def named(self, name: str) -> tuple[Component, ...]:
        """The component of that name, or a family at all its pins; () for none."""
        own = self.component(name)
        return (own,) if own else tuple(each for each in self.components if each.family == name)

    def options(self, component: str = "") -> str:
        """How a command line names it, or one component of it."""
        manifest = f"-m {quote(self.name)}"
        return f"{manifest} -c {component}" if component else manifest

    @property
    def lock_path(self) -> Path:
        """Where the manifest's lock stands: beside it."""
        return self.path.with_name(self.name + ".lock.json")


# The environment of a whole manifest: its own, and what its components need beyond it.


#: Names in `versions` that no package index has.
SYSTEM_SOFTWARE = ("python", "cann", "nnal", "hdk", "driver", "firmware")


def normal_name(package: str) -> str:
    """The one spelling of a package's name: `torch_npu` is `torch-npu` (PEP 503)."""
    return re.sub(r"[-_.]+", "-", package).lower()


def whole_environment(manifest: Manifest) -> Environment:
    """What all of a stack runs in; version specifiers of one package are joined.

    Raises BadInputError where two of them set one variable to different values.
    """
    owners = [("the manifest", manifest.environment)]
    owners += [(each.name, each.environment) for each in manifest.components]
    everyone = [environment for _, environment in owners]
    paths: dict[str, tuple[str, ...]] = {}
    for environment in everyone:
        for name, folders in environment.paths.items():
            paths[name] = tuple(dict.fromkeys((*paths.get(name, ()), *folders)))
    return Environment(
        versions=_versions(everyone),
        scripts=tuple(dict.fromkeys(script for each in everyone for script in each.scripts)),
        variables=_variables(manifest, owners),
        paths=paths,
        unsupported={k: v for each in reversed(everyone) for k, v in each.unsupported.items()},
    )


def requirements(environment: Environment) -> tuple[str, ...]:
    """What pip is to install: `torch==2.8.0`, in the order of the manifest."""
    return tuple(
        f"{name}{specifier.replace(' ', '')}"
        for name, specifier in environment.versions.items()
        if normal_name(name) not in SYSTEM_SOFTWARE
    )


def _versions(environments: list[Environment]) -> Mapping[str, str]:
    """Name -> all specifiers, under the first spelling of the name."""
    names: dict[str, str] = {}
    specifiers: dict[str, dict[str, None]] = {}
    for environment in environments:
        for name, specifier in environment.versions.items():
            first = names.setdefault(normal_name(name), name)
            clauses = (clause.strip() for clause in specifier.split(","))
            specifiers.setdefault(first, {}).update(dict.fromkeys(clauses))
    return {name: ",".join(clauses) for name, clauses in specifiers.items()}


def _variables(manifest: Manifest, owners: list[tuple[str, Environment]]) -> Mapping[str, str]:
    setters: dict[str, tuple[str, str]] = {}
    problems: list[Problem] = []
    for owner, environment in owners:
        for name, text in environment.variables.items():
            first, setter = setters.setdefault(name, (text, owner))
            if first != text:
                what = f"{name} is {first!r} to {setter} and {text!r} to {owner}"
                hint = "all run in one environment: let them agree, or set it in a launch"
                problems.append(Problem(what, manifest.path.name, hint))
    if problems:
        raise BadInputError(*problems)
    return {name: text for name, (text, _) in setters.items()}
