"""What a stack asks of the package index: its manifest, its install steps, and the metadata of its
components as their patches leave it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement

from patchkit.errors import BadInputError, PatchkitError, Problem
from patchkit.guards.verify import write_tree
from patchkit.manifest.values import (
    IndexPin,
    IndexSource,
    Manifest,
    normal_name,
    requirements,
    whole_environment,
)
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack, require_clean
from patchkit.upstream.requirements import (
    DeclaredRequirement,
    followed,
    named_by_steps,
    read_requirements,
)
from patchkit.upstream.store import Store

#: The Python that this is, as 3.11.
THIS_PYTHON = f"3.{sys.version_info.minor}"
#: Pythons that may be asked for: this one, then the newest first.
_PYTHONS = [THIS_PYTHON, *(f"3.{minor}" for minor in range(14, 7, -1))]


class Wishes(Struct, frozen=True):
    """What is asked for, Python among it; as its file each has whoever asks, in words.

    `folders` are components whose metadata a build has to tell, with their extras: /tmp/core[npu].
    `without` is what nobody is to install from the index: it does not work here, or is a component
    that is read; by normal name.
    `unknown` is why something else is not known.
    """

    asked: tuple[DeclaredRequirement, ...]
    folders: tuple[str, ...]
    without: tuple[str, ...]
    unknown: tuple[Problem, ...]

    def packages(self) -> list[DeclaredRequirement]:
        """What pip is to follow."""
        left = ("python", *self.without)
        return [e for e in self.asked if e.enforced and e.certain and e.name not in left]

    def python(self) -> str:
        """This Python if all allow it, else the newest that they do; BadInputError for none."""
        asked = [each for each in self.asked if each.name == "python"]
        for python in _PYTHONS:
            releases = [f"{python}.{number}" for number in range(40)]
            if all(any(each.requirement.specifier.filter(releases)) for each in asked):
                return python
        told = ", ".join(f"{each.requirement} ({each.file})" for each in asked)
        raise BadInputError(f"no Python is all of {told}")


def wished(lines: Iterable[str], who: str) -> Iterator[DeclaredRequirement]:
    """Requirements that somebody asks for; what is none of pip's is left out."""
    for line in lines:
        with suppress(InvalidRequirement):
            yield DeclaredRequirement(Requirement(line), who, enforced=True)


def read_wishes(
    manifest: Manifest, store: Store, progress: Progress, builds: Path | None = None
) -> Wishes:
    """Read them; components whose metadata code computes are written to the folder `builds`."""
    environment = whole_environment(manifest)
    python = f"python{environment.versions.get('python', '')}"
    asked = [*wished([python, *requirements(environment)], manifest.path.name)]
    folders: list[str] = []
    without = [*environment.unsupported]
    unknown: list[Problem] = []
    for component in manifest.components:
        name = component.name
        without.append(name)
        if isinstance(component.source, IndexSource) and isinstance(component.pin, IndexPin):
            line = f"{component.source.project}=={component.pin.version}"
            asked += wished([line], f"the pin of {name}")
        asked += wished(named_by_steps(component.install), f"a step of {name}")
        try:
            with built_stack(manifest, component, store, progress) as built:
                require_clean(built, manifest)
                told = read_requirements(built.tip.data, component.install)
                if told.unread and builds is not None:
                    write_tree(built.source, built.stack.tree, builds / name)
                    without.remove(name)  # it comes from there, with what it asks for
                    folders += [
                        f"{builds / name / where}{extras}"
                        for where, extras in followed(component.install)
                    ]
        except PatchkitError as error:
            unknown += error.problems
            continue
        asked += [replace(each, file=f"{name}'s {each.file}") for each in told.requirements]
        asked += wished([f"python{told.python}"], f"{name}'s {told.python_file}")
        if builds is None:
            hint = "--build-metadata of `patchkit export --format machine` runs it to find out"
            unknown += [Problem(text, name, hint) for text in told.unread]
    return Wishes(tuple(asked), tuple(folders), tuple(map(normal_name, without)), tuple(unknown))
