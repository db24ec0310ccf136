"""Manifests by themselves: what is wrong with them, what they say once everything is resolved, and
the start of a project with a first one, and further components in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from msgspec import Struct

from patchkit.disk.files import Contents
from patchkit.disk.transaction import recover, write_set
from patchkit.errors import BadInputError, ExitCode, Problem, UsageError
from patchkit.manifest import edit
from patchkit.manifest.find import FOLDER, project_root
from patchkit.manifest.json_schema import schema_text
from patchkit.manifest.keys import record_of, struct_data
from patchkit.manifest.load import inspect_manifest, load_manifest
from patchkit.manifest.types import (
    Complaint,
    check_commit,
    check_component_name,
    check_package,
    check_sha256,
    check_track,
    check_url,
    check_version,
    resolve_url,
)
from patchkit.manifest.validate import Whole, read_shape, shown
from patchkit.manifest.values import (
    ArchivePin,
    ArchiveSource,
    Component,
    GitPin,
    GitSource,
    IndexPin,
    IndexSource,
    LocalPatch,
    LocalSeries,
    Location,
    Manifest,
    Pin,
    Source,
)
from patchkit.manifest.write import yaml_text
from patchkit.manifest.yaml_nodes import parse
from patchkit.model.names import is_component_name
from patchkit.model.objects import CommitId
from patchkit.stack.patch_lists import read_listed, read_series

if TYPE_CHECKING:
    from patchkit.upstream.git import NamedCommit, Refs


class LintedManifest(Struct, frozen=True):
    """What was found in one manifest and the parts that it extends.

    `path` is the manifest, `components` how many it has (0 if it cannot be loaded). A problem keeps
    it from being used, a warning does not; each has `what`, `where` ("file:line") and a `hint`.
    """

    path: str
    components: int
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


class LintReport(Struct, frozen=True):
    """Every manifest that was looked at, in order; `strict`: warnings count as problems."""

    manifests: tuple[LintedManifest, ...]
    strict: bool

    @property
    def exit_code(self) -> ExitCode:
        """BAD_INPUT for a problem, FINDING for warnings if strict."""
        if any(each.problems for each in self.manifests):
            return ExitCode.BAD_INPUT
        if self.strict and any(each.warnings for each in self.manifests):
            return ExitCode.FINDING
        return ExitCode.OK


class ShownManifest(Struct, frozen=True):
    """A manifest with its parts merged, local URLs absolute and defaults of folders filled in.

    `path` is its file, `files` all files that it is made of, `manifest` its contents in the keys of
    the format (docs/manifest.md).
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"text"})

    path: str
    files: tuple[str, ...]
    manifest: Mapping[str, object]
    text: str  # the same as YAML


def lint_manifests(paths: Iterable[Path], *, strict: bool) -> LintReport:
    """Everything that is wrong with the manifests and with the series that they name."""
    return LintReport(tuple(_lint(path) for path in paths), strict)


def show_manifest(path: Path) -> ShownManifest:
    """The manifest resolved; its text loads again to the same values from the same folder."""
    inspection = inspect_manifest(path)
    data = struct_data(inspection.require())
    return ShownManifest(str(path), tuple(map(str, inspection.files)), data, yaml_text(data))


def _lint(path: Path) -> LintedManifest:
    inspection = inspect_manifest(path)
    manifest = inspection.manifest
    if manifest is None:
        return LintedManifest(str(path), 0, inspection.problems, inspection.warnings)
    problems = tuple(
        problem
        for component in manifest.components
        for problem in _local_files(manifest, component)
    )
    return LintedManifest(str(path), len(manifest.components), problems, inspection.warnings)


def _local_files(manifest: Manifest, component: Component) -> Iterator[Problem]:
    """Series and patches of the project that are not there, and series that cannot be read."""
    names: dict[str, str] = {}
    for entry in component.patches:
        if isinstance(entry, LocalSeries):
            yield from _series(manifest, entry, names)
        else:
            if isinstance(entry, LocalPatch):
                yield from _unreadable(manifest.root, entry.path, entry.where)
            yield from _once(entry.patch_name, str(entry.where), names)


def _series(manifest: Manifest, entry: LocalSeries, names: dict[str, str]) -> Iterator[Problem]:
    try:
        series = read_series(manifest, entry)
    except BadInputError as error:
        yield from error.problems
        return
    for patch in series.entries:
        where = entry.place(patch.line)
        yield from _unreadable(manifest.root, entry.beside(patch.name), where)
        yield from _once(patch.name, str(where), names)


def _unreadable(root: Path, path: str, where: Location) -> tuple[Problem, ...]:
    try:
        read_listed(root, path, where)
    except BadInputError as error:
        return error.problems
    return ()


def _once(name: str, where: str, names: dict[str, str]) -> Iterator[Problem]:
    first = names.setdefault(name.casefold(), where)
    if first != where:
        yield Problem(f"{name} is the name of the patch at {first}, too", where, "rename one")


# Start a project: a commented manifest with one component, and an empty series for it.


_SCHEMA = "manifest.schema.json"


