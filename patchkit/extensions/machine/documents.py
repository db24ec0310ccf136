"""The files that a manifest is rendered to, the version table among them: what each of their
templates is given, and the mark by which a generated file is known.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct

from patchkit import __version__
from patchkit.errors import BadInputError, Problem, UsageError
from patchkit.extensions.machine import notation
from patchkit.extensions.machine.lock import EnvironmentLock
from patchkit.extensions.machine.notation import quote, used_in
from patchkit.extensions.machine.site_values import SiteValues
from patchkit.extensions.machine.topic import DocumentKind
from patchkit.manifest.find import absolute
from patchkit.manifest.values import (
    Environment,
    Launch,
    LocalPatch,
    LocalSeries,
    Manifest,
    OrderedFolder,
    whole_environment,
)
from patchkit.model.names import filled, referred
from patchkit.stack.patch_lists import read_series
from patchkit.templates.environments import ProjectTemplates

# The mark of a generated file: where it comes from, and a digest of all that is in it.
#
# The digest tells a file that somebody edited from one that is merely out of date. It stands in
# one line, in whatever notation the file has for comments, and covers everything but itself.


_LINE = re.compile(r"patchkit-digest: sha256:([0-9a-f]{64}|)")

#: What a template writes where the digest goes.
UNSIGNED = "patchkit-digest: sha256:"


class Condition(str, Enum):
    """How a file stands to what the manifest says now."""

    FRESH = "fresh"
    STALE = "stale"  # as patchkit made it, from something older
    EDITED = "edited"  # changed by hand since
    FOREIGN = "foreign"  # not made by patchkit
    MISSING = "missing"
    LEFTOVER = "leftover"  # made by patchkit, from nothing that the manifest still has


def signed(text: str) -> str:
    """A text that has `UNSIGNED` once, with its digest filled in."""
    return _LINE.sub(f"{UNSIGNED}{_digest(text)}", text, count=1)


def is_marked(text: str) -> bool:
    """Whether patchkit made this file."""
    return _LINE.search(text) is not None


def is_intact(text: str) -> bool:
    """Whether a marked text is as patchkit made it."""
    found = _LINE.search(text)
    return found is not None and found[1] == _digest(text)


def condition(actual: str | None, wanted: str) -> Condition:
    """How a file's text stands to the signed text that it ought to have."""
    if actual is None:
        return Condition.MISSING
    if actual == wanted:
        return Condition.FRESH
    if not is_marked(actual):
        return Condition.FOREIGN
    return Condition.STALE if is_intact(actual) else Condition.EDITED


def _digest(text: str) -> str:
    return hashlib.sha256(_LINE.sub(UNSIGNED, text, count=1).encode()).hexdigest()


# The version table between two marks of a Markdown file that is somebody's own.
#
# The first mark says which manifest; patchkit adds the digest to it:
#
#     <!-- patchkit versions: manifests/demo.yaml -->
#     <!-- patchkit versions: end -->


_BLOCK = re.compile(
    r"(?P<begin>^<!-- patchkit versions: (?P<manifest>[^\n;]+?)(?:;[^\n]*)? -->\n)"
    r"(?P<body>.*?)"
    r"(?P<end>^<!-- patchkit versions: end -->$)",
    re.MULTILINE | re.DOTALL,
)


def replaced(page: str, manifest: str, table: str, where: str) -> tuple[str, Condition]:
    """The page with the table of `manifest` in its place, and how the page stood to that.

    A block without a digest is one that waits for its first table, so long as it is empty. Raises
    BadInputError if the page has no block for the manifest, or more than one.
    """
    blocks = [block for block in _BLOCK.finditer(page) if block["manifest"] == manifest]
    begin = f"<!-- patchkit versions: {manifest} -->"
    if len(blocks) != 1:
        what = "has no place" if not blocks else f"has {len(blocks)} places"
        hint = f"put these two lines where it belongs: {begin} and <!-- patchkit versions: end -->"
        raise BadInputError(Problem(f"{what} for the version table of {manifest}", where, hint))
    (block,) = blocks
    head = f"<!-- patchkit versions: {manifest}; generated, do not edit; {UNSIGNED} -->\n"
    wanted = signed(f"{head}\n{table.strip()}\n\n") + block["end"]
    new = page[: block.start()] + wanted + page[block.end() :]
    if not block["body"].strip() and UNSIGNED not in block["begin"]:
        return new, Condition.MISSING
    return new, condition(block["begin"] + block["body"], wanted.removesuffix(block["end"]))


