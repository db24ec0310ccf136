"""The locks of a stack's environment: for each architecture one solution of all that is asked for,
by uv, as pip solves for the machine that it is on alone.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import read_plain, scratch_folder
from patchkit.errors import BadInputError, Problem, SurroundingsError
from patchkit.extensions.machine.site_values import SiteValues
from patchkit.extensions.machine.wishes import Wishes, read_wishes
from patchkit.gitcmd.target_python import run_program
from patchkit.manifest.values import Manifest, whole_environment
from patchkit.model.names import filled, referred
from patchkit.model.progress import Progress
from patchkit.upstream.index import index_configuration
from patchkit.upstream.store import Store

#: As `uname -m` says them.
ARCHITECTURES = ("aarch64", "x86_64")
#: The newest C library that wheels may ask for: Ubuntu 22.04, of CANN's images, has a newer one.
_LIBRARY = "manylinux_2_34"
#: What uv is to write (PEP 751).
_LOCK = "pylock.toml"
#: Seconds: a build may have to fetch torch first.
_PATIENCE = 1800


class LockedPackage(Struct, frozen=True):
    """A release, and the SHA-256 of each of its files that can be installed there."""

    name: str
    version: str
    hashes: tuple[str, ...]


class EnvironmentLock(Struct, frozen=True):
    """The packages for an architecture and a Python, or why there are none."""

    architecture: str
    python: str  # as 3.11
    packages: tuple[LockedPackage, ...] = ()
    problem: Problem | None = None

    @property
    def file(self) -> str:
        """Its name, beside install.sh."""
        return f"requirements-{self.architecture}.txt"


def rendered_locks(folder: Path) -> Iterator[EnvironmentLock]:
    """The locks in a folder, without their hashes."""
    for architecture in ARCHITECTURES:
        file = folder / EnvironmentLock(architecture, "").file
        text = read_plain(file).decode() if file.is_file() else ""
        python = re.search(r"(?m)^# Python (\S+)$", text)
        packages = re.findall(r"(?m)^([^#\s]+)==(\S+)", text)
        if packages:
            found = tuple(LockedPackage(name, version, ()) for name, version in packages)
            yield EnvironmentLock(architecture, "" if python is None else python[1], found)


def solved_locks(
    manifest: Manifest,
    site: SiteValues,
    store: Store,
    progress: Progress,
    *,
    build: bool = False,
) -> tuple[EnvironmentLock, ...]:
    """Solve for each architecture; asks the package index.

    With `build` runs the code of components that computes metadata; a BadInputError for what stays
    unknown. Raises SurroundingsError where uv is missing, or this Python reads no TOML.
    """
    if find_spec("tomllib") is None:  # what uv writes is TOML
        raise SurroundingsError("run patchkit on Python 3.11 or later to make a lock")
    variables = whole_environment(manifest).variables
    own = {name: variables.get(name, "") for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")}
    values = dict.fromkeys(site.missing, "") | dict(site.values)
    lacking = [name for text in own.values() for name in referred(text) if not values[name]]
    hint = " ".join(f"--set {name}=..." for name in lacking)
    with scratch_folder() as folder:
        wishes = read_wishes(manifest, store, progress, folder if build else None)
        if wishes.unknown:
            raise BadInputError(*wishes.unknown)
        (folder / "without").write_text("\n".join(wishes.without))
        overrides = [str(wish.requirement) for wish in wishes.alone]
        (folder / "overrides").write_text("\n".join(overrides))
        lines = [*(str(wish.requirement) for wish in wishes.packages()), *wishes.folders]
        (folder / "asked").write_text("\n".join(lines))
        python = wishes.python()
        words = [*_question(folder), f"--python-version={python}"]
        indexes = _variables_of_uv({name: filled(text, values) for name, text in own.items()})
        words += [] if indexes["UV_DEFAULT_INDEX"] else ["--no-index"]
        words += [] if build else ["--only-binary=:all:"]

        def lock(architecture: str) -> EnvironmentLock:
            command = [*words, f"--python-platform={architecture}-{_LIBRARY}"]
            found = _solution(command, indexes, folder, (*wishes.without, *wishes.elsewhere))
            if isinstance(found, str):
                what = f"no lock for {architecture}: {found}{_askers(found, wishes)}"
                return EnvironmentLock(architecture, python, problem=Problem(what, hint=hint))
            return EnvironmentLock(architecture, python, found)

        return tuple(map(lock, ARCHITECTURES))


def _question(folder: Path) -> list[str]:
    """The command that solves what the files of a folder ask for; SurroundingsError without uv."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if uv is None:
        hint = "pip install 'patchkit-cli[machine]'  brings it"
        raise SurroundingsError("uv is missing, which makes locks", hint=hint)
    words = [uv, "pip", "compile", str(folder / "asked"), "--quiet", "--no-config"]
    words += [f"--excludes={folder / 'without'}", f"--overrides={folder / 'overrides'}"]
    return [*words, f"--constraint={folder / 'limits'}", f"--output-file={folder / _LOCK}"]


