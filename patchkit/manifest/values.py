"""What a manifest says, as frozen values.

Local paths are POSIX paths relative to `Manifest.root`, already checked not to leave it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TypeAlias

from msgspec import Struct, field

from patchkit.errors import BadInputError, Problem
from patchkit.model.objects import CommitId


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


class GitSource(Struct, frozen=True):
    """A git upstream; `mirrors` are tried in order after `url`."""

    url: str
    mirrors: tuple[str, ...] = ()


class IndexSource(Struct, frozen=True):
    """A project on the user's package index."""

    project: str


class ArchiveSource(Struct, frozen=True):
    """A .tar.gz, .tar.xz, .tar.bz2 or .zip by URL; `mirrors` are tried in order after `url`."""

    url: str
    mirrors: tuple[str, ...] = ()


class GitPin(Struct, frozen=True):
    """A full commit id."""

    commit: CommitId

    def __str__(self) -> str:
        return self.commit


class IndexPin(Struct, frozen=True):
    """An exact version whose source distribution has this SHA-256."""

    version: str
    sha256: str  # 64 hex digits

    def __str__(self) -> str:
        return self.version


class ArchivePin(Struct, frozen=True):
    """The archive's SHA-256."""

    sha256: str  # 64 hex digits

    def __str__(self) -> str:
        return f"sha256:{self.sha256}"


Source: TypeAlias = GitSource | IndexSource | ArchiveSource
Pin: TypeAlias = GitPin | IndexPin | ArchivePin


class LocalPatch(Struct, frozen=True):
    """One .patch file of the project."""

    path: str  # from the project's root
    where: Location  # the entry in the manifest

    @property
    def patch_name(self) -> str:
        """What the patch is called in its stack."""
        return self.path.rpartition("/")[2]


class LocalSeries(Struct, frozen=True):
    """A series file of the project: all its patches, in its order."""

    path: str  # from the project's root
    where: Location  # the entry in the manifest


class ReviewedFile(Struct, frozen=True):
    """A file that was another one when a patch was made, and why the patch is right still."""

    path: str  # in the component's tree
    reason: str  # why the patch is right on the other file, too
    where: Location  # the entry in the manifest


class PinnedPatch(Struct, frozen=True):
    """A file in another pinned repository, fetched and verified, never copied in.

    Either `component` (of the same manifest, at its pin) or `git` and `commit` say where.
    `strip` is None where the component's applies. `name` is given where the file's own name is no
    patch name, or is taken by another patch of the component.
    """

    path: str  # in the other repository
    sha256: str  # of the patch file, 64 hex digits
    where: Location
    component: str | None = None
    git: str | None = None
    commit: CommitId | None = None
    strip: int | None = None
    name: str | None = None
    #: Files that are others than those the patch was made against.
    other_base: tuple[ReviewedFile, ...] = ()

    @property
    def patch_name(self) -> str:
        """What the patch is called in its stack."""
        return self.name or self.path.rpartition("/")[2]


PatchEntry: TypeAlias = LocalPatch | LocalSeries | PinnedPatch


class InstallStep(Struct, frozen=True):
    """One shell command of the installation, run in `directory` of the checkout."""

    run: str  # a shell command
    name: str = ""  # for messages; "" for none
    directory: str = ""


class AbsentTarget(Struct, frozen=True):
    """Targets that need not be there: `name` is one's name or a glob over names."""

    name: str
    reason: str  # why it need not be there
    where: Location  # the entry in the manifest


class Overrides(Struct, frozen=True):
    """What a component replaces in another one, `target`, while it runs.

    `rule` is the rule file that finds the calls; `packages` are the target's, below `root` of its
    tree.
    """

    target: str
    rule: str
    packages: tuple[str, ...]
    where: Location  # the entry in the manifest
    root: str = ""
    absent: tuple[AbsentTarget, ...] = ()  # targets that may be gone


