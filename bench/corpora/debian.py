"""Debian source packages whose series is used in place, beside what dpkg-source makes of it.

A folder holds what `apt-get source --download-only` brings: .dsc files and their archives, of
format 3.0 (quilt). Of each package the upstream becomes a git repository, and debian/ a project
whose manifest names debian/patches/series, as docs/howto/adopt-patches.md has it. Then `apply` is
to give the tree that `dpkg-source -x` gives, or `quilt push -a` where that refuses the series;
`refresh` is to change no byte. Nothing of the packages is in this repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from bench.corpora.programs import attempt, first_error
from bench.figures import today

_MANIFEST = """\
version: 1
components:
  package:
    source: {{git: "file://{upstream}"}}
    pin: {pin}
    patches:
      - series: debian/patches/series
"""
_OUTSIDE = ("debian", ".pc", ".git")
_PATIENCE = 300  # seconds for one command
_try = partial(attempt, patience=_PATIENCE)
_WHO = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
_PLAIN = {"core.autocrlf": "false", "core.safecrlf": "false", "core.attributesFile": "/dev/null"}


class Package(Struct, frozen=True):
    """What became of one source package.

    `verdict` says what patchkit did, `oracle` who made the other tree ("" where nobody could),
    `differ` are paths with other bytes or another mode, `refreshed` files that refresh changed.
    """

    name: str
    patches: int
    verdict: str
    oracle: str
    differ: tuple[str, ...] = ()
    refreshed: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether both came to the same: one tree, or no tree at all."""
        same = bool(self.oracle) == (self.verdict == "applied")
        return same and not self.differ and not self.refreshed


def debian_packages(
    sources: Path, folder: Path, *, tell: Callable[[str], None]
) -> Iterator[Package]:
    """Every package of the folder that has a series, one after the other."""
    for dsc in sorted(sources.glob("*.dsc")):
        place = folder / dsc.stem
        place.mkdir()
        try:
            found = _judge(dsc, place)
        except subprocess.CalledProcessError as error:
            tell(f"{dsc.stem}: left out: {_last(error.stderr) or error}")
            continue
        finally:
            shutil.rmtree(place, ignore_errors=True)
        if found is not None:
            differs = [*found.differ, *found.refreshed]
            note = f", {len(differs)} files differ: {' '.join(differs[:3])}" if differs else ""
            tell(f"{found.name}: {found.verdict}; {found.oracle or 'no tree beside it'}{note}")
            yield found


def _judge(dsc: Path, place: Path) -> Package | None:
    """One package; None for one without a series. CalledProcessError where it cannot be taken."""
    if "Format: 3.0 (quilt)" not in dsc.read_text(encoding="utf-8", errors="replace"):
        return None
    upstream, project = place / "upstream", place / "project"
    _run("dpkg-source", "--no-check", "--skip-patches", "-x", str(dsc), str(upstream), cwd=place)
    if not (upstream / "debian/patches/series").is_file():
        return None
    project.mkdir()
    (upstream / "debian").rename(project / "debian")
    pin = _commit(upstream)
    text = _MANIFEST.format(upstream=upstream, pin=pin)
    (project / "manifests").mkdir()
    (project / "manifests/package.yaml").write_text(text, encoding="utf-8")
    before = _contents(project / "debian")
    name = dsc.stem.partition("_")[0]
    applied = _patchkit(project, "apply")
    rows = (project / "debian/patches/series").read_text(encoding="utf-8", errors="replace")
    count = sum(bool(row.partition("#")[0].strip()) for row in rows.splitlines())
    oracle, tree = _oracle(dsc, place, project)
    if applied.returncode:
        return Package(name, count, f"refused: {first_error(applied.stderr)}", oracle)
    here = _contents(project / "workspace/package")
    differ = _differences(here, _contents(tree)) if tree is not None else ()
    refreshed = _patchkit(project, "refresh")
    after = _contents(project / "debian")
    changed = _differences(before, after)
    if refreshed.returncode:
        changed = (*changed, f"refresh: {first_error(refreshed.stderr)}")
    return Package(name, count, "applied", oracle, differ, changed)


def _oracle(dsc: Path, place: Path, project: Path) -> tuple[str, Path | None]:
    """Who applies the series, and where: dpkg-source, else quilt (which knows -p0), else nobody."""
    tree = place / "dpkg"
    done = _try("dpkg-source", "--no-check", "-x", str(dsc), str(tree), cwd=place)
    if done.returncode == 0:
        return "dpkg-source", tree
    tree = place / "quilt"
    _run("git", "clone", "-q", str(place / "upstream"), str(tree), cwd=place)
    patches = {"QUILT_PATCHES": str(project / "debian/patches"), "QUILT_PATCH_OPTS": "--fuzz=0"}
    done = _try("quilt", "push", "-a", "-q", cwd=tree, variables=patches)
    return ("quilt", tree) if done.returncode in (0, 2) else ("", None)


def _commit(folder: Path) -> str:
    """The files of a folder as a commit, ignored ones and line ends as they are."""
    _run("git", "init", "-q", cwd=folder)
    for key, value in _PLAIN.items():
        _run("git", "config", key, value, cwd=folder)
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text("* -text -filter -ident -working-tree-encoding\n")
    _run("git", "add", "-A", "-f", cwd=folder)
    _run("git", *_WHO, "commit", "-q", "--allow-empty", "-m", "Import", cwd=folder)
    return _run("git", "rev-parse", "HEAD", cwd=folder).stdout.strip()


def _contents(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Path -> (kind, bytes) of all files but those of Debian, quilt and git."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if name.partition("/")[0] in _OUTSIDE:
            continue
        if path.is_symlink():
            found[name] = ("link", os.fsencode(path.readlink()))
        elif path.is_file():
            mode = "executable" if path.stat().st_mode & 0o100 else "file"
            found[name] = (mode, path.read_bytes())
    return found


def _differences(
    one: dict[str, tuple[str, bytes]], other: dict[str, tuple[str, bytes]]
) -> tuple[str, ...]:
    return tuple(sorted(n for n in one.keys() | other.keys() if one.get(n) != other.get(n)))


def _patchkit(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "patchkit", *arguments]
    return _try(*program, cwd=project, variables={"PATCHKIT_CACHE": str(project.parent / "cache")})


def _run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = _try(*command, cwd=cwd)
    done.check_returncode()
    return done


def _last(text: str | None) -> str:
    rows = (text or "").strip().splitlines()
    return rows[-1] if rows else ""


def debian_section(packages: Sequence[Package]) -> list[str]:
    """Counts, and each package that differs or is refused."""
    patches = sum(each.patches for each in packages)
    same = sum(each.agrees for each in packages)
    applied = sum(each.verdict == "applied" for each in packages)
    text = [
        f"{today()}: **{len(packages)} packages** with {patches} patches; {applied} applied in"
        f" place. The same as by dpkg-source or quilt: {same}."
    ]
    rows = [each for each in packages if not each.agrees or each.verdict != "applied"]
    if rows:
        table = ["| package | patchkit | beside it | differs |", "| --- | --- | --- | --- |"]
        for each in rows:
            differs = ", ".join([*each.differ, *each.refreshed][:3]) or "-"
            table.append(f"| {each.name} | {each.verdict} | {each.oracle or '-'} | {differs} |")
        text.append("\n".join(table))
    return text
