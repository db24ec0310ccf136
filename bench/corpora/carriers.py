"""Repositories that carry patches, adopted by `patchkit init --here` alone, beside git's own way.

Each is laid out as its history has it. Its files are to stay as they are; the stack's tree is to be
that of `git apply` with the carrier's patches in the carrier's order; and the last bump that its
maintainers made is made again by `patchkit bump`, which writes the pin where the carrier has it.
Nothing of the carriers is in this repository.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import yaml
from msgspec import Struct

from bench.corpora.programs import attempt, first_error
from bench.figures import today
from patchkit.model.decoding import from_builtins, from_json

_PATIENCE = 900  # seconds for one command
_try = partial(attempt, patience=_PATIENCE)
#: So many changes of a pin are looked at, from the newest on.
_BUMPS = 12


class Carrier(Struct, frozen=True):
    """Where patches are: what kind of place it is, the repository, and the paths to lay out."""

    kind: str
    repository: str
    paths: tuple[str, ...]
    folder: str = ""  # to adopt, "" for all
    commit: str = "HEAD"


_NUMBERED = "numbered folder, a file with the tag"
_GCLIENT = "list (.patches), DEPS"
_SUBMODULE = "numbered folder, submodule"
_EKS = "aws/eks-anywhere-build-tooling"
_OF_VERSIONS = "projects/kubernetes/autoscaler"
CARRIERS = (
    Carrier("folder, Dockerfile and scripts", "THUDM/slime", ("docker", "build_conda.sh")),
    Carrier("folder, Dockerfile and scripts", "radixark/miles", ("docker",)),
    Carrier("folder for versions", "sgl-project/SpecForge", ("patches", "README.md", "docs")),
    *(
        Carrier(_NUMBERED, _EKS, (f"projects/{name}",), f"projects/{name}")
        for name in (
            "aquasecurity/trivy",
            "goharbor/distribution",
            "goharbor/harbor-scanner-trivy",
            "kubernetes-sigs/cluster-api",
            "kubernetes-sigs/cluster-api-provider-cloudstack",
            "kubernetes-sigs/cluster-api-provider-vsphere",
            "kubernetes-sigs/etcdadm",
            "kubernetes-sigs/image-builder",
            "kubernetes-sigs/kind",
            "kubernetes-sigs/metrics-server",
        )
    ),
    *(
        Carrier(
            _NUMBERED,
            _EKS,
            (f"{_OF_VERSIONS}/{name}", f"{_OF_VERSIONS}/Makefile"),
            f"{_OF_VERSIONS}/{name}",
        )
        for name in ("1-30", "1-36")
    ),
    *(
        Carrier(_GCLIENT, "electron/electron", ("DEPS", f"patches/{name}"), f"patches/{name}")
        for name in ("ReactiveObjC", "nan", "reclient-configs", "squirrel.mac")
    ),
    *(
        Carrier(_SUBMODULE, f"pulumi/pulumi-{name}", ("patches", ".gitmodules"))
        for name in ("confluentcloud", "digitalocean", "keycloak", "mailgun", "sumologic")
    ),
    Carrier(
        "quilt series, submodule",
        "sonic-net/sonic-buildimage",
        (".gitmodules", "src/sonic-frr", "rules/frr.mk"),
        "src/sonic-frr",
    ),
    Carrier(
        "numbered folder, a vendored file's lock",
        "lowRISC/opentitan",
        ("hw/vendor/*.hjson", "hw/vendor/patches/pulp_riscv_dbg"),
        "hw/vendor/patches/pulp_riscv_dbg",
    ),
    Carrier(
        "folder, a vendored file's lock",
        "lowRISC/opentitan",
        ("sw/vendor/*.hjson", "sw/vendor/patches/eembc_coremark"),
        "sw/vendor/patches/eembc_coremark",
    ),
    *(
        Carrier("folder, a script's version", "termux/termux-packages", (path,), path)
        for path in ("packages/htop", "packages/tmux")
    ),
    *(
        Carrier("SRC_URI and SRCREV of a recipe", "openembedded/meta-openembedded", (path,), path)
        for path in ("meta-networking/recipes-support/netperf", "meta-oe/recipes-support/libtar")
    ),
    *(
        Carrier("portfile.cmake, vcpkg.json", "microsoft/vcpkg", (path,), path)
        for path in (
            "ports/hiredis",
            "ports/jsonnet",
            "ports/redis-plus-plus",
            "ports/tinyxml2",
            "ports/yaml-cpp",
        )
    ),
    Carrier("quilt series, relative submodule", "proxmox/lxc", ("debian", ".gitmodules")),
    Carrier(
        "folder, CMake with an archive",
        "ROCm/TheRock",
        ("patches/third-party/yaml-cpp", "third-party/yaml-cpp"),
    ),
)


class Set(Struct):
    """Patches of a component as `init --here --json` has them."""

    folder: str


class Row(Struct):
    """A component as `init --here --json` has it."""

    name: str
    url: str
    where: str
    value: str
    commit: str
    sets: list[Set]
    patches: int
    applied: int


class Note(Struct):
    """Why a set is in no component."""

    what: str
    where: str


class Report(Struct):
    """What `init --here --json` prints; without components for an error."""

    components: list[Row] = []
    notes: list[Note] = []


class Entry(Struct):
    """What the new manifest says of a component."""

    pin: dict[str, str]
    patches: list[dict[str, str]]
    strip: int = 1


class Adopted(Struct, frozen=True):
    """What became of a component; `moved` counts the carrier's files that are other than before."""

    carrier: Carrier
    component: str
    where: str
    patches: int
    applied: int
    moved: int
    tree: str
    bump: str


