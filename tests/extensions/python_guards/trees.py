"""Components as plain texts, looked at as they would be in git."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patchkit.extensions.python_guards.agreement import Agreement, examine_partners
from patchkit.extensions.python_guards.guard_keys import Contracts, DeclaredCall
from patchkit.extensions.python_guards.known_modules import KnownModules, Partner
from patchkit.gitcmd.trees import TreeView
from patchkit.manifest.values import Location
from patchkit.model.objects import FILE_MODE, TreeEntry, TreeId, make_object

WHERE = Location(Path("m.yaml"), 1)


class TextTree(TreeView):
    """A tree whose files are given."""

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self._texts = files
        rows = "\0".join(f"{path} {entry.oid}" for path, entry in sorted(self.files().items()))
        self.oid = TreeId(make_object("blob", rows.encode()).oid)

    def data(self, path: str) -> bytes | None:
        """See TreeView."""
        text = self._texts.get(path)
        return text.encode() if isinstance(text, str) else text

    def files(self) -> dict[str, TreeEntry]:
        """See TreeView."""
        blobs = {path: make_object("blob", self.data(path) or b"") for path in self._texts}
        return {path: TreeEntry(FILE_MODE, blob.oid) for path, blob in blobs.items()}


def contracts(packages: str, **more: object) -> Contracts:
    return Contracts(tuple(packages.split()), WHERE, **more)  # type: ignore[arg-type]


def declared(call: str, to: str, *files: str) -> DeclaredCall:
    return DeclaredCall(call, files, to, WHERE)


def agreed(
    *partners: tuple[str, Mapping[str, str | bytes], Contracts], given: frozenset[str] = frozenset()
) -> Agreement:
    """What is found in components given as (name, files, contracts)."""
    parts = [Partner(n, TextTree(f), c) for n, f, c in partners]
    return examine_partners(parts, given, KnownModules())