class DeclaredCall(Struct, frozen=True):
    """Calls written as `call` in `files` lead to `to`, a dotted name, which the source hides."""

    call: str
    files: tuple[str, ...]
    to: str
    where: Location  # the entry in the manifest


class Contracts(Struct, frozen=True):
    """What a component gives to others, and where its own calls into them are looked at.

    Its `packages` are below `root`. `entries` are globs of the modules that are started, () for
    all; names of `holds` are true on the machine, those of `fails` false; `outside` are packages
    that come from elsewhere.
    """

    packages: tuple[str, ...]
    where: Location
    root: str = ""
    entries: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    calls: tuple[DeclaredCall, ...] = ()
    outside: tuple[str, ...] = ()
    absent: tuple[AbsentTarget, ...] = ()  # calls into what may be gone


class TextStep(Struct, frozen=True):
    """A text that must be in one of the files, or (`wanted` False) in none."""

    text: str
    wanted: bool
    files: tuple[str, ...]
    where: Location  # the entry in the manifest
    name: str = ""  # for messages; "": made of the text
    after: str = ""  # the patch after which it is looked at, "" for the last
    optional: str = ""  # why none of the files need be there; "": one must


class RuleStep(Struct, frozen=True):
    """A rule file whose expectations must hold."""

    rules: str
    where: Location  # the entry in the manifest
    name: str = ""  # for messages; "": the rule file
    after: str = ""  # the patch after which it is looked at, "" for the last


class RunStep(Struct, frozen=True):
    """Shell commands that must pass in `directory` of a scratch checkout."""

    run: str  # a shell command
    where: Location  # the entry in the manifest
    name: str = ""  # for messages; "": the command's first line
    after: str = ""  # the patch after which it is looked at, "" for the last
    directory: str = ""


#: What must hold of the tree after the patch `after`, "" for the last.
VerifyStep: TypeAlias = TextStep | RuleStep | RunStep


class Residual(Struct, frozen=True):
    """Rule files to look for in the patched tree, and the file of reviewed sites ("": default)."""

    rules: tuple[str, ...] = ()
    baseline: str = ""  # from the project's root


class Environment(Struct, frozen=True):
    """What a stack runs in.

    `versions` maps a name (python, cann, hdk, ... or a package) to a version specifier,
    `unsupported` a package known not to work to the reason. `scripts` are sourced before
    `variables` are set; the folders of `paths` go before what a variable has already. These three
    may refer to site values.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)


class SiteValue(Struct, frozen=True):
    """What each site decides; without a `default` (None) it must be given."""

    name: str  # as ${NAME} refers to it
    description: str  # for whoever has to give it
    default: str | None
    where: Location  # the entry in the manifest


class Image(Struct, frozen=True):
    """What a Dockerfile starts from, and the system's packages; `base` may refer to site values."""

    base: str
    packages: tuple[str, ...] = ()


ArgumentValue: TypeAlias = "str | tuple[str, ...]"


class Launch(Struct, frozen=True):
    """One way to start the stack, in `directory` of the checkout of `component` (None: workspace).

    `command` is shell words; `arguments` maps groups to names to values, all in order. Variables
    and the values of arguments may refer to site values.
    """

    name: str
    command: str
    where: Location  # the entry in the manifest
    description: str = ""  # for people
    component: str | None = None
    directory: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    before: tuple[InstallStep, ...] = ()  # commands that run first, in order
    arguments: Mapping[str, Mapping[str, ArgumentValue]] = field(default_factory=dict)


class UpstreamTests(Struct, frozen=True):
    """A shell command that runs upstream's tests in `directory`, and what it is told."""

    run: str  # a shell command
    where: Location  # the entry in the manifest
    directory: str = ""
    #: Of its environment, beside those that are there.
    variables: Mapping[str, str] = field(default_factory=dict)