def adopted_carriers(
    mirrors: Path, folder: Path, *, tell: Callable[[str], None]
) -> Iterator[Adopted]:
    """Each component of each carrier that there is a mirror of (OWNER+NAME/repo)."""
    for number, carrier in enumerate(CARRIERS):
        mirror = mirrors / carrier.repository.replace("/", "+") / "repo"
        if not mirror.is_dir():
            tell(f"skipped: {carrier.repository}: no mirror of it")
            continue
        place = folder / str(number)
        try:
            for found in _judge(carrier, mirror, place):
                tell(
                    f"{found.component}: {found.applied}/{found.patches} {found.tree}; {found.bump}"
                )
                yield found
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _judge(carrier: Carrier, mirror: Path, place: Path) -> Iterator[Adopted]:
    project = _laid_out(carrier, mirror, place / "now", carrier.commit)
    before = _contents(project)
    report = _init(project, carrier)
    after = _contents(project)
    moved = sum(after.get(name) != data for name, data in before.items())
    for row in report.components:
        entry = _entry(project, row.name)
        tree = _same_tree(project, row, entry) if row.applied == row.patches else "-"
        yield Adopted(
            carrier=carrier,
            component=row.name,
            where=row.where,
            patches=row.patches,
            applied=row.applied,
            moved=moved,
            tree=tree,
            bump=_bumped(carrier, mirror, place, row, entry) if tree == "equal" else "-",
        )
    for note in report.notes:
        yield Adopted(carrier, "-", note.where, 0, 0, moved, f"not here: {note.what}", "-")


def _laid_out(carrier: Carrier, mirror: Path, project: Path, commit: str) -> Path:
    """The carrier's files of a commit; its whole index, so that submodules are known."""
    _git("clone", "-q", "--shared", "--no-checkout", str(mirror), str(project), cwd=mirror)
    url = f"https://github.com/{carrier.repository}.git"  # that relative submodules start from
    _git("remote", "set-url", "origin", url, cwd=project)
    _git("read-tree", commit, cwd=project)
    listed = _git("ls-files", "--", *carrier.paths, cwd=project).splitlines()
    _git("checkout-index", "-q", "-f", "--stdin", cwd=project, given="\n".join(listed))
    return project


