"""The locks of a stack's environment: for each architecture one solution of all that is asked for,
by uv, or where uv is not installed by pip, which knows this machine alone.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import starmap
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import read_plain, scratch_folder
from patchkit.errors import BadInputError, Problem, SurroundingsError
from patchkit.extensions.machine.site_values import SiteValues
from patchkit.extensions.machine.wishes import THIS_PYTHON, Wishes, read_wishes, wished
from patchkit.gitcmd.target_python import run_program
from patchkit.manifest.values import Manifest, whole_environment
from patchkit.model.names import filled, referred
from patchkit.model.progress import Progress
from patchkit.upstream.index import index_configuration
from patchkit.upstream.requirements import DeclaredRequirement
from patchkit.upstream.store import Store

#: As `uname -m` says them.
ARCHITECTURES = ("aarch64", "x86_64")
#: The newest C library that wheels may ask for: Ubuntu 22.04, of CANN's images, has a newer one.
_LIBRARY = "manylinux_2_34"
#: What resolvers write (PEP 751).
_LOCK = "pylock.toml"
#: Seconds: a build may have to fetch torch first.
_PATIENCE = 1800


class LockedPackage(Struct, frozen=True):
    """A release, and the SHA-256 of each of its files that can be installed there."""

    name: str
    version: str
    hashes: tuple[str, ...]


class EnvironmentLock(Struct, frozen=True):
    """The packages for an architecture, or why there are none."""

    architecture: str
    packages: tuple[LockedPackage, ...] = ()
    problem: Problem | None = None

    @property
    def file(self) -> str:
        """Its name, beside install.sh."""
        return f"requirements-{self.architecture}.txt"


def locked(folder: Path, architecture: str) -> list[DeclaredRequirement]:
    """The releases of the lock that is in a folder; none without it."""
    file = folder / EnvironmentLock(architecture).file
    text = read_plain(file).decode() if file.is_file() else ""
    return [*wished(re.findall(r"(?m)^[^#\s]+==\S+", text), file.name)]


def solved_locks(
    manifest: Manifest, site: SiteValues, store: Store, progress: Progress, *, build: bool
) -> tuple[EnvironmentLock, ...]:
    """Solve for each architecture, or with pip for this machine's; asks the package index.

    With `build` runs the code of components that computes metadata. Raises PatchkitError where
    nothing can be asked: a component is not in the cache, or pip is of another Python.
    """
    if find_spec("tomllib") is None:  # what resolvers write is TOML
        raise SurroundingsError("run patchkit on Python 3.11 or later to make a lock")
    variables = whole_environment(manifest).variables
    values = dict.fromkeys(site.missing, "") | dict(site.values)
    own = {name: variables.get(name, "") for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")}
    places = _places({name: filled(text, values) for name, text in own.items()})
    lacking = [name for text in own.values() for name in referred(text) if not values[name]]
    hint = " ".join(f"--set {name}=..." for name in lacking)
    with scratch_folder() as folder:
        wishes = read_wishes(manifest, store, progress, folder if build else None)
        if wishes.unknown:
            raise BadInputError(*wishes.unknown)
        (folder / "without").write_text("\n".join(wishes.without))
        lines = [*(str(each.requirement) for each in wishes.packages()), *wishes.folders]
        (folder / "asked").write_text("\n".join(lines))
        options = [*([] if build else ["--only-binary=:all:"]), "-o", str(folder / _LOCK)]
        options += [] if places["UV_DEFAULT_INDEX"] else ["--no-index"]

        def lock(architecture: str, words: Sequence[str]) -> EnvironmentLock:
            refusal = _refusal([*words, *options], places)
            if refusal:
                what = f"no lock for {architecture}: {refusal}{_askers(refusal, wishes)}"
                return EnvironmentLock(architecture, problem=Problem(what, hint=hint))
            return EnvironmentLock(architecture, tuple(_packages(folder, wishes.without)))

        return tuple(starmap(lock, _resolvers(wishes.python(), folder).items()))


def _resolvers(python: str, folder: Path) -> dict[str, list[str]]:
    """Architecture -> the command that solves for it what is asked in a folder."""
    asked = str(folder / "asked")
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if uv is not None:
        words = [uv, "pip", "compile", asked, "--quiet", "--no-config"]
        words += [f"--excludes={folder / 'without'}", f"--python-version={python}"]
        return {each: [*words, f"--python-platform={each}-{_LIBRARY}"] for each in ARCHITECTURES}
    if python != THIS_PYTHON:
        raise SurroundingsError(
            f"pip solves for Python {THIS_PYTHON} alone, not for {python}",
            hint="uv solves for others: pip install 'patchkit-cli[machine]'",
        )
    return {platform.machine(): [sys.executable, "-m", "pip", "lock", "--requirement", asked]}


#: What pip says of a contradiction.
_CAUSES = re.compile(r"The conflict is caused by:\n(.*?)\n\n", re.DOTALL)


def _refusal(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Run a resolver; why there is no solution, "" if there is one."""
    answer = run_program(command, variables, _PATIENCE)
    if isinstance(answer, str):
        return answer
    if answer.returncode == 0:
        return ""
    causes = _CAUSES.findall(answer.stdout) or [answer.stderr.removeprefix("error: ")]
    return " ".join(" ".join(causes).split()) or "no answer"


def _packages(folder: Path, without: Collection[str]) -> Iterator[LockedPackage]:
    """What was solved, but for what is built of a folder: that has no hash."""
    for table in import_module("tomllib").loads((folder / _LOCK).read_text())["packages"]:
        others = [table[kind] for kind in ("sdist", "archive") if kind in table]
        hashes = [file["hashes"]["sha256"] for file in table.get("wheels") or others]
        if hashes and table["name"] not in without:
            yield LockedPackage(table["name"], table["version"], tuple(hashes))


def _askers(refusal: str, wishes: Wishes) -> str:
    """Who asks for the packages that a resolver names."""
    named = [
        f"{each.requirement} is asked for by {each.file}"
        for each in wishes.packages()
        if re.search(rf"(?<![\w.-]){each.name}(?![\w-])", refusal)
    ]
    return f" [{'; '.join(named)}]" if named else ""


def _places(indexes: Mapping[str, str]) -> dict[str, str]:
    """Where packages are, as variables of pip and of uv: what the manifest says, then the user."""
    found = index_configuration()
    more = [indexes["PIP_EXTRA_INDEX_URL"], *found.indexes[1:]]
    return {
        **{name: text for name, text in indexes.items() if text},
        "NO_COLOR": "1",
        "UV_PYTHON": sys.executable,
        "UV_DEFAULT_INDEX": indexes["PIP_INDEX_URL"] or "".join(found.indexes[:1]),
        "UV_INDEX": " ".join(more),
        "UV_FIND_LINKS": ",".join(found.find_links),
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip: the newest of all indexes
    }
