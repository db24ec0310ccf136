"""The environment of a whole manifest: its own, and what its components need beyond it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.values import Environment, Manifest

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
