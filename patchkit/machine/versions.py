"""Version specifiers against versions, those of packages and those of Ascend's software."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version


def satisfies(version: str, specifier: str) -> bool | None:
    """Whether a version is one that the specifier allows; None if it is no version (PEP 440).

    Ascend's 8.1.RC1 is a version: 8.1rc1. A release candidate counts where it is what is there.
    """
    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        return None


def exact(specifier: str) -> str | None:
    """The only version that a specifier allows; None if it leaves a choice."""
    try:
        clauses = list(SpecifierSet(specifier))
    except InvalidSpecifier:
        return None
    if len(clauses) != 1 or clauses[0].operator not in ("==", "==="):
        return None
    return None if clauses[0].version.endswith("*") else clauses[0].version


def release(version: str) -> str:
    """The release that a version belongs to: 2.8.0 of 2.8.0.post2, of 2.8.0rc1 and of 2.8.0+cpu."""
    try:
        return ".".join(str(part) for part in Version(version).release)
    except InvalidVersion:
        return version