def _variables_of_uv(indexes: Mapping[str, str]) -> dict[str, str]:
    """The indexes of a manifest, then those that pip and uv are configured with here."""
    found = index_configuration()
    return {
        "NO_COLOR": "1",
        "UV_PYTHON": sys.executable,
        "UV_DEFAULT_INDEX": indexes["PIP_INDEX_URL"] or "".join(found.indexes[:1]),
        "UV_INDEX": " ".join([indexes["PIP_EXTRA_INDEX_URL"], *found.indexes[1:]]),
        "UV_FIND_LINKS": ",".join(found.find_links),
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip: the newest of all indexes
    }


def _solution(
    command: Sequence[str], variables: Mapping[str, str], folder: Path, left: Collection[str]
) -> tuple[LockedPackage, ...] | str:
    """What to install, but for names that are `left` out; else why there is no solution.

    Builds such as 2.8.0+cpu, which count as newer than 2.8.0, are taken only where there is no
    solution without them: an index for another architecture may have them for this one.
    """
    solved = folder / _LOCK

    def attempt(refused: Sequence[str]) -> tuple[LockedPackage, ...] | str:
        (folder / "limits").write_text("\n".join(refused))
        solved.unlink(missing_ok=True)  # uv keeps to what is there
        return _refusal(command, variables) or tuple(_packages(solved, left))

    found = attempt(())
    builds = [] if isinstance(found, str) else [one for one in found if "+" in one.version]
    other = attempt([f"{one.name}!={one.version}" for one in builds]) if builds else found
    return found if isinstance(other, str) else other


def _refusal(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Run uv; why there is no solution, "" if there is one."""
    answer = run_program(command, variables, _PATIENCE)
    if isinstance(answer, str):
        return answer
    if answer.returncode == 0:
        return ""
    return " ".join(answer.stderr.removeprefix("error: ").split()) or "no answer"


def _packages(solved: Path, left: Collection[str]) -> Iterator[LockedPackage]:
    """What was solved, but for what is built of a folder: that has no hash."""
    for table in import_module("tomllib").loads(solved.read_text())["packages"]:
        others = [table[kind] for kind in ("sdist", "archive") if kind in table]
        hashes = [file["hashes"]["sha256"] for file in table.get("wheels") or others]
        if hashes and table["name"] not in left:
            yield LockedPackage(table["name"], table["version"], tuple(hashes))


def _askers(refusal: str, wishes: Wishes) -> str:
    """Who asks for what uv names."""
    named = [
        f"{wish.requirement} is asked for by {wish.file}"
        for wish in wishes.packages()
        if re.search(
            rf"(?<![\w.-]){wish.name}(\[[^]]*\])?{re.escape(str(wish.requirement.specifier))}(?![\w.+-])",
            refusal,
        )
    ]
    return f" [{'; '.join(dict.fromkeys(named))}]" if named else ""
