"""What a word on the command line may name in the manifests, and what to say of one that names
nothing there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from patchkit.cli.project import load, named_manifest, own_manifests
from patchkit.errors import PatchkitError, UsageError
from patchkit.manifest.values import Component, LocalSeries, Manifest
from patchkit.stack.patch_lists import read_series


def readable_manifests(paths: Iterable[Path], cache: Path | None) -> list[Manifest]:
    """The manifests in these files, without those that cannot be read."""
    manifests = []
    for path in paths:
        with suppress(PatchkitError):
            manifests.append(load(path, cache))
    return manifests


def components_in(manifests: Iterable[Manifest]) -> list[str]:
    """The names of their components, each once."""
    return list(dict.fromkeys(c.name for manifest in manifests for c in manifest.components))


def listed_patches(manifest: Manifest, component: Component) -> Iterator[str]:
    """The names of the patches that a component's series lists, as far as they can be read."""
    for entry in component.patches:
        if not isinstance(entry, LocalSeries):
            yield entry.patch_name
            continue
        with suppress(PatchkitError):
            yield from (line.name for line in read_series(manifest, entry).lines if line.name)


def owners_of(patch: str, manifests: Sequence[Manifest]) -> list[str]:
    """The components whose series list a patch of this name."""
    name = Path(patch).name.removesuffix(".patch")
    return [
        component.name
        for manifest in manifests
        for component in manifest.components
        if name in (each.removesuffix(".patch") for each in listed_patches(manifest, component))
    ]


def several_manifests(names: Sequence[str], own: Collection[str], cache: Path | None) -> UsageError:
    """That nothing says which of the project's manifests is meant: those that have `names`."""
    found = {manifest.path: manifest for manifest in readable_manifests(own_manifests(), cache)}
    fitting = [path for path in found if names and {*names} <= {*components_in([found[path]])}]
    if names and not fitting:
        known = components_in(found.values())
        unknown = [name for name in names if name not in known]
        return no_component(unknown or names, list(found.values()), own)
    choice = ", ".join(path.stem for path in fitting or own_manifests())
    return UsageError("several manifests in ./manifests", hint=f"choose with -m: {choice}")


def no_component(
    unknown: Sequence[str], manifests: Sequence[Manifest], own: Collection[str], where: str = ""
) -> UsageError:
    """That the manifests have no such components; `own` are the command's own options."""
    have = components_in(manifests)
    place = f" in {where}" * bool(where)
    problems = (f"{name}: no such component{place}" for name in unknown)
    return UsageError(*problems, hint=_meant_instead(unknown[0], have, manifests, own))


def _meant_instead(
    word: str, have: Sequence[str], manifests: Sequence[Manifest], own: Collection[str]
) -> str:
    """What to type instead of a word that is not a component."""
    if word == "help":
        return "add --help to the command"
    if len([part for part in word.split(",") if part in have]) > 1:
        return f"components are words of their own: {' '.join(word.split(','))}"
    stems = [path.stem for path in own_manifests()]
    known = [*have, *(stem for stem in stems if len(manifests) > 1)]
    if close := get_close_matches(Path(word).name, known, n=2, cutoff=0.6):
        return f"did you mean {' or '.join(dict.fromkeys(close))}?"
    there = f"there {'are' if len(have) > 1 else 'is'} {', '.join(have)}"
    if (path := named_manifest(word)) is not None:
        there = f"{word} is a manifest: -m {path.stem}"
    elif owners := owners_of(word, manifests):
        option = f", and goes with --patch {word}" if "patch" in own else ""
        there = f"it is a patch of {' and of '.join(owners)}{option}"
    elif "to" in own:
        there += f"; a commit, tag or branch goes with --to {word}"
    return there