class ExternalMerger(Struct, frozen=True):
    """A command that is asked for files in conflict that one of the globs `files` names.

    `seconds` after which it is ended, 0 for the default.
    """

    files: tuple[str, ...]
    run: str  # a shell command
    where: Location  # the entry in the manifest
    name: str = ""
    seconds: int = 0

    @property
    def title(self) -> str:
        """What messages call it: its name, else its command's first word, without folders."""
        words = self.run.split()
        return self.name or (words[0].rpartition("/")[2] if words else "merger")


class DifferingFiles(Struct, frozen=True):
    """Files, by globs over the upstream's paths, that a wheel has in another form than the pin."""

    files: tuple[str, ...]
    reason: str  # why they may differ
    where: Location  # the entry in the manifest


class Component(Struct, frozen=True):
    """An upstream in a manifest."""

    name: str  # unique in the manifest
    source: Source
    pin: Pin
    #: Its name in the manifest, and the characters of its pin.
    where: Location
    pin_where: Location  # what a bump edits
    #: The branch or pattern of tags that bumps and drift look at.
    track: str | None = None
    #: Its folder in the workspace, "" for one of its name.
    checkout: str = ""
    #: How many leading folders go from a patch's paths,
    strip: int = 1
    #: and the folder that is put before them then, "" for the root.
    subdirectory: str = ""
    #: Folders of the upstream -> those that they are installed as; {} for what is found.
    layout: Mapping[str, str] = field(default_factory=dict)
    differing: tuple[DifferingFiles, ...] = ()  # what of a wheel need not be the pin's
    patches: tuple[PatchEntry, ...] = ()  # entries in the order of application
    install: tuple[InstallStep, ...] = ()  # commands, in order
    environment: Environment = field(default_factory=Environment)
    description: str = ""  # one line, for the table of components
    overrides: tuple[Overrides, ...] = ()
    verify: tuple[VerifyStep, ...] = ()  # what the patched tree must hold, in order
    residual: Residual = field(default_factory=Residual)
    contracts: Contracts | None = None
    upstream_tests: UpstreamTests | None = None

    @property
    def series(self) -> LocalSeries | None:
        """Its series, None if the manifest names none; no manifest is taken that names two."""
        return next((each for each in self.patches if isinstance(each, LocalSeries)), None)

    @property
    def references(self) -> tuple[PinnedPatch, ...]:
        """Its patches that stay in another pinned repository."""
        return tuple(each for each in self.patches if isinstance(each, PinnedPatch))


class Manifest(Struct, frozen=True):
    """A whole manifest, `extends` resolved."""

    path: Path
    #: The project: the parent of `manifests/` if the file is in such a folder, else its own folder.
    root: Path
    #: The file's name without its ending.
    name: str
    #: In the order written.
    components: tuple[Component, ...]
    environment: Environment = field(default_factory=Environment)
    description: str = ""  # for people
    values: tuple[SiteValue, ...] = ()  # what sites decide, in the manifest's order
    image: Image | None = None
    launches: tuple[Launch, ...] = ()  # ways to start the stack, in the manifest's order
    mergers: tuple[ExternalMerger, ...] = ()  # in the order in which they are asked
    upon: tuple[str, ...] = ()  # manifests whose stacks lie beneath, by name, the lowest first

    def component(self, name: str) -> Component | None:
        """The component of that name."""
        return next((each for each in self.components if each.name == name), None)

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
    variables: dict[str, str] = {}
    setters: dict[str, str] = {}
    problems: list[Problem] = []
    for owner, environment in owners:
        for name, text in environment.variables.items():
            if variables.setdefault(name, text) != text:
                what = f"{name} is {variables[name]!r} to {setters[name]} and {text!r} to {owner}"
                hint = "all run in one environment: let them agree, or set it in a launch"
                problems.append(Problem(what, manifest.path.name, hint))
            setters.setdefault(name, owner)
    if problems:
        raise BadInputError(*problems)
    return variables
