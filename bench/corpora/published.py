"""Every patch set that slime has published, at the pin that its own tree records for it.

A set is what one Dockerfile or guide puts on one upstream: its patches in their order. It counts
once for every change of a patch or of the pin. Where a Dockerfile names no commit but `main`,
`latest` or `dev`, the upstream's commit of that day stands in for it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_HEX = re.compile(r"\b[0-9a-f]{40}\b")
_ARGUMENT = re.compile(r"^(?:ARG|ENV) (\w+)=(\S+)", re.M)
_ORDER = re.compile(r"for patch in ([^;]+);")
_IMAGE = re.compile(r"^FROM \S*sglang:(\S+)|sglang\.git --branch (\S+)", re.M)
_NIGHTLY = re.compile(r"nightly-dev-\w+-([0-9a-f]{8})")
_RELEASE = re.compile(r"v\d+\.\d+\.\d+(?:rc\d+|\.post\d+)?")
_GUIDE = {"sglang": "SGLang", "megatron": "Megatron-LM", "mindspeed": "MindSpeed"}
#: What the guide for NPUs has applied first: the patches of slime v0.2.2.
_NPU_BASE = ("2418a7844abe4d490a1676dcf88fc3401adab362", "docker/patch/v0.5.7/{}.patch")
_NPU_SLIME = "2418a7844abe4d490a1676dcf88fc3401adab362"


@dataclass(frozen=True)
class Set:
    """Patches (path, blob) that `commit` of `date` published for `component`; where the pin is
    from ("recorded", or "of that day").
    """

    commit: str
    date: str
    folder: str
    component: str
    pin: str
    source: str
    patches: tuple[tuple[str, str], ...]


class Clone:
    """A clone to read from, bare or not."""

    def __init__(self, path: str) -> None:
        self.path = path

    def git(self, *args: str) -> str:
        """What a git command prints; "" if it fails."""
        command = ["git", "-C", self.path, *args]
        done = subprocess.run(command, capture_output=True, check=False)
        return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""

    def commit(self, name: str) -> str:
        """The full id of a commit; "" if it is not there."""
        return self.git("rev-parse", "-q", "--verify", f"{name}^{{commit}}")

    def blob(self, oid: str) -> bytes:
        """The bytes of a blob."""
        command = ["git", "-C", self.path, "cat-file", "blob", oid]
        return subprocess.run(command, capture_output=True, check=True).stdout

    def on(self, date: str, branches: Sequence[str]) -> str:
        """The commit that the first of these branches which is there had at the end of a day."""
        for branch in branches:
            if found := self.git("rev-list", "-1", f"--before={date} 23:59:59", branch):
                return found
        return ""

    @cached_property
    def releases(self) -> list[tuple[str, str]]:
        """(day, tag) of every release, oldest first."""
        rows = self.git(
            "for-each-ref", "--format=%(creatordate:short) %(refname:short)", "refs/tags"
        )
        found = [(row.split(" ")[0], row.split(" ")[-1]) for row in rows.splitlines()]
        return sorted(each for each in found if re.fullmatch(r"v\d+\.\d+\.\d+", each[1]))


def published(slime: Clone, upstreams: Mapping[str, Clone]) -> Iterator[Set]:
    """Every set, in the order of history; those whose pin no clone has, with pin ""."""
    seen = set()
    history = slime.git("log", "--reverse", "--format=%H %cs", "--", "docker").splitlines()
    for commit, date in (row.split(" ") for row in history):
        for found in _sets_of(_Tree(slime, commit, date, upstreams)):
            # a day moves on by itself: that is no new set
            pin = found.pin if found.source == "recorded" else ""
            key = (found.folder, found.component, pin, found.patches)
            if key not in seen:
                seen.add(key)
                yield found


class _Tree:
    """The folder `docker` at one commit of slime."""

    def __init__(
        self, slime: Clone, commit: str, date: str, upstreams: Mapping[str, Clone]
    ) -> None:
        self.slime, self.commit, self.date, self.upstreams = slime, commit, date, upstreams
        rows = slime.git("ls-tree", "-r", commit, "docker/").splitlines()
        self.files = {row.split("\t")[1]: row.split()[2] for row in rows}

    def text(self, path: str) -> str:
        """A file of it; "" if there is none."""
        return self.slime.git("show", f"{self.commit}:{path}") if path in self.files else ""

    @cached_property
    def dockerfile(self) -> str:
        return self.text("docker/Dockerfile")

    @cached_property
    def arguments(self) -> dict[str, str]:
        return dict(_ARGUMENT.findall(self.dockerfile))

    def pin(self, folder: str, component: str) -> tuple[str, str]:
        """(commit of the upstream, where it is from); ("", "") if nothing says."""
        if component not in self.upstreams or folder.startswith("amd_patch"):
            return "", ""  # AMD's are for forks
        if folder == "npu_patch":
            return self._from_guide(component)
        if _RELEASE.match(folder):
            return self._from_readme(folder, component) or self._named(component, folder)
        if component == "sglang":
            return self._named(component, self._image())
        return self._named(component, self.arguments.get("MEGATRON_COMMIT", "main"))

    def _image(self) -> str:
        match = _IMAGE.search(self.dockerfile)
        name = (match[1] or match[2]) if match else "latest"
        if name.startswith("$"):
            tag = self.arguments.get("SGLANG_IMAGE_TAG") or self.arguments.get("SGLANG_VERSION")
            return tag or "latest"
        return name

    def _named(self, component: str, name: str) -> tuple[str, str]:
        """The commit that an image's tag, a branch, a tag or an id stands for."""
        upstream = self.upstreams[component]
        nightly, release = _NIGHTLY.search(name), _RELEASE.match(name)
        if nightly or (component == "sglang" and release):
            exact = nightly[1] if nightly else release[0]  # type: ignore[index]
            return upstream.commit(exact), "recorded"
        if name == "latest":
            newest = [tag for day, tag in upstream.releases if day <= self.date]
            return upstream.commit(newest[-1]) if newest else "", "of that day"
        if name in ("main", "dev") or (component == "megatron" and release):
            return upstream.on(self.date, ("main", "origin/main")), "of that day"
        return upstream.commit(name), "recorded"

    def _from_readme(self, folder: str, component: str) -> tuple[str, str] | None:
        """What the list of versions says of a folder, here or, later, at the newest commit."""
        for text in (
            self.text("docker/README.md"),
            self.slime.git("show", "HEAD:docker/README.md"),
        ):
            for row in text.splitlines():
                if re.search(rf"sglang {re.escape(folder)}[ (,]", row):
                    sglang, _, megatron = row.partition("megatron")
                    found = _HEX.search(sglang if component == "sglang" else megatron)
                    if found:
                        return self.upstreams[component].commit(found[0]), "recorded"
        return None

    def _from_guide(self, component: str) -> tuple[str, str]:
        if component == "slime":
            return _NPU_SLIME, "recorded"
        for row in self.text("docker/npu_patch/README.md").splitlines():
            if _GUIDE.get(component, "-") in row.split("|")[1:2] or (
                row.startswith(f"| {_GUIDE.get(component, '-')} ")
            ):
                found = _HEX.search(row)
                return (self.upstreams[component].commit(found[0]) if found else ""), "recorded"
        return "", ""


