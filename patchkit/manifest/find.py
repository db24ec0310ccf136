"""Which file a manifest's name means; reads folders, never files, and imports no YAML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from patchkit.errors import Problem, UsageError

#: The folder of a project that manifests are looked for in.
FOLDER = "manifests"
ENDINGS = (".yaml", ".yml")


def find_manifest(name: str, *, cwd: Path, search: Sequence[Path]) -> Path:
    """The manifest that `name` means: as a path, then in `manifests/`, then in each of `search`.

    The ending may be left out. Relative to `cwd` if that is a relative path. Raises UsageError
    with what comes near.
    """
    for candidate in _candidates(name, cwd, search):
        if candidate.is_file():
            return candidate
    raise UsageError(Problem(f"{name}: no such manifest", hint=_hint(name, cwd, search)))


def available_manifests(*, cwd: Path, search: Sequence[Path]) -> tuple[str, ...]:
    """The names that can be looked for from here, without endings, each once, in order of search.

    Folders that are not there are passed over.
    """
    folders = (cwd / FOLDER, *search)
    return tuple(dict.fromkeys(path.stem for folder in folders for path in manifests_in(folder)))


def manifests_in(folder: Path) -> list[Path]:
    """The manifests directly in `folder`, by name; none if there is no such folder."""
    try:
        found = [path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(path for path in found if not path.name.startswith("."))


def project_root(path: Path) -> Path:
    """The absolute folder that the local paths of the manifest at `path` start from."""
    folder = absolute(path).parent
    return folder.parent if folder.name == FOLDER else folder


def absolute(path: Path) -> Path:
    """The path from the disk's root, without `..`."""
    path = path.absolute()
    return path.resolve() if ".." in path.parts else path


def _candidates(name: str, cwd: Path, search: Sequence[Path]) -> Iterator[Path]:
    folders = [cwd] if Path(name).is_absolute() else [cwd, cwd / FOLDER, *search]
    for folder in folders:
        for ending in ("", *ENDINGS):
            yield folder / (name + ending)


def _hint(name: str, cwd: Path, search: Sequence[Path]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 (only where something is wrong)

    names = available_manifests(cwd=cwd, search=search)
    near = get_close_matches(Path(name).stem, names, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if names:
        return f"there are: {', '.join(names[:12])}"
    return f"there is no manifest in {FOLDER}/; `patchkit init NAME --git URL --ref TAG` writes one"
