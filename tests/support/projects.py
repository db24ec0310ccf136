"""Projects: a folder with manifests/ and patches/, as a user of patchkit has it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from patchkit.model.objects import CommitId
from tests.support.commands import Ran, run
from tests.support.kept import run_or_recall, without_stat
from tests.support.repos import Files, Upstream, git_in, make_patch

_OF_GIT = ("HEAD", "packed-refs", "index")


def write_files(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write each file below `root`, with its folders."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def reference(upstream: Upstream, path: str, data: bytes) -> dict[str, Any]:
    """The entry of a manifest for a patch that is committed in another repository."""
    commit = upstream.commit({path: data})
    return {"git": upstream.url, "commit": commit, "path": path, "sha256": sha256(data).hexdigest()}


@dataclass
class Project:
    """A project at `root`; manifests and patches are written as they are added."""

    root: Path
    _manifests: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files of the project."""
        write_files(self.root, files)

    def component(
        self,
        name: str,
        upstream: Upstream,
        pin: str | Files,
        patches: Mapping[str, bytes] | Sequence[Mapping[str, object]] | None = None,
        *,
        manifest: str = "demo",
        **extra: object,
    ) -> Path:
        """Add a component to a manifest, with its series if `patches` are given. Files in place of
        a pin are committed, but for one of another source.

        `patches` maps patch names to their bytes, in the order of the series, which is
        patches/NAME/series; a list of entries is written as it is. `extra` are further keys of the
        component (`strip=0`). Returns the manifest's path.
        """
        if not isinstance(pin, str) and "source" not in extra:
            pin = upstream.commit(pin)
        entry: dict[str, Any] = {"source": {"git": upstream.url}, "pin": pin}
        if isinstance(patches, Mapping):
            self.series(name, patches)
            entry["patches"] = [{"series": f"patches/{name}/series"}]
        elif patches is not None:
            entry["patches"] = list(patches)
        self._manifest(manifest)["components"][name] = entry | extra
        return self._save(manifest)

    def patched(
        self,
        upstream: Upstream,
        before: Files,
        after: Files,
        *,
        name: str = "demo",
        patch: str = "one.patch",
        subject: str = "Change files",
        body: str = "",
        **extra: Any,
    ) -> CommitId:
        """Add a component with one patch, which makes `after` of the files; returns its pin."""
        pin = upstream.commit(before)
        data = make_patch(before, after, subject=subject, body=body)
        self.component(name, upstream, pin, {patch: data}, **extra)
        return pin

    def series(self, folder: str, patches: Mapping[str, bytes]) -> None:
        """Write patches/FOLDER/series and the patches that it names."""
        self.write({f"patches/{folder}/{name}": data for name, data in patches.items()})
        self.write({f"patches/{folder}/series": "".join(f"{name}\n" for name in patches)})

    def run(self, *argv: str) -> Ran:
        """Run patchkit in the project's folder."""
        return run(*argv, cwd=self.root)

    def prepare(self, *argv: str) -> Ran:
        """The same for what a test only begins with: done once for all that begin so."""
        return run_or_recall(lambda: self.run(*argv), argv, self.root)

    def checkout(self, name: str) -> Path:
        """The checkout of a component in the default workspace."""
        return self.root / "workspace" / name

    def git(self, *argv: str) -> bytes:
        """The output of `git ARGV` in the checkout of demo."""
        return git_in(self.checkout("demo"), *argv)

    def read(self, path: str) -> str:
        """The text of a file of the project."""
        return (self.root / path).read_text()

    def repin(self, pin: str) -> None:
        """Write another pin into the manifest, as by hand."""
        place = "manifests/demo.yaml"
        self.write({place: re.sub(r"pin: [0-9a-f]{40}", f"pin: {pin}", self.read(place))})

    def files(self, folder: str = "patches") -> dict[str, bytes]:
        """Path -> bytes of all files below a folder of the project."""
        found = sorted(path for path in (self.root / folder).rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}

    @property
    def product(self) -> dict[str, bytes]:
        """Path -> bytes of manifests, locks, series and patches."""
        return self.files("manifests") | self.files()

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Assert that what is done meanwhile changes no file, no checkout and no ref of one."""
        before = self.everything()
        yield
        assert self.everything() == before

    def everything(self) -> dict[str, bytes]:
        """Path -> bytes of all files; of git's own the branch, the refs and the index."""
        found = {}
        for folder, _, names in os.walk(self.root):
            place = f"{folder}/"
            git = place.partition("/.git/")[2]
            if "/workspace/.patchkit/" in place or (git and not git.startswith("refs/")):
                continue
            for name in names if "/.git/" not in place or git else _OF_GIT:
                path = Path(folder) / name
                if path.is_file():
                    data = path.read_bytes()
                    found[str(path)] = without_stat(data) if data.startswith(b"DIRC") else data
        return found

    def _manifest(self, name: str) -> dict[str, Any]:
        return self._manifests.setdefault(name, {"version": 1, "components": {}})

    def _save(self, name: str) -> Path:
        text = yaml.safe_dump(self._manifest(name), sort_keys=False)
        self.write({f"manifests/{name}.yaml": text})
        return self.root / "manifests" / f"{name}.yaml"
