"""What a stack asks of the package index: its manifest, its install steps, and the metadata of its
components as their patches leave it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
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

#: Pythons that may be asked for: this one, then the newest first.
_PYTHONS = [f"3.{sys.version_info.minor}", *(f"3.{minor}" for minor in range(14, 7, -1))]

#: The name of what pip installs from git+https://host/name.git@commit.
_REPOSITORY = re.compile(r"\bgit\+\S*/([\w.-]+?)(?:\.git)?(?:[@#]\S*)?(?:\s|$)")


class Wishes(Struct, frozen=True):
    """What is asked for, Python among it; as its file each has whoever asks, in words.

    `folders` are components whose metadata a build has to tell, with their extras: /tmp/core[npu].
    `without` is what nobody is to install from the index: it does not work here, or is a component
    that is read; by normal name. `elsewhere` is what a step installs from somebody's repository,
    `alone` what one installs whatever others ask for.
    `unknown` is why something else is not known.
    """

    asked: Sequence[DeclaredRequirement]
    folders: Sequence[str]
    without: Sequence[str]
    elsewhere: Sequence[str]
    alone: Sequence[DeclaredRequirement]
    unknown: Sequence[Problem]

    def packages(self) -> list[DeclaredRequirement]:
        """What pip is to follow."""
        left = ("python", *self.without)
        return [
            wish for wish in self.asked if wish.enforced and wish.certain and wish.name not in left
        ]

    def allow(self, python: str) -> bool:
        """Whether everybody takes this Python, as 3.11."""
        releases = [f"{python}.{number}" for number in range(40)]
        asked = [wish.requirement.specifier for wish in self.asked if wish.name == "python"]
        return all(any(specifier.filter(releases)) for specifier in asked)

    def python(self) -> str:
        """This Python if all allow it, else the newest that they do; BadInputError for none."""
        for python in filter(self.allow, _PYTHONS):
            return python
        asked = [wish for wish in self.asked if wish.name == "python"]
        told = ", ".join(f"{wish.requirement} ({wish.file})" for wish in asked)
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
    elsewhere: list[str] = []
    alone: list[DeclaredRequirement] = []
    unknown: list[Problem] = []
    for component in manifest.components:
        name = component.name
        without.append(name)
        if isinstance(component.source, IndexSource) and isinstance(component.pin, IndexPin):
            line = f"{component.source.project}=={component.pin.version}"
            asked += wished([line], f"the pin of {name}")
        asked += wished(named_by_steps(component.install), f"a step of {name}")
        alone += wished(named_by_steps(component.install, alone=True), f"a step of {name}")
        elsewhere += [one for step in component.install for one in _REPOSITORY.findall(step.run)]
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
        asked += [replace(wish, file=f"{name}'s {wish.file}") for wish in told.requirements]
        asked += wished([f"python{told.python}"], f"{name}'s {told.python_file}")
        if builds is None:
            hint = "--build-metadata of `patchkit export --format machine` runs it to find out"
            unknown += [Problem(text, name, hint) for text in told.unread]
    asked += alone
    left, others = ([*map(normal_name, names)] for names in (without, elsewhere))
    return Wishes(asked, folders, left, others, alone, unknown)
