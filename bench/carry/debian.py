"""`python -m bench.carry.debian PACKAGE... --work DIR`: make cases from two Debian releases.

What is printed is a case file for `bench.carry.run`: each patch of the older source package as a
bump, with what the maintainers have of it in the newer one, under the same name but for a number. A
patch that is not there any more was given up, mostly since upstream has it. The clones that go with
it are in DIR: `python -m bench.carry.run CASES --mirrors DIR --subset whole`.

Sources are fetched by apt from the mirror that this machine is configured with, with its keys, into
DIR; nothing of the machine's own lists is touched. A package that is missing is left out, and so is
a patch that does not apply as it is: stderr says which and why.
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
from patchkit.model.objects import CommitId, TreeId, make_object
from patchkit.model.patch import FileChange
from patchkit.model.tree import Tree
from patchkit.stack.build import SeriesPatch, build_stack
from patchkit.upstream.archive import commit_archive

_NAMES = """
apache2 bash bind9 cups cups-filters curl dovecot exim4 ghostscript grub2 krb5 less libxml2 lighttpd
logrotate lvm2 mutt nano network-manager nfs-utils nginx openldap openssh openvpn pam perl postfix
procps rsync shadow squid sudo systemd tiff tmux util-linux vim wpa
"""
#: The packages of docs/carry.md.
PACKAGES = tuple(_NAMES.split())
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
class Patch:
    """A patch of a source package, with upstream before and after it as commits of the clone."""

    blob: str
    changes: tuple[FileChange, ...]
    before: CommitId
    after: CommitId


@dataclass(frozen=True)
class Release:
    """A source package: its upstream, and its patches by name, in order.

    `left_out` are those that do not apply as they are: dpkg-source takes headers that git refuses,
    and archives beside upstream's own.
    """

    base: CommitId
    patches: dict[str, Patch]
    left_out: tuple[str, ...] = ()

    def without(self, name: str, older: Release) -> CommitId:
        """Where a patch that is gone would stand: behind all that stood before it in `older`."""
        names = list(older.patches)
        ahead = set(names[: names.index(name)])
        reached = [each.after for known, each in self.patches.items() if known in ahead]
        return reached[-1] if reached else self.base

    def named_as(self, older: Release) -> Release:
        """The same, with the older names of patches that only got another number."""
        left = {_NUMBER.sub("", each): each for each in older.patches if each not in self.patches}
        names = {each: left.pop(_NUMBER.sub("", each), each) for each in self.patches}
        patches = {names[each]: patch for each, patch in self.patches.items()}
        return Release(self.base, patches, self.left_out)


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
    blobs = {name: make_object("blob", files[name]) for name in names}
    write_objects(repository, blobs.values())
    base = read_base(repository, commit_archive(archives[0], archives[0].name, repository))
    series = [SeriesPatch(name, parse_patch(files[name], name=name)) for name in names]
    with ObjectReader(repository) as reader:
        stack = build_stack(reader, base, series)
    write_objects(repository, stack.objects)
    patches, here = {}, base.commit
    for patch, outcome in zip(series, stack.outcomes, strict=True):
        if outcome.commit is not None:
            name = patch.name
            patches[name] = Patch(blobs[name].oid, patch.file.changes, here, outcome.commit)
            here = outcome.commit
    failed = tuple(each.name for each in stack.outcomes if each.status.fails)
    return Release(base.commit, patches, failed)


def _patch_files(archive: Path) -> dict[str, bytes]:
    """Path below debian/patches -> contents."""
    with tarfile.open(archive) as tar:
        members = ((each.name.partition("debian/patches/")[2], each) for each in tar)
        opened = {path: tar.extractfile(each) for path, each in members if path and each.isfile()}
        return {path: file.read() for path, file in opened.items() if file is not None}


def cases_of(package: str, repository: Repository, old: Release, new: Release) -> Iterator[Any]:
    """The facts of a case for each of the older package's patches that change files."""
    with ObjectReader(repository) as reader:
        for name, patch in old.patches.items():
            again = new.patches.get(name)
            gone = new.without(name, old)
            onto, result = (gone, gone) if again is None else (again.before, again.after)
            trees = [_tree(reader, each) for each in (patch.before, patch.after, onto, result)]
            files = [_file(reader, each.old_path or each.path, trees) for each in patch.changes]
            if files:
                yield {
                    "id": f"{package}-{name}",
                    "group": "kept" if again is not None else "gone",
                    "component": package,
                    "source": package,
                    "old_patch": patch.blob,
                    "new_patch": again.blob if again is not None else None,
                    "old_base": {"commit": patch.before, "pre": []},
                    "new_base": {"commit": onto, "pre": []},
                    "files": files,
                }


def _tree(reader: ObjectReader, commit: CommitId) -> Tree:
    """The tree of a commit, whose first line names it."""
    line, _, _ = reader.read(commit, "commit").partition(b"\n")
    return Tree(reader, TreeId(line.split()[1].decode()))


def _file(reader: ObjectReader, path: str, trees: Sequence[Tree]) -> dict[str, Any]:
    """The facts of a file; trivial: upstream left it as it was."""
    entries = [each.entry(path) for each in trees]
    old, patched, upstream, truth = (
        split_lines(reader.read(each.oid, "blob")) if each is not None else [] for each in entries
    )
    there = [each is not None for each in entries]
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
    pair = "-".join(options.releases)
    try:
        sources = Sources(work, options.releases)
    except UnavailableError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return
    for package in options.package:
        repository = init_repository(work / f"{pair}+{package}" / "repo")
        try:
            folders = [sources.fetch(package, suite) for suite in options.releases]
            old, new = (read_release(each, repository) for each in folders)
            cases = list(cases_of(package, repository, old, new.named_as(old)))
        except (UnavailableError, BadInputError) as error:
            print(f"skipped: {package}: {error}", file=sys.stderr)
            continue
        for release, suite in zip((old, new), options.releases, strict=True):
            for name in release.left_out:
                print(f"left out: {package}: {name} of {suite} does not apply", file=sys.stderr)
        found += cases
        mirrors[package] = f"{pair}+{package}"
    print(json.dumps({"mirrors": mirrors, "cases": found}, indent=0))


if __name__ == "__main__":
    main()