def _init(project: Path, carrier: Carrier) -> Report:
    """The components of the new manifest, as the report has them, and what is in none."""
    name = [carrier.folder] if carrier.folder else ["adopted"]
    done = _patchkit(project, "init", *name, "--here", "--json")
    return from_json(done.stdout.encode(), Report) if done.stdout else Report()


def _manifest(project: Path) -> Path:
    return next((project / "manifests").glob("*.yaml"))


def _entry(project: Path, name: str) -> Entry:
    document = yaml.safe_load(_manifest(project).read_text(encoding="utf-8"))
    return from_builtins(document["components"][name], Entry)


def _same_tree(project: Path, row: Row, entry: Entry) -> str:
    """Whether patchkit's tree is that of git with the carrier's patches in the carrier's order."""
    done = _patchkit(project, "apply", "-c", row.name)
    if done.returncode:
        return f"apply: {first_error(done.stderr)}"
    checkout = project / "workspace" / row.name
    ours = _git("rev-parse", "HEAD^{tree}", cwd=checkout).strip()
    theirs = _by_git(project, checkout, row.commit, entry)
    return "equal" if ours == theirs else "differs"


def _by_git(project: Path, checkout: Path, commit: str, entry: Entry) -> str:
    """The tree that git gives, "" where it refuses a patch."""
    index = {"GIT_INDEX_FILE": str(project.parent / f"index-{time.monotonic_ns()}")}
    _try("git", "read-tree", commit, cwd=checkout, variables=index).check_returncode()
    for path in _in_order(project, entry):
        command = ("git", "apply", "--cached", f"-p{entry.strip}", str(path))
        if _try(*command, cwd=checkout, variables=index).returncode:
            return ""
    return _try("git", "write-tree", "--missing-ok", cwd=checkout, variables=index).stdout.strip()


def _in_order(project: Path, entry: Entry) -> list[Path]:
    """The patches as the carrier's own tools take them."""
    paths: list[Path] = []
    for part in entry.patches:
        if "patch" in part:
            paths.append(project / part["patch"])
        elif "series" in part:
            listed = project / part["series"]
            folder = project / part.get("within", listed.parent)
            rows = [row.split("#")[0].split() for row in listed.read_text().splitlines()]
            names = [row[0].removeprefix("file://").strip('"') for row in rows if row]
            if listed.suffix in (".bb", ".cmake"):
                names = [name for name in names if name.endswith((".patch", ".diff"))]
            paths += [folder / name for name in names]
        else:
            found = (project / part["folder"]).rglob("*.patch")
            paths += sorted(found, key=lambda path: path.relative_to(project).as_posix())
    return paths


def _bumped(
    carrier: Carrier,
    mirror: Path,
    place: Path,
    row: Row,
    entry: Entry,
) -> str:
    """The newest bump of the maintainers that can be made again: what came of it."""
    pin = entry.pin
    watched = pin.get("file") or pin.get("submodule")
    if watched is None:
        return "-"
    changed = () if "submodule" in pin else (f"-S{row.value}",)
    log = _try(
        "git",
        "log",
        f"-{_BUMPS}",
        "--format=%H",
        *changed,
        carrier.commit,
        "--",
        watched,
        cwd=mirror,
    )
    for number, commit in enumerate(log.stdout.split()):
        parent = _git("rev-parse", f"{commit}^", cwd=mirror).strip()
        after = _try_laid_out(carrier, mirror, place / f"after{number}", commit, row)
        before = _try_laid_out(carrier, mirror, place / f"before{number}", parent, row)
        if after and before and after[1].commit != before[1].commit:
            return _redone(before, after)
    return "none that can be had"


_Laid: TypeAlias = tuple[Path, Row, Entry]