class UpstreamOptions(Struct, frozen=True):
    """What was asked for, as typed; `ref` names a commit of `git`."""

    git: str | None = None  # a URL
    ref: str | None = None
    archive: str | None = None  # a URL or file; or PROJECT==VERSION, on the package index
    sha256: str | None = None  # the archive's; None: take what it has


class NewUpstream(Struct, frozen=True):
    """An upstream with its pin; `name` is a component name made of it, empty if none can be.

    `tag` is what people call the pin, for the comment beside it; "" where nobody knows.
    """

    name: str
    source: Source
    pin: Pin
    track: str | None = None  # the branch, tag pattern or project to follow; None for none
    tag: str = ""


class Created(Struct, frozen=True):
    """`manifest` is the manifest's path, `files` everything that was written, in order.

    Paths start from the project's folder. `component` is the new component.
    """

    manifest: str
    component: str
    files: tuple[str, ...]


def create_project(root: Path, name: str, component: str, upstream: NewUpstream) -> Created:
    """Write manifests/NAME.yaml, patches/COMPONENT/series and the schema for editors.

    On disk: all of them or none. A series that is there already stays as it is; a manifest that is
    there is never overwritten (UsageError). `name` is the manifest's, without an ending.
    BadInputError for values that no manifest takes.
    """

    require("the component's name", component, check_component_name)
    recover(root)
    path, description = manifest_path(root, name), f"{component} with our patches"
    files, seen = manifest_files(root, path, description, component_text(component, upstream))
    return _written(root, path, component, files, seen)


def manifest_path(root: Path, name: str) -> Path:
    """Where a new manifest of that name goes; UsageError where one is there already."""
    path = root / FOLDER / f"{_manifest_name(name)}.yaml"
    for ending in (".yaml", ".yml"):
        if path.with_suffix(ending).exists():
            taken = path.with_suffix(ending).relative_to(root)
            hint = "edit it, or choose another name"
            raise UsageError(Problem(f"{taken} is there already", hint=hint))
    return path


def manifest_files(
    root: Path, path: Path, description: str, components: str
) -> tuple[dict[Path, bytes], Contents]:
    """The files of a new manifest with such components, and of those the ones that are there.

    They are the manifest and, unless it is there, the schema for editors.
    """
    from patchkit.templates.environments import render_template

    schema = _schema_file(root)
    text = render_template(
        "manifest.yaml.j2",
        modeline=os.path.relpath(schema, path.parent),
        description=description,
        components=components,
    )
    files = {path: text.encode()}
    if not schema.exists() or schema.read_text(encoding="utf-8") != schema_text():
        files[schema] = schema_text().encode()
    # an older patchkit's
    return files, {schema: schema.read_bytes()} if schema.exists() else {}


def add_component(path: Path, component: str, upstream: NewUpstream) -> Created:
    """Add a component at the end of the manifest at `path`, and write patches/COMPONENT/series.

    On disk: both or none; a series that is there already stays as it is. UsageError where there is
    such a component, BadInputError for values that no manifest takes.
    """
    require("the component's name", component, check_component_name)
    root = project_root(path)
    recover(root)
    manifest = load_manifest(path)
    taken = {name.casefold() for c in manifest.components for name in (c.name, c.checkout)}
    if component.casefold() in taken:
        what = f"{component} is there already, or its folder is another one's"
        raise UsageError(Problem(what, path.name, "choose another name"))
    before = path.read_bytes()
    text = edit.add_component(before, component_text(component, upstream), file=path)
    path = manifest.path
    return _written(root, path, component, {path: text}, {path: before})


def _written(
    root: Path,
    path: Path,
    component: str,
    files: dict[Path, bytes],
    seen: Contents,
) -> Created:
    """Write the manifest with a new component, and a series for that unless it has one."""
    from patchkit.templates.environments import render_template

    _require_valid(files[path].decode("utf-8-sig"), path.relative_to(root))
    series = root / "patches" / component / "series"
    if not series.exists():
        files[series] = render_template("series.j2", component=component).encode()
    write_set(root, files, seen)
    return Created(
        path.relative_to(root).as_posix(),
        component,
        tuple(file.relative_to(root).as_posix() for file in files),
    )


#: Asks a repository for its refs; the text is a full name outside of branches and tags, or "".
AskRefs: TypeAlias = Callable[[GitSource, str], "Refs"]


def choose_upstream(options: UpstreamOptions, ask: AskRefs | None = None) -> NewUpstream:
    """What the options name; asks the network for a ref, or the index for a hash not given.

    Raises UsageError for options that do not go together, SurroundingsError if nobody answers.
    """
    if (options.git is None) == (options.archive is None):
        hint = "an upstream is a git repository, or an archive or project on the package index"
        raise UsageError(Problem("give one of --git and --archive", hint=hint))
    if options.git is not None:
        return _git_upstream(options.git, options, ask)
    if options.ref is not None:
        raise UsageError("--ref goes with --git")
    archive = str(options.archive)
    upstream = _index_upstream if "==" in archive else _archive_upstream
    return upstream(archive, options.sha256)


