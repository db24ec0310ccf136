"""`python -m bench.carry.debian PACKAGE... --work DIR`: make cases from two Debian releases.

What is printed is a case file for `bench.carry.run`: each patch of the older source package as a
bump, with what the maintainers have of it in the newer one, under the same name but for a number. A
patch that is not there any more was given up, mostly since upstream has it. The clones that go with
it are in DIR: `python -m bench.carry.run CASES --mirrors DIR --subset whole`.

Sources are fetched by apt from the mirror that this machine is configured with, with its keys, into
DIR; nothing of the machine's own lists is touched. A package that is missing, or whose patches
do not apply as they are, is left out, and the last lines on stderr say which and why.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.carry.mine import what_became
from patchkit.errors import BadInputError
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository, init_repository
from patchkit.model.diff_parse import split_lines
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, GitObject, make_object
from patchkit.model.tree import Overlay, Tree
from patchkit.stack.build import SeriesPatch, build_stack
from patchkit.upstream.archive import commit_archive

#: The packages of docs/carry.md.
PACKAGES = ("cups", "curl", "logrotate", "mutt", "nano", "openssh", "rsync")
_RELEASES = ("bookworm", "trixie")


class UnavailableError(Exception):
    """Why a package, or all of them, cannot be fetched here."""


# apt, with lists of its own: deb-src lines for both suites, on the mirrors of the machine.


class Sources:
    """Source packages of some suites, fetched into a folder."""

    def __init__(self, work: Path, suites: Sequence[str]) -> None:
        self._work = work
        self._options: list[str] = []
        lines = [f"deb-src {uri} {suite} main" for uri in _mirrors() for suite in suites]
        if not lines:
            raise UnavailableError("apt is not configured for a mirror of Debian")
        for folder in ("lists/partial", "cache/archives/partial"):
            (work / "apt" / folder).mkdir(parents=True, exist_ok=True)
        (work / "apt" / "sources.list").write_text("\n".join(lines) + "\n")
        self._options = [
            f"-oDir::Etc::sourcelist={work}/apt/sources.list",
            "-oDir::Etc::sourceparts=-",
            f"-oDir::State::lists={work}/apt/lists",
            f"-oDir::Cache={work}/apt/cache",
            "-oAPT::Sandbox::User=root",
        ]
        self._run("update", "--error-on=any", folder=work)

    def fetch(self, package: str, suite: str) -> Path:
        """The folder with a source package's files."""
        folder = self._work / "sources" / f"{package}_{suite}"
        folder.mkdir(parents=True, exist_ok=True)
        wanted = ("--download-only", "--only-source", f"{package}/{suite}")
        try:
            self._run("source", *wanted, folder=folder)
        except UnavailableError:
            # a mirror may lack a signature; apt keeps only files whose digest is right
            if len(_archives(folder)) < len(_PARTS):
                raise
        return folder

    def _run(self, *words: str, folder: Path) -> None:
        done = subprocess.run(
            ["apt-get", "--quiet", *self._options, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line[:2] in ("E:", "W:")]
            raise UnavailableError(f"apt-get {words[0]}: {(said or ['failed'])[0]}")


def _mirrors() -> list[str]:
    """Where the packages of Debian's own main section come from."""
    form = "$(CREATED_BY) $(COMPONENT) $(ORIGIN) $(REPO_URI)"
    try:
        done = subprocess.run(
            ["apt-get", "indextargets", "--format", form],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return []
    rows = [line.split() for line in done.stdout.splitlines()]
    wanted = ["Packages", "main", "Debian"]
    # security updates are a mirror of their own, of other suites
    found = [row[3] for row in rows if row[:3] == wanted and "security" not in row[3]]
    return list(dict.fromkeys(found))


_PARTS = ("*.orig.tar.*", "*.debian.tar.*")


def _archives(folder: Path) -> list[Path]:
    """Upstream's archive and that of the folder debian/, if there is one of each."""
    found = [[f for f in folder.glob(part) if f.suffix != ".asc"] for part in _PARTS]
    return [each[0] for each in found if len(each) == 1]


_NUMBER = re.compile(r"(?<![^/])\d+[-_]")

# One package: both upstream releases as commits, and the patches of both as blobs.


@dataclass(frozen=True)
class Release:
    """A source package: its upstream as a base, and its patches by name, in order."""

    base: Base
    patches: dict[str, GitObject]

    def before(self, name: str, known: dict[str, GitObject]) -> list[GitObject]:
        """The patches before the one of that name; without it, those before it in `known`."""
        if name in self.patches:
            names = list(self.patches)
            return [self.patches[each] for each in names[: names.index(name)]]
        older = list(known)
        ahead = set(older[: older.index(name)])
        return [blob for each, blob in self.patches.items() if each in ahead]

    def named_as(self, older: Release) -> Release:
        """The same, with the older names of patches that only got another number."""
        left = {_NUMBER.sub("", each): each for each in older.patches if each not in self.patches}
        names = {each: left.pop(_NUMBER.sub("", each), each) for each in self.patches}
        return Release(self.base, {names[each]: blob for each, blob in self.patches.items()})


def read_release(folder: Path, repository: Repository) -> Release:
    """Read the files of a source package; UnavailableError where it has no patches of quilt's."""
    archives = _archives(folder)
    if len(archives) < len(_PARTS):
        raise UnavailableError(f"{folder.name}: no package of one archive and a folder debian/")
    files = _patch_files(archives[1])
    names = [
        line.split()[0]
        for line in files.get("series", b"").decode().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    patches = {name: make_object("blob", files[name]) for name in names}
    write_objects(repository, patches.values())
    commit = commit_archive(archives[0], archives[0].name, repository)
    return Release(read_base(repository, commit), patches)


def _patch_files(archive: Path) -> dict[str, bytes]:
    """Path below debian/patches -> contents."""
    with tarfile.open(archive) as tar:
        members = ((each.name.partition("debian/patches/")[2], each) for each in tar)
        opened = {path: tar.extractfile(each) for path, each in members if path and each.isfile()}
        return {path: file.read() for path, file in opened.items() if file is not None}


def cases_of(package: str, repository: Repository, old: Release, new: Release) -> Iterator[Any]:
    """The facts of a case for each of the older package's patches that change files."""
    with ObjectReader(repository) as reader:
        for name, blob in old.patches.items():
            pre = [old.before(name, old.patches), new.before(name, old.patches)]
            again = new.patches.get(name)
            states = [
                _built(reader, old.base, pre[0]),
                _built(reader, old.base, [*pre[0], blob]),
                _built(reader, new.base, pre[1]),
                _built(reader, new.base, [*pre[1], *([again] if again is not None else [])]),
            ]
            changes = parse_patch(blob.payload, name=name).changes
            files = [_file(each.old_path or each.path, states) for each in changes]
            if files:
                yield {
                    "id": f"{package}-{name}",
                    "group": "kept" if again is not None else "gone",
                    "component": package,
                    "source": package,
                    "old_patch": blob.oid,
                    "new_patch": again.oid if again is not None else None,
                    "old_base": _based(old, pre[0]),
                    "new_base": _based(new, pre[1]),
                    "files": files,
                }


def _based(release: Release, pre: Sequence[GitObject]) -> dict[str, Any]:
    return {"commit": release.base.commit, "pre": [each.oid for each in pre]}


@dataclass(frozen=True)
class _State:
    """A tree, and the contents of its files."""

    tree: Tree
    blobs: Overlay

    def lines(self, path: str) -> list[bytes]:
        """The lines of a file, none where there is no file."""
        entry = self.tree.entry(path)
        return split_lines(self.blobs.read(entry.oid, "blob")) if entry is not None else []


def _built(reader: ObjectReader, base: Base, patches: Sequence[GitObject]) -> _State:
    """The base with these patches; UnavailableError if one does not apply as it is."""
    series = [
        SeriesPatch(f"{n}.patch", parse_patch(each.payload, name=str(n)))
        for n, each in enumerate(patches)
    ]
    stack = build_stack(reader, base, series)
    if not stack.clean:
        raise UnavailableError("a patch does not apply without fuzz")
    blobs = Overlay(reader, stack.objects)
    return _State(Tree(blobs, stack.tree), blobs)


def _file(path: str, states: Sequence[_State]) -> dict[str, Any]:
    """The facts of a file; trivial: upstream left it as it was."""
    old, patched, upstream, truth = (each.lines(path) for each in states)
    there = [each.tree.entry(path) is not None for each in states]
    kind = "M" if all(there) else "D" if there[0] else "A"
    became = what_became(old, patched, upstream, truth)
    return {"path": path, "kind": kind, "trivial": old == upstream, "cls": became}


def main(arguments: Sequence[str] | None = None) -> None:
    """Fetch, compare, print a case file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("package", nargs="*", default=list(PACKAGES))
    parser.add_argument("--releases", nargs=2, default=_RELEASES, metavar=("OLD", "NEW"))
    parser.add_argument("--work", type=Path, required=True, help="where sources and clones go")
    options = parser.parse_args(arguments)
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    found: list[Any] = []
    mirrors: dict[str, str] = {}
    try:
        sources = Sources(work, options.releases)
    except UnavailableError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return
    for package in options.package:
        repository = init_repository(work / f"debian+{package}" / "repo")
        try:
            folders = [sources.fetch(package, suite) for suite in options.releases]
            old, new = (read_release(each, repository) for each in folders)
            cases = list(cases_of(package, repository, old, new.named_as(old)))
        except (UnavailableError, BadInputError) as error:
            print(f"skipped: {package}: {error}", file=sys.stderr)
            continue
        found += cases
        mirrors[package] = f"debian+{package}"
    print(json.dumps({"mirrors": mirrors, "cases": found}, indent=0))


if __name__ == "__main__":
    main()