def _try_laid_out(
    carrier: Carrier, mirror: Path, project: Path, commit: str, row: Row
) -> _Laid | None:
    """The carrier at a commit of its history; None where it was another, or did not apply then."""
    try:
        _laid_out(carrier, mirror, project, commit)
    except subprocess.CalledProcessError:
        return None  # the mirror lacks files of that time
    for then in _init(project, carrier).components:
        same = then.url == row.url and _folder_of(then) == _folder_of(row)
        if same and then.applied == then.patches:
            return project, then, _entry(project, then.name)
    return None


def _folder_of(row: Row) -> str:
    return row.sets[0].folder


def _redone(before: _Laid, after: _Laid) -> str:
    project, row, entry = before
    step = f"{_short(row.value)} to {_short(after[1].value)}"
    if _same_tree(project, row, entry) != "equal":
        return f"{step}: not applied before"
    done = _patchkit(project, "bump", row.name, "--to", after[1].value)
    if done.returncode:
        conflict = re.search(r"stopped at (\S+):", done.stderr + done.stdout)
        why = f"a conflict in {conflict[1]}" if conflict else first_error(done.stderr)
        return f"{step}: {why}"
    checkout = project / "workspace" / row.name
    ours = _git("rev-parse", "HEAD^{tree}", cwd=checkout).strip()
    own_way = _by_git(project, checkout, after[1].commit, entry)
    theirs = _by_git(after[0], checkout, after[1].commit, after[2])
    if own_way != ours:
        return f"{step}: **the carrier's own way differs**"
    if ours == theirs:
        return f"{step}: equal"
    many = len(_git("diff", "--name-only", ours, theirs, cwd=checkout).split()) if theirs else "?"
    return f"{step}: {many} files differ from theirs"


def _short(value: str) -> str:
    return value[:9] if len(value) == 40 else value


def _contents(project: Path) -> dict[str, bytes]:
    """The carrier's own files."""
    names = (path for path in project.rglob("*") if path.is_file() and not path.is_symlink())
    own = (path for path in names if ".git" not in path.parts and "workspace" not in path.parts)
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in own}


def _patchkit(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _try(sys.executable, "-m", "patchkit", *arguments, cwd=project)


def _git(*arguments: str, cwd: Path, given: str | None = None) -> str:
    done = _try("git", *arguments, cwd=cwd, given=given)
    done.check_returncode()
    return done.stdout


def carriers_section(found: Sequence[Adopted]) -> list[str]:
    """Counts, and a row for the components of a carrier of which the same is to be said."""
    found, every = [row for row in found if row.component != "-"], found
    repositories = {row.carrier.repository for row in found}
    kinds = {row.carrier.kind for row in found}
    whole = sum(row.applied == row.patches for row in found)
    equal = sum(row.tree == "equal" for row in found)
    text = (
        f"{today()}: **{len(found)} components** of {len(repositories)} repositories and"
        f" {len(kinds)} kinds, with {sum(row.patches for row in found)} patches; {whole} apply"
        f" whole, {equal} of them with git's tree. Files of the carriers that changed:"
        f" {sum(row.moved for row in found)}."
    )
    table = [
        "| carrier | component | pin at | patches | apply | tree | the maintainers' last bump |",
        "| --- | --- | --- | --: | --: | --- | --- |",
    ]
    alike: dict[tuple[str, str, str], list[Adopted]] = {}
    for row in every:
        carrier = f"{row.carrier.repository}: {row.carrier.kind}"
        alike.setdefault((carrier, row.tree, row.bump), []).append(row)
    for (carrier, tree, bump), rows in alike.items():
        cells = (
            carrier,
            ", ".join(row.component for row in rows),
            ", ".join(row.where for row in rows),
            str(sum(row.patches for row in rows)),
            str(sum(row.applied for row in rows)),
            tree,
            bump,
        )
        table.append(f"| {' | '.join(cells)} |")
    return [text, "\n".join(table)]