# The version table: what a stack is made of, for a README or a page of documentation.


def patch_counts(manifest: Manifest) -> dict[str, int]:
    """Component -> how many patches it has; reads the series files. Raises BadInputError."""
    return {
        component.name: sum(
            len(read_series(manifest, entry).entries) if isinstance(entry, LocalSeries) else 1
            for entry in component.patches
        )
        for component in manifest.components
    }


#: How documents call the system's software.
_LABELS = {
    "python": "Python",
    "cann": "CANN",
    "nnal": "NNAL",
    "hdk": "HDK (driver and firmware)",
    "driver": "driver",
    "firmware": "firmware",
}


def _shown(specifier: str) -> str:
    """`==2.8.0` is just 2.8.0 to a reader."""
    exact = specifier.removeprefix("==")
    return exact if "," not in exact and exact != specifier and "*" not in exact else specifier


#: A file is of no use without these.
_NEEDS = {
    DocumentKind.INSTALL: (DocumentKind.ENVIRONMENT,),
    DocumentKind.LAUNCH: (DocumentKind.ENVIRONMENT,),
    DocumentKind.DOCKERFILE: (DocumentKind.INSTALL, DocumentKind.ENVIRONMENT),
}


class Document(Struct, frozen=True):
    """One file to be made: its name, its template's, the site values it needs, the context."""

    name: str
    template: str
    needs: tuple[str, ...] = ()
    executable: bool = False  # the file's mode has x
    context: Mapping[str, Any] = {}


class TargetFolders(Struct, frozen=True):
    """Where the files go, as they need to know it.

    `root` is the project's folder seen from there: a relative path for files in the project, else
    an absolute one. `folder` and `manifest` are POSIX paths from the project's folder.
    """

    root: str
    folder: str
    manifest: str

    @property
    def is_outside(self) -> bool:
        """Whether the files do not stand in the project."""
        return self.root.startswith("/")

    @classmethod
    def of(cls, manifest: Manifest, output: Path) -> TargetFolders:
        """The place `output`."""
        root, target = manifest.root, absolute(output)
        inside = target == root or root in target.parents
        return cls(
            Path(os.path.relpath(root, target)).as_posix() if inside else root.as_posix(),
            Path(os.path.relpath(target, root)).as_posix(),
            manifest.path.relative_to(root).as_posix(),
        )


def lacking_keys(manifest: Manifest) -> dict[DocumentKind, str]:
    """What cannot be made, each with the key of the manifest that it is made from."""
    keys = {DocumentKind.DOCKERFILE: "image", DocumentKind.LAUNCH: "launch"}
    there = {DocumentKind.DOCKERFILE: manifest.image, DocumentKind.LAUNCH: manifest.launches}
    return {kind: key for kind, key in keys.items() if not there[kind]}


def with_needed(kinds: Iterable[DocumentKind]) -> tuple[DocumentKind, ...]:
    """The kinds, and those without which they are of no use."""
    wanted = {need for kind in kinds for need in (kind, *_NEEDS.get(kind, ()))}
    return tuple(kind for kind in DocumentKind if kind in wanted)


def plan_documents(
    manifest: Manifest,
    kinds: Sequence[DocumentKind],
    place: TargetFolders,
    site: SiteValues,
    locks: Sequence[EnvironmentLock],
) -> tuple[Document, ...]:
    """The files of these kinds; raises UsageError naming every site value that is missing.

    Raises BadInputError for what cannot be said in one file.
    """
    environment = whole_environment(manifest)
    planner = _Planner(manifest, environment, place, site, locks)
    drafts = [draft for kind in kinds for draft in planner.documents(kind)]
    site.require((name for draft in drafts for name in draft.needs), manifest)
    return tuple(drafts)