def _sets_of(tree: _Tree) -> Iterator[Set]:
    groups: dict[tuple[str, str], list[str]] = {}
    for path in tree.files:
        if path.endswith(".patch"):
            folder = path.removeprefix("docker/patch/").removeprefix("docker/").rpartition("/")[0]
            name = path.rpartition("/")[2].removesuffix(".patch")
            component = name if folder == "npu_patch" else name.partition("-")[0]
            groups.setdefault((folder or "patch", component), []).append(path)
    for (folder, component), paths in groups.items():
        pin, source = tree.pin(folder, component)
        patches = tuple((path, tree.files[path]) for path in _in_order(tree, paths))
        if folder == "npu_patch" and component in ("sglang", "megatron"):
            commit, place = _NPU_BASE
            base = place.format(component)
            patches = ((base, tree.slime.git("rev-parse", f"{commit}:{base}")), *patches)
        yield Set(tree.commit[:9], tree.date, folder, component, pin, source, patches)


def _in_order(tree: _Tree, paths: Sequence[str]) -> list[str]:
    """In the order of the Dockerfile's loop; without one the shortest name first."""
    match = _ORDER.search(tree.dockerfile.replace("\\\n", " "))
    named = match[1].split() if match else []
    names = {name: place for place, name in enumerate(named)}
    return sorted(paths, key=lambda path: (names.get(path.rpartition("/")[2], 99), len(path), path))