def _git_upstream(url: str, options: UpstreamOptions, ask: AskRefs | None) -> NewUpstream:
    from patchkit.upstream.git import LATEST, find_ref, list_refs

    require("--git", url, check_url)
    if options.sha256 is not None:
        raise UsageError("--sha256 goes with --archive")
    if options.ref is None:
        hint = "a full commit id; or a branch or tag, to pin the commit where it is now"
        raise UsageError(Problem("--git needs --ref", hint=hint))
    name = component_name_of(url)
    if check_commit(options.ref) is None:
        return NewUpstream(name, GitSource(url), GitPin(CommitId(options.ref)))
    ref = require("--ref", options.ref, check_track)
    if ref == LATEST:
        hint = "name a branch or tag; one that is called so is refs/heads/latest, refs/tags/latest"
        raise UsageError(
            Problem(f"--ref {LATEST} stands for `track`, and there is none", hint=hint)
        )
    source = GitSource(resolve_url(url, Path.cwd()))
    refs = (ask or list_refs)(source, ref if ref.startswith("refs/") else "")
    named = find_ref(refs, ref)
    tag = named.tag or refs.tag_at(named.commit)
    tag = tag if re.fullmatch("[!-~]*", tag) else ""  # no marks that a manifest may not have
    pin = GitPin(named.commit)
    return NewUpstream(name, GitSource(url), pin, _followed(ref, named, refs), tag)


def _followed(ref: str, named: NamedCommit, refs: Refs) -> str | None:
    """What `track` says: a branch, in full where a tag is called so, too; a pattern; of a tag the
    pattern of those that differ from it in the numbers.
    """
    from patchkit.upstream.git import is_pattern

    if is_pattern(ref):
        return ref
    if named.branch:
        return ref if f"refs/tags/{named.branch}" not in refs.commits else named.ref
    numbered = re.match("([^0-9]*)[0-9]", named.tag)
    return f"{numbered[1]}[0-9]*" if numbered else None


def _archive_upstream(url: str, sha256: str | None) -> NewUpstream:
    require("--archive", url, check_url)
    if sha256 is None:
        hint = "`sha256sum FILE` prints it; compare it with what the project publishes"
        raise UsageError(Problem("--archive needs --sha256", hint=hint))
    digest = require("--sha256", sha256, check_sha256)
    return NewUpstream(component_name_of(url), ArchiveSource(url), ArchivePin(digest))


def _index_upstream(requirement: str, sha256: str | None) -> NewUpstream:
    project, _, version = requirement.partition("==")
    require("the project in --archive", project, check_package)
    require("the version in --archive", version, check_version)
    if sha256 is None:
        from patchkit.upstream.index import sdist_hash

        sha256 = sdist_hash(project, version)
    digest = require("--sha256", sha256, check_sha256)
    return NewUpstream(component_name_of(project), IndexSource(project), IndexPin(version, digest))


def component_name_of(text: str) -> str:
    """A component name from a URL or a project's name; empty if nothing usable is in it."""
    last = re.split(r"[/:]", text.rstrip("/"))[-1]
    last = re.sub(r"\.(git|tar\.\w+|tgz|zip)$", "", last)
    name = re.sub(r"[^a-z0-9._-]+", "-", last.lower()).strip("._-")[:64].rstrip("._-")
    return name if is_component_name(name) else ""


def require(option: str, text: str, check: Callable[[str], Complaint | None]) -> str:
    """The text if `check` has no complaint; else UsageError that names the option."""
    complaint = check(text)
    if complaint is None:
        return text
    raise UsageError(Problem(f"{option} {shown(text)} {complaint.what}", hint=complaint.hint))


def component_text(name: str, upstream: NewUpstream) -> str:
    """A component with a series of its own as the lines of a manifest, with comments."""
    where = Location(Path(), 1)
    component = Component(
        name=name,
        source=upstream.source,
        pin=upstream.pin,
        where=where,
        pin_where=where,
        track=upstream.track,
        patches=(LocalSeries(f"patches/{name}/series", where),),
    )
    data = struct_data(component)
    return render_component(name, {**data, "strip": None}, tag=upstream.tag)


def render_component(name: str, data: Mapping[str, object], *, tag: str = "") -> str:
    """A component by the keys of the format as the lines of a manifest, with comments."""
    from patchkit.templates.environments import render_template

    wanted = ("source", "pin", "track", "strip", "patches")
    keys = {key: data.get(key) for key in wanted}
    return render_template("component.yaml.j2", component=name, tag=tag, **keys)


def _schema_file(root: Path) -> Path:
    """The project's schema for editors, where it has one, else beside the manifests."""
    shipped = root / "docs" / _SCHEMA
    return shipped if shipped.exists() else root / FOLDER / _SCHEMA


def _manifest_name(name: str) -> str:
    name = re.sub(r"\.ya?ml$", "", name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}", name):
        hint = "letters, digits and . _ - inside; the file goes into manifests/"
        raise UsageError(Problem(f"{shown(name)} cannot name a manifest", hint=hint))
    return name


def _require_valid(text: str, path: Path) -> None:
    _, problems = read_shape(parse(text, path), record_of(Manifest), Whole(partial=True))
    if problems:
        raise BadInputError(*problems)