class _Planner(Struct, frozen=True):
    """Knows what all files of a manifest have in common."""

    manifest: Manifest
    environment: Environment  # whole
    place: TargetFolders
    site: SiteValues
    locks: Sequence[EnvironmentLock]

    def documents(self, kind: DocumentKind) -> Iterator[Document]:
        """The files of one kind."""
        match kind:
            case DocumentKind.ENVIRONMENT:
                yield self._env()
            case DocumentKind.INSTALL:
                yield self._install()
            case DocumentKind.DOCKERFILE:
                yield self._dockerfile()
            case DocumentKind.LAUNCH:
                for launch in self.manifest.launches:
                    yield self._launch(launch)
            case DocumentKind.VERSIONS:
                yield self._document(
                    "versions.md",
                    "versions.md.j2",
                    (),
                    environment=self.environment,
                    patches=patch_counts(self.manifest),
                )
            case DocumentKind.LOCK:
                for lock in self.locks:
                    yield self._document(lock.file, "requirements.txt.j2", (), lock=lock)

    def _env(self) -> Document:
        environment = self.environment
        texts = [*environment.scripts, *environment.variables.values()]
        texts += [folder for folders in environment.paths.values() for folder in folders]
        needs = self._ordered(name for text in texts for name in referred(text))
        here = '"$(dirname -- "${BASH_SOURCE[0]}")'
        return self._document(
            "env.sh",
            "env.sh.j2",
            needs,
            environment=environment,
            workspace=self._workspace(here) if "workspace" in needs else "",
        )

    def _install(self) -> Document:
        runs = [step.run for component in self.manifest.components for step in component.install]
        return self._document(
            "install.sh",
            "install.sh.j2",
            self._used_in(runs),
            executable=True,
            root=self._root('"$here'),
            workspace=self._workspace('"$here'),
            components=[component for component in self.manifest.components if component.install],
            environment=self.environment,
        )

    def _dockerfile(self) -> Document:
        image = self.manifest.image
        assert image is not None
        if self.place.is_outside:
            what = f"{self.place.folder}/Dockerfile is outside of the project, which it copies from"
            hint = "choose another --output, or leave it out: render install launch versions"
            raise UsageError(Problem(what, hint=hint))
        index = self.environment.variables.get("PIP_INDEX_URL", "")
        needs = tuple(dict.fromkeys((*referred(image.base), *referred(index))))
        known = {**dict.fromkeys(needs, "missing"), **self.site.values}
        return self._document(
            "Dockerfile",
            "Dockerfile.j2",
            needs,
            base=notation.image(filled(image.base, known), self.manifest.path.name),
            packages=image.packages,
            index=notation.index(filled(index, known), self.manifest.path.name),
            folders=self._folders(),
            tag=re.sub(r"[^a-z0-9]+", "-", self.manifest.name.lower()).strip("-") or "stack",
            version=__version__,
        )

    def _launch(self, launch: Launch) -> Document:
        values = [value for group in launch.arguments.values() for value in group.values()]
        values += (launch.ray.npus, launch.ray.machines) if launch.ray else ()
        texts = [
            text for value in values for text in ((value,) if isinstance(value, str) else value)
        ]
        texts += [*launch.variables.values(), *launch.needs]
        component = self.manifest.component(launch.component or "")
        steps = [step.run for step in launch.before]
        return self._document(
            f"launch-{launch.name}.sh",
            "launch.sh.j2",
            self._used_in(
                [*steps, launch.command], (name for text in texts for name in referred(text))
            ),
            executable=True,
            workspace=self._workspace('"$here'),
            launch=launch,
            made=self._used_in(steps),
            checkout="" if component is None else component.checkout,
        )

    def _document(
        self,
        name: str,
        template: str,
        needs: tuple[str, ...],
        *,
        executable: bool = False,
        **context: object,
    ) -> Document:
        given = self.site.values
        shared = {
            "manifest": self.manifest,
            "title": (self.manifest.description or self.manifest.name).rstrip("."),
            "place": self.place,
            "file": name,
            "template": template,
            "site": {n: given[n] for n in needs if n in given and n != "workspace"},
        }
        return Document(name, template, needs, executable, {**shared, **context})

    def _root(self, here: str) -> str:
        """The project's folder as a shell word; `here` is the script's, after an opening quote."""
        if self.place.is_outside:
            return quote(self.place.root)
        return f'{here}/{self.place.root}"'

    def _workspace(self, here: str) -> str:
        """The workspace's absolute path, as what a shell assigns."""
        workspace = self.site.values["workspace"]
        if workspace.startswith("/"):
            return quote(workspace)
        if self.place.is_outside:
            return quote(f"{self.place.root}/{workspace}")
        return f"$(cd -- {self._root(here)} && pwd)/{quote(workspace)}"

    def _used_in(self, runs: Iterable[str], others: Iterable[str] = ()) -> tuple[str, ...]:
        """The values that shell texts and others use."""
        return self._ordered((*others, *(n for run in runs for n in used_in(run, self.names))))

    @property
    def names(self) -> tuple[str, ...]:
        """Those of all site values."""
        return ("workspace", *(value.name for value in self.manifest.values))

    def _ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        wanted = set(names)
        return tuple(name for name in self.names if name in wanted)

    def _folders(self) -> list[str]:
        """What the image needs of the project, as folders and files from its root, none twice."""
        manifest = self.manifest
        paths = {self.place.folder, _folder_of(self.place.manifest)}
        for component in manifest.components:
            for entry in component.patches:
                if isinstance(entry, OrderedFolder):
                    paths.add(entry.path)
                elif isinstance(entry, LocalSeries | LocalPatch):
                    paths.add(_folder_of(entry.path))
        outer = sorted(
            path
            for path in paths
            if not any(
                path != other and path.startswith(other.rstrip("/") + "/") for other in paths
            )
        )
        return [
            f"{path}/" if (manifest.root / path).is_dir() or path == self.place.folder else path
            for path in outer
        ]


def _folder_of(path: str) -> str:
    """A file's folder; the file itself where it stands at the root."""
    return path.rpartition("/")[0] or path


# A document through its template: the notation's filters, the mark's digest.


_FILTERS: Mapping[str, Callable[..., object]] = {
    "argument": notation.argument,
    "body": notation.step_body,
    "code": notation.code,
    "comment": notation.comment,
    "copy": notation.copy_words,
    "html_comment": notation.html_comment,
    "in_workspace": notation.in_workspace,
    "exactly": _shown,
    "json": lambda text: json.dumps(text, ensure_ascii=False),
    "label": lambda name: _LABELS.get(name, name),
    "md": notation.markdown,
    "oneline": notation.one_line,
    "paths": notation.prepended,
    "pin": notation.pin_cell,
    "quote": notation.quote,
    "references": referred,
    "short": notation.short,
    "source": notation.source_cell,
    "word": notation.word,
}


def templates_of(root: Path) -> ProjectTemplates:
    """The templates for a project: its own before the shipped ones."""
    return ProjectTemplates(root, _FILTERS)


def document_text(document: Document, templates: ProjectTemplates) -> str:
    """A document's text, signed, with one newline at its end.

    Raises BadInputError for a template that fails, or that leaves out the mark.
    """
    text = templates.render(document.template, document.context)
    if UNSIGNED not in text:
        hint = f'add the line `# {UNSIGNED}`, as in `{{% include "mark.j2" %}}`'
        where = templates.place(document.template)
        raise BadInputError(Problem("has no line for the digest", where, hint))
    return signed(text.strip("\n") + "\n")
